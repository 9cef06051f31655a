"""Clusters that exist, read from what Ceph prints: placement, capacity, hardware, and a scenario that runs.

Start with `documents`, then `cluster`.
"""
