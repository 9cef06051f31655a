"""Cost of encoding and decoding: fitted times, buffers around them, and kernel tables as documents.

Start with `cost`; `tables` reads and writes the documents, `interpolate` adds codes that were not timed.
"""
