"""The study of today's clusters: NVMe drives, Ceph 16 to 20, classic and fast erasure coding."""
