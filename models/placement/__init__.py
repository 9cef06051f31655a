"""Placement of data: object to placement group, and CRUSH from placement group to OSDs.

Start with `CrushMap`, then `pg_mappings`. Numba loads with the first mapping.
"""

from stripesim.models.placement.crush.build import build_map as build_map
from stripesim.models.placement.crush.build import map_of_hosts as map_of_hosts
from stripesim.models.placement.crush.dump import map_from_dump as map_from_dump
from stripesim.models.placement.crush.elements import NONE as NONE
from stripesim.models.placement.crush.elements import Alg as Alg
from stripesim.models.placement.crush.elements import Bucket as Bucket
from stripesim.models.placement.crush.elements import BucketArgs as BucketArgs
from stripesim.models.placement.crush.elements import CrushMapError as CrushMapError
from stripesim.models.placement.crush.elements import Device as Device
from stripesim.models.placement.crush.elements import PlacementError as PlacementError
from stripesim.models.placement.crush.elements import Rule as Rule
from stripesim.models.placement.crush.elements import Step as Step
from stripesim.models.placement.crush.elements import StepOp as StepOp
from stripesim.models.placement.crush.elements import Tunables as Tunables
from stripesim.models.placement.crush.map import CrushMap as CrushMap
from stripesim.models.placement.crush.map import Reweights as Reweights
from stripesim.models.placement.crush.text import load_map as load_map
from stripesim.models.placement.crush.text import parse_map as parse_map
from stripesim.models.placement.crush.to_text import map_to_text as map_to_text
from stripesim.models.placement.osdmap import pg_mappings as pg_mappings
from stripesim.models.placement.osdmap import pgs_of_objects as pgs_of_objects
from stripesim.models.placement.osdmap import placement_seeds as placement_seeds
from stripesim.models.placement.osdmap import stable_mod as stable_mod
from stripesim.models.placement.pg_sets import OsdMap as OsdMap
from stripesim.models.placement.pg_sets import PgSets as PgSets
from stripesim.models.placement.pg_sets import PlacedPool as PlacedPool
from stripesim.models.placement.pg_sets import pg_sets as pg_sets
