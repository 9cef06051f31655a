"""The answer of `stripesim import ceph-report`: capacity, stranded bytes, room to heal, and all sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stripesim._version import __version__
from stripesim.scenarios.clusters.scenario import ImportedScenario
from stripesim.scenarios.clusters.usage import BASIS_TEXT
from stripesim.scenarios.forms.pg_settings import merged_commands
from stripesim.scenarios.schema.units import bytes_text, counted_text
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.page.render import Section, figure_blocks, render
from stripesim.scenarios.show.tables import Table, TableCell

if TYPE_CHECKING:
    from stripesim.scenarios.clusters.hardware import Derivation
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

#: Maximum number of domains and OSDs to list. The rest is only counted.
_ROWS_MAX: Final = 40
#: Longest list of failure domains that cannot heal. The number of others is printed.
_STUCK_MAX: Final = 8
_IN_USE: Final = "in use"

Row = Mapping[str, Any]


def answer_of_cluster(
    document: Row, scenarios: Mapping[Path, ImportedScenario]
) -> Answer:
    """Return the answer of an imported cluster, about its failures if the document has them.

    Parameters
    ----------
    document
        First part of what `stripesim.scenarios.clusters.summary.describe_cluster` returns.
    scenarios
        Scenarios to write, by file. All files have the same folder.
    """
    first = next(iter(scenarios.values()))
    outside = set(map(str, first.outside))
    return Answer(
        document=document,
        shown=list(_shown(document)),
        outside=first.outside,
        warnings=[line for line in document["warnings"] if line not in outside],
        files=partial(_files, scenarios),
        figures=partial(_figures, document, next(iter(scenarios))),
        page=partial(report_of_cluster, document, first.derivations),
    )


def _files(scenarios: Mapping[Path, ImportedScenario]) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for file, scenario in scenarios.items():
        contents |= scenario.files(file.name)
    return contents


def _figures(document: Row, file: Path) -> Mapping[str, CaptionedFigure]:
    if "failures" not in document:
        return {}
    from stripesim.scenarios.answers.failures.answer import draw_failures

    return {
        f"{file.stem}-{stem}": figure
        for stem, figure in draw_failures(document).items()
    }


def _shown(document: Row) -> Iterator[str | Table]:
    """Yield what the terminal shows: the failures if they were asked for, else the cluster."""
    if "failures" not in document:
        yield _sum_of_cluster(document)
        yield from _sentences(document)
        yield from _printed_tables(document)
        yield from document["hardware"]
        return
    from stripesim.scenarios.answers.failures.answer import (
        sentences_of_failures,
        table_of_failures,
    )

    yield from sentences_of_failures(document)
    yield table_of_failures(document)
    for line in document["before_failure"]["assumptions"]:
        yield f"assumed: {line}"
    for line in document["before_failure"]["notes"]:
        yield f"note: {line}"


def _printed_tables(document: Row) -> Iterator[Table]:
    """Yield the tables of the first sections: the waterfall, pools and balance."""
    capacity = document["capacity"]
    for section in (_waterfall(capacity), _pools(document), _balance(document)):
        for table in section.tables:
            yield replace(table, caption_shown=True)


def _sum_of_cluster(document: Row) -> str:
    """Return one sentence: the cluster's size, and how much more the scenario's pool takes."""
    capacity = document["capacity"]
    raw = bytes_text(sum(row["raw_bytes"] for row in capacity["classes"]))
    osds = document["osds"]
    hosts = {osd["host"] for osd in osds}
    pool = document["scenarios"][0]["pool"]
    room = next(row for row in capacity["pools"] if row["name"] == pool)
    return (
        f"{counted_text(len(osds), 'OSD')} on {counted_text(len(hosts), 'host')}, {raw} raw: pool {pool} "
        f"({scheme_label(room['scheme'])}) holds {bytes_text(room['stored_bytes'])} and takes "
        f"{bytes_text(room['more_bytes'])} more until its first OSD is full"
    )


def _sentences(document: Row) -> Iterator[str]:
    """Yield bytes in use, the failure domains that cannot heal, and how many OSDs agree with Ceph."""
    capacity = document["capacity"]
    for choice in document["placement"]:
        yield f"Placement groups of {choice['sentence']}"
    for line in merged_commands(document["placement"]):
        yield f"  {line}"
    for row in capacity["classes"]:
        used = bytes_text(row["used_bytes"])
        yield f"In use, {row['class']}: {used}: {use_text(row)}"
    domains = capacity["domains"]
    stuck = [row for row in domains if not row["heals"]]
    healing = len(domains) - len(stuck)
    yield f"Room to heal: {healing} of {len(domains)} failure domains"
    for row in stuck[:_STUCK_MAX]:
        held = bytes_text(row["held_bytes"])
        room = bytes_text(row["room_bytes"])
        why = row["reason"] or f"holds {held}, the other domains have room for {room}"
        yield f"  {row['domain']} ({row['class']}): {why}"
    if len(stuck) > _STUCK_MAX:
        yield f"  … {len(stuck) - _STUCK_MAX} more: --out FILE --report, or --json -"
    for line in _unplaced_sentences(document):
        yield f"  {line}"
    counts = document["pgs_by_osd"]
    if _is_counted(counts):
        keys = ("acting_pgs", "primary_pgs")
        equal = sum(_agrees(row, *keys) for row in counts)
        yield f"Placement groups: as the cluster counts them on {equal} of {len(counts)} OSDs"


def _unplaced_sentences(document: Row) -> Iterator[str]:
    """Yield the pools with placement groups that find no place after the loss of a failure domain."""
    rooms = document["capacity"]["pools"]
    for pool, room in zip(document["pools"], rooms, strict=True):
        unplaced = room["unplaced_groups"]
        if unplaced:
            yield (
                f"{pool['name']}: without its largest {pool['failure_domain']}, CRUSH finds too few OSDs for "
                f"{unplaced:,} of {counted_text(pool['pg_num'], 'placement group')}, which do not heal"
            )


def _is_counted(counts: Sequence[Row]) -> bool:
    """Return True if the cluster counts the placement groups of its OSDs."""
    return bool(counts) and "reported_acting_pgs" in counts[0]


def _agrees(row: Row, *keys: str) -> bool:
    """Return True if an OSD has as many placement groups as the cluster counts."""
    return all(row[key] == row[f"reported_{key}"] for key in keys)


def report_of_cluster(document: Row, derivations: Sequence[Derivation]) -> str:
    """Return the self-contained page of an imported cluster, with the derivations of a scenario's keys."""
    capacity = document["capacity"]
    counts = document["pgs_by_osd"]
    sections = sections_of(document, derivations)
    raw = sum(row["raw_bytes"] for row in capacity["classes"])
    stranded = sum(row["now"]["stranded_bytes"] for row in capacity["classes"])
    heals = sum(row["heals"] for row in capacity["domains"])
    tiles = [
        (bytes_text(raw), f"raw, on {len(document['osds'])} OSDs"),
        (bytes_text(stranded), "stranded when the first OSD is full"),
        (
            f"{heals} of {len(capacity['domains'])}",
            "failure domains whose loss the others can absorb",
        ),
    ]
    if _is_counted(counts):
        equal = sum(_agrees(row, "acting_pgs") for row in counts)
        tiles.append(
            (
                f"{equal} of {len(counts)}",
                "OSDs with placement groups as counted by the cluster",
            )
        )
    return render(
        "sections.html.j2",
        kind="Existing cluster",
        title="Capacity of the cluster",
        introduction="Usable and stranded capacity, room to heal, and the gain of a balancer, from output "
        "of Ceph commands.",
        meta=[
            f"stripesim {__version__} · Ceph {document['version'] or 'of unknown release'}"
        ],
        tiles=tiles,
        contents=[(section.anchor, section.heading) for section in sections],
        sections=sections,
        warnings=document["warnings"],
    )


