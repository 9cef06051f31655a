"""Paths: the write, read and repair of one request, from a scheme's plan to an op graph."""

from stripesim.sim.paths.bare import bare_path
from stripesim.sim.paths.pipeline import pipelined_write_path, roll_forward_path
from stripesim.sim.paths.read import read_path
from stripesim.sim.paths.repair import move_path, repair_path
from stripesim.sim.paths.stage import PathContext
from stripesim.sim.paths.write import write_path

__all__ = [
    "PathContext",
    "bare_path",
    "move_path",
    "pipelined_write_path",
    "read_path",
    "repair_path",
    "roll_forward_path",
    "write_path",
]
