"""What encoding and decoding cost: fitted times, the buffers around them, and kernel tables as documents."""
