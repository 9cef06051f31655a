"""Load in scenarios: clients, several workloads, offered and served rates."""

import json

import numpy as np
import pytest

from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import load_sentences
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import Cell, cells
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.engine import graph
from support.messages import states

CLUSTER = (
    '[cluster]\nparameters = "kraken"\nhosts = 3\nosds_per_host = 2\npg_num = 64\n'
    'failure_domain_erasure = "osd"\n'
)
ONE_CELL = 'ops = ["read"]\npatterns = ["rand"]\nblock_sizes_bytes = ["4k"]\nimage_bytes = "1GiB"\n'
TWO = f"""schemes = ["rep:3"]
{CLUSTER}
[workload]
duration_s = 0.2
image_bytes = "1GiB"
[[workloads]]
name = "database"
kind = "open"
clients = 3
rate_per_s = 2000
read_fraction = 0.7
patterns = ["rand"]
block_sizes_bytes = ["16k"]
[[workloads]]
name = "backup"
clients = 2
queue_depth = 4
ops = ["write"]
patterns = ["seq"]
block_sizes_bytes = ["1MiB"]
image_bytes = "2GiB"
"""


def scenario(load: str, sets: tuple[str, ...] = ()):
    return parse_scenario(
        f'schemes = ["rep:3"]\n{CLUSTER}[workload]\n{ONE_CELL}{load}\n', sets=sets
    )


def test_one_client_is_the_default_with_unchanged_results() -> None:
    plain = scenario("requests = 100")
    setting = build_cell(plain, cells(plain)[0])
    assert setting.pool.cluster.one_client
    assert (plain.clients, plain.images_bytes) == (1, 1 << 30)


def test_clients_share_machines_but_not_images() -> None:
    several = scenario(
        "requests = 100\nclients = 5\nclients_per_host = 2", sets=("client.threads=3",)
    )
    setting = build_cell(several, cells(several)[0])
    assert setting.pool.cluster.client_hosts.tolist() == [0, 0, 1, 1, 2]
    assert several.images_bytes == 5 << 30
    resources = setting.pool.cluster.resources
    submits = np.array(resources.kinds) == "client.submit"
    assert submits.sum() == 5
    assert set(resources.capacities[submits].tolist()) == {3}


def test_clients_can_run_on_the_storage_hosts() -> None:
    on_osds = scenario("requests = 100\nclients = 5", sets=("client.place=osd-hosts",))
    cluster = build_cell(on_osds, cells(on_osds)[0]).pool.cluster
    assert cluster.clients_on_osd_hosts
    assert cluster.client_hosts.tolist() == [0, 1, 2, 0, 1]


def test_no_client_runs_on_hosts_that_changes_add() -> None:
    growing = scenario(
        "duration_s = 1\nclients = 5",
        sets=("client.place=osd-hosts", 'changes=[{kind="add", hosts=2}]'),
    )
    cluster = build_cell(growing, cells(growing)[0]).pool.cluster
    assert cluster.hosts == 5
    assert cluster.client_hosts.tolist() == [0, 1, 2, 0, 1]


def test_simultaneous_workloads_have_a_row_each_and_one_in_total() -> None:
    both = parse_scenario(TWO)
    assert cells(both) == [Cell("rep:3", "mixed", "mixed", None)]
    assert both.clients == 5
    assert both.images_bytes == (3 + 4) << 30
    result = run_scenario(both)
    rows = result.rows.to_dicts()
    assert [row["workload"] for row in rows] == ["database", "backup", "all"]
    assert [
        (row["op"], row["pattern"], row["block_size_bytes"]) for row in rows[:2]
    ] == [
        ("mixed", "rand", 16384),
        ("write", "seq", 1 << 20),
    ]
    assert (
        rows[2]["requests"]
        == rows[0]["requests"] + rows[1]["requests"]
        == result.requests
    )
    assert rows[0]["offered_iops"] == pytest.approx(2000, rel=0.15)
    # A closed loop has no offered rate: it issues a request per completion.
    assert rows[1]["offered_iops"] is None
    assert rows[2]["offered_iops"] is None
    assert json.loads(json.dumps(result.to_json()))["rows"][1]["workload"] == "backup"
    # Wake-ups of shared threads are divided among the workloads: their rows add up to the total.
    for column in ("context_switches_per_op", "cpu_ns_per_op"):
        each = [row[column] * row["requests"] for row in rows]
        assert each[0] + each[1] == pytest.approx(each[2], rel=1e-4)
        assert min(each) > 0


def test_a_closed_loop_beside_arrivals_is_limited_by_its_latency() -> None:
    # Given a client that keeps one request in flight beside Poisson arrivals, on an idle cluster
    light = TWO.replace("queue_depth = 4", "queue_depth = 1").replace("2000", "100")
    few = light.replace("clients = 2", "clients = 1").replace('"1MiB"', '"4k"')
    arrivals, loop, _ = run_scenario(parse_scenario(few)).rows.to_dicts()
    # Then all arrivals are served, and a faster cluster would serve more requests of the loop.
    assert (arrivals["bottleneck"], loop["bottleneck"]) == ("none", "latency")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("backup", "database"), "workloads.name: got database, wanted a unique name"),
        (('["seq"]', '["seq", "rand"]'), "workloads.patterns: got 2 values, wanted one"),
        (("rate_per_s = 2000\n", ""), "workloads.rate_per_s: got nothing, wanted an arrival rate"),
        (("clients = 2", "duration_s = 0.4"), "workloads.duration_s: got 0.2, wanted 0.4"),
        (('["1MiB"]', '["3GiB"]'), "workloads.block_sizes_bytes: got 3GiB, wanted at most workload"),
        (("clients = 2", "clients = 0"), "workloads.clients: got 0"),
    ],
)  # fmt: skip
def test_problems_of_several_workloads_name_the_key(
    change: tuple[str, str], problem: str
) -> None:
    with pytest.raises(ScenarioError) as error:
        parse_scenario(TWO.replace(*change))
    assert states(str(error.value), problem)


