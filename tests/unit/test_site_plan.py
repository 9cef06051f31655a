"""Two sites or three zones: a plan varies sites, and asks what the loss of one leaves."""

import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.plan.candidates import (
    candidates_of,
    judge_closed_forms,
)
from stripesim.scenarios.answers.plan.plan import make_plan
from stripesim.scenarios.cells.placement import crush_of, crush_rule
from stripesim.scenarios.forms.pg_settings import pg_choice_of
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.durability.system import YEAR_S
from support.messages import states

TEXT = """
schemes = ["rep:3", "rep:4", "rs:3,3", "rs:4,2"]
[cluster]
hosts = 12
osds_per_host = 2
site_rtt_ms = 1.0
failure_domain_replicated = "site"
failure_domain_erasure = "site"
pg_num = 128
[workload]
ops = ["write"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
requests = 400
image_bytes = "1GiB"
[plan]
sites = [2, 3]
site_loss = "serves"
replications = 2
simulated_max = 1
"""


def judged(*sets: str):
    """Return the candidates by scheme and number of sites, judged by closed forms."""
    scenario = parse_scenario(TEXT, sets=sets)
    assert scenario.plan is not None
    every = list(candidates_of(scenario, scenario.plan))
    for candidate in every:
        judge_closed_forms(candidate, scenario, scenario.plan)
    return {(one.scheme, one.keys["sites"]): one for one in every}


def test_shards_that_do_not_decode_are_not_kept():
    # Given nine shards over three zones, of which the first three hold half of the data of SHEC(6,3,2)
    scheme = parse_scheme("shec:6,3,2")
    assert not scheme.can_decode(frozenset({0, 1, 2}))
    of = judged(
        'schemes=["shec:6,3,2", "rs:6,3"]',
        "plan.sites=[3]",
        'plan.site_loss="keeps"',
    )
    # When a zone is lost, then six shards are left of either code, k of which are enough for one alone.
    judgements = {}
    for (name, _), one in of.items():
        assert one.results["shards_without_site"] == 6
        (verdict,) = (each for each in one.verdicts if each.key == "site_loss")
        judgements[name] = verdict.state
    assert judgements == {"shec:6,3,2": "failed", "rs:6,3": "met"}


# Shards left without a site: of rep:3 at two sites, one has two. rep:4 at three sites has two at each of two.
LEFT = {
    ("rep:3", 2): 1,
    ("rep:3", 3): 2,
    ("rep:4", 2): 2,
    ("rep:4", 3): 2,
    ("rs:3,3", 2): 3,
    ("rs:3,3", 3): 4,
    ("rs:4,2", 2): 3,
    ("rs:4,2", 3): 4,
}
MIN_SIZE = {"rep:3": 2, "rep:4": 2, "rs:3,3": 4, "rs:4,2": 5}
K = {"rep:3": 1, "rep:4": 1, "rs:3,3": 3, "rs:4,2": 4}


@pytest.mark.parametrize(("asked", "least"), [("serves", MIN_SIZE), ("keeps", K)])
def test_the_loss_of_a_site_leaves_what_crush_places_elsewhere(asked, least):
    of = judged(f"plan.site_loss={asked}")
    left = {key: one.results["shards_without_site"] for key, one in of.items()}
    assert left == LEFT
    for (scheme, sites), one in of.items():
        (verdict,) = (each for each in one.verdicts if each.key == "site_loss")
        meets = LEFT[scheme, sites] >= least[scheme]
        assert verdict.state == ("met" if meets else "failed")


def test_a_pool_over_sites_heals_on_the_spare_hosts_of_each():
    of = judged("plan.sites=[3]")
    # Four hosts at each site, of which one copy needs one, and two shards need two.
    assert of["rep:3", 3].capacity.spare_domains == 3
    assert of["rs:4,2", 3].capacity.spare_domains == 2
    tight = judged("plan.sites=[3]", "cluster.hosts=6")
    assert tight["rs:4,2", 3].capacity.spare_domains == 0


def test_a_plan_recommends_a_pool_that_outlives_a_site_with_its_unavailability():
    scenario = parse_scenario(
        TEXT,
        sets=[
            'schemes=["rep:3"]',
            "plan.rate_per_s=200",
            "durability.afr=0.01",
            "durability.bursts=[{name='away', unit='site', per_year=1, lost_fraction=0, down_s=3600}]",
        ],
    )
    document = make_plan(scenario).document
    best = document["recommended"]
    assert (best["scheme"], best["sites"]) == ("rep:3", 3)
    # Within an hour a year, a few drives of 16 at the other sites may be away: far less than the whole hour.
    assert 0 < best["unavailability"] < 0.01 * 3600 / YEAR_S


