"""One folder per published source: its claims, the runs they need, and the verdicts. Start with `base`."""
