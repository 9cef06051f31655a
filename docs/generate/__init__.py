"""Writes the pages of the documentation that are made from the code, so that they cannot differ from it."""
