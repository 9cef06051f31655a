"""The study of planned changes: claims as they were fixed, and what moves in the simulated cluster."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from stripesim.models.placement import pgs_of_objects
from stripesim.scenarios.studies.changes.measured import MeasuredPool
from stripesim.scenarios.studies.changes.runs import POOLS, change_rows
from stripesim.scenarios.studies.changes.timed import (
    FILE,
    Key,
    by_key,
    claim_id,
    claims_of_times,
    load_timed,
)
from stripesim.scenarios.studies.changes.timed_runs import (
    clean_s,
    recovery_of,
    simulated_change,
)
from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.lookup import claims_of
from stripesim.scenarios.studies.registry import study_named

CLAIMS = claims_of("changes")


def test_roles_and_tolerances_are_those_fixed_before_the_first_run():
    assert Counter(claim.role for claim in CLAIMS) == {
        "held-out": 32,
        "not-derivable": 8,
    }
    tolerances = {claim.metric: claim.tolerance for claim in CLAIMS}
    # A shard more or less of 84 is more than 1 %.
    assert tolerances["shards_moved"] == pytest.approx(0.001)
    for metric in ("device_read", "device_write", "private_net"):
        assert tolerances[metric] == pytest.approx(0.1)


@pytest.mark.parametrize("pool", POOLS, ids=lambda pool: pool.scheme)
def test_shards_are_exact_and_bytes_within_a_tenth(pool):
    rows = {row["change"]: row for row in change_rows(pool, "compiled")}
    held_out = [
        claim
        for claim in CLAIMS
        if claim.scheme == pool.scheme and claim.role == "held-out"
    ]
    assert len(held_out) == 16
    for claim in held_out:
        row = rows[claim.baseline]
        if claim.metric == "shards_moved":
            assert row["shards_moved"] == claim.published
        else:
            simulated = row[f"{claim.metric}_per_moved"]
            assert simulated == pytest.approx(claim.published, rel=0.1)


def test_codes_whose_rows_are_not_visible_move_their_shards_through_the_primary():
    """Of RS(10,4) on 16 OSDs nearly every group moves; each shard is read once, most are sent twice."""
    pool = MeasuredPool(scheme="rs:10,4", pool_id=5, pg_num=32, objects=257)
    for row in change_rows(pool, "compiled"):
        assert row["device_read_per_moved"] == pytest.approx(1.0, abs=0.01)
        assert 1.0 < row["device_write_per_moved"] < 1.15
        assert 1.7 < row["private_net_per_moved"] < 2.05


def test_any_folder_of_the_same_form_can_be_judged(data):
    result = study_named("changes").run(data=data / "ceph16")
    summary = result.ledger.summary()
    assert (summary["held_out"], summary["right"]) == (32, 32)


def test_a_folder_may_have_times_alone(tmp_path):
    """One of the shipped changes, as somebody else's row: all rows of a folder are held out."""
    shipped = study_folder("changes") / "data" / FILE
    header, first, *_ = shipped.read_text(encoding="utf-8").splitlines()
    (tmp_path / FILE).write_text(f"{header}\n{first}\n", encoding="utf-8")
    result = study_named("changes").run(data=tmp_path)
    (entry,) = result.ledger.entries
    assert entry.claim.id == "timed20:rep:3:whole:balanced:drain"
    assert entry.claim.role == "held-out"
    assert entry.claim.published == pytest.approx(3.34)
    # A map of the command 50 ms after it, up_thru 1 s later, and five or more objects, 30 ms apart.
    assert 1.05 + 5 * 0.03 < entry.simulated < 3
    # 3.34 s are within 0.9 to 1.66 times the simulated 2.2 s.
    assert result.document["intervals"] == {"held-out": {"rows": 1, "within": 1}}
    assert list(result.figures()) == ["times"]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("release", "17.2.6"),
        ("scheme", "rep"),
        ("pool_kind", "optimised"),
        ("kind", "out"),
        ("profile", "speedy"),
        ("profile", "wpq;balanced"),
        ("maps_s", "1.00"),
        ("maps_s", "0;2;1"),
        ("clean_s", "-1"),
        ("clean_s", ""),
        ("clean_s", "three"),
        ("pool_kind", "weird"),
        ("group_objects", "6;x"),
        ("recovery_sync_ms", "0"),
        ("log_entries", "0"),
    ],
)
def test_a_wrong_cell_is_named_with_its_line(tmp_path, column, text):
    with (study_folder("changes") / "data" / FILE).open(encoding="utf-8") as shipped:
        row = next(csv.DictReader(shipped))
    with (tmp_path / FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow({**row, column: text})
    with pytest.raises(
        ValueError, match=rf"^timed\.csv:2: {column}: got '{text}', wanted "
    ) as refused:
        load_timed(tmp_path)
    # Once, although more than one rule is about the cell.
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("release", "column", "text"),
    [
        ("14.2.21", "profile", "balanced"),
        ("16.2.15", "profile", "high_recovery_ops"),
        ("18.2.7", "pool_kind", "optimised"),
    ],
)
def test_what_a_release_has_not_is_refused(tmp_path, release, column, text):
    """mClock became the default with 17, and optimised pools came with 20."""
    with (study_folder("changes") / "data" / FILE).open(encoding="utf-8") as shipped:
        rows = [
            row
            for row in csv.DictReader(shipped)
            if row["release"] == release and row["scheme"] == "rs:6,3"
        ]
    with (tmp_path / FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerow({**rows[0], column: text})
    with pytest.raises(
        ValueError, match=rf"^timed\.csv:2: {column}: got '{text}', wanted .*{release}"
    ):
        load_timed(tmp_path)


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ("load_per_s", "0"),
        ("image", ""),
        ("object_writes", "0"),
        ("before_ms", ""),
        ("during_ms", "-1"),
    ],
)
def test_a_wrong_cell_of_a_load_is_named(tmp_path, column, text):
    with (study_folder("changes") / "data" / FILE).open(encoding="utf-8") as shipped:
        row = next(row for row in csv.DictReader(shipped) if row["load_per_s"])
    with (tmp_path / FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow({**row, column: text})
    wanted = text or "(''|nothing)"
    with pytest.raises(ValueError, match=rf"^timed\.csv:2: {column}: got .*{wanted}"):
        load_timed(tmp_path)


def test_a_table_with_a_header_alone_is_refused(tmp_path):
    shipped = study_folder("changes") / "data" / FILE
    header = shipped.read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / FILE).write_text(header + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"timed\.csv:1: got a header alone"):
        load_timed(tmp_path)


