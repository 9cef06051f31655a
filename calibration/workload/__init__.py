"""Workload models fitted to block traces, and new traces drawn from them; start with `model`."""
