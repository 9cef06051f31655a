"""One reader for each format of block trace."""
