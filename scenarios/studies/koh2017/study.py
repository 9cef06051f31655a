"""Run what the claims of Koh et al. 2017 need, and judge them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stripesim.scenarios.studies.base import StudyResult
from stripesim.scenarios.studies.koh2017 import ablations as what_if
from stripesim.scenarios.studies.koh2017 import heartbeats
from stripesim.scenarios.studies.koh2017.claims import ledger_for, required_cells
from stripesim.scenarios.studies.koh2017.figures import FIGURES, PAPER_FIGURES, PRISTINE_DURATION_S
from stripesim.scenarios.studies.koh2017.series import BLOCK_BYTES, RUNS
from stripesim.scenarios.studies.koh2017.tasks import Task, run_tasks, scenario_for

if TYPE_CHECKING:
    import polars as pl

RUN_LENGTH = {
    "name": "study.run_length_s",
    "value": PRISTINE_DURATION_S,
    "unit": "s",
    "provenance": "fitted",
    "source": "koh2017-103, private traffic of RS(6,3) over 3-replication for random writes; not stated",
    "confidence_interval": None,
}

# Two whole intervals: every pair pings twice, whatever its moment.
_HEARTBEAT_S = 12.0


@dataclass(frozen=True, kw_only=True)
class KohResult(StudyResult):
    """What the study gives: a row of ``rows`` is a cell, and there is more.

    Parameters
    ----------
    series : polars.DataFrame
        One row per second of each run whose course in time was kept; empty if none was asked for.
    ablations : polars.DataFrame
        One row per cell and ablation; empty if none was asked for.
    """

    series: pl.DataFrame
    ablations: pl.DataFrame

    def to_json(self) -> dict[str, Any]:
        """Return the ledger's document with the ablations."""
        return {**super().to_json(), "ablations": self.ablations.to_dicts()}

    def terminal_tables(self) -> list[tuple[Sequence[str], Sequence[Sequence[str]]]]:
        """Return the ablations, if some were run."""
        from stripesim.scenarios.studies.koh2017.report import ablation_table

        return [ablation_table(self)] if self.ablations.height else []


def save_study_figures(result: KohResult, out: Path) -> list[Path]:
    """Draw and write the study's figures and its report; return the files."""
    from stripesim.scenarios.figures.results import save_figures
    from stripesim.scenarios.run.results import write_files
    from stripesim.scenarios.studies.koh2017.draw import draw
    from stripesim.scenarios.studies.koh2017.report import report

    figures = draw(result)
    written = save_figures(figures, out)
    tables = {"report.html": report(result, figures).encode()}
    if result.series.width:
        tables["series.csv"] = result.series.write_csv().encode()
    if result.ablations.width:
        tables["ablations.csv"] = result.ablations.write_csv().encode()
    return [*written, *write_files(out, tables)]


def tasks_for(
    *, figures: Sequence[str] | None = None, ablations: Sequence[str] | None = None, engine: str = "compiled"
) -> list[Task]:
    """List the simulations of a study.

    Parameters
    ----------
    figures : sequence of str, optional
        Numbers of the paper's figures, or ``all``; left out: all, or none if ablations are named.
    ablations : sequence of str, optional
        Names from `stripesim.scenarios.studies.koh2017.ablations.ABLATIONS`, or ``all``; left out: none.
    engine : str

    Raises
    ------
    ValueError
        If there is no such figure or ablation.
    """
    wanted = _figures(figures, bool(ablations))
    kinds = {FIGURES[entry] for number in wanted for entry in PAPER_FIGURES[number]}
    tasks = []
    for scheme, op, pattern, image, size_bytes in required_cells():
        bare = scheme == "none"
        if bare and "18" not in wanted:
            continue
        if not bare and (op, pattern, image) not in {(k.op, k.pattern, k.image) for k in kinds}:
            continue
        bounded = (op, pattern, image) == ("write", "rand", "pristine")
        tasks.append(
            Task(
                kind="cell", scheme=scheme, op=op, pattern=pattern, image=image, size_bytes=size_bytes,
                duration_s=PRISTINE_DURATION_S if bounded else None, engine=engine,
            )
        )  # fmt: skip
    for name, told in RUNS.items():
        if told.figure in wanted:
            tasks.append(
                Task(
                    kind="series", name=name, scheme=told.scheme, op="write", pattern=told.pattern,
                    image=told.image, size_bytes=BLOCK_BYTES, duration_s=told.duration_s,
                    pause_ns=told.pause_ns, fill=told.fill, engine=engine,
                )
            )  # fmt: skip
    if "17" in wanted:
        tasks.append(
            Task(
                kind="heartbeat", name="heartbeats", scheme="rep:3", op="read", pattern="rand",
                image="prefilled", size_bytes=4096, duration_s=_HEARTBEAT_S, engine=engine,
            )
        )  # fmt: skip
    return [*tasks, *_ablation_tasks(ablations or (), engine)]


