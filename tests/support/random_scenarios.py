"""Draw small scenarios of every kind that `stripesim run` simulates, for properties of their rows."""

from __future__ import annotations

from random import Random
from typing import Any

import stripesim

SCHEMES = ("rep:2", "rep:3", "rs:2,1", "rs:4,2", "rs:3,2", "rs:6,3")
# Codes of pools that are not optimised.
SCHEMES_CLASSIC = ("lrc:4,3,2", "shec:6,3,2", "clay:4,2,5", "lrc-ceph:4,2,3")
# Releases with the parameter set of a cluster of their time.
RELEASES = {
    "kraken": "kraken",
    "pacific": "pacific",
    "quincy": "nvme",
    "reef": "nvme",
    "reef-partial-read": "nvme",
    "squid": "nvme",
    "tentacle": "nvme",
    "umbrella": "nvme",
}
DRIVES = ("intel-730", "nvme-tlc", "samsung-pm983", "hdd-7200")
READ_POLICIES = ("needed", "needed", "speculative:1", "fastest:k")
SIZES_BYTES = (4096, 4096, 16384, 65536, 1 << 20)


def random_scenario(seed: int) -> Any:
    """Return the scenario of a seed: one cell on a few hosts, or several workloads at the same time."""
    random = Random(seed)
    release = random.choice(list(RELEASES))
    schemes = SCHEMES
    if release not in ("tentacle", "umbrella"):
        schemes += SCHEMES_CLASSIC
    scheme = random.choice(schemes)
    keys: dict[str, Any] = {
        "seed": seed,
        "generation": release,
        "schemes": [scheme],
        "cluster": {**_cluster(random), "parameters": RELEASES[release]},
    }
    if scheme in SCHEMES:
        # A draw of its own leaves those of other keys as they were.
        keys["cluster"]["read_policy"] = Random(f"reads {seed}").choice(READ_POLICIES)
    kind = random.choice(("closed", "closed", "closed", "open", "loads", "faults"))
    if kind == "loads":
        keys["workload"] = {"image_bytes": 1 << 28}
        keys["workloads"] = [
            {"name": name, **_load(random, random.choice(("closed", "open")))}
            for name in ("one", "two")
        ]
        return stripesim.Scenario(**keys)
    if kind == "faults":
        load = _load(random, random.choice(("open", "closed")))
        load |= {"duration_s": 0.3, "image": "prefilled"}
        load.pop("requests", None)
        load.pop("completions", None)
        keys["workload"] = load
        keys |= _events(random)
        return stripesim.Scenario(**keys)
    keys["workload"] = _load(random, kind)
    if random.random() < 0.1:
        keys["degraded"] = {"missing_osds": [random.randrange(9)]}
    return stripesim.Scenario(**keys)


def _cluster(random: Random) -> dict[str, Any]:
    return {
        "hosts": random.choice((10, 10, 11, 12)),
        "osds_per_host": random.choice((1, 1, 2)),
        "pg_num": random.choice((16, 32)),
        "cores_per_host": random.choice((1, 4, 24)),
        "public_gbit_per_s": random.choice((1, 10, 100)),
        "private_gbit_per_s": random.choice((1, 10, 100)),
        "networks": random.choice((1, 2)),
        "drive": random.choice(DRIVES),
    }


def _load(random: Random, kind: str) -> dict[str, Any]:
    load: dict[str, Any] = {
        "kind": kind,
        "patterns": [random.choice(("rand", "rand", "seq"))],
        "block_sizes_bytes": [random.choice(SIZES_BYTES)],
        "clients": random.choice((1, 1, 2, 3)),
        "image": random.choice(("prefilled", "prefilled", "pristine")),
        "image_bytes": 1 << 28,
    }
    if random.random() < 0.3:
        load["read_fraction"] = random.choice((0.3, 0.7))
    else:
        load["ops"] = [random.choice(("read", "write"))]
    if kind == "open":
        load |= {"rate_per_s": random.choice((50.0, 300.0, 2000.0)), "requests": 120}
        return load
    load["queue_depth"] = random.choice((1, 2, 4, 16))
    load["requests"] = random.choice((60, 120, 200))
    if random.random() < 0.1 and load["patterns"] == ["seq"]:
        load["completions"] = "newest"
    if random.random() < 0.1:
        del load["requests"]
        load["duration_s"] = 0.05
    return load


def _events(random: Random) -> dict[str, Any]:
    kind = random.choice(("process", "slow", "repair"))
    if kind == "repair":
        return {"repair": {"lost_osds": [0]}}
    event: dict[str, Any] = {"osds": [1], "at_s": 0.1, "kind": kind}
    if kind == "slow":
        event["factor"] = 8.0
    return {"faults": {"events": [event]}}
