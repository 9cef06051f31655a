"""Lesson 13: grow a cluster."""

from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Grow a cluster"
NUMBERS = {
    "hosts": (7, 8, 9),
    "stored_tb": (12, 16, 20),
    "rate": (80, 100, 120),
    "factor": (2, 3, 5),
    "object_ms": (40, 60, 80),
}
RUBRIC = (
    ("what moves, computed by hand and compared with the rehearsal", 3),
    ("a setting chosen by a stated goal for latency, and its price in hours", 4),
    ("the commands in order, and the moment to stop", 3),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `grown` and `drained`, the results of two rehearsals."""

    def grown() -> dict[str, Any]:
        change: dict[str, Any] = d.grown["changes"][0]
        return change

    def points() -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = d.grown["trade_off"]["points"]
        return listed

    yield Question(
        "the share that must move",
        f"A cluster of {d.hosts} equal hosts gets one more. What share of all shards has to move at "
        "least, for every host to hold as much as the others?",
        lambda: 100 / (d.hosts + 1),
        unit="%",
        tolerance=0.02,
        hint="The new host ends up with the share of one host.",
        why="Only what the new host receives has to move. CRUSH moves a little more.",
    )
    yield Question(
        "the share that moves",
        f"The pool has 64 PGs of six shards. What share of its shards does CRUSH move when your cluster of "
        f"{d.hosts} hosts grows?",
        lambda: 100 * grown()["shards_moved"] / (64 * 6),
        unit="%",
        tolerance=0.02,
        hint="shards_moved over the number of all shards.",
        why="It exceeds the minimum, because some shards also move between old hosts.",
    )
    yield Question(
        "bytes sent",
        "How many bytes do OSDs send to each other per byte that moves?",
        lambda: grown()["private_net_bytes"] / grown()["bytes_moved"],
        unit="B/B",
        tolerance=0.03,
        hint="private_net_bytes over bytes_moved.",
        why="An erasure-coded shard goes to the primary and from there to its new OSD: twice, unless the "
        "primary "
        "is one of the two.",
    )
    yield Question(
        "one target",
        f"An OSD of your new host receives 20 shards of {d.stored_tb} TB in 64 PGs, one PG at a time, "
        "one object "
        f"(4 MiB of client data) after the other. Each object takes {d.object_ms} ms. How long does it take?",
        lambda: 20 * d.stored_tb * 1e12 / 64 / (4 << 20) * d.object_ms / 1e3 / 3600,
        unit="h",
        tolerance=0.03,
        hint="Objects of a PG = client bytes / 64 / 4 MiB.",
        why="osd_max_backfills = 1 lets an OSD receive one PG at a time. Neither network nor drive is busy.",
    )
    yield Question(
        "more backfills",
        "By what factor does osd_max_backfills = 4 shorten the change of your cluster?",
        lambda: points()[0]["duration_s"] / _with_backfills(points(), 4)["duration_s"],
        tolerance=0.03,
        hint="Compare two points of the trade-off.",
        why="Less than 4: the drives of the new host become busy, and PGs wait for other OSDs.",
    )
    yield Question(
        "the price",
        "By what factor does the clients' p99 rise with osd_max_backfills = 4, compared with the p99 before?",
        lambda: (
            _with_backfills(points(), 4)["latency_p99_ns"]
            / points()[0]["before_latency_p99_ns"]
        ),
        tolerance=0.05,
        hint="latency_p99_ns over before_latency_p99_ns.",
        why="A disk that serves recovery is busy when a client arrives.",
    )
    yield Question(
        "your goal",
        f"Your users accept a p99 of {d.factor} times the one before. Which osd_max_backfills of the "
        "rehearsed "
        "1, 2 and 4 is the fastest that you may use with the cluster's own profile? 0: none.",
        lambda: _fastest_within(points(), d.factor),
        tolerance=0,
        hint="Of the points below the limit, take the one with the shortest duration.",
        why="A stated goal decides. Without one, every choice is a matter of taste.",
    )
    yield Question(
        "the fullest",
        "One OSD is marked out instead. What share of the fullest OSD is used at its "
        "peak?",
        lambda: 100 * d.drained["changes"][0]["peak_used_ratio"],
        unit="%",
        tolerance=0.02,
        hint="peak_used_ratio",
        why="The data of one OSD goes to all others, but not evenly.",
    )


def _with_backfills(points: list[dict[str, Any]], count: int) -> dict[str, Any]:
    own = points[0]["profile"]
    return next(
        point
        for point in points
        if point["profile"] == own and point["max_backfills"] == count
    )


def _fastest_within(points: list[dict[str, Any]], factor: float) -> int:
    limit_ns = factor * points[0]["before_latency_p99_ns"]
    counts = [1, 2, 4]
    allowed = [
        count
        for count in counts
        if _with_backfills(points, count)["latency_p99_ns"] <= limit_ns
    ]
    if not allowed:
        return 0
    return min(
        allowed,
        key=lambda count: float(_with_backfills(points, count)["duration_s"]),
    )
