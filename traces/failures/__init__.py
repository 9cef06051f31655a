"""Failure traces: their formats, one common form, and what they hold in numbers."""
