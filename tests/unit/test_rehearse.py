"""Rehearsals: exact movement, bytes, times of a whole from a part, fill, and what is refused."""

import json
import re

import pytest
from typer.testing import CliRunner

from stripesim.cli.app import app
from stripesim.scenarios.rehearsal import rehearse as rehearsal
from stripesim.scenarios.rehearsal.backfill_schedule import Backfill, schedule_s
from stripesim.scenarios.rehearsal.rehearse import rehearse
from stripesim.scenarios.run.execute import run_scenario
from stripesim.scenarios.schema.loader import ScenarioError, parse_scenario

TEXT = """
name = "changes"
schemes = ["rs:4,2"]
generation = "quincy"
[cluster]
hosts = 8
osds_per_host = 2
pg_num = 32
cores_per_host = 16
drive_bytes = "100GB"
stored_bytes = "100GB"
[workload]
ops = ["read"]
patterns = ["rand"]
image_bytes = "1GiB"
requests = 1
queue_depth = 1
"""
OUT = """
[[changes]]
kind = "out"
osds = [5]
"""
GIB = 1 << 30


def scenario(changes=OUT, text=TEXT):
    return parse_scenario(text + changes)


def test_a_rehearsal_has_the_fields_of_the_contract():
    document = rehearse(scenario(OUT + '[[changes]]\nkind = "in"\nosds = [5]\n'))
    extrapolated, clients, *_ = document["warnings"]
    assert re.search(r"from \d+ of 745 objects", extrapolated)
    assert "workload.duration_s" in clients
    out, back = document["changes"]
    for change in (out, back):
        assert set(change) >= {
            "kind",
            "pgs_moved",
            "shards_moved",
            "bytes_moved",
            "device_read_bytes",
            "device_write_bytes",
            "private_net_bytes",
            "duration_s",
            "peak_used_ratio",
            "full_ratio_reached",
            "profiles",
        }
        assert [profile["profile"] for profile in change["profiles"]] == ["fifo"]
    assert (out["kind"], back["kind"]) == ("out", "in")
    # What left comes back.
    assert out["shards_moved"] == back["shards_moved"]
    # 100 GB in 32 PGs: each shard has a quarter of a PG's data, in whole stripes of 16 KiB.
    objects = 100e9 / (4 << 20) / 32
    moved_bytes = out["shards_moved"] * objects * (1 << 20)
    assert out["bytes_moved"] == pytest.approx(moved_bytes)
    assert out["device_read_bytes"] == pytest.approx(moved_bytes, rel=0.01)
    assert 1 < out["device_write_bytes"] / moved_bytes < 1.05
    # Each shard is sent to the primary and on, unless it is one of the two; hosts are the failure domain,
    # so that only shards that move within a host stay there.
    assert 1.5 < out["private_net_bytes"] / moved_bytes < 2.01
    assert out["between_hosts_bytes"] <= out["private_net_bytes"]


def test_the_time_of_the_whole_follows_from_a_part(monkeypatch):
    """32 PGs of 745 objects, all simulated, and from 40 of each."""
    monkeypatch.setattr(rehearsal, "SHARDS_MAX", 10**9)
    text = TEXT.replace('stored_bytes = "100GB"', 'stored_bytes = "40GB"')
    (whole,) = rehearse(scenario(text=text))["changes"]
    monkeypatch.setattr(rehearsal, "SHARDS_MAX", 500)
    (part,) = rehearse(scenario(text=text))["changes"]
    assert whole["duration_s"] > 5
    assert part["duration_s"] == pytest.approx(whole["duration_s"], rel=0.15)
    for counter in ("device_read_bytes", "device_write_bytes", "private_net_bytes"):
        assert part[counter] == pytest.approx(whole[counter], rel=0.02)


def test_pgs_take_turns_where_they_share_an_osd():
    # Two PGs with one primary, and one apart: 2 × 3 s.
    backfills = [Backfill(0, (1,)), Backfill(0, (2,)), Backfill(3, (4,))]
    assert schedule_s(backfills, group_s=3.0, slots=1, osds=5) == 6.0
    # With two slots all move at once.
    assert schedule_s(backfills, group_s=3.0, slots=2, osds=5) == 3.0
    # One target for all three.
    backfills = [Backfill(0, (4,)), Backfill(1, (4,)), Backfill(2, (4,))]
    assert schedule_s(backfills, group_s=3.0, slots=1, osds=5) == 9.0


def test_a_removed_host_gives_everything_up_and_a_new_one_takes_its_share():
    changes = """
[[changes]]
kind = "remove"
hosts = [2]
[[changes]]
kind = "add"
hosts = 1
"""
    removed, added = rehearse(scenario(changes))["changes"]
    # 32 PGs of 6 shards on 8 hosts: about 24 on each. CRUSH moves some more between other hosts.
    assert 14 < removed["shards_moved"] < 60
    assert 14 < added["shards_moved"] < 60


