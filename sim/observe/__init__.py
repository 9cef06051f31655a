"""What a run shows: rates, latencies, its steady state, and where the time of a request went."""
