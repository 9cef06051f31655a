"""The study's models, from ``parameters.toml``."""

from __future__ import annotations

from functools import cache

from stripesim.scenarios.studies.parameters import ParameterFile
from stripesim.sim.systems.striped_fs.costs import SlaveDiskModel, StripedWriteModel

_FILE = ParameterFile("exstorus2019")


@cache
def write_model() -> StripedWriteModel:
    """The fitted and assumed numbers of a write."""
    return _FILE.model(StripedWriteModel, "write")


@cache
def hdd_model() -> SlaveDiskModel:
    """The disks under the slaves."""
    return _FILE.model(SlaveDiskModel, "hdd")
