"""Read Los Alamos failure data, LA-UR-05-7318: node outages from 1996 to 2005, as a CSV file.

A component is a node, `system.node`. The rack is the system, because no smaller group is recorded. Times are
local and treated as UTC. A node is up between two outages. After the last one, the span is cut at the node's
decommissioning (to the month) or at the end of the record. Nodes that never failed are not in the file. They
count in `population` (column `nodes` of each system) but have no spans, so fitted lifetimes are those of
nodes that failed at least once. An outage that starts before the node's previous one has ended is a separate
event, but the spans merge the two.

References
----------
Schroeder, Gibson: A large-scale study of failures in high-performance computing systems, DSN 2006; README of
LA-UR-05-7318.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from stripesim.traces.budget import FAILURE_BYTES, RowBudget
from stripesim.traces.columns import ORDER_COLUMN
from stripesim.traces.failures.columns import SPAN_SCHEMA, FailureTrace, events_of
from stripesim.traces.lines import has_columns, rows_under_heading
from stripesim.traces.problems import FaultLog, shown
from stripesim.traces.source import TraceFormat, TraceSource

_CAUSES = (
    "Facilities",
    "Hardware",
    "Human Error",
    "Network",
    "Undetermined",
    "Software",
)
_NEEDED = (
    "System",
    "nodes",
    "nodenumz",
    "node prod",
    "node decom",
    "Prob Started",
    "Prob Fixed",
    *_CAUSES,
)
_TIME = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4}) (\d{1,2}):(\d{2})")
_MONTH = re.compile(r"(\d{1,2})-([A-Z][a-z]{2})")
_MONTHS = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)
_Outage = tuple[int, int, str]
_Row = tuple[dict[str, Any], int, int]
"""A row by column name, with start and stop [s]."""


@dataclass
class _FailingNode:
    system: str
    outages: list[_Outage]
    decommissioned_s: int | None


def _read(source: TraceSource, log: FaultLog) -> FailureTrace:
    budget = RowBudget(log.source, FAILURE_BYTES, "outages")
    nodes: dict[str, _FailingNode] = {}
    sizes: dict[str, int] = {}
    for row, start_s, stop_s in _rows(source, log):
        budget.add(1)
        component = f"{row['System']}.{row['nodenumz']}"
        node = nodes.setdefault(component, _FailingNode(row["System"], [], None))
        node.outages.append((start_s, stop_s, _reason(row)))
        node.decommissioned_s = node.decommissioned_s or _month_s(row["node decom"])
        if row["nodes"].isdecimal():
            sizes[row["System"]] = max(
                sizes.get(row["System"], 0), int(row["nodes"][:9])
            )
    end_s = max(
        (stop for node in nodes.values() for _, stop, _ in node.outages), default=0
    )
    spans = []
    listed = []
    for component, node in nodes.items():
        node.outages.sort()
        listed += [
            (s, e, component, component, node.system, False, why)
            for s, e, why in node.outages
        ]
        spans += list(_spans(component, node, end_s, log))
    outages = pl.DataFrame(
        listed, schema=dict(list(SPAN_SCHEMA.items())[:7]), orient="row"
    )
    table = pl.DataFrame(spans, schema=SPAN_SCHEMA, orient="row").sort(
        "start_s", maintain_order=True
    )
    # Overlapping outages are separate events, although spans merge them.
    events = pl.concat([events_of(outages), events_of(table.filter(table["up"]))]).sort(
        "time_s", "up", maintain_order=True
    )
    return FailureTrace(
        events, table, FORMAT.name, str(source.path), sum(sizes.values()) or None
    )


FORMAT = TraceFormat("lanl", lambda head: has_columns(head, _NEEDED), _read)


def _rows(source: TraceSource, log: FaultLog) -> Iterator[_Row]:
    """Yield the valid rows by column name. A quoted cell may contain commas but no line end."""
    for rows in rows_under_heading(source, _NEEDED, log, quoted=True):
        for row in rows.fill_null("").iter_rows(named=True):
            start_s = _time_s(row["Prob Started"])
            stop_s = _time_s(row["Prob Fixed"])
            if start_s is not None and stop_s is not None and start_s <= stop_s:
                yield row, start_s, stop_s
                continue
            span = f"{row['Prob Started']} to {row['Prob Fixed']}"
            log.add(
                row[ORDER_COLUMN],
                f"an outage from {shown(span)}",
                "m/d/yyyy h:mm twice, the end not before the start",
            )


def _spans(
    component: str, node: _FailingNode, end_s: int, log: FaultLog
) -> Iterator[tuple[object, ...]]:
    joined: list[_Outage] = []
    for start, stop, why in node.outages:
        if joined and start < joined[-1][1]:
            log.tally("outages that overlap the node's one before")
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]), joined[-1][2])
        else:
            joined.append((start, stop, why))
    last_s = min(end_s, node.decommissioned_s or end_s)
    where = (component, component, node.system)
    for index, (start, stop, why) in enumerate(joined):
        yield (start, stop, *where, False, why, False, False, None)
        following = joined[index + 1][0] if index + 1 < len(joined) else None
        if following is not None and following > stop:
            yield (stop, following, *where, True, None, False, False, None)
        elif following is None and last_s > stop:
            yield (stop, last_s, *where, True, None, False, True, None)


def _reason(row: dict[str, str]) -> str:
    causes = [f"{cause}: {row[cause]}" for cause in _CAUSES if row[cause]]
    return "; ".join(causes) or "not stated"


def _time_s(cell: str) -> int | None:
    match = _TIME.fullmatch(cell)
    if match is None:
        return None
    month, day, year, hour, minute = map(int, match.groups())
    try:
        return int(datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _month_s(cell: str) -> int | None:
    """Read a month as written in the file: 3-Dec is December 2003 (a spreadsheet reversed Dec-03)."""
    match = _MONTH.fullmatch(cell)
    if match is None or match[2] not in _MONTHS:
        return None
    short = int(match[1])
    year = (1900 if short >= 90 else 2000) + short
    month = _MONTHS.index(match[2]) + 1
    # The end of the month is the first day of the next one.
    return int(datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp())
