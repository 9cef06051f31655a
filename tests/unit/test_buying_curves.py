"""Steps of purchases: which are tried, what each costs by hand, and what is said."""

import re
from types import SimpleNamespace

import pytest

from stripesim.models.placement import map_of_hosts, map_to_text
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.scenarios.answers.plan.plan import make_plan
from stripesim.scenarios.answers.run import buying_curves as curves
from stripesim.scenarios.answers.run.purchases_figure import purchases_figure
from stripesim.scenarios.answers.run.tables import purchases_table
from stripesim.scenarios.cells.bound import bounds_of
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario

TEXT = """
name = "b"
schemes = ["rep:3"]
generation = "reef"
[cluster]
hosts = 4
osds_per_host = 4
pg_num = 64
cores_per_host = 32
public_gbit_per_s = 25.0
private_gbit_per_s = 25.0
parameters = "nvme"
drive_bytes = "2TB"
[workload]
ops = ["write"]
patterns = ["rand"]
requests = 100
[plan]
hosts = [4]
[plan.prices]
host = 6000
core = 60
drive_per_tb = 100
network_per_gbit = 10
"""


def amounts(scenario, resource):
    return [
        step.amount for step in curves.steps_of(scenario) if step.resource == resource
    ]


def test_each_resource_is_tried_in_steps():
    scenario = parse_scenario(TEXT)
    # 32 cores for 4 OSDs are 8 each, which is what the cluster has.
    assert amounts(scenario, "cores per OSD") == [2, 4, 12, 16]
    assert amounts(scenario, "OSDs per host") == [5, 6, 8]
    assert amounts(scenario, "hosts") == [5, 6, 7]
    assert amounts(scenario, "network [Gbit/s]") == [50, 100]


def test_gateways_of_their_own_may_get_more_cores():
    # Given PUTs that the 8 cores of each of two gateways limit: 16 each double that bound, for 2 × 8 × 50.
    text = TEXT.replace(
        'ops = ["write"]\npatterns = ["rand"]',
        'kind = "s3"\nops = ["put"]\nobject_sizes_bytes = ["64k"]',
    )
    text = text.replace(
        "[workload]",
        '[cluster.gateways]\ncount = 2\nplace = "own"\ncores = 8\n[workload]',
    )
    scenario = parse_scenario(text.replace("core = 60", "gateway_core = 50"))

    rows = curves.bounds_of_steps(scenario, "rep:3")

    (bound, *_) = bounds_of(scenario, "rep:3")
    assert bound.resource == "processors of gateways"
    twice, four_times = (row for row in rows if row["resource"] == "cores per gateway")
    assert (twice["amount"], four_times["amount"]) == (16, 32)
    assert twice["cost"] == 2 * 8 * 50
    assert twice["iops"] == pytest.approx(2 * bound.iops)
    # Gateways on storage hosts use the cores of those.
    shared = parse_scenario(text.replace('place = "own"\n', ""))
    assert amounts(shared, "cores per gateway") == []


def test_an_object_store_may_also_buy_gateways():
    text = TEXT.replace(
        'ops = ["write"]\npatterns = ["rand"]', 'kind = "s3"\nops = ["put"]'
    )
    text = text.replace("host = 6000", "host = 6000\ngateway = 2500")
    scenario = parse_scenario(text)
    # One on each of four hosts by default.
    assert amounts(scenario, "gateways") == [5, 6, 8]
    steps = [step for step in curves.steps_of(scenario) if step.resource == "gateways"]
    costs = [
        curves._cost(scenario, scenario.with_cluster(**step.keys)) for step in steps
    ]
    assert costs == pytest.approx([2500, 2 * 2500, 4 * 2500])
    assert not amounts(parse_scenario(TEXT), "gateways")


def test_pinned_osds_get_cores_of_their_own():
    scenario = parse_scenario(TEXT.replace("pg_num", "cores_per_osd = 4\npg_num"))
    (step,) = (
        each
        for each in curves.steps_of(scenario)
        if (each.resource, each.amount) == ("cores per OSD", 16)
    )
    # 4 OSDs with 16 cores each need 64 of a host.
    assert step.keys == {"cores_per_osd": 16, "cores_per_host": 64}


def test_a_cpu_limit_is_raised_in_steps():
    limit = "cpu_limit_per_osd = 4.0\npg_num"
    scenario = parse_scenario(TEXT.replace("pg_num", limit))
    steps = curves.steps_of(scenario)
    assert not amounts(scenario, "cores per OSD")
    assert amounts(scenario, "CPU limit per OSD") == [2, 8, 12, 16]
    keys = {step.amount: step.keys for step in steps if "limit" in step.resource}
    assert keys[2]["cpu_limit_per_osd"] == 2
    # 32 cores of a host suffice for 4 OSDs with 8 each, but not for 16 each.
    assert keys[8]["cores_per_host"] == 32
    assert keys[16]["cores_per_host"] == 64


