"""Fit service times of an SSD to a block trace. Start with `fit`."""
