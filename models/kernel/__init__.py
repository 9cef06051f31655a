"""Cost of encoding and decoding: fitted times, the buffers around them, and kernel tables as documents."""
