"""The measured rows of the study, as a table for figures and with the hardware of its clusters."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from stripesim.calibration.measured.hardware import (
    MeasuredHardware,
    fitted_hardware,
    hardware_of,
)
from stripesim.calibration.measured.rows import MeasuredRow, read_measured
from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.parameters import ParameterFile

#: Hardware that no data sheet tells, fitted by this study.
HARDWARE_FILE = ParameterFile("nvme", "stripesim.calibration.measured", "hardware.toml")


def measured_table(rows: Iterable[MeasuredRow]) -> pl.DataFrame:
    """Return the measured rows as a table for figures."""
    return pl.DataFrame(
        [
            {
                "id": row.id,
                "position": position,
                "cluster": row.cluster,
                "op": row.op,
                "part": row.part,
                "block_bytes": row.block_bytes,
                "label": _label(row),
                "threads_per_osd": row.threads_per_node
                and row.threads_per_node / row.osds_per_node,
                "pg_num": row.pg_num,
                "iops": row.measured.get("iops"),
                "latency_ms": row.measured.get("latency_mean_ms"),
            }
            for position, row in enumerate(rows)
        ],
        schema_overrides={
            "threads_per_osd": pl.Float64,
            "pg_num": pl.Int64,
            "iops": pl.Float64,
            "latency_ms": pl.Float64,
        },
        infer_schema_length=None,
    )


def _label(row: MeasuredRow) -> str:
    """Name a row's scheme, with its release's kind of erasure coding."""
    if row.scheme == "rep:3":
        return row.scheme
    if row.generation == "reef-partial-read":
        return f"partial {row.scheme}"
    return f"fast {row.scheme}" if row.fast_ec else row.scheme


def load(
    data: Path | None = None,
) -> tuple[tuple[MeasuredRow, ...], dict[str, dict[str, Any]]]:
    """Return the rows of a folder of measurements (None: the one that ships) and its tables of clusters.

    The errors are those of `read_measured`.
    """
    return _shipped() if data is None else read_measured(data)


@cache
def _shipped() -> tuple[tuple[MeasuredRow, ...], dict[str, dict[str, Any]]]:
    return read_measured(study_folder("nvme") / "data")


def study_hardware(
    row: MeasuredRow, clusters: Mapping[str, Mapping[str, Any]], file: str
) -> MeasuredHardware:
    """Return the hardware of a row, with the study's changes applied to fitted numbers."""
    return hardware_of(row, clusters, file, fitted_hardware(HARDWARE_FILE.tables()))