def test_a_folder_without_changes_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"--data: got .*, wanted .*change\.csv"):
        study_named("changes").run(data=tmp_path)


TIMED = by_key(load_timed())
OUT_OF_RS63 = Key("rs:6,3", "whole", "balanced", "drain")


def test_roles_of_times_are_those_fixed_before_they_were_compared():
    claims = claims_of_times(load_timed())
    roles = Counter((claim.scheme, claim.role) for claim in claims)
    assert roles == {
        ("rep:3", "calibration"): 5,
        ("rep:3", "held-out"): 39,
        ("rs:6,3", "calibration"): 3,
        ("rs:6,3", "held-out"): 65,
        ("rs:4,2", "held-out"): 8,
    }
    assert {claim.tolerance for claim in claims} == {0.3}


def test_a_claim_is_the_mean_of_its_repeats():
    (claim,) = [
        claim
        for claim in claims_of_times(load_timed())
        if claim.id == claim_id(OUT_OF_RS63)
    ]
    # 5.83, 5.97 and 5.75 s.
    assert claim.published == pytest.approx(5.85, abs=0.005)


def test_groups_of_a_wide_code_recover_one_after_the_other():
    """Nearly all pairs of groups share an OSD, so that the starts of their objects add up."""
    change = TIMED[OUT_OF_RS63][0]
    moved = 123
    # 4 MiB at nine tenths of 1200 MiB/s by eight queues. The first object of each of 14 groups is free.
    waits_s = (moved - 14) * 4 / (0.9 * 1200 / 8)
    found_s = clean_s(change)
    assert 1 + waits_s < found_s < 1 + waits_s + moved * 0.012
    assert clean_s(change, "simpy") == found_s


def test_a_sync_takes_what_was_counted_during_the_calibration_changes():
    model = recovery_of(TIMED[OUT_OF_RS63][0])
    syncs_ms = (6.15, 7.42, 7.72, 4.61, 6.03, 8.32, 7.93, 10.67)
    roles = Counter(claim.role for claim in claims_of_times(load_timed()))
    assert len(syncs_ms) == roles["calibration"]
    expected_ns = sum(syncs_ms) / len(syncs_ms) * 1e6
    assert model.recovery_sync_ns == pytest.approx(expected_ns, rel=0.002)


def test_a_session_states_the_sync_that_was_counted_in_it():
    change = replace(TIMED[OUT_OF_RS63][0], session="2", recovery_sync_ms=12.5)
    assert recovery_of(change).recovery_sync_ns == 12_500_000
    assert claim_id(change.key) == "timed20:rs:6,3:whole:balanced:drain:2"
    assert {claim.role for claim in claims_of_times([change])} == {"held-out"}


