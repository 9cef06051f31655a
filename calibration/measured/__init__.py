"""Measurements of clusters: rows read from CSV, with located problems, and the hardware of each cluster.

Start with `tables`, which reads any measured table, then `rows`, `hardware`.
"""
