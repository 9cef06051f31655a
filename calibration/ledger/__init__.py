"""The claims ledger: published values, simulated values, and verdicts computed by code.

Start with `claims`, the rows of a source, then read `verdicts`.
"""
