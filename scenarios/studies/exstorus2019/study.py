"""Run the writes that the claims of Kim et al. 2019 need, and further ones, and judge the claims."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from stripesim.scenarios.studies.base import Setting, Study, StudyResult
from stripesim.scenarios.studies.claim_rules import public_methods
from stripesim.scenarios.studies.exstorus2019 import runs
from stripesim.scenarios.studies.exstorus2019.parameters import (
    CODES,
    hdd_model,
    kernel_factors,
    kernel_ratios,
    write_model,
)
from stripesim.scenarios.studies.exstorus2019.source import SMALL_BYTES, entry_table
from stripesim.scenarios.studies.exstorus2019.write_numbers import WriteNumbers
from stripesim.scenarios.studies.tasks import Row, Task
from stripesim.sim.systems.striped_fs.write import STEP_NAMES


class Exstorus2019(Study):
    """The write of one record through a striped file system, step by step."""

    name = "exstorus2019"
    experiments = {  # noqa: RUF012
        "steps": runs.step_rows,
        "codes": runs.code_rows,
        "layout": runs.layout_rows,
        "short records": runs.short_rows,
        "disks": runs.disk_rows,
        "geometry": runs.geometry_rows,
        "scale": runs.scale_rows,
    }
    needed = ("steps", "codes")

    def parameters(self) -> list[Row]:
        """List models and kernel ratios."""
        measured = {
            "unit": "1",
            "provenance": "measured",
            "source": "python -m stripesim.calibration.kernels.software; see kernel_ratios.json",
            "confidence_interval": None,
        }
        factors = kernel_factors()
        return [
            *write_model().parameters("write."),
            *hdd_model().parameters("hdd."),
            *(
                {"name": f"kernel_factor.{code}", "value": factors[code], **measured}
                for code in CODES[1:]
            ),
        ]

    def vocabulary(self, rows: pl.DataFrame) -> Mapping[str, Any]:
        """Return the names that expressions know."""
        return {
            "CODED": CODES[1:],
            "SMALL_BYTES": SMALL_BYTES,
            **public_methods(WriteNumbers(rows)),
        }

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return the experiments, and what measured the ratios between the kernels."""
        return {
            "experiments": [task.words for task in tasks],
            "parameters": "scenarios/studies/exstorus2019/parameters.toml",
            "kernel_ratios": kernel_ratios()["provenance"],
        }

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return the times of steps, and the entries of the source's Tables 1 to 3."""
        return {"steps": step_table(result.rows), "table_entries": entry_table()}


STUDY = Exstorus2019()


def step_table(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the times of a record's steps, one row per step, rate and record size."""
    names = {**STEP_NAMES, "total": "sum of all"}
    mine = rows.filter(pl.col("experiment") == "steps")
    parts = [
        mine.select(
            pl.lit(name).alias("step"),
            gbit_per_s="network_gbit_per_s",
            record_bytes="block_size_bytes",
            time_ns=f"{step}_ns",
            low_ns=f"{step}_low_ns",
            high_ns=f"{step}_high_ns",
        )
        for step, name in names.items()
        if f"{step}_ns" in rows.columns
    ]
    return pl.concat(parts) if parts else pl.DataFrame()
