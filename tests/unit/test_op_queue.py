"""The op queue of OSDs: numbers of the profiles in each release."""

from __future__ import annotations

import pytest

from stripesim import Scenario
from stripesim.models.qos import PROFILES, mclock_defaults
from stripesim.scenarios.cells.models import build_models
from stripesim.sim.ceph.qos import BEST_EFFORT, CLIENT, IMMEDIATE, RECOVERY, mclock, wpq
from stripesim.sim.engine.shares import MCLOCK, WPQ


@pytest.mark.parametrize("generation", ["quincy", "reef", "squid"])
@pytest.mark.parametrize("profile", PROFILES)
def test_reservations_of_a_profile_never_exceed_the_capacity(
    generation: str, profile: str
) -> None:
    given = mclock_defaults(generation).profiles[profile]  # type: ignore[index]
    parts = (given.client, given.recovery, given.best_effort)
    assert sum(part.reservation_fraction for part in parts) <= 1 + 1e-9
    assert all(part.weight >= 1 for part in parts)


def test_reef_reserves_bytes_a_second() -> None:
    share = mclock("reef", "high_client_ops").share
    assert share.kind == MCLOCK
    # 60 % and 40 % of 1200 MiB/s for clients and recovery, and best effort up to 70 %.
    assert share.classes[CLIENT].reservation == round(0.6 * 1200 * 2**20)
    assert share.classes[RECOVERY].reservation == round(0.4 * 1200 * 2**20)
    assert share.classes[BEST_EFFORT].limit == round(0.7 * 1200 * 2**20)
    assert share.classes[CLIENT].weight == 2
    assert share.classes[IMMEDIATE].strict > 0


def test_quincy_reserves_operations_a_second_and_limits_recovery() -> None:
    share = mclock("quincy").share
    assert share.classes[CLIENT].reservation == 10_750
    assert share.classes[RECOVERY].limit == 21_500


def test_releases_differ_in_the_default_profile() -> None:
    assert mclock_defaults("quincy").profile == "high_client_ops"
    assert mclock_defaults("reef").profile == "balanced"


def test_wpq_weighs_clients_21_to_1_against_recovery() -> None:
    share = wpq().share
    assert share.kind == WPQ
    assert share.classes[CLIENT].weight == 21 * share.classes[RECOVERY].weight


def test_the_queues_of_an_osd_share_its_capacity() -> None:
    whole, part = (
        mclock("quincy", "balanced").share,
        mclock("quincy", "balanced", queues=8).share,
    )
    for one, other in zip(whole.classes[:3], part.classes[:3], strict=True):
        assert other.reservation == pytest.approx(one.reservation / 8, abs=1)
        assert other.limit == pytest.approx(one.limit / 8, abs=1)


def test_before_reef_an_object_counts_20_mib_once() -> None:
    assert mclock("quincy").recovery_item_bytes == 20 << 20
    assert mclock("reef").recovery_item_bytes == 0


def test_since_reef_objects_that_only_move_are_best_effort() -> None:
    assert mclock("quincy").move_class == wpq().move_class == RECOVERY
    assert mclock("reef").move_class == BEST_EFFORT


def test_an_osd_uses_the_measured_capacity_unless_it_is_implausible() -> None:
    limit = mclock("quincy", measured_iops=3000).share.classes[RECOVERY].limit
    assert limit == 3000
    assert mclock("quincy", measured_iops=400_000).share == mclock("quincy").share
    # In Reef an operation costs at least one unit of sequential bandwidth.
    assert mclock("reef", measured_iops=3000).cost(1) == 1200 * 2**20 // 3000


def test_the_measured_capacity_is_the_writes_that_the_drive_sustains() -> None:
    scenario = Scenario(
        generation="reef",
        schemes=["rep:3"],
        cluster={"drive": "samsung-pm983", "op_queue": "mclock_scheduler"},
        workload={"requests": 10},
    )
    queue = build_models(scenario).op_queue
    # The data sheet: 50,000 random 4 KiB writes per second, through the drive's one queue of writes.
    # An operation costs 1200 MiB/s / 50,000/s = 25,166 bytes.
    assert queue.cost(1) == pytest.approx(1200 * 2**20 / 50_000, rel=1e-3)
