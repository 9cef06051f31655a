"""Hosts that differ: capacity counted by hand, weights, racks, cores, and a run on both engines."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.placement import map_of_hosts, map_to_text
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.answers.sweep.plan import plan_sweep
from stripesim.scenarios.cells.build import build_pool, parse_scheme
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import crush_of, osd_hosts
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.forms.capacity import capacity_of, drives_of
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario, parse_scenario

# 4 × 2 × 4 TB, 2 × 3 × 8 TB, 2 × 3 × 8 TB: racks of 32, 48 and 48 TB, hosts of 8 and 24 TB.
TEXT = """schemes = ["rep:3"]
[cluster]
pg_num = 256
osds_per_host = 3
drive = "nvme-tlc"
parameters = "pacific"
cores_per_host = 24
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
    return (
        found.domains,
        found.raw_bytes,
        # As if all OSDs were equally full.
        found.usable_bytes_full * found.imbalance,
        found.usable_bytes_safe * found.imbalance_after_loss,
    )


@pytest.mark.parametrize(
    ("domain", "domains", "largest_tb", "copies_left"),
    # Two of three racks keep the copies that they have.
    [("osd", 20, 8, 3), ("host", 8, 24, 3), ("rack", 3, 48, 2)],
)
def test_capacity_is_the_sum_over_groups(
    domain: str, domains: int, largest_tb: int, copies_left: int
) -> None:
    scenario = parse_scenario(
        TEXT, sets=[f"cluster.failure_domain_replicated={domain}"]
    )
    full = 128e12 * 0.95 / 3
    safe = (128 - largest_tb) * 1e12 * 0.85 / copies_left
    assert held(scenario) == (domains, 128e12, pytest.approx(full), pytest.approx(safe))


def test_racks_of_a_map_are_domains_too(tmp_path: Path) -> None:
    weights = [(WEIGHT_ONE,) * osds for osds in (2, 2, 2, 2, 3, 3, 3, 3)]
    crush = map_of_hosts(weights, ["a", "a", "a", "a", "b", "b", "c", "c"])
    (tmp_path / "map.txt").write_text(map_to_text(crush))
    text = TEXT.replace(
        "[cluster]", '[cluster]\ncrush_map = "map.txt"\ncrush_rule = "rep_rack"'
    )
    scenario = parse_scenario(text, base_dir=tmp_path)
    domains, raw, _, safe = held(scenario)
    assert (domains, raw, safe) == (3, 128e12, pytest.approx(80e12 * 0.85 / 2))
    with pytest.raises(ValueError, match=r"cluster\.hosts: got groups of 9 hosts.*8\b"):
        held(parse_scenario(text.replace("count = 4", "count = 5"), base_dir=tmp_path))


def test_osds_get_groups_by_their_capacity() -> None:
    scenario = parse_scenario(
        TEXT, sets=["cluster.failure_domain_replicated=osd", "cluster.pg_num=4096"]
    )
    pool = build_pool(scenario, parse_scheme("rep:3"), build_models(scenario))
    placed = np.bincount(pool.cluster.acting.ravel(), minlength=20)
    # 8 TB against 4 TB. Replicas on distinct OSDs reduce the difference slightly.
    assert 1.8 < placed[8:].mean() / placed[:8].mean() < 2.0
    cores = [
        c
        for k, c in zip(
            pool.cluster.resources.kinds, pool.cluster.resources.capacities, strict=True
        )
        if k == "cpu"
    ]
    assert cores == [24] * 4 + [8] * 2 + [24] * 2


# Two hosts have 1 TB drives. The other two use the capacity of nvme-tlc or of the cluster.
PARTLY = """schemes = ["rep:2"]
[cluster]
pg_num = 4096
osds_per_host = 1
drive = "nvme-tlc"
parameters = "kraken"
failure_domain_replicated = "osd"
[[cluster.hosts]]
count = 2
drive_bytes = "1TB"
[[cluster.hosts]]
count = 2
[workload]
requests = 10
"""


