"""Estimate how likely data is lost, and in which ways. Start with `durability`."""
