"""The study's system: models from ``parameters.toml``, measured kernel ratios, and the source's set-up."""

import json
from functools import cache
from typing import Any

from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.parameters import ParameterFile, changed_number
from stripesim.sim.systems.striped_fs.costs import (
    SlaveDiskModel,
    StripedWriteModel,
    VolumeGeometry,
)
from stripesim.sim.systems.striped_fs.participants import StripedSystem

_FILE = ParameterFile("exstorus2019")

GEOMETRY = VolumeGeometry(k=4, m=2, block_bytes=1024, chunk_bytes=64 << 20)
"""Section 2.3: stripes of 4 + 2 blocks of 1 KiB, chunks of 64 MiB."""
CODES = ("NONE", "AVX2:CRS", "LIB", "CRS", "RS")
"""Section 2.3, in the order of its figures. The tables were measured with AVX2:CRS."""


@cache
def write_model() -> StripedWriteModel:
    """Return the fitted and assumed numbers of a write."""
    return _FILE.model(StripedWriteModel, "write")


@cache
def hdd_model() -> SlaveDiskModel:
    """Return the model of the slaves' disks."""
    return _FILE.model(SlaveDiskModel, "hdd")


@cache
def kernel_ratios() -> dict[str, Any]:
    """Return the time of each code's kernel relative to AVX2:CRS, with provenance."""
    text = (study_folder("exstorus2019") / "kernel_ratios.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def kernel_factors() -> dict[str, float]:
    """Return the time of each code's kernel relative to AVX2:CRS, and 0 without encoding."""
    ratio = kernel_ratios()["ratio"]
    coded = {
        code: changed_number(f"kernel_factor.{code}", float(ratio[code]))
        for code in CODES[1:]
    }
    return {"NONE": 0.0} | coded


def system_at(
    gbit_per_s: float,
    model: StripedWriteModel | None = None,
    *,
    geometry: VolumeGeometry = GEOMETRY,
    **changes: Any,
) -> StripedSystem:
    """Return the source's six data servers and one client on a network of this rate [Gb/s], with changes."""
    values = {"servers": max(6, geometry.width), **changes}
    return StripedSystem(
        model=model or write_model(),
        geometry=geometry,
        network_bits_per_s=gbit_per_s * 1e9,
        **values,
    )
