"""Workloads: the requests of load generators and recorded traces. Start with `workload`."""
