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
"""# 3. Why sequential writes crawl: the PG lock.

**What you take home:** a queueing argument on the back of an envelope, how near it comes to a full
simulation, what it leaves out, and the reason why random writes are *faster* than sequential ones here.
**Time:** 90 minutes: 25 model, 45 questions, 20 ablation.
"""

# %%
from typing import Any

import stripesim
from stripesim.teach import Lesson, show

lesson = Lesson("The PG lock", seed=1)


def run(*sets: str) -> Any:
    """Run the cluster of Koh et al. with overrides; return its rows."""
    return stripesim.run(stripesim.load_scenario("koh2017", sets=["workload.requests=1500", *sets])).rows


# %%
SIZES = [4096, 16384, 65536]
rows = run("workload.ops=write", f"workload.block_sizes_bytes={SIZES}", 'schemes=["rep:3","rs:6,3"]')
show(rows.select("scheme", "pattern", "block_size_bytes", "throughput_bytes_per_s", "bottleneck"))
show(stripesim.draw_all(rows)["headline"])

# %% [markdown]
# ## The envelope
# 256 requests of *b* bytes are in flight, one after the other in the image. An object holds 4 MiB, so they
# touch P = max(1, 256·b / 4 MiB) objects, and about as many placement groups. A placement group does one
# write at a time, each taking *s*. So throughput is about P·b/s, and latency about 256·s/P.

# %%
size_bytes = lesson.draw.choose("size", SIZES)
size = stripesim.format_size(size_bytes)
DEPTH, OBJECT_BYTES = 256, 4 << 20
q1 = lesson.ask(
    f"How many placement groups are at work at once with sequential writes of {size}?",
    lambda: max(1, DEPTH * size_bytes / OBJECT_BYTES),
    why=lambda x: "At least one, whatever the size; below 16 KiB a single lock serves the whole cluster.",
)
show(q1)

# %% [markdown]
# The serial time *s* is what one write alone holds the lock for. Read it off the timeline.

# %%
(alone,) = stripesim.explain("write", "rs:6,3", 4096, scenario="koh2017", sets=["workload.requests=1"])
(held,) = [hold for hold in alone.holds if hold.role == "pg.lock"]
serial_s = (held.end_ns - held.start_ns) / 1e9
print(f"one write of 4 KiB holds the lock for {serial_s * 1e3:.2f} ms")


def measured(scheme: str, pattern: str, size: int) -> float:
    """Throughput of one cell [MB/s]."""
    found = rows.filter(
        (rows["scheme"] == scheme) & (rows["pattern"] == pattern) & (rows["block_size_bytes"] == size)
    )
    return float(found["throughput_bytes_per_s"][0]) / 1e6


q2 = lesson.ask(
    "Predict RS(6,3)'s sequential throughput at 4 KiB with the envelope: P·b/s.",
    lambda: 4096 / serial_s / 1e6,
    unit="MB/s",
    why=lambda x: (
        f"The simulation says {measured('rs:6,3', 'seq', 4096):.2f} MB/s, "
        f"{measured('rs:6,3', 'seq', 4096) / x:.1f} times as much. The envelope leaves out that two "
        f"groups work side by "
        "side while the window crosses from one object to the next, that a stripe written a moment ago "
        "is in the read "
        "cache, and that the run is short. Which of them matters? Run longer, and see."
    ),
)
show(q2)

# %%
q3 = lesson.ask(
    f"How many times faster are random than sequential writes under RS(6,3), at {size}?",
    lambda: measured("rs:6,3", "rand", size_bytes) / measured("rs:6,3", "seq", size_bytes),
    why=lambda x: f"{x:.1f} times: random writes fall into hundreds of placement groups.",
)
show(q3)

# %% [markdown]
# ## Ablation: take the lock away
# A simulator may do what no operator can: switch off one mechanism and look what remains.

# %%
freed = run("workload.ops=write", "workload.patterns=seq", "workload.block_sizes_bytes=4k",
            'schemes=["rep:3","rs:6,3"]', "cluster.pg_lock_scope=none")  # fmt: skip
show(freed.select("scheme", "throughput_bytes_per_s", "bottleneck"))

# %%
q4 = lesson.ask(
    "By which factor does RS(6,3) gain at 4 KiB, sequential, if nobody takes a lock?",
    lambda: (
        float(freed.filter(freed["scheme"] == "rs:6,3")["throughput_bytes_per_s"][0])
        / 1e6
        / measured("rs:6,3", "seq", 4096)
    ),
    why=lambda x: (
        f"{x:.1f} times. The lock explains the collapse; what holds the rest back is another resource."
    ),
)
show(q4)

# %%
q5 = lesson.ask(
    "And which resource is it then? (a word of the column `bottleneck`)",
    lambda: str(freed.filter(freed["scheme"] == "rs:6,3")["bottleneck"][0]),
)
show(q5)

# %% [markdown]
# ## Discuss
# Smaller objects? More placement groups? Striping the image over several objects? For each, say first what
# P becomes, then run it (`cluster.object_bytes`, `cluster.pg_num`).
