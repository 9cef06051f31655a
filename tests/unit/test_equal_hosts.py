"""Hosts taken as equal: raw capacity and failure domain stay those of the map or of the groups."""

import pytest

from stripesim.models.placement import build_map, map_to_text
from stripesim.scenarios.forms.equal_hosts import with_equal_hosts
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario

LOAD = "[workload]\nrequests = 100\nimage_bytes = '1GiB'\n"


def _with_map(folder, rule):
    text = map_to_text(build_map(hosts=6, osds_per_host=4, racks=3))
    (folder / "map.txt").write_text(text)
    path = folder / "mapped.toml"
    path.write_text(
        "schemes = ['rep:3']\n[cluster]\ncrush_map = 'map.txt'\n"
        f"crush_rule = '{rule}'\npg_num = 64\ndrive_bytes = '2TB'\n" + LOAD
    )
    return load_scenario(path)


@pytest.mark.parametrize(
    ("rule", "domain", "racks"),
    [("rep", "host", None), ("rep_rack", "rack", 3), ("rep_osd", "osd", None)],
)
def test_a_map_becomes_its_counts(tmp_path, rule, domain, racks):
    scenario, notes = with_equal_hosts(_with_map(tmp_path, rule))
    cluster = scenario.cluster
    assert cluster.crush_map is None
    assert (cluster.hosts, cluster.osds_per_host) == (6, 4)
    assert cluster.failure_domain_replicated == domain
    assert cluster.racks == racks
    assert cluster.drive_bytes == 2e12
    assert "map.txt" in notes[0]


def test_groups_keep_their_raw_capacity():
    # 2 hosts × 6 × 8 TB and 4 hosts × 3 × 4 TB: 144 TB on 24 OSDs of 6 hosts.
    scenario, notes = with_equal_hosts(
        parse_scenario(
            "schemes = ['rep:3']\n[cluster]\npg_num = 64\n"
            "[[cluster.hosts]]\ncount = 2\nosds = 6\ndrive_bytes = '8TB'\n"
            "[[cluster.hosts]]\ncount = 4\nosds = 3\ndrive_bytes = '4TB'\n" + LOAD
        )
    )
    cluster = scenario.cluster
    assert (cluster.hosts, cluster.osds_per_host) == (6, 4)
    assert cluster.drive_bytes * 6 * 4 == pytest.approx(144e12)
    assert len(notes) == 1


def test_equal_hosts_stay_as_they_are():
    scenario = load_scenario("quickstart")
    assert with_equal_hosts(scenario) == (scenario, [])
