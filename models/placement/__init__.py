"""Where data lives: object to placement group, and CRUSH from placement group to OSDs.

The public names load on first use: importing this package costs microseconds, NumPy comes with the
first map, and Numba only with the first mapping.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stripesim.models.placement.crush.map import NONE as NONE
    from stripesim.models.placement.crush.map import Bucket as Bucket
    from stripesim.models.placement.crush.map import CrushMap as CrushMap
    from stripesim.models.placement.crush.map import CrushMapError as CrushMapError
    from stripesim.models.placement.crush.map import Device as Device
    from stripesim.models.placement.crush.map import PlacementError as PlacementError
    from stripesim.models.placement.crush.map import Reweights as Reweights
    from stripesim.models.placement.crush.map import Rule as Rule
    from stripesim.models.placement.crush.map import Step as Step
    from stripesim.models.placement.crush.map import StepOp as StepOp
    from stripesim.models.placement.crush.map import Tunables as Tunables
    from stripesim.models.placement.osdmap import object_hash as object_hash
    from stripesim.models.placement.osdmap import pg_mappings as pg_mappings
    from stripesim.models.placement.osdmap import pg_of_object as pg_of_object
    from stripesim.models.placement.osdmap import pgs_of_objects as pgs_of_objects
    from stripesim.models.placement.osdmap import placement_seed as placement_seed
    from stripesim.models.placement.osdmap import placement_seeds as placement_seeds
    from stripesim.models.placement.osdmap import stable_mod as stable_mod

_HOME = {
    "NONE": "crush.map",
    "Bucket": "crush.map",
    "CrushMap": "crush.map",
    "CrushMapError": "crush.map",
    "Device": "crush.map",
    "PlacementError": "crush.map",
    "Reweights": "crush.map",
    "Rule": "crush.map",
    "Step": "crush.map",
    "StepOp": "crush.map",
    "Tunables": "crush.map",
    "object_hash": "osdmap",
    "pg_mappings": "osdmap",
    "pg_of_object": "osdmap",
    "pgs_of_objects": "osdmap",
    "placement_seed": "osdmap",
    "placement_seeds": "osdmap",
    "stable_mod": "osdmap",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME)
