"""One request step by step, and where the time of a run's requests went."""
