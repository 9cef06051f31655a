"""What a planner asks of a cluster beside its speed: capacity, wear, rebuild."""
