"""Predictions that are registered before anything is measured, and scored later.

Start with `register`: what a prediction holds, how it is made, written and read back. `measured_values` reads
what was measured, `score` compares, `answer` and `figure` show both.
"""
