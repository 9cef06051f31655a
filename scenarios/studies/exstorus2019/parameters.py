"""The study's system: models from ``parameters.toml``, kernel ratios as measured, and the source's set-up."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

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
"""Section 2.3, in the order of its figures; AVX2:CRS is the one the tables were measured with."""


@cache
def write_model() -> StripedWriteModel:
    """The fitted and assumed numbers of a write."""
    return _FILE.model(StripedWriteModel, "write")


@cache
def hdd_model() -> SlaveDiskModel:
    """The disks under the slaves."""
    return _FILE.model(SlaveDiskModel, "hdd")


@cache
def kernel_ratios() -> dict[str, Any]:
    """Time of each code's kernel over that of AVX2:CRS, and what measured it."""
    folder = files("stripesim.scenarios.studies.exstorus2019")
    document: dict[str, Any] = json.loads(
        (folder / "kernel_ratios.json").read_text("utf-8")
    )
    return document


@cache
def kernel_factors() -> dict[str, float]:
    """Time of each code's kernel over that of AVX2:CRS; 0 for no encoding."""
    ratio = kernel_ratios()["ratio"]
    coded = {
        code: changed_number(f"kernel_factor.{code}", float(ratio[code]))
        for code in CODES[1:]
    }
    return {"NONE": 0.0} | coded


def listed() -> list[dict[str, Any]]:
    """Every number of the study with its provenance: models and kernel ratios."""
    measured = {
        "unit": "1",
        "provenance": "measured",
        "source": "python -m stripesim.calibration.kernels.software; see kernel_ratios.json",
        "confidence_interval": None,
    }
    return [
        *write_model().parameters("write."),
        *hdd_model().parameters("hdd."),
        *(
            {
                "name": f"kernel_factor.{code}",
                "value": kernel_factors()[code],
                **measured,
            }
            for code in CODES[1:]
        ),
    ]


def system_at(
    gbit_per_s: float, model: StripedWriteModel, *, geometry: VolumeGeometry = GEOMETRY
) -> StripedSystem:
    """The source's six data servers and one client on a network of some rate."""
    return StripedSystem(
        model=model,
        geometry=geometry,
        network_bits_per_s=gbit_per_s * 1e9,
        servers=max(6, geometry.width),
    )
