"""Lesson 5: the figures of Koh et al."""

import math
from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "The figures of Koh et al."
NUMBERS = {"op": ("write", "read"), "free": (4, 6, 10), "rows_": (20, 30, 50)}
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


def suspects(parameters: dict[str, Any]) -> list[str]:
    """List the parameters fitted to a row of RS(6,3)."""
    return [
        name.rpartition(".")[2]
        for name, number in parameters.items()
        if number["provenance"] == "fitted" and "RS(6,3)" in number["source"]
    ]


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `claims`, `rows` and `parameters`."""
    yield Question(
        "held out",
        "How many of the paper's numbers are held out?",
        lambda: sum(claim.role == "held-out" for claim in d.claims.values()),
        tolerance=0.0,
        hint="Count the roles just printed.",
        why=lambda _: (
            f"The list has {len(d.claims)}. On the contradicted ones, the paper disagrees with itself."
        ),
    )
    yield Question(
        "chance",
        f"A model guesses {d.rows_} held-out ratios at random between 0.1 and 10, uniformly on a logarithmic "
        "scale. How many are within 10 % by chance?",
        lambda: d.rows_ * (math.log(1.1 / 0.9) / math.log(100)),
        tolerance=0.1,
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
        hint="`throughput(rows, scheme, op, pattern)` is defined above.",
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
        tolerance=0.2,
        hint="Claim koh2017-041 holds the published value.",
        why="Our mean covers four sizes instead of eight. What else differs?",
    )
    yield Question(
        "random or sequential",
        "Averaged over these sizes, are random writes under RS(6,3) faster than sequential ones? "
        "(True or False)",
        lambda: (
            throughput(d.rows, "rs:6,3", "write", "rand")
            > throughput(d.rows, "rs:6,3", "write", "seq")
        ),
        hint="Call `throughput` twice.",
        why=lambda x: (
            "Lesson 3 explains it."
            if x
            else "Large sequential writes fill many placement groups."
        ),
    )
    yield Question(
        "the exception",
        "One parameter of `cpu` may have been fitted to a row of RS(6,3). Which one? (its name after "
        "the dot, or none)",
        lambda: (suspects(d.parameters) or ["none"])[0],
        hint="Read the sources just printed.",
        why=lambda x: (
            "All parameters keep to the rule."
            if x == "none"
            else "No table counts that row as held out any longer."
        ),
    )
    yield Question(
        "too many parameters",
        f"A model with {d.free} free parameters is fitted to {d.free} numbers. How large is its error on "
        "them, at best?",
        lambda: 0.0,
        unit="%",
        tolerance=0.0,
        hint="There are as many unknowns as equations.",
        why="It is zero, and that means nothing. Only held-out numbers count.",
    )
