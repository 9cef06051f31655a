"""The loss of a site: which placement groups go on serving, by copies and shards at each site."""

from types import SimpleNamespace

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.problems import ScenarioError
from stripesim.scenarios.cells.placement import up_sets
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.groups import ServingOsds
from stripesim.sim.ceph.failures.stretch import ServingRule
from support.messages import states

# Two OSDs on each of 18 hosts. Site 1 is away from second 4 to second 12, and peers notice after 2 seconds.
LOSS = """[cluster]
hosts = 18
osds_per_host = 2
sites = {sites}
site_rtt_ms = 2.0
failure_domain_replicated = "site"
failure_domain_erasure = "site"
pg_num = 32
[workload]
kind = "open"
rate_per_s = 100
ops = ["write"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
duration_s = 20
image_bytes = "200MB"
[faults]
heartbeat_grace_s = 2
heartbeat_interval_s = 0.5
[[faults.events]]
sites = [1]
at_s = 4
return_s = 12
kind = "power"
"""


def scenario(scheme: str, sites: int, *sets: str):
    text = f'schemes = ["{scheme}"]\n{LOSS.format(sites=sites)}'
    return parse_scenario(text, sets=sets)


def without_site(asked):
    """Return the result of a run in which a site is away."""
    return run_cell(asked, cells(asked)[0], "compiled")


@pytest.mark.parametrize(
    ("scheme", "sites", "left", "least"),
    [
        # Copies or shards left after the loss, and min_size: size − size/2 copies, or k + 1 shards.
        ("rep:4", 2, 2, 2),
        ("rep:3", 3, 2, 2),
        ("rs:3,3", 3, 4, 4),
        # k shards are left, so nothing is lost, but Ceph serves with k + 1 or more.
        ("rs:4,2", 3, 4, 5),
        ("rs:5,4", 3, 6, 6),
    ],
)
def test_a_pool_serves_without_a_site_if_min_size_is_left(scheme, sites, left, least):
    code = parse_scheme(scheme)
    # Sites hold equal shares of the shards.
    assert code.width - code.width // sites == left
    result = without_site(scenario(scheme, sites))
    # Every placement group loses a site's share.
    unavailable = 32 if left < least else 0
    assert result.row.faults.pgs_unavailable == unavailable
    assert result.row.faults.pgs_lost == 0


def test_three_copies_at_two_sites_stop_where_the_lost_site_had_two():
    asked = scenario("rep:3", 2)
    # One copy is left, fewer than min_size 2, of the groups with two copies on the 18 OSDs of site 1.
    at_site_1 = (up_sets(asked, parse_scheme("rep:3")) >= 18).sum(axis=1)
    stops = int((at_site_1 == 2).sum())
    assert 8 < stops < 24
    assert without_site(asked).row.faults.pgs_unavailable == stops


def test_members_at_the_site_furthest_away_decide_how_long_peering_takes():
    # Given sites so far apart that only their distance matters, and a second more
    peering_pg_s = []
    for rtt_ms in (1000, 2000):
        asked = scenario("rep:4", 2, f"cluster.site_rtt_ms={rtt_ms}")
        peering_pg_s.append(without_site(asked).row.faults.peering_pg_s)
    near, far = peering_pg_s
    # Each of 32 groups peers as the site goes and as it returns, in three rounds of a second more. Waits for
    # maps hide a part of it.
    assert 0.9 < (far - near) / (32 * 2 * 3 * 1.0) <= 1.05


def test_stretch_mode_serves_without_a_site_and_is_healthy_after_its_return():
    result = without_site(scenario("rep:4", 2, "cluster.stretch=true"))
    assert result.row.faults.pgs_unavailable == 0
    notes = [event for event in result.timeline["events"] if "stretch" in event["what"]]
    assert [note["text"].partition(":")[0] for note in notes] == [
        "degraded",
        "healthy",
    ]


def test_both_engines_agree_on_the_loss_of_a_site():
    asked = scenario("rep:4", 2, "cluster.stretch=true", "workload.duration_s=14")
    cell = cells(asked)[0]
    runs = [run_cell(asked, cell, engine) for engine in ("compiled", "simpy")]
    assert runs[0].sha256 == runs[1].sha256


def rule(up: set[int], *, clean: bool = True, stretch: bool = True) -> ServingRule:
    """Return the rule of four copies at two sites, of two OSDs each."""
    state = SimpleNamespace(
        pool=SimpleNamespace(scheme=parse_scheme("rep:4")),
        plan=SimpleNamespace(stretch_sites=np.array([0, 0, 1, 1]) if stretch else None),
        map=SimpleNamespace(up=up),
        timeline=SimpleNamespace(all_clean=clean),
        note=lambda what, detail: None,
    )
    return ServingRule(state)


def members(*osds: int) -> ServingOsds:
    acting = tuple(osd if osd in osds else NO_OSD for osd in range(4))
    return ServingOsds(acting=acting, joining=(NO_OSD,) * 4, leaders=(0, 1, 2, 3))


def test_stretch_mode_needs_a_member_at_each_site_that_is_up():
    healthy = rule({0, 1, 2, 3})
    assert not healthy.follow_map()
    assert healthy.allows(members(0, 2))
    # Two copies are min_size, but both are at one site while the other is up.
    assert not healthy.allows(members(0, 1))
    assert rule({0, 1, 2, 3}, stretch=False).allows(members(0, 1))


def test_one_member_is_enough_while_a_site_is_down():
    degraded = rule({0, 1})
    assert degraded.follow_map()
    # Half of min_size 2.
    assert degraded.allows(members(0))
    assert not rule({0, 1}, stretch=False).allows(members(0))


def test_stretch_mode_is_degraded_until_all_groups_are_clean():
    up = {0, 1}
    recovering = rule(up, clean=False)
    recovering.follow_map()
    up |= {2, 3}
    assert not recovering.follow_map()
    assert recovering.allows(members(0))
    recovering._state.timeline.all_clean = True
    assert recovering.follow_map()
    assert not recovering.allows(members(0))


@pytest.mark.parametrize(
    ("scheme", "sets", "wanted"),
    [
        ("rep:3", ["cluster.stretch=true"], "schemes: got rep:3 ... rep:4"),
        (
            "rep:4",
            ["cluster.stretch=true", "cluster.sites=3"],
            "cluster.sites: got 3 ... 2",
        ),
        (
            "rep:4",
            ["cluster.stretch=true", 'cluster.failure_domain_replicated="host"'],
            'failure_domain_replicated: got "host" ... "site"',
        ),
        (
            "rep:4",
            ["faults.events=[{sites=[2], at_s=1}]"],
            "sites ... got 2 ... 0 ... 1",
        ),
    ],
)
def test_keys_of_stretch_mode_that_do_not_fit_are_refused(scheme, sets, wanted):
    text = f'schemes = ["{scheme}"]\n{LOSS.format(sites=2)}'
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, sets=sets)
    assert any(states(fault, wanted) for fault in caught.value.faults), (
        caught.value.faults
    )
