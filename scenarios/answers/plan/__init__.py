"""Which cluster to buy. Start with `plan`."""
