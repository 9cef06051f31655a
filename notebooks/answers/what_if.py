"""Lesson 7: what if."""

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "What if"
NUMBERS = {
    "useless": ("twice the SSDs", "a 25 Gb/s public network"),
    "share": (40, 60, 80),
    "speedup": (2, 4),
    "size": ("4k", "8k"),
}
RUBRIC = (
    ("workload and budget stated, with prices and their source", 2),
    ("gain of each purchase predicted from limits before the run", 4),
    ("order of purchases justified by the runs, with the next bottleneck", 4),
)


def questions(d: Given) -> Questions:
    """Questions; the lesson hands over `results`, `second`, `small`, `copies` and `best`."""

    def gain(name: str) -> float:
        return float(d.results[name]["iops"] / d.results["nothing"]["iops"])

    yield Question(
        "Amdahl",
        f"A request spends {d.share} % of its time on the network. If the network were {d.speedup} times as "
        "fast, by which factor would the request be faster?",
        lambda: 1 / (1 - d.share / 100 + d.share / 100 / d.speedup),
        tolerance=0.02,
        hint="What remains is the other part, unchanged, and a shorter part on the network.",
        why="Amdahl's law: what is not on the path that you shorten stays.",
    )
    yield Question(
        "the bottleneck",
        "Before any purchase: which resource limits this cluster? (a word of the column `bottleneck`)",
        lambda: d.results["nothing"]["bottleneck"],
        hint="The first line of the table.",
    )
    yield Question(
        "the best purchase",
        "Which single purchase brings the most throughput? (a key of PURCHASES)",
        lambda: max(d.results, key=gain),
        hint="Compare the IOPS.",
        why=lambda x: f"{gain(x):.2f} times the throughput.",
    )
    yield Question(
        "money beside the bottleneck",
        f"And by which factor does “{d.useless}” raise the throughput?",
        lambda: gain(d.useless),
        tolerance=0.05,
        hint="Its IOPS over those of `nothing`.",
        why="Money spent beside the bottleneck is lost.",
    )
    yield Question(
        "the second step",
        "By which factor does the best second step, bought or set, raise what the first one gave?",
        lambda: (
            max(row["iops"] for row in d.second.values()) / d.second["nothing"]["iops"]
        ),
        hint="The largest IOPS of the second table over its line `nothing`.",
        why=lambda _: (
            f"With “{max(d.second, key=lambda name: d.second[name]['iops'])}”."
        ),
    )
    yield Question(
        "another workload",
        f"With writes of {d.size}: does the same purchase win? (True or False)",
        lambda: max(d.small, key=lambda name: d.small[name]["iops"]) == d.best,
        hint="Compare the two tables.",
        why=lambda _: (
            f"At {d.size} it is “{max(d.small, key=lambda name: d.small[name]['iops'])}”."
        ),
    )
    yield Question(
        "or copies",
        "Would 3-replication, without buying anything, beat RS(4,2) with the best purchase? (True or False)",
        lambda: bool(d.copies["iops"] > max(row["iops"] for row in d.results.values())),
        hint="The last number printed, and the best of the first table.",
        why="In any case it stores 3 bytes per byte instead of 1.5: the drives it needs are a purchase, too.",
    )
