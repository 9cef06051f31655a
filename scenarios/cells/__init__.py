"""Run one cell of a scenario, from its configuration to a result row.

Start with `build`, which turns a cell into a pool, a workload and faults. `models` reads the parameter sets,
`placement` maps data to OSDs, and `run` runs the cell.
"""
