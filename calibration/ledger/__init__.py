"""The claims ledger: what a source states, what the simulation gives, and a verdict that only code writes."""
