"""Parameter sets as data, every number with its unit and provenance. Start with `sets`."""
