"""A plan prunes by closed forms, decides by simulation, and never calls the uncertain met."""

import json

import pytest

from stripesim.scenarios.planning.candidates import at_least, at_most, bounds_of, candidates_of
from stripesim.scenarios.planning.plan import make_plan
from stripesim.scenarios.report.plan import csv_of, report_of_plan
from stripesim.scenarios.schema.loader import ScenarioError, parse_scenario

TEXT = """
name = "buy"
schemes = ["rep:3", "rs:4,2"]
[cluster]
parameters = "koh2017"
ssd = "nvme-tlc"
pg_num = 64
[workload]
read_fraction = 0.5
patterns = ["rand"]
block_sizes_bytes = ["16k"]
requests = 400
image_bytes = "1GiB"
[plan]
hosts = [4, 7]
osds_per_host = [2]
usable_bytes = "10TB"
rate_per_s = 200.0
p99_ms = 500.0
nines = 1.0
replications = 2
[plan.prices]
host = 5000.0
drive = 400.0
"""


@pytest.fixture(scope="module")
def document():
    return make_plan(parse_scenario(TEXT))


def test_every_candidate_is_listed_with_capacity_and_what_it_fails(document):
    found = {(one["scheme"], one["hosts"]): one for one in document["candidates"]}
    assert set(found) == {("rep:3", 4), ("rep:3", 7), ("rs:4,2", 4), ("rs:4,2", 7)}
    raw = 14 * 3.84e12
    held = found["rs:4,2", 7]["capacity"]
    assert held["raw_bytes"] == raw
    assert held["usable_bytes_full"] == pytest.approx(raw * 0.95 / 1.5)
    assert held["usable_bytes_safe"] == pytest.approx(raw * 6 / 7 * 0.85 / 1.5)
    # 8 drives of 3.84 TB hold 6.5 TB in three copies: no simulation is needed to see that.
    small = found["rep:3", 4]
    assert not small["meets"]
    assert small["fails"][0].startswith("usable_bytes: 6.528 TB")
    assert small["iops"] is None
    assert "6 shards" in found["rs:4,2", 4]["fails"][0]


def test_the_cheapest_that_meets_everything_is_recommended_with_reasons(document):
    best = document["recommended"]
    assert best["meets"]
    assert best["fails"] == []
    assert best["hosts"] == 7
    assert best["cost"] == 7 * (5000 + 2 * 400)
    assert best["iops"] > 150
    assert best["rebuild_s"] > 0
    assert best["nines"] > 1
    assert any("lowest cost" in line for line in document["reasons"])
    assert json.loads(json.dumps(document, default=str))["recommended"]["scheme"] == best["scheme"]


def test_page_and_table_hold_every_candidate(document):
    page = report_of_plan("buy <b>", "", document)
    assert "buy &lt;b&gt;" in page
    assert "usable_bytes: 6.528 TB" in page
    assert "<script" not in page
    assert len(csv_of(document).splitlines()) == 5


def test_an_interval_across_its_bound_is_uncertain():
    assert at_most("p99_ms", 5.0, 6.0, 1.0, "ms", 4.0, 6.5).state == "uncertain"
    assert at_most("p99_ms", 5.0, 6.0, 1.0, "ms", 4.0, 6.0).state == "met"
    assert at_most("p99_ms", 7.0, 6.0, 1.0, "ms", 6.5, 7.5).state == "failed"
    assert at_least("nines", 5.0, 6.0, 1.0, "nines", 4.0, 6.5).state == "uncertain"
    assert at_least("nines", None, 6.0, 1.0, "nines").state == "uncertain"


def test_an_impossible_rate_is_refused_by_a_bound_alone():
    scenario = parse_scenario(TEXT, sets=["plan.rate_per_s=10000000", "plan.usable_bytes=1TB"])
    document = make_plan(scenario)
    assert document["recommended"] is None
    assert all(one["iops"] is None for one in document["candidates"])
    assert any("network: allows" in line for one in document["candidates"] for line in one["fails"])


def test_bounds_count_the_bytes_of_replicas_and_shards():
    scenario = parse_scenario(
        TEXT, sets=['schemes=["rep:3"]', "cluster.hosts=7", "workload.read_fraction=0.0"]
    )
    by_name = {bound.name: bound.rate_per_s for bound in bounds_of(scenario, "rep:3")}
    assert by_name["public network"] == pytest.approx(7 * 1.25e9 / 16384)
    # Two of three copies cross the private network.
    assert by_name["private network"] == pytest.approx(by_name["public network"] / 2)


def test_too_many_candidates_are_refused():
    hosts = list(range(3, 1100))
    scenario = parse_scenario(TEXT, sets=[f"plan.hosts={hosts}"])
    with pytest.raises(ValueError, match="2194 candidates, wanted at most 2000"):
        list(candidates_of(scenario, scenario.plan))


def test_requirements_that_lack_a_key_are_reported():
    with pytest.raises(ScenarioError, match=r"plan.days_until_full: got no plan.growth_bytes_per_day"):
        parse_scenario(TEXT, sets=["plan.days_until_full=100"])
    without = TEXT.partition("[plan.prices]")[0] + "cost_max = 5.0\n"
    with pytest.raises(ScenarioError, match=r"plan.cost_max: got no \[plan.prices\]"):
        parse_scenario(without)
