"""Real encode kernels: measured, fitted, and kept as tables."""
