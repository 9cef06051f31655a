"""Many scenarios in one command. Start with `plan`, then `run`."""
