"""The fast engine, compiled by numba. Start with `kernel`, next to the reference engine."""
