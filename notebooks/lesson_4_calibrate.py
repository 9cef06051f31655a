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
"""# 4. Calibrate from your own block trace.

**What you take home:** what a block trace can tell about a device, what it cannot, and why a fit is judged
on requests that it has not seen. **Time:** 90 minutes: 30 looking at the trace, 40 fitting, 20 your own
trace.

The trace here was recorded for this project under one OSD of a small Ceph 16.2.15 cluster, on loop devices
of a shared machine: its *counts* are good, its *times* are noise. That makes it a good teacher.
"""

# %%
from pathlib import Path

import stripesim
from stripesim.teach import Lesson, show

lesson = Lesson("Calibrate", seed=1)
TRACE = Path("data/ceph16-ec63-osd0.txt.gz")  # your own: any of `stripesim trace info`'s formats
trace = stripesim.load_trace(TRACE)
summary = stripesim.describe_trace(trace)
for key in (
    "format",
    "requests",
    "read_ratio",
    "bytes_mean",
    "duration_s",
    "queue_depth_mean",
    "queue_depth_max",
):
    print(f"{key:18} {summary[key]}")

# %% [markdown]
# ## What was asked of the device

# %%
q1 = lesson.ask(
    "The clients only *wrote*. Which share of the device's requests are reads all the same?",
    lambda: 100 * summary["read_ratio"],
    unit="%",
    why=lambda x: f"{x:.0f} %: overwriting part of a stripe reads the rest of it first.",
)
show(q1)

# %%
q2 = lesson.ask(
    "From Little's law: rate × mean response time. How many requests are in flight on average?",
    lambda: summary["iops"] * summary["response_mean_us"] / 1e6,
    tolerance=0.15,
    why=lambda x: (
        f"The trace's own count of requests in flight, over time, gives {summary['queue_depth_mean']:.2f}."
    ),
)
show(q2)

# %%
q3 = lesson.ask(
    "The squared coefficient of variation of the gaps between arrivals is 1 for a Poisson stream. What "
    "is it here?",
    lambda: summary["interarrival_cv2"],
    why=lambda x: f"{x:.1f}: requests come in bursts. A model with Poisson arrivals would wait too little.",
)
show(q3)

# %% [markdown]
# ## The fit
# The first half is fitted, the second half judges.

# %%
fit = stripesim.fit_trace(trace)
print(fit.summary())

# %%
(read,) = [one for one in fit.service if one.operation == "read"]
q4 = lesson.ask(
    "By how many per cent is the fitted mean read time off on the half that it has not seen?",
    lambda: abs(100 * read.held_out.mean_error),
    unit="%",
    tolerance=0.05,
    why=lambda x: (
        f"{x:.0f} %. On the half it was fitted to, {abs(100 * read.train.mean_error):.0f} %: "
        "judged there, any fit looks good."
    ),
)
show(q4)

# %%
q5 = lesson.ask(
    "May these times calibrate a model of an SSD? (yes or no; use the held-out error and half a "
    "sentence above)",
    lambda: "no" if abs(read.held_out.mean_error) > 0.2 else "yes",
    why=lambda x: "The machine was shared while it was measured, and the held-out error says it aloud.",
)
show(q5)

# %% [markdown]
# ## Interference
# A read beside writes is slower than a read alone. By how much, and is the difference more than chance?

# %%
for one in fit.interference:
    print(
        f"{one.operation:6} {one.company:11} {one.commands:4} commands, {one.slowdown:.2f} times, 95 % "
        f"{one.slowdown_ci95}"
    )

# %%
(beside,) = (one for one in fit.interference if (one.operation, one.company) == ("read", "other kind"))
low, high = beside.slowdown_ci95 or (0.0, 0.0)
q6 = lesson.ask(
    "How many times as long as alone does a read take beside writes?",
    lambda: beside.slowdown or 0.0,
    why=lambda x: f"{x:.1f}, with a 95 % interval of {low:.1f} to {high:.1f}.",
)
show(q6)

# %% [markdown]
# ## Your turn
# Record a trace of a device of your own (`blktrace`, `fio --write_iolog`), put its path into `TRACE`, and
# run all cells again. The command line does the same: `stripesim trace fit my-trace --out out`.
