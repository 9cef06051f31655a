"""Scenarios: start with `scenario`, then `keys`. Also types, rules, and errors with file, line and key."""
