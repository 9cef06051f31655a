"""The claims ledger: published values, simulated values, and verdicts that only code writes.

Start with `claims`, the rows of a source, then `verdicts`.
"""
