"""Virtual machines: their keys mean clients, and the search brackets the latency bound."""

from __future__ import annotations

import json

import pytest

from stripesim.models.problems import AnswerError, ScenarioError
from stripesim.scenarios.answers.load.vm_answer import answer_of_vms, axis_of_machines
from stripesim.scenarios.answers.load.vms import VmPoint, VmsWithin, vms_within
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.scenarios.show.answer import Answer
from stripesim.sim.observe.intervals import Interval

CLUSTER = """
schemes = ["rep:3"]
[cluster]
hosts = 3
osds_per_host = 1
pg_num = 128
[workload]
ops = ["write"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
requests = 2000
"""


def _says_between(answer: Answer) -> bool:
    return any("between two that were simulated" in line for line in answer["notes"])


def test_machines_mean_clients_and_their_requests() -> None:
    load = parse_scenario(CLUSTER + "vms = 8\nvm_queue_depth = 4\n").workload
    assert (load.clients, load.queue_depth, load.kind) == (8, 4, "closed")
    # 8 machines of 500 requests a second each.
    load = parse_scenario(CLUSTER + "vms = 8\nvm_iops_limit = 500\n").workload
    assert (load.clients, load.kind, load.rate_per_s) == (8, "open", 4000)
    assert load.with_vms(16).rate_per_s == 8000


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("vm_queue_depth = 4", "workload.vms, too"),
        ("vm_iops_limit = 500", "workload.vms, too"),
        ("vms = 8\nclients = 2", "no clients: virtual machines set it to 8"),
        (
            "vms = 8\nvm_queue_depth = 2\nqueue_depth = 4",
            "no queue_depth: virtual machines set it to 2",
        ),
        (
            'vms = 8\nvm_iops_limit = 500\nkind = "closed"',
            "no kind: virtual machines set it to open",
        ),
    ],
)
def test_keys_that_contradict_machines_are_refused(keys: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(CLUSTER + keys + "\n")
    assert says in str(caught.value)


def test_images_of_machines_that_do_not_fit_are_refused() -> None:
    sets = ["workload.image_bytes=100TB"]
    with pytest.raises(ScenarioError, match=r"at most .* the capacity of rep:3"):
        vms_within(parse_scenario(CLUSTER, sets=sets), p99_bound_s=0.005)


def test_machines_whose_images_do_not_fit_are_warned_of() -> None:
    # Given 3 OSDs of 1 TB with three copies: 1 TB × full ratio 0.95 holds 9 images of 100 GB
    sets = ["cluster.drive_bytes=1TB", "workload.image_bytes=100GB"]
    text = CLUSTER + "vms = 1\nvm_iops_limit = 100\n"
    scenario = parse_scenario(text, sets=sets)
    (found,) = vms_within(scenario, p99_bound_s=0.005, replications=2, jobs=1)
    answer = answer_of_vms(scenario, [found], engine="compiled", replications=2)
    # Then a cluster that serves more says how many fit.
    assert found.vms > 9
    assert any("only 9 virtual machines fit" in line for line in answer["warnings"])
    # Images of 1 GB fit.
    small = parse_scenario(text, sets=[sets[0], "workload.image_bytes=1GB"])
    answer = answer_of_vms(small, [found], engine="compiled", replications=2)
    assert not any("fit at the full" in line for line in answer["warnings"])


def test_the_answer_warns_of_a_cluster_without_a_spare_host() -> None:
    answer = answer_of_vms(
        parse_scenario(CLUSTER), [], engine="compiled", replications=5
    )
    assert any("no spare host" in line for line in answer.document["warnings"])


def test_the_number_of_machines_is_between_simulated_ones() -> None:
    scenario = parse_scenario(CLUSTER + "vms = 1\nvm_queue_depth = 16\n")
    (found,) = vms_within(scenario, p99_bound_s=0.005, replications=3, jobs=1)
    within = [p.vms for p in found.points if p.latency_p99_ns.mean <= 5e6]
    above = [p.vms for p in found.points if p.latency_p99_ns.mean > 5e6]
    assert 0 < max(within) <= found.vms < min(above)
    assert found.limited_by == "kv"
    assert not found.is_most
    answer = answer_of_vms(scenario, [found], engine="compiled", replications=3)
    assert f"{found.vms} virtual machine" in answer.sentence
    assert "p99 ≤ 5 ms" in answer.sentence
    assert "processors (key-value threads)" in answer.sentence
    assert _says_between(answer)
    (document,) = json.loads(json.dumps(answer.to_json()))["vms"]
    assert document["vms"] == found.vms
    assert document["vms_low"] <= found.vms <= document["vms_high"]
    assert {"vms", "iops", "latency_p99_ns"} <= document["points"][0].keys()


def test_a_bound_below_an_idle_cluster_leaves_no_machine() -> None:
    scenario = parse_scenario(CLUSTER + "vms = 1\nvm_iops_limit = 100\n")
    (found,) = vms_within(scenario, p99_bound_s=1e-5, replications=2, jobs=1)
    assert (found.vms, len(found.points)) == (0, 1)
    answer = answer_of_vms(scenario, [found], engine="compiled", replications=2)
    assert "not even 1 virtual machine" in answer.sentence
    assert not _says_between(answer)


def test_a_machine_above_the_bound_of_the_cluster_is_not_simulated() -> None:
    # Given a machine that issues more than three NVMe drives and their processors can serve
    scenario = parse_scenario(CLUSTER + "vms = 1\nvm_iops_limit = 1e7\n")
    (found,) = vms_within(scenario, p99_bound_s=0.005, replications=2, jobs=1)
    assert (found.vms, found.points, found.is_most) == (0, (), False)
    answer = answer_of_vms(scenario, [found], engine="compiled", replications=2)
    assert "not even 1 virtual machine" in answer.sentence
    assert answer.figures() == {}


def test_a_bound_that_takes_too_many_requests_is_refused() -> None:
    scenario = parse_scenario(CLUSTER + "vms = 1\nvm_iops_limit = 500\n")
    with pytest.raises(
        AnswerError, match=r"p99: got 60 min, wanted at most .* for runs 20 times"
    ):
        vms_within(scenario, p99_bound_s=3600.0, replications=2, jobs=1)


def test_each_size_has_a_bound_of_its_own() -> None:
    # Given machines that issue 4 KiB or 1 MiB; a request of 1 MiB is 256 times as large.
    sizes = CLUSTER.replace('"4k"', '"4k", "1MiB"') + "vms = 1\nvm_iops_limit = 200\n"
    small, large = vms_within(
        parse_scenario(sizes), p99_bound_s=0.02, replications=2, jobs=1
    )
    only = parse_scenario(CLUSTER + "vms = 1\nvm_iops_limit = 200\n")
    (alone,) = vms_within(only, p99_bound_s=0.02, replications=2, jobs=1)
    # Then the small ones do not share the bound of the large ones.
    assert small.vms == alone.vms > 4 * large.vms > 0


def test_without_machines_in_the_scenario_a_stated_profile_is_assumed() -> None:
    # Given the counters of a whole pool, such as an import writes: large requests, many in flight
    text = CLUSTER.replace('"4k"', '"4MiB"') + "queue_depth = 256\n"
    scenario = parse_scenario(text)
    (found,) = vms_within(scenario, p99_bound_s=0.005, replications=2, jobs=1)
    answer = answer_of_vms(scenario, [found], engine="compiled", replications=2)
    # Then they are not taken as those of a machine.
    assert found.cell.block_size_bytes == 4096
    assert found.vms > 0
    first = found.points[0]
    assert first.iops.mean == pytest.approx(500, rel=0.1)
    (line,) = answer["assumptions"]
    assert "500 random requests/s of 4 KiB, 70 % of them reads" in line
    assert "assumed: " + line in answer.shown


def test_the_command_wants_one_bound(command, tmp_path) -> None:
    path = tmp_path / "vms.toml"
    path.write_text(CLUSTER + "vms = 1\n", encoding="utf-8")
    status, _, err = command("load", path, "--vms")
    assert status == 2
    assert "--p99: got 0 bounds, wanted one" in err


def test_a_refused_number_of_machines_names_the_size_of_requests() -> None:
    # Given a scenario with several sizes, each with a search of its own
    refused = VmPoint(
        vms=8,
        iops=Interval(100.0, None, None),
        latency_p50_ns=Interval(1e6, None, None),
        latency_p99_ns=Interval(2e6, None, None),
        bottleneck=None,
        refused="too short",
        each_p99_ns=(2e6,),
        is_served=True,
    )
    found = VmsWithin(
        cell=Cell("rep:3", "read", "rand", 65536),
        p99_bound_ns=5e6,
        vms=8,
        low=None,
        high=None,
        is_most=True,
        limited_by=None,
        points=(refused,),
    )
    assert found.refusals == ["rep:3 read rand 64KiB, 8 virtual machines: too short"]


def test_an_axis_counts_each_of_a_few_machines():
    assert list(axis_of_machines(4).ticks or ()) == [1, 2, 3, 4]
    assert axis_of_machines(400).scale == "log"
