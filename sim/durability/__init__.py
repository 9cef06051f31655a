"""How likely data is lost within a horizon: chains, combinatorics of bursts, multilevel splitting.

Start with `system` (what is asked), then `chain`, `bursts` and `splitting` (three ways to answer), then
`assess` (the rows that a user sees).
"""