def sections_of(document: Row, derivations: Sequence[Derivation]) -> list[Section]:
    """Return the sections: raw to writable capacity, pools, balance, room to heal, hardware."""
    capacity = document["capacity"]
    sections = [
        _waterfall(capacity),
        _pools(document),
        _balance(document),
        *([_placement(document)] if document["placement"] else []),
        _healing(document),
        _hardware(derivations),
    ]
    if "failures" not in document:
        return sections
    from stripesim.scenarios.answers.failures.answer import section_of_failures

    return [section_of_failures(document), *sections]


def _waterfall(capacity: Row) -> Section:
    classes = capacity["classes"]
    rows: list[list[str | TableCell]] = []
    for same in zip(
        *(_steps(row, capacity["full_ratio"]) for row in classes), strict=True
    ):
        sizes = [size for _, size, _ in same]
        if same[0][0] == _IN_USE:
            # Raw bytes exclude databases on separate devices, so the bar does too.
            sizes = [row["used_data_bytes"] for row in classes]
        shares = [
            None if size is None else size / max(row["raw_bytes"], 1.0)
            for row, size in zip(classes, sizes, strict=True)
        ]
        cells = [
            TableCell(bytes_text(size), why, share)
            for (_, size, why), share in zip(same, shares, strict=True)
        ]
        rows.append([same[0][0], *cells])
    columns = ["step", *(f"{row['class']} ({row['osds']} OSDs)" for row in classes)]
    return Section(
        "From raw to writable",
        "waterfall",
        "Bytes on drives by device class, before the overhead of pools. The steps assume that all pools of a "
        "class grow in proportion to their data (empty pools: to their groups), and that a pool's placement "
        "groups are equally full.",
        [
            Table(
                "From raw to writable, by device class",
                columns,
                rows,
                form="stack",
            )
        ],
    )


