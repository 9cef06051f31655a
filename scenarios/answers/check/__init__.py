"""Check whether a measured number is what the hardware should give: `stripesim check`.

Start with `check`: it simulates the measured load, then each cause that could explain the difference
(`causes`). `rados_bench` reads that tool's output, `answer` and `figure` show the result.
"""
