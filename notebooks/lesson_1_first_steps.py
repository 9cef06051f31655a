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
"""# 1. First steps: your cluster in ten lines.

**What you take home:** how to ask the simulator a question, how to read its answer, and why the resource
that requests wait for decides what a cluster can do. **Time:** 90 minutes: 20 reading, 40 questions, 30
your own cluster.

A question has a number behind it that is *computed when you ask*. Answer with `q1.check(…)`, look with
`q1.reveal()`. Give your lesson another `seed` and the questions have other numbers.
"""

# %%
from typing import Any

import stripesim
from stripesim.teach import Lesson, show

lesson = Lesson("First steps", seed=1)

# %% [markdown]
# ## The cluster in ten lines
# A scenario says which machines there are, what the client wants, and which schemes to compare.

# %%
SCENARIO = """
schemes = ["rep:3", "rs:4,2"]
[cluster]
hosts = 8
osds_per_host = 2
pg_num = 128
[workload]
ops = ["write", "read"]
patterns = ["rand"]
block_sizes_bytes = ["4k", "64k"]
requests = 2000
queue_depth = 64
image_bytes = "8GiB"
"""
scenario = stripesim.parse_scenario(SCENARIO, label="lesson 1")
rows = stripesim.run(scenario).rows
show(rows.select("scheme", "op", "block_size_bytes", "iops", "latency_mean_ns", "bottleneck"))

# %%
show(stripesim.draw_all(rows)["headline"])

# %% [markdown]
# ## Read a row


# %%
def cell(scheme: str, op: str, size_bytes: int) -> Any:
    """Find the row of one cell."""
    return rows.filter(
        (rows["scheme"] == scheme) & (rows["op"] == op) & (rows["block_size_bytes"] == size_bytes)
    ).to_dicts()[0]


size_bytes = lesson.draw.choose("size", [4096, 65536])
size = stripesim.format_size(size_bytes)
q1 = lesson.ask(
    f"How many times the throughput of RS(4,2) does 3-replication write, at {size}?",
    lambda: cell("rep:3", "write", size_bytes)["iops"] / cell("rs:4,2", "write", size_bytes)["iops"],
    why=lambda x: f"{x:.1f} times. Lesson 2 takes such a write apart.",
)
show(q1)

# %%
q2 = lesson.ask(
    f"Little's law: from throughput and mean latency of 3-replication's reads at {size}, how many "
    "requests are in flight?",
    lambda: (
        cell("rep:3", "read", size_bytes)["iops"] * cell("rep:3", "read", size_bytes)["latency_mean_ns"] / 1e9
    ),
    unit="requests",
    why=lambda x: f"The queue depth asked for is {scenario.workload.queue_depth}; the rest is start and end.",
)
show(q2)

# %%
q3 = lesson.ask(
    f"Which resource holds RS(4,2)'s writes at {size} back? (a word of the column `bottleneck`)",
    lambda: cell("rs:4,2", "write", size_bytes)["bottleneck"],
    why=lambda x: (
        f"Requests wait longest for {x}: relieve it first. Which of the others matters, only a run says."
    ),
)
show(q3)

# %%
q4 = lesson.ask(
    "How many bytes do the devices write for each byte that the client writes, 3-replication, 4 KiB?",
    lambda: cell("rep:3", "write", 4096)["device_write_bytes_per_client_byte"],
    unit="B/B",
    why=lambda x: f"Three copies make 3; the other {x - 3:.2f} are the log of each store.",
)
show(q4)

# %% [markdown]
# ## What if? Overrides
# `sets` changes a key without touching the file. What is the queue depth good for?

# %%
depths = [1, 8, 64]
at_depth = {}
for depth in depths:
    asked = stripesim.parse_scenario(
        SCENARIO, sets=[f"workload.queue_depth={depth}", "schemes=rep:3", "workload.ops=read",
                        "workload.block_sizes_bytes=4k"],
    )  # fmt: skip
    at_depth[depth] = stripesim.run(asked).rows.to_dicts()[0]
    print(depth, round(at_depth[depth]["iops"]), at_depth[depth]["bottleneck"])

# %%
q5 = lesson.ask(
    "By which factor does the read throughput grow from depth 1 to depth 64?",
    lambda: at_depth[64]["iops"] / at_depth[1]["iops"],
    why=lambda x: f"Not 64 but {x:.1f}; at depth 64 requests wait longest for {at_depth[64]['bottleneck']}.",
)
show(q5)

# %% [markdown]
# ## Your turn
# Put your own hosts, network and block sizes into `SCENARIO`. Before you run it, write down what you expect
# the bottleneck to be, and why. Then change the one key that should move it.
