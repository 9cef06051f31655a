"""The study of Han et al. 2024 (ECFault): what Ceph's configuration does to the recovery of coded data."""