@pytest.mark.parametrize("default", ["device", "cluster"])
def test_a_group_without_a_capacity_has_the_default_everywhere(default: str) -> None:
    given = ['cluster.drive_bytes="4TB"'] if default == "cluster" else []
    default_bytes = (
        4e12
        if given
        else ParameterSet("nvme-tlc").table("capacity")["drive_bytes"]["value"]
    )
    scenario = parse_scenario(PARTLY, sets=given)
    # CRUSH weights are TiB in 65,536ths.
    weights = [
        weight for bucket in crush_of(scenario).buckets[:4] for weight in bucket.weights
    ]
    small, large = (round(size / 2**40 * 65536) for size in (1e12, default_bytes))
    assert weights == [small, small, large, large]
    models = build_models(scenario)
    drives = drives_of(scenario, models)
    assert capacity_of(scenario, "rep:2", models, drives).raw_bytes == 2 * (
        1e12 + default_bytes
    )
    assert drives.largest_osd_bytes == default_bytes
    # Ten requests are too few for those in flight, so that the run is longer.
    assert min(run_scenario(scenario, costs=False).rows["requests"]) >= 10


def test_a_group_without_any_capacity_is_refused_with_its_key() -> None:
    scenario = parse_scenario(PARTLY, sets=['cluster.drive="ebs-gp3"'], label="s.toml")
    with pytest.raises(ValueError, match=r"cluster\.hosts\.drive_bytes: got nothing"):
        crush_of(scenario)
    known = parse_scenario(
        PARTLY, sets=['cluster.drive="ebs-gp3"', 'cluster.drive_bytes="1TB"']
    )
    assert {
        weight for bucket in crush_of(known).buckets[:4] for weight in bucket.weights
    } == {WEIGHT_ONE}


@pytest.mark.parametrize(
    ("text", "sets", "place"),
    [
        (
            PARTLY.replace('"1TB"', "1000"),
            (),
            r"s\.toml:10: cluster\.hosts\.drive_bytes: got 1000",
        ),
        (PARTLY, ("cluster.drive_bytes=1000",), r"cluster\.drive_bytes: got 1000"),
    ],
)
def test_drives_too_small_for_a_weight_are_refused_by_their_key(
    text, sets, place
) -> None:
    # Half of TiB / 65,536 is 8 MiB. Smaller drives would have a weight of 0.
    with pytest.raises(ValueError, match=place):
        crush_of(parse_scenario(text, sets=sets, label="s.toml"))
    just = [one.replace("1000", '"9MiB"') for one in sets]
    hosts = crush_of(parse_scenario(text.replace("1000", '"9MiB"'), sets=just)).buckets[
        :4
    ]
    assert min(host.weights for host in hosts) == (1,)


def test_both_engines_run_it_and_share_no_rack() -> None:
    scenario = parse_scenario(TEXT, sets=["cluster.failure_domain_replicated=rack"])
    assert (
        len(
            {
                run_scenario(scenario, engine=e, costs=False).completions_sha256
                for e in ("compiled", "simpy")
            }
        )
        == 1
    )
    acting = build_pool(
        scenario, parse_scheme("rep:3"), build_models(scenario)
    ).cluster.acting
    racks = np.repeat([0, 1, 2], [8, 6, 6])[acting]
    assert all(set(row) == {0, 1, 2} for row in racks.tolist())


def test_equal_groups_are_the_regular_cluster() -> None:
    plain = TEXT[: TEXT.index("[[")] + "{}" + TEXT[TEXT.index("[workload]") :]
    one = parse_scenario(plain.format("hosts = 4\n"))
    groups = parse_scenario(
        plain.format("[[cluster.hosts]]\ncount = 3\n[[cluster.hosts]]\n")
    )
    runs = [
        run_scenario(each, costs=False).completions_sha256 for each in (one, groups)
    ]
    assert runs[0] == runs[1]
    assert one.hash() != groups.hash()


def test_keys_that_contradict_groups_are_refused_with_their_line() -> None:
    text = TEXT.replace("osds = 2", 'osds = "x"\nfoo = 1').replace(
        "pg_num = 256", "racks = 2"
    )
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, label="s.toml")
    places = Counter(
        line.partition(": got")[0] for line in str(caught.value).splitlines()
    )
    assert {"s.toml:10: cluster.hosts.osds", "s.toml:11: cluster.hosts.foo"} <= set(
        places
    )
    with pytest.raises(ScenarioError, match=r"s\.toml:3: cluster\.racks: got 2"):
        parse_scenario(TEXT.replace("pg_num = 256", "racks = 2"), label="s.toml")
    with pytest.raises(ScenarioError, match=r"s\.toml:18: cluster\.hosts: got no rack"):
        parse_scenario(TEXT.replace('rack = "c"\n', ""), label="s.toml")


