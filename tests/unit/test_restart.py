"""Rolling restarts: hosts counted by hand, a short restart against a whole one, and what is refused."""

import pytest

from stripesim.calibration.ledger.duration_errors import duration_interval
from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.rehearse.answer import answer_of_rehearsal
from stripesim.scenarios.answers.rehearse.commands import commands_of
from stripesim.scenarios.answers.rehearse.rehearse import rehearse
from stripesim.scenarios.answers.rehearse.restarts import short_restart
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import parse_scenario
from support.messages import states

TEXT = """
name = "restart"
schemes = ["rep:3"]
generation = "reef"
[cluster]
hosts = 4
osds_per_host = 1
pg_num = 16
cores_per_host = 16
drive_bytes = "100GB"
parameters = "nvme"
[workload]
ops = ["write"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
image_bytes = "1GiB"
queue_depth = 1
duration_s = 1
"""
RESTART = """
[[changes]]
kind = "restart"
downtime_s = 20
"""


def change_of(document):
    (change,) = document["changes"]
    return change


@pytest.fixture(scope="module")
def short():
    """Return a restart of 20 s, simulated as one of 4 s."""
    return rehearse(parse_scenario(TEXT + RESTART))


def test_a_short_restart_recovers_as_the_whole_one(short, monkeypatch):
    monkeypatch.setattr(short_restart, "_DOWNTIME_MIN_S", 20.0)
    whole = change_of(rehearse(parse_scenario(TEXT + RESTART + "hosts = [0]")))
    part = change_of(short)["hosts"][0]
    # One client writes each of the 256 objects some hundred times in 20 s: all of the host are degraded.
    (in_whole,) = whole["hosts"]
    assert in_whole["degraded_objects"] == pytest.approx(
        256 * part["pgs"] / 16, rel=0.1
    )
    assert part["degraded_objects"] == pytest.approx(
        in_whole["degraded_objects"], rel=0.1
    )
    assert part["duration_s"] == pytest.approx(in_whole["duration_s"], rel=0.15)


def test_one_of_several_loads_takes_its_image_from_the_table_of_all():
    loads = TEXT.replace('ops = ["write"]\n', "")
    for op in ("write", "read"):
        loads += f'[[workloads]]\nname = "{op}s"\nops = ["{op}"]\n'
    (host,) = change_of(rehearse(parse_scenario(loads + RESTART + "hosts = [0]")))[
        "hosts"
    ]
    # The writer has an image of 1 GiB, 256 objects, and writes each of them in 20 s.
    assert host["degraded_objects"] == pytest.approx(256 * host["pgs"] / 16, rel=0.15)


def test_few_large_requests_are_measured_for_longer():
    # A quarter of a second has some four requests, of which the ends of the window cut several.
    load = 'kind = "open"\nrate_per_s = 16\n'
    text = TEXT.replace("queue_depth = 1\nduration_s = 1\n", load)
    text = text.replace('"4k"', '"32MiB"')
    change = change_of(rehearse(parse_scenario(text + RESTART)))
    (profile,) = change["profiles"]
    assert profile["before"]["iops"] == pytest.approx(16, rel=0.7)


def test_clients_are_measured_though_requests_end_their_load():
    text = TEXT.replace("duration_s = 1\n", "requests = 1000\n")
    document = rehearse(parse_scenario(text + RESTART))
    (profile,) = change_of(document)["profiles"]
    assert profile["before"]["iops"] > 0
    assert not any("not measured" in warning for warning in document["warnings"])


def test_hosts_restart_one_after_another(short):
    change = change_of(short)
    assert [row["host"] for row in change["hosts"]] == [0, 1, 2, 3]
    # 16 groups of 3 copies on 4 hosts with an OSD each.
    assert sum(row["pgs"] for row in change["hosts"]) == 16 * 3
    total_s = sum(row["duration_s"] for row in change["hosts"])
    assert change["duration_s"] == pytest.approx(total_s)
    assert all(row["duration_s"] > 20 for row in change["hosts"])


def test_only_the_time_after_downtimes_is_uncertain(short):
    change = change_of(short)
    # Four hosts, each down for 20 s as stated.
    low_s, high_s = duration_interval(change["duration_s"] - 4 * 20)
    assert change["duration_low_s"] == pytest.approx(80 + low_s)
    assert change["duration_high_s"] == pytest.approx(80 + high_s)
    assert 80 < change["duration_low_s"] < change["duration_high_s"]
    (profile,) = change["profiles"]
    assert profile["duration_high_s"] == change["duration_high_s"]


def test_three_copies_serve_clients_with_a_host_down(short):
    change = change_of(short)
    assert change["inactive_pgs"] == 0
    (profile,) = change["profiles"]
    # A write waits for one replica less.
    assert profile["down"]["iops"] > 0.9 * profile["before"]["iops"]
    assert profile["latency_p99_ns"] is not None


