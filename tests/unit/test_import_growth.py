"""Hosts that are added to an imported cluster: capacity, places, weights, shadow trees, counted by hand."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from stripesim.models.placement import NONE, map_to_text, parse_map
from stripesim.models.problems import MeasuredError
from stripesim.scenarios.cells.build import check_schemes
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import osd_hosts
from stripesim.scenarios.clusters.capacity import capacity_of
from stripesim.scenarios.clusters.cluster import import_cluster
from stripesim.scenarios.clusters.growth import grown_cluster, parse_growth
from stripesim.scenarios.clusters.scenario import write_scenario
from stripesim.scenarios.clusters.summary import describe_cluster
from stripesim.scenarios.clusters.usage import stored_on
from stripesim.scenarios.schema.scenario import load_scenario
from support.reports import OSD_BYTES, OSDS_PER_HOST, report, write_report

REAL = Path(__file__).parent / "data" / "ceph16-report.json"


@pytest.fixture
def cluster(tmp_path):
    """Import 6 hosts in 3 racks, 4 disks of 4.096 TB each, with 12 TB in use."""
    return import_cluster([write_report(tmp_path, report(kb_used=12 * 10**12 // 1024))])


@pytest.fixture(scope="module")
def real():
    """Import our own cluster, with two device classes and weight sets."""
    return import_cluster([REAL])


def test_hosts_go_to_the_racks_with_fewest(cluster):
    grown = grown_cluster(cluster, cluster.pools[0], 4)
    racks = grown.osd_map.crush.domains("rack")
    hosts = {osd.host: racks[osd.id] for osd in grown.osds}
    # 2 hosts in each of 3 racks, and then one more in each, and a fourth in the first.
    assert Counter(hosts.values()) == {"rack0": 4, "rack1": 3, "rack2": 3}
    added = [osd for osd in grown.osds if osd.id >= 24]
    assert [osd.id for osd in added] == list(range(24, 40))
    assert {(osd.size_bytes, osd.device_class, osd.up, osd.is_in) for osd in added} == {
        (OSD_BYTES, "hdd", True, True)
    }


def test_capacity_and_use_follow(cluster):
    grown = grown_cluster(cluster, cluster.pools[0], 4)
    (row,) = capacity_of(grown)["classes"]
    assert row["raw_bytes"] == 40 * OSD_BYTES
    assert row["used_bytes"] == pytest.approx(12 * 10**12, abs=1024)
    (pool,) = capacity_of(grown)["pools"]
    # 9 of 10 hosts at the nearfull ratio, in three copies, if all OSDs were equally full.
    even = pool["usable_bytes_safe"] * pool["imbalance_after_loss"]
    assert even == pytest.approx(36 * OSD_BYTES * 0.85 / 3)
    assert stored_on(grown, grown.pools[0]) == pytest.approx(4 * 10**12, abs=1024)
    assert pool["more_bytes"] > capacity_of(cluster)["pools"][0]["more_bytes"]


def test_weights_of_all_ancestors_grow(cluster):
    before = {
        bucket.name: sum(bucket.weights) for bucket in cluster.osd_map.crush.buckets
    }
    grown = grown_cluster(cluster, cluster.pools[0], 4)
    after = {bucket.name: sum(bucket.weights) for bucket in grown.osd_map.crush.buckets}
    host = before["host0"]
    assert after["root"] == before["root"] + 4 * host
    assert (after["rack0"], after["rack1"]) == (
        before["rack0"] + 2 * host,
        before["rack1"] + host,
    )
    assert after["added-host-1"] == host


def test_groups_are_spread_over_all_osds(cluster):
    grown = grown_cluster(cluster, cluster.pools[0], 4)
    acting = grown.sets[1].acting
    assert acting.shape == (64, 3) and not (acting == NONE).any()
    # 16 of 40 equal OSDs are new: 77 of 192 shards, give or take three times the standard deviation of 7.
    assert abs(int((acting >= 24).sum()) - 192 * 16 / 40) < 21


def test_the_written_scenario_reflects_the_growth(cluster, tmp_path):
    document, scenarios = describe_cluster(
        cluster, grow="hosts=+4", path=tmp_path / "s.toml"
    )
    assert (
        len(document["osds"]),
        document["capacity"]["pools"][0]["failure_domains"],
    ) == (40, 10)
    for path, scenario in scenarios.items():
        write_scenario(scenario, path)
    scenario = load_scenario(tmp_path / "s.toml")
    assert len(set(osd_hosts(scenario).tolist())) == 10
    check_schemes(scenario, build_models(scenario))


def test_shadow_trees_and_weight_sets_stay_consistent(real):
    pool = next(pool for pool in real.pools if pool.placed.name == "reps")
    grown = grown_cluster(real, pool, 2)
    crush = grown.osd_map.crush
    by_id = {bucket.id: bucket for bucket in crush.buckets}
    classes = {device.id: device.device_class for device in crush.devices}
    template = Counter(osd.device_class for osd in real.osds if osd.host == "h0")
    for number in (1, 2):
        (host,) = [
            bucket for bucket in crush.buckets if bucket.name == f"added-host-{number}"
        ]
        assert Counter(classes[item] for item in host.items) == template
        for name, shadow_id in host.class_ids:
            shadow = by_id[shadow_id]
            assert shadow.name == f"added-host-{number}~{name}"
            assert [classes[item] for item in shadow.items] == [name] * template[name]
            holders = [bucket for bucket in crush.buckets if shadow_id in bucket.items]
            assert [holder.name.endswith(f"~{name}") for holder in holders] == [True]
    old = {bucket.id: bucket for bucket in real.osd_map.crush.buckets}
    for (index, changes), (_, before) in zip(
        crush.choose_args, real.osd_map.crush.choose_args, strict=True
    ):
        earlier = {change.bucket_id: change for change in before}
        for change in changes:
            size = len(by_id[change.bucket_id].items)
            more = size - len(old[change.bucket_id].items)
            assert all(len(weights) == size for weights in change.weight_sets)
            for weights, previous in zip(
                change.weight_sets, earlier[change.bucket_id].weight_sets, strict=True
            ):
                # New items weigh what their buckets weigh; the others stay, unless a host was added below.
                new = by_id[change.bucket_id].items[size - more :]
                assert list(weights[size - more :]) == [
                    sum(by_id[item].weights) for item in new
                ]
                assert len(previous) == size - more, index


def test_a_grown_map_comes_back_from_its_text(real):
    pool = next(pool for pool in real.pools if pool.placed.name == "reps")
    crush = grown_cluster(real, pool, 2).osd_map.crush
    read = parse_map(map_to_text(crush))
    inputs = np.arange(500)
    for rule in crush.rules:
        for number in (-1, pool.placed.id):
            expected = crush.map_many(rule.id, inputs, 3, pool=number)
            assert (read.map_many(rule.name, inputs, 3, pool=number) == expected).all()


def test_the_most_common_host_is_the_model(tmp_path):
    document = report()
    # One host has larger disks: it is not what more of the same means.
    for row in document["osd_metadata"][:OSDS_PER_HOST]:
        row["bluestore_bdev_size"] = str(3 * OSD_BYTES)
    cluster = import_cluster([write_report(tmp_path, document)])
    grown = grown_cluster(cluster, cluster.pools[0], 1)
    assert [osd.size_bytes for osd in grown.osds[24:]] == [OSD_BYTES] * OSDS_PER_HOST


@pytest.mark.parametrize(
    "text",
    [
        "",
        "4",
        "hosts=4",
        "hosts=+0",
        "hosts=+-1",
        "osds=+4",
        "hosts=+99999",
        "hosts=+x",
    ],
)
def test_other_growth_is_refused(text):
    with pytest.raises(MeasuredError, match="--grow: got "):
        parse_growth(text)
