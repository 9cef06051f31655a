"""Run what the claims of Vaucher et al. 2016 need, and judge them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stripesim.scenarios.studies.base import (
    Ablation,
    Option,
    Setting,
    Study,
    StudyResult,
    experiments_option,
)
from stripesim.scenarios.studies.tasks import Task

if TYPE_CHECKING:
    import polars as pl


class Erasurebench2016(Study):
    """Codes over a key-value store."""

    name = "erasurebench2016"
    summary = "codes over a key-value store whose nodes leave (ErasureBench)"
    title = "ErasureBench (Vaucher et al. 2016): codes over a key-value store"
    introduction = (
        "No code, Reed-Solomon (10,4) and a locally repairable code (10,6,5) over a Redis cluster, "
        "simulated as op graphs of one encoding proxy and its requests. The proxy is fitted to what the"
        " source measured without code, to its encoders' rates and to one duration of Reed-Solomon; all"
        " else is predicted. The traffic of Figures 6 and 7 is labelled MB/s in the source; its own "
        "sums show that it is bytes per sampling interval of 5 s and 20 s, and it is compared as such."
    )
    options = (
        Option(
            name="data",
            flag="--data",
            kind=Path,
            help="Folder with failure-traces/; left out: ../shared/data, or else the figure's points.",
        ),
        Option(
            name="measure",
            flag="--measure",
            kind=bool,
            help="Time this machine's kernels (two minutes) instead of taking the rows that ship.",
        ),
        experiments_option("Only replay may be left out."),
        Option(
            name="seed",
            flag="--seed",
            kind=int,
            help="Seed of placements, kills and leaving nodes.",
        ),
    )
    ablations: ClassVar[Mapping[str, Ablation]] = {
        "free-encoding": Ablation(
            "encoding takes no time",
            (
                "proxy.encode_nc_ns_per_byte=0",
                "proxy.encode_rs_ns_per_byte=0",
                "proxy.encode_lrc_ns_per_byte=0",
            ),
        ),
        "no-list-copies": Ablation(
            "a file's list of keys is not copied", ("proxy.list_copy_ns_per_byte=0",)
        ),
    }

    def provenance(self, setting: Setting, tasks: Sequence[Task]) -> dict[str, Any]:
        """Return experiments and seed, the failure trace, and what measured the kernels."""
        from stripesim.scenarios.studies.erasurebench2016.kernels import provenance
        from stripesim.scenarios.studies.erasurebench2016.runs import (
            data_folder,
            seed_of,
        )

        folder = data_folder(setting)
        return {
            "experiments": [task.words for task in tasks],
            "seed": seed_of(setting),
            "failure_trace": (
                "left out: no --data was given and ../shared/data is not there; the replay follows the "
                "points that the source plots, unchecked against the trace"
                if folder is None
                else f"{folder}: websites02, window of Figure 7"
            ),
            "parameters": "scenarios/studies/erasurebench2016/parameters.toml",
            "kernels": provenance(bool(setting.options.get("measure"))),
        }

    def figure_tables(self, result: StudyResult) -> dict[str, pl.DataFrame]:
        """Return the numbers behind the source's figures."""
        from stripesim.scenarios.studies.erasurebench2016.source import plotted_table

        return {"plotted": plotted_table()}


STUDY = Erasurebench2016()
