"""Parameter sets as data: every number with its unit and provenance; start with `sets`."""
