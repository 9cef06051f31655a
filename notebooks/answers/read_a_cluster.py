"""Lesson 12: read a cluster."""

from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions, row_of

TITLE = "Read a cluster"
NUMBERS = {"hosts": (5, 8, 12), "used": (50, 60, 70), "pool": ("ec21", "ec22", "reps")}
RUBRIC = (
    ("the waterfall from raw to usable bytes, each step with its reason", 3),
    ("the OSD that fills first, and two ways to help, compared in bytes", 4),
    ("a decision with what would change it", 3),
)


def questions(d: Given) -> Questions:
    """Questions; the lesson hands over `report`."""

    def pool(name: str) -> dict[str, Any]:
        return row_of(d.report["capacity"]["pools"], name=name)

    def ssd() -> dict[str, Any]:
        return row_of(d.report["capacity"]["classes"], **{"class": "ssd"})

    yield Question(
        "overhead",
        f"Pool {d.pool}: how many raw bytes does one byte of a client take?",
        lambda: float(pool(d.pool)["overhead"]),
        unit="B/B",
        tolerance=0.01,
        hint="(k + m)/k, or the number of copies.",
    )
    yield Question(
        "usable",
        f"Pool {d.pool}: how many GB could clients store until the full ratio, if data were spread evenly?",
        lambda: pool(d.pool)["usable_bytes_full"] / 1e9,
        unit="GB",
        tolerance=0.03,
        hint="Raw bytes of its OSDs × full ratio / overhead.",
    )
    yield Question(
        "placement groups of the fullest",
        "Class ssd: by which factor does its fullest OSD hold more than the mean?",
        lambda: float(ssd()["now"]["fullest_over_mean"]),
        tolerance=0.02,
        hint="The table of device classes.",
        why=lambda _: (
            f"It is osd.{ssd()['now']['fullest_osd']}. When it is full, writes stop in the whole pool."
        ),
    )
    yield Question(
        "stranded",
        "Class ssd: which share of its bytes up to the full ratio is stranded by that imbalance?",
        lambda: 100 * ssd()["now"]["stranded_bytes"] / ssd()["full_bytes"],
        unit="%",
        hint="1 − 1/(fullest over mean).",
        why="1 − 1/(fullest over mean): what the others still have free when the fullest is full.",
    )
    yield Question(
        "balanced",
        "Class ssd: how many GB does the balancer (upmap) win back?",
        lambda: (
            (ssd()["now"]["stranded_bytes"] - ssd()["after_upmap"]["stranded_bytes"])
            / 1e9
        ),
        unit="GB",
        hint="Stranded now less stranded after upmap.",
        why="Not all: single placement groups are coarse on OSDs that hold so few.",
    )
    yield Question(
        "room to heal",
        f"{d.hosts} equal hosts are {d.used} % full. One is lost for good. How full are the others "
        "afterwards?",
        lambda: d.used * d.hosts / (d.hosts - 1),
        unit="%",
        tolerance=0.02,
        hint="The same bytes on one host less.",
        why=lambda x: (
            "Below the nearfull ratio of 85 %."
            if x < 85
            else "Above the nearfull ratio of 85 %."
        ),
    )
    yield Question(
        "few big hosts",
        "With 4 hosts and RS(2,2) over hosts, one host is lost for good. Onto how many hosts can its shards "
        "be rebuilt?",
        lambda: 0,
        tolerance=0.0,
        hint="Each shard needs a host of its own.",
        why="Four shards need four hosts; three are left. The pool stays degraded until a host comes back.",
    )
    yield Question(
        "agreement",
        "On how many OSDs do the placement groups that we computed equal those that the cluster counted?",
        lambda: sum(
            row["acting_pgs"] == row["reported_acting_pgs"]
            for row in d.report["pgs_by_osd"]
        ),
        tolerance=0.0,
        hint="Compare acting_pgs and reported_acting_pgs.",
        why="CRUSH is a function: with the same map and the same hash the result is the same, bit by bit.",
    )
