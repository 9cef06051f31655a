"""Closed forms and small simulations of a cluster: capacity, bounds of rates, rebuild, prices."""
