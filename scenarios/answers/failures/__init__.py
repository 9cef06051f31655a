"""The failure of each host and each drive of an imported cluster.

Read `failures` first, then `pool_failures`, `room` and `healing_time`.
"""
