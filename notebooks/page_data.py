"""Recorded data that lessons in a page ask about: a part of a block trace, and the report of a cluster."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from stripesim.scenarios.answers.cluster import answer_of_cluster
from stripesim.scenarios.clusters.cluster import import_cluster
from stripesim.scenarios.clusters.summary import describe_cluster
from stripesim.scenarios.show.answer import Answer
from stripesim.traces import read_trace

FOLDER: Final = Path(__file__).resolve().parent / "data"

#: A request of a trace: its issue and completion [ns], and 1 for a write.
TraceRow = tuple[int, int, int]


class TracePart:
    """Numbers of consecutive requests of a trace, by name in expressions. ``lesson.js`` computes the same.

    A read is `alone` if nothing else is in flight when it is issued, and `beside` a write if one is.
    """

    def __init__(self, rows: Sequence[TraceRow]) -> None:
        count = len(rows)
        issued_ns = [issued for issued, _, _ in rows]
        times_ns = [completed - issued for issued, completed, _ in rows]
        span_ns = issued_ns[-1] - issued_ns[0]
        steps_ns = np.diff(issued_ns).tolist()
        mean_ns = span_ns / (count - 1)
        #: Times between arrivals in units of their mean
        self.gaps = [0.0, *(step / mean_ns for step in steps_ns)]
        self.rate = 1e9 / mean_ns
        self.response_ms = _mean_ms(times_ns)
        squares = sum((step / mean_ns) ** 2 for step in steps_ns)
        self.cv2 = squares / (count - 1) - 1
        half = count // 2
        self.reads = sum(not is_write for _, _, is_write in rows)
        self.first_reads_ms = _mean_ms(_of_reads(rows[:half]))
        self.second_reads_ms = _mean_ms(_of_reads(rows[half:]))
        alone_ns, beside_ns = [], []
        for number, (issued, completed, is_write) in enumerate(rows):
            if is_write:
                continue
            overlapping = [row for row in rows[:number] if row[1] > issued]
            if not overlapping:
                alone_ns.append(completed - issued)
            elif any(row[2] for row in overlapping):
                beside_ns.append(completed - issued)
        self.alone_ms = _mean_ms(alone_ns)
        self.beside_ms = _mean_ms(beside_ns)


def _of_reads(rows: Sequence[TraceRow]) -> list[int]:
    return [completed - issued for issued, completed, is_write in rows if not is_write]


def _mean_ms(times_ns: Sequence[int]) -> float:
    return sum(times_ns) / len(times_ns) / 1e6


@cache
def trace_rows(name: str) -> tuple[TraceRow, ...]:
    """Return the requests of a trace of ``data/`` in the order of their issue."""
    requests = read_trace(FOLDER / name).requests
    columns = ("issue_ns", "complete_ns", "is_write")
    rows = zip(*(requests[column].to_list() for column in columns), strict=True)
    return tuple(
        (issued, completed, int(is_write)) for issued, completed, is_write in rows
    )


@cache
def imported(report: str, pools: tuple[str, ...] = ()) -> Answer:
    """Return what an import makes of a report of ``data/``, with scenarios of some pools."""
    cluster = import_cluster([FOLDER / report])
    return answer_of_cluster(*describe_cluster(cluster, pools))


@cache
def report_facts(name: str) -> dict[str, Any]:
    """Return what an import says about a report of ``data/``, by name of pools and of device classes."""
    report = imported(name)
    capacity = report["capacity"]
    usable = {row["name"]: row for row in capacity["pools"]}
    return {
        "pools": {
            pool["name"]: {**pool, **usable[pool["name"]]} for pool in report["pools"]
        },
        "classes": {row["class"]: row for row in capacity["classes"]},
        "osds": report["osds"],
        "pgs": [row["acting_pgs"] for row in report["pgs_by_osd"]],
        "pgs_total": sum(row["acting_pgs"] for row in report["pgs_by_osd"]),
        "full_ratio": capacity["full_ratio"],
    }
