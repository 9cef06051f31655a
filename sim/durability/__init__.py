"""Estimate the probability of data loss within a horizon.

Start with `system` (the question), then `chain`, `bursts`, `splitting` and `histories` (four methods), then
`assess` (the rows that a user sees).
"""
