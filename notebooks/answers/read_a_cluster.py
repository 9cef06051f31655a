"""Lesson 12: read a cluster."""

from typing import Any

from stripesim.notebooks.teach import Given, Question, Questions, row_of

TITLE = "Read a cluster"
NUMBERS = {
    "pool": ("ec21", "ec22", "reps"),
    "client_gb": tuple(tenth / 10 for tenth in range(11, 80)),
    "stop_percent": range(60, 95),
    "mean_used": range(30, 75),
    "larger_tb": tuple(tenth / 10 for tenth in range(40, 250)),
    "hosts": range(5, 20),
    "used": range(40, 75),
    "big_hosts": range(10, 30),
    "big_k": range(3, 7),
    "big_m": (2, 3),
    "first_pool": ("reps", "ec21"),
    "second_pool": ("fast", "ec22"),
    "grown": range(2, 30),
}
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

    def scale() -> float:
        """Return how many times as much class ssd would hold with the larger drives."""
        osds = [osd for osd in d.report["osds"] if osd["class"] == "ssd"]
        return float(d.larger_tb * 1e12 * len(osds) / ssd_bytes(osds))

    def ssd_bytes(osds: list[dict[str, Any]]) -> float:
        return float(sum(osd["size_bytes"] for osd in osds))

    def every_pool() -> list[str]:
        return [row["name"] for row in d.report["pools"]]

    def shards(name: str) -> int:
        """Return the shards of all placement groups of a pool."""
        row = row_of(d.report["pools"], name=name)
        return int(row["pg_num"] * row["size"])

    def counted() -> int:
        return sum(row["reported_acting_pgs"] for row in d.report["pgs_by_osd"])

    yield Question(
        "overhead",
        f"How many raw GB do {d.client_gb:g} GB of client data take in pool {d.pool}?",
        lambda: d.client_gb * float(pool(d.pool)["overhead"]),
        unit="GB",
        tolerance=0.01,
        hint="Multiply by (k + m)/k, or by the number of replicas.",
    )
    yield Question(
        "usable",
        f"A careful operator stops at {d.stop_percent} % instead of the full ratio. With evenly "
        "spread data, how many "
        f"GB could clients store in pool {d.pool} until then?",
        lambda: (
            pool(d.pool)["raw_bytes"]
            * d.stop_percent
            / 100
            / pool(d.pool)["overhead"]
            / 1e9
        ),
        unit="GB",
        tolerance=0.01,
        hint="Raw bytes of its OSDs × the ratio / overhead.",
    )
    yield Question(
        "placement groups of the fullest",
        f"If the OSDs of class ssd are {d.mean_used} % full on average, how full is the fullest?",
        lambda: d.mean_used * float(ssd()["now"]["fullest_over_mean"]),
        unit="%",
        tolerance=0.01,
        hint="See the table of device classes.",
        why=lambda _: (
            f"The fullest is osd.{ssd()['now']['fullest_osd']}. When it is full, writes stop in the "
            "whole pool."
        ),
    )
    yield Question(
        "stranded",
        f"The same placement groups on drives of {d.larger_tb:g} TB: how many TB of class ssd, up "
        "to the full ratio, does "
        "the imbalance strand?",
        lambda: scale() * ssd()["now"]["stranded_bytes"] / 1e12,
        unit="TB",
        tolerance=0.02,
        hint="Its share is 1 − 1/(fullest over mean). The class holds its OSDs × drive size × full ratio.",
        why="1 − 1/(fullest over mean) is still free on the other OSDs when the fullest is full.",
    )
    yield Question(
        "balanced",
        f"And how many of them does the balancer (upmap) regain, with drives of {d.larger_tb:g} TB?",
        lambda: (
            scale()
            * (ssd()["now"]["stranded_bytes"] - ssd()["after_upmap"]["stranded_bytes"])
            / 1e12
        ),
        unit="TB",
        tolerance=0.03,
        hint="Subtract the stranded bytes after upmap from those now, and scale them with the drives.",
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
        f"A cluster with RS({d.big_k},{d.big_m}) over {d.big_hosts} hosts loses hosts for good, "
        "one after the other. "
        "How many of them can it lose and still rebuild all shards each time, if bytes suffice?",
        lambda: d.big_hosts - d.big_k - d.big_m,
        unit="hosts",
        tolerance=0.0,
        hint="Each shard needs a separate host.",
        why=f"{d.big_k + d.big_m} shards need as many hosts. With one host fewer, the pool stays "
        "degraded until one "
        "returns.",
    )
    yield Question(
        "agreement",
        f"A new cluster with the same eight OSDs has only the pools {d.first_pool} and {d.second_pool}, "
        f"the first with {d.grown} times as many placement groups as here. How many shards of placement "
        "groups does an OSD serve on average?",
        lambda: (
            (d.grown * shards(d.first_pool) + shards(d.second_pool))
            / len(d.report["osds"])
        ),
        tolerance=0.01,
        hint="A placement group has k + m shards, or as many as there are replicas. See the table of pools.",
        why=lambda _: (
            f"Today all pools together have {sum(map(shards, every_pool()))} shards, and the cluster counts "
            f"{counted()} on OSDs: {sum(map(shards, every_pool())) - counted()} shards have none while their "
            "placement groups are remapped. CRUSH is a function: the same map and hash give the same "
            "OSDs, bit for bit."
        ),
    )
