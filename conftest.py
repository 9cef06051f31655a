"""Root conftest: collect each module once, through its importable name.

The folders at the top are reached as ``stripesim.<folder>`` through the
symlinks in ``stripesim/``; collecting them a second time by their top-level
path would load every module twice. The module that fork servers preload runs
the engine, which each of two workers would compile; it holds no examples.
"""

collect_ignore = [
    "models",
    "sim",
    "calibration",
    "traces",
    "scenarios",
    "notebooks",
    "stripesim/scenarios/sweep/preload.py",
]