def test_the_fullest_osd_and_the_ratio_that_it_crosses_are_named():
    # 100 GB × 1.5 on 16 OSDs of 11 GB: 85 % on average, and some more than that.
    text = TEXT.replace('drive_bytes = "100GB"', 'drive_bytes = "13GB"')
    (change,) = rehearse(scenario(text=text))["changes"]
    assert change["peak_used_ratio"] > 0.85
    assert change["full_ratio_reached"] in ("nearfull", "backfillfull", "full")
    assert 0 <= change["fullest_osd"] < 16


def test_usage_of_the_cluster_at_the_start_counts():
    used = ", ".join(["50000000000"] * 16)
    text = TEXT.replace(
        'stored_bytes = "100GB"', f'stored_bytes = "1GB"\nused_bytes = [{used}]'
    )
    (change,) = rehearse(scenario(text=text))["changes"]
    assert change["peak_used_ratio"] == pytest.approx(0.5, abs=0.01)
    assert change["full_ratio_reached"] is None


def test_a_cluster_that_is_too_full_does_not_become_clean():
    text = TEXT.replace('drive_bytes = "100GB"', 'drive_bytes = "10.4GB"')
    document = rehearse(scenario(text=text))
    (change,) = document["changes"]
    assert change["duration_s"] is None
    assert any("does not become clean" in line for line in document["warnings"])


def test_clients_are_measured_before_during_and_after():
    text = TEXT.replace("requests = 1", "duration_s = 5").replace(
        'stored_bytes = "100GB"', 'stored_bytes = "4GB"'
    )
    (change,) = rehearse(scenario(text=text))["changes"]
    (profile,) = change["profiles"]
    for when in (profile["before"], profile, profile["after"]):
        assert when["iops"] > 0
        assert 0 < when["latency_p50_ns"] <= when["latency_p99_ns"]
    # One read at a time: the rate is the inverse of the mean latency.
    before = profile["before"]
    assert before["iops"] == pytest.approx(1e9 / before["latency_p50_ns"], rel=0.2)


def test_marking_a_slow_osd_out_brings_the_latency_of_a_healthy_cluster():
    text = TEXT.replace("requests = 1", "duration_s = 5").replace(
        'stored_bytes = "100GB"', 'stored_bytes = "4GB"'
    )
    slow = '[[faults.events]]\nkind = "slow"\nosds = [5]\nat_s = 0\nfactor = 100\n'
    (change,) = rehearse(scenario(slow + OUT, text=text))["changes"]
    (profile,) = change["profiles"]
    # A read of RS(4,2) waits for 4 of 16 drives: every fourth for the slow one, until it is out.
    assert profile["before"]["latency_p99_ns"] > 3 * profile["after"]["latency_p99_ns"]
    assert profile["before"]["iops"] < profile["after"]["iops"] / 2
    # The same shards move as without a slow drive.
    (healthy,) = rehearse(scenario(text=text))["changes"]
    assert change["shards_moved"] == healthy["shards_moved"]
    assert change["duration_s"] > 0


