"""Service times of an SSD, fitted to a block trace; start with `fit`."""
