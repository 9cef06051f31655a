"""Closed forms and small simulations of a cluster: capacity, rebuild, prices."""
