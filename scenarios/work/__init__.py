"""Spread simulations over processes or a Dask cluster, and store their rows. Start with `pool`."""
