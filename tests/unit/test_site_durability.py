"""Durability and availability of pools over several sites, by hand arithmetic."""

from dataclasses import replace

import pytest

from stripesim.scenarios.answers.durability.durability import described_system
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.durability.assess import assess, unavailability
from stripesim.sim.durability.system import YEAR_S

AFR = 0.02
REBUILD_S = 2e12 / 50e6
DETECTION_S = 1000.0
DOWN_S = 7200.0
PER_YEAR = 0.5


def system(scheme: str, sites: int, *sets: str):
    """Return a system of four drives on each of 12 hosts, whose sites are away twice a year for two hours."""
    text = f"""schemes = ["{scheme}"]
[cluster]
hosts = 12
osds_per_host = 4
sites = {sites}
site_rtt_ms = 1
failure_domain_replicated = "site"
failure_domain_erasure = "site"
pg_num = 128
[workload]
requests = 100
[durability]
afr = {AFR}
repair_bytes_per_s = {50e6}
drive_bytes = {2e12}
detection_s = {DETECTION_S}
[[durability.bursts]]
name = "site away"
unit = "site"
per_year = {PER_YEAR}
lost_fraction = 0.0
down_s = {DOWN_S}
"""
    return described_system(parse_scenario(text, sets=sets), scheme).system


def away_share(asked):
    """Return the part of time for which a shard is away: a drive of 2 TB, whose groups come back in turn."""
    rebuild_s = 2e12 / asked.repair.bytes_per_s
    held = asked.layout.size / asked.drives
    turn_s = rebuild_s * asked.groups_at_once / held
    # From one turn to all of them.
    away_s = DETECTION_S + (turn_s + rebuild_s) / 2
    return away_s / (away_s + 1 / asked.lifetime.rate_per_s)


@pytest.mark.parametrize(
    ("scheme", "sites", "others", "spare"),
    [
        # Shards elsewhere while a site is away, and how many of them may be missing too.
        ("rep:3", 3, 2, 0),
        ("rep:4", 2, 2, 0),
        ("rs:3,3", 3, 4, 0),
        ("rs:5,5", 2, 5, -1),
        ("rs:4,2", 3, 4, -1),
    ],
)
def test_a_site_that_is_away_leaves_its_pool_at_min_size_or_below(
    scheme, sites, others, spare
):
    asked = system(scheme, sites)
    away = away_share(asked)
    # Without a spare, one further shard that is away stops a group. Below min_size, all groups have stopped.
    stopped = 1.0 if spare < 0 else 1 - (1 - away) ** others
    time_away = PER_YEAR * DOWN_S / YEAR_S
    by_drives = unavailability(replace(asked, bursts=()))
    by_sites = unavailability(asked) - by_drives
    by_hand = time_away * (stopped - by_drives)
    assert by_sites == pytest.approx(by_hand, rel=1e-6, abs=0)


def test_a_burst_that_destroys_a_site_loses_no_data_with_copies_elsewhere():
    destroyed = "durability.bursts=[{name='fire', unit='site', per_year=0.001}]"
    (of_three, of_two) = (
        assess(system(scheme, sites, destroyed), "burst")
        for scheme, sites in (("rep:3", 3), ("rs:4,2", 2))
    )
    assert of_three["loss_probability"] == 0
    # Three of six shards are at each of two sites, and RS(4,2) bears the loss of two: all data is lost
    # whenever a site is, 0.001 times a year.
    assert of_two["loss_probability"] == pytest.approx(0.001, rel=0.01)


def test_stretch_mode_needs_each_site_until_one_is_down():
    asked = system("rep:4", 2, "cluster.stretch=true")
    away = away_share(asked)
    # Both copies at a site are away, at either site. While a site is down, both at the other.
    alone = 1 - (1 - away**2) ** 2
    by_drives = unavailability(replace(asked, bursts=()))
    assert by_drives == pytest.approx(alone, rel=1e-6, abs=0)
    time_away = PER_YEAR * DOWN_S / YEAR_S
    by_sites = unavailability(asked) - by_drives
    by_hand = time_away * (away**2 - alone)
    assert by_sites == pytest.approx(by_hand, rel=1e-3, abs=0)
    # Without stretch mode, one copy that is away at the other site is enough to stop a group meanwhile.
    assert unavailability(asked) < unavailability(system("rep:4", 2))
