"""A file system whose data servers encode (ExSTorus-FS)."""
