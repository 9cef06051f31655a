"""Placement of data: objects to placement groups, and placement groups to OSDs by CRUSH.

Start with `CrushMap`, then read `pg_mappings`. Numba loads with the first mapping.
"""

from stripesim.models.placement.crush.build import build_map, map_of_hosts, rule_name
from stripesim.models.placement.crush.dump import map_from_dump
from stripesim.models.placement.crush.elements import (
    NONE,
    Alg,
    Bucket,
    BucketArgs,
    Device,
    Rule,
    Step,
    StepOp,
    Tunables,
)
from stripesim.models.placement.crush.map import CrushMap, Reweights
from stripesim.models.placement.crush.text import load_map, parse_map
from stripesim.models.placement.crush.to_text import map_to_text
from stripesim.models.placement.crush_changes import reweighted, with_new_hosts
from stripesim.models.placement.movement import Movement, OsdWeights
from stripesim.models.placement.osdmap import (
    pg_mappings,
    pgs_of_objects,
    placement_seeds,
    stable_mod,
)
from stripesim.models.placement.outages import PoolOutages
from stripesim.models.placement.pg_sets import OsdMap, PgSets, PlacedPool, pg_sets
from stripesim.models.placement.upmaps import balanced_osd_map, changed_osd_map

__all__ = [
    "NONE",
    "Alg",
    "Bucket",
    "BucketArgs",
    "CrushMap",
    "Device",
    "Movement",
    "OsdMap",
    "OsdWeights",
    "PgSets",
    "PlacedPool",
    "PoolOutages",
    "Reweights",
    "Rule",
    "Step",
    "StepOp",
    "Tunables",
    "balanced_osd_map",
    "build_map",
    "changed_osd_map",
    "load_map",
    "map_from_dump",
    "map_of_hosts",
    "map_to_text",
    "parse_map",
    "pg_mappings",
    "pg_sets",
    "pgs_of_objects",
    "placement_seeds",
    "reweighted",
    "rule_name",
    "stable_mod",
    "with_new_hosts",
]