def _steps(row: Row, full: float) -> list[tuple[str, float | None, str]]:
    """Return the steps from raw to free capacity of a device class [B], with explanations."""
    now = row["now"]
    then = row["after_upmap"]
    fullest = "these OSDs have no placement groups"
    if now["fullest_osd"] is not None:
        fullest = (
            f"osd.{now['fullest_osd']} fills {now['fullest_over_mean']:.2f} × as fast as the mean, which "
            f"strands {bytes_text(now['stranded_bytes'])} on the others"
        )
    moved = (
        "single shards moved from the fullest to the emptiest OSDs within the rules of pools: "
        f"{bytes_text(then['stranded_bytes'])} stranded"
    )
    return [
        ("raw", row["raw_bytes"], "sizes of all OSDs in the report"),
        (
            "in",
            row["in_bytes"],
            "without OSDs that are out (OSDs that are down count)",
        ),
        (
            "at the full ratio",
            row["full_bytes"],
            f"× {full:.4g}, the cluster's ratio, at which Ceph refuses writes",
        ),
        ("until the first OSD is full", now["usable_raw_bytes"], fullest),
        ("the same after upmap", then["usable_raw_bytes"], moved),
        (_IN_USE, row["used_bytes"], use_text(row)),
    ]


def use_text(row: Row) -> str:
    """Name the source of the bytes in use, and databases that Ceph counts as used."""
    sentence = BASIS_TEXT[row["used_basis"]]
    databases = row["used_bytes"] - row["used_data_bytes"]
    if databases > 0:
        sentence += (
            f"; {bytes_text(databases)} of it are databases"
            " on separate devices, which raw excludes"
        )
    if row["reported_available_bytes"] is not None:
        sentence += f"; {bytes_text(row['reported_available_bytes'])} free"
    return sentence


