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
    ("one run that supports the choice, and one that could have refuted it", 4),
    ("the cost of the choice elsewhere", 2),
)


def read_ratio(need: dict[str, Any]) -> float:
    """Return the bytes read for each byte rebuilt."""
    return float(need["read_bytes"] / need["rebuilt_bytes"])


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `needs`, `timelines`, `rows` and `story`."""
    yield Question(
        "bytes read",
        f"How many bytes does a repair under {d.scheme} read per lost byte?",
        lambda: read_ratio(d.needs[d.scheme]),
        unit="B/B",
        tolerance=0.02,
        hint="See the table above, or derive it from the parameters of the code.",
    )
    yield Question(
        "a share of each helper",
        "What share of each helper's shard does a repair under Clay(9,3,11) read?",
        lambda: (
            100 * read_ratio(d.needs["clay:9,3,11"]) / d.needs["clay:9,3,11"]["helpers"]
        ),
        unit="%",
        tolerance=0.02,
        hint="1/(d − k + 1).",
        why="It reads 1/(d − k + 1) from each of d helpers, instead of all of k helpers.",
    )
    yield Question(
        "first to finish",
        "Which of the four schemes rebuilds its shard first? (as in SCHEMES)",
        lambda: min(d.timelines, key=lambda one: one.latency_ns).scheme,
        hint="Compare the latencies just printed.",
    )
    yield Question(
        "what takes Clay's time",
        "Clay reads little. Which category takes most of its time? (client, network, cpu, coding, ssd, "
        "pause, wait)",
        lambda: max(
            (
                clay := next(
                    one for one in d.timelines if one.scheme.startswith("clay")
                )
            ).latency_by_category_ns(),
            key=clay.latency_by_category_ns().__getitem__,
        ),
        hint="See the line below the heading of Clay's timeline.",
        why="Clay pays elsewhere for the bytes that it saves on the wire.",
    )
    yield Question(
        "bytes to bring back",
        "To restore one object, how many times as many bytes does 3-replication rebuild as RS(10,4)?",
        lambda: d.needs["rep:3"]["rebuilt_bytes"] / d.needs["rs:10,4"]["rebuilt_bytes"],
        tolerance=0.05,
        hint="A replica holds the whole object.",
        why="A replica holds the whole object, and a shard holds a tenth of it.",
    )
    yield Question(
        "private bytes",
        "Under RS(6,2), how many bytes cross the private network of these 4 hosts per lost byte?",
        lambda: float(
            row_of(d.rows, scheme="rs:6,2")["repair_private_net_bytes_per_lost_byte"]
        ),
        unit="B/B",
        hint="The table has a column for it.",
        why="Eight shards are on four hosts, so helpers on the host of the primary need no network. "
        "A real Ceph "
        "16.2.15, with a separate network address for each OSD, sent 6.14 B/B under RS(6,3) (measured for "
        "this project).",
    )
    yield Question(
        "a drive by hand",
        f"A drive of {d.drive_tb} TB is rebuilt at {d.mb_per_s} MB/s. How long does it take?",
        lambda: d.drive_tb * 1e6 / d.mb_per_s / 3600,
        unit="h",
        tolerance=0.03,
        hint="Divide bytes by bytes per second. An hour has 3,600 s.",
    )
    yield Question(
        "noticing",
        f"Under {d.lost}, how many seconds pass between the loss of power and the first OSD marked down?",
        lambda: float(d.story[d.lost]["detection_s"]),
        unit="s",
        hint="Compare two events of the printed timeline.",
        why="A host without power is silent, so its peers wait for the heartbeat grace to pass. If only the "
        "process had died, the refused connection would have revealed it at once.",
    )
    yield Question(
        "before data moves",
        f"Under {d.lost}, what share of the time from failure to clean passes before any data moves "
        "(detection, "
        "and the down-out interval)?",
        lambda: (
            100
            * (d.story[d.lost]["detection_s"] + d.story[d.lost]["down_out_s"])
            / d.story[d.lost]["failure_to_clean_s"]
        ),
        unit="%",
        hint="Add `detection_s` and `down_out_s`, and divide by `failure_to_clean_s`.",
        why="This run shortened the down-out interval to 15 s, and Ceph's default is 600 s. A code "
        "that repairs "
        "with fewer bytes shortens only the rest, which grows with the amount of data per drive.",
    )
