"""One cell of a scenario, from its configuration to a result row.

Start with `build`: it turns a cell into a pool, a workload and faults. `models` reads the parameter sets,
`placement` maps data to OSDs, `run` runs the cell.
"""
