"""Answer planning questions: capacity, wear, rebuild, durability and cost. Start with `plan`."""
