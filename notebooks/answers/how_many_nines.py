"""Lesson 11: durability in nines."""

import math

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Durability in nines"
NUMBERS = {
    "drives": (100, 1000, 5000),
    "afr_percent": (1, 2, 4),
    "scheme": ("rep:3", "rs:4,2"),
}
RUBRIC = (
    ("the system and its assumptions, each with a source", 3),
    ("the nines by two methods, and the reason for their difference", 4),
    ("an effect that the model omits and that could decide in practice", 3),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `nines` and the results of its runs."""
    yield Question(
        "failures a year",
        f"How many of {d.drives:,} drives with an annual failure rate of {d.afr_percent} % fail in a year?",
        lambda: d.drives * d.afr_percent / 100,
        tolerance=0.05,
        hint="The annual failure rate is the share that fails in a year.",
        why="Failure is the normal state of a large cluster.",
    )
    yield Question(
        "nines in words",
        "A system has 11 nines per year. After how many years do you expect one loss?",
        lambda: 1e11,
        unit="years",
        tolerance=0.01,
        hint="With n nines, the probability of a loss in a year is 10⁻ⁿ.",
        why="That exceeds the age of the universe. So the number tells nothing about causes that the "
        "model omits.",
    )
    yield Question(
        "one more parity",
        "How many nines does RS(4,3) gain over RS(4,2) here?",
        lambda: d.nines["rs:4,3"] - d.nines["rs:4,2"],
        unit="nines",
        hint="Subtract two lines of the table.",
        why="One more failure has to happen during a rebuild.",
    )
    yield Question(
        "twice the speed, by hand",
        "A code survives 2 losses. If rebuilds were twice as fast, by roughly what factor would data loss be "
        "rarer?",
        lambda: 4.0,
        tolerance=0.05,
        hint="Data loss needs a second failure during a rebuild, and a third during the next.",
        why="The second and the third failure both have to happen in a window half as long.",
    )
    yield Question(
        "ten times the speed",
        "How many nines does RS(4,2) gain if rebuilds are ten times as fast?",
        lambda: d.fast - d.slow,
        unit="nines",
        hint="Subtract the two numbers printed.",
        why=lambda _: (
            "It gains about 2·log₁₀ 10 = 2. The detection time does not shrink, which costs "
            f"{2 - (d.fast - d.slow):.2f}."
        ),
    )
    yield Question(
        "chain and simulation",
        "Does the simulation's 95 % interval contain the chain's answer? (True or False)",
        lambda: bool(d.simulated["nines_low"] <= d.chain <= d.simulated["nines_high"]),
        hint="Compare the printed interval with the exact number.",
        why="It should in 19 of 20 cases.",
    )
    yield Question(
        "a burst",
        "How many nines remain if three random drives lose their data at once every ten years?",
        lambda: float(d.burst),
        unit="nines",
        hint="See the last number printed.",
        why="A single correlated event can outweigh all independent failures. That is why placement spreads "
        "shards over racks, and why backups exist.",
    )
    yield Question(
        "a hundred clusters",
        "You run 100 clusters with 9 nines each. How many nines has the probability that none of them loses "
        "data in a year?",
        lambda: -math.log10(1 - (1 - 1e-9) ** 100),
        unit="nines",
        tolerance=0.02,
        hint="Probabilities of rare events add.",
    )
