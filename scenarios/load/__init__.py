"""Compute load curves: latency over throughput, for `stripesim load`, reports and the page.

Start with `curves`, whose `load_curves` chooses the rates to simulate. `rate_runs` runs one rate, `analysis`
finds the knee and the highest rate within a latency bound, and `answer` writes both as JSON and sentences.
"""
