"""The subcommands as tools of the Model Context Protocol."""
