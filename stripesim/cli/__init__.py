"""The command line, with one module per command. Start with `app`."""