@pytest.mark.parametrize(("days", "is_long"), [(365, False), (0.01, True)])
def test_a_plan_says_where_unavailability_is_that_of_the_long_run(days, is_long):
    # A rebuild of minutes takes more than a tenth of 15 minutes.
    scenario = parse_scenario(
        TEXT,
        sets=[
            'schemes=["rep:3"]',
            "plan.sites=[3]",
            f"durability.horizon_s={days * 86400}",
            "durability.afr=0.01",
            "durability.bursts=[{name='away', unit='site', per_year=1, lost_fraction=0, down_s=3600}]",
        ],
    )
    document = make_plan(scenario).document
    lines = [line for line in document["assumptions"] if "long run" in line]
    assert bool(lines) == is_long
    assert all("3 sites" in line for line in lines)


def test_a_plan_varies_stretch_mode_where_it_can_be():
    scenario = parse_scenario(TEXT, sets=["plan.stretch=[false, true]"])
    assert scenario.plan is not None
    every = list(candidates_of(scenario, scenario.plan))
    for candidate in every:
        judge_closed_forms(candidate, scenario, scenario.plan)
    stretched = [one for one in every if one.keys["stretch"]]
    assert len(every) == 2 * len(stretched) == 16
    # Only four copies at two sites can: others say which key is wrong.
    built = [one for one in stretched if one.scenario is not None]
    assert [(one.scheme, one.keys["sites"]) for one in built] == [("rep:4", 2)]
    (verdict,) = (each for each in built[0].verdicts if each.key == "site_loss")
    assert states(verdict.words, "2 of 4 ... wanted 1 ... stretch")
    ruled_out = next(one for one in stretched if one.scheme == "rs:4,2")
    assert states(ruled_out.verdicts[0].words, "rs:4,2 ... rep:4")


def test_a_requirement_on_sites_needs_sites():
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(
            'schemes = ["rep:3"]\n[workload]\nrequests = 10\n[plan]\nsite_loss = "serves"\n'
        )
    assert any(
        states(fault, "plan.site_loss: got serves ... cluster.site_rtt_ms")
        for fault in caught.value.faults
    )


def test_a_run_of_a_plan_with_unequal_sites_names_the_sites():
    # The plan varies sites, so the rules leave [cluster] to its candidates. A run takes [cluster] itself.
    scenario = parse_scenario(TEXT, sets=["cluster.sites=5", "schemes=rep:3"])
    with pytest.raises(ScenarioError) as caught:
        crush_of(scenario)
    assert states(str(caught.value), "cluster.sites: got 5 ... cluster.hosts (12)")


def test_a_run_of_a_plan_that_varies_sites_names_the_missing_number():
    scenario = parse_scenario(TEXT, sets=["schemes=rep:3"])
    with pytest.raises(ScenarioError) as caught:
        crush_rule(scenario, parse_scheme("rep:3"))
    assert states(
        str(caught.value),
        'cluster.failure_domain_replicated: got "site" ... cluster.sites',
    )


def test_a_plan_that_varies_sites_needs_their_distance():
    text = TEXT.replace("site_rtt_ms = 1.0\n", "")
    with pytest.raises(ScenarioError, match=r"plan.sites: got \[2, 3\]"):
        parse_scenario(text)


def test_a_bad_distance_of_sites_is_the_only_problem():
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(TEXT, sets=["cluster.site_rtt_ms=-1"])
    (fault,) = caught.value.faults
    assert "cluster.site_rtt_ms: got -1" in fault


@pytest.mark.parametrize("key", ["hosts", "osds_per_host", "sites"])
def test_a_plan_does_not_vary_the_domains_of_groups_of_hosts(key):
    groups = TEXT.replace("hosts = 12", 'hosts = [{ count = 12, site = "a" }]')
    varied = groups.replace("sites = [2, 3]", f"{key} = [2, 3]")
    with pytest.raises(ScenarioError, match=rf"plan.{key}: got a list"):
        parse_scenario(varied)


def test_a_rate_counts_as_served_however_many_requests_are_in_flight_at_the_end():
    # Given 400 requests that arrive within 7 ms and take 2 ms each, so a fourth of them is left at the end
    scenario = parse_scenario(
        TEXT, sets=["schemes=rep:3", "plan.sites=[3]", "plan.rate_per_s=60000"]
    )
    (one,) = make_plan(scenario).document["candidates"]
    # Then longer runs show that they do not pile up.
    assert one["iops"] == 60000
    assert one["fails"] == []


@pytest.mark.parametrize(("scheme", "balanced"), [("rep:3", True), ("rs:3,3", False)])
def test_no_balancer_is_compared_where_a_site_holds_several_shards(scheme, balanced):
    # Over three zones, a site holds one copy of rep:3, and two shards of RS(3,3).
    scenario = parse_scenario(TEXT, sets=["cluster.sites=3"])
    options = pg_choice_of(scenario, scheme).options
    assert any(option.max_deviation is not None for option in options) == balanced
