"""Self-contained report pages of runs, sweeps and studies."""
