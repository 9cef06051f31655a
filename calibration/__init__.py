"""Observe, fit, validate: kernel costs, SciPy fits, parameter sets with provenance, the claims ledger."""
