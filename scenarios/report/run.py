"""The report of a run: what a capacity planner needs to compare schemes, on one page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stripesim.scenarios.figures.captions import scheme_label
from stripesim.scenarios.report import tables
from stripesim.scenarios.report.data import RunReport, gather
from stripesim.scenarios.report.figures import draw_panels
from stripesim.scenarios.report.findings import findings
from stripesim.scenarios.report.page.render import figure_blocks, render
from stripesim.scenarios.report.run_extra import sections
from stripesim.scenarios.report.storage import storage_notes, storage_tables
from stripesim.scenarios.report.study import parameter_table, pretty
from stripesim.scenarios.report.words import bytes_text, moment_text, size_text
from stripesim.scenarios.run.execute import ScenarioResult
from stripesim.scenarios.run.sentences import load_sentences
from stripesim.scenarios.schema.keys import Scenario, WorkloadSpec


def report_of_run(
    scenario: Scenario,
    result: ScenarioResult,
    *,
    engine: str = "compiled",
    progress: Callable[[str], None] | None = None,
) -> str:
    """Write the report of a run: an HTML page that loads and links nothing outside itself."""
    report = gather(scenario, result, engine=engine, progress=progress)
    extra = sections(report)
    figures = figure_blocks(draw_panels(result.rows))
    return render(
        "run.html.j2",
        kind="What-if report",
        title=scenario.name,
        introduction=scenario.description or f"{_listed(scenario.schemes)}, compared.",
        meta=[_cluster_words(report), _load_words(scenario), _meta(report)],
        findings=findings(report),
        sentences=load_sentences(report.rows),
        warnings=[*result.warnings, *result.holes],
        inside=(
            f"Every key of this scenario that the parameter set {scenario.cluster.parameters} speaks of lies "
            "inside what it was calibrated or checked on."
        ),
        contents=_contents([(one.anchor, one.heading) for one in extra], bool(figures)),
        comparison=tables.comparison(report),
        comparison_notes=tables.comparison_notes(report),
        bottlenecks=tables.bottlenecks(report),
        utilisation=tables.utilisation(report),
        extra=extra,
        figures=figures,
        storage=storage_tables(report),
        storage_notes=storage_notes(report),
        results=tables.results(report),
        scenario=tables.scenario(scenario),
        parameter_summary=_parameter_summary(result.parameters),
        parameters=parameter_table(result.parameters),
        provenance=pretty({k: v for k, v in result.provenance.items() if k != "configuration"}),
    )


def _listed(schemes: Sequence[str]) -> str:
    return ", ".join(map(scheme_label, schemes))


def _meta(report: RunReport) -> str:
    source = report.result.provenance
    return (
        f"stripesim {source['stripesim']} · {moment_text(source['time'])} · seed {source['seed']} · "
        f"Ceph generation {source['generation']} · parameter set {source['parameters']}"
    )


def _cluster_words(report: RunReport) -> str:
    """The cluster in one line."""
    cluster, drives = report.scenario.cluster, report.drives
    held = "" if drives.capacity is None else f" of {bytes_text(drives.capacity.drive_bytes)}"
    drive_words = f"{drives.per_osd} drive{'' if drives.per_osd == 1 else 's'}{held}"
    hosts = (
        f"CRUSH map {cluster.crush_map}"
        if cluster.crush_map is not None
        else f"{cluster.host_count} hosts with {cluster.osd_count} OSDs in all"
        if not isinstance(cluster.hosts, int)
        else f"{cluster.hosts} hosts with {cluster.osds_per_host} OSDs each"
    )
    return (
        f"Cluster: {hosts}, {drive_words} to an OSD, {cluster.cores_per_host} cores to a host, networks of "
        f"{cluster.public_gbit_per_s:g} (public) and {cluster.private_gbit_per_s:g} Gbit/s (private)."
    )


def _load_words(scenario: Scenario) -> str:
    """The load in one line."""
    words = "; ".join(_one_load(load) for load in scenario.loads)
    losses = "" if scenario.repair is None else f"; OSDs lost and rebuilt: {len(scenario.repair.lost_osds)}"
    if scenario.degraded is not None:
        losses += f"; OSDs down: {len(scenario.degraded.missing_osds)}"
    return f"Load: {words}{losses}."


def _one_load(load: WorkloadSpec) -> str:
    """One workload in a few words."""
    words = {
        "closed": f"{load.queue_depth} requests always in flight",
        "open": f"{load.rate_per_s or 0:g} requests a second, Poisson arrivals",
        "trace": f"the trace {load.trace}",
    }[load.kind]
    image = f"{load.image} image of {size_text(load.image_bytes)}"
    if load.clients == 1:
        return f"{words}, {image}"
    per_client = " for each" if load.kind == "closed" else ""
    return f"{load.clients} clients, {words}{per_client}, each with a {image}"


def _contents(extra: list[tuple[str, str]], has_figures: bool) -> list[tuple[str, str]]:
    return [
        ("comparison", "Schemes compared"),
        ("bottlenecks", "Bottleneck of each scheme"),
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
    by_kind = ", ".join(
        f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda item: -item[1])
    )
    return f"{len(parameters)} numbers: {by_kind}. An assumed number has no measurement behind it."
