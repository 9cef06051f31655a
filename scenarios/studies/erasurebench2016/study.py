"""Run what the claims of Vaucher et al. 2016 need, and judge them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from stripesim.scenarios.studies.base import (
    Ablation,
    Option,
    Setting,
    Study,
    StudyResult,
    Table,
    chosen,
    study_provenance,
)
from stripesim.scenarios.studies.tasks import Call, Row, Task

if TYPE_CHECKING:
    from stripesim.scenarios.figures.results import CaptionedFigure


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
        Option(
            name="experiments",
            flag="--experiment",
            several=True,
            help="Only this experiment; may be repeated. Only replay may be left out.",
        ),
        Option(name="seed", flag="--seed", kind=int, help="Seed of placements, kills and leaving nodes."),
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
        "no-list-copies": Ablation("a file's list of keys is not copied", ("proxy.list_copy_ns_per_byte=0",)),
    }

    def parameters(self) -> list[Row]:
        """List the numbers of the parameter file."""
        from stripesim.scenarios.studies.erasurebench2016.parameters import listed

        return listed()

    def tasks(self, setting: Setting) -> Sequence[Task]:
        """List one task for each experiment."""
        from stripesim.scenarios.studies.erasurebench2016.kernels import measure_here
        from stripesim.scenarios.studies.erasurebench2016.runs import EXPERIMENTS
        from stripesim.scenarios.studies.erasurebench2016.runs import Setting as Runs

        needed = [name for name in EXPERIMENTS if name != "replay"]
        names = chosen("--experiment", setting.options.get("experiments"), EXPERIMENTS, needed)
        runs = Runs(
            engine=setting.engine,
            seed=_seed(setting),
            kernels=measure_here() if setting.options.get("measure") else None,
            data=_data(setting),
        )
        return [Call(name, EXPERIMENTS[name], (runs,)) for name in names]

    def result(self, setting: Setting, tasks: Sequence[Task], rows: Sequence[list[Row]]) -> StudyResult:
        """Judge the claims."""
        from stripesim.scenarios.run.results import rows_frame
        from stripesim.scenarios.studies.erasurebench2016.claims import ledger_for
        from stripesim.scenarios.studies.erasurebench2016.kernels import provenance_here, shipped_provenance

        frame = rows_frame([row for part in rows for row in part])
        return StudyResult(
            ledger=ledger_for(frame, self.parameters()),
            rows=frame,
            provenance=study_provenance(
                self.name,
                setting.engine,
                experiments=[task.words for task in tasks],
                seed=_seed(setting),
                failure_trace=_trace_note(_data(setting)),
                parameters="scenarios/studies/erasurebench2016/parameters.toml",
                kernels=provenance_here() if setting.options.get("measure") else shipped_provenance(),
            ),
        )

    def figures(self, result: StudyResult) -> Mapping[str, CaptionedFigure]:
        """Draw the source's figures beside the simulated rows."""
        from stripesim.scenarios.studies.erasurebench2016.figures import draw

        return draw(result.rows)

    def tables(self, result: StudyResult) -> Mapping[str, Table]:
        """Return the comparison of decoders and of the replays."""
        from stripesim.scenarios.studies.erasurebench2016.tables import tables

        return tables(result.rows)


def _seed(setting: Setting) -> int:
    return int(setting.options.get("seed", 1))


def _data(setting: Setting) -> Path | None:
    """Folder of the project's data: the one given, else ../shared/data if it has the trace."""
    from stripesim.scenarios.studies.erasurebench2016.replay import TRACE

    if (given := setting.options.get("data")) is not None:
        return Path(given)
    folder = Path("../shared/data")
    return folder if (folder / TRACE).is_file() else None


def _trace_note(folder: Path | None) -> str:
    if folder is None:
        return (
            "left out: no --data was given and ../shared/data is not there; the replay follows the points "
            "that the source plots, unchecked against the trace"
        )
    return f"{folder}: websites02, window of Figure 7"


STUDY = Erasurebench2016()
