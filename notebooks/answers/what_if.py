"""Lesson 7: buying hardware."""

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Buying hardware"
NUMBERS = {
    "share": range(30, 86),
    "speedup": range(2, 9),
    "hosts": range(6, 10),
    "queue": range(96, 161, 4),
    "block_kib": range(192, 321, 8),
    "price_keur": range(10, 60),
    "size": ("4k", "8k", "12k", "16k"),
}
RUBRIC = (
    ("workload and budget stated, with prices and their source", 2),
    ("the gain of each purchase predicted from utilisations before the run", 4),
    ("the order of purchases justified by the runs, with the next bottleneck", 4),
)

PRIVATE_BYTES_PER_S = 125e6
PUBLIC_25_GBIT_BYTES_PER_S = 3.125e9


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `results`, `second`, `small`, `copies` and `best`."""
    block_bytes = d.block_kib * 1024

    def gained() -> float:
        most = max(row["iops"] for row in d.results.values())
        return float(most - d.results["nothing"]["iops"])

    yield Question(
        "Amdahl",
        f"A request spends {d.share} % of its time on the network. If the network were {d.speedup} times as "
        "fast, by what factor would the request be faster?",
        lambda: 1 / (1 - d.share / 100 + d.share / 100 / d.speedup),
        tolerance=0.02,
        hint="Add the unchanged part and the shortened part on the network.",
        why="Amdahl's law: the unchanged part limits the gain.",
    )
    yield Question(
        "the bottleneck by hand",
        f"Five of the six shards of a {d.block_kib} KiB write under RS(4,2) cross the private "
        "network. How many "
        f"writes per second can the {d.hosts} hosts send and receive at most, at 1 Gb/s each?",
        lambda: d.hosts * PRIVATE_BYTES_PER_S / (1.25 * block_bytes),
        unit="writes/s",
        tolerance=0.02,
        hint="A shard is a quarter of the block. 1 Gb/s is 125 MB/s.",
        why=lambda x: (
            f"The simulation gives {d.results['nothing']['iops']:,.0f}, "
            f"{100 * d.results['nothing']['iops'] / x:.0f} % of "
            f"it, and names {d.results['nothing']['bottleneck']}. A bound by hand is an upper "
            "limit: messages "
            "have headers, and the hosts are not equally busy at every moment."
        ),
    )
    yield Question(
        "the best purchase",
        f"The purchase that gains the most costs {d.price_keur},000 €. What does it cost per "
        "additional write "
        "per second?",
        lambda: d.price_keur * 1000 / gained(),
        unit="€",
        tolerance=0.02,
        hint="Subtract the IOPS of `nothing` from the largest.",
        why=lambda _: (
            f"{max(d.results, key=lambda name: d.results[name]['iops'])}: {gained():,.0f} more writes/s."
        ),
    )
    yield Question(
        "money beside the bottleneck",
        "After the purchase of a 25 Gb/s public network, what share of the capacity into the hosts do the "
        "clients' bytes use?",
        lambda: (
            100
            * d.results["a 25 Gb/s public network"]["iops"]
            * block_bytes
            / (d.hosts * PUBLIC_25_GBIT_BYTES_PER_S)
        ),
        unit="%",
        tolerance=0.02,
        hint="IOPS × block size, divided by 3.125 GB/s per host.",
        why="Money spent anywhere but on the bottleneck is wasted.",
    )
    yield Question(
        "the second step",
        "How many writes per second does the best second step, bought or set, add after the first?",
        lambda: (
            max(row["iops"] for row in d.second.values()) - d.second["nothing"]["iops"]
        ),
        unit="writes/s",
        tolerance=0.02,
        hint="Subtract the line `nothing` from the largest IOPS of the second table.",
        why=lambda _: (
            f"The best second step is “{max(d.second, key=lambda name: d.second[name]['iops'])}”."
        ),
    )
    yield Question(
        "another workload",
        f"With {d.size} writes, how many writes per second does the purchase add that is best for *them*?",
        lambda: (
            max(row["iops"] for row in d.small.values()) - d.small["nothing"]["iops"]
        ),
        unit="writes/s",
        tolerance=0.02,
        hint="Subtract the line `nothing` from the largest IOPS of the last table.",
        why=lambda _: (
            f"At {d.size} the best purchase is "
            f"“{max(d.small, key=lambda name: d.small[name]['iops'])}”, and for "
            f"large writes it was “{d.best}”."
        ),
    )
    yield Question(
        "or copies",
        "How many writes per second does RS(4,2) with the best purchase complete more than 3-replication "
        "without any? (negative: fewer)",
        lambda: (
            max(row["iops"] for row in d.results.values()) - float(d.copies["iops"])
        ),
        unit="writes/s",
        tolerance=0.02,
        hint="Compare the last number printed with the best of the first table.",
        why="In any case 3-replication stores 3 bytes per byte instead of 1.5, and the drives for them are a "
        "purchase too.",
    )
