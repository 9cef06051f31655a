"""Root conftest: collect each module once, through its importable name.

The folders at the top are reached as ``stripesim.<folder>`` through the
symlinks in ``stripesim/``; collecting them a second time by their top-level
path would load every module twice. The modules that fork servers preload run
the engine, which each of two workers would compile; they hold no examples.
"""

import os
from pathlib import Path

# Each processor has a worker, so that threads of libraries only take its time. NumPy and Polars read this
# when they load.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(name, "1")

collect_ignore = [
    "models",
    "sim",
    "calibration",
    "traces",
    "scenarios",
    "notebooks",
    "stripesim/scenarios/work/preload.py",
    "stripesim/scenarios/work/server.py",
]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out modules without examples, in which doctest would look at every object."""
    if collection_path.suffix != ".py" or "tests" in collection_path.parts:
        return None
    return ">>>" not in collection_path.read_text(encoding="utf-8") or None
