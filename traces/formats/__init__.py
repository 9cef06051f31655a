"""One reader for each format of block trace; start with `tables`, whose formats are data."""
