"""Run the experiments that the claims of Vaucher et al. 2016 need, and judge them."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.studies import kernels
from stripesim.scenarios.studies.base import Setting, Study, StudyResult
from stripesim.scenarios.studies.erasurebench2016 import runs
from stripesim.scenarios.studies.erasurebench2016.experiment_numbers import (
    ExperimentNumbers,
    size_bytes,
)
from stripesim.scenarios.studies.erasurebench2016.sequences import MEGABYTE
from stripesim.scenarios.studies.erasurebench2016.source import STUDY as NAME
from stripesim.scenarios.studies.erasurebench2016.source import plotted_table
from stripesim.scenarios.studies.erasurebench2016.tables import tables
from stripesim.scenarios.studies.tasks import Task


class Erasurebench2016(Study):
    """Codes over a key-value store."""

    name = NAME
    experiments = {  # noqa: RUF012
        "storage": runs.storage_rows,
        "encoders": runs.encoder_rows,
        "availability": runs.availability_rows,
        "latency": runs.latency_rows,
        "throughput": runs.throughput_rows,
        "traffic": runs.traffic_rows,
        "replay": runs.replay_rows,
    }
    needed = tuple(name for name in experiments if name != "replay")

    def vocabulary(self, rows: pl.DataFrame) -> Mapping[str, Any]:
        """Return the names that expressions know."""
        numbers = ExperimentNumbers(rows)
        return {
            "MB": MEGABYTE,
            "size_bytes": size_bytes,
            "number": numbers.number,
            "storage": numbers.storage,
            "slowdown": numbers.slowdown,
        }

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return experiments and seed, the failure trace, and what measured the kernels."""
        folder = runs.data_folder(setting)
        trace = f"{folder}: websites02, window of Figure 7"
        if folder is None:
            trace = (
                "left out: no --data was given and ../shared/data is not there; the replay follows the "
                "points that the source plots, unchecked against the trace"
            )
        return {
            "experiments": [task.words for task in tasks],
            "seed": runs.seed_of(setting),
            "failure_trace": trace,
            "parameters": "scenarios/studies/erasurebench2016/parameters.toml",
            "kernels": kernels.provenance(
                self.name, "kernels", now="measure" in setting.options
            ),
        }

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return the numbers behind the source's figures."""
        return {"plotted": plotted_table()}

    def tables(self, result: StudyResult) -> Sequence[Table]:
        """Return encoders then and now, and decoders compared with the published LRC."""
        return tables(result.rows)


STUDY = Erasurebench2016()
