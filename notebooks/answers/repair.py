"""Lesson 6: repair."""

from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions, row_of

TITLE = "Repair"
NUMBERS = {
    "rs": tuple(f"rs:{k},{m}" for k in range(5, 13) for m in (2, 3, 4)),
    "lrc": (
        "lrc:6,4,3",
        "lrc:8,4,4",
        "lrc:10,6,5",
        "lrc:12,4,6",
        "lrc:12,6,4",
        "lrc:16,6,8",
    ),
    "clay": (
        "clay:4,2,5",
        "clay:6,2,7",
        "clay:6,3,8",
        "clay:8,3,10",
        "clay:8,4,10",
        "clay:8,4,11",
        "clay:9,3,11",
        "clay:10,4,13",
    ),
    "lost_gb": range(110, 900, 10),
    "shard_mib": range(12, 200, 4),
    "objects": range(2000, 9001, 100),
    "drive_tb": range(4, 25),
    "mb_per_s": range(100, 401, 10),
    "held_tb": tuple(tenth / 10 for tenth in range(11, 90)),
    "lost": ("rep:3", "rs:4,2"),
    "grace_s": range(12, 29),
    "out_s": range(8, 21),
    "host": range(0, 8),
    "hidden_k": range(4, 13),
    "hidden_m": (3, 4, 5),
    "hidden_spare": (0, 1),
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
    clay_k, _, clay_d = (int(number) for number in d.clay.partition(":")[2].split(","))
    layers = clay_d - clay_k + 1
    hidden_d = d.hidden_k + d.hidden_m - 1 - d.hidden_spare
    hidden_layers = hidden_d - d.hidden_k + 1

    def clay_spent_ns() -> dict[str, int]:
        clay = next(one for one in d.timelines if one.scheme == d.clay)
        spent: dict[str, int] = clay.latency_by_category_ns()
        return spent

    def clay_without_coding_us() -> float:
        spent_ns = clay_spent_ns()
        return (sum(spent_ns.values()) - spent_ns["coding"]) / 1e3

    def clay_share(spent_ns: dict[str, int]) -> float:
        return 100 * max(spent_ns.values()) / sum(spent_ns.values())

    def latencies_ns() -> dict[str, int]:
        return {one.scheme: one.latency_ns for one in d.timelines}

    def story() -> dict[str, Any]:
        row: dict[str, Any] = d.story[d.lost]
        return row

    yield Question(
        "bytes read",
        f"An OSD held {d.lost_gb} GB of shards under {d.rs}. How many GB does their repair read?",
        lambda: d.lost_gb * read_ratio(d.needs[d.rs]),
        unit="GB",
        tolerance=0.01,
        hint="See the table above, or derive the bytes per lost byte from the parameters of the code.",
        why=lambda x: f"{x / d.lost_gb:.3g} B per lost byte.",
    )
    yield Question(
        "a share of each helper",
        f"How many MiB does each helper of {d.clay} read for the repair of a shard of {d.shard_mib} MiB?",
        lambda: d.shard_mib * read_ratio(d.needs[d.clay]) / d.needs[d.clay]["helpers"],
        unit="MiB",
        tolerance=0.02,
        hint="1/(d − k + 1) of its shard.",
        why=f"It reads 1/{layers} from each of {clay_d} helpers, instead of all of {clay_k} helpers.",
    )
    yield Question(
        "name the scheme",
        f"A pool spreads each object over {d.hidden_k + d.hidden_m} shards. To rebuild a lost "
        f"shard, {hidden_d} "
        f"helpers each read 1/{hidden_layers} of their own. Which scheme is it? (such as clay:9,3,11)",
        lambda: f"clay:{d.hidden_k},{d.hidden_m},{hidden_d}",
        hint="The share of a helper is 1/(d − k + 1), and k + m is the number of shards.",
        why=f"d = {hidden_d}, so k = d + 1 − {hidden_layers} = {d.hidden_k}, and m = {d.hidden_m}.",
    )
    yield Question(
        "first to finish",
        "By what factor is the fastest of the four repairs faster than the slowest?",
        lambda: max(latencies_ns().values()) / min(latencies_ns().values()),
        tolerance=0.02,
        hint="Compare the latencies just printed.",
        why=lambda _: (
            f"{min(latencies_ns(), key=latencies_ns().__getitem__)} is the first, and "
            f"{max(latencies_ns(), key=latencies_ns().__getitem__)} the last."
        ),
    )
    yield Question(
        "what takes Clay's time",
        f"{d.clay} reads less than {d.rs}. What share of its time does its largest category take?",
        lambda: clay_share(clay_spent_ns()),
        unit="%",
        tolerance=0.02,
        hint="Divide the largest of the times just printed by their sum.",
        why=lambda _: (
            f"It is {max(clay_spent_ns(), key=clay_spent_ns().__getitem__)}. Clay pays elsewhere "
            "for the bytes that it saves on the wire. Its arithmetic was timed with table look-ups in NumPy, "
            "and a vectorised kernel is many times faster. Without any coding it would still take "
            f"{clay_without_coding_us():,.0f} µs, and {d.rs} takes {latencies_ns()[d.rs] / 1e3:,.0f} µs."
        ),
    )
    yield Question(
        "bytes to bring back",
        f"A lost OSD held a replica or a shard of each of {d.objects:,} objects of 4 MiB. How "
        "many GB less does "
        f"{d.rs} rebuild than 3-replication?",
        lambda: (
            d.objects
            * (d.needs["rep:3"]["rebuilt_bytes"] - d.needs[d.rs]["rebuilt_bytes"])
            / 1e9
        ),
        unit="GB",
        tolerance=0.01,
        hint="A replica holds the whole object, and a shard a k-th of it. 4 MiB is 4,194,304 B.",
        why="The OSDs of a code hold more objects, though: shards are smaller.",
    )
    yield Question(
        "private bytes",
        f"The lost OSD of these 4 hosts held {d.held_tb:g} TB under RS(6,2). How many TB cross the private "
        "network until they are rebuilt?",
        lambda: (
            d.held_tb
            * float(
                row_of(d.rows, scheme="rs:6,2")[
                    "repair_private_net_bytes_per_lost_byte"
                ]
            )
        ),
        unit="TB",
        tolerance=0.02,
        hint="The table has a column for the bytes per lost byte.",
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
        tolerance=0.02,
        hint="Divide bytes by bytes per second. An hour has 3,600 s.",
    )
    yield Question(
        "noticing",
        f"Under {d.lost}, how many seconds pass between the loss of power and the first OSD marked down?",
        lambda: float(story()["detection_s"]),
        unit="s",
        tolerance=0.02,
        hint="Compare two events of the timeline, or take `detection_s` from `story`.",
        why="A host without power is silent, so its peers wait for the heartbeat grace of "
        f"{d.grace_s} s to pass. "
        "If only the process had died, the refused connection would have revealed it at once.",
    )
    yield Question(
        "before data moves",
        f"Under {d.lost}, what share of the time from failure to clean passes before the lost OSDs are "
        "marked out (detection, and the down-out interval)?",
        lambda: (
            100
            * (story()["detection_s"] + story()["down_out_s"])
            / story()["failure_to_clean_s"]
        ),
        unit="%",
        tolerance=0.02,
        hint="Add `detection_s` and `down_out_s`, and divide by `failure_to_clean_s`.",
        why=lambda _: (
            f"This run shortened the down-out interval from Ceph's default of 600 s to {d.out_s} s. The "
            f"monitor checks it every 5 s, so it lasted {story()['down_out_s']:.1f} s. A code that repairs "
            "with fewer bytes shortens only the rest, which grows with the amount of data per drive."
        ),
    )
