"""Root conftest: collect each module once, through its importable name.

The folders at the top are reached as ``stripesim.<folder>`` through the
symlinks in ``stripesim/``; collecting them a second time by their top-level
path would load every module twice. The modules that fork servers preload run
the engine, which each of two workers would compile; they hold no examples.
"""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

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
    return not _has_examples(collection_path) or None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, Any, Any]:
    """Leave out the search for examples in tests that have none."""
    collectors = yield
    if file_path.suffix != ".py" or _has_examples(file_path):
        return collectors
    return [collector for collector in collectors if type(collector) is pytest.Module]


def _has_examples(path: Path) -> bool:
    return ">>>" in path.read_text(encoding="utf-8")


# Pytest rewrites the assertions of each file and stores the result. Every second worker collects from the
# last file on, so that two workers meet in the middle and read the other half from disk.
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
_IS_BACKWARDS = _WORKER[2:].isdecimal() and int(_WORKER[2:]) % 2 == 1


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, Any, Any]:
    """Turn the order of a folder's files around in every second worker."""
    report = yield
    if _IS_BACKWARDS and isinstance(collector, pytest.Dir):
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all workers the same order of tests, in which they stay in the order of their file."""
    if _WORKER:
        items.sort(key=lambda item: (item.path, type(item).__name__))
