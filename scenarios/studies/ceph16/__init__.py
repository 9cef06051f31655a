"""Counts measured on a real Ceph 16.2.15, replayed with the same offsets and compared row by row."""
