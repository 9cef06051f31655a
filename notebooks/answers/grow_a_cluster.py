"""Lesson 13: grow a cluster."""

from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Grow a cluster"
NUMBERS = {
    "hosts": (7, 8, 9, 10),
    "stored_tb": tuple(half / 2 for half in range(24, 41)),
    "rate": range(80, 121, 2),
    # Apart from the 2 × of the rehearsal's own rule.
    "factor": tuple(tenth / 10 for tenth in range(25, 61)),
    "object_ms": range(40, 81),
    "drained_osd": range(0, 14),
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

    def shards_to_new() -> str:
        least = 64 * 6 / (d.hosts + 1)
        if grown()["shards_moved"] > least:
            return "CRUSH moves more, because some shards also move between old hosts, and PGs are few."
        return (
            "CRUSH moves less: with so few PGs, the new host gets less than its share."
        )

    def hours_within() -> float:
        count = _fastest_within(points(), d.factor)
        if not count:
            return 0.0
        return float(_with_backfills(points(), count)["duration_s"]) / 3600

    yield Question(
        "the share that must move",
        f"A cluster of {d.hosts} equal hosts gets one more. It stores {d.stored_tb:g} TB under "
        "RS(4,2). How many TB of "
        "shards have to move at least, for every host to hold as much as the others?",
        lambda: d.stored_tb * 1.5 / (d.hosts + 1),
        unit="TB",
        tolerance=0.01,
        hint="The new host ends up with the share of one host.",
        why="Only what the new host receives has to move. CRUSH does not reach this minimum exactly.",
    )
    yield Question(
        "the share that moves",
        "The pool has 64 PGs of six shards. How many TB do the shards hold that CRUSH moves when "
        "your cluster of "
        f"{d.hosts} hosts grows?",
        lambda: d.stored_tb * 1.5 * grown()["shards_moved"] / (64 * 6),
        unit="TB",
        tolerance=0.01,
        hint="shards_moved over the number of all shards, times the bytes of all shards.",
        why=lambda x: (
            f"By hand it was {d.stored_tb * 1.5 / (d.hosts + 1):.2f} TB. {shards_to_new()}"
        ),
    )
    yield Question(
        "bytes sent",
        "How many TB do OSDs send to each other for that? `change` holds it, and you can estimate it first.",
        lambda: grown()["private_net_bytes"] / 1e12,
        unit="TB",
        tolerance=0.01,
        hint="A shard goes to its primary and on to its new OSD: private_net_bytes counts both.",
        why=lambda _: (
            f"{grown()['private_net_bytes'] / grown()['bytes_moved']:.2f} B per byte that moves. "
            "An erasure-coded shard goes to the primary and from there to its new OSD: twice, unless the "
            "primary "
            "is one of the two."
        ),
    )
    yield Question(
        "one target",
        f"An OSD of your new host receives 20 shards of {d.stored_tb:g} TB in 64 PGs, one PG at a time, "
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
        "How many hours does osd_max_backfills = 4 save in the change of your cluster?",
        lambda: (
            (points()[0]["duration_s"] - _with_backfills(points(), 4)["duration_s"])
            / 3600
        ),
        unit="h",
        tolerance=0.02,
        hint="Subtract two durations of the trade-off.",
        why=lambda _: (
            "A factor of "
            f"{points()[0]['duration_s'] / _with_backfills(points(), 4)['duration_s']:.1f}, not "
            "4: the drives of the new host become busy, and PGs wait for other OSDs."
        ),
    )
    yield Question(
        "the price",
        "By how many milliseconds does the clients' p99 rise with osd_max_backfills = 4, "
        "compared with the p99 before?",
        lambda: (
            (
                _with_backfills(points(), 4)["latency_p99_ns"]
                - points()[0]["before_latency_p99_ns"]
            )
            / 1e6
        ),
        unit="ms",
        tolerance=0.01,
        hint="latency_p99_ns minus before_latency_p99_ns.",
        why="A disk that serves recovery is busy when a client arrives.",
    )
    yield Question(
        "your goal",
        f"Your users accept a p99 of {d.factor:g} times the one before. How many hours does the "
        "change take with the "
        "fastest osd_max_backfills (of the rehearsed 1, 2 and 4, with the cluster's own profile) "
        "that you may use? "
        "0: none.",
        hours_within,
        unit="h",
        tolerance=0.02,
        hint="Of the points below the limit, take the one with the shortest duration.",
        why=lambda _: (
            f"With osd_max_backfills = {_fastest_within(points(), d.factor)}. A stated goal "
            "decides. Without one, "
            "every choice is a matter of taste."
        ),
    )
    yield Question(
        "the fullest",
        f"osd.{d.drained_osd} is marked out instead. What share of the fullest OSD is used at its "
        "peak?",
        lambda: 100 * d.drained["changes"][0]["peak_used_ratio"],
        unit="%",
        tolerance=0.01,
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
