"""Planned changes of a real Ceph 16.2.15, compared with simulated ones."""
