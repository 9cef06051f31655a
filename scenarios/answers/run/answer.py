"""The answer of `stripesim run`: rows and what describes them, tables, sentences, files and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from stripesim.models.documents import json_text
from stripesim.scenarios.answers.run.buying_curves import buying_sentences
from stripesim.scenarios.answers.run.collect import Rows
from stripesim.scenarios.answers.run.cost_table import cost_parts
from stripesim.scenarios.answers.run.tables import (
    advice_table,
    capacity_table,
    processor_parts,
    purchases_table,
    timeline_table,
)
from stripesim.scenarios.answers.run.words import sentences_of_run
from stripesim.scenarios.cells.notes import load_sentences
from stripesim.scenarios.schema.units import counted_text
from stripesim.scenarios.show.answer import NOTEBOOK_ROWS_MAX, Answer, left_out_html
from stripesim.scenarios.show.files import result_files
from stripesim.scenarios.show.quantities import rows_frame
from stripesim.scenarios.show.result_table import html_table, result_table
from stripesim.scenarios.show.tables import Table, TerminalPart

if TYPE_CHECKING:
    import polars as pl

    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

#: Width of the table of rows in a pipe or file [characters].
_ROWS_WIDTH: Final = 100
#: Exit status of a run that the user interrupted.
_INTERRUPTED: Final = 130


@dataclass(kw_only=True, repr=False, eq=False)
class ScenarioResult(Answer):
    """The results of a scenario.

    `rows` has one row per cell and workload, with the columns of
    `stripesim.sim.observe.result_row.ResultRow`.
    """

    records: Rows  #: The rows as mappings
    provenance: dict[str, Any]
    completions_sha256: str  #: Fingerprint of all completion times of all cells
    requests: int  #: Requests completed
    uses: int  #: Uses of resources completed
    engine_wall_s: float  #: Wall-clock time inside the engine [s]
    parameters: Rows  #: Every parameter with its provenance
    #: Utilisation and waiting of each class of resources, by cell
    resources: Rows
    #: Timelines of runs under faults, by cell; see
    #: `stripesim.sim.ceph.failures.results.describe.describe_faults`
    timelines: Rows = field(default_factory=list)
    #: Warnings of holes in placement groups, of capacity, of codes never timed, and of reads of nothing
    holes: tuple[str, ...] = ()
    #: True if a KeyboardInterrupt ended the run; rows then cover the cells that were complete
    stopped: bool = False
    #: True if the numbers of refused rows are shown all the same
    unchecked: bool = False
    #: Resources near their limit, by row; None where the audit refuses it
    limits: tuple[tuple[dict[str, Any], ...] | None, ...] = ()
    #: Gains of purchases, if advice was requested; see `stripesim.scenarios.answers.run.advise.Gain`
    advice: Rows = field(default_factory=list)
    #: Steps of purchases, if advice was requested; see
    #: `stripesim.scenarios.answers.run.buying_curves.BuyingPoint`
    purchases: Rows = field(default_factory=list)
    #: Use of processors, by cell; see `stripesim.sim.observe.processors.processor_use`
    processors: Rows = field(default_factory=list)
    #: Distribution of latencies, by cell: ``fractions`` of requests and the ``latency_ns`` of each
    latencies: Rows = field(default_factory=list)
    #: Usable capacity for the objects of buckets, by scheme; empty for images
    capacities: Rows = field(default_factory=list)
    shows_costs: bool = False  #: True to show the latency by step
    metric: str = "throughput_bytes_per_s"  #: Column that the headline figure shows
    #: Rate at which to show the use of processors, and the busy cores [1/s]. None shows none.
    cores_at_iops: float | None = None

    @property
    def accepted_rows(self) -> pl.DataFrame:
        """The rows with numbers, for figures."""
        if self.unchecked or not self.refusals:
            return self.rows
        return self.rows.filter(self.rows["refused"].is_null())

    @property
    def is_of_objects(self) -> bool:
        """True if requests are for objects in buckets."""
        return bool(self.capacities)

    @property
    def sentence(self) -> str:
        """The scenario, and how much of it was simulated."""
        rows = counted_text(len(self.records), "row")
        return f"{self.provenance['scenario']}, {rows}, {self.requests:,} requests"

    def html_table(self) -> str:
        """Return the first 20 rows as HTML."""
        left_out = len(self.records) - NOTEBOOK_ROWS_MAX
        rows = self.records[:NOTEBOOK_ROWS_MAX]
        table = html_table(rows, of_objects=self.is_of_objects)
        return table + left_out_html(left_out)

    def __post_init__(self) -> None:
        self.frame = partial(rows_frame, self.records)
        document: dict[str, Any] = {
            "provenance": self.provenance,
            "rows": [
                {**row, "limits": near}
                for row, near in zip(self.records, self.limits, strict=True)
            ],
            "completions_sha256": self.completions_sha256,
            "requests": self.requests,
            "uses": self.uses,
            "engine_wall_s": self.engine_wall_s,
            "warnings": [*map(str, self.outside), *self.holes, *self.refusals],
            "resources": self.resources,
            "processors": self.processors,
            "latencies": self.latencies,
            "sentences": load_sentences(self.records),
        }
        if self.stopped:
            document["stopped"] = "interrupted"
            self.alerts = ["stopped: results cover the finished cells only"]
            self.status = _INTERRUPTED
        where_known = {
            "advice": self.advice,
            "purchases": self.purchases,
            "timeline": self.timelines,
            "capacity": self.capacities,
        }
        document |= {key: value for key, value in where_known.items() if value}
        self.document = document
        self.shown = list(self._parts())
        self.warnings = [*map(str, self.outside), *self.holes]
        self.files = self._files
        self.figures = self._figures

    def _parts(self) -> Iterator[str | Table | TerminalPart]:
        """Yield what to buy first, the tables, and then the other sentences."""
        yield from buying_sentences(self.purchases)
        table = partial(result_table, self.records, of_objects=self.is_of_objects)
        yield TerminalPart(table, file_width=_ROWS_WIDTH)
        if self.shows_costs:
            yield from cost_parts(self.records)
        if self.advice:
            yield advice_table(self.advice)
        if self.purchases:
            yield purchases_table(self.purchases)
        yield from (
            timeline_table(timeline)
            for timeline in self.timelines
            if timeline["events"]
        )
        if self.capacities:
            yield capacity_table(self.capacities)
        yield from sentences_of_run(self.records)
        if self.cores_at_iops is not None:
            yield from processor_parts(self.processors, self.cores_at_iops)

    def _files(self) -> Mapping[str, bytes]:
        extra = {"parameters.json": json_text(self.parameters)}
        if self.timelines:
            extra["timeline.json"] = json_text(self.timelines, indent=None)
        return result_files(self.rows, self.provenance, extra)

    def _figures(self) -> Mapping[str, CaptionedFigure]:
        # Matplotlib takes longer to load than a short run.
        from stripesim.scenarios.answers.run.purchases_figure import draw_purchases
        from stripesim.scenarios.show.figures.costs import draw_costs
        from stripesim.scenarios.show.figures.faults import draw_timelines
        from stripesim.scenarios.show.figures.latencies import draw_latencies
        from stripesim.scenarios.show.figures.results import draw_all

        return {
            **draw_all(self.accepted_rows, metric=self.metric),
            **draw_costs(self.accepted_rows),
            **draw_latencies(self.latencies),
            **draw_timelines(self.timelines),
            **draw_purchases(self.purchases),
        }
