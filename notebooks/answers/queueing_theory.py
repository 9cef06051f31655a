"""Lesson 8: queueing theory against the simulator."""

import math
from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions

TITLE = "Queueing theory"
NUMBERS = {
    "load": tuple(thousandth / 1000 for thousandth in range(500, 801)),
    "servers": range(2, 9),
    "shards": range(3, 18),
    "percentile": range(90, 100),
    "load_fixed": tuple(percent / 100 for percent in range(40, 91)),
    "service_us": range(20, 200, 2),
}
RUBRIC = (
    ("the formula, its assumptions and the system it describes", 3),
    ("simulation and formula compared with a standard error", 4),
    ("the broken assumption, demonstrated by a run", 3),
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
    """Return the questions. The lesson passes on times, in mean service times."""

    def error(times: Any) -> float:
        """Return the standard error of a mean, by 50 batches."""
        return float(times.reshape(50, -1).mean(axis=1).std(ddof=1) / math.sqrt(50))

    yield Question(
        "M/M/1",
        f"What is the theoretical mean time in an M/M/1 system at load {d.load}, in service times?",
        lambda: 1 / (1 - d.load),
        tolerance=0.01,
        hint="1/(1 − ρ).",
        why=lambda _: (
            f"The simulation of {len(d.times):,} requests gives {d.times.mean():.3f}."
        ),
    )
    yield Question(
        "standard errors",
        "By how many standard errors do simulation and theory differ?",
        lambda: abs(d.times.mean() - 1 / (1 - d.load)) / error(d.times),
        tolerance=0.05,
        hint="The standard error is the standard deviation of the 50 batch means divided by √50.",
        why=lambda x: (
            "Chance can explain it."
            if x < 3
            else "Look for a cause: the table cuts the tail."
        ),
    )
    yield Question(
        "as if independent",
        "If you treat the requests as independent, by what factor do you underestimate the standard error?",
        lambda: error(d.times) / float(d.times.std(ddof=1) / math.sqrt(len(d.times))),
        tolerance=0.02,
        hint="Without batches, the standard error is the standard deviation of all requests divided by √n.",
        why="Neighbouring requests share a queue, so their times are strongly correlated.",
    )
    yield Question(
        "a percentile",
        "The time in an M/M/1 system is exponentially distributed. Which time do "
        f"{d.percentile} % of the requests stay below (p{d.percentile}), in service times?",
        lambda: -math.log(1 - d.percentile / 100) / (1 - d.load),
        tolerance=0.02,
        hint="Solve 1 − exp(−t/mean) = percentile/100 for t, with the mean from above.",
        why=lambda x: (
            f"So the p{d.percentile} of an M/M/1 queue is {x * (1 - d.load):.1f} times its mean, at any load."
        ),
    )
    yield Question(
        "half the wait",
        f"A network card sends each message in {d.service_us} µs and has a load of "
        f"{d.load_fixed}. By M/D/1, how "
        "long does a message wait on average before it is sent?",
        lambda: d.service_us * d.load_fixed / (2 * (1 - d.load_fixed)),
        unit="µs",
        tolerance=0.02,
        hint="The wait is the time in the system minus one service time.",
        why=lambda _: (
            "That is half the wait of M/M/1. In the simulation at your load, the ratio is "
            f"{(d.fixed.mean() - 1) / (d.times.mean() - 1):.3f}."
        ),
    )
    yield Question(
        "Erlang",
        f"What is the mean wait with {d.servers} servers at a load of {d.load} per server, in service times?",
        lambda: erlang_c_wait(d.servers, d.load),
        tolerance=0.03,
        hint="Use Erlang's C formula with an offered load of c·ρ. A small program helps.",
        why=lambda _: (
            f"The simulation gives {d.many.mean() - 1:.3f}, with a standard error of "
            f"{error(d.many):.3f}. The channels of an SSD are such servers "
            "with a shared "
            "queue."
        ),
    )
    yield Question(
        "the slowest shard",
        f"By theory, how long does the slowest of {d.shards} shards take without queues, in mean "
        "service times?",
        lambda: sum(1 / n for n in range(1, d.shards + 1)),
        tolerance=0.02,
        hint="The first of n finishes after 1/n on average, the next after another 1/(n − 1), …",
        why=lambda _: (
            f"The simulation gives {d.slowest.mean():.3f}. Under load no formula is known for "
            "three or more, and simulation becomes necessary."
        ),
    )
