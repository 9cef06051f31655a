"""Pages that stand alone: one template, one style, figures inside; nothing is loaded from elsewhere."""
