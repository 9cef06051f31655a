"""The commands of `stripesim import`, which read existing clusters and measured workloads."""

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from stripesim.cli.options import JsonOption
from stripesim.cli.output import (
    check_out,
    console,
    list_written,
    table,
    warn_outside,
    write_json,
    write_page,
)

#: Longest list of failure domains that cannot heal. The number of others is printed.
_DOMAINS_MAX: Final = 8

import_app = typer.Typer(
    help="Read an existing cluster or a measured workload.",
    no_args_is_help=True,
)


@import_app.command("ceph-report")
def ceph_report(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="JSON output of `ceph report`, or of `ceph osd dump` and `ceph osd crush dump` together. "
            "Further files add detail: `osd metadata`, `osd df tree`, `pg dump`, `df detail`, "
            "`osd pool stats`, `status`."
        ),
    ],
    pools: Annotated[
        list[str] | None,
        typer.Option(
            "--pool",
            help="Pool to write a scenario for. Repeatable. Default: the largest.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Scenario file to write. Its CRUSH map goes into the same folder.",
        ),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Write a scenario for `stripesim plan`, with a [plan] table instead of a CRUSH map.",
        ),
    ] = False,
    grow: Annotated[
        str,
        typer.Option(
            "--grow",
            metavar="hosts=+N",
            help="First add N hosts like those of the pool.",
        ),
    ] = "",
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Also write a self-contained page next to --out, such as mine-report.html for mine.toml.",
        ),
    ] = False,
    json_to: JsonOption = None,
) -> None:
    """Analyse a Ceph cluster: PGs per OSD, capacity, and a scenario ready to run."""
    report_folder = check_out(out and out.parent, report=report)
    from stripesim.scenarios.clusters.cluster import import_cluster
    from stripesim.scenarios.clusters.scenario import write_scenario
    from stripesim.scenarios.clusters.summary import answer

    path = out or Path("scenario.toml")
    # Several imports may share a folder, so the page is named after the scenario.
    page_name = f"{path.stem}-report.html"
    document, scenarios = answer(
        import_cluster(files), pools or [], path=path, plan=plan, grow=grow
    )
    written: list[Path] = []
    if out is not None:
        for file, scenario in scenarios.items():
            written += write_scenario(scenario, file)
    if report_folder is not None:
        from stripesim.scenarios.answers.cluster import report_of_cluster

        page = report_of_cluster(document)
        written += write_page(report_folder, page, name=page_name)
    printed = not write_json(json_to, document)
    if printed:
        _print_cluster(document)
    outside = document["outside_calibrated_range"]
    for warning in document["warnings"]:
        if warning not in outside:
            print(f"warning: {warning}", file=sys.stderr)
    if printed:
        warn_outside(outside, report=report_folder, name=page_name)
    list_written(written)


def _print_cluster(document: dict[str, Any]) -> None:
    """Print the tables of the report without their notes, listing only failure domains that cannot heal."""
    from rich.markup import escape

    from stripesim.scenarios.answers.cluster import sections_of, use_text
    from stripesim.scenarios.schema.units import bytes_text

    for section in sections_of(document)[:3]:
        for shown in section.tables:
            texts = [[cell.text for cell in row] for row in shown.body]
            numbers = set(range(1, len(shown.columns))) - set(shown.words)
            console().print(
                table(
                    shown.columns, texts, numbers=numbers, title=escape(shown.caption)
                )
            )
    for row in document["capacity"]["classes"]:
        print(
            f"In use, {row['class']}: {bytes_text(row['used_bytes'])}: {use_text(row)}"
        )
    domains = document["capacity"]["domains"]
    stuck = [row for row in domains if not row["heals"]]
    print(
        f"Room to heal: {len(domains) - len(stuck)} of {len(domains)} failure domains"
    )
    for row in stuck[:_DOMAINS_MAX]:
        held = bytes_text(row["held_bytes"])
        room = bytes_text(row["room_bytes"])
        why = row["reason"] or f"holds {held}, the other domains have room for {room}"
        print(f"  {row['domain']} ({row['class']}): {why}")
    counts = document["pgs_by_osd"]
    if counts and "reported_acting_pgs" in counts[0]:
        equal = sum(
            all(
                row[key] == row[f"reported_{key}"]
                for key in ("acting_pgs", "primary_pgs")
            )
            for row in counts
        )
        print(
            f"Placement groups: as the cluster counts them on {equal} of {len(counts)} OSDs"
        )
    for line in document["hardware"]:
        print(line)


@import_app.command()
def fio(
    file: Annotated[Path, typer.Argument(help="Output of `fio --output-format=json`.")],
    json_to: JsonOption = None,
) -> None:
    """Convert a workload that fio ran, with its measured results."""
    from stripesim.scenarios.clusters.workload import import_fio

    _show_workloads(import_fio(file), json_to)


@import_app.command()
def cbt(
    folder: Annotated[Path, typer.Argument(help="CBT result folder.")],
    json_to: JsonOption = None,
) -> None:
    """Convert the workloads that CBT ran, with the results that fio measured."""
    from stripesim.scenarios.clusters.workload import import_cbt

    _show_workloads(import_cbt(folder), json_to)


def _show_workloads(rows: list[dict[str, Any]], json_to: str | None) -> None:
    if write_json(json_to, {"workloads": rows}):
        return
    for row in rows:
        measured = row["measured"]
        line = f"# {row.get('file', row['job'])}: {row['op']}, measured {measured['iops']:.0f} requests/s"
        for name in ("mean", "p99"):
            latency_ns = measured[f"latency_{name}_ns"]
            if latency_ns is not None:
                line += f", {name} {latency_ns / 1e6:.3f} ms"
        print(line, "[workload]", sep="\n")
        for key, value in row["workload"].items():
            print(f"{key} = {value!r}".replace("'", '"'))