def test_groups_below_min_size_serve_no_clients_meanwhile():
    text = TEXT.replace("rep:3", "rs:2,2").replace("hosts = 4", "hosts = 2")
    domain = 'osds_per_host = 2\nfailure_domain_erasure = "osd"'
    text = text.replace("osds_per_host = 1", domain)
    document = rehearse(parse_scenario(text + RESTART + "hosts = [1]"))
    # Each host has 2 of 4 shards of every group, and RS(2,2) needs 3 (min_size).
    assert change_of(document)["inactive_pgs"] == 16
    assert any(states(line, "16 ... min_size") for line in document["warnings"])


def test_a_long_downtime_without_noout_moves_data():
    text = TEXT.replace("hosts = 4", "hosts = 5")
    long = '\n[[changes]]\nkind = "restart"\nhosts = [0]\ndowntime_s = 700\nnoout = false\n'
    document = rehearse(parse_scenario(text + long))
    change = change_of(document)
    # All copies on the host get a new place, since 4 hosts are left for 3.
    assert change["shards_moved"] == change["hosts"][0]["pgs"]
    assert change["duration_s"] is None
    assert any(states(line, "noout ... 600") for line in document["warnings"])


@pytest.mark.usefixtures("quick_figures")
def test_a_restart_meets_the_cluster_that_the_changes_before_it_leave():
    # Given a new host, a restart of all hosts, and an OSD that is drained before hosts restart again
    changes = """
[[changes]]
kind = "add"
hosts = 1
[[changes]]
kind = "restart"
downtime_s = 4
[[changes]]
kind = "out"
osds = [1]
[[changes]]
kind = "restart"
downtime_s = 4
hosts = [0]
"""
    scenario = parse_scenario(TEXT.replace("100GB", "1TB") + changes)
    document = rehearse(scenario)
    added, all_hosts, out, one_host = document["changes"]
    kinds = [change["kind"] for change in document["changes"]]
    assert kinds == ["add", "restart", "out", "restart"]
    # Then the new host restarts as well, and all of 16 groups of 3 copies are on some host.
    assert [row["host"] for row in all_hosts["hosts"]] == [0, 1, 2, 3, 4]
    assert sum(row["pgs"] for row in all_hosts["hosts"]) == 16 * 3
    assert all_hosts["hosts"][4]["pgs"] == added["shards_moved"]
    # The OSD that left took its shards from the four hosts that stay, and host 0 has got some of them.
    assert out["shards_moved"] == all_hosts["hosts"][1]["pgs"]
    assert one_host["hosts"][0]["pgs"] >= all_hosts["hosts"][0]["pgs"]
    assert all(change["duration_s"] for change in document["changes"])
    assert [change["commands"][0] for change in (all_hosts, one_host)] == [
        "ceph osd set noout"
    ] * 2
    # Moving data and restarts have figures of their own.
    answer = answer_of_rehearsal(scenario, document)
    assert {"timeline", "restart-1", "restart-3"} <= set(answer.figures())
    assert "Rolling restart" in answer.page()


def test_a_drained_host_has_nothing_to_restart():
    changes = '[[changes]]\nkind = "remove"\nhosts = [0]\n' + RESTART + "hosts = [0]\n"
    with pytest.raises(ScenarioError) as caught:
        rehearse(parse_scenario(TEXT.replace("100GB", "1TB") + changes))
    assert states(str(caught.value), "changes.hosts")


def test_the_first_sentence_says_how_long_it_takes(short):
    answer = answer_of_rehearsal(parse_scenario(TEXT + RESTART), short)
    assert answer.sentence.startswith("Restarting 4 hosts one at a time takes")
    assert set(answer.figures()) == {"restart"}
    assert "Rolling restart" in answer.page()


def test_the_commands_set_noout_first_and_unset_it_last():
    scenario = parse_scenario(TEXT + RESTART)
    commands = commands_of(scenario, 0)
    assert commands[0] == "ceph osd set noout"
    assert commands[-1] == "ceph osd unset noout"


def test_a_run_does_not_restart_hosts_silently():
    scenario = parse_scenario(TEXT + RESTART)
    with pytest.raises(ScenarioError, match=r"changes\.kind: got restart"):
        build_cell(scenario, cells(scenario)[0])


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("hosts = [4]", "changes.hosts"),
        ("hosts = 2", "changes.hosts"),
        ("osds = [1]", "changes.osds"),
        ("downtime_s = 0", "changes.downtime_s"),
        ("at_s = 9", "changes.at_s"),
        ('[[changes]]\nkind = "out"\nosds = [1]\nat_s = 9', "changes.at_s"),
        ('[[changes]]\nkind = "scheme"\nscheme = "rs:2,1"', "changes.kind"),
    ],
)
def test_what_cannot_restart_is_refused_with_its_key(more, key):
    text = TEXT + RESTART.replace("downtime_s = 20\n", "") + more
    with pytest.raises(ScenarioError) as caught:
        rehearse(parse_scenario(text))
    assert states(str(caught.value), key)