def _pools(document: Row) -> Section:
    capacity = document["capacity"]
    full = capacity["full_ratio"]
    near = capacity["nearfull_ratio"]
    rows: list[Mapping[str, str | TableCell]] = []
    for pool, room in zip(document["pools"], capacity["pools"], strict=True):
        overhead = room["overhead"]
        domain = pool["failure_domain"]
        why_full = f"{bytes_text(room['raw_bytes'])} × {full:.4g} / {overhead:.4g} / {room['imbalance']:.3f}"
        safe = "cannot heal"
        why_safe = (
            f"{room['failure_domains'] - 1} {domain}s left for {pool['size']} shards"
        )
        if room["usable_bytes_safe"] is not None:
            safe = bytes_text(room["usable_bytes_safe"])
            why_safe = (
                f"without the largest {domain}, × {near:.4g} / {overhead:.4g} / "
                f"{room['imbalance_after_loss']:.3f}"
            )
        if room["unplaced_groups"]:
            # Bytes count groups that are whole again. All of them do not heal, or some.
            why_safe = f"CRUSH finds no place for a shard of {room['unplaced_groups']:,} groups"
            is_all = room["unplaced_groups"] == pool["pg_num"]
            safe = "cannot heal" if is_all else f"{safe}, some groups do not heal"
        why_more = "until its first OSD is full, other pools unchanged"
        row: dict[str, str | TableCell] = {
            "pool": TableCell(pool["name"], f"rule {pool['rule']}"),
            "scheme": TableCell(
                scheme_label(pool["scheme"]), f"{overhead:.4g} bytes per client byte"
            ),
            "groups": f"{pool['pg_num']:,}",
            "domains": f"{room['failure_domains']} × {domain}",
            "holds": bytes_text(room["stored_bytes"]),
            "usable, full ratio": TableCell(
                bytes_text(room["usable_bytes_full"]), why_full
            ),
            "usable, one domain lost": TableCell(safe, why_safe),
            "takes more": TableCell(bytes_text(room["more_bytes"]), why_more),
        }
        rows.append(row)
    return Section(
        "Pools",
        "pools",
        "Each pool alone on its OSDs, until its fullest OSD reaches the ratio: the last divisor is how full "
        "that OSD is, over the mean. Metadata, padding and the log are not included, so small objects store "
        "more. The safe capacity stays below the cluster's nearfull ratio after the loss of the largest "
        "failure domain, which a pool can heal from if it has more failure domains than shards.",
        [Table.of("Pools: data and capacity", rows, form="stack", words=(1, 3))],
    )


def _balance(document: Row) -> Section:
    classes: list[Mapping[str, str | TableCell]] = []
    for row in document["capacity"]["classes"]:
        fullest = row["fullest"]
        if fullest is not None:
            classes.append(
                {
                    "class": f"{row['class']}, fullest now",
                    "OSD": f"osd.{fullest['osd']}",
                    "over the mean": f"{fullest['used_over_mean']:.3f} ×",
                    "used": f"{100 * fullest['used_ratio']:.1f} %",
                    "stranded": "",
                }
            )
        for words, state in (
            ("first to be full", row["now"]),
            ("first after upmap", row["after_upmap"]),
        ):
            over = state["fullest_over_mean"]
            osd = state["fullest_osd"]
            line = {
                "class": f"{row['class']}, {words}",
                "OSD": "–" if osd is None else f"osd.{osd}",
                "over the mean": "–" if over is None else f"{over:.3f} ×",
                "used": "",
                "stranded": bytes_text(state["stranded_bytes"]),
            }
            classes.append(line)
    sizes = {osd["osd"]: osd for osd in document["osds"]}
    loads = [
        (row["acting_pgs"] / (sizes[row["osd"]]["size_bytes"] / 1e12), row)
        for row in document["pgs_by_osd"]
        if sizes.get(row["osd"], {}).get("size_bytes")
    ]
    loads.sort(key=lambda pair: (-pair[0], pair[1]["osd"]))
    rows: list[Mapping[str, str | TableCell]] = []
    for load, row in loads[:10]:
        held = sizes[row["osd"]]
        entry: dict[str, str | TableCell] = {
            "OSD": f"osd.{row['osd']}",
            "host": str(held["host"] or "–"),
            "class": str(held["class"] or "–"),
            "size": bytes_text(held["size_bytes"]),
            "groups": f"{row['acting_pgs']:,}",
            "primaries": f"{row['primary_pgs']:,}",
            "groups per TB": TableCell(
                f"{load:,.1f}", share=load / loads[0][0] if loads[0][0] else 0.0
            ),
        }
        rows.append(entry)
    return Section(
        "Balance",
        "balance",
        "Fullest now: by bytes in use, as ceph osd df counts them (over the mean: VAR in the class). First "
        "to be full: the OSD with most data for its size if all pools grow in proportion. It limits the "
        "cluster's capacity. Like Ceph's balancer, upmap moves single shards, "
        "within their rule's failure domains, from the fullest to the emptiest OSDs.",
        [
            Table.of("Fullest OSDs by class", classes),
            Table.of(
                "OSDs with the most placement groups for their size",
                rows,
                words=(1, 2),
                caption_shown=True,
            ),
        ],
    )


