"""Purchases are simulated alone and in pairs."""

import pytest

from stripesim.scenarios.answers.run.advise import (
    PURCHASES,
    _offered,
    advise,
    notable,
    simulations,
    with_doubled,
)
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.observe.resource_words import RESOURCE_WORDS

TEXT = """schemes = ["rep:3"]
[cluster]
parameters = "kraken"
hosts = 4
osds_per_host = 2
pg_num = 128
[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
queue_depth = 32
requests = 600
image_bytes = "1GiB"
"""


def test_an_object_store_may_also_double_its_gateways():
    text = """
schemes = ["rep:3"]
[cluster]
hosts = 4
osds_per_host = 1
pg_num = 16
[workload]
kind = "s3"
ops = ["get"]
object_sizes_bytes = ["64k"]
requests = 100
"""
    scenario = parse_scenario(text)
    (gateways,) = (one for one in _offered(scenario) if one.words == "gateways")
    # One on each host by default.
    changed, _ = with_doubled(scenario, [gateways])
    assert changed.cluster.gateways.count == 8
    assert changed.cluster.hosts == 4
    assert set(gateways.kinds) == {
        kind for kind in RESOURCE_WORDS if kind.startswith("gateway.")
    }


def test_doubling_changes_only_the_key() -> None:
    scenario = parse_scenario(TEXT)
    by_key = {one.key[-1]: one for one in PURCHASES}
    changed, models = with_doubled(
        scenario, [by_key["osds_per_host"], by_key["threads"]]
    )
    assert changed.cluster.osds_per_host == 4
    # The parameter set's one thread, doubled.
    assert changed.client.threads == 2
    assert changed.cluster.model_copy(update={"osds_per_host": 2}) == scenario.cluster
    assert changed.workload == scenario.workload
    assert models.client.submit_threads_count == 2
    same, faster = with_doubled(scenario, [by_key["drive"]])
    assert same == scenario
    assert faster.ssd.read_ns(1 << 20) == pytest.approx(models.ssd.read_ns(1 << 20) / 2)
    assert faster.ssd.servers == models.ssd.servers


def test_one_network_has_no_private_one_to_double() -> None:
    two = parse_scenario(TEXT)
    one = parse_scenario(TEXT.replace("[workload]", "networks = 1\n[workload]"))
    left_out = {each.words for each in _offered(two)} - {
        each.words for each in _offered(one)
    }
    assert left_out == {"private network"}


@pytest.mark.parametrize(
    ("keys", "doubled", "host_cores"),
    [
        # Two OSDs with 8 cores each need 16 of a host.
        ("cores_per_osd = 4\ncores_per_host = 8", {"cores_per_osd": 8}, 16),
        # A limit of 4 fits the host, and 2 x 4 = 8 as well.
        ("cpu_limit_per_osd = 2.0\ncores_per_host = 8", {"cpu_limit_per_osd": 4}, 8),
        # No OSD exceeds the cores that it is pinned to, so they grow with the limit.
        (
            "cpu_limit_per_osd = 3.0\ncores_per_osd = 4\ncores_per_host = 8",
            {"cpu_limit_per_osd": 6, "cores_per_osd": 6},
            12,
        ),
    ],
)
def test_twice_the_cores_are_those_that_osds_may_use(
    keys: str, doubled: dict[str, float], host_cores: int
) -> None:
    scenario = parse_scenario(TEXT.replace("[workload]", f"{keys}\n[workload]"))
    (cores,) = (one for one in _offered(scenario) if "osd.cpu" in one.kinds)
    cluster = with_doubled(scenario, [cores])[0].cluster
    assert {key: getattr(cluster, key) for key in doubled} == doubled
    assert cluster.cores_per_host == host_cores


def test_more_pinned_osds_come_with_cores() -> None:
    # Four OSDs with 4 cores each need 16 of a host, which has 8.
    keys = "cores_per_osd = 4\ncores_per_host = 8\n[workload]"
    scenario = parse_scenario(TEXT.replace("[workload]", keys))
    (osds,) = (
        one for one in _offered(scenario) if "kv" in one.kinds and "OSDs" in one.words
    )
    assert osds.words == "OSDs with cores"
    assert with_doubled(scenario, [osds])[0].cluster.cores_per_host == 16
    roomy = scenario.with_cluster(cores_per_host=16)
    assert "OSDs" in [one.words for one in _offered(roomy)]


def test_a_higher_cpu_limit_helps_osds_that_it_stops() -> None:
    keys = "cpu_limit_per_osd = 0.5\n[workload]"
    text = TEXT.replace("[workload]", keys).replace('"kraken"', '"nvme"')
    scenario = parse_scenario(text.replace("requests = 600", "requests = 200"))
    gains = {gain.words: gain for gain in advise(scenario, replications=1)}
    assert gains["CPU limit of OSDs"].iops.mean > 0.5


def test_relieving_the_limiting_thread_helps_reads() -> None:
    scenario = parse_scenario(TEXT)
    done: list[str] = []
    gains = advise(scenario, replications=2, progress=done.append)
    assert len(done) == simulations(scenario, replications=2)
    singles = {gain.words: gain for gain in gains if len(gain.purchases) == 1}
    assert len(singles) == len(PURCHASES)
    mean, low, high = singles["client threads"].iops
    assert low is not None and high is not None and low <= mean <= high
    assert mean > 0.5
    assert all(
        abs(gain.iops[0]) < 0.05
        for words, gain in singles.items()
        if words != "client threads"
    )
    # The largest gain comes first; a pair with nothing but the thread is not worth a line.
    assert "client threads" in gains[0].words
    rows = [gain.to_json() for gain in gains]
    shown = notable(rows)
    assert {tuple(row["doubled"]) for row in shown if len(row["doubled"]) == 1} == {
        (".".join(one.key),) for one in PURCHASES
    }
    assert len(shown) < len(rows)


def test_many_cells_are_refused() -> None:
    scenario = parse_scenario(
        TEXT.replace('["4k"]', str([f"{size}k" for size in range(1, 15)]))
    )
    with pytest.raises(ValueError, match=r"--advise: got 14 cells.*12\b"):
        advise(scenario)
