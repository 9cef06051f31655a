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
"""# 6. Repair: Reed–Solomon, LRC, Clay.

**What you take home:** what it takes to rebuild one lost shard under four schemes, in bytes from the
mathematics and in time from the simulation, and why fewer bytes need not be faster. **Time:** 90 minutes:
20 bytes, 20 time, 20 a lost disk, 30 a lost host and the discussion.
"""

# %%
from typing import Any

import stripesim
from stripesim.teach import Lesson, show

lesson = Lesson("Repair", seed=1)
SCHEMES = ["rep:3", "rs:10,4", "lrc:10,6,5", "clay:9,3,11"]
OBJECT_BYTES = 4 << 20

# %% [markdown]
# ## Bytes, by mathematics
# Reed–Solomon reads k whole shards. A locally repairable code reads the rest of a small group. A Clay code
# asks every helper, for a part of its shard only.


# %%
def repair_of(name: str, lost: int = 1) -> dict[str, Any]:
    """Bytes read, helpers and bytes rebuilt for one lost shard of one object."""
    scheme = stripesim.parse_scheme(name)
    plan = scheme.plan_repair(
        lost=frozenset({lost}), object_size_bytes=OBJECT_BYTES, geometry=scheme.geometry(4096)
    )
    return {
        "read_bytes": sum(extent.length_bytes for extent in plan.reads),
        "helpers": len({extent.shard for extent in plan.reads}),
        "rebuilt_bytes": sum(extent.length_bytes for extent in plan.writes),
        "overhead": scheme.width / getattr(scheme, "k", 1),
    }


needs = {name: repair_of(name) for name in SCHEMES}
for name, need in needs.items():
    print(f"{name:12} stores {need['overhead']:.2f}×, reads "
    f"{need['read_bytes'] / need['rebuilt_bytes']:5.2f} B per lost B "
          f"from {need['helpers']} helpers")  # fmt: skip

# %%
scheme = lesson.draw.choose("scheme", SCHEMES[1:])
q1 = lesson.ask(
    f"How many bytes does {scheme} read for each byte that was lost?",
    lambda: needs[scheme]["read_bytes"] / needs[scheme]["rebuilt_bytes"],
    unit="B/B",
    tolerance=0.02,
)
show(q1)

# %%
q2 = lesson.ask(
    "Clay(9,3,11): which share of each helper's shard does it read, in per cent?",
    lambda: (
        100
        * needs["clay:9,3,11"]["read_bytes"]
        / needs["clay:9,3,11"]["helpers"]
        / needs["clay:9,3,11"]["rebuilt_bytes"]
    ),
    unit="%",
    tolerance=0.02,
    why=lambda x: f"1/(d − k + 1) of it: {x:.0f} %, from d helpers instead of k.",
)
show(q2)

# %% [markdown]
# ## Time, by simulation
# One object alone, on an idle cluster with a host for each shard.

# %%
timelines = stripesim.explain("repair", SCHEMES, OBJECT_BYTES)
for timeline in timelines:
    print(stripesim.heading(timeline), "\n   ", stripesim.latency_words(timeline))

# %%
show(stripesim.draw_timelines([t for t in timelines if t.scheme in ("rs:10,4", "lrc:10,6,5")]))

# %%
took_ns = {timeline.scheme: timeline.latency_ns for timeline in timelines}
q3 = lesson.ask(
    "Which of the four rebuilds its shard of one object first? (as in SCHEMES)",
    lambda: min(took_ns, key=lambda name: took_ns[name]),
    why=lambda x: f"{x}: {took_ns[x] / 1e6:.1f} ms.",
)
show(q3)

# %%
clay = next(timeline for timeline in timelines if timeline.scheme.startswith("clay"))
spent = clay.latency_by_category_ns()
q4 = lesson.ask(
    "Clay reads least. On what does it spend most of its time? (client, network, cpu, coding, ssd, "
    "pause, wait)",
    lambda: max(spent, key=lambda name: spent[name]),
    why=lambda x: f"{x}: {spent[x] / clay.latency_ns:.0%}. Bytes saved on the wire are paid for elsewhere.",
)
show(q4)

