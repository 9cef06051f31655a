"""Collect the data of a run's report: rows, capacity and rebuilds."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stripesim.scenarios.answers.run.answer import ScenarioResult
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.forms.capacity import (
    Capacity,
    Drives,
    Wear,
    capacity_of,
    drives_of,
    wear_of,
)
from stripesim.scenarios.forms.rebuild import Rebuild, idle_rebuild, measured_rebuild
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.tables import TableCell
from stripesim.sim.observe.progress import OnStep, silent

#: Op and pattern of requests.
Kind = tuple[str, str]
#: Cells of a row of a table.
Row = list[str | TableCell]


@dataclass(frozen=True)
class RunReport:
    """A run with its capacities and rebuilds by scheme."""

    scenario: Scenario
    result: ScenarioResult
    drives: Drives
    capacities: dict[str, Capacity]  # by scheme
    rebuilds: dict[str, Rebuild]  # by scheme: rebuild of one OSD on the idle cluster

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Result rows."""
        return self.result.records

    @property
    def schemes(self) -> tuple[str, ...]:
        """Schemes. The first is the reference for comparisons."""
        return self.scenario.schemes

    def columns(self, first: str) -> list[str]:
        """Return the headings of a table with one column per scheme."""
        return [first, *map(scheme_label, self.schemes)]

    @cached_property
    def kinds(self) -> list[Kind]:
        """Kinds of requests (op and pattern), in the order of the rows."""
        return list(dict.fromkeys((row["op"], row["pattern"]) for row in self.rows))

    def rows_of(self, kind: Kind, scheme: str) -> list[dict[str, Any]]:
        """Return the rows of one kind of request and one scheme, by block size."""
        rows = [
            row
            for row in self.rows
            if (row["op"], row["pattern"], row["scheme"]) == (*kind, scheme)
        ]
        return sorted(rows, key=lambda row: row["block_size_bytes"] or 0)

    def sizes_of(self, kind: Kind) -> list[int]:
        """Return the block sizes of one kind of request [B]."""
        sizes = {
            row["block_size_bytes"]
            for row in self.rows
            if (row["op"], row["pattern"]) == kind
        }
        return sorted(size for size in sizes if size is not None)

    def values(self, kind: Kind, scheme: str, column: str) -> list[float | None]:
        """Return the values of one column, by block size."""
        return [row.get(column) for row in self.rows_of(kind, scheme)]

    def wear(self, kind: Kind, scheme: str) -> list[Wear]:
        """Return the wear by one kind of request, or an empty list without writes."""
        osds = self.capacities[scheme].osds
        wears = [wear_of(row, osds, self.drives) for row in self.rows_of(kind, scheme)]
        return [wear for wear in wears if wear is not None]

    def measured_rebuilds(self, scheme: str) -> list[tuple[dict[str, Any], Rebuild]]:
        """Return the repairs in the scenario, each with its row."""
        rows = self.rows if self.scenario.repair is not None else ()
        mine = [
            row
            for row in rows
            if row["scheme"] == scheme and row.get("repair_objects") is not None
        ]
        return [(row, measured_rebuild(self.scenario, row)) for row in mine]

    @property
    def rebuild_bytes(self) -> float | None:
        """Data on an OSD that is as full as it safely can be [B]."""
        osd_bytes = self.drives.largest_osd_bytes
        fill = self.drives.fill
        if osd_bytes is None or fill is None:
            return None
        return osd_bytes * fill.nearfull_ratio

    def rebuild_seconds(self, scheme: str) -> list[float]:
        """Return the times to rebuild such an OSD [s], under the load of a repair scenario or else idle."""
        held = self.rebuild_bytes
        if held is None:
            return []
        rebuilds = [rebuild for _, rebuild in self.measured_rebuilds(scheme)] or [
            self.rebuilds[scheme]
        ]
        times_s = [rebuild.seconds_for(held) for rebuild in rebuilds]
        return [seconds for seconds in times_s if seconds is not None]


def gather(
    scenario: Scenario,
    result: ScenarioResult,
    *,
    engine: str = "compiled",
    progress: OnStep = silent,
) -> RunReport:
    """Compute capacity and a rebuild for each scheme of a run."""
    models = build_models(scenario)
    drives = drives_of(scenario, models)
    capacities = {}
    rebuilds = {}
    for scheme in scenario.schemes:
        capacities[scheme] = capacity_of(scenario, scheme, models, drives)
        rebuilds[scheme] = idle_rebuild(scenario, scheme, engine=engine).withheld()
        progress(f"rebuild {scheme}")
    return RunReport(scenario, result, drives, capacities, rebuilds)
