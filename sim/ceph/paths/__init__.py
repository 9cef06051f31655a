"""Paths compile a scheme's plan for a write, read or repair into an op graph."""

from stripesim.sim.ceph.paths.bare import bare_path
from stripesim.sim.ceph.paths.context import ObjectExtent, PathContext
from stripesim.sim.ceph.paths.direct import can_read_directly, direct_read_path
from stripesim.sim.ceph.paths.object_map import after_object_map, object_map_path
from stripesim.sim.ceph.paths.optimised import optimised_write_path, written_shards
from stripesim.sim.ceph.paths.pipeline import pipelined_write_path, roll_forward_path
from stripesim.sim.ceph.paths.read import fastest_copy_path, local_copy_path, read_path
from stripesim.sim.ceph.paths.repair import (
    keys_path,
    move_path,
    note_path,
    repair_path,
    rounds_bytes,
    scrub_path,
)
from stripesim.sim.ceph.paths.write import write_path

__all__ = [
    "ObjectExtent",
    "PathContext",
    "after_object_map",
    "bare_path",
    "can_read_directly",
    "direct_read_path",
    "fastest_copy_path",
    "keys_path",
    "local_copy_path",
    "move_path",
    "note_path",
    "object_map_path",
    "optimised_write_path",
    "pipelined_write_path",
    "read_path",
    "repair_path",
    "roll_forward_path",
    "rounds_bytes",
    "scrub_path",
    "write_path",
    "written_shards",
]
