"""Run a scenario. Start with `execute`."""
