"""Cost of encoding and decoding: fitted times, the buffers around the kernel, and table documents.

Start with `cost`. `documents` reads and writes the documents, `interpolate` adds codes that were not timed.
"""
