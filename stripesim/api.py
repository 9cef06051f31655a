"""The public face: what a notebook, a script or another program needs, re-exported in one place.

`import stripesim` loads nothing of this; a name is fetched at its first use (``stripesim.run_scenario``).
"""

from __future__ import annotations

from stripesim.calibration.trace_fit import fit_trace, write_fit
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.explain.draw import draw_timelines
from stripesim.scenarios.explain.request import Timeline, explain
from stripesim.scenarios.explain.text import drawing, heading, latency_words, table_rows
from stripesim.scenarios.figures.results import CaptionedFigure, draw_all, save_figures
from stripesim.scenarios.run.build import build_models
from stripesim.scenarios.run.execute import ScenarioResult, run_scenario
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.loader import load_scenario, parse_scenario, shipped_scenarios
from stripesim.scenarios.schema.units import format_size, parse_size_bytes
from stripesim.scenarios.studies.koh2017.claims import load as koh2017_claims
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS, factor_table
from stripesim.sim.engine.graph import GraphBuilder, Template
from stripesim.sim.engine.program import FIFO, POOL, EngineRun, Program, RequestChunk, Resources
from stripesim.sim.run import engine_named, simulate
from stripesim.traces import describe, load

__all__ = [
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
]
