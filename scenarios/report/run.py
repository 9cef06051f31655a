"""The report of a run: what a capacity planner needs to compare schemes, on one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stripesim.scenarios.figures.captions import scheme_label
from stripesim.scenarios.planning.capacity import Capacity, Drives, Wear, capacity_of, drives_of, wear_of
from stripesim.scenarios.planning.rebuild import Rebuild, idle_rebuild, measured_rebuild
from stripesim.scenarios.report.figures import draw_panels
from stripesim.scenarios.report.page.render import figure_blocks, render
from stripesim.scenarios.report.words import bytes_text, moment_text, size_text
from stripesim.scenarios.run.build import build_models
from stripesim.scenarios.run.execute import ScenarioResult
from stripesim.scenarios.schema.keys import Scenario

__all__ = ["Kind", "Reported", "report_of_run"]

Kind = tuple[str, str]


@dataclass(frozen=True)
class Reported:
    """A run and what the report works out beside it.

    Parameters
    ----------
    scenario : Scenario
    result : ScenarioResult
    drives : Drives
    capacities : dict of str to Capacity
        Scheme → what the cluster holds.
    rebuilds : dict of str to Rebuild
        Scheme → repair of one OSD on the idle cluster.
    """

    scenario: Scenario
    result: ScenarioResult
    drives: Drives
    capacities: dict[str, Capacity]
    rebuilds: dict[str, Rebuild]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Result rows."""
        return self.result.rows.to_dicts()

    @property
    def schemes(self) -> tuple[str, ...]:
        """Schemes, the first one being what others are compared with."""
        return self.scenario.schemes

    @cached_property
    def kinds(self) -> list[Kind]:
        """Kinds of request: op and pattern, in the order of the rows."""
        return list(dict.fromkeys((row["op"], row["pattern"]) for row in self.rows))

    def rows_of(self, kind: Kind, scheme: str) -> list[dict[str, Any]]:
        """Rows of one kind of request and scheme, in the order of block sizes."""
        found = [row for row in self.rows if (row["op"], row["pattern"], row["scheme"]) == (*kind, scheme)]
        return sorted(found, key=lambda row: row["block_size_bytes"] or 0)

    def sizes_of(self, kind: Kind) -> list[int]:
        """Block sizes of one kind of request [B]."""
        sizes = {row["block_size_bytes"] for row in self.rows if (row["op"], row["pattern"]) == kind}
        return sorted(size for size in sizes if size is not None)

    def values(self, kind: Kind, scheme: str, column: str) -> list[float | None]:
        """Values of one column, in the order of block sizes."""
        return [row.get(column) for row in self.rows_of(kind, scheme)]

    def wear(self, kind: Kind, scheme: str) -> list[Wear]:
        """Wear of one kind of request; empty where it writes nothing."""
        osds = self.capacities[scheme].osds
        found = [wear_of(row, osds, self.drives) for row in self.rows_of(kind, scheme)]
        return [wear for wear in found if wear is not None]

    def measured_rebuilds(self, scheme: str) -> list[tuple[dict[str, Any], Rebuild]]:
        """Repairs that the scenario itself asked for, each with the row it was simulated in."""
        if self.scenario.repair is None:
            return []
        mine = [row for row in self.rows if row["scheme"] == scheme]
        return [
            (row, measured_rebuild(self.scenario, row))
            for row in mine
            if row.get("repair_objects") is not None
        ]

    @property
    def rebuild_bytes(self) -> float | None:
        """What an OSD holds that is as full as it should ever be [B]."""
        osd_bytes, fill = self.drives.osd_bytes, self.drives.fill
        return None if osd_bytes is None or fill is None else osd_bytes * fill.nearfull_ratio

    def repair_seconds(self, scheme: str) -> list[float]:
        """Times to rebuild such an OSD [s]: under the scenario's load where it repairs, else idle."""
        held = self.rebuild_bytes
        if held is None:
            return []
        told = [rebuild for _, rebuild in self.measured_rebuilds(scheme)] or [self.rebuilds[scheme]]
        found = [rebuild.seconds_for(held) for rebuild in told]
        return [seconds for seconds in found if seconds is not None]


def gather(
    scenario: Scenario,
    result: ScenarioResult,
    *,
    engine: str = "compiled",
    progress: Callable[[str], None] | None = None,
) -> Reported:
    """Work out what the report of a run needs beside its rows: capacity, and a repair for each scheme."""
    models = build_models(scenario)
    drives = drives_of(scenario, models)
    capacities, rebuilds = {}, {}
    for scheme in scenario.schemes:
        capacities[scheme] = capacity_of(scenario, scheme, models, drives)
        rebuilds[scheme] = idle_rebuild(scenario, scheme, engine=engine)
        if progress is not None:
            progress(f"repair {scheme}")
    return Reported(scenario, result, drives, capacities, rebuilds)


