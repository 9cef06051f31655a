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
"""# 7. What if: more SSDs, cores or network.

**What you take home:** how to spend a budget: find the bottleneck, relieve it, find the next one; and why
the best purchase depends on the workload. **Time:** 90 minutes: 15 the question, 45 experiments, 30 your
proposal.
"""

# %%
from typing import Any

import stripesim
from stripesim.teach import Lesson, show

lesson = Lesson("What if", seed=1)
BASE = """
schemes = ["rs:4,2"]
[cluster]
hosts = 6
osds_per_host = 4
cores_per_host = 6
public_gbit_per_s = 10.0
private_gbit_per_s = 1.0
pg_num = 512
[workload]
ops = ["write"]
patterns = ["rand"]
block_sizes_bytes = ["256k"]
queue_depth = 128
requests = 2000
image_bytes = "16GiB"
"""
PURCHASES = {
    "nothing": [],
    "twice the SSDs": ["cluster.osds_per_host=8"],
    "twice the cores": ["cluster.cores_per_host=12"],
    "a 10 Gb/s private network": ["cluster.private_gbit_per_s=10.0"],
    "a 25 Gb/s public network": ["cluster.public_gbit_per_s=25.0"],
}
FREE = {"four times the placement groups": ["cluster.pg_num=2048"]}


def run(sets: list[str], **more: str) -> Any:
    """Run the cluster with overrides; return its one row."""
    sets = [*sets, *(f"workload.{key}={value}" for key, value in more.items())]
    return stripesim.run(stripesim.parse_scenario(BASE, label="lesson 7", sets=sets)).rows.to_dicts()[0]


# %%
results = {name: run(sets) for name, sets in PURCHASES.items()}
for name, row in results.items():
    print(f"{name:28} {row['iops']:8,.0f} IOPS, p99 {row['latency_p99_ns'] / 1e6:6.2f} ms, held back by "
          f"{row['bottleneck']} ({row['bottleneck_utilisation']:.0%} busy)")  # fmt: skip

# %%
gains = {name: row["iops"] / results["nothing"]["iops"] for name, row in results.items()}
q1 = lesson.ask(
    "Before any purchase: which resource holds this cluster back? (a word of the column `bottleneck`)",
    lambda: results["nothing"]["bottleneck"],
)
show(q1)

# %%
q2 = lesson.ask(
    "Which single purchase brings the most throughput? (a key of PURCHASES)",
    lambda: max(gains, key=lambda name: gains[name]),
    why=lambda x: f"{x}: {gains[x]:.2f} times the throughput.",
)
show(q2)

# %%
useless = lesson.draw.choose("useless", ["twice the SSDs", "a 25 Gb/s public network"])
q3 = lesson.ask(
    f"And what factor does “{useless}” bring?",
    lambda: gains[useless],
    tolerance=0.05,
    why=lambda x: f"{x:.2f}. Money next to the bottleneck is money lost.",
)
show(q3)

# %% [markdown]
# ## The next bottleneck
# After the best purchase something else holds it back, and not everything is for sale: the number of
# placement groups is a setting.

# %%
best = max(gains, key=lambda name: gains[name])
second = {
    name: run([*PURCHASES[best], *sets]) for name, sets in {**PURCHASES, **FREE}.items() if name != best
}
for name, row in second.items():
    print(f"{best} and {name:28} {row['iops']:8,.0f} IOPS, held back by {row['bottleneck']}")

# %%
q4 = lesson.ask(
    "By which factor does the best second step, bought or set, raise what the first one gave?",
    lambda: max(row["iops"] for row in second.values()) / second["nothing"]["iops"],
    why=lambda x: (
        f"{x:.2f}, with “{max(second, key=lambda name: second[name]['iops'])}”; the first step gave "
        f"{gains[best]:.2f}."
    ),
)
show(q4)

# %% [markdown]
# ## Another workload, another answer

# %%
size = lesson.draw.choose("size", ["4k", "8k"])
small = {name: run(sets, block_sizes_bytes=size) for name, sets in PURCHASES.items()}
for name, row in small.items():
    print(f"{size}: {name:28} {row['iops']:8,.0f} IOPS, held back by {row['bottleneck']}")
q5 = lesson.ask(
    f"With writes of {size}: does the same purchase win? (True or False)",
    lambda: max(small, key=lambda name: small[name]["iops"]) == best,
    why=lambda x: f"At {size} it is “{max(small, key=lambda name: small[name]['iops'])}”.",
)
show(q5)

# %%
q6 = lesson.ask(
    "Would 3-replication, without buying anything, beat RS(4,2) with the best purchase? (True or False)",
    lambda: run(["schemes=rep:3"])["iops"] > max(row["iops"] for row in results.values()),
    why=lambda x: (
        "Either way it stores 3 bytes per byte instead of 1.5: the disks it needs are a purchase, too."
    ),
)
show(q6)

# %% [markdown]
# ## Your proposal
# You have money for two purchases and a workload of your own. Write down the order in which you buy,
# predict the gain of each, then run it. Argue with the bottleneck column, not with the data sheet.
