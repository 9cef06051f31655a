"""The report of a run. Start with `page`."""
