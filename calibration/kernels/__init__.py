"""Real encode kernels: measured, fitted, and kept as tables.

Start with `measure`; `fit` turns its rows into costs and `store` keeps them.
"""