def test_a_rehearsal_needs_no_length_and_a_run_does():
    # Given a scenario that bounds its clients by nothing
    head, _, tail = TEXT.partition("[workload]\n")
    lines = [
        line
        for line in tail.splitlines()
        if not line.startswith(("duration_s", "requests"))
    ]
    unbounded = scenario(text=head + "[workload]\n" + "\n".join(lines) + "\n")
    # Then its changes can be rehearsed, with clients throughout, but it cannot be run.
    (change,) = rehearse(unbounded)["changes"]
    assert change["profiles"][0]["iops"] > 0
    with pytest.raises(ValueError, match=r"workload\.requests: got neither"):
        run_scenario(unbounded)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ("", "changes"),
        (OUT + '[[changes]]\nkind = "scheme"\nscheme = "rep:3"\n', "changes.kind"),
        ('[[changes]]\nkind = "out"\nosds = [16]\n', "changes.osds"),
        ('[[changes]]\nkind = "out"\n', "changes.osds"),
        ('[[changes]]\nkind = "out"\nosds = [1]\nweight = 1.0\n', "changes.weight"),
        ('[[changes]]\nkind = "add"\nhosts = [1]\n', "changes.hosts"),
        ('[[changes]]\nkind = "remove"\nhosts = 1\n', "changes.hosts"),
        ('[[changes]]\nkind = "remove"\nhosts = [8]\n', "changes.hosts"),
        ('[[changes]]\nkind = "weight"\nosds = [1]\n', "changes.weight"),
        ('[[changes]]\nkind = "grow"\nhosts = 1\n', "changes.kind"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused_with_its_key(changes, key):
    with pytest.raises((ScenarioError, ValueError), match=rf"(^|\s){key}: got"):
        rehearse(scenario(changes))


def test_hosts_that_are_added_earlier_may_be_removed():
    changes = """
[[changes]]
kind = "add"
hosts = 1
[[changes]]
kind = "remove"
hosts = [8]
"""
    added, removed = rehearse(scenario(changes))["changes"]
    assert added["shards_moved"] == removed["shards_moved"]


def test_the_command_prints_one_document(tmp_path):
    file = tmp_path / "changes.toml"
    file.write_text(TEXT + OUT)
    answer = CliRunner().invoke(app, ["rehearse", str(file), "--json", "-"])
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    assert document["changes"][0]["kind"] == "out"
    table = CliRunner().invoke(app, ["rehearse", str(file), "--out", str(tmp_path)])
    assert table.exit_code == 0
    written = json.loads((tmp_path / "rehearsal.json").read_text())
    for each in (written, document):
        assert each["provenance"].pop("time")
    assert written == document


def test_up_sets_are_those_of_the_pool_s_number(data):
    text = f"""
name = "measured"
schemes = ["rs:6,3"]
generation = "pacific"
[cluster]
crush_map = "{data / "ceph16/change/cluster.crush.txt"}"
crush_rule = "ec63"
pg_num = 32
pool_id = 4
[workload]
ops = ["read"]
patterns = ["rand"]
requests = 1
queue_depth = 1
image_bytes = "1GiB"
"""
    changes = """
[[changes]]
kind = "out"
osds = [5]
[[changes]]
kind = "in"
osds = [5]
[[changes]]
kind = "weight"
osds = [14, 15]
weight = 0.0
[[changes]]
kind = "weight"
osds = [14, 15]
weight = 1.0
"""
    rows = rehearse(scenario(changes, text))["changes"]
    # change.csv.
    assert [row["shards_moved"] for row in rows] == [19, 19, 84, 84]
    measured = [(0.996, 1.069, 1.939), (0.996, 1.072, 1.939)]
    measured += [(0.999, 1.039, 1.883), (1.014, 1.041, 1.901)]
    for row, ratios in zip(rows, measured, strict=True):
        names = ("device_read_bytes", "device_write_bytes", "private_net_bytes")
        for name, ratio in zip(names, ratios, strict=True):
            assert row[name] / row["bytes_moved"] == pytest.approx(ratio, rel=0.1)
    # The map has four hosts of four OSDs, and PGs that use several OSDs of one.
    assert rows[2]["between_hosts_bytes"] < 0.9 * rows[2]["private_net_bytes"]


def test_each_mclock_profile_has_a_time_and_the_default_comes_first():
    text = TEXT.replace(
        "cores_per_host = 16", 'cores_per_host = 16\nop_queue = "mclock_scheduler"'
    ).replace('stored_bytes = "100GB"', 'stored_bytes = "1GB"')
    (change,) = rehearse(scenario(text=text))["changes"]
    names = [profile["profile"] for profile in change["profiles"]]
    # Quincy's default.
    assert names[0] == "high_client_ops"
    assert set(names) == {"high_client_ops", "balanced", "high_recovery_ops"}
    assert change["duration_s"] == change["profiles"][0]["duration_s"]


def test_of_several_kinds_of_requests_the_first_is_measured():
    text = TEXT.replace('ops = ["read"]', 'ops = ["write", "read"]')
    warnings = rehearse(scenario(text=text))["warnings"]
    assert any("rand write of 4096 bytes; 1 other" in line for line in warnings)


def test_objects_that_clients_write_meanwhile_are_not_moved_in_their_stead():
    text = TEXT.replace('ops = ["read"]', 'ops = ["write"]')
    text = text.replace("requests = 1", "duration_s = 5")
    text = text.replace('stored_bytes = "100GB"', 'stored_bytes = "1GB"')
    (change,) = rehearse(scenario(text=text))["changes"]
    assert change["device_read_bytes"] == pytest.approx(change["bytes_moved"], rel=0.1)


def test_a_pool_that_is_copied_needs_room_for_both():
    changes = '[[changes]]\nkind = "scheme"\nscheme = "rep:3"\n'
    text = TEXT.replace('drive_bytes = "100GB"', 'drive_bytes = "33GB"')
    document = rehearse(scenario(changes, text))
    (change,) = document["changes"]
    assert (change["pgs_moved"], change["shards_moved"]) == (32, 96)
    assert change["bytes_moved"] == pytest.approx(300e9)
    # RS(4,2) is read once; its primary gathers three of four shards and sends two of three replicas.
    assert change["device_read_bytes"] == pytest.approx(100e9)
    assert change["private_net_bytes"] == pytest.approx(75e9 + 200e9)
    assert change["between_hosts_bytes"] == change["private_net_bytes"]
    # 150 GB and 300 GB on 16 drives of 33 GB are 85 % on average; some hold more.
    assert change["peak_used_ratio"] > 0.85
    assert change["full_ratio_reached"] is not None
    assert change["duration_s"] is None
    assert "not simulated" in document["warnings"][0]
