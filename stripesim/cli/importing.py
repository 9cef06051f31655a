"""The commands of `stripesim import`: clusters and workloads that exist."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stripesim.cli.options import JsonOption, ReportOption
from stripesim.cli.output import check_out, console, list_written, table, write_json, write_page

import_app = typer.Typer(
    help="Read a cluster that exists, or a workload that was measured.", no_args_is_help=True
)


@import_app.command("ceph-report")
def ceph_report(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="JSON of `ceph report`; or of `ceph osd dump` and `ceph osd crush dump` together, and of "
            "`osd metadata`, `osd df tree`, `osd tree`, `pg dump` as you have them."
        ),
    ],
    pools: Annotated[
        list[str] | None,
        typer.Option("--pool", help="Pool to make a scenario of; may be repeated. Left out: the largest."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Scenario to write; its CRUSH map is written beside it.")
    ] = None,
    report: ReportOption = False,
    json_to: JsonOption = None,
) -> None:
    """Read a Ceph cluster: placement groups of each OSD, capacity, and a scenario that runs."""
    check_out(out and out.parent, report=report)
    from stripesim.scenarios.importing.cluster import import_cluster
    from stripesim.scenarios.importing.scenario import answer, write_scenario

    document, found = answer(import_cluster(files), pools or [], path=out or Path("scenario.toml"))
    written = (
        [] if out is None else [made for path, one in found.items() for made in write_scenario(one, path)]
    )
    if out is not None and report:
        from stripesim.scenarios.report.cluster import report_of_cluster

        written += write_page(out.parent, report_of_cluster(document))
    if not write_json(json_to, document):
        _print_cluster(document)
    for warning in document["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    list_written(written)


def _print_cluster(document: dict[str, Any]) -> None:
    """Print the tables of the page, without their notes; of domains those that do not heal."""
    from stripesim.scenarios.report.cluster import sections_of
    from stripesim.scenarios.schema.units import bytes_text

    for section in sections_of(document)[:3]:
        for shown in section.tables:
            texts = [[cell.text for cell in row] for row in shown.body]
            numbers = set(range(1, len(shown.columns))) - set(shown.words)
            console().print(table(shown.columns, texts, numbers=numbers, title=shown.caption))
    domains = document["capacity"]["domains"]
    stuck = [row for row in domains if not row["heals"]]
    print(f"Room to heal: {len(domains) - len(stuck)} of {len(domains)} failure domains")
    for row in stuck[:8]:
        held, room = bytes_text(row["held_bytes"]), bytes_text(row["room_bytes"])
        why = row["reason"] or f"holds {held}, the others have room for {room}"
        print(f"  {row['domain']} ({row['class']}): {why}")
    counts = document["pgs_by_osd"]
    if counts and "reported_acting_pgs" in counts[0]:
        equal = sum(
            all(row[key] == row[f"reported_{key}"] for key in ("acting_pgs", "primary_pgs")) for row in counts
        )
        print(f"Placement groups: as the cluster counts them on {equal} of {len(counts)} OSDs")
    for line in document["hardware"]:
        print(line)


@import_app.command()
def fio(
    file: Annotated[Path, typer.Argument(help="Output of `fio --output-format=json`.")],
    json_to: JsonOption = None,
) -> None:
    """Read a workload that fio ran, with what it measured."""
    from stripesim.scenarios.importing.workload import import_fio

    _show_workloads(import_fio(file), json_to)


@import_app.command()
def cbt(
    folder: Annotated[Path, typer.Argument(help="Result folder of CBT.")], json_to: JsonOption = None
) -> None:
    """Read the workloads that CBT ran, with what fio measured."""
    from stripesim.scenarios.importing.workload import import_cbt

    _show_workloads(import_cbt(folder), json_to)


def _show_workloads(rows: list[dict[str, Any]], json_to: str | None) -> None:
    if write_json(json_to, {"workloads": rows}):
        return
    for row in rows:
        measured = row["measured"]
        line = f"# {row.get('file', row['job'])}: {row['op']}, measured {measured['iops']:.0f} requests/s"
        for name in ("mean", "p99"):
            latency_ns = measured[f"latency_{name}_ns"]
            line += "" if latency_ns is None else f", {name} {latency_ns / 1e6:.3f} ms"
        print(line, "[workload]", sep="\n")
        for key, value in row["workload"].items():
            print(f"{key} = {value!r}".replace("'", '"'))
