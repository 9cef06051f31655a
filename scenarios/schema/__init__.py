"""Scenario files: keys (start with `keys`), types, rules across keys, and errors with file, line and key."""
