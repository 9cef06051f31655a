"""Cost of one read or write of a shard in its store: BlueStore, FileStore and cached metadata.

Start with `store`.
"""
