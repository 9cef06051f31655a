"""Many scenarios at once: planned, run on processes or a Dask cluster, resumed, and tabulated."""
