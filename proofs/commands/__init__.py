"""The subcommand that this layer brings to `sonnx`, `sonnx prove`.

It reads options, shows progress and prints the report. It proves nothing itself, loads what it needs when it is called,
and is imported by nothing.
"""
