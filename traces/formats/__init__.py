"""One reader per block trace format. Start with `tables`, whose formats are data."""