def _placement(document: Row) -> Section:
    """Return the section of numbers of placement groups and settings of the balancer."""
    # Matplotlib takes half a second to load.
    from stripesim.scenarios.answers.plan.figure import placement_figure
    from stripesim.scenarios.show.figures.renderer import drawn_all

    rows: list[Mapping[str, str | TableCell]] = []
    for choice in document["placement"]:
        most = max(_usable(option) for option in choice["options"])
        for index, option in enumerate(choice["options"]):
            is_best = index == choice["recommended"]
            deviation = option["max_deviation"]
            balancer = "as now" if deviation is None else f"deviation {deviation}"
            rows.append(
                {
                    "pool": choice["pool"],
                    "groups": f"{option['pg_num']:,}",
                    "balancer": TableCell(balancer, tone="best" if is_best else ""),
                    "fullest over mean": f"{option['imbalance']:.3f} ×",
                    "usable": TableCell(
                        bytes_text(_usable(option)), share=_usable(option) / most
                    ),
                    "rate": f"{100 * option['rate_share']:.0f} %",
                }
            )
    text = " ".join(choice["sentence"] for choice in document["placement"])
    commands = "; ".join(merged_commands(document["placement"]))
    if commands:
        text += f" To type: {commands}."
    return Section(
        "Placement groups and balancer",
        "placement",
        f"{text} Each pool alone on its OSDs, in the safe capacity, or at the full ratio where it cannot "
        "heal. The rate is that of saturated OSDs over equally busy ones. The autoscaler counts the "
        "pool's share of the data, and replaces a number that is more than three times larger or smaller.",
        [Table.of("Choices for each pool", rows, form="stack", words=(2,))],
        figure_blocks(
            drawn_all({"placement": placement_figure(document["placement"])})
        ),
    )


def _usable(option: Row) -> float:
    return float(option["usable_bytes_safe"] or option["usable_bytes_full"] or 0.0)


def _healing(document: Row) -> Section:
    capacity = document["capacity"]
    domains: Sequence[Row] = sorted(
        capacity["domains"], key=lambda row: row["room_bytes"] - row["held_bytes"]
    )
    rows: list[list[str | TableCell]] = []
    for row in domains[:_ROWS_MAX]:
        verdict = TableCell("heals", row["reason"])
        if not row["heals"]:
            why = row["reason"] or "too much for the others"
            verdict = TableCell("does not heal", why, tone="warn")
        held = bytes_text(row["held_bytes"])
        room = bytes_text(row["room_bytes"])
        rows.append(
            [
                TableCell(row["domain"], f"{row['type']}, {row['class']}"),
                held,
                room,
                verdict,
            ]
        )
    more = ""
    if len(domains) > _ROWS_MAX:
        more = f" {len(domains) - _ROWS_MAX} further domains have more room."
    unplaced = "".join(f" {line}." for line in _unplaced_sentences(document))
    columns = ["failure domain", "holds", "room on the others", "after its loss"]
    return Section(
        "Room to heal",
        "healing",
        f"Room is the total free space of the other OSDs of the same pools below "
        f"{capacity['nearfull_ratio']:.4g} "
        "(nearfull). Healing also needs enough domains for every shard of the widest pool. Tightest "
        f"first.{more}{unplaced}",
        [
            Table(
                "Room to heal by failure domain",
                columns,
                rows,
                form="stack",
                words=(3,),
            )
        ],
    )


def _hardware(derivations: Sequence[Derivation]) -> Section:
    rows: list[list[str | TableCell]] = list(map(list, derivations))
    return Section(
        "Hardware in the scenario",
        "hardware",
        "The scenario's rates and latencies depend on these keys. Capacity on this page does not.",
        [
            Table(
                "Hardware",
                ["key", "source", "value"],
                rows,
                form="stack",
                numeric=False,
            )
        ],
    )
