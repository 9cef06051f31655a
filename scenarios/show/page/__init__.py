"""Render self-contained pages: one base template, one style, inline figures, no external resources."""