def test_further_pinned_osds_need_cores():
    pinned = TEXT.replace("pg_num", "cores_per_osd = 8\npg_num")
    steps = curves.steps_of(parse_scenario(pinned))
    keys = {
        step.amount: step.keys for step in steps if step.resource == "OSDs per host"
    }
    # 4 OSDs with 8 cores each have all 32 of a host.
    assert keys[5] == {"osds_per_host": 5, "cores_per_host": 40}


def test_racks_grow_alike():
    text = TEXT.replace("osds_per_host", "racks = 2\nosds_per_host")
    assert amounts(parse_scenario(text), "hosts") == [6, 8, 10]


@pytest.mark.parametrize(
    ("keys", "cost"),
    [
        # A drive of 2 TB for each of 4 hosts.
        ({"osds_per_host": 5}, 4 * 2 * 100),
        # A host, 50 Gbit/s of network and 4 drives of 2 TB.
        ({"hosts": 5}, 6000 + 50 * 10 + 4 * 2 * 100),
        # 16 more cores for each of 4 hosts.
        ({"cores_per_host": 48}, 4 * 16 * 60),
        # Networks of 100 Gbit/s for 4 hosts.
        ({"public_gbit_per_s": 50.0, "private_gbit_per_s": 50.0}, 4 * 100 * 10),
    ],
)
def test_a_step_costs_what_is_bought(keys, cost):
    scenario = parse_scenario(TEXT)
    assert curves._cost(scenario, scenario.with_cluster(**keys)) == pytest.approx(cost)


def test_less_of_a_resource_and_steps_without_prices_have_no_cost():
    scenario = parse_scenario(TEXT)
    assert curves._cost(scenario, scenario.with_cluster(cores_per_host=8)) is None
    plain = scenario.replaced(plan=None)
    assert curves._cost(plain, plain.with_cluster(hosts=5)) is None


def test_without_a_price_of_cores_more_of_them_buy_hosts():
    scenario = parse_scenario(TEXT.replace("core = 60\n", ""))
    changed = scenario.with_cluster(cores_per_host=48)
    assert curves._cost(scenario, changed) == pytest.approx(4 * 6000)


@pytest.fixture
def points(monkeypatch):
    """Return the curves of a cluster whose rate is 1,000 to 1,002 for each core of an OSD, by seed."""

    def run_cell(scenario, cell, engine):
        cores = scenario.cluster.cores_per_host // scenario.cluster.osds_per_host
        iops = cores * (1000.0 + scenario.seed % 3)
        return SimpleNamespace(row=SimpleNamespace(iops=iops, latency_p99_ns=1e6))

    monkeypatch.setattr(curves, "run_cell", run_cell)
    scenario = parse_scenario(TEXT)
    return [point.to_json() for point in curves.buying_curves(scenario)]


def test_gains_are_differences_of_runs_with_the_same_seeds(points):
    gains = {
        point["amount"]: point["iops_gain"]
        for point in points
        if point["resource"] == "cores per OSD"
    }
    # Three seeds: 1,001 for each core on average.
    assert gains == {2: -6006, 4: -4004, 8: 0, 12: 4004, 16: 8008}


def test_the_step_with_most_requests_for_the_money_is_named(points):
    # 12 cores: 4,004 more for 3,840. 16 cores: 8,008 more for 7,680.
    per_1000 = {
        point["amount"]: point["iops_per_1000"]
        for point in points
        if point["resource"] == "cores per OSD" and point["cost"]
    }
    assert per_1000 == pytest.approx({12: 4004 / 3.84, 16: 8008 / 7.68})
    (sentence,) = curves.buying_sentences(points)
    assert "cores per OSD" in sentence
    assert re.search(r"\+8,008 ± [\d.]+ requests/s", sentence)


def test_a_larger_step_within_the_interval_of_a_smaller_one_is_not_worth_naming():
    cell = {
        "scheme": "rep:3", "op": "write", "pattern": "rand", "block_size_bytes": 4096
    }  # fmt: skip
    steps = [(2, 22_638, 320), (4, 29_437, 400), (8, 29_535, 413), (16, 29_535, 413)]
    points = [
        cell
        | {
            "resource": "cores per OSD", "amount": amount, "is_own": False,
            "iops_gain": gain, "iops_gain_low": gain - half, "iops_gain_high": gain + half,
            "iops_per_1000": None,
        }
        for amount, gain, half in steps
    ]  # fmt: skip
    (sentence,) = curves.buying_sentences(points)
    assert sentence == (
        "3-replication, random writes of 4 KiB: most requests: cores per OSD 4, +29,437 ± 400 requests/s."
    )


def test_what_gains_nothing_has_no_requests_for_the_money(points):
    network = [point for point in points if point["resource"] == "network [Gbit/s]"]
    assert {point["iops_per_1000"] for point in network} == {None}


