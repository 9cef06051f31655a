"""Cost of one shard read or write in its store: BlueStore, FileStore and cached metadata.

Start with `store`.
"""
