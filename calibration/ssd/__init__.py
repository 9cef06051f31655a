"""Fit service times of an SSD to a block trace. Start with `time_fit`."""
