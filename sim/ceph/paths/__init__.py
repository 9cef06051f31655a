"""Paths: the write, read and repair of one request, from a scheme's plan to an op graph."""

from stripesim.sim.ceph.paths.bare import bare_path
from stripesim.sim.ceph.paths.pipeline import pipelined_write_path, roll_forward_path
from stripesim.sim.ceph.paths.read import read_path
from stripesim.sim.ceph.paths.repair import move_path, repair_path
from stripesim.sim.ceph.paths.stage import PathContext
from stripesim.sim.ceph.paths.write import write_path

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
