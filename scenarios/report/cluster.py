"""The page of a cluster that exists: what it holds, strands and heals, and what each number rests on."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from stripesim._version import __version__
from stripesim.scenarios.figures.captions import scheme_label
from stripesim.scenarios.importing.usage import BASIS_TEXT
from stripesim.scenarios.report.page.render import Cell, Section, Table, render
from stripesim.scenarios.schema.units import bytes_text

#: Domains and OSDs beyond these are counted, not listed: nobody reads a thousand lines.
_ROWS_MAX: Final = 40

Row = Mapping[str, Any]


def report_of_cluster(document: Row) -> str:
    """Write the page of what `stripesim import ceph-report` found; it loads nothing from elsewhere."""
    capacity = document["capacity"]
    counts = document["pgs_by_osd"]
    sections = sections_of(document)
    raw = sum(row["raw_bytes"] for row in capacity["classes"])
    stranded = sum(row["now"]["stranded_bytes"] for row in capacity["classes"])
    heals = sum(row["heals"] for row in capacity["domains"])
    tiles = [
        (bytes_text(raw), f"raw, on {len(document['osds'])} OSDs"),
        (bytes_text(stranded), "stranded when the first OSD is full"),
        (
            f"{heals} of {len(capacity['domains'])}",
            "failure domains whose loss the others can take",
        ),
    ]
    if counts and "reported_acting_pgs" in counts[0]:
        equal = sum(row["acting_pgs"] == row["reported_acting_pgs"] for row in counts)
        tiles.append(
            (
                f"{equal} of {len(counts)}",
                "OSDs whose placement groups are those counted",
            )
        )
    return render(
        "sections.html.j2",
        kind="A cluster as it is",
        title="Capacity of the cluster",
        introduction="Usable capacity, what strands, what heals and what a balancer would bring, from what "
        "Ceph says of itself.",
        meta=[
            f"stripesim {__version__} · Ceph {document['version'] or 'of unknown release'}"
        ],
        tiles=tiles,
        contents=[(section.anchor, section.heading) for section in sections],
        sections=sections,
        warnings=document["warnings"],
    )


def sections_of(document: Row) -> list[Section]:
    """From raw to what can be written, pools, balance, room to heal, hardware."""
    capacity = document["capacity"]
    return [
        _waterfall(capacity),
        _pools(document),
        _balance(document),
        _healing(capacity),
        _hardware(document),
    ]


def _waterfall(capacity: Row) -> Section:
    classes = capacity["classes"]
    rows: list[list[str | Cell]] = []
    for same in zip(
        *(_steps(row, capacity["full_ratio"]) for row in classes), strict=True
    ):
        shares = [
            None if size is None else size / max(row["raw_bytes"], 1.0)
            for row, (_, size, _) in zip(classes, same, strict=True)
        ]
        cells = [
            Cell(bytes_text(size), why, share)
            for (_, size, why), share in zip(same, shares, strict=True)
        ]
        rows.append([same[0][0], *cells])
    columns = ["step", *(f"{row['class']} ({row['osds']} OSDs)" for row in classes)]
    return Section(
        "From raw to what can be written",
        "waterfall",
        "Bytes on drives, by device class; a pool's own overhead comes off below. All pools of a class are "
        "taken to grow in proportion to what they hold, a pool's placement groups as equally full; pools "
        "that hold nothing count by their groups.",
        [
            Table(
                "From raw to what can be written, by device class",
                columns,
                rows,
                form="stack",
            )
        ],
    )


def _steps(row: Row, full: float) -> list[tuple[str, float | None, str]]:
    """What is left after each step in a device class [B], and why."""
    now = row["now"]
    then = row["after_upmap"]
    fullest = "no placement group is on these OSDs"
    if now["fullest_osd"] is not None:
        fullest = (
            f"osd.{now['fullest_osd']} fills {now['fullest_over_mean']:.2f} × as fast as the mean; the "
            f"others then still have {bytes_text(now['stranded_bytes'])}, which strand"
        )
    moved = (
        "single shards moved from the fullest OSDs to the emptiest, never two of a group into one domain: "
        f"{bytes_text(then['stranded_bytes'])} strand"
    )
    return [
        ("raw", row["raw_bytes"], "the sizes of all OSDs, as the report has them"),
        (
            "in",
            row["in_bytes"],
            "an OSD that is out takes nothing; one that is down is expected back",
        ),
        (
            "at the full ratio",
            row["full_bytes"],
            f"× {full:.4g}, its own; beyond it Ceph refuses writes",
        ),
        ("until the first OSD is full", now["usable_raw_bytes"], fullest),
        ("the same after upmap", then["usable_raw_bytes"], moved),
        ("in use", row["used_bytes"], use_text(row)),
    ]


def use_text(row: Row) -> str:
    """Name the source of the bytes in use, and the databases that Ceph counts as used."""
    words = BASIS_TEXT[row["used_basis"]]
    databases = row["used_bytes"] - row["used_data_bytes"]
    if databases > 0:
        words += (
            f"; {bytes_text(databases)} of it are databases"
            " on devices of their own, which raw leaves out"
        )
    if row["reported_available_bytes"] is not None:
        words += f"; {bytes_text(row['reported_available_bytes'])} are free"
    return words


def _pools(document: Row) -> Section:
    capacity = document["capacity"]
    full = capacity["full_ratio"]
    near = capacity["nearfull_ratio"]
    rows: list[Mapping[str, str | Cell]] = []
    for pool, room in zip(document["pools"], capacity["pools"], strict=True):
        overhead = room["overhead"]
        domain = pool["failure_domain"]
        why_full = f"{bytes_text(room['raw_bytes'])} × {full:.4g} / {overhead:.4g}"
        why_safe = f"without the largest {domain}, × {near:.4g} / {overhead:.4g}"
        why_more = "until its first OSD is full, the other pools as they are"
        row: dict[str, str | Cell] = {
            "pool": Cell(pool["name"], f"rule {pool['rule']}"),
            "scheme": Cell(
                scheme_label(pool["scheme"]), f"{overhead:.4g} bytes stored for each"
            ),
            "groups": f"{pool['pg_num']:,}",
            "domains": f"{room['failure_domains']} × {domain}",
            "holds": bytes_text(room["stored_bytes"]),
            "usable, full ratio": Cell(bytes_text(room["usable_bytes_full"]), why_full),
            "usable, a domain gone": Cell(
                bytes_text(room["usable_bytes_safe"]), why_safe
            ),
            "takes more": Cell(bytes_text(room["more_bytes"]), why_more),
        }
        rows.append(row)
    return Section(
        "Pools",
        "pools",
        "Each pool alone on its OSDs. Metadata, padding and the log are not counted: small objects store "
        "more. What is safe stays below the cluster's nearfull ratio with the largest failure domain lost.",
        [
            Table.of(
                "Pools: what each holds and can hold", rows, form="stack", words=(1, 3)
            )
        ],
    )


def _balance(document: Row) -> Section:
    classes: list[Mapping[str, str | Cell]] = []
    for row in document["capacity"]["classes"]:
        for words, state in (("now", row["now"]), ("after upmap", row["after_upmap"])):
            over = state["fullest_over_mean"]
            osd = state["fullest_osd"]
            line = {
                "class": f"{row['class']}, {words}",
                "fullest OSD": "–" if osd is None else f"osd.{osd}",
                "over the mean": "–" if over is None else f"{over:.3f} ×",
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
    rows: list[Mapping[str, str | Cell]] = []
    for load, row in loads[:10]:
        held = sizes[row["osd"]]
        entry: dict[str, str | Cell] = {
            "OSD": f"osd.{row['osd']}",
            "host": str(held["host"] or "–"),
            "class": str(held["class"] or "–"),
            "size": bytes_text(held["size_bytes"]),
            "groups": f"{row['acting_pgs']:,}",
            "primaries": f"{row['primary_pgs']:,}",
            "groups per TB": Cell(
                f"{load:,.1f}", share=load / loads[0][0] if loads[0][0] else 0.0
            ),
        }
        rows.append(entry)
    return Section(
        "Balance",
        "balance",
        "The fullest OSD ends the cluster's capacity. Upmap is computed here as Ceph's balancer works: it "
        "moves single shards, within their rule's failure domains, from the fullest OSDs to the emptiest.",
        [
            Table.of("Fullest OSD by class", classes),
            Table.of(
                "OSDs with the most placement groups for their size",
                rows,
                words=(1, 2),
                caption_shown=True,
            ),
        ],
    )


def _healing(capacity: Row) -> Section:
    domains: Sequence[Row] = sorted(
        capacity["domains"], key=lambda row: row["room_bytes"] - row["held_bytes"]
    )
    rows: list[list[str | Cell]] = []
    for row in domains[:_ROWS_MAX]:
        why = row["reason"] or (
            "" if row["heals"] else "more than the others have room for"
        )
        verdict = Cell(
            "heals" if row["heals"] else "does not heal",
            why,
            tone="" if row["heals"] else "warn",
        )
        held = bytes_text(row["held_bytes"])
        room = bytes_text(row["room_bytes"])
        rows.append(
            [Cell(row["domain"], f"{row['type']}, {row['class']}"), held, room, verdict]
        )
    more = (
        f" {len(domains) - _ROWS_MAX} more have more room than these."
        if len(domains) > _ROWS_MAX
        else ""
    )
    columns = ["failure domain", "holds", "room on the others", "if it is lost"]
    return Section(
        "Room to heal",
        "healing",
        f"Room is what the other OSDs of the same pools take below {capacity['nearfull_ratio']:.4g} "
        "(nearfull) on top of what they hold, in sum; enough domains must be left for every shard of the "
        f"widest pool. Tightest first.{more}",
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


def _hardware(document: Row) -> Section:
    rows: list[list[str | Cell]] = []
    for line in document["hardware"]:
        key, _, rest = line.partition(": ")
        how, _, value = rest.rpartition(" -> ")
        rows.append([key, how, value])
    return Section(
        "Hardware, as a scenario takes it",
        "hardware",
        "Rates and latencies of the scenario rest on these; capacity on this page does not.",
        [
            Table(
                "Hardware",
                ["key", "from", "taken as"],
                rows,
                form="stack",
                numeric=False,
            )
        ],
    )