def report_of_run(
    scenario: Scenario,
    result: ScenarioResult,
    *,
    engine: str = "compiled",
    progress: Callable[[str], None] | None = None,
) -> str:
    """Write the report of a run.

    Parameters
    ----------
    scenario : Scenario
    result : ScenarioResult
        Of that scenario.
    engine : str
        On which the repair of one OSD is simulated.
    progress : callable, optional
        Called with a few words after each scheme's repair.

    Returns
    -------
    str
        An HTML page that loads and links nothing outside itself.
    """
    from stripesim.scenarios.report import tables
    from stripesim.scenarios.report.findings import findings
    from stripesim.scenarios.report.run_extra import sections
    from stripesim.scenarios.report.storage import storage_notes, storage_tables
    from stripesim.scenarios.report.study import parameter_table, pretty

    told = gather(scenario, result, engine=engine, progress=progress)
    extra = sections(told)
    figures = figure_blocks(draw_panels(result.rows))
    return render(
        "run.html.j2",
        kind="What-if report",
        title=scenario.name,
        introduction=scenario.description or f"{_listed(scenario.schemes)}, compared.",
        meta=[_cluster_words(told), _load_words(scenario), _meta(told)],
        findings=findings(told),
        warnings=[*result.warnings, *result.holes],
        inside=(
            f"Every key of this scenario that the parameter set {scenario.cluster.parameters} speaks of lies "
            "inside what it was calibrated or checked on."
        ),
        contents=_contents([(one.anchor, one.heading) for one in extra], bool(figures)),
        comparison=tables.comparison(told),
        comparison_notes=tables.comparison_notes(told),
        bottlenecks=tables.bottlenecks(told),
        utilisation=tables.utilisation(told),
        extra=extra,
        figures=figures,
        storage=storage_tables(told),
        storage_notes=storage_notes(told),
        results=tables.results(told),
        scenario=tables.scenario(scenario),
        parameter_summary=_parameter_summary(result.parameters),
        parameters=parameter_table(result.parameters),
        provenance=pretty({k: v for k, v in result.provenance.items() if k != "configuration"}),
    )


def _listed(schemes: Sequence[str]) -> str:
    return ", ".join(map(scheme_label, schemes))


def _meta(told: Reported) -> str:
    source = told.result.provenance
    return (
        f"stripesim {source['stripesim']} · {moment_text(source['time'])} · seed {source['seed']} · "
        f"Ceph generation {source['generation']} · parameter set {source['parameters']}"
    )


def _cluster_words(told: Reported) -> str:
    """The cluster in one line."""
    cluster, drives = told.scenario.cluster, told.drives
    held = "" if drives.capacity is None else f" of {bytes_text(drives.capacity.drive_bytes)}"
    drive_words = f"{drives.per_osd} drive{'' if drives.per_osd == 1 else 's'}{held}"
    hosts = (
        f"CRUSH map {cluster.crush_map}"
        if cluster.crush_map is not None
        else f"{cluster.hosts} hosts with {cluster.osds_per_host} OSDs each"
    )
    return (
        f"Cluster: {hosts}, {drive_words} to an OSD, {cluster.cores_per_host} cores to a host, networks of "
        f"{cluster.public_gbit_per_s:g} (public) and {cluster.private_gbit_per_s:g} Gbit/s (private)."
    )


def _load_words(scenario: Scenario) -> str:
    """The load in one line."""
    load = scenario.workload
    words = {
        "closed": f"{load.queue_depth} requests always in flight",
        "open": f"{load.rate_per_s or 0:g} requests a second, by chance",
        "trace": f"the trace {load.trace}",
    }[load.kind]
    losses = "" if scenario.repair is None else f"; OSDs lost and rebuilt: {len(scenario.repair.lost_osds)}"
    if scenario.degraded is not None:
        losses += f"; OSDs down: {len(scenario.degraded.missing_osds)}"
    return f"Load: {words}, {load.image} image of {size_text(load.image_bytes)}{losses}."


def _contents(extra: list[tuple[str, str]], has_figures: bool) -> list[tuple[str, str]]:
    return [
        ("comparison", "Schemes compared"),
        ("bottlenecks", "What holds each scheme back"),
        *extra,
        *([("figures", "Figures")] if has_figures else []),
        ("capacity", "Capacity, repair and wear"),
        ("results", "Every result"),
        ("scenario", "Scenario"),
        ("parameters", "Parameters"),
        ("provenance", "Provenance"),
    ]


def _parameter_summary(parameters: Sequence[dict[str, Any]]) -> str:
    counts: dict[str, int] = {}
    for row in parameters:
        counts[row["provenance"]] = counts.get(row["provenance"], 0) + 1
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda item: -item[1]))
    return f"{len(parameters)} numbers: {told}. An assumed number has no measurement behind it."
