# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
"""# 8. Queueing theory against the simulator.

**What you take home:** that the simulator gives what theory proves wherever theory can prove anything
(M/M/1, M/D/1, M/M/c, fork and join), and how to tell an error of the model from an error of the sample.
**Time:** 90 minutes: 25 theory, 45 experiments, 20 where theory ends.
"""

# %%
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from stripesim import blocks
from stripesim.teach import Lesson, show

lesson = Lesson("Queueing theory", seed=1)
MEAN_NS = 10_000
COUNT = 100_000

# %% [markdown]
# ## A station of our own
# An op graph of one step, Poisson arrivals, and a distribution of service times: 256 equally likely values,
# as the engines draw them. This is all the machinery a whole cluster uses.


# %%
@dataclass
class Arrivals:
    """An open stream of requests on one template."""

    arrivals_ns: np.ndarray
    depth: int = 0
    at: int = 0

    def take(self, count: int) -> Any:
        """Return the next requests."""
        times = self.arrivals_ns[self.at : self.at + count]
        self.at += len(times)
        zeros = np.zeros(len(times), dtype=np.int64)
        return blocks.RequestChunk(zeros, zeros, zeros, times)


@dataclass
class OneBook:
    """One template on one row of resources."""

    templates: list[Any]
    bindings: np.ndarray


def exponential_points() -> np.ndarray:
    """Mean of each of 256 equally likely slices of the exponential distribution of mean 1."""
    edges = np.arange(blocks.FACTOR_POINTS + 1) / blocks.FACTOR_POINTS
    integral = np.append(0.0, edges[1:] * (1 - np.log(edges[1:])))
    return np.sort(np.diff(integral) * blocks.FACTOR_POINTS)


def station(
    load: float, servers: int = 1, random_service: bool = True, branches: int = 1, engine: str = "compiled"
) -> Any:
    """Simulate a station; return times in system in units of the mean service time."""
    gaps = np.random.default_rng(7).exponential(MEAN_NS / (servers * load), COUNT)
    graph = blocks.GraphBuilder("station")
    done = [
        graph.use(role, MEAN_NS, after=[graph.issue], label="serve", spread=1 if random_service else 0)
        for role in range(branches)
    ]
    names = tuple(f"station {role}" for role in range(branches))
    run = blocks.engine_named(engine)(
        blocks.Program(
            resources=blocks.Resources(
                names, names, np.full(branches, servers), np.full(branches, blocks.FIFO)
            ),
            book=OneBook([graph.finish(reply=graph.join(done))], np.arange(branches)[None, :]),
            streams=[Arrivals(np.rint(np.cumsum(gaps)).astype(np.int64))],
            seed=3,
            factor_tables=np.stack(
                [
                    np.full(blocks.FACTOR_POINTS, blocks.FACTOR_ONE),
                    blocks.factor_table(exponential_points().tolist()),
                ]
            ),
        )
    )
    stream = run.streams[0]
    return (stream.completed_ns - stream.issued_ns) / MEAN_NS


# %% [markdown]
# ## M/M/1
# Theory: the mean time in the system is 1/(1 − ρ) service times.

# %%
load = lesson.draw.choose("load", [0.5, 0.6, 0.7])
times = station(load)
print(f"simulated {times.mean():.3f}, theory {1 / (1 - load):.3f}")
q1 = lesson.ask(
    f"M/M/1 at a load of {load}: mean time in the system, by theory, in service times?",
    lambda: 1 / (1 - load),
    tolerance=0.01,
    why=lambda x: f"The simulation of {COUNT:,} requests says {times.mean():.3f}.",
)
show(q1)

# %% [markdown]
# Is the difference a fault or chance? Neighbouring requests wait together, so the error of the mean comes
# from means of batches.

# %%
batches = times.reshape(50, -1).mean(axis=1)
error = batches.std(ddof=1) / math.sqrt(50)
q2 = lesson.ask(
    "How many standard errors lie between simulation and theory?",
    lambda: abs(times.mean() - 1 / (1 - load)) / error,
    tolerance=0.1,
    why=lambda x: (
        f"{x:.1f}: {'chance explains it' if x < 3 else 'look for a cause: the table cuts the tail'}."
    ),
)
show(q2)

# %%
naive = times.std(ddof=1) / math.sqrt(COUNT)
q3 = lesson.ask(
    "By which factor is the error underestimated by one who takes the requests for independent?",
    lambda: error / naive,
    why=lambda x: f"{x:.1f} times: the correlation of neighbours is the whole point of a queue.",
)
show(q3)

# %% [markdown]
# ## M/D/1: the same load, no spread
# Theory (Pollaczek and Khinchine): the mean *wait* halves.

# %%
fixed = station(load, random_service=False)
q4 = lesson.ask(
    "Mean wait of M/D/1 over that of M/M/1, simulated?",
    lambda: (fixed.mean() - 1) / (times.mean() - 1),
    why=lambda x: f"{x:.2f}; theory says 0.5. Half of an M/M/1's queue is the spread of service times.",
)
show(q4)

# %% [markdown]
# ## M/M/c: Erlang


# %%
def erlang_c_wait(servers: int, load: float) -> float:
    """Mean wait of M/M/c in mean service times."""
    offered = servers * load
    waiting = offered**servers / math.factorial(servers) / (1 - load)
    chance = waiting / (sum(offered**n / math.factorial(n) for n in range(servers)) + waiting)
    return chance / (servers * (1 - load))


servers = lesson.draw.choose("servers", [2, 4, 8])
many = station(load, servers=servers)
q5 = lesson.ask(
    f"{servers} servers at the same load each: mean wait in service times?",
    lambda: erlang_c_wait(servers, load),
    tolerance=0.05,
    why=lambda x: (
        f"The simulation says {many.mean() - 1:.3f}. One queue for {servers} servers: that is what an SSD's "
        "channels are."
    ),
)
show(q5)

# %% [markdown]
# ## Fork and join: waiting for the slowest shard
# An erasure-coded write waits for n commits. With exponential times and no queues, the slowest of n takes 1
# + 1/2 + … + 1/n service times.

# %%
shards = lesson.draw.choose("shards", [3, 9, 14])
slowest = station(0.001, branches=shards)
q6 = lesson.ask(
    f"The slowest of {shards} shards, in mean service times, by theory?",
    lambda: sum(1 / n for n in range(1, shards + 1)),
    tolerance=0.02,
    why=lambda x: (
        f"The simulation says {slowest.mean():.3f}. Under load there is no formula: this is where simulation "
        "begins."
    ),
)
show(q6)

# %%
loaded = station(load, branches=shards)
print(f"at a load of {load}: {loaded.mean():.2f} service times; one station alone {times.mean():.2f}")

# %% [markdown]
# ## Discuss
# Give `station` the engine `simpy` and compare: how many nanoseconds do the two differ by? Then find a load
# at which 100,000 requests are too few to tell M/M/1 from M/D/1.
