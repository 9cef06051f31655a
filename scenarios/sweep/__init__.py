"""Run many scenarios: `plan` makes the tasks, `run` runs them on processes or a Dask cluster and resumes."""
