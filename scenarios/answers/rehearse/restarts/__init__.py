"""Restart hosts one after another. Start with `restart`."""
