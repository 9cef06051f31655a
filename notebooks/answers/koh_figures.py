"""Lesson 5: the figures of Koh et al."""

import math
from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "The figures of Koh et al."
NUMBERS = {"op": ("write", "read"), "free": (4, 6, 10), "rows_": (20, 30, 50)}
RUBRIC = (
    ("the claim, its place in the paper, its role and tolerance", 2),
    ("three possible causes: the paper, the model, the comparison", 4),
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
    """Questions; the lesson hands over `claims`, `rows` and `parameters`."""
    yield Question(
        "held out",
        "How many of the paper's numbers are held out?",
        lambda: sum(claim.role == "held-out" for claim in d.claims.values()),
        tolerance=0.0,
        hint="Count the roles just printed.",
        why=lambda _: (
            f"Of {len(d.claims)}. On the contradicted ones the paper disagrees with itself."
        ),
    )
    yield Question(
        "chance",
        f"A model guesses each of {d.rows_} held-out ratios between 0.1 and 10 at random, evenly on a "
        "logarithmic scale. How many are within 10 % by chance?",
        lambda: d.rows_ * (math.log(1.1 / 0.9) / math.log(100)),
        tolerance=0.1,
        hint="The share of the interval from 0.9 to 1.1 times the truth, on a logarithmic scale of two "
        "decades.",
        why="Chance alone explains very few right rows.",
    )
    yield Question(
        "copies over code",
        f"Sequential {d.op}s: by which factor is 3-replication ahead of RS(10,4) (means over the block "
        "sizes)?",
        lambda: (
            throughput(d.rows, "rep:3", d.op, "seq")
            / throughput(d.rows, "rs:10,4", d.op, "seq")
        ),
        hint="`throughput(rows, scheme, op, pattern)` is defined above.",
        why="Fewer sizes than in the paper: compare orders of magnitude, not digits.",
    )
    yield Question(
        "a published number",
        "Mean sequential write throughput of RS(6,3): how far off are we, in per cent of the published "
        "value?",
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
        why="Over four sizes instead of eight. What else differs?",
    )
    yield Question(
        "random or sequential",
        "Do random writes of RS(6,3) beat its sequential ones on average over these sizes? (True or False)",
        lambda: (
            throughput(d.rows, "rs:6,3", "write", "rand")
            > throughput(d.rows, "rs:6,3", "write", "seq")
        ),
        hint="Two calls of `throughput`.",
        why=lambda x: (
            "Lesson 3 says why."
            if x
            else "Large sequential writes fill many placement groups."
        ),
    )
    yield Question(
        "the exception",
        "Which parameter of `cpu` was fitted to a row of RS(6,3) itself? (its name after the dot, or none)",
        lambda: (suspects(d.parameters) or ["none"])[0],
        hint="Read the sources just printed.",
        why=lambda x: (
            "All keep to the rule."
            if x == "none"
            else "That row no longer counts as held out, in any table."
        ),
    )
    yield Question(
        "too many parameters",
        f"A model with {d.free} free parameters is fitted to {d.free} numbers. How large is its error on "
        "them, at best?",
        lambda: 0.0,
        unit="%",
        tolerance=0.0,
        hint="As many unknowns as equations.",
        why="None, and it means nothing. Only numbers that the fit has not seen count.",
    )
