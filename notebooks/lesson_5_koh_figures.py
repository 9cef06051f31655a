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
"""# 5. The figures of Koh et al., made again.

**What you take home:** how to reproduce a paper, how to say what was given, fitted and predicted, and what
to do where the reproduction fails. **Time:** 90 minutes: 20 the paper's claims, 40 figures and questions,
30 a critique.

Koh et al., "Understanding system characteristics of online erasure coding on scalable, distributed and
large-scale SSD array systems", IISWC 2017: Ceph 11.2.0, 4 hosts, 24 OSDs on 48 SATA SSDs, 10 Gb/s.
"""

# %%
import stripesim
from stripesim.teach import Lesson, show

lesson = Lesson("Koh et al. 2017", seed=1)
claims = {claim.id: claim for claim in stripesim.claims("koh2017")}
roles: dict[str, int] = {}
for claim in claims.values():
    roles[claim.role] = roles.get(claim.role, 0) + 1
show(roles)

# %% [markdown]
# A *given* number configures the cluster, a *calibration* number may be fitted, a *held-out* number judges.
# The roles were fixed before any simulation.

# %%
q1 = lesson.ask(
    "How many of the paper's numbers are held out?",
    lambda: roles["held-out"],
    tolerance=0.0,
    why=lambda x: (
        f"{x} of {len(claims)}; {roles.get('contradicted', 0)} others the paper contradicts itself on."
    ),
)
show(q1)

# %% [markdown]
# ## Figures 5 to 8
# Fewer requests and block sizes than the study (`stripesim study koh2017` runs it in full), for a class
# cannot wait.

# %%
SIZES = [1024, 4096, 16384, 131072]
scenario = stripesim.load_scenario(
    "koh2017", sets=["workload.requests=1200", f"workload.block_sizes_bytes={SIZES}"]
)
rows = stripesim.run(scenario).rows
figures = stripesim.draw_all(rows)
show(figures["headline"])

# %%
show(figures["seq-write"])


# %%
def throughput(scheme: str, op: str, pattern: str) -> float:
    """Mean throughput over the block sizes [MB/s]."""
    found = rows.filter((rows["scheme"] == scheme) & (rows["op"] == op) & (rows["pattern"] == pattern))
    return sum(map(float, found["throughput_bytes_per_s"])) / len(found) / 1e6


op = lesson.draw.choose("op", ["write", "read"])
q2 = lesson.ask(
    f"Sequential {op}s: by which factor is 3-replication ahead of RS(10,4) (means over the block sizes)?",
    lambda: throughput("rep:3", op, "seq") / throughput("rs:10,4", op, "seq"),
    why=lambda x: f"{x:.1f} times. Fewer sizes than in the paper: compare orders, not digits.",
)
show(q2)

# %%
claim = claims["koh2017-041"]
published = float(claim.published_text)
q3 = lesson.ask(
    f"The paper: {claim.statement}: {claim.published} {claim.unit}. How far off are we, in per cent of it?",
    lambda: abs(100 * (throughput("rs:6,3", "write", "seq") / published - 1)),
    unit="%",
    tolerance=0.2,
    why=lambda x: (
        f"{x:.0f} %, but over {len(SIZES)} sizes instead of eight. What else differs? (role: {claim.role})"
    ),
)
show(q3)

# %%
q4 = lesson.ask(
    "Do random writes of RS(6,3) beat its sequential ones on average? (True or False)",
    lambda: throughput("rs:6,3", "write", "rand") > throughput("rs:6,3", "write", "seq"),
    why=lambda x: (
        "Lesson 3 says why." if x else "Not over these sizes: large sequential writes fill many groups."
    ),
)
show(q4)

# %% [markdown]
# ## Critique
# Erasure coding is to be predicted from replication, devices and the kernel. Does every number keep to that
# rule?

# %%
(coded,) = stripesim.explain("write", "rs:6,3", 4096)
fitted = {name: number for name, number in coded.parameters.items() if number["provenance"] == "fitted"}
for name, told_of in fitted.items():
    print(f"{name:34} {told_of['source']}")
suspects = [name for name, found in fitted.items() if "RS(6,3)" in found["source"]]
suspect = suspects[0].rpartition(".")[2] if suspects else "none"
q5 = lesson.ask(
    "Which parameter of `cpu` was fitted to a row of RS(6,3) itself? (its name after the dot)",
    lambda: suspect,
    why=lambda x: (
        f"{x}. Its source, in its own words: {fitted[suspects[0]]['source']}"
        if suspects
        else "All keep to it."
    ),
)
show(q5)

# %% [markdown]
# ## Your turn
# Run `stripesim study koh2017 --all`. Choose one claim with the verdict *wrong*, and write half a page: is
# the paper at fault, the model, or the rule of comparison? Which measurement would decide it?