def test_a_group_loses_reservations_to_one_that_recovers_by_its_log():
    """Two OSDs to weight 0 on 18.2.7, three groups of 3 objects: measured 36.0 s, one group waited 30 s."""
    key = Key("rs:6,3", "trimmed", "balanced", "shrink", "18.2.7", "3")
    change = TIMED[key][0]
    assert change.log_entries_count == 3
    stopped_s = clean_s(change)
    assert 30 < stopped_s < 40
    # If all groups are backfilled, none is stopped.
    assert clean_s(replace(change, log_entries_count=2)) < 20
    assert clean_s(replace(change, log_entries_count=None)) < 20
    # Nor is one if a single OSD is out, in which no group waits for several.
    assert clean_s(TIMED[key._replace(kind="drain")][0]) < 8


def test_nautilus_is_simulated_with_the_limits_of_its_own_code():
    """Ceph 14.2.21: osd_recovery_max_active 3, osd_max_pg_log_entries 3000, no read leases."""
    key = Key("rs:6,3", "whole", "wpq", "drain", "14.2.21", "3")
    nautilus = recovery_of(TIMED[key][0])
    pacific = recovery_of(TIMED[key._replace(release="16.2.15")][0])
    assert nautilus.recovery_max_active_count == 3
    assert nautilus.log_lengths(20) == (3000, 3000)
    assert nautilus.read_lease_ns == 0
    assert pacific.recovery_max_active_count == 10
    assert pacific.log_lengths(20) == (10_000, 10_000)
    assert pacific.read_lease_ns == 16_000_000_000


LOADED = {key: repeats for key, repeats in TIMED.items() if repeats[0].load}


def test_a_load_has_a_claim_of_its_latency_with_the_tolerance_fixed_before():
    claims = {claim.id: claim for claim in claims_of_times(load_timed())}
    for key, repeats in LOADED.items():
        claim = claims[f"{claim_id(key)}:latency"]
        ratios = [change.load.during_ms / change.load.before_ms for change in repeats]
        assert claim.published == pytest.approx(sum(ratios) / len(ratios))
        assert (claim.role, claim.tolerance) == ("held-out", 0.3)
    latencies = [claim for claim in claims.values() if claim.metric == "latency_ratio"]
    assert len(latencies) == len(LOADED)


@pytest.mark.parametrize("key", LOADED, ids=claim_id)
def test_names_of_a_loaded_image_give_the_counted_objects_of_each_group(key):
    """The measured pool also has one object of RBD's own, `rbd_info`."""
    for change in LOADED[key]:
        groups = len(change.group_objects)
        named = pgs_of_objects(change.load.image_prefix, np.arange(256), groups)
        counts = np.bincount(np.asarray(named), minlength=groups)
        others = np.array(change.group_objects) - counts
        assert sorted(others.tolist()) == [0] * (groups - 1) + [1]


def test_clients_beside_a_change_are_simulated_and_lengthen_it():
    """The load's 30 writes of each object are more than osd_async_recovery_min_cost allows in the acting set.

    So maps follow for pg_temp, up_thru, the end of pg_temp and up_thru, 1 s each. Without it, one for
    up_thru.
    """
    change = LOADED[Key("rep:3", "whole", "wpq", "drain", "16.2.15", "4")][0]
    assert change.load.object_writes_count * 8 > 100
    beside = simulated_change(change)
    alone = simulated_change(replace(change, load=None))
    assert beside.clean_s == pytest.approx(4, abs=0.05)
    assert 1 < alone.clean_s < 2
    assert alone.latencies_ms is None
    # Groups with 35 of 256 objects serve no writes for 2 s, in which these wait 1 s on average, and for 1 s,
    # in which they wait 0.5 s, of 4 s.
    before_ms, during_ms = beside.latencies_ms
    assert before_ms < 5
    waits_ms = 35 / 256 * (2 * 1000 + 1 * 500) / 4
    assert during_ms == pytest.approx(waits_ms, rel=0.3)


def test_a_second_command_holds_clients_of_a_wide_code_back_for_two_more_maps():
    """A group with two new OSDs has two holes, which two maps name: its writes waited up to 5 s."""
    change = LOADED[Key("rs:6,3", "whole", "wpq", "grow", "16.2.15", "4")][0]
    _, during_ms = simulated_change(change).latencies_ms
    assert during_ms == pytest.approx(change.load.during_ms, rel=0.3)
