"""Write the report of a run: one page that compares schemes for a capacity planner, findings first."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from stripesim.scenarios.answers.load.page import load_section
from stripesim.scenarios.answers.load.results import LoadCurve
from stripesim.scenarios.answers.load.words import outside_of_load, sentence_of
from stripesim.scenarios.answers.run.report import tables
from stripesim.scenarios.answers.run.report.comparison import (
    comparison,
    comparison_notes,
)
from stripesim.scenarios.answers.run.report.contents import Kind, RunReport
from stripesim.scenarios.answers.run.report.sections import sections
from stripesim.scenarios.answers.run.report.storage import storage_notes, storage_tables
from stripesim.scenarios.cells.notes import client_notes, load_sentences
from stripesim.scenarios.schema.keys import WorkloadSpec
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import (
    bytes_text,
    counted_text,
    duration_text,
    number_text,
    size_text,
)
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.latencies import draw_latencies
from stripesim.scenarios.show.figures.results import draw_panels
from stripesim.scenarios.show.page.provenance import parameter_table, provenance_text
from stripesim.scenarios.show.page.render import figure_blocks, render
from stripesim.scenarios.show.words import (
    origin_words,
    request_words,
    span,
    times_in_prose,
)
from stripesim.sim.observe.limits import LATENCY, NO_BOTTLENECK
from stripesim.sim.observe.resource_words import member_words


def page_of_run(report: RunReport, curves: Sequence[LoadCurve] = ()) -> str:
    """Return the page of a run and its rebuilds, with a section for load curves if there are any."""
    scenario = report.scenario
    result = report.result
    extra = sections(report)
    outside = list(map(str, result.outside))
    if curves:
        extra.insert(0, load_section(curves, client_notes(scenario)))
        outside += map(str, outside_of_load(scenario))
    figures = figure_blocks(
        {**draw_panels(result.rows), **draw_latencies(result.latencies)}
    )
    source = result.provenance
    schemes = ", ".join(map(scheme_label, scenario.schemes))
    return render(
        "run.html.j2",
        kind="What-if report",
        title=scenario.title,
        introduction=scenario.introduction or f"{schemes}, compared.",
        meta=[_cluster_words(report), _load_words(scenario), origin_words(source)],
        findings=findings(report),
        sentences=[*load_sentences(report.rows), *map(sentence_of, curves)],
        outside=list(dict.fromkeys(outside)),
        warnings=[*result.holes, *result.refusals],
        inside=(
            f"All keys of this scenario are within the range that the parameter set "
            f"{scenario.cluster.parameters} "
            "was calibrated or checked on."
        ),
        contents=[
            ("comparison", "Schemes compared"),
            ("bottlenecks", "Bottleneck of each scheme"),
            *((one.anchor, one.heading) for one in extra),
            *([("figures", "Figures")] if figures else []),
            ("capacity", "Capacity, rebuild and wear"),
            ("results", "All results"),
            ("scenario", "Scenario"),
            ("parameters", "Parameters"),
            ("provenance", "Provenance"),
        ],
        comparison=comparison(report),
        comparison_notes=comparison_notes(report),
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
        provenance=provenance_text(source),
    )


def _cluster_words(report: RunReport) -> str:
    """Describe the cluster in one line."""
    cluster = report.scenario.cluster
    drives = report.drives
    drive_words = counted_text(drives.per_osd, "drive")
    if drives.capacity is not None:
        drive_words += f" of {bytes_text(drives.capacity.drive_bytes)}"
    hosts = f"{cluster.hosts} hosts with {cluster.osds_per_host} OSDs each"
    if cluster.crush_map is not None:
        hosts = f"CRUSH map {cluster.crush_map}"
    elif not isinstance(cluster.hosts, int):
        hosts = f"{cluster.host_count} hosts with {cluster.osd_count} OSDs"
    networks = (
        f"networks of {cluster.public_gbit_per_s:g} (public) and "
        f"{cluster.private_gbit_per_s:g} Gbit/s (private)"
    )
    if cluster.networks == 1:
        networks = f"one network of {cluster.public_gbit_per_s:g} Gbit/s"
    cores = " or ".join(map(str, dict.fromkeys(cluster.of_hosts("cores"))))
    return (
        f"Cluster: {hosts}, {drive_words} per OSD, {cores} cores per host, {networks}."
    )


def _load_words(scenario: Scenario) -> str:
    """Describe the load in one line."""
    loads_text = "; ".join(_one_load(load) for load in scenario.loads)
    losses = ""
    if scenario.lost_osds:
        losses += f"; OSDs lost and rebuilt: {len(scenario.lost_osds)}"
    if scenario.missing_osds:
        losses += f"; OSDs down: {len(scenario.missing_osds)}"
    return f"Load: {loads_text}{losses}."


def _one_load(load: WorkloadSpec) -> str:
    """Describe one workload in a few words."""
    load_text = f"the trace {load.trace}"
    if load.is_closed:
        load_text = f"{counted_text(load.queue_depth, 'request')} always in flight"
    if load.is_open:
        load_text = f"{number_text(load.rate_per_s)} requests/s, Poisson arrivals"
    if load.is_s3:
        objects = f"{load.objects:,} objects in {load.buckets:,} buckets"
        return f"clients: {load.clients}, {load_text} for each, {objects}"
    image = f"{load.image} image of {size_text(load.image_bytes)}"
    if load.clients == 1:
        return f"{load_text}, {image}"
    per_client = " for each" if load.is_closed else ""
    return f"{load.clients} clients, {load_text}{per_client}, each with a {image}"


def _parameter_summary(parameters: Sequence[dict[str, Any]]) -> str:
    counts = Counter(row["provenance"] for row in parameters).most_common()
    by_kind = ", ".join(f"{count} {kind}" for kind, count in counts)
    return f"{len(parameters)} numbers: {by_kind}. Assumed numbers are not based on measurements."


class Finding(NamedTuple):
    """Sentences about one scheme."""

    heading: str
    sentences: list[str]


def findings(report: RunReport) -> list[Finding]:
    """Compare each scheme with the first, or describe the only one."""
    first, *compared = report.schemes
    name = scheme_label(first)
    comparisons = [
        Finding(
            f"{scheme_label(scheme)} instead of {name}", _against(report, scheme, first)
        )
        for scheme in compared
    ]
    return comparisons or [Finding(name, _alone(report, first))]


def _alone(report: RunReport, scheme: str) -> list[str]:
    sentences = []
    for kind in report.kinds:
        rates, p99s = (
            span(report.values(kind, scheme, column), 1e-6).replace("…", "to")
            for column in ("throughput_bytes_per_s", "latency_p99_ns")
        )
        rate_and_latency = (
            f"{rates} MB/s, 99th percentile of latency {p99s} ms{_over(report)}"
        )
        sentences.append(
            f"{request_words(*kind)}: {rate_and_latency}; {_limited(report, kind, scheme)}."
        )
    return sentences


def _against(report: RunReport, scheme: str, first: str) -> list[str]:
    mine = report.capacities[scheme]
    theirs = report.capacities[first]
    room = theirs.stored_per_client_byte / mine.stored_per_client_byte
    held = ""
    usable = mine.usable_bytes_full
    usable_theirs = theirs.usable_bytes_full
    if usable is not None and usable_theirs is not None:
        held = f" ({bytes_text(usable)} instead of {bytes_text(usable_theirs)})"
        room = usable / usable_theirs
    most = mine.failures_tolerated
    survives = f"the loss of any {counted_text(most, 'shard')}"
    compared = "as before"
    if most != theirs.failures_tolerated:
        compared = f"instead of {theirs.failures_tolerated}"
    room_words = times_in_prose([room], [1.0])
    sentences = [
        f"Storage: {room_words} data on the same drives{held}. Survives {survives}, {compared}."
    ]
    for kind in report.kinds:
        rate, p99 = (
            times_in_prose(
                report.values(kind, scheme, column), report.values(kind, first, column)
            )
            for column in ("throughput_bytes_per_s", "latency_p99_ns")
        )
        if rate:
            latency = f", {p99} 99th percentile of latency" if p99 else ""
            limited = _limited(report, kind, scheme)
            sentences.append(
                f"{request_words(*kind)}: {rate} throughput{latency}{_over(report)}; {limited}."
            )
    rebuild = report.rebuild_seconds(scheme)
    rebuild_first = report.rebuild_seconds(first)
    if rebuild and rebuild_first:
        sentences.append(
            f"Rebuild: a lost OSD takes about {duration_text(max(rebuild))} instead of "
            f"{duration_text(max(rebuild_first))}, detection not included."
        )
    return sentences


def _over(report: RunReport) -> str:
    """Note that figures cover the whole run, if it has phases."""
    if not report.result.timelines:
        return ""
    return " over the whole run, failures and recovery included"


def _limited(report: RunReport, kind: Kind, scheme: str) -> str:
    """Name the limits of a scheme, as in the table of bottlenecks."""
    named = [
        row["bottleneck"] for row in report.rows_of(kind, scheme) if row["bottleneck"]
    ]
    resources = list(
        dict.fromkeys(name for name in named if name not in (LATENCY, NO_BOTTLENECK))
    )
    if not resources:
        return "no resource is near its limit"
    limited = "limited by " + " or ".join(
        f"the {member_words(name)}" for name in resources
    )
    is_always = all(name in resources for name in named)
    return limited if is_always else f"{limited} at some sizes"
