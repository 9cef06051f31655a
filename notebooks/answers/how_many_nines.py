"""Lesson 11: how many nines."""

import math

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "How many nines"
NUMBERS = {
    "drives": (100, 1000, 5000),
    "afr_percent": (1, 2, 4),
    "scheme": ("rep:3", "rs:4,2"),
}
RUBRIC = (
    ("the system and its assumptions, each with a source", 3),
    ("nines from two methods, and why they differ", 4),
    ("what the model leaves out that could decide in practice", 3),
)


def questions(d: Given) -> Questions:
    """Questions; the lesson hands over `nines`, `slow`, `fast`, `burst` and `simulated`."""
    yield Question(
        "failures a year",
        f"{d.drives:,} drives with an annual failure rate of {d.afr_percent} %: how many fail in a year?",
        lambda: d.drives * d.afr_percent / 100,
        tolerance=0.05,
        hint="The annual failure rate is the share that fails in a year.",
        why="Failure is the normal state of a large cluster.",
    )
    yield Question(
        "nines in words",
        "11 nines a year: in how many years is one loss expected, if every year is like that?",
        lambda: 1e11,
        unit="years",
        tolerance=0.01,
        hint="n nines: a loss with probability 10⁻ⁿ in a year.",
        why="Older than the universe; so the number says nothing about the causes that it leaves out.",
    )
    yield Question(
        "one more parity",
        "By how many nines is RS(4,3) ahead of RS(4,2) here?",
        lambda: d.nines["rs:4,3"] - d.nines["rs:4,2"],
        unit="nines",
        hint="Two lines of the table.",
        why="One more failure has to fall into the time of a rebuild.",
    )
    yield Question(
        "twice the speed, by hand",
        "A code that survives 2 losses: if rebuilds were twice as fast, by which factor would loss be "
        "rarer, roughly?",
        lambda: 4.0,
        tolerance=0.05,
        hint="Loss needs a second failure during a rebuild, and a third during the next.",
        why="A second and a third failure both have to fall into a window half as long.",
    )
    yield Question(
        "ten times the speed",
        "RS(4,2): how many nines does a rebuild at ten times the speed add?",
        lambda: d.fast - d.slow,
        unit="nines",
        hint="The difference of the two numbers printed.",
        why=lambda _: (
            f"About 2·log₁₀ 10 = 2; detection time does not shrink, which costs {2 - (d.fast - d.slow):.2f}."
        ),
    )
    yield Question(
        "chain and simulation",
        "Does the simulation's 95 % interval contain the chain's answer? (True or False)",
        lambda: bool(d.simulated["nines_low"] <= d.chain <= d.simulated["nines_high"]),
        hint="Compare the printed interval with the exact number.",
        why="In 19 of 20 cases it should.",
    )
    yield Question(
        "a burst",
        "And how many nines are left if once in ten years three random drives lose their data at once?",
        lambda: float(d.burst),
        unit="nines",
        hint="The last number printed.",
        why="A single correlated event can outweigh all independent failures. That is why placement spreads "
        "shards over racks, and why backups exist.",
    )
    yield Question(
        "a hundred clusters",
        "You run 100 such clusters of 9 nines each. The probability that none loses data in a year has "
        "how many nines?",
        lambda: -math.log10(1 - (1 - 1e-9) ** 100),
        unit="nines",
        tolerance=0.02,
        hint="Probabilities of rare events add.",
    )
