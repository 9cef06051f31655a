"""The answer of `stripesim sweep`: rows and means, what failed, JSON, files and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stripesim._version import __version__
from stripesim.models.documents import json_text
from stripesim.scenarios.answers.sweep.ended import INTERRUPTED
from stripesim.scenarios.answers.sweep.plan import SweepPlan
from stripesim.scenarios.answers.sweep.stats import (
    CELL_COLUMNS,
    mean_columns,
    why_no_figure,
)
from stripesim.scenarios.answers.sweep.table import for_terminal, means_table
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.files import csv_text, result_files
from stripesim.scenarios.show.quantities import QUANTITIES, Rows, kinds_of, typed_frame

if TYPE_CHECKING:
    import polars as pl

    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

#: Exit status of a sweep that the user interrupted.
_STATUS_INTERRUPTED: Final = 130


@dataclass(kw_only=True, repr=False, eq=False)
class SweepResult(Answer):
    """The results of a sweep, complete or interrupted.

    `records` has one row per completed task, in the order of the plan, and `rows` is its data frame.
    `refusals` names the point and cell of each row that the audit refuses.
    """

    plan: SweepPlan  #: The tasks
    records: Rows  #: The rows as mappings
    means: Rows  #: Means and intervals over replications, see `stripesim.scenarios.answers.sweep.stats`
    #: Tasks that failed: coordinates and ``reason``
    failed: list[dict[str, Any]]
    damaged: int  #: Damaged files of rows on disk; their tasks ran again
    kept_none: bool  #: True if all rows on disk are of other cells or versions
    stopped: str | None  #: Reason why the sweep ended early
    provenance: dict[str, Any]
    #: Steps of a swept key that add hardware or requests in flight, and at which the rate falls
    falls: list[str] = field(default_factory=list)
    #: What rows assume or leave out, each once
    of_rows: list[str] = field(default_factory=list)
    metric: str = "throughput_bytes_per_s"  #: Column that the figure shows
    #: True if the numbers of refused rows are shown all the same
    unchecked: bool = False
    #: Folder of the stored rows, from which the sweep can continue
    folder: Path | None = None

    @property
    def refused(self) -> int:
        """Number of rows that the audit refuses."""
        return len(self.refusals)

    @property
    def sentence(self) -> str:
        """Return a line on the number of rows and of failed tasks, and why the sweep stopped."""
        failed = f", {len(self.failed):,} failed" if self.failed else ""
        stopped = f", stopped: {self.stopped}" if self.stopped else ""
        return f"{len(self.records):,} rows{failed}{stopped}"

    @cached_property
    def aggregated(self) -> pl.DataFrame:
        """The means as a data frame."""
        return typed_frame(self.means, mean_columns(self.records, self.plan.keys))

    def __post_init__(self) -> None:
        self.frame = self._frame
        self.warnings = [*map(str, self.outside), *self.of_rows, *self.falls]
        self.document = {
            "rows": self.records,
            "aggregated": self.means,
            "provenance": self.provenance,
            "failed": self.failed,
            "warnings": [*self.warnings, *self.refusals],
        }
        means = means_table(
            self.means, self.plan.keys, of_objects=self.plan.is_of_objects
        )
        self.shown = [for_terminal(means)]
        self.alerts = list(self._alerts())
        self.notes = list(self._notes())
        self.files = self._files
        self.figures = self._figures
        self.status = self._status()

    def _status(self) -> int:
        if self.stopped == INTERRUPTED:
            return _STATUS_INTERRUPTED
        if self.failed or self.stopped:
            return 1
        return 0

    def _frame(self) -> pl.DataFrame:
        names = [*self.plan.keys, "replication", "seed", *QUANTITIES]
        names += self.records[0] if self.records else ()
        return typed_frame(self.records, kinds_of(names))

    def _files(self) -> dict[str, bytes]:
        extra = {
            "aggregated.csv": csv_text(self.aggregated),
            "failed.json": json_text(self.failed),
        }
        return result_files(self.rows, self.provenance, extra)

    def _figures(self) -> dict[str, CaptionedFigure]:
        figure = self.figure
        return {} if figure is None else {"sweep": figure}

    @cached_property
    def figure(self) -> CaptionedFigure | None:
        """The means, or None if they cannot be drawn."""
        # Matplotlib loads here, because many sweeps draw nothing.
        from stripesim.scenarios.answers.sweep.figures import draw_sweep

        return draw_sweep(
            self.aggregated,
            self.plan.keys,
            metric=self.metric,
            of_objects=self.plan.is_of_objects,
        )

    def _alerts(self) -> Iterator[str]:
        """Yield lines about refused, damaged, unsteady, failed and missing rows."""
        done = len(self.records)
        if self.refusals and not self.unchecked:
            yield f"refused: {self.refused} of {done} rows; --unchecked shows their numbers"
        if self.damaged:
            yield (
                f"warning: damaged files of rows in {self.folder}: {self.damaged} set aside, and their cells "
                "simulated again"
            )
        if self.kept_none:
            yield (
                f"warning: no row stored in {self.folder} was used: all are of other cells, or of another "
                f"version than stripesim {__version__}"
            )
        yield from self._unsteady()
        yield from map(_failure, self.failed)
        if self.stopped:
            yield f"stopped: {self.stopped}; {done} of {len(self.plan.tasks)} rows are done"
            if self.folder is not None:
                yield f"repeat the command with --resume to continue from {self.folder}"

    def _notes(self) -> Iterator[str]:
        """Explain why the folder of the rows has no figure."""
        if self.folder is None or not self.means:
            return
        reason = why_no_figure(self.aggregated, self.plan.keys, self.metric)
        if reason is not None:
            yield f"no figure: {reason}"

    def _unsteady(self) -> Iterator[str]:
        """Yield a line about rows without a steady state. The audit gives its own reason for refused rows."""
        unsteady = [
            row for row in self.records if row["refused"] is None and not row["steady"]
        ]
        if not unsteady:
            return
        first = unsteady[0]
        where = [str(first[key]) for key in CELL_COLUMNS if first[key]]
        where += [f"{key}={first[key]}" for key in self.plan.keys]
        yield (
            f"warning: {len(unsteady)} of {len(self.records)} rows did not reach a steady state; "
            f"the first: {' '.join(where)}: {first['unsteady_reason']}"
        )


def _failure(failed: Mapping[str, Any]) -> str:
    where = (
        f"{key}={value}"
        for key, value in failed.items()
        if key not in ("task", "reason")
    )
    return f"failed: {' '.join(where)}: {failed['reason']}"
