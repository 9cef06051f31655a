"""Lesson 12: read a cluster."""

from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions, row_of

TITLE = "Read a cluster"
NUMBERS = {"hosts": (5, 8, 12), "used": (50, 60, 70), "pool": ("ec21", "ec22", "reps")}
RUBRIC = (
    ("the waterfall from raw to usable bytes, each step with its reason", 3),
    ("the OSD that fills first, and two remedies compared in bytes", 4),
    ("a decision, and a fact that would change it", 3),
)


def questions(d: Given) -> Questions:
    """Return the questions. The lesson passes on `report`."""

    def pool(name: str) -> dict[str, Any]:
        return row_of(d.report["capacity"]["pools"], name=name)

    def ssd() -> dict[str, Any]:
        return row_of(d.report["capacity"]["classes"], **{"class": "ssd"})

    yield Question(
        "overhead",
        f"How many raw bytes does one client byte take in pool {d.pool}?",
        lambda: float(pool(d.pool)["overhead"]),
        unit="B/B",
        tolerance=0.01,
        hint="(k + m)/k, or the number of replicas.",
    )
    yield Question(
        "usable",
        f"With evenly spread data, how many GB could clients store in pool {d.pool} before the full ratio is "
        "reached?",
        lambda: pool(d.pool)["usable_bytes_full"] / 1e9,
        unit="GB",
        tolerance=0.03,
        hint="Raw bytes of its OSDs × full ratio / overhead.",
    )
    yield Question(
        "placement groups of the fullest",
        "By what factor does the fullest OSD of class ssd exceed the mean?",
        lambda: float(ssd()["now"]["fullest_over_mean"]),
        tolerance=0.02,
        hint="See the table of device classes.",
        why=lambda _: (
            f"The fullest is osd.{ssd()['now']['fullest_osd']}. When it is full, writes stop in the "
            "whole pool."
        ),
    )
    yield Question(
        "stranded",
        "What share of the bytes of class ssd, up to the full ratio, does that imbalance strand?",
        lambda: 100 * ssd()["now"]["stranded_bytes"] / ssd()["full_bytes"],
        unit="%",
        hint="Compute 1 − 1/(fullest over mean).",
        why="1 − 1/(fullest over mean) is still free on the other OSDs when the fullest is full.",
    )
    yield Question(
        "balanced",
        "How many GB does the balancer (upmap) regain in class ssd?",
        lambda: (
            (ssd()["now"]["stranded_bytes"] - ssd()["after_upmap"]["stranded_bytes"])
            / 1e9
        ),
        unit="GB",
        hint="Subtract the stranded bytes after upmap from those now.",
        why="It does not regain all of it, because OSDs with few placement groups cannot be balanced finely.",
    )
    yield Question(
        "room to heal",
        f"Of {d.hosts} equal hosts that are {d.used} % full, one is lost for good. How full are the "
        "others after "
        "recovery?",
        lambda: d.used * d.hosts / (d.hosts - 1),
        unit="%",
        tolerance=0.02,
        hint="One host fewer holds the same bytes.",
        why=lambda x: (
            "Below the nearfull ratio of 85 %."
            if x < 85
            else "Above the nearfull ratio of 85 %."
        ),
    )
    yield Question(
        "few big hosts",
        "A cluster with RS(2,2) over 4 hosts loses one host for good. Onto how many hosts can its shards be "
        "rebuilt?",
        lambda: 0,
        tolerance=0.0,
        hint="Each shard needs a separate host.",
        why="Four shards need four hosts, and only three remain. The pool stays degraded until a "
        "host returns.",
    )
    yield Question(
        "agreement",
        "On how many OSDs does the computed number of placement groups equal the cluster's own count?",
        lambda: sum(
            row["acting_pgs"] == row["reported_acting_pgs"]
            for row in d.report["pgs_by_osd"]
        ),
        tolerance=0.0,
        hint="Compare `acting_pgs` and `reported_acting_pgs`.",
        why="CRUSH is a function: the same map and hash give the same result, bit for bit.",
    )
