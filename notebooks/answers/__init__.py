"""Questions and answers of the lessons, one module each, and how they are marked."""
