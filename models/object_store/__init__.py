"""What one read or write of a shard costs its store: BlueStore, FileStore and cached metadata."""
