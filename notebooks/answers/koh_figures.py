"""Lesson 5: the figures of Koh et al."""

import itertools
import math
from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "The figures of Koh et al."
#: The block sizes of the paper [KiB].
SIZES_KIB = (1, 2, 4, 8, 16, 32, 64, 128)
NUMBERS = {
    "op": ("write", "read"),
    "sizes_kib": tuple(itertools.combinations(SIZES_KIB, 4)),
    "free": range(3, 12),
    "fitted": range(20, 60),
    "residual": range(40, 150),
    "guessed": range(20, 100),
    "lucky": range(5, 40),
    "k": range(4, 11),
    "m": (2, 3, 4),
    "size_kib": (1, 2, 3, 4, 6, 8),
}
RUBRIC = (
    ("the claim, with its place in the paper, role and tolerance", 2),
    ("three possible causes: in the paper, the model and the comparison", 4),
    ("a measurement or run that would decide between them", 4),
)


def throughput(rows: Any, scheme: str, op: str, pattern: str) -> float:
    """Return the mean throughput over the block sizes [MB/s]."""
    selected = rows.filter(
        (rows["scheme"] == scheme) & (rows["op"] == op) & (rows["pattern"] == pattern)
    )
    return sum(map(float, selected["throughput_bytes_per_s"])) / len(selected) / 1e6


def exceptions(parameters: dict[str, Any]) -> dict[str, float]:
    """Return the parameters fitted to a row of RS(6,3), by name."""
    return {
        name: float(number["value"])
        for name, number in parameters.items()
        if number["provenance"] == "fitted" and "RS(6,3)" in number["source"]
    }


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `claims`, `rows` and `coded`."""
    residual = d.residual / 10

    def excepted_ns() -> float:
        fitted = exceptions(d.coded.parameters)
        return sum(value for name, value in fitted.items() if name.endswith("_ns"))

    def held_out() -> int:
        return sum(claim.role == "held-out" for claim in d.claims.values())

    yield Question(
        "held out",
        f"Suppose that a bad model is right on a held-out row with a probability of {d.lucky} %. On how many "
        "of the paper's held-out numbers would it be right?",
        lambda: held_out() * d.lucky / 100,
        unit="rows",
        tolerance=0.01,
        hint="Count the roles just printed.",
        why=lambda _: (
            f"{held_out()} of {len(d.claims)} numbers are held out. On the contradicted ones, the paper "
            "disagrees with itself."
        ),
    )
    yield Question(
        "chance",
        f"A model guesses {d.guessed} held-out ratios at random between 0.1 and 10, uniformly on "
        "a logarithmic "
        "scale. How many are within 10 % by chance?",
        lambda: d.guessed * (math.log(1.1 / 0.9) / math.log(100)),
        tolerance=0.02,
        hint="Compare the interval from 0.9 to 1.1 times the true value with two decades, on a logarithmic "
        "scale.",
        why="Chance alone explains very few correct rows.",
    )
    yield Question(
        "copies over code",
        f"For sequential {d.op}s, by what factor is 3-replication faster than RS(10,4)? (Use means over the "
        "block sizes.)",
        lambda: (
            throughput(d.rows, "rep:3", d.op, "seq")
            / throughput(d.rows, "rs:10,4", d.op, "seq")
        ),
        tolerance=0.02,
        hint="`throughput(scheme, op, pattern)` is defined above.",
        why="There are fewer sizes than in the paper, so compare orders of magnitude, not digits.",
    )
    yield Question(
        "a published number",
        "How far is our mean sequential write throughput of RS(6,3) from the published value, in per cent of "
        "that value?",
        lambda: abs(
            100
            * (
                throughput(d.rows, "rs:6,3", "write", "seq")
                / float(d.claims["koh2017-041"].published_text)
                - 1
            )
        ),
        unit="%",
        tolerance=0.02,
        hint="Claim koh2017-041 holds the published value.",
        why="Our mean covers four sizes instead of eight. What else differs?",
    )
    yield Question(
        "random or sequential",
        "Averaged over these sizes, by what factor are random writes under RS(6,3) faster than sequential "
        "ones? (below 1: slower)",
        lambda: (
            throughput(d.rows, "rs:6,3", "write", "rand")
            / throughput(d.rows, "rs:6,3", "write", "seq")
        ),
        tolerance=0.02,
        hint="Call `throughput` twice.",
        why=lambda x: (
            "Lesson 3 explains it."
            if x > 1
            else "Large sequential writes fill many placement groups."
        ),
    )
    yield Question(
        "the exception",
        "One of the times in `cpu` (a name that ends in `_ns`) was fitted to a row of RS(6,3). What "
        "share of the latency of this write is it?",
        lambda: 100 * excepted_ns() / d.coded.latency_ns,
        unit="%",
        tolerance=0.01,
        hint="Find the parameter by its source, and divide its value by the latency. Both are in ns.",
        why=lambda _: (
            f"Fitted to rows of RS(6,3): {', '.join(exceptions(d.coded.parameters)) or 'none'}. No table "
            "counts these rows as held out."
        ),
    )
    yield Question(
        "too many parameters",
        f"A model with {d.free} free parameters was fitted by least squares to {d.fitted} "
        "numbers, and misses them "
        f"by {residual:g} % (root mean square). What error do you expect for one measurement, if the model "
        "is right and linear?",
        lambda: residual * math.sqrt(d.fitted / (d.fitted - d.free)),
        unit="%",
        tolerance=0.01,
        hint="Divide the sum of squares by the degrees of freedom, not by the count.",
        why=f"With {d.fitted} free parameters it would miss nothing, and that would mean nothing. "
        "Only held-out numbers count.",
    )
