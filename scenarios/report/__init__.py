"""Write self-contained report pages of runs, sweeps and studies. Start with `run`."""
