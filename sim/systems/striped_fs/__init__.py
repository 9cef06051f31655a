"""A file system whose data servers encode (ExSTorus-FS).

Start with `write` (the five steps of a write), then `participants` (its resources) and `costs`.
"""
