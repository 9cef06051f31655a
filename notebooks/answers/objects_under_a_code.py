"""Lesson 14: objects under a code."""

from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Objects under a code"
NUMBERS = {
    "k": range(4, 11),
    "m": (2, 3),
    "unit_kib": (8, 16, 32),
    "size_kib": range(20, 400, 4),
    "other_k": range(6, 19),
    "other_m": (2, 3, 4),
    "other_unit_kib": (8, 16, 24, 32, 40),
    "large_mib": range(9, 33),
    "small_percent": range(80, 100),
    "small_kib": range(4, 17, 4),
    "osds": range(24, 97, 4),
    "per_osd": range(1000, 9001, 250),
    "head_k": (5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20),
    "head_unit_kib": (4, 12, 20, 28, 36, 44),
    "gib_per_s": range(10, 90),
    "hidden_k": range(4, 15),
    "hidden_m": (2, 3, 4),
    "hidden_unit_kib": (4, 8, 16, 32),
}
RUBRIC = (
    ("the sizes of objects as a histogram, from a real bucket or with a reason", 3),
    ("space under two schemes and two stripe units, computed and simulated", 4),
    ("a recommendation that weighs space, requests and failures", 3),
)
_PAGE_KIB = 4
_CHUNK_BYTES = 4 << 20


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `coded`, a PUT, and `got`, a GET."""
    yield from _about_space(d)
    yield from _about_requests(d)


def _about_space(d: Given) -> Questions:
    """Return the questions about the space of objects."""
    code = f"RS({d.k},{d.m})"
    other = f"RS({d.other_k},{d.other_m})"
    yield Question(
        "space in a classic pool",
        f"A classic pool of {code} has stripe units of {d.unit_kib} KiB. How many KiB do the drives "
        f"hold for an object of {d.size_kib} KiB?",
        lambda: _classic_kib(d.size_kib, d),
        unit="KiB",
        tolerance=0.001,
        hint="Count stripes, the last one padded. Each has k + m units.",
        why=lambda _: (
            f"{_stripes(d.size_kib, d)} × {d.k + d.m} units of {d.unit_kib} KiB."
        ),
    )
    yield Question(
        "space in an optimised pool",
        "How many KiB is it in an optimised pool with the same units?",
        lambda: _optimised_kib(d.size_kib, d),
        unit="KiB",
        tolerance=0.001,
        hint="Only the last stripe differs: shards without data store nothing there, and a parity is as "
        "long as the longest chunk. All is rounded up to 4 KiB.",
        why=lambda stored: (
            f"Padding costs {_classic_kib(d.size_kib, d) - int(stored)} KiB less than in a classic pool."
        ),
    )
    yield Question(
        "as much as copies",
        f"A classic pool of {other} has units of {d.other_unit_kib} KiB. An object in one stripe takes "
        "as much space as three copies of it. How large is the object?",
        lambda: (d.other_k + d.other_m) * d.other_unit_kib / 3,
        unit="KiB",
        tolerance=0.001,
        hint="A stripe takes (k + m) × unit, whatever it holds. Neglect the rounding of the copies.",
        why="Smaller objects take more space under the code than in three copies.",
    )
    yield Question(
        "space of a mix",
        f"{d.small_percent} % of the objects in the first pool have {d.small_kib} KiB, the others "
        f"{d.large_mib} MiB. How many bytes do the drives hold for a byte of the objects?",
        lambda: _mean_stored_kib(d) / _mean_kib(d),
        unit="B/B",
        tolerance=0.005,
        hint="Divide the mean space by the mean size.",
        why=lambda _: (
            f"The code alone takes {(d.k + d.m) / d.k:.3f}. Most objects are small, but most bytes "
            "are in large ones."
        ),
    )
    yield Question(
        "space of the small ones",
        "And what share of the space do the small objects take?",
        lambda: d.small_percent * _classic_kib(d.small_kib, d) / _mean_stored_kib(d),
        unit="%",
        tolerance=0.02,
        hint="Their part of the number times their space, over the mean space.",
        why=lambda _: (
            f"They are {d.small_percent * d.small_kib / _mean_kib(d):.2g} % of the bytes."
        ),
    )
    yield Question(
        "the head",
        f"A classic pool of RS({d.head_k},2) has units of {d.head_unit_kib} KiB. How many bytes of a "
        "large object are in its head?",
        lambda: _head_bytes(d),
        unit="B",
        tolerance=0,
        hint="At most 4 MiB, in whole stripes.",
        why=lambda head: (
            f"{int(head) // (d.head_k * d.head_unit_kib * 1024)} stripes. So each RADOS object of a "
            "large object ends with a full stripe, except the last."
        ),
    )


def _about_requests(d: Given) -> Questions:
    """Return the questions about requests, and the one that asks backwards."""
    code = f"RS({d.k},{d.m})"
    other = f"RS({d.other_k},{d.other_m})"
    hidden_shards = d.hidden_k + d.hidden_m
    yield Question(
        "transactions",
        f"A small PUT to a classic pool of {other}: how many transactions do the OSDs commit, with those "
        "of the index on three replicas each?",
        lambda: _transactions(d),
        unit="transactions",
        tolerance=0,
        hint="Two updates of the index. The head is written on each shard, and each shard rolls forward "
        "once all have committed.",
        why=lambda _: (
            f"2 × 3 for the index and 2 × {d.other_k + d.other_m} for the head. Three copies: 9."
        ),
    )
    yield Question(
        "PUTs that drives can commit",
        f"{d.osds} OSDs commit {d.per_osd:,} transactions a second each. How many such PUTs a second is "
        "that at most?",
        lambda: d.osds * d.per_osd / _transactions(d),
        unit="1/s",
        tolerance=0.005,
        hint="All transactions over those of one PUT.",
        why=lambda rate: (
            f"With three copies it would be {rate * _transactions(d) / 9:,.0f}."
        ),
    )
    yield Question(
        "the index",
        f"For what share of the latency does the PUT of {d.size_kib} KiB to {code} wait for the bucket "
        "index?",
        lambda: 100 * _spent_ns(d.coded)["bucket index"] / d.coded.latency_ns,
        unit="%",
        tolerance=0.01,
        hint="Call spent_ns for this PUT.",
        why="Only the first update delays the reply. The second one follows it.",
    )
    yield Question(
        "requests in flight",
        f"Your clients want {d.gib_per_s} GiB/s of GETs of {d.large_mib} MiB. How many must be in flight "
        "at least, if none waits for another?",
        lambda: d.gib_per_s * 1024 / d.large_mib * d.got.latency_ns / 1e9,
        unit="requests",
        tolerance=0.01,
        hint="Little's law: rate × latency.",
        why=lambda _: (
            f"{100 * _spent_ns(d.got)['client'] / d.got.latency_ns:.0f} % of the latency is spent at the "
            "client, which takes its time for each byte."
        ),
    )
    yield Question(
        "name the code",
        f"In a classic pool with units of {d.hidden_unit_kib} KiB, an object of 1 B takes "
        f"{hidden_shards * d.hidden_unit_kib} KiB. It still does with "
        f"{d.hidden_k * d.hidden_unit_kib} KiB, but a byte more doubles it. Which scheme is it, such as "
        "rs:6,3?",
        lambda: f"rs:{d.hidden_k},{d.hidden_m}",
        hint="The first number counts shards, the second one those with data.",
        why=f"{hidden_shards} units are a stripe, {d.hidden_k} of them hold data.",
    )


def _classic_kib(size_kib: int, d: Given) -> int:
    """Return the space of an object in a classic pool [KiB]."""
    return int(_stripes(size_kib, d) * (d.k + d.m) * d.unit_kib)


def _mean_stored_kib(d: Given) -> float:
    """Return the mean space of the objects of a mix [KiB]."""
    small = d.small_percent / 100
    large = (1 - small) * _classic_kib(d.large_mib * 1024, d)
    return float(small * _classic_kib(d.small_kib, d) + large)


def _mean_kib(d: Given) -> float:
    """Return the mean size of the objects of a mix [KiB]."""
    small = d.small_percent / 100
    return float(small * d.small_kib + (1 - small) * d.large_mib * 1024)


def _transactions(d: Given) -> int:
    """Return the transactions of a small PUT to a coded pool [count]."""
    return int(6 + 2 * (d.other_k + d.other_m))


def _stripes(size_kib: int, d: Given) -> int:
    """Return the stripes of an object."""
    return int(-(-size_kib // (d.k * d.unit_kib)))


def _optimised_kib(size_kib: int, d: Given) -> int:
    """Return the space of an object in an optimised pool [KiB]."""
    full, rest_kib = divmod(size_kib, d.k * d.unit_kib)
    data_kib = -(-rest_kib // _PAGE_KIB) * _PAGE_KIB
    parity_kib = min(data_kib, d.unit_kib)
    return int(full * (d.k + d.m) * d.unit_kib + data_kib + d.m * parity_kib)


def _head_bytes(d: Given) -> int:
    stripe_bytes = d.head_k * d.head_unit_kib * 1024
    return int(_CHUNK_BYTES // stripe_bytes * stripe_bytes)


def _spent_ns(timeline: Any) -> dict[str, int]:
    """Return the time on the critical path by lane [ns]."""
    spent_ns: dict[str, int] = {}
    for index in timeline.path:
        entry = timeline.steps[index]
        own_ns = entry.step.wait_ns + entry.step.duration_ns
        spent_ns[entry.lane] = spent_ns.get(entry.lane, 0) + own_ns
    return spent_ns
