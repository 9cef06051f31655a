"""A Ceph-like cluster, as resources and op graphs.

Read `pool`, then `planner` (from requests to shapes), `kinds.kind` (from shapes to plans) and `paths.write`
(from a plan to a graph). `failures` changes the state of placement groups while a run lasts.
"""
