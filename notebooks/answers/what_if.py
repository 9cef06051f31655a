"""Lesson 7: buying hardware."""

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Buying hardware"
NUMBERS = {
    "useless": ("twice the SSDs", "a 25 Gb/s public network"),
    "share": (40, 60, 80),
    "speedup": (2, 4),
    "size": ("4k", "8k"),
}
RUBRIC = (
    ("workload and budget stated, with prices and their source", 2),
    ("the gain of each purchase predicted from utilisations before the run", 4),
    ("the order of purchases justified by the runs, with the next bottleneck", 4),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `results`, `second`, `small`, `copies` and `best`."""

    def gain(name: str) -> float:
        return float(d.results[name]["iops"] / d.results["nothing"]["iops"])

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
        "the bottleneck",
        "Before any purchase, which resource limits this cluster? (a value of the column `bottleneck`)",
        lambda: d.results["nothing"]["bottleneck"],
        hint="See the first line of the table.",
    )
    yield Question(
        "the best purchase",
        "Which single purchase gains the most throughput? (a key of PURCHASES)",
        lambda: max(d.results, key=gain),
        hint="Compare the IOPS.",
        why=lambda x: f"{gain(x):.2f} times the throughput.",
    )
    yield Question(
        "money beside the bottleneck",
        f"And by what factor does “{d.useless}” raise the throughput?",
        lambda: gain(d.useless),
        tolerance=0.05,
        hint="Divide its IOPS by those of `nothing`.",
        why="Money spent anywhere but on the bottleneck is wasted.",
    )
    yield Question(
        "the second step",
        "By what factor does the best second step, bought or set, raise the throughput after the first?",
        lambda: (
            max(row["iops"] for row in d.second.values()) / d.second["nothing"]["iops"]
        ),
        hint="Divide the largest IOPS of the second table by its line `nothing`.",
        why=lambda _: (
            f"The best second step is “{max(d.second, key=lambda name: d.second[name]['iops'])}”."
        ),
    )
    yield Question(
        "another workload",
        f"Does the same purchase win with {d.size} writes? (True or False)",
        lambda: max(d.small, key=lambda name: d.small[name]["iops"]) == d.best,
        hint="Compare the two tables.",
        why=lambda _: (
            f"At {d.size} the best purchase is “{max(d.small, key=lambda name: d.small[name]['iops'])}”."
        ),
    )
    yield Question(
        "or copies",
        "Would 3-replication without any purchase beat RS(4,2) with the best purchase? (True or False)",
        lambda: bool(d.copies["iops"] > max(row["iops"] for row in d.results.values())),
        hint="Compare the last number printed with the best of the first table.",
        why="In any case it stores 3 bytes per byte instead of 1.5, and the drives for them are a "
        "purchase too.",
    )
