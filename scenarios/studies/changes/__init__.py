"""Planned changes on a real Ceph 16.2.15 beside the simulated ones."""
