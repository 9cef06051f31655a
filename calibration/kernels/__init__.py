"""Real encode kernels: measure them, fit their costs and store these as tables.

Start with `measure`. `cost_fit` turns its rows into costs, and `store` finds and saves tables.
"""