def test_table_and_figure_have_a_line_and_a_panel_for_each_resource(points):
    assert len(purchases_table(points).rows) == len(points)
    figure = purchases_figure(points)
    assert len(figure.panels) == 4
    # Words, not keys.
    assert figure.panels[0].layers[0].label == "3-replication, random writes of 4 KiB"
    hosts = next(panel for panel in figure.panels if panel.x.label == "hosts")
    # Nobody buys half a host.
    assert hosts.x.ticks == sorted(set(hosts.layers[0].x))
    assert all(float(amount).is_integer() for amount in hosts.x.ticks)


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        # GET is an abbreviation, and several workloads have no one block size.
        (("get", "rand", 4096), "3-replication, GETs of 4 KiB"),
        (("mixed", "mixed", None), "3-replication, all workloads"),
        (("trace", "trace", None), "3-replication, requests of the trace"),
    ],
)
def test_figure_names_every_kind_of_cell(points, cell, label):
    op, pattern, block_bytes = cell
    renamed = {"op": op, "pattern": pattern, "block_size_bytes": block_bytes}
    figure = purchases_figure([point | renamed for point in points])
    assert figure.panels[0].layers[0].label == label


def test_bounds_of_steps_rise_with_what_limits():
    text = TEXT.replace("requests = 100", "requests = 100\nqueue_depth = 64")
    # Many placement groups, so that their locks do not limit.
    text = text.replace("pg_num = 64", "pg_num = 2048")
    scenario = parse_scenario(text).with_enough_clients()
    rows = curves.bounds_of_steps(scenario, "rep:3")
    cores = {row["amount"]: row for row in rows if row["resource"] == "cores per OSD"}
    # Processors limit small writes: fewer cores serve fewer requests.
    assert cores[2]["limited_by"].startswith("processors")
    assert cores[2]["iops_gain"] < 0 < cores[12]["iops_gain"]
    assert cores[12]["cost"] == pytest.approx(4 * 16 * 60)
    assert cores[12]["iops_per_1000"] == pytest.approx(
        cores[12]["iops_gain"] / 3840 * 1000
    )
    sentence = curves.sentence_of_bounds(rows)
    assert sentence is not None
    assert "for each 1,000" in sentence


def test_a_higher_cpu_limit_within_the_cores_of_a_host_costs_nothing():
    # 32 cores of a host are enough for 4 OSDs with up to 8 each.
    text = TEXT.replace("pg_num = 64", "pg_num = 2048\ncpu_limit_per_osd = 1.0")
    text = text.replace("requests = 100", "requests = 100\nqueue_depth = 64")
    rows = curves.bounds_of_steps(parse_scenario(text).with_enough_clients(), "rep:3")
    costs = {row["amount"]: row["cost"] for row in rows if "limit" in row["resource"]}
    assert costs[8] is None
    # 4 OSDs with 12 cores each need 16 more for each of 4 hosts.
    assert costs[12] == pytest.approx(4 * 16 * 60)
    sentence = curves.sentence_of_bounds(rows)
    assert sentence is not None
    assert "no money: CPU limit per OSD 8 " in sentence


def test_a_plan_prices_the_steps_of_its_recommendation():
    text = TEXT.replace("hosts = [4]", 'hosts = [4]\nusable_bytes = "1TB"')
    document = make_plan(parse_scenario(text)).document
    assert document["recommended"] is not None
    (cores,) = (
        row
        for row in document["purchases"]
        if (row["resource"], row["amount"]) == ("cores per OSD", 12)
    )
    assert cores["cost"] == pytest.approx(4 * 16 * 60)


def test_cores_of_each_osd_are_those_of_the_hosts_in_a_crush_map(tmp_path):
    # Given a map of three hosts with two OSDs each, and no counts beside it
    crush = map_of_hosts([(WEIGHT_ONE,) * 2] * 3)
    (tmp_path / "map.txt").write_text(map_to_text(crush), encoding="utf-8")
    path = tmp_path / "s.toml"
    path.write_text(
        """
schemes = ["rep:2"]
[cluster]
crush_map = "map.txt"
cores_per_host = 4
pg_num = 32
[workload]
ops = ["write"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
requests = 100
[plan]
[plan.prices]
host = 1000
core = 10
""",
        encoding="utf-8",
    )
    scenario = load_scenario(str(path))
    steps = [step for step in curves.steps_of(scenario) if "cores" in step.resource]
    # Then four cores of a host are two of each OSD, which is no step, and four need eight, at three hosts.
    assert [step.amount for step in steps] == [4, 8, 12, 16]
    assert steps[0].keys == {"cores_per_host": 8}
    rows = curves.bounds_of_steps(scenario, "rep:2")
    (four,) = [
        row for row in rows if row["resource"] == "cores per OSD" and row["amount"] == 4
    ]
    assert four["cost"] == pytest.approx(3 * 4 * 10)
