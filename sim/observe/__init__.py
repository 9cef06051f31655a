"""Turn a run into results: rates, latencies, the steady state, limits, and where requests spend time."""
