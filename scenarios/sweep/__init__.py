"""Plan many scenarios at once, run them on processes or a Dask cluster, resume and tabulate them."""
