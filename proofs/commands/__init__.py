"""The subcommands that this layer brings to `sonnx`."""
