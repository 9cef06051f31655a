"""From a scenario to a simulation and its result rows."""
