"""Draw figures from result rows, with captions written from the same rows."""
