"""Fit workload models to block traces, and draw new traces from them. Start with `model`."""