def test_an_open_loop_beyond_capacity_reports_its_served_rate() -> None:
    rows = {}
    for rate in (1000, 30_000):
        result = run_scenario(
            scenario(f'kind = "open"\nrate_per_s = {rate}\nduration_s = 0.3'),
            costs=False,
        )
        rows[rate] = result.rows.to_dicts()[0]
    assert rows[1000]["saturated"] is False
    assert rows[1000]["iops"] == pytest.approx(rows[1000]["offered_iops"], rel=0.03)
    assert rows[30_000]["saturated"] is True
    # The submission time limits the rate of one client's thread.
    submit_ns = build_models(scenario("requests = 1")).client.submit_ns
    assert rows[30_000]["iops"] < 1e9 / submit_ns * 1.02 < 30_000
    assert rows[30_000]["offered_iops"] == pytest.approx(30_000, rel=0.05)
    assert load_sentences(rows.values())[0].startswith("rep:3: saturated: serves ")


def test_more_clients_reach_a_rate_beyond_one_client() -> None:
    load = 'kind = "open"\nrate_per_s = 30_000\nduration_s = 0.3\nclients = 8'
    row = run_scenario(scenario(load), costs=False).rows.to_dicts()[0]
    assert row["saturated"] is False
    assert row["iops"] > 0.97 * row["offered_iops"]


def test_a_scheme_too_wide_for_the_engine_is_refused_with_its_line(monkeypatch):
    monkeypatch.setattr(graph, "STEPS_MAX", 1000)
    text = """schemes = [
    "rep:3",
    "rs:254,1",
]
cluster = {hosts = 300, osds_per_host = 1, pg_num = 1}
workload = {requests = 1, ops = ["read"], patterns = ["rand"]}
"""
    scenario = parse_scenario(text, label="wide.toml")
    with pytest.raises(
        ValueError, match=r"^wide\.toml:3: schemes: got rs:254,1, which takes \d+ steps"
    ):
        run_cell(scenario, Cell("rs:254,1", "read", "rand", 4096), "compiled")


def test_clients_that_nobody_stated_do_not_limit() -> None:
    plain = scenario("requests = 100")
    enough = plain.with_enough_clients()
    resources = build_cell(enough, cells(enough)[0]).pool.cluster.resources
    of_client = [kind.startswith("client.") for kind in resources.kinds]
    # A thread and an interface in each direction, for each of 256 requests in flight.
    assert sum(of_client) == 3
    assert (resources.capacities[of_client] >= 256).all()


@pytest.mark.parametrize(
    "stated",
    [
        "workload.clients=1",
        "workload.clients_per_host=1",
        "client.threads=1",
        "client.place=own",
        "client.unlimited=false",
    ],
)
def test_clients_that_are_stated_stay(stated: str) -> None:
    asked = scenario("requests = 100", sets=(stated,))
    assert asked.states_clients
    assert asked.with_enough_clients() is asked


def test_one_workload_that_states_clients_states_them() -> None:
    assert parse_scenario(TWO).states_clients


def test_a_key_that_is_not_given_leaves_the_hash_alone() -> None:
    plain = scenario("requests = 100")
    given = scenario("requests = 100", sets=("client.unlimited=false",))
    asked = plain.model_dump(mode="json")
    assert asked["client"].pop("unlimited") is None
    assert plain.hash() != given.hash()


def test_variants_of_a_scenario_change_only_their_keys() -> None:
    scenario = parse_scenario(
        'schemes = ["rep:3", "rs:4,2"]\nseed = 5\n'
        "[cluster]\nhosts = 8\nstored_bytes = 1_000_000_000\n"
        "[workload]\nclients = 3\nduration_s = 2.0\n"
    )
    assert scenario.seeded(2).seed == 7
    open_loop = scenario.at_rate(100.0).workload
    assert (open_loop.kind, open_loop.rate_per_s) == ("open", 100.0)
    assert open_loop.duration_s == 2.0
    # 8 requests over 3 clients: 3 each is the least that keeps 8 in flight.
    loop = scenario.closed(8, requests=50).workload
    assert (loop.kind, loop.queue_depth, loop.requests) == ("closed", 3, 50)
    assert loop.duration_s is None
    (cell,) = cells(scenario.of_cell(cells(scenario)[-1]))
    assert cell == cells(scenario)[-1]
    lost = scenario.without_osd(4, scenario.workload)
    assert lost.lost_osds == (4,)
    assert lost.cluster.stored_bytes is None
    assert scenario.cluster.stored_bytes == 10**9
