"""The subcommands, a module each. `subcommands` has their table."""
