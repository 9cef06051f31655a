"""Client workloads: load generators and recorded traces. Start with `workload`."""
