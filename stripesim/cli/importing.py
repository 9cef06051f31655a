"""The commands of `stripesim import`: clusters and workloads that exist."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stripesim.cli.options import JsonOption
from stripesim.cli.output import console, list_written, write_json

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
        Path | None,
        typer.Option("--out", help="Scenario to write; its CRUSH map is written beside it."),
    ] = None,
    json_to: JsonOption = None,
) -> None:
    """Read a Ceph cluster: placement groups of each OSD, capacity, and a scenario that runs."""
    from stripesim.scenarios.importing.cluster import import_cluster
    from stripesim.scenarios.importing.scenario import answer, write_scenario

    document, found = answer(import_cluster(files), pools or [], path=out or Path("scenario.toml"))
    written = (
        [] if out is None else [made for path, one in found.items() for made in write_scenario(one, path)]
    )
    if not write_json(json_to, document):
        _print_cluster(document)
    for warning in document["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    list_written(written)


def _print_cluster(document: dict[str, Any]) -> None:
    from rich.table import Table

    screen = console()
    pools = Table("pool", "scheme", "groups", "domain", "usable", "safe", "room for", title="Pools")
    for pool, room in zip(document["pools"], document["capacity"]["pools"], strict=True):
        pools.add_row(
            pool["name"],
            pool["scheme"],
            str(pool["pg_num"]),
            f"{pool['failure_domain']} × {room['failure_domains']}",
            _tb(room["usable_bytes_full"]),
            _tb(room["usable_bytes_safe"]),
            _tb(room["more_bytes"]),
        )
    screen.print(pools)
    classes = Table(
        "class", "OSDs", "raw", "in", "fullest", "stranded", "after upmap", title="Device classes"
    )
    for row in document["capacity"]["classes"]:
        now, then = row["now"], row["after_upmap"]
        fullest = "–" if now["fullest_osd"] is None else f"osd.{now['fullest_osd']}, "
        if now["fullest_over_mean"] is not None:
            fullest += f"{now['fullest_over_mean']:.2f} × mean"
        classes.add_row(
            row["class"],
            str(row["osds"]),
            _tb(row["raw_bytes"]),
            _tb(row["in_bytes"]),
            fullest,
            _tb(now["stranded_bytes"]),
            _tb(then["stranded_bytes"]),
        )
    screen.print(classes)
    domains = document["capacity"]["domains"]
    stuck = [row for row in domains if not row["heals"]]
    print(f"Room to heal: {len(domains) - len(stuck)} of {len(domains)} failure domains")
    for row in stuck[:8]:
        why = (
            row["reason"]
            or f"holds {_tb(row['held_bytes'])}, the others have room for {_tb(row['room_bytes'])}"
        )
        print(f"  {row['domain']} ({row['class']}): {why}")
    counts = document["pgs_by_osd"]
    equal = [
        row
        for row in counts
        if row["acting_pgs"] == row.get("reported_acting_pgs", row["acting_pgs"])
        and row["primary_pgs"] == row.get("reported_primary_pgs", row["primary_pgs"])
    ]
    if counts and "reported_acting_pgs" in counts[0]:
        print(f"Placement groups: as the cluster counts them on {len(equal)} of {len(counts)} OSDs")
    for line in document["hardware"]:
        print(line)


def _tb(size: float) -> str:
    return f"{size / 1e12:.3g} TB"


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
    folder: Annotated[Path, typer.Argument(help="Result folder of CBT.")],
    json_to: JsonOption = None,
) -> None:
    """Read the workloads that CBT ran, with what fio measured."""
    from stripesim.scenarios.importing.workload import import_cbt

    _show_workloads(import_cbt(folder), json_to)


def _show_workloads(rows: list[dict[str, Any]], json_to: str | None) -> None:
    if write_json(json_to, {"workloads": rows}):
        return
    for row in rows:
        measured = row["measured"]
        print(
            f"# {row.get('file', row['job'])}: {row['op']}, measured {measured['iops']:.0f} requests/s",
            end="",
        )
        for name in ("mean", "p99"):
            if measured[f"latency_{name}_ns"] is not None:
                print(f", {name} {measured[f'latency_{name}_ns'] / 1e6:.3f} ms", end="")
        print("\n[workload]")
        for key, value in row["workload"].items():
            print(f"{key} = {value!r}".replace("'", '"'))
