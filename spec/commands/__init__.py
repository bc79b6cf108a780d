"""The subcommand of this layer, `sonnx spec`. The frame of all commands is `sonnx.spec.cli`; it must not be needed
below.
"""
