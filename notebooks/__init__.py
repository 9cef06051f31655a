"""Teaching material on the public API only."""
