"""Results of a run under faults, as a row and a document.

Start with `describe`. All modules read a `finished_run`: `phases` (rates, latencies and blocked requests
before, during and after), `recovery_results` (bytes moved and rebuilt, what limits the pace) and
`series` (over time).
"""
