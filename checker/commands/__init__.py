"""The subcommands that this layer brings to `sonnx`: certify, recheck, examples, compare, fuzz, conform and others.

A file holds one command: its options, the exit code, what is printed. A command decides nothing itself, loads what it
needs when it is called, and is imported by nothing.
"""
