"""What will a storage cluster do under replication, and what under erasure coding.

The functions of `stripesim.api` are also reached from here, as ``stripesim.run_scenario``; they load at their
first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from stripesim._version import __version__

__all__ = ["__version__"]

# The names of stripesim.api, which is not imported to ask for them.
_PUBLIC = frozenset(
    (
        "FACTOR_ONE",
        "FACTOR_POINTS",
        "FIFO",
        "POOL",
        "CaptionedFigure",
        "EngineRun",
        "GraphBuilder",
        "Program",
        "RequestChunk",
        "Resources",
        "Scenario",
        "ScenarioResult",
        "Template",
        "Timeline",
        "build_models",
        "describe",
        "draw_all",
        "draw_timelines",
        "drawing",
        "engine_named",
        "explain",
        "factor_table",
        "fit_trace",
        "format_size",
        "heading",
        "koh2017_claims",
        "latency_words",
        "load",
        "load_scenario",
        "parse_scenario",
        "parse_scheme",
        "parse_size_bytes",
        "run_scenario",
        "save_figures",
        "shipped_scenarios",
        "simulate",
        "table_rows",
        "write_fit",
    )
)


def __getattr__(name: str) -> Any:
    """Fetch a name of the public API at its first use."""
    if name in _PUBLIC:
        return getattr(import_module("stripesim.api"), name)
    raise AttributeError(f"module 'stripesim' has no attribute {name!r}")
