"""The claims ledger: published values, simulated values, and verdicts that only code writes."""
