"""Failure traces: formats, their common form and statistics. Start with `columns`."""
