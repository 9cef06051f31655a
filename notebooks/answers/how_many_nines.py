"""Lesson 11: durability in nines."""

import math

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Durability in nines"
NUMBERS = {
    "drives": range(200, 5001, 100),
    "afr_permille": range(10, 41),
    "exponent": range(7, 13),
    "sold": range(110, 1000, 10),
    "losses": (2, 3, 4),
    "speed_percent": range(130, 301, 5),
    "system_drives": range(84, 421, 42),
    "repair_mb": range(60, 201, 10),
    "faster": range(4, 21),
    "event_years": range(5, 31),
    "clusters": range(20, 500, 10),
    "nines_each": range(6, 11),
}
RUBRIC = (
    ("the system and its assumptions, each with a source", 3),
    ("the nines by two methods, and the reason for their difference", 4),
    ("an effect that the model omits and that could decide in practice", 3),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `nines` and the results of its runs."""
    speed = d.speed_percent / 100
    yield Question(
        "failures a year",
        f"How many of {d.drives:,} drives with an annual failure rate of {d.afr_permille / 10:g} "
        "% fail in a year?",
        lambda: d.drives * d.afr_permille / 1000,
        tolerance=0.02,
        hint="The annual failure rate is the share that fails in a year.",
        why="Failure is the normal state of a large cluster.",
    )
    yield Question(
        "nines in words",
        f"{d.sold} customers run systems with {d.exponent} nines per year each. After how many "
        "years do you expect "
        "one loss among all of them?",
        lambda: 10.0**d.exponent / d.sold,
        unit="years",
        tolerance=0.01,
        hint="With n nines, the probability of a loss in a year is 10⁻ⁿ.",
        why="Such a time exceeds all experience. So the number tells nothing about causes that "
        "the model omits.",
    )
    yield Question(
        "one more parity",
        "By what factor is data loss rarer under RS(4,3) than under RS(4,2) here?",
        lambda: 10 ** (d.nines["rs:4,3"] - d.nines["rs:4,2"]),
        tolerance=0.05,
        hint="10 to the power of the difference in nines.",
        why="One more failure has to happen during a rebuild.",
    )
    yield Question(
        "more speed, by hand",
        f"A code survives {d.losses} losses. If rebuilds were {speed:g} times as fast, by roughly "
        "what factor would "
        "data loss be rarer?",
        lambda: speed**d.losses,
        tolerance=0.02,
        hint="Data loss needs a second failure during a rebuild, then a third, and so on.",
        why=f"Each of the {d.losses} further failures has to happen in a window that is shorter "
        "by this factor.",
    )
    yield Question(
        "a faster rebuild",
        f"By what factor is data loss rarer under RS(4,2) if rebuilds are {d.faster} times as fast?",
        lambda: 10 ** (d.fast - d.slow),
        tolerance=0.03,
        hint="10 to the power of the difference of the two numbers printed.",
        why=lambda _: (
            f"The square of {d.faster} is {d.faster**2}. The detection time does not shrink, so "
            "the factor is "
            "smaller."
        ),
    )
    yield Question(
        "chain and simulation",
        "By the lower end of the simulation's 95 % interval, after how many years do you expect one loss? "
        "And does the interval contain the chain's answer?",
        lambda: 10 ** d.simulated["nines_low"],
        unit="years",
        tolerance=0.03,
        hint="With n nines, the probability of a loss in a year is 10⁻ⁿ.",
        why=lambda _: (
            "It contains the exact answer, as it should in 19 of 20 cases."
            if d.simulated["nines_low"] <= d.chain <= d.simulated["nines_high"]
            else "It misses the exact answer, as it should in 1 of 20 cases."
        ),
    )
    yield Question(
        "a burst",
        f"With three random drives lost at once every {d.event_years} years, after how many years "
        "do you expect one "
        "loss of data?",
        lambda: 10.0 ** float(d.burst),
        unit="years",
        tolerance=0.03,
        hint="With n nines, the probability of a loss in a year is 10⁻ⁿ. The nines are printed last.",
        why="A single correlated event can outweigh all independent failures. That is why placement spreads "
        "shards over racks, and why backups exist.",
    )
    yield Question(
        "a hundred clusters",
        f"You run {d.clusters} clusters with {d.nines_each} nines each. How many nines has the "
        "probability that none "
        "of them loses data in a year?",
        lambda: d.nines_each - math.log10(d.clusters),
        unit="nines",
        tolerance=0.01,
        hint="Probabilities of rare events add.",
        why=f"The probability of a loss is {d.clusters} times as large: {d.nines_each} − log₁₀ {d.clusters}.",
    )
