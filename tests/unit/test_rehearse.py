"""Rehearsals: exact movement, bytes, times of a whole from a part, fill, and what is refused."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from stripesim.cli.app import app
from stripesim.models.placement import build_map, map_to_text
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.problems import RefusedError, ScenarioError
from stripesim.scenarios.answers.rehearse import rehearse as rehearsing
from stripesim.scenarios.answers.rehearse import samples
from stripesim.scenarios.answers.rehearse import trade_off as trade_offs
from stripesim.scenarios.answers.rehearse.backfill_schedule import (
    object_time,
    reserved_groups,
)
from stripesim.scenarios.answers.rehearse.client_effect import WeightedRequests
from stripesim.scenarios.answers.rehearse.commands import commands_of
from stripesim.scenarios.answers.rehearse.exact_movement import exact_movements
from stripesim.scenarios.answers.rehearse.rehearse import rehearse
from stripesim.scenarios.answers.rehearse.tables import (
    interval_text,
    table_of_durations,
    table_of_settings,
)
from stripesim.scenarios.answers.rehearse.timeline import time_scale
from stripesim.scenarios.answers.rehearse.variants import (
    more_backfills,
    variants_of,
    with_own_queue,
)
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.changes import check_changes, planned_changes
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import (
    crush_of,
    domains_of_hosts,
    padded_osd_hosts,
)
from stripesim.scenarios.forms.capacity import drives_of
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.scenarios.show.figures.rehearsal import BANDS
from stripesim.sim.ceph.failures.background.reservations import Backfill, schedule_s
from stripesim.sim.ceph.failures.cluster_map import MapChange
from stripesim.sim.run import Run
from support.messages import states

pytestmark = pytest.mark.usefixtures("quick_figures")

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
op_queue = "fifo"
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


# Clients that work throughout, on much and on little data
LOADED = TEXT.replace("requests = 1", "duration_s = 5")
LIGHT = LOADED.replace('stored_bytes = "100GB"', 'stored_bytes = "4GB"')


@pytest.fixture(scope="module", autouse=True)
def small_samples():
    """Move a tenth of the shards that a rehearsal moves, with a tenth of the requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "SHARDS_MAX", samples.SHARDS_MAX // 10)
        patch.setattr(samples, "REQUESTS_MAX", samples.REQUESTS_MAX // 10)
        patch.setattr(samples, "USES_MAX", samples.USES_MAX // 10)
        patch.setattr(samples, "_QUIET_REQUESTS", samples._QUIET_REQUESTS // 4)
        yield


def scenario(changes=OUT, text=TEXT):
    return parse_scenario(text + changes)


@pytest.fixture(scope="module")
def healthy_change():
    """The change of a healthy cluster with clients and little data."""
    (change,) = rehearse(scenario(text=LIGHT))["changes"]
    return change


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
    """32 PGs of 119 objects, all simulated, and from a quarter of each."""
    monkeypatch.setattr(samples, "SHARDS_MAX", 10**9)
    text = TEXT.replace('stored_bytes = "100GB"', 'stored_bytes = "16GB"')
    (whole,) = rehearse(scenario(text=text))["changes"]
    monkeypatch.setattr(samples, "SHARDS_MAX", 500)
    (part,) = rehearse(scenario(text=text))["changes"]
    assert whole["duration_s"] > 2
    assert part["duration_s"] == pytest.approx(whole["duration_s"], rel=0.15)
    for counter in ("device_read_bytes", "device_write_bytes", "private_net_bytes"):
        assert part[counter] == pytest.approx(whole[counter], rel=0.02)


def test_pgs_take_turns_where_they_share_an_osd():
    # Two PGs with one primary, and one apart: 2 × 3 s.
    backfills = [Backfill(0, (1,)), Backfill(0, (2,)), Backfill(3, (4,))]
    assert schedule_s(backfills, group_s=3.0, slots=1) == 6.0
    # With two slots all move at once.
    assert schedule_s(backfills, group_s=3.0, slots=2) == 3.0
    # One target for all three.
    backfills = [Backfill(0, (4,)), Backfill(1, (4,)), Backfill(2, (4,))]
    assert schedule_s(backfills, group_s=3.0, slots=1) == 9.0


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
    document = rehearse(scenario(text=text))
    (change,) = document["changes"]
    assert change["peak_used_ratio"] == pytest.approx(0.5, abs=0.01)
    assert change["full_ratio_reached"] is None
    # 16 OSDs of 50 GB, and 1 GB × 1.5 of this pool.
    (line,) = [line for line in document["warnings"] if "other pools" in line]
    assert states(line, "OSDs hold 800 GB ... has 1.5 GB ... up to about 533 times")


def test_a_pool_alone_on_its_osds_leaves_nothing_out():
    # Metadata is 5 %.
    used = ", ".join(["9843750000"] * 16)
    text = TEXT.replace(
        'stored_bytes = "100GB"', f'stored_bytes = "100GB"\nused_bytes = [{used}]'
    )
    warnings = rehearse(scenario(text=text))["warnings"]
    assert not any("other pools" in line for line in warnings)


def test_a_cluster_that_is_too_full_does_not_become_clean():
    text = TEXT.replace('drive_bytes = "100GB"', 'drive_bytes = "10.4GB"')
    document = rehearse(scenario(text=text))
    (change,) = document["changes"]
    assert change["duration_s"] is None
    (line,) = [line for line in document["warnings"] if "does not become clean" in line]
    assert states(line, "backfill_toofull ... backfillfull_ratio (90 %)")


def test_data_that_do_not_fit_before_a_change_are_named():
    # 100 GB × 1.5 on 16 OSDs of 9 GB: 104 % on average.
    text = TEXT.replace('drive_bytes = "100GB"', 'drive_bytes = "9GB"')
    warnings = rehearse(scenario(text=text))["warnings"]
    assert any("stored before the changes do not fit" in line for line in warnings)


def test_clients_are_measured_before_during_and_after(healthy_change):
    (profile,) = healthy_change["profiles"]
    for when in (profile["before"], profile, profile["after"]):
        assert when["iops"] > 0
        assert 0 < when["latency_p50_ns"] <= when["latency_p99_ns"]
    # One read at a time: the rate is the inverse of the mean latency.
    before = profile["before"]
    assert before["iops"] == pytest.approx(1e9 / before["latency_p50_ns"], rel=0.2)


def test_marking_a_slow_osd_out_brings_the_latency_of_a_healthy_cluster(
    healthy_change,
):
    slow = '[[faults.events]]\nkind = "slow"\nosds = [5]\nat_s = 0\nfactor = 100\n'
    (change,) = rehearse(scenario(slow + OUT, text=LIGHT))["changes"]
    (profile,) = change["profiles"]
    # A read of RS(4,2) waits for 4 of 16 drives: every fourth for the slow one, until it is out.
    assert profile["before"]["latency_p99_ns"] > 3 * profile["after"]["latency_p99_ns"]
    assert profile["before"]["iops"] < profile["after"]["iops"] / 2
    # The same shards move as without a slow drive.
    assert change["shards_moved"] == healthy_change["shards_moved"]
    assert change["duration_s"] > 0


def test_a_change_whose_data_move_with_those_of_the_next_has_no_time_of_its_own():
    timed = OUT + "at_s = 1.0\n"
    text = TEXT.replace('stored_bytes = "100GB"', 'stored_bytes = "20GB"')
    both = rehearse(
        scenario(timed + timed.replace("5", "2").replace("1.0", "1.1"), text)
    )
    first, second = both["changes"]
    assert first["bytes_moved"] > 0
    assert first["duration_s"] is None
    assert second["duration_s"] > 0
    (reason,) = [line for line in both["warnings"] if "no time" in line]
    assert states(reason, "change 0 (out): ... next change (at_s) ... Leave at_s out")


def test_a_rehearsal_needs_no_length_and_a_run_does():
    # Given a scenario that bounds its clients by nothing
    head, _, tail = LIGHT.partition("[workload]\n")
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


def test_a_host_is_drained_by_its_name_in_the_map_as_by_its_number():
    drain = '[[changes]]\nkind = "remove"\nhosts = '
    by_name = scenario(drain + '["host3"]\n')
    by_number = scenario(drain + "[3]\n")
    # Hosts have two OSDs each.
    assert commands_of(by_name, 0) == [
        f"ceph osd crush reweight osd.{osd} 0" for osd in (6, 7)
    ]
    movements = [exact_movements(each, "rs:4,2") for each in (by_name, by_number)]
    counts = [moved.movement.shards_count for (moved,) in movements]
    assert counts[0] == counts[1] > 0
    with pytest.raises(ValueError, match=r"changes\.hosts") as caught:
        rehearse(scenario(drain + '["hots3"]\n'))
    assert states(str(caught.value), 'got "hots3" ... such as host3')


def test_a_bad_change_is_the_only_problem_of_a_scenario_without_a_length():
    unbounded = "\n".join(
        line for line in TEXT.splitlines() if not line.startswith("requests")
    )
    bad = '\n[[changes]]\nkind = "remove"\nhosts = [-1]\n'
    with pytest.raises(ScenarioError) as caught:
        scenario(bad, text=unbounded)
    (fault,) = caught.value.faults
    assert "changes.hosts" in fault


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
        ('[[changes]]\nkind = "out"\nosds = [1, 1]\n', "changes.osds"),
        ('[[changes]]\nkind = "remove"\nhosts = [1, 1]\n', "changes.hosts"),
        (
            '[[changes]]\nkind = "scheme"\nscheme = "rep:3"\ncrush_rule = "ec"\n',
            "changes.crush_rule",
        ),
        # An earlier time further down: CRUSH and clock would disagree on the last weights.
        (
            OUT + "at_s = 10\n" + OUT.replace('"out"', '"in"') + "at_s = 5\n",
            "changes.at_s",
        ),
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


@pytest.mark.parametrize(
    "domains",
    [
        "racks = 4",
        "sites = 2\nsite_rtt_ms = 1.0",
        "racks = 4\nsites = 2\nsite_rtt_ms = 1",
    ],
)
def test_hosts_can_be_added_to_racks_and_sites(domains):
    text = TEXT.replace("hosts = 8", f"hosts = 8\n{domains}")
    (change,) = rehearse(scenario('[[changes]]\nkind = "add"\nhosts = 2\n', text=text))[
        "changes"
    ]
    assert change["shards_moved"] > 0
    assert change["duration_s"] > 0


def test_new_hosts_are_in_the_racks_that_crush_gives_them():
    text = TEXT.replace("hosts = 8", "hosts = 8\nracks = 4")
    grown = scenario('[[changes]]\nkind = "add"\nhosts = 5\n', text=text)
    racks = domains_of_hosts(grown, "rack")
    in_map = crush_of(grown).domains("rack")
    hosts = padded_osd_hosts(grown).tolist()
    assert [racks[host] for host in hosts] == [in_map[osd] for osd in range(len(hosts))]
    assert sorted(map(racks.count, set(racks))) == [3, 3, 3, 4]


def test_a_host_for_a_map_of_no_weight_needs_a_weight_of_its_own(tmp_path):
    empty = """
device 0 osd.0
type 0 osd
type 1 host
type 2 root
host first {
    id -2
    alg straw2
    hash 0
    item osd.0 weight 0.0
}
root default {
    id -1
    alg straw2
    hash 0
    item first weight 0.0
}
rule any {
    id 0
    type replicated
    step take default
    step chooseleaf firstn 0 type host
    step emit
}
"""
    crush = tmp_path / "empty.crush.txt"
    crush.write_text(empty)
    text = f'''
schemes = ["rep:2"]
[cluster]
pg_num = 8
crush_map = "{crush}"
crush_rule = "any"
[workload]
requests = 1
'''
    add = '[[changes]]\nkind = "add"\nhosts = 1\n'
    with pytest.raises(ScenarioError, match=r"changes.weight: got nothing .* wanted"):
        rehearse(scenario(add, text=text))


def test_a_rehearsal_ends_with_its_changes_while_scrubs_go_on(healthy_change):
    scrubs = "[faults]\nscrub_interval_s = 600.0\n"
    (change,) = rehearse(scenario(OUT + scrubs, text=LIGHT))["changes"]
    assert change["duration_s"] == pytest.approx(healthy_change["duration_s"], rel=0.1)


def test_a_rehearsal_does_not_wait_for_an_osd_that_returns_after_a_year():
    # Given an OSD that stops as the change begins, on a cluster with 15 objects in each placement group
    text = TEXT.replace('stored_bytes = "100GB"', 'stored_bytes = "2GB"')
    failure = "[[faults.events]]\nat_s = 0.1\nosds = [9]\nreturn_s = 3e7\n"
    limit = "[faults]\ndown_out_interval_s = 20.0\n"
    document = rehearse(scenario(OUT + limit + failure, text=text))
    # Then the simulation ends once the change is made and the cluster is clean,
    (change,) = document["changes"]
    assert 0 < change["duration_s"] < 60
    # and a warning says that this time includes the wait for the OSD.
    assert any("OSDs fail" in line for line in document["warnings"])


def test_a_failure_after_the_changes_leaves_their_times_known(healthy_change):
    # Given an OSD that stops at 1,000 s, and a change of some seconds
    text = LIGHT.replace("duration_s = 5", "duration_s = 2000")
    failure = "[[faults.events]]\nat_s = 1000\nosds = [9]\n"
    document = rehearse(scenario(OUT + failure, text=text))
    (change,) = document["changes"]
    assert change["duration_s"] == pytest.approx(healthy_change["duration_s"], rel=0.1)
    assert not any("OSDs fail" in line for line in document["warnings"])


def test_failures_leave_the_times_of_a_part_of_the_objects_unknown():
    # Given an OSD that is down for 20 s, and placement groups of which 4 of 745 objects are simulated
    failure = "[[faults.events]]\nat_s = 0.1\nosds = [9]\nreturn_s = 20\n"
    document = rehearse(scenario(OUT + failure, text=LOADED))
    # Then these 20 s are not multiplied by 745 / 4.
    (change,) = document["changes"]
    assert change["duration_s"] is None
    assert change["bytes_moved"] > 0
    assert any("OSDs fail" in line for line in document["warnings"])


def test_a_rehearsal_with_scrubs_ends_if_the_cluster_never_becomes_clean():
    # Given six shards and two hosts that stay
    drain = '[[changes]]\nkind = "remove"\nhosts = [0, 1, 2, 3, 4, 5]\n'
    faults = "[faults]\nscrub_interval_s = 600.0\n"
    for text in (TEXT, LIGHT):
        (change,) = rehearse(scenario(drain + faults, text=text))["changes"]
        assert change["duration_s"] is None


def text_with_map(folder):
    """Return a scenario of three copies on a CRUSH map of hosts 0 to 3 with OSDs 0 to 7."""
    crush = folder / "crush.txt"
    crush.write_text(map_to_text(build_map(hosts=4, osds_per_host=2)))
    return f'''
schemes = ["rep:3"]
[cluster]
pg_num = 8
crush_map = "{crush}"
crush_rule = "rep"
[workload]
requests = 1
'''


@pytest.mark.parametrize(
    "change",
    [
        'kind = "out"\nosds = [8]',
        'kind = "weight"\nosds = [8]\nweight = 1.0',
        'kind = "remove"\nhosts = [4]',
        'kind = "remove"\nhosts = ["host4"]',
        'kind = "restart"\nhosts = [4]',
    ],
)
def test_what_a_later_change_adds_does_not_exist_yet(tmp_path, change):
    # Given a CRUSH map of hosts 0 to 3 with OSDs 0 to 7, so that the new host is 4, with OSDs 8 and 9
    text = text_with_map(tmp_path)
    add = '[[changes]]\nkind = "add"\nhosts = 1\n'
    this = f"[[changes]]\n{change}\n"
    with pytest.raises(ScenarioError, match=r"changes\.(hosts|osds): got .* by then"):
        rehearse(scenario(this + add, text=text))
    after = scenario(add + this, text=text)
    check_changes(after, padded_osd_hosts(after))


@pytest.mark.parametrize(
    ("scheme", "keys", "profile"),
    [
        ("rs:4,2", "", "k=4 m=2"),
        ("clay:4,2,5", "", "plugin=clay k=4 m=2 d=5"),
        ("lrc-ceph:4,2,3", "", "plugin=lrc k=4 m=2 l=3"),
        ("shec:4,3,2", "", "plugin=shec k=4 m=3 c=2"),
        (
            "rs:4,2",
            'failure_domain_erasure = "osd"\nstripe_unit_bytes = 16384\n',
            "k=4 m=2 stripe_unit=16384 crush-failure-domain=osd",
        ),
    ],
)
def test_the_profile_of_a_new_pool_is_that_of_its_code(scheme, keys, profile):
    text = TEXT.replace("[workload]", keys + "[workload]")
    change = f'[[changes]]\nkind = "scheme"\nscheme = "{scheme}"\n'
    first, *_ = commands_of(scenario(change, text=text), 0)
    assert first == f"ceph osd erasure-code-profile set NEW-PROFILE {profile}"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        # Eight hosts less two for six shards
        ('kind = "remove"\nhosts = [0, 1]\n', "6 for 6 shards"),
        ('kind = "remove"\nhosts = [0]\n', None),
        ('kind = "scheme"\nscheme = "rs:6,2"\n', "8 for 8 shards"),
        ('kind = "scheme"\nscheme = "rs:5,2"\n', None),
    ],
)
def test_changes_that_leave_no_spare_host_say_so(change, told):
    document = rehearse(scenario("[[changes]]\n" + change))
    lines = [line for line in document["warnings"] if "no spare host" in line]
    assert [told is not None and told in line for line in lines] == [True] * bool(told)


def test_a_change_that_undoes_the_one_before_it_moves_nothing():
    # Given an OSD that is out, and in again before peering ends: its shards never left it.
    back = '[[changes]]\nkind = "in"\nosds = [5]\nat_s = 0.1\n'
    out = OUT + "at_s = 0.0\n"
    document = rehearse(scenario(out + back))
    _, undone = document["changes"]
    assert undone["duration_s"] is None
    (line,) = [line for line in document["warnings"] if "change 1 (in)" in line]
    # No change follows.
    assert "so none moves" in line
    assert "next change" not in line


@pytest.mark.parametrize("overlaps", [True, False])
def test_changes_that_overlap_last_less_than_their_sum(overlaps):
    # Given two OSDs that are out, the second while the first is being emptied, or once it is empty
    at = "at_s = 5.0\n" if overlaps else ""
    second = '[[changes]]\nkind = "out"\nosds = [8]\n' + at
    document = rehearse(scenario(OUT + second, text=LOADED))
    assert None not in [change["duration_s"] for change in document["changes"]]
    lines = [line for line in document["warnings"] if "changes overlap" in line]
    assert bool(lines) == overlaps


def test_new_osds_get_the_weight_that_is_simulated():
    change = '[[changes]]\nkind = "add"\nhosts = 1\nosds_per_host = 1\nweight = 0.5\n'
    first, second, *added, last, _ = commands_of(scenario(change), 0)
    assert (first, second) == (
        "ceph osd set norebalance",
        "ceph config set osd osd_crush_initial_weight 0.5",
    )
    assert len(added) == 2
    assert last == "ceph config rm osd osd_crush_initial_weight"


def test_a_new_pool_has_the_flags_and_the_rule_that_are_simulated():
    def commands(scheme, text):
        change = f'[[changes]]\nkind = "scheme"\nscheme = "{scheme}"\n'
        return commands_of(scenario(change, text=text), 0)

    flag = "ceph osd pool set NEW allow_ec_optimizations true"
    assert flag in commands("rs:4,2", TEXT.replace("quincy", "tentacle"))
    assert flag not in commands("rs:4,2", TEXT)
    on_osds = TEXT.replace(
        "[workload]", 'failure_domain_replicated = "osd"\n[workload]'
    )
    rule, create, _ = commands("rep:3", on_osds)
    assert rule == "ceph osd crush rule create-replicated NEW-RULE default osd"
    assert create == "ceph osd pool create NEW 32 32 replicated NEW-RULE"
    # Ceph has no plugin of the Xorbas form.
    (only,) = commands("lrc:4,3,2", TEXT)
    assert only.startswith("# Ceph has no plugin for lrc:4,3,2")


def test_the_command_prints_one_document(tmp_path):
    file = tmp_path / "changes.toml"
    file.write_text(TEXT + OUT)
    arguments = ["rehearse", str(file), "--json", "-", "--out", str(tmp_path)]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    assert document["changes"][0]["kind"] == "out"
    assert json.loads((tmp_path / "rehearsal.json").read_text()) == document


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
    text = TEXT.replace('op_queue = "fifo"', 'op_queue = "mclock_scheduler"').replace(
        'stored_bytes = "100GB"', 'stored_bytes = "1GB"'
    )
    (change,) = rehearse(scenario(text=text))["changes"]
    names = [profile["profile"] for profile in change["profiles"]]
    # Quincy's default.
    assert names[0] == "high_client_ops"
    assert set(names) == {"high_client_ops", "balanced", "high_recovery_ops", "wpq"}
    assert change["duration_s"] == change["profiles"][0]["duration_s"]


def test_of_several_kinds_of_requests_the_first_is_measured():
    text = TEXT.replace('ops = ["read"]', 'ops = ["write", "read"]')
    warnings = rehearse(scenario(text=text))["warnings"]
    assert any("rand write 4KiB, the first of 2" in line for line in warnings)


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
    # Bounds: reads and writes overlap perfectly, or never. Each object is read and written once.
    assert change["copy_parallel"] == 10
    read_s = 100e9 / change["copy_read_bytes_per_s"]
    write_s = 100e9 / change["copy_write_bytes_per_s"]
    assert change["duration_s"] == pytest.approx(read_s + write_s)
    assert change["duration_low_s"] == pytest.approx(max(read_s, write_s))
    # The client's network has 100 Gbit/s in each direction, 12.5 GB/s.
    assert read_s > 100 / 12.5
    assert write_s > 100 / 12.5
    assert change["profiles"][0]["before"]["iops"] > 0
    assert any("one after the other" in line for line in document["warnings"])


def test_a_copy_with_one_object_in_flight_is_slower():
    changes = '[[changes]]\nkind = "scheme"\nscheme = "rep:3"\ncopy_parallel = {}\n'
    slow, fast = (
        rehearse(scenario(changes.format(count)))["changes"][0] for count in (1, 4)
    )
    # One object in flight alternates: the client waits for each read and each write. Four may save up to 3/4.
    assert 0.2 < fast["duration_s"] / slow["duration_s"] < 0.6


@pytest.mark.parametrize(
    "load",
    [
        'ops = ["read"]\nqueue_depth = 1\nclients = 8',
        'ops = ["read"]\nkind = "open"\nrate_per_s = 100',
        "read_fraction = 0.5\nqueue_depth = 1",
        "read_fraction = 0.5\nvms = 8\nvm_iops_limit = 10",
    ],
    ids=["clients", "open", "mixed", "vms"],
)
def test_one_client_copies_beside_any_load(load):
    changes = '[[changes]]\nkind = "scheme"\nscheme = "rep:3"\n'
    text = TEXT.replace('ops = ["read"]\n', load + "\n")
    text = text.replace("requests = 1\nqueue_depth = 1\n", "")
    text = text.replace("pg_num = 32", "pg_num = 32\npublic_gbit_per_s = 10.0")
    (change,) = rehearse(scenario(changes, text))["changes"]
    # Its interface receives 10 Gbit/s, 1.25 GB/s. Eight clients would read several times as much.
    assert 0.3e9 < change["copy_read_bytes_per_s"] < 1.25e9
    (profile,) = change["profiles"]
    assert profile["before"]["iops"] > 0
    assert profile["iops"] > 0


def test_a_copy_to_another_kind_of_pool_needs_a_rule_for_it(tmp_path):
    # Given a replicated pool whose rule its scenario names. Ceph refuses a pool with a rule of another type.
    text = text_with_map(tmp_path) + 'queue_depth = 1\nimage_bytes = "64MiB"\n'
    change = '[[changes]]\nkind = "scheme"\nscheme = "rs:2,1"\n'
    with pytest.raises(ScenarioError, match="crush_rule: got nothing, wanted a rule f"):
        rehearse(scenario(change, text=text))
    with_rule = rehearse(scenario(f'{change}crush_rule = "ec"\n', text=text))
    assert with_rule["changes"][0]["duration_s"] > 0


def test_a_slow_copy_is_simulated_for_longer():
    # Given networks of 1 Gbit/s, on which ten objects in flight complete too few in two seconds
    changes = '[[changes]]\nkind = "scheme"\nscheme = "rep:3"\n'
    networks = "pg_num = 32\npublic_gbit_per_s = 1.0\nprivate_gbit_per_s = 1.0"
    text = TEXT.replace("pg_num = 32", networks)
    # When 100 GB are copied
    (change,) = rehearse(scenario(changes, text))["changes"]
    # Then the client receives and sends each byte at 125 MB/s: 800 s each way, headers and waits apart.
    assert 1600 < change["duration_s"] < 1.15 * 1600
    assert change["duration_low_s"] > 800


def test_durations_and_the_p99_have_intervals():
    (change,) = rehearse(scenario(text=LOADED))["changes"]
    (profile,) = change["profiles"]
    for values in (change, profile):
        low_s, high_s = values["duration_low_s"], values["duration_high_s"]
        assert low_s < values["duration_s"] < high_s
    before = profile["before"]
    assert before["latency_p99_low_ns"] < before["latency_p99_ns"]
    assert before["latency_p99_high_ns"] > before["latency_p99_ns"]
    # The sample is short. In the complete pool a PG that peers for a second holds up few of the requests.
    assert profile["latency_max_ns"] > 5e8
    assert profile["iops"] == pytest.approx(before["iops"], rel=0.35)


def _represented_and_waiting(draw, waiting):
    """Return 50,000 exponential latencies of 1 ms on average, and others of 1 s that represent no others."""
    running = draw.exponential(1e6, 50_000)
    latencies_ns = np.concatenate([running, np.full(waiting, 1e9)])
    count = len(latencies_ns)
    requests = WeightedRequests(latencies_ns, draw.permutation(count), np.ones(count))
    return requests, np.arange(count) < 50_000


def test_the_interval_of_the_p99_is_around_the_percentile_that_it_is_of_those_represented():
    # Given 400 waiting requests, 104 of the others are above the p99 of 50,400. Their percentile is 99.79,
    # which is -ln(0.0021) = 6.17 ms for exponential latencies.
    true_ns = -np.log((0.01 * 50_400 - 400) / 50_000) * 1e6
    inside = 0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        requests, represents = _represented_and_waiting(draw, 400)
        low_ns, high_ns = requests.p99_interval_ns(represents)
        inside += low_ns <= true_ns <= high_ns
    # 95 are expected. The 99th percentile of each part, 4.6 ms, varies less: 70.
    assert inside >= 90


def test_a_p99_among_requests_that_wait_for_peering_has_no_interval():
    # 1,000 of 51,000 wait: more than 1 %. How the others vary tells nothing about the p99.
    draw = np.random.default_rng(1)
    requests, represents = _represented_and_waiting(draw, 1000)
    assert requests.percentile_ns(0.99) == 1e9
    assert requests.p99_interval_ns(represents) == (None, None)


def test_the_interval_of_an_object_s_time_comes_from_waves():
    # Eight PGs of ten objects: 1 s each in four waves, 2 s in four others, so 0.15 s per object on average.
    times_s = [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]
    backfills = {
        "pg": list(range(8)),
        "start_s": [0.0] * 8,
        "end_s": times_s,
        "objects": [10] * 8,
    }
    around = object_time(backfills)
    assert around.mean == pytest.approx(0.15)
    # Student's t for 7 degrees of freedom is 2.365, the deviation of 0.1 and 0.2 s is 0.05345.
    half_s = 2.365 * 0.05345 / 8**0.5
    assert around.high - around.mean == pytest.approx(half_s, rel=1e-3)
    few = {name: values[:3] for name, values in backfills.items()}
    assert object_time(few).low is None


def point(profile, duration_s, p99_ms, *, half_s=1.0, restart=False):
    return {
        "profile": profile,
        "max_backfills": 1,
        "needs_restart": restart,
        "duration_s": duration_s,
        "duration_low_s": duration_s - half_s,
        "duration_high_s": duration_s + half_s,
        "latency_p99_ns": p99_ms * 1e6,
    }


@pytest.mark.parametrize(
    ("points", "recommended"),
    [
        # The fastest within 6 ms.
        ([point("own", 100, 5), point("b", 50, 6), point("c", 20, 7)], 1),
        # As fast as the own settings within the intervals.
        ([point("own", 100, 5), point("b", 99, 4)], 0),
        # Of two equally fast ones, the lower p99.
        ([point("own", 100, 5), point("b", 50, 5), point("c", 49.5, 6)], 1),
        # A restart is no setting for a change.
        ([point("own", 100, 5), point("wpq", 20, 5, restart=True)], 0),
        ([point("own", 100, 9), point("b", 50, 8)], None),
    ],
)
def test_the_recommendation_follows_its_rule(points, recommended):
    assert trade_offs._recommended(points, 6e6) == recommended


@pytest.mark.parametrize(
    ("high_ns", "doubt"),
    [
        (5.9e6, ""),
        (6.1e6, ". This p99 may be as high as 6.1 ms, over the limit of 6 ms"),
        (None, ". Too few requests were simulated for an interval of this p99"),
    ],
)
def test_a_recommendation_says_if_its_p99_might_exceed_the_limit(high_ns, doubt):
    points = [point("own", 100, 5) | {"latency_p99_high_ns": high_ns}]
    assert trade_offs._doubt(points, 0, 6e6) == doubt
    assert trade_offs._doubt(points, None, 6e6) == ""


def test_a_release_decides_the_queue_that_a_scenario_does_not_name():
    text = TEXT.replace('op_queue = "fifo"\n', "")
    quincy = variants_of(with_own_queue(scenario(text=text)), 1)
    assert [variant.profile for variant in quincy] == [
        "high_client_ops",
        "high_recovery_ops",
        "balanced",
        "wpq",
    ]
    assert [variant.needs_no_restart for variant in quincy] == [True, True, True, False]
    older = text.replace('generation = "quincy"', 'generation = "pacific"')
    assert variants_of(with_own_queue(scenario(text=older)), 1)[0].profile == "wpq"
    more = more_backfills(quincy[0])
    assert [variant.max_backfills_count for variant in more] == [2, 4]


def test_a_change_that_never_ends_is_followed_at_the_pace_of_all_objects():
    text = TEXT.replace('drive_bytes = "100GB"', 'drive_bytes = "1.1TB"')
    text = text.replace('stored_bytes = "100GB"', 'stored_bytes = "10TB"')
    document = rehearse(scenario(text=text))
    (change,) = document["changes"]
    assert change["duration_s"] is None
    assert change["crossings"]
    # A shard of a PG holds 10 TB / 4 / 32 = 78 GB, which take 39 s at 2 GB/s, the rate of a drive.
    (crossing,) = change["crossings"]
    assert crossing["time_s"] > 39
    rebuilt_per_s = document["timeline"]["recovery"]["rebuilt_bytes_per_s"]
    assert 0 < max(rebuilt_per_s) < 16 * 2e9


def test_time_is_stretched_until_the_last_backfill_of_a_change_that_never_ends():
    row = {
        "at_s": 2.0,
        "clean_s": None,
        "duration_s": None,
        "backfills": {"pg": [0], "start_s": [4.0], "end_s": [9.0]},
    }
    sample = SimpleNamespace(rows=[row], end_ns=12_000_000_000)
    # 2 s of peering, 100 s instead of 5 s of movement.
    scale = time_scale(sample, [102.0])
    assert scale.to_whole([2, 4, 6.5, 9, 12]).tolist() == pytest.approx(
        [2, 4, 54, 104, 107]
    )
    assert scale.is_stretched


def test_time_is_stretched_only_where_objects_move():
    row = {
        "at_s": 2.0,
        "clean_s": 10.0,
        "duration_s": 8.0,
        "backfills": {"pg": [0], "start_s": [4.0], "end_s": [9.0]},
    }
    sample = SimpleNamespace(rows=[row], end_ns=12_000_000_000)
    # 8 s become 103: 2 s of peering, 100 s instead of 5 s of movement, 1 s of peering.
    scale = time_scale(sample, [103.0])
    assert scale.to_whole([0, 2, 4, 6.5, 9, 10, 12]).tolist() == pytest.approx(
        [0, 2, 4, 54, 104, 105, 107]
    )
    assert scale.is_stretched


@pytest.mark.parametrize(
    ("changes", "commands"),
    [
        (OUT, ["ceph osd out 5"]),
        (
            '[[changes]]\nkind = "weight"\nosds = [2, 3]\nweight = 0.5\n',
            ["ceph osd crush reweight osd.2 0.5", "ceph osd crush reweight osd.3 0.5"],
        ),
        (
            '[[changes]]\nkind = "remove"\nhosts = [1]\n',
            ["ceph osd crush reweight osd.2 0", "ceph osd crush reweight osd.3 0"],
        ),
    ],
)
def test_commands_are_those_that_an_operator_types(changes, commands):
    assert commands_of(scenario(changes), 0) == commands


WEIGHTED = """
[[changes]]
kind = "weight"
osds = [2, 3]
weight = 0.0
command_s = 1.5
norebalance = true
"""


def test_the_flag_norebalance_is_a_command_before_and_after():
    first, *_, last = commands_of(scenario(WEIGHTED), 0)
    assert (first, last) == (
        "ceph osd set norebalance",
        "ceph osd unset norebalance",
    )


@pytest.mark.parametrize(
    ("changes", "delays_s", "held_s"),
    [
        # The flag, an OSD, the other OSD, the end of the flag: 1.5 s each.
        (WEIGHTED, (3.0, 4.5), 6.0),
        (WEIGHTED.replace("true", "false"), (1.5, 3.0), 0.0),
        # One command for both OSDs.
        ('[[changes]]\nkind = "out"\nosds = [2, 3]\ncommand_s = 2\n', (2.0, 2.0), 0.0),
        # Without a time, all at once.
        (WEIGHTED.replace("command_s = 1.5", ""), (), 0.0),
    ],
)
def test_commands_follow_one_another(changes, delays_s, held_s):
    planned = build_cell(scenario(changes), cells(scenario(changes))[0]).faults.changes
    assert planned[0].delays_ns == tuple(round(delay * 1e9) for delay in delays_s)
    assert planned[0].norebalance_ns == round(held_s * 1e9)


def test_a_rehearsal_says_what_its_time_consists_of():
    document = rehearse(scenario(WEIGHTED))
    (change,) = document["changes"]
    parts_s = [change[f"{part}_s"] for part in ("commands", "peering", "movement")]
    assert sum(parts_s) == pytest.approx(change["duration_s"])
    # Nothing moves before the flag ends. Maps follow afterwards, 1 s apart: fewer than ten.
    assert change["commands_s"] == pytest.approx(6)
    assert 1 <= change["peering_s"] <= 10
    (row,) = table_of_durations(document)
    assert row["commands"] == "6 s"


def test_the_page_has_its_range_and_warnings_first_then_commands_and_figures(tmp_path):
    file = tmp_path / "changes.toml"
    # The mean is 150 GB of 1,600 GB, 9 %.
    text = LOADED.replace("[workload]", "nearfull_ratio = 0.1\n[workload]")
    file.write_text(text + OUT)
    arguments = ["rehearse", str(file), "--out", str(tmp_path), "--report"]
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 0, answer.output
    page = (tmp_path / "report.html").read_text()
    anchors = ["range", "warnings", "findings", "commands", "over-time", "settings"]
    positions = [page.index(f'<h2 id="{anchor}"') for anchor in anchors]
    assert positions == sorted(positions)
    warned = page[page.index('id="warnings"') : page.index('id="findings"')]
    assert "reaches" in warned and "calibrated range" not in warned
    assert "ceph osd out 5" in page
    assert 'id="timeline"' in page
    assert 'id="trade-off"' in page
    document = json.loads((tmp_path / "rehearsal.json").read_text())
    assert document["trade_off"]["sentence"] in answer.stdout
    (change,) = document["changes"]
    assert f"osd.{change['fullest_osd']} reaches" in document["warnings"][0]
    assert change["peak_at_s"] <= change["duration_s"]
    # The fill at the end is that of the up sets after the change: what leaves an OSD arrives at others.
    shares = document["timeline"]["fill"]["used_ratio"]
    start, end = (sum(row[moment] for row in shares) for moment in (0, -1))
    assert end == pytest.approx(start, rel=0.02)


def test_a_simulation_ends_some_time_after_the_last_change(monkeypatch):
    text = TEXT.replace(
        "requests = 1\nqueue_depth = 1", "duration_s = 5\nrate_per_s = 200"
    )
    text = text.replace('ops = ["read"]', 'kind = "open"\nops = ["read"]')
    simulated = []

    def recorded(*arguments, **settings):
        simulated.append(samples.simulate_sample(*arguments, **settings))
        return simulated[-1]

    monkeypatch.setattr(rehearsing, "simulate_sample", recorded)
    row = rehearse(scenario(text=text))["changes"][0]["profiles"][0]
    # 20,000 requests take 100 s at 200 requests/s, so the clients are measured for the longest time: 2 s.
    sample = simulated[0]
    clean_s = sample.rows[-1]["clean_s"]
    assert sample.end_ns == pytest.approx((clean_s + 2) * 1e9, abs=1)
    assert row["before"]["iops"] == pytest.approx(200, rel=0.2)
    assert row["after"]["iops"] == pytest.approx(200, rel=0.2)


def test_a_setting_without_a_time_says_why(monkeypatch):
    # Half of the time that the change takes without clients
    monkeypatch.setattr(samples, "_LONGEST", 0.5)
    document = rehearse(scenario(text=LIGHT))
    (row,) = table_of_settings(document)
    assert row["time"] == "unknown"
    (reason,) = [line for line in document["warnings"] if "no time" in line]
    assert states(reason, "fifo: ... not clean ... times ... without clients")


def test_requests_that_use_more_resources_leave_room_for_fewer_objects(monkeypatch):
    whole = rehearse(scenario(text=LIGHT))["warnings"]
    # Room for less than a second of the clients' uses: the fewest objects of each group are left.
    monkeypatch.setattr(samples, "USES_MAX", 1_000)
    part = rehearse(scenario(text=LIGHT))["warnings"]
    fewest = f"from {samples._GROUP_OBJECTS_MIN} of"
    assert any(fewest in line for line in part)
    assert not any(fewest in line for line in whole)


def test_progress_counts_the_simulations():
    steps = []
    mclock = LIGHT.replace('op_queue = "fifo"', 'op_queue = "mclock_scheduler"')
    document = rehearse(
        scenario(text=mclock), progress=lambda words, total: steps.append(total)
    )
    # One step of each simulation has to be left until it is done. Equal profiles are not simulated.
    assert len(steps) + 1 == steps[-1]
    assert steps[0] == 2 + len(document["changes"][0]["profiles"])


def test_what_the_audit_refuses_ends_a_rehearsal_or_is_noted_once(monkeypatch):
    # Given simulations that the audit refuses
    refused = "Bytes: got 2 B, wanted 1 B"
    monkeypatch.setattr(Run, "refused", refused)
    # Then the first ends a rehearsal, unless all are shown unchecked.
    with pytest.raises(RefusedError, match="Bytes"):
        rehearse(scenario(text=LIGHT))
    assert rehearse(scenario(text=LIGHT), unchecked=True)["refusals"] == [refused]


def test_a_part_of_the_objects_has_the_log_of_all():
    # 8 GB in objects of 4 MiB: 59.6 in each of 32 PGs, with 200 writes each 11,921 entries. The log holds
    # 300,000 / (32 x 6 / 16) but at most 10,000, so new members are backfilled. Three objects would have 600.
    few = scenario(
        text=TEXT.replace("100GB", "8GB") + "[faults]\nobject_writes = 200\n"
    )
    cell = cells(few)[0]
    inputs = build_cell(few, cell)
    drives = drives_of(few, build_models(few))
    plan = samples._faults_of(few, inputs, drives, 3, 0)
    assert 11_921 <= 3 * plan.object_writes_count < 11_921 + 3


@pytest.mark.parametrize(
    ("stored", "writes", "warns"),
    [
        # 32 objects in 32 placement groups: one in each, logs hold 250 entries or more.
        ("128MiB", "", True),
        ("128MiB", "[faults]\nobject_writes = 1\n", False),
        # 745 objects in each.
        ("100GB", "", False),
    ],
)
def test_logs_that_may_hold_all_writes_are_named(stored, writes, warns):
    text = TEXT.replace('stored_bytes = "100GB"', f'stored_bytes = "{stored}"')
    document = rehearse(scenario(OUT + writes, text=text))
    named = [line for line in document["warnings"] if "faults.object_writes" in line]
    assert len(named) == warns


def test_recovery_by_the_log_reserves_all_members():
    # OSD 1 is replaced by OSD 6 in PG 0, by OSD 5 in PG 1. Both PGs keep OSD 2.
    exact = SimpleNamespace(
        movement=SimpleNamespace(groups=np.array([0, 1]), targets=np.array([6, 5])),
        up_before=[(0, 1, 2), (3, 1, 2)],
        up_after=[(0, 6, 2), (3, 5, 2)],
    )
    for by_log, turns in ((False, 1), (True, 2)):
        backfills = reserved_groups(exact, by_log=by_log)
        assert schedule_s(backfills, group_s=1.0, slots=1) == turns


def test_an_interval_that_is_cut_at_zero_shows_one_end():
    def text(low_s, high_s):
        return interval_text({"duration_low_s": low_s, "duration_high_s": high_s})

    assert text(0.0, 5.0) == "up to 5 s"
    assert text(4.0, 5.0) == "4 s to 5 s"
    assert text(None, 5.0) == "–"


@pytest.mark.parametrize(("tib", "osd_share"), [(3.5, 0.5), (7.0, 1.0), (0.0, 0.0)])
def test_weights_of_changes_are_tib_as_in_ceph(tib, osd_share):
    """OSDs of 7 TiB have that weight in Ceph: half of it leaves an OSD half of its placement groups."""
    text = TEXT.replace('"100GB"', '"7TiB"', 1).replace("pg_num = 32", "pg_num = 1024")
    asked = scenario(
        f'[[changes]]\nkind = "weight"\nosds = [3]\nweight = {tib}\n', text
    )
    (change,) = planned_changes(asked, np.arange(16) // 2)
    assert change.changes == (MapChange("weight", 3, round(osd_share * WEIGHT_ONE)),)


def test_weights_count_in_drives_where_no_capacity_is_known():
    text = TEXT.replace('drive_bytes = "100GB"\n', 'drive = "ebs-gp3"\n')
    asked = scenario('[[changes]]\nkind = "weight"\nosds = [3]\nweight = 0.5\n', text)
    (change,) = planned_changes(asked, np.arange(16) // 2)
    assert change.changes == (MapChange("weight", 3, WEIGHT_ONE // 2),)


def test_no_band_mixes_groups_that_serve_clients_with_those_that_do_not():
    idle = {"inactive", "incomplete"}
    mixed = [
        name for name, states, *_ in BANDS if idle & set(states) and set(states) - idle
    ]
    assert mixed == []
