"""Lesson 6: repair."""

from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions, row_of

TITLE = "Repair"
NUMBERS = {
    "scheme": ("rs:10,4", "lrc:10,6,5", "clay:9,3,11"),
    "lost": ("rep:3", "rs:4,2"),
    "drive_tb": (4, 8, 16),
    "mb_per_s": (100, 200, 400),
}
RUBRIC = (
    ("a scheme chosen for the given limits, with bytes and times", 4),
    ("one run that supports the choice and one that could have refuted it", 4),
    ("what the choice costs elsewhere", 2),
)


def read_ratio(need: dict[str, Any]) -> float:
    """Return the bytes read for each byte rebuilt."""
    return float(need["read_bytes"] / need["rebuilt_bytes"])


def questions(d: Given) -> Questions:
    """Questions; the lesson hands over `needs`, `timelines`, `rows` and `story`."""
    yield Question(
        "bytes read",
        f"How many bytes does {d.scheme} read for each byte that was lost?",
        lambda: read_ratio(d.needs[d.scheme]),
        unit="B/B",
        tolerance=0.02,
        hint="The table above; or derive it from the code's parameters.",
    )
    yield Question(
        "a share of each helper",
        "Clay(9,3,11): which share of each helper's shard does it read?",
        lambda: (
            100 * read_ratio(d.needs["clay:9,3,11"]) / d.needs["clay:9,3,11"]["helpers"]
        ),
        unit="%",
        tolerance=0.02,
        hint="1/(d − k + 1).",
        why="1/(d − k + 1), from d helpers instead of k.",
    )
    yield Question(
        "first to finish",
        "Which of the four rebuilds its shard of one object first? (as in SCHEMES)",
        lambda: min(d.timelines, key=lambda one: one.latency_ns).scheme,
        hint="The latencies just printed.",
    )
    yield Question(
        "what takes Clay's time",
        "Clay reads little. On what does it spend most of its time? (client, network, cpu, coding, ssd, "
        "pause, wait)",
        lambda: max(
            (
                clay := next(
                    one for one in d.timelines if one.scheme.startswith("clay")
                )
            ).latency_by_category_ns(),
            key=clay.latency_by_category_ns().__getitem__,
        ),
        hint="The line below the heading of Clay's timeline.",
        why="Bytes saved on the wire are paid for elsewhere.",
    )
    yield Question(
        "bytes to bring back",
        "How many times as many bytes as RS(10,4) has 3-replication to bring back for one object?",
        lambda: d.needs["rep:3"]["rebuilt_bytes"] / d.needs["rs:10,4"]["rebuilt_bytes"],
        tolerance=0.05,
        hint="A copy is the whole object.",
        why="A copy is the whole object, a shard a tenth of it.",
    )
    yield Question(
        "private bytes",
        "RS(6,2): how many bytes cross the private network of these 4 hosts for each byte lost?",
        lambda: float(
            row_of(d.rows, scheme="rs:6,2")["repair_private_net_bytes_per_lost_byte"]
        ),
        unit="B/B",
        hint="A column of the table.",
        why="Eight shards on four hosts: helpers beside the primary cross no wire. A real Ceph 16.2.15, "
        "where each OSD had a network address of its own, sent 6.14 with RS(6,3) (measured for this "
        "project).",
    )
    yield Question(
        "a drive by hand",
        f"A drive of {d.drive_tb} TB is rebuilt at {d.mb_per_s} MB/s. How long does it take?",
        lambda: d.drive_tb * 1e6 / d.mb_per_s / 3600,
        unit="h",
        tolerance=0.03,
        hint="Bytes over bytes per second; an hour has 3,600 s.",
    )
    yield Question(
        "noticing",
        f"{d.lost}: how many seconds pass between the loss of power and the first OSD marked down?",
        lambda: float(d.story[d.lost]["detection_s"]),
        unit="s",
        hint="Two events of the story.",
        why="A host without power says nothing: peers wait for a grace of heartbeats. Had only the process "
        "died, the refused connection would have shown it at once.",
    )
    yield Question(
        "before data moves",
        f"{d.lost}: from the failure until all is clean, which share passes before any data moves (noticing, "
        "and waiting until down becomes out)?",
        lambda: (
            100
            * (d.story[d.lost]["detection_s"] + d.story[d.lost]["down_out_s"])
            / d.story[d.lost]["failure_to_clean_s"]
        ),
        unit="%",
        hint="detection_s and down_out_s over failure_to_clean_s.",
        why="And the wait was cut to 15 s here; Ceph's default is 600 s. A code that repairs with fewer "
        "bytes shortens only the rest, which grows with what a drive holds.",
    )
