"""The subcommand of this layer, `sonnx spec`.

It reads options and prints; what it shows is computed in the packages above it. The frame of all commands is
`sonnx.spec.cli`, and nothing imports from here.
"""
