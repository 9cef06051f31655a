"""What will a storage cluster do under replication, and what under erasure coding.

The names of `stripesim.api` are reached from here, as ``stripesim.run``; they load at their first use, so
that importing the package costs nothing. ``__init__.pyi`` tells type checkers and editors of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from stripesim._version import __version__

# The names of stripesim.api, which is not imported to ask for them.
_PUBLIC = frozenset(
    (
        "BlockTrace",
        "CaptionedFigure",
        "Claim",
        "Cluster",
        "FailureTrace",
        "Ledger",
        "Pool",
        "RedundancyScheme",
        "RunResult",
        "Scenario",
        "ScenarioError",
        "ScenarioResult",
        "StudyResult",
        "SweepResult",
        "Timeline",
        "TraceFit",
        "claims",
        "cluster",
        "describe_trace",
        "draw_all",
        "draw_timelines",
        "drawing",
        "durability",
        "explain",
        "fit_trace",
        "format_size",
        "heading",
        "import_report",
        "latency_words",
        "load_scenario",
        "load_trace",
        "parse_scenario",
        "parse_scheme",
        "parse_size_bytes",
        "pool",
        "run",
        "save_figures",
        "shipped_scenarios",
        "simulate",
        "studies",
        "study",
        "sweep",
        "table_rows",
        "workload",
        "write_fit",
    )
)

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    """Fetch a name of the public API at its first use."""
    if name in _PUBLIC:
        return getattr(import_module("stripesim.api"), name)
    raise AttributeError(f"module 'stripesim' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names only."""
    return sorted((*_PUBLIC, "__version__"))
