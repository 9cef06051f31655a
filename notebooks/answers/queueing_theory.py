"""Lesson 8: queueing theory against the simulator."""

import math

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Queueing theory"
NUMBERS = {
    "load": (0.5, 0.6, 0.7),
    "servers": (2, 4, 8),
    "shards": (3, 9, 14),
    "percentile": (90, 95, 99),
}
RUBRIC = (
    ("the formula, its assumptions, and the system it is applied to", 3),
    ("simulation and formula compared with a standard error", 4),
    ("the assumption that breaks, shown by a run", 3),
)


def erlang_c_wait(servers: int, load: float) -> float:
    """Return the mean wait of M/M/c in mean service times (Erlang C)."""
    offered = servers * load
    waiting = offered**servers / math.factorial(servers) / (1 - load)
    chance = waiting / (
        sum(offered**n / math.factorial(n) for n in range(servers)) + waiting
    )
    return chance / (servers * (1 - load))


def questions(d: Given) -> Questions:
    """Questions; the lesson hands over times in mean service times."""

    def error() -> float:
        return float(d.times.reshape(50, -1).mean(axis=1).std(ddof=1) / math.sqrt(50))

    yield Question(
        "M/M/1",
        f"M/M/1 at a load of {d.load}: mean time in the system, by theory, in service times?",
        lambda: 1 / (1 - d.load),
        tolerance=0.01,
        hint="1/(1 − ρ).",
        why=lambda _: (
            f"The simulation of {len(d.times):,} requests says {d.times.mean():.3f}."
        ),
    )
    yield Question(
        "standard errors",
        "How many standard errors lie between simulation and theory?",
        lambda: abs(d.times.mean() - 1 / (1 - d.load)) / error(),
        tolerance=0.1,
        hint="The standard error is the spread of the 50 batch means, over √50.",
        why=lambda x: (
            "Chance explains it."
            if x < 3
            else "Look for a cause: the table cuts the tail."
        ),
    )
    yield Question(
        "as if independent",
        "By which factor is the error underestimated by someone who takes the requests for independent?",
        lambda: error() / float(d.times.std(ddof=1) / math.sqrt(len(d.times))),
        hint="Divide the error from batches by the spread of single requests over √n.",
        why="The correlation of neighbours is the whole point of a queue.",
    )
    yield Question(
        "a percentile",
        f"The time in an M/M/1 system is exponential. Its {d.percentile}th percentile, in service times?",
        lambda: -math.log(1 - d.percentile / 100) / (1 - d.load),
        tolerance=0.02,
        hint="Solve 1 − exp(−t/mean) = percentile for t; the mean is the one above.",
        why="So the p99 of an M/M/1 queue is 4.6 times its mean, at any load.",
    )
    yield Question(
        "half the wait",
        "Mean wait of M/D/1 over that of M/M/1, simulated?",
        lambda: float((d.fixed.mean() - 1) / (d.times.mean() - 1)),
        hint="The wait is the time in the system less one service time.",
        why="Theory says 0.5: half of an M/M/1's queue is the spread of service times.",
    )
    yield Question(
        "Erlang",
        f"{d.servers} servers at the same load each: mean wait in service times?",
        lambda: erlang_c_wait(d.servers, d.load),
        tolerance=0.05,
        hint="Erlang's C formula with c·ρ offered; a small program helps.",
        why=lambda _: (
            f"The simulation says {d.many.mean() - 1:.3f}. One queue for {d.servers} servers: that is what "
            "an SSD's channels are."
        ),
    )
    yield Question(
        "the slowest shard",
        f"The slowest of {d.shards} shards without queues, in mean service times, by theory?",
        lambda: sum(1 / n for n in range(1, d.shards + 1)),
        tolerance=0.02,
        hint="The first of n finishes after 1/n on average, the next after another 1/(n − 1), …",
        why=lambda _: (
            f"The simulation says {d.slowest.mean():.3f}. Under load there is no formula: this is where "
            "simulation begins."
        ),
    )
