"""Results of a run: rates, latencies, steady state, limits, and the time that requests spend where.

Start with `recording` (the numbers of a result row) and `window` (the part of a run that they measure).
"""
