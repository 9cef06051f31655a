"""How likely data is lost, and how. Start with `durability`."""
