"""Recommend a cluster to buy. Start with `plan`."""
