"""Parts of op graphs and engines, for programs that bring a system of their own."""

from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS, factor_table
from stripesim.sim.engine.graph import GraphBuilder, Template
from stripesim.sim.engine.program import FIFO, POOL, EngineRun, Program, RequestChunk, Resources
from stripesim.sim.run import engine_named

__all__ = [
    "FACTOR_ONE",
    "FACTOR_POINTS",
    "FIFO",
    "POOL",
    "EngineRun",
    "GraphBuilder",
    "Program",
    "RequestChunk",
    "Resources",
    "Template",
    "engine_named",
    "factor_table",
]
