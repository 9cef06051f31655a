"""Figures drawn from result rows, with captions written from the same rows."""
