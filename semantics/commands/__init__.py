"""The subcommands that this layer brings to `sonnx`: run, replay, debug, dap, bench.

A file holds one command: its options, the exit code, what is printed; `options` holds the options that several share,
also those of the checker's commands. A command computes nothing itself and loads what it needs when it is called.
"""
