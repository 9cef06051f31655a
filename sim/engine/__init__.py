"""Two engines and what they share: op graphs, branch conditions, programs, checks. Start with ENGINE.md."""
