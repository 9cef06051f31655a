"""Simulation: op graphs and their two engines, Ceph's request paths, and the measurement of runs.

Start with `run.simulate`, which connects them. `engine` executes op graphs, `ceph` plans requests, `observe`
computes results, `durability` estimates data loss, and `systems` holds two further systems.
"""
