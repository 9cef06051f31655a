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
"""# 2. Anatomy of an erasure-coded write.

**What you take home:** every step of one small write under replication and under Reed–Solomon coding, what
each costs, and where the cost was measured. **Time:** 90 minutes: 30 reading the timeline, 40 questions, 20
variations.
"""

# %%
import stripesim
from stripesim.teach import Lesson, show

lesson = Lesson("Anatomy of a write", seed=1)
size_bytes = lesson.draw.choose("size", [1024, 4096, 8192])
copies, coded = stripesim.explain("write", ["rep:3", "rs:6,3"], size_bytes)
show(stripesim.draw_timelines([copies, coded]))

# %% [markdown]
# Read it row by row: the client hands the request to the primary; the primary takes the lock of the
# placement group; a sub-operation goes to each shard; when all have committed, the primary replies. The
# pale part comes after the reply. The same in characters:

# %%
for timeline in (copies, coded):
    print(stripesim.heading(timeline))
    print("\n".join(stripesim.drawing(timeline, columns=110)))
    print(stripesim.latency_words(timeline), "\n")

# %% [markdown]
# ## Before the write, a read


# %%
def total(timeline: stripesim.Timeline, counter: str) -> int:
    """Sum one counter over all steps."""
    return int(timeline.totals().get(counter, 0))


q1 = lesson.ask(
    f"How many bytes do the devices read before RS(6,3) can overwrite {size_bytes} B?",
    lambda: total(coded, "device_read_bytes"),
    unit="B",
    tolerance=0.01,
    why=lambda x: f"A whole stripe, {x // 4096} chunks of 4 KiB: parity is computed over all of it.",
)
show(q1)

# %%
q2 = lesson.ask(
    f"How many messages does RS(6,3) send for one write (3-replication sends {total(copies, 'messages')})?",
    lambda: total(coded, "messages"),
    unit="messages",
    tolerance=0.01,
    why=lambda x: (
        "Two with the client; with each other shard: sub-read, sub-write and roll-forward, "
        f"each with a reply where it is asked. Together {x}."
    ),
)
show(q2)

# %% [markdown]
# ## Where does the time go?
# Along the critical path each nanosecond belongs to one thing.

# %%
spent = coded.latency_by_category_ns()
q3 = lesson.ask(
    "On what does the RS(6,3) write spend most of its latency? (client, network, cpu, coding, ssd, "
    "pause, wait)",
    lambda: max(spent, key=lambda name: spent[name]),
    why=lambda x: f"{x}: {spent[x] / 1e3:,.0f} µs of {coded.latency_ns / 1e3:,.0f} µs.",
)
show(q3)

# %%
q4 = lesson.ask(
    "Which share of the RS(6,3) latency is the arithmetic of the code itself (encode)?",
    lambda: 100 * spent["coding"] / coded.latency_ns,
    unit="%",
    tolerance=0.3,
    why=lambda x: f"{x:.2f} %. The code is cheap; what it does to the path is not.",
)
show(q4)

# %% [markdown]
# ## Where do the numbers come from?
# Doubling one parameter at a time shows which steps it is in. Each has a provenance.

# %%
for row in stripesim.table_rows(coded)[:14]:
    names = ", ".join(f"{name} {ns:+,}" for name, ns in row.sources[:2])
    print(f"{row.start_ns / 1e3:9.1f} µs  {row.lane:24} {row.what:24} ×{row.count:<3} {names}")

# %%
kinds = {number["provenance"] for number in coded.parameters.values()}
q5 = lesson.ask(
    "How many of the parameters in this timeline are assumed, for want of a source?",
    lambda: sum(number["provenance"] == "assumed" for number in coded.parameters.values()),
    tolerance=0.0,
    why=lambda x: (
        f"{x} of {len(coded.parameters)}. Kinds seen here: {', '.join(sorted(kinds))}. "
        "A model is honest if it says so."
    ),
)
show(q5)

# %% [markdown]
# ## Variations: how far can a write be from the best case?

# %%
(fresh,) = stripesim.explain("write", "rs:6,3", size_bytes, image="pristine")
(stripe,) = stripesim.explain("write", "rs:6,3", 6 * 4096)
(hurt,) = stripesim.explain("write", "rs:6,3", size_bytes, state="degraded")
for name, timeline in {
    "overwrite": coded,
    "new object": fresh,
    "full stripe": stripe,
    "degraded": hurt,
}.items():
    print(f"{name:12} {timeline.latency_ns / 1e3:9,.1f} µs   {timeline.totals()}")

# %%
q6 = lesson.ask(
    "By which factor is the first write into a new object faster than the overwrite?",
    lambda: coded.latency_ns / fresh.latency_ns,
    why=lambda x: "No old stripe has to be read, nor kept for a roll-back.",
)
show(q6)

# %% [markdown]
# ## Discuss
# Ceph's later generations write parity deltas instead of whole stripes. Which bars would vanish? Which
# would stay? Try `generation="pacific"`, and look at the lock.
