"""TOML scenarios and one folder per study; data, validation and figures, no physics."""
