"""Read existing clusters from the output of Ceph commands: placement, capacity, hardware, and a scenario.

Start with `documents`, then `cluster`.
"""