def _figures(figures: Sequence[str] | None, ablating: bool) -> set[str]:
    if figures is None:
        return set() if ablating else set(PAPER_FIGURES)
    unknown = [name for name in figures if name not in PAPER_FIGURES and name != what_if.ALL]
    if unknown:
        raise ValueError(
            f"--figure: got {unknown[0]!r}, wanted one of {', '.join([*PAPER_FIGURES, what_if.ALL])}"
        )
    return set(PAPER_FIGURES) if what_if.ALL in figures else set(figures)


def _ablation_tasks(names: Sequence[str], engine: str) -> list[Task]:
    if not names:
        return []
    return [
        Task(
            kind="ablation", name=name, scheme=scheme, op=op, pattern=pattern, image=image,
            size_bytes=size_bytes, engine=engine,
            duration_s=what_if.PRISTINE_DURATION_S if image == "pristine" else None,
        )
        for name in what_if.named(names)
        for scheme in what_if.SCHEMES
        for op, pattern, image in what_if.KINDS
        for size_bytes in what_if.SIZES_BYTES
    ]  # fmt: skip


def run(
    *,
    engine: str = "compiled",
    progress: Callable[[str, int], None] | None = None,
    figures: Sequence[str] | None = None,
    ablations: Sequence[str] | None = None,
    jobs: int | None = None,
) -> KohResult:
    """Run the study.

    Parameters
    ----------
    engine : str
        ``compiled`` or ``simpy``.
    progress : callable, optional
        Called after each simulation with a few words about it and the number of simulations in all.
    figures, ablations : sequence of str, optional
        See `tasks_for`. Claims that need other runs are then not computed, and say so.
    jobs : int, optional
        Worker processes [count]; left out: one for each processor. 1: none, all in this process. The rows
        are the same whatever it is, their wall-clock times apart.

    Raises
    ------
    ValueError
        If there is no such figure or ablation, or a simulation cannot be run.
    """
    from stripesim.scenarios.run.build import build_models
    from stripesim.scenarios.run.execute import parameters_of, provenance_of
    from stripesim.scenarios.run.results import rows_frame
    from stripesim.scenarios.schema.loader import load_scenario
    from stripesim.scenarios.sweep.pool import cores_usable

    tasks = tasks_for(figures=figures, ablations=ablations, engine=engine)
    done = run_tasks(tasks, jobs=cores_usable() if jobs is None else jobs, progress=progress)
    found: dict[str, list[dict[str, Any]]] = {}
    for task, each in zip(tasks, done, strict=True):
        found.setdefault(task.kind, []).extend(each.rows)
    base = load_scenario("koh2017")
    models = build_models(base)
    rows, series = rows_frame(found.get("cell", [])), _frame(found.get("series", []))
    if "image" not in rows.columns:
        rows = rows.with_columns(_text_column("image"))
    pings = found.get("heartbeat")
    parameters = [*parameters_of(models), RUN_LENGTH, *heartbeats.PARAMETERS]
    return KohResult(
        ledger=ledger_for(
            rows,
            parameters,
            series=series if series.width else None,
            heartbeat_bytes_per_s=pings[0]["heartbeat_private_bytes_per_s"] if pings else None,
        ),
        rows=rows,
        series=series,
        ablations=rows_frame(found["ablation"]) if "ablation" in found else _frame([]),
        provenance=provenance_of(base, models, engine),
    )


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    import polars

    return polars.DataFrame(rows, infer_schema_length=None)


def _text_column(name: str) -> pl.Expr:
    import polars

    return polars.lit(None, dtype=polars.String).alias(name)


__all__ = [
    "PRISTINE_DURATION_S",
    "RUN_LENGTH",
    "KohResult",
    "run",
    "save_study_figures",
    "scenario_for",
    "tasks_for",
]
