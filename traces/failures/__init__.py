"""Failure traces: their formats, their common form, and their statistics; start with `columns`."""
