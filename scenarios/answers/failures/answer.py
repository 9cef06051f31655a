"""Show the failures of an imported cluster: a sentence, a table, a heat map and a section of its page."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from stripesim.scenarios.schema.units import (
    bytes_text,
    counted_text,
    duration_text,
    first_text,
)
from stripesim.scenarios.show.figures.rehearsal import fill_layers
from stripesim.scenarios.show.figures.renderer import CaptionedFigure, drawn
from stripesim.scenarios.show.figures.specification import (
    AxisSpec,
    FigureSpec,
    LayerSpec,
    PanelSpec,
    key,
)
from stripesim.scenarios.show.page.render import Section, figure_blocks
from stripesim.scenarios.show.tables import Table, TableCell

#: Most failures in the table and in the heat map, those with the least room first.
ROWS_MAX: Final = 40
#: Most failures that a sentence names.
_NAMED_MAX: Final = 4
#: Most columns of the heat map that are OSDs. A larger cluster has a column for each host.
_OSD_COLUMNS_MAX: Final = 48
_GONE: Final = "#BBBBBB"

Row = Mapping[str, Any]


def sentences_of_failures(document: Row) -> list[str]:
    """Return the verdict on ``backfill_toofull``, then on data without a spare, without service and lost."""
    rows: Sequence[Row] = document["failures"]
    if not rows:
        return ["No OSD is up and in, so none can fail."]
    sentences = [_verdict(document)]
    for name, words in (
        (
            "at_min_size",
            "at min_size: they serve clients, and have no spare until healed",
        ),
        ("inactive", "below min_size: they serve no clients until healed"),
        ("lost", "with too few shards to rebuild: their data is lost"),
    ):
        hit = [row for row in rows if row[f"pgs_{name}"]]
        if not hit:
            continue
        worst = max(hit, key=lambda row: (row[f"bytes_{name}"], row[f"pgs_{name}"]))
        verb = "leaves" if len(hit) == 1 else "leave"
        groups = counted_text(worst[f"pgs_{name}"], "group")
        sentences.append(
            f"{len(hit)} of {len(rows)} failures {verb} placement groups {words}. "
            f"Most: {failure_name(worst)}, {groups} with "
            f"{bytes_text(worst[f'bytes_{name}'])}."
        )
    undersized = [row for row in rows if row["pgs_undersized"]]
    if undersized:
        sentences.append(
            f"{len(undersized)} of {len(rows)} failures never heal completely: CRUSH finds too few OSDs for "
            f"some placement groups ({_names(undersized)})."
        )
    return sentences


def _verdict(document: Row) -> str:
    """Return the failures that end in ``backfill_toofull``, or the tightest one."""
    rows = by_room(document["failures"])
    stuck = [row for row in rows if row["pgs_toofull"]]
    limit = f"backfillfull at {100 * document['before_failure']['backfillfull_ratio']:.0f} %"
    if not stuck:
        sentence = f"None of {len(rows)} failures of a host or drive ends in backfill_toofull ({limit})."
        if rows[0]["fullest_osd"] is not None:
            sentence += (
                f" Tightest: {failure_name(rows[0])}, after which osd.{rows[0]['fullest_osd']} is "
                f"{100 * rows[0]['fullest_used_ratio']:.1f} % full."
            )
        return sentence
    worst = stuck[0]
    return (
        f"{len(stuck)} of {len(rows)} failures of a host or drive end in backfill_toofull ({limit}): "
        f"{_names(stuck)}. Worst: {failure_name(worst)}, {worst['pgs_toofull']:,} placement groups with "
        f"{bytes_text(worst['bytes_toofull'])} find no room, and osd.{worst['fullest_osd']} would be "
        f"{100 * worst['fullest_used_ratio']:.1f} % full."
    )


def failure_name(row: Row) -> str:
    """Name a failure: ``host ceph-3`` or ``osd.7``."""
    return f"host {row['name']}" if row["kind"] == "host" else str(row["name"])


def _names(rows: Sequence[Row]) -> str:
    return first_text(list(map(failure_name, rows)), _NAMED_MAX)


def by_room(rows: Sequence[Row]) -> list[Row]:
    """Sort failures, those with the least room first."""
    return sorted(
        rows,
        key=lambda row: (-row["bytes_toofull"], -(row["fullest_used_ratio"] or 0.0)),
    )


def table_of_failures(document: Row) -> Table:
    """Return a row for each failure, those with the least room first."""
    rows = by_room(document["failures"])
    note = ""
    if len(rows) > ROWS_MAX:
        note = f"{len(rows) - ROWS_MAX:,} further failures leave more room: --json lists all."
    return Table.of(
        "Each failure, least room first",
        [_cells(row) for row in rows[:ROWS_MAX]],
        form="stack",
        words=(5,),
        note=note,
    )


def _cells(row: Row) -> dict[str, str | TableCell]:
    fullest = reached = "–"
    if row["fullest_osd"] is not None:
        fullest = f"osd.{row['fullest_osd']}"
        reached = row["full_ratio_reached"] or "none"
    if row["pgs_toofull"]:
        reached = (
            f"toofull: {row['pgs_toofull']:,} PGs, {bytes_text(row['bytes_toofull'])}"
        )
    share = row["fullest_used_ratio"]
    return {
        "failure": failure_name(row),
        "PGs": f"{row['pgs_moved']:,}",
        "moved": bytes_text(row["bytes_moved"]),
        "fullest": fullest,
        "used": "–" if share is None else f"{100 * share:.1f} %",
        "ratio reached": TableCell(reached, tone="warn" if row["pgs_toofull"] else ""),
        "time to heal": _time_text(row),
        "no spare": _groups_text(row, "at_min_size"),
        "no service": _groups_text(row, "inactive"),
        "lost": _groups_text(row, "lost"),
    }


def _groups_text(row: Row, name: str) -> str:
    count = row[f"pgs_{name}"]
    if not count:
        return "–"
    return f"{counted_text(count, 'PG')}, {bytes_text(row[f'bytes_{name}'])}"


def _time_text(row: Row) -> str | TableCell:
    if row["duration_s"] is None:
        return "–"
    text = duration_text(row["duration_s"])
    if row["pgs_toofull"] or row["pgs_undersized"]:
        text = "never"
    if row["duration_low_s"] is None:
        return text
    low = duration_text(row["duration_low_s"])
    return TableCell(text, f"{low} to {duration_text(row['duration_high_s'])}")


def draw_failures(document: Row) -> dict[str, CaptionedFigure]:
    """Draw the heat map: failures by host or OSD, coloured by fill after healing."""
    if not document["failures"]:
        return {}
    return {"failures": drawn(heat_map(document))}


def heat_map(document: Row) -> FigureSpec:
    """Specify the heat map: a row for each failure, a column for each OSD, or host of a large cluster."""
    before = document["before_failure"]
    rows = by_room(document["failures"])[:ROWS_MAX]
    columns = _columns(document)
    shares = np.zeros((len(rows), len(columns)))
    gone_y, gone_low = [], []
    for y, row in enumerate(rows):
        used = np.array(before["used_ratio"])
        used[row["use"]["osd"]] = row["use"]["used_ratio"]
        for x, osds in enumerate(columns.values()):
            left = [osd for osd in osds if osd not in row["osds"]]
            if left:
                shares[y, x] = used[left].max()
                continue
            shares[y, x] = before["nearfull_ratio"] / 2
            gone_y.append(y + 0.5)
            gone_low.append(x)
    gone = LayerSpec(
        mark="boxes",
        y=gone_y,
        low=gone_low,
        high=[x + 1 for x in gone_low],
        style={"facecolors": _GONE},
    )
    ratios = {
        name: before[f"{name}_ratio"] for name in ("nearfull", "backfillfull", "full")
    }
    edges = list(range(len(columns) + 1))
    of_hosts = len(columns) < sum(map(len, columns.values()))
    every = max(1, len(columns) // 24)
    panel = PanelSpec(
        title="used share after healing" + (", fullest OSD" if of_hosts else ""),
        layers=[*fill_layers(shares, edges, ratios), gone, key("failed", _GONE)],
        x=AxisSpec(
            label="host" if of_hosts else "OSD",
            ticks=[x + 0.5 for x in edges[:-1:every]],
            names=list(columns)[::every],
            low=0,
            high=len(columns),
            rotation=90,
            size=8,
        ),
        y=AxisSpec(
            label="failure",
            ticks=[y + 0.5 for y in range(len(rows))],
            names=[failure_name(row) for row in rows],
            low=len(rows),
            high=0,
            size=8,
        ),
        legend="beside",
        grid=False,
    )
    shown = (
        f"the {len(rows)} failures with the least room of {len(document['failures']):,}"
    )
    return FigureSpec(
        size=(9.5, 2.4 + 0.2 * len(rows)),
        panels=[panel],
        caption=(
            f"Fill after healing, for {shown}, if every shard finds its place. {_verdict(document)}"
        ),
    )


def _columns(document: Row) -> dict[str, list[int]]:
    """Return the OSDs of each column of the heat map, by its name."""
    working = [row["osds"][0] for row in document["failures"] if row["kind"] == "osd"]
    if len(working) <= _OSD_COLUMNS_MAX:
        return {str(osd): [osd] for osd in working}
    return {
        row["name"]: row["osds"]
        for row in document["failures"]
        if row["kind"] == "host"
    }


def section_of_failures(document: Row) -> Section:
    """Return the section of the cluster's page."""
    assumptions = ". ".join(
        line[0].upper() + line[1:]
        for line in (
            *document["before_failure"]["assumptions"],
            *document["before_failure"]["notes"],
        )
    )
    return Section(
        "If a host or a drive fails",
        "failures",
        f"{' '.join(sentences_of_failures(document))} {assumptions}.",
        [table_of_failures(document)],
        figure_blocks(draw_failures(document)),
    )
