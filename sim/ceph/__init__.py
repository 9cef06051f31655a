"""A Ceph-like cluster: resources, pools, the planner that turns requests into op graphs, and its paths."""
