"""Hosts that differ: capacity counted by hand, weights, racks, cores, and a run on both engines."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from stripesim.models.placement import map_of_hosts, map_to_text
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.scenarios.planning.capacity import capacity_of, drives_of
from stripesim.scenarios.run.build import build_models, build_pool, parse_scheme
from stripesim.scenarios.run.execute import run_scenario
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.loader import ScenarioError, parse_scenario

# 4 × 2 × 4 TB, 2 × 3 × 8 TB, 2 × 3 × 8 TB: racks of 32, 48 and 48 TB, hosts of 8 and 24 TB.
TEXT = """schemes = ["rep:3"]
[cluster]
pg_num = 256
osds_per_host = 3
ssd = "nvme-tlc"
parameters = "pacific"
[[cluster.hosts]]
count = 4
osds = 2
drive_bytes = "4TB"
rack = "a"
[[cluster.hosts]]
count = 2
drive_bytes = "8TB"
cores = 8
rack = "b"
[[cluster.hosts]]
count = 2
drive_bytes = "8TB"
rack = "c"
[workload]
ops = ["write"]
patterns = ["rand"]
requests = 300
queue_depth = 16
image_bytes = "1GB"
"""


def held(scenario: Scenario) -> tuple[float, ...]:
    models = build_models(scenario)
    found = capacity_of(scenario, "rep:3", models, drives_of(scenario, models))
    assert found.raw_bytes and found.usable_bytes_full and found.usable_bytes_safe
    return found.domains, found.raw_bytes, found.usable_bytes_full, found.usable_bytes_safe


@pytest.mark.parametrize(
    ("domain", "domains", "largest_tb"), [("osd", 20, 8), ("host", 8, 24), ("rack", 3, 48)]
)
def test_capacity_is_what_the_groups_add_up_to(domain: str, domains: int, largest_tb: int) -> None:
    scenario = parse_scenario(TEXT, sets=[f"cluster.failure_domain_replicated={domain}"])
    full, safe = 128e12 * 0.95 / 3, (128 - largest_tb) * 1e12 * 0.85 / 3
    assert held(scenario) == (domains, 128e12, pytest.approx(full), pytest.approx(safe))


def test_racks_of_a_map_are_domains_too(tmp_path: Path) -> None:
    weights = [(WEIGHT_ONE,) * osds for osds in (2, 2, 2, 2, 3, 3, 3, 3)]
    crush = map_of_hosts(weights, ["a", "a", "a", "a", "b", "b", "c", "c"])
    (tmp_path / "map.txt").write_text(map_to_text(crush))
    text = TEXT.replace("[cluster]", '[cluster]\ncrush_map = "map.txt"\ncrush_rule = "rep_rack"')
    scenario = parse_scenario(text, base_dir=tmp_path)
    domains, raw, _, safe = held(scenario)
    assert (domains, raw, safe) == (3, 128e12, pytest.approx(80e12 * 0.85 / 3))
    with pytest.raises(ValueError, match=r"cluster\.hosts: got groups of 9 hosts, wanted 8"):
        held(parse_scenario(text.replace("count = 4", "count = 5"), base_dir=tmp_path))


def test_osds_get_groups_by_their_capacity() -> None:
    scenario = parse_scenario(TEXT, sets=["cluster.failure_domain_replicated=osd", "cluster.pg_num=4096"])
    pool = build_pool(scenario, parse_scheme("rep:3"), build_models(scenario))
    placed = np.bincount(pool.cluster.acting.ravel(), minlength=20)
    # 8 TB against 4 TB; that copies lie on distinct OSDs evens it out a little.
    assert 1.8 < placed[8:].mean() / placed[:8].mean() < 2.0
    cores = [
        c
        for k, c in zip(pool.cluster.resources.kinds, pool.cluster.resources.capacities, strict=True)
        if k == "cpu"
    ]
    assert cores == [24] * 4 + [8] * 2 + [24] * 2


def test_both_engines_run_it_and_share_no_rack() -> None:
    scenario = parse_scenario(TEXT, sets=["cluster.failure_domain_replicated=rack"])
    assert (
        len({run_scenario(scenario, engine=e, costs=False).completions_sha256 for e in ("compiled", "simpy")})
        == 1
    )
    acting = build_pool(scenario, parse_scheme("rep:3"), build_models(scenario)).cluster.acting
    racks = np.repeat([0, 1, 2], [8, 6, 6])[acting]
    assert all(set(row) == {0, 1, 2} for row in racks.tolist())


def test_equal_groups_are_the_regular_cluster() -> None:
    plain = TEXT[: TEXT.index("[[")] + "{}" + TEXT[TEXT.index("[workload]") :]
    one = parse_scenario(plain.format("hosts = 4\n"))
    groups = parse_scenario(plain.format("[[cluster.hosts]]\ncount = 3\n[[cluster.hosts]]\n"))
    runs = [run_scenario(each, costs=False).completions_sha256 for each in (one, groups)]
    assert runs[0] == runs[1]
    assert one.hash() != groups.hash()


def test_what_contradicts_groups_is_refused_with_its_line() -> None:
    text = TEXT.replace("osds = 2", 'osds = "x"\nfoo = 1').replace("pg_num = 256", "racks = 2")
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, label="s.toml")
    places = Counter(line.partition(": got")[0] for line in str(caught.value).splitlines())
    assert {"s.toml:9: cluster.hosts.osds", "s.toml:10: cluster.hosts.foo"} <= set(places)
    with pytest.raises(ScenarioError, match=r"s\.toml:3: cluster\.racks: got 2"):
        parse_scenario(TEXT.replace("pg_num = 256", "racks = 2"), label="s.toml")
    with pytest.raises(ScenarioError, match=r"s\.toml:17: cluster\.hosts: got no rack"):
        parse_scenario(TEXT.replace('rack = "c"\n', ""), label="s.toml")
