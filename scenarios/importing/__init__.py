"""Existing clusters, read from the outputs of Ceph: placement, capacity, hardware, and a scenario that runs.

Start with `documents`, then `cluster`.
"""