# %%
q5 = lesson.ask(
    "3-replication reads one byte per byte lost. Its object takes "
    f"{took_ns['rep:3'] / took_ns['rs:10,4']:.2f} times as long to repair as RS(10,4)'s. How many times "
    f"as many bytes "
    "does it have to bring back?",
    lambda: needs["rep:3"]["rebuilt_bytes"] / needs["rs:10,4"]["rebuilt_bytes"],
    tolerance=0.05,
    why=lambda x: f"{x:.1f}: a copy is the whole object, a shard a tenth of it.",
)
show(q5)

# %% [markdown]
# ## A lost disk
# One OSD of 24 is lost while clients read: all its objects at once, within the daemon's limits.

# %%
rows = stripesim.run(
    stripesim.load_scenario("repair", sets=["workload.image_bytes=4GiB", "workload.requests=2000"])
).rows
show(rows.select("scheme", "repair_s", "repair_private_net_bytes_per_lost_byte", "latency_p99_ns"))

# %%
q6 = lesson.ask(
    "RS(6,3): how many bytes cross the private network of these 4 hosts for each byte lost?",
    lambda: float(rows.filter(rows["scheme"] == "rs:6,3")["repair_private_net_bytes_per_lost_byte"][0]),
    unit="B/B",
    why=lambda x: (
        f"{x:.2f}. Nine shards on four hosts: helpers beside the primary cross no wire. A real "
        "Ceph 16.2.15, where each OSD had a network address of its own, sent 6.14 (measured for this "
        "project)."
    ),
)
show(q6)

# %% [markdown]
# ## A lost host
# A repair does not begin when something breaks. Peers have to miss heartbeats, the monitors wait before they
# give up on the lost OSDs, placement groups have to agree; only then does data move. One host of eight
# loses power 20 seconds in.

# %%
result = stripesim.run(
    stripesim.load_scenario(
        "faults",
        sets=["workload.rate_per_s=100", "workload.duration_s=90", "workload.image_bytes=8GiB",
              "faults.down_out_interval_s=15"],
    )
)  # fmt: skip
story = {row["scheme"]: row for row in result.rows.to_dicts()}
for event in result.timelines[-1]["events"]:
    print(f"{event['time_s']:7.2f} s  {event['what']:11} {event['text']}")

# %%
hurt = lesson.draw.choose("hurt", list(story))
q7 = lesson.ask(
    f"{hurt}: how many seconds pass between the loss of power and the first OSD marked down?",
    lambda: story[hurt]["detection_s"],
    unit="s",
    why=lambda _: (
        "Nobody says goodbye when the power goes: peers wait for a grace of heartbeats. Had only the "
        "process died, the refused connection would have shown at once."
    ),
)
show(q7)

# %%
q8 = lesson.ask(
    f"{hurt}: of the time from the failure until all is whole again, which share is spent before any "
    "data moves (noticing, and waiting until down becomes out)?",
    lambda: (
        100 * (story[hurt]["detection_s"] + story[hurt]["down_out_s"]) / story[hurt]["failure_to_clean_s"]
    ),
    unit="%",
    why=lambda x: (
        f"{x:.0f} %, and the wait was cut to 15 s here; Ceph's default is 600 s. A code that repairs with "
        "fewer bytes shortens only the rest, which grows with what a disk holds."
    ),
)
show(q8)

# %% [markdown]
# ## Discuss
# Which scheme would you choose where the network is slow? Where the disks fail in pairs? Where the CPUs are
# old? Back each answer with one run (`sets=["cluster.private_gbit_per_s=1"]` and so on). And what would
# a shorter wait from down to out cost, if the host merely restarts after five minutes?
