"""Compute load curves: latency over throughput, for `stripesim load`, reports and the page.

Start with `curves`, whose `load_curves` computes curves side by side. `curve_builder` chooses the rates of
one curve and `rate_runs` runs one rate. `analysis` finds the knee and the highest rate within a latency
bound. `results` holds the finished curves, which `answer` writes as JSON and sentences, and `figure` draws.
"""