MAPPED = """schemes = ["rep:3"]
[cluster]
crush_map = "map.txt"
crush_rule = "rep"
{}
[workload]
requests = 10
{}
"""


@pytest.fixture
def mapped(tmp_path: Path) -> Callable[..., Scenario]:
    """Load a scenario with a CRUSH map of 3 hosts with 2 OSDs each, and more keys of its cluster."""
    (tmp_path / "map.txt").write_text(
        map_to_text(map_of_hosts([(WEIGHT_ONE,) * 2] * 3))
    )

    def load(keys: str = "", *, sets: Sequence[str] = (), plan: str = "") -> Scenario:
        return parse_scenario(
            MAPPED.format(keys, plan), label="s.toml", base_dir=tmp_path, sets=sets
        )

    return load


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hosts", "6"),
        ("osds_per_host", "2"),
        ("racks", "3"),
        ("failure_domain_replicated", '"osd"'),
        ("failure_domain_erasure", '"host"'),
    ],
)
def test_keys_that_a_map_replaces_are_refused(
    mapped: Callable[..., Scenario], key: str, value: str
) -> None:
    with pytest.raises(
        ScenarioError, match=rf"^s\.toml:5: cluster\.{key}: got "
    ) as in_file:
        mapped(f"{key} = {value}")
    assert len(in_file.value.faults) == 1
    with pytest.raises(ScenarioError, match=rf"^--set: cluster\.{key}: got "):
        mapped(sets=[f"cluster.{key}={value}"])


def test_groups_describe_the_hosts_of_a_map(mapped: Callable[..., Scenario]) -> None:
    groups = 'hosts = [{ count = 3, drive_bytes = "4TB" }]\nosds_per_host = 2'
    assert mapped(groups).cluster.osd_count == 6


def test_without_a_named_rule_the_failure_domain_selects_one_of_the_map(
    mapped: Callable[..., Scenario],
) -> None:
    text = MAPPED.format('failure_domain_replicated = "osd"', "").replace(
        'crush_rule = "rep"\n', ""
    )
    base = mapped().resolve("")
    acting = build_pool(
        parse_scenario(text, base_dir=base),
        parse_scheme("rep:3"),
        build_models(mapped()),
    ).cluster.acting
    # OSDs 2h and 2h + 1 are on host h: by OSDs, two copies may share a host.
    assert any(len(set(row)) < 3 for row in (acting // 2).tolist())


def test_a_map_of_the_command_line_replaces_the_counts_of_a_file(
    mapped: Callable[..., Scenario],
) -> None:
    text = 'schemes = ["rep:3"]\n[cluster]\nhosts = 9\n[workload]\nrequests = 10\n'
    base = mapped().resolve("")
    crush = f"cluster.crush_map={base / 'map.txt'}"
    replaced = parse_scenario(text, base_dir=base, sets=[crush])
    assert osd_hosts(replaced).tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(ScenarioError, match=r"cluster\.hosts: got 6"):
        parse_scenario(text, base_dir=base, sets=[crush, "cluster.hosts=6"])


def test_a_plan_cannot_vary_the_hosts_of_a_map(mapped: Callable[..., Scenario]) -> None:
    with pytest.raises(
        ScenarioError, match=r"s\.toml:9: plan\.hosts: got a list"
    ) as refused:
        mapped(plan="[plan]\nhosts = [4, 6]\nosds_per_host = [2]")
    assert len(refused.value.faults) == 2


def test_a_sweep_over_the_hosts_of_a_map_is_refused(
    mapped: Callable[..., Scenario], tmp_path: Path
) -> None:
    mapped()
    (tmp_path / "s.toml").write_text(MAPPED.format("", ""))
    with pytest.raises(ValueError, match=r"cluster\.hosts: got 6"):
        plan_sweep(tmp_path / "s.toml", over=["cluster.hosts=6,10"])


def test_hosts_that_are_added_get_the_drives_of_the_last_group():
    grown = parse_scenario(
        TEXT.replace('rack = "a"\n', "")
        .replace('rack = "b"\n', "")
        .replace('rack = "c"\n', "")
        + '[[changes]]\nkind = "add"\nhosts = 1\n'
    )
    models = build_models(grown)
    sizes = drives_of(grown, models).sizes(np.array([0, 4, 8]))
    assert sizes.tolist() == [4e12, 8e12, 8e12]
    assert run_cell(grown, cells(grown)[0], "compiled", unchecked=True).row.iops > 0
