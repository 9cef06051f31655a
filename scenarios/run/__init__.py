"""Run a scenario and write its result rows: start with `execute`."""
