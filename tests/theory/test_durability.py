"""Durability against recursions, matrix exponentials, counting and plain Monte Carlo."""

from dataclasses import replace
from itertools import combinations
from math import comb, exp, log1p, log10, prod

import numpy as np
import pytest
from scipy.linalg import expm

from stripesim.sim.durability import histories, splitting, turns
from stripesim.sim.durability.assess import (
    applicable,
    assess,
    assumptions,
    chain_doubt,
    recommended_method,
    unavailability,
    unsuited,
    why_not,
)
from stripesim.sim.durability.bursts import (
    fixed_window_loss,
    loss_of_burst,
    pools_lost,
    stripe_lost,
)
from stripesim.sim.durability.chain import (
    absorption,
    birth_death,
    bytes_given_loss,
    chain_of,
    levels_of,
    mean_absorption,
)
from stripesim.sim.durability.histories import exposure_losses
from stripesim.sim.durability.losses import inconsistency
from stripesim.sim.durability.probability import any_of
from stripesim.sim.durability.splitting import (
    events_of_history,
    plain_monte_carlo,
    split,
)
from stripesim.sim.durability.system import (
    YEAR_S,
    Burst,
    DriveRepair,
    Lifetime,
    System,
    code_of,
    group_bytes,
)
from stripesim.sim.durability.turns import turn_levels
from stripesim.sim.durability.walks.groups import (
    DETECTING,
    LANE_FREE,
    States,
    stage,
)


def clustered(scheme="rs:8,2", drives=50, afr=0.05, pace=1e8, policy="serial", **more):
    return System(
        code=code_of(scheme), placement="clustered", drives=drives, drive_bytes=20e12,
        lifetime=Lifetime.exponential(afr), repair=DriveRepair(pace, policy, fixed=False), units={}, **more,
    )  # fmt: skip


def declustered(scheme="rs:8,2", drives=50, afr=0.05, pace=1e8, **more):
    return replace(
        clustered(scheme, drives, afr, pace, **more),
        placement="declustered",
        repair=DriveRepair(pace),
    )


def grouped(
    scheme="rep:3",
    drives=12,
    groups=16,
    afr=0.9,
    hours=400.0,
    policy="parallel",
    **more,
):
    """Placement groups drawn at random over four hosts of three drives."""
    code = code_of(scheme)
    generator = np.random.default_rng(3)
    rows = [generator.choice(drives, code.width, replace=False) for _ in range(groups)]
    return System(
        code=code, placement="crush", drives=drives, drive_bytes=1e12, lifetime=Lifetime.exponential(afr),
        repair=DriveRepair(1e12 / (hours * 3600), policy), groups=np.array(rows, dtype=np.int32),
        units={"host": np.arange(drives, dtype=np.int32) // 3}, **more,
    )  # fmt: skip


def several_at_once(system, count):
    return replace(system, repair=replace(system.repair, groups_at_once=count))


# Chains.


@pytest.mark.parametrize(
    ("pace_bytes_per_s", "is_long"),
    # A drive of 20 TB is rebuilt in 0.0063, 0.063 and 0.63 years.
    [(1e8, False), (1e7, False), (1e6, True)],
)
def test_unavailability_of_the_long_run_is_that_of_a_year_unless_rebuilds_are_long(
    pace_bytes_per_s, is_long
):
    # Given the chain of a pool by its matrix exponential, with one of RS(8,2)'s ten drives allowed to miss.
    system = clustered(pace=pace_bytes_per_s)
    rates = chain_of(system).rates
    generator = np.zeros((4, 4))
    generator[:3] = rates
    generator -= np.diag(generator.sum(axis=1))
    # When the time with two missing drives is averaged over the middles of 2,000 parts of a year
    times_s = (np.arange(2000) + 0.5) / 2000 * YEAR_S
    step = expm(generator * YEAR_S / 2000)
    state = expm(generator * times_s[0])[0]
    within_year = 0.0
    for _ in times_s:
        within_year += state[2] / len(times_s)
        state = state @ step
    # Then the long run exceeds it, by more than half if rebuilds are long.
    ratio = unavailability(system) / within_year
    assert ratio >= 1.0
    assert (ratio > 1.5) == is_long
    stated = any("the long run" in line for line in assumptions(system, "markov"))
    assert stated == is_long


@pytest.mark.parametrize(
    ("unit", "units", "stopped"),
    [
        # A host takes one copy of a group, which leaves the other copy at its site.
        ("host", 1, 0.0),
        # 6 of 15 pairs are at one site, and hold both copies of a third of the groups there.
        ("host", 2, 6 / 15 / 3),
        # Two of 20 triples are a site, without which groups serve. The others have a pair at one site.
        ("host", 3, 18 / 20 / 3),
        ("host", 6, 1.0),
        # Each host has one drive.
        ("drive", 2, 6 / 15 / 3),
        ("site", 1, 0.0),
        ("site", 2, 1.0),
    ],
)
def test_bursts_stop_stretched_groups_without_a_copy_at_a_site_that_is_up(
    unit, units, stopped
):
    # Given two sites of three hosts with a drive each, and groups on each two and two of them
    pairs = list(combinations(range(3), 2))
    rows = [(a, b, 3 + c, 3 + d) for a, b in pairs for c, d in pairs]
    burst = Burst("away", unit, units, 1 / YEAR_S, lost_fraction=0.0, down_s=3600)
    system = System(
        code=code_of("rep:4"), placement="crush", drives=6, drive_bytes=1e12,
        lifetime=Lifetime.exponential(1e-9), repair=DriveRepair(1e8), bursts=(burst,),
        groups=np.array(rows, dtype=np.int32), is_stretched=True,
        units={"host": np.arange(6, dtype=np.int32), "site": np.arange(6, dtype=np.int32) // 3},
    )  # fmt: skip
    # When such a burst strikes for an hour a year, then clients wait for that part of it.
    assert unavailability(system) == pytest.approx(stopped * 3600 / YEAR_S, abs=1e-12)


def lrc_on_12_drives(burst, afr=1e-9):
    """LRC(4,3,2), whose first two pairs of shards cannot be decoded without both, on 7 of 12 hosts."""
    code = code_of("lrc:4,3,2")
    pairs = [mask for mask in range(1 << 7) if mask.bit_count() == 2]
    assert [mask for mask in pairs if code.distances[mask] == 0] == [0b11, 0b1100]
    rows = [np.roll(np.arange(12), turn)[:7] for turn in range(12)]
    return System(
        code=code, placement="crush", drives=12, drive_bytes=1e12, lifetime=Lifetime.exponential(afr),
        repair=DriveRepair(1e8), bursts=(burst,), groups=np.array(rows, dtype=np.int32),
        units={"host": np.arange(12, dtype=np.int32)},
    )  # fmt: skip


@pytest.mark.parametrize("lost_fraction", [0.0, 0.5, 1.0])
def test_groups_wait_for_shards_without_which_nothing_can_be_decoded(lost_fraction):
    # Given two of 12 hosts that are down for an hour a year: min_size 5 of 7 shards are there
    burst = Burst("away", "host", 2, 1 / YEAR_S, lost_fraction, down_s=3600)
    system = lrc_on_12_drives(burst)
    assert system.missing_allowed == 2
    # Then 2 of 66 pairs of hosts hold both shards of one of the two pairs.
    assert loss_of_burst(system, burst).unavailable == pytest.approx(2 / 66)
    by_hand = 2 / 66 * 3600 / YEAR_S
    assert unavailability(system) == pytest.approx(by_hand, rel=1e-6)


def test_a_host_that_is_down_makes_groups_wait_for_the_partner_of_its_shard():
    # Given one host that is down for an hour a year, and drives that are away for a part of the time
    burst = Burst("away", "host", 1, 1 / YEAR_S, lost_fraction=0.0, down_s=3600)
    system = lrc_on_12_drives(burst, afr=0.1)
    away_s = system.shard_transfer_s
    away = away_s * system.lifetime.rate_per_s
    # Then 4 of 12 hosts hold a shard of a pair, whose partner is away by itself. Besides, three of seven
    # shards are away.
    by_hand = 4 / 12 * away * 3600 / YEAR_S + comb(7, 3) * away**3
    assert unavailability(system) == pytest.approx(by_hand, rel=0.01)


def with_fixed_times(system):
    return replace(system, repair=replace(system.repair, fixed=True))


@pytest.mark.parametrize(
    ("scheme", "of_exponential"), [("rs:8,2", 1 / 2), ("rs:8,3", 1 / 6)]
)
def test_fixed_rebuilds_in_turn_leave_pools_available_for_longer(
    scheme, of_exponential
):
    # Given a pool of n drives that stops serving below a min_size of k + 1, when m of them are away.
    system = clustered(scheme)
    code = system.code
    # When m - 1 drives fail within what is left of a rebuild of 20 TB at 100 MB/s
    rebuild_s = 20e12 / 1e8
    failing = system.lifetime.rate_per_s * rebuild_s
    orders = code.width * prod(code.width - i for i in range(1, code.tolerated))
    # Then m are away together for T^m / m! of a fixed time, and for T^m of an exponential one.
    in_turn = orders * failing**code.tolerated
    assert unavailability(system) == pytest.approx(in_turn, rel=0.01)
    fixed = unavailability(with_fixed_times(system))
    assert fixed == pytest.approx(in_turn * of_exponential, rel=0.01)


def test_side_by_side_the_distribution_of_rebuild_times_does_not_change_unavailability():
    # Given drives that are rebuilt independently of one another, each away for λT of the time
    system = clustered("rep:3", drives=3, policy="parallel")
    away = system.lifetime.rate_per_s * 20e12 / 1e8
    # Then two of three are away together for 3 (λT)² of it, whatever the times are.
    for each in (system, with_fixed_times(system)):
        assert unavailability(each) == pytest.approx(3 * away**2, rel=0.01)


def test_no_unavailability_is_given_where_drives_may_wait_for_spares():
    # Given no spares, so that a tenth of the drives and more is away in the end, and not 0.03 % of them
    system = clustered(spares=0)
    # Then the answer gives no number, and says why.
    row = assess(system, "splitting", walks=50)
    assert row["unavailability"] is None
    assert any("spares" in line for line in row["assumptions"] if "not given" in line)


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 2), (6, 2), (9, 3), (11, 3), (14, 4)])
def test_mean_time_to_loss_is_that_of_the_recursion(n, m, parallel):
    fail, mend = 1e-6, 1 / 24
    up = [(n - i) * fail for i in range(m + 1)]
    down = [(i if parallel else 1) * mend for i in range(1, m + 1)]
    # Time from i to i + 1: h_i = 1 / up_i + down_i / up_i h_(i-1).
    total = step = 1 / up[0]
    for i in range(1, m + 1):
        step = (1 + down[i - 1] * step) / up[i]
        total += step
    assert mean_absorption(birth_death(up, down, [0.0] * (m + 1))) == pytest.approx(
        total, rel=1e-12
    )


def test_absorption_is_the_matrix_exponential_where_that_has_digits():
    rates = birth_death([0.3, 0.2, 0.1], [1.0, 2.0], [0.0, 0.1, 0.0])
    full = np.zeros((4, 4))
    full[:3] = rates
    full -= np.diag(full.sum(axis=1))
    for time in (0.01, 1.0, 30.0):
        assert absorption(rates, time) == pytest.approx(
            float(expm(full * time)[0, -1]), rel=1e-10
        )


def test_a_failure_that_exposes_a_latent_error_loses_data_instead_of_one_shard_more():
    rates = birth_death([0.3, 0.2, 0.1], [1.0, 2.0], [0.25, 0.5, 0.0])
    by_hand = [
        [0, 0.3 * 0.75, 0, 0.3 * 0.25],
        [1.0, 0, 0.2 * 0.5, 0.2 * 0.5],
        [0, 2.0, 0, 0.1],
    ]
    assert rates.tolist() == by_hand


def test_a_probability_of_1e_30_keeps_its_digits():
    # Five failures within repairs of 10 s: to first order up_0 t times the odds of each further one, less the
    # time of four repairs from the first failure to the loss.
    up, mend = [k * 1e-9 for k in (9, 8, 7, 6, 5)], 1e-1
    rates = birth_death(up, [mend] * 4, [0.0] * 5)
    begins_s = YEAR_S - 4 / mend
    first_order = up[0] * begins_s * np.prod([rate / mend for rate in up[1:]])
    assert 1e-33 < first_order < 1e-29
    # By default, 0 would be close to it as well.
    lost = absorption(rates, YEAR_S)
    assert lost == pytest.approx(first_order, rel=1e-6, abs=0)


def test_pools_are_independent_and_time_is_additive():
    one = chain_of(clustered(drives=10))
    ten = chain_of(clustered(drives=100))
    p = one.loss_probability(YEAR_S)
    assert ten.loss_probability(YEAR_S) == pytest.approx(1 - (1 - p) ** 10, rel=1e-9)
    assert -log1p(
        -one.loss_probability(20 * YEAR_S)
    ) / 20 * one.mttdl_s / YEAR_S == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("policy", ["serial", "parallel"])
def test_states_by_pattern_give_the_same_result_as_states_by_count(policy):
    system = clustered("rs:4,2", 6, afr=0.5, policy=policy)
    missing = np.bitwise_count(np.arange(64)).astype(int)
    by_pattern = replace(
        system.code, distances=np.where(missing <= 2, 3 - missing, 0).astype(np.uint8)
    )
    counts, patterns = chain_of(system), chain_of(replace(system, code=by_pattern))
    assert patterns.loss_probability(YEAR_S) == pytest.approx(
        counts.loss_probability(YEAR_S), rel=1e-9
    )
    assert patterns.mttdl_s == pytest.approx(counts.mttdl_s, rel=1e-9)


def test_lrc_is_between_its_guaranteed_tolerance_and_its_parities():
    code = code_of("lrc:10,6,5")
    assert code.tolerated == 4
    decodable = sum(
        code.distances[sum(1 << i for i in s)] > 0 for s in combinations(range(16), 5)
    )
    assert decodable == 4364
    lrc = chain_of(clustered("lrc:10,6,5", 16, policy="parallel")).loss_probability(
        YEAR_S
    )
    worse, better = ((16 - m, m) for m in (4, 6))
    bounds = [
        chain_of(clustered(f"rs:{k},{m}", 16, policy="parallel"))
        for k, m in (worse, better)
    ]
    assert bounds[1].loss_probability(YEAR_S) < lrc < bounds[0].loss_probability(YEAR_S)


def test_a_declustered_pool_by_hand():
    # Wang et al.: survivors share the rebuild, critical stripes are C(N-2, n-2) of C(N-1, n-1) first.
    rate = -np.log1p(-0.05) / YEAR_S
    first_s = 20e12 * 9 / (1e8 * 49)
    second_s = 20e12 * (9 / 49) * 9 / (1e8 * 48)
    by_hand = 50 * 49 * 48 * rate**3 * first_s * second_s * YEAR_S
    assert chain_of(declustered()).loss_probability(YEAR_S) == pytest.approx(
        by_hand, rel=0.01
    )


def test_few_stripes_leave_some_survivors_without_a_stripe_in_common():
    # Given four stripes of three shards on ten drives. One that fails has 4 × 3/10 of them, with two more
    # shards each, so 2.4 shards on nine survivors. Two that fail have 4 × 3/10 × 2/9 stripes in common.
    few = replace(declustered("rs:1,2", drives=10), stripes=4.0)
    exposed = [4 * 3 / 10 * 2, 4 * 3 / 10 * 2 / 9 * 1]
    reached = [
        left * (1 - exp(-shards / left))
        for shards, left in zip(exposed, (9, 8), strict=True)
    ]
    assert levels_of(few).reach == pytest.approx([10, *reached])


# Placement groups that are rebuilt in turn.


def scattered(scheme, drives, groups, detection_s=0.0, **repair):
    """Placement groups on random drives, each rebuilt in 1000 s."""
    code = code_of(scheme)
    generator = np.random.default_rng(1)
    rows = [generator.choice(drives, code.width, replace=False) for _ in range(groups)]
    drive_bytes = 1e12 * groups * code.width / drives
    return System(
        code=code, placement="crush", drives=drives, drive_bytes=drive_bytes,
        lifetime=Lifetime.exponential(0.03), repair=DriveRepair(1e9, "parallel", detection_s, **repair),
        groups=np.array(rows, dtype=np.int32),
    )  # fmt: skip


def test_a_second_failure_meets_only_the_groups_that_still_wait():
    # 300 drives of 20 groups, each shared with another drive: nearly one partner per waiting group.
    levels = turn_levels(scattered("rep:2", 300, 3000, detection_s=5000.0))
    time_s = 5000 + 20 * 1000
    assert levels.times_s == [pytest.approx(time_s, rel=0.01)]
    # 20 partners during detection, then 20, 19, … 1.
    by_hand = (5000 * 20 + 1000 * sum(range(1, 21))) / time_s
    assert levels.reach == [300, pytest.approx(by_hand, rel=0.05)]


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_group_that_is_hit_is_rebuilt_at_once(at_once):
    # 900 drives of 20 groups: a second failure hits one of them.
    turn_s = 1000 * at_once
    system = scattered("rep:3", 900, 6000, detection_s=1000.0, groups_at_once=at_once)
    levels = turn_levels(system)
    # In turns with 20, 20 - n, … groups left, n are being rebuilt: half of their turn is left. Others take a
    # turn from now on. A failure during detection waits for half of it, and takes a turn then.
    left = sum(range(at_once, 21, at_once)) * turn_s
    own = 20 * turn_s
    weights = [20 * 1000, own, left - own]
    times_s = [500 + turn_s, turn_s / 2, turn_s]
    by_hand = np.average(times_s, weights=weights)
    assert levels.times_s[1] == pytest.approx(by_hand, rel=0.03)
    assert levels.times_s[0] * levels.reach[1] == pytest.approx(
        2 * sum(weights), rel=0.03
    )


def test_many_groups_are_rebuilt_in_bunches_to_the_same_effect(monkeypatch):
    system = scattered("rs:4,2", 24, 1200, detection_s=1000.0)
    bunched = turn_levels(system)
    monkeypatch.setattr(turns, "ITEMS_MAX", 1000)
    alone = turn_levels(system)
    assert bunched.times_s == pytest.approx(alone.times_s, rel=0.01)
    assert bunched.reach == pytest.approx(alone.reach, rel=0.01)


def test_a_chain_begins_with_whole_groups():
    whole = scattered("rep:3", 12, 40)
    holes = whole.groups.copy()
    holes[3, 2] = -1
    assert "markov" in applicable(whole)
    assert "markov" not in applicable(replace(whole, groups=holes))


IN_TURN = {
    "prioritised": scattered("rs:4,2", 24, 200, detection_s=2000.0),
    "in any order": scattered("rep:3", 24, 200, prioritised=False),
    "pattern": scattered("lrc:4,3,2", 24, 150),
    "exponential": scattered("rep:2", 12, 200, detection_s=20_000.0, fixed=False),
    "one at a time": replace(
        scattered("rs:4,2", 24, 200), repair=DriveRepair(1e9, "serial", 2000.0)
    ),
    "shared pace": replace(
        scattered("rs:4,2", 24, 200), repair=DriveRepair(1e9, "shared", 2000.0)
    ),
    "sector errors": replace(scattered("rs:4,2", 24, 200), sector_errors=0.01),
    "sector errors in many groups": replace(
        scattered("rep:3", 8, 400), sector_errors=1e-3
    ),
    "several at once": scattered(
        "rs:4,2", 24, 200, detection_s=620.0, groups_at_once=8
    ),
    "all at once": scattered("rep:3", 24, 200, groups_at_once=100),
    "several in any order": scattered(
        "rep:3", 24, 200, prioritised=False, groups_at_once=8
    ),
    "several with exponential times": scattered(
        "rs:4,2", 24, 200, fixed=False, groups_at_once=8
    ),
    "several with a shared pace": replace(
        scattered("rs:4,2", 24, 200),
        repair=DriveRepair(1e9, "shared", 2000.0, groups_at_once=8),
    ),
}


@pytest.mark.parametrize("name", IN_TURN)
def test_the_chain_of_groups_in_turn_agrees_with_splitting(name):
    system = IN_TURN[name]
    simulated = split(system, walks=300)
    low, high = (-log10(probability) for probability in (simulated.high, simulated.low))
    nines = -log10(chain_of(system).loss_probability(YEAR_S))
    # The documentation states this about the approximation.
    assert low - 0.15 <= nines <= high + 0.15
    assert high - low < 0.3


# Counting.


def test_pools_lost_agrees_with_enumeration():
    code = code_of("rs:2,1")
    pools = [{0, 1, 2}, {3, 4, 5}]
    for dead in (2, 3):
        sets = [set(s) for s in combinations(range(7), dead)]
        lost = sum(any(len(s & pool) > 1 for pool in pools) for s in sets)
        assert pools_lost(code, 2, dead, spare_drives=1) == pytest.approx(
            lost / len(sets), rel=1e-12
        )


def test_placement_groups_are_enumerated():
    system = grouped("rep:2", groups=9)
    burst = Burst("power", "host", 2, 1 / YEAR_S)
    hosts = {row for s in combinations(range(4), 2) for row in [s]}
    lost = sum(
        any({d // 3 for d in row} <= set(pair) for row in system.groups.tolist())
        for pair in hosts
    )
    found, low, high, *_ = loss_of_burst(system, burst)
    assert found == low == high == lost / comb(4, 2)
    half = replace(burst, lost_fraction=0.5)
    found, low, high, *_ = loss_of_burst(system, half)
    assert low < found < high


# Bytes lost per year.


def close(first, second, rel=0.1):
    return first == pytest.approx(second, rel=rel)


def lost_per_year(system, methods, walks=400):
    """Return the bytes lost per year by method, after a check that each row is consistent."""
    rows = {method: assess(system, method, walks=walks) for method in methods}
    assert [inconsistency(row) for row in rows.values()] == [None] * len(rows)
    return {method: row["bytes_lost_per_year"] for method, row in rows.items()}


def test_a_burst_that_destroys_everything_loses_all_client_data():
    # Given mirrors of 4 TB on eight drives, all of which a burst takes once in 100 years
    burst = Burst("fire", "drive", 8, 0.01 / YEAR_S)
    system = grouped("rep:2", 8, 64, 1e-6, hours=1.0, bursts=(burst,))
    assert system.client_bytes == 4e12
    # Then every method that counts bursts says 0.01 × 4e12.
    lost = lost_per_year(system, ("burst", "splitting", "history"))
    assert lost["burst"] == pytest.approx(4e10)
    assert close(lost["splitting"], 4e10)
    assert close(lost["history"], 4e10)


def test_a_burst_counts_each_group_that_it_destroys():
    # Given two of eight drives lost at a time: each of 64 mirrored groups is on one of 28 pairs of drives
    burst = Burst("two", "drive", 2, 0.01 / YEAR_S)
    system = grouped("rep:2", 8, 64, 1e-6, hours=1.0, bursts=(burst,))
    by_hand = 0.01 * 4e12 / 28
    lost = lost_per_year(system, ("burst", "splitting", "history"), walks=1000)
    assert lost["burst"] == pytest.approx(by_hand)
    assert close(lost["splitting"], by_hand)
    assert close(lost["history"], by_hand)


def test_thinned_bursts_count_the_groups_of_each_pattern():
    # Given three of eight hosts that each lose half of their drives: methods draw strikes in three ways.
    burst = Burst("power", "host", 3, 0.1 / YEAR_S, 0.5)
    for scheme in ("rs:4,2", "lrc:4,3,2"):
        system = grouped(scheme, 24, 128, 1e-6, hours=1.0, bursts=(burst,))
        lost = lost_per_year(system, ("burst", "splitting", "history"), walks=1000)
        assert close(lost["splitting"], lost["burst"])
        assert close(lost["history"], lost["burst"])


def test_bursts_on_pools_lose_whole_pools():
    # Given nine of 30 drives in five pools of RS(4,2), each with 4 × 20 TB of client data
    burst = Burst("batch", "drive", 9, 0.1 / YEAR_S)
    system = clustered("rs:4,2", 30, 1e-6, bursts=(burst,))
    of_pool = sum(comb(6, i) * comb(24, 9 - i) for i in range(3, 7)) / comb(30, 9)
    by_hand = 0.1 * 5 * of_pool * 80e12
    lost = lost_per_year(system, ("burst", "splitting", "history"), walks=1000)
    assert lost["burst"] == pytest.approx(by_hand)
    assert close(lost["splitting"], by_hand)
    assert close(lost["history"], by_hand)


@pytest.mark.parametrize("stripes", [None, 1000.0, 20.0])
def test_bursts_on_declustered_pools_lose_stripes_with_too_many_dead_drives(stripes):
    # Given five of 30 dead drives: C(6, i) C(24, 5 - i) of C(30, 5) stripes of RS(4,2) miss i shards.
    burst = Burst("batch", "drive", 5, 0.1 / YEAR_S)
    system = declustered("rs:4,2", 30, 1e-6, bursts=(burst,), stripes=stripes)
    of_stripe = sum(comb(6, i) * comb(24, 5 - i) for i in range(3, 6)) / comb(30, 5)
    by_hand = 0.1 * of_stripe * 30 * 20e12 * 4 / 6
    lost = lost_per_year(system, ("burst", "splitting"), walks=1000)
    assert lost["burst"] == pytest.approx(by_hand)
    assert close(lost["splitting"], by_hand)


def test_two_drives_lose_every_group_that_they_share():
    # Given 64 mirrored groups on eight drives, so that two drives share two of them on average
    system = grouped("rep:2", 8, 64, 0.05, hours=100.0)
    # When drives are rebuilt one group after another, 16 on each, a group waits for 17 / 32 of 100 h
    rate = -log1p(-0.05) / YEAR_S
    exposed_s = 17 / 32 * 100 * 3600
    # Then each group is lost 2 λ² T times a second.
    by_hand = 64 * 2 * rate**2 * exposed_s * YEAR_S * system.client_bytes_per_group
    lost = lost_per_year(system, ("markov", "splitting", "history"), walks=1000)
    assert close(lost["markov"], by_hand)
    assert close(lost["splitting"], by_hand)
    assert close(lost["history"], by_hand)


@pytest.mark.parametrize(
    "system",
    [
        grouped("rep:3", 8, 64, 0.5, hours=200.0),
        grouped("rs:4,2", 12, 64, 0.5, hours=100.0),
        grouped("lrc:4,3,2", 12, 64, 0.2, hours=50.0),
        clustered("rs:4,2", 30, 0.5, 1e8),
        clustered("lrc:4,3,2", 27, 0.5, 2e7, policy="parallel"),
        declustered("rs:4,2", 30, 0.5, 2e8),
        declustered("rs:4,2", 100, 0.5, 2e8, stripes=20_000.0),
    ],
    ids=["rep", "rs", "lrc", "pools", "lrc pools", "declustered", "few stripes"],
)
def test_methods_agree_on_bytes_lost_through_single_failures(system):
    methods = applicable(system)
    lost = lost_per_year(system, methods, walks=500)
    assert len(methods) >= 2
    for method in methods:
        assert close(lost[method], lost["markov"], rel=0.15)


def test_a_latent_error_is_a_loss_of_a_declustered_pool_without_a_number_of_stripes():
    system = declustered(afr=0.05, pace=2e9, sector_errors=0.5)
    exact = chain_of(system).loss_probability(YEAR_S)
    row = assess(system, "splitting", walks=300)
    assert row["nines"] == pytest.approx(-log10(exact), abs=0.1)
    # It loses a stripe of unknown size, not what failed drives lose.
    assert row["bytes_lost_per_year"] is None
    assert any("latent sector error" in line for line in row["assumptions"])


def test_rows_that_contradict_the_definition_are_found():
    row = assess(clustered(), "markov")
    assert inconsistency(row) is None
    once_more = row["bytes_lost_per_year"] * 2
    assert "lost per year" in inconsistency(row | {"bytes_lost_per_year": once_more})
    more_than_all = row["client_bytes"] * 2
    assert "all client data" in inconsistency(
        row | {"bytes_lost_given_loss": more_than_all}
    )
    assert inconsistency(row | {"bytes_lost_per_year": None}) is None


# Bytes lost per year, within a tenth.


@pytest.mark.parametrize("at_once", [1, 3])
def test_mirrors_in_the_order_of_their_groups_lose_what_the_layout_says(at_once):
    # A drive's groups come back in their order, some at a time. A failure of another drive loses those that
    # both hold and that are not back yet.
    system = grouped("rep:2", 8, 32, 0.05, 50.0)
    system = several_at_once(system, at_once)
    rate_per_s = -log1p(-0.05) / YEAR_S
    item_s = at_once * group_bytes(system) / system.repair.bytes_per_s
    losses = lost_groups = 0.0
    for drive in range(8):
        held = system.groups[(system.groups == drive).any(axis=1)]
        for other in set(range(8)) - {drive}:
            places = np.flatnonzero((held == other).any(axis=1)) // at_once + 1
            if len(places):
                losses += rate_per_s**2 * item_s * places.max() * YEAR_S
                lost_groups += rate_per_s**2 * item_s * places.sum() * YEAR_S
    for method in ("splitting", "history"):
        row = assess(system, method, walks=1000)
        assert close(row["loss_probability"], -np.expm1(-losses))
        by_hand = lost_groups * system.client_bytes_per_group
        assert close(row["bytes_lost_per_year"], by_hand)
    # The chain takes groups in a random order, which moves losses between strikes and not their bytes.
    assert close(assess(system, "markov")["bytes_lost_per_year"], by_hand)


AGREEING = {
    "rep:3": grouped("rep:3", 12, 64, 0.3, 100.0),
    "rep:3, four at once": several_at_once(grouped("rep:3", 12, 64, 0.2, 100.0), 4),
    "rs:4,2": grouped("rs:4,2", 16, 64, 0.3, 50.0),
    "rs:6,3": grouped("rs:6,3", 24, 32, 0.5, 60.0),
    "lrc": grouped("lrc:4,3,2", 24, 64, 0.2, 60.0),
    "pools of rep:3": clustered("rep:3", 12, 0.3, 3e7, policy="parallel"),
    "pools of rs:6,3": clustered("rs:6,3", 27, 0.5, 3e7, policy="parallel"),
    "declustered": declustered("rs:4,2", 30, 0.3, 1e8),
}


@pytest.mark.parametrize("name", AGREEING)
def test_methods_agree_within_a_tenth_in_the_range_of_the_chain(name):
    system = AGREEING[name]
    assert chain_doubt(system) is None
    # The chain of an LRC, which knows no patterns, is 9 % low: more walks tell that from a tenth.
    walks = 10_000 if name == "lrc" else 2000
    lost = lost_per_year(system, applicable(system), walks=walks)
    for method, per_year in lost.items():
        assert close(per_year, lost["markov"]), method


@pytest.mark.parametrize(
    "system",
    [
        grouped("rs:4,2", 16, 64, 0.9, 300.0),
        grouped("rep:2", 4, 8, 0.9, 400.0),
        clustered("rs:4,2", 30, 0.9, 1.8e7),
    ],
    ids=["groups", "mirrors", "pools"],
)
def test_histories_count_losses_that_exposures_often_bring(system):
    # Before, the losses of an exposure that goes on after its first were left out, and bytes not given.
    lost = lost_per_year(system, ("splitting", "history"), walks=1000)
    assert close(lost["history"], lost["splitting"])
    if system.placement == "clustered":
        assert close(lost["history"], assess(system, "markov")["bytes_lost_per_year"])


def test_a_chain_of_single_rebuilds_says_where_rebuilds_overlap():
    # 29 drives × 0.69 failures a year × (20 TB × 5 / (29 × 1e8 B/s) = 9.6 h) is 0.022; × 10 is 0.22.
    inside = declustered("rs:4,2", 30, 0.5, 1e8)
    outside = declustered("rs:4,2", 30, 0.5, 1e7)
    assert chain_doubt(inside) is None
    assert "fail during a rebuild" in chain_doubt(outside)
    row = assess(outside, "markov")
    assert not row["exact"]
    assert row["nines_low"] is None
    assert any("Outside the range" in line for line in row["assumptions"])
    assert recommended_method(outside).method == "splitting"
    # It is right to say so: the chain forgets rebuilds that are still under way.
    assert (
        assess(outside, "splitting", walks=300)["loss_probability"]
        > 1.1 * (row["loss_probability"])
    )


# A bounded effort.


def test_splitting_tells_its_effort_and_refuses_walks_that_would_not_end():
    told = []
    split(
        grouped(afr=0.05, hours=4.0),
        walks=20,
        progress=lambda words, total=None: told.append((words, total)),
    )
    words, total = told[0]
    assert words.startswith("1 of 20 batches")
    assert total == 20
    # 12 drives × 0.0513 a year × 6 events each is 3.7 events a year: 5 million take 1.4 million years.
    longer = replace(grouped(afr=0.05, hours=4.0), horizon_s=1.5e6 * YEAR_S)
    assert "one walk follows at most 5e+06" in why_not(longer, "splitting")
    assert why_not(longer, "history") is None
    with pytest.raises(ValueError, match="events in a walk"):
        split(longer)


def test_a_round_of_splitting_has_as_many_walks_as_its_budget_allows(monkeypatch):
    # 3.7 events a walk: a budget of 20 × 50 × 3.7 leaves 50 walks of 1,000 in each batch, at three levels.
    system = grouped(afr=0.05, hours=4.0)
    budget = int(20 * 50.5 * events_of_history(system))
    monkeypatch.setattr(splitting, "ROUND_EVENTS_MAX", budget)
    assert split(system, walks=1000).walks == 20 * 50 * 3


def test_a_horizon_that_no_walk_can_follow_is_refused():
    # Given 12 drives that fail λ = 0.051 times a year, for 32 million years; or a billion bursts a year
    longer = grouped(afr=0.05, hours=4.0)
    assert why_not(longer, "history") is None
    forever = replace(longer, horizon_s=1e15)
    often = replace(longer, bursts=(Burst("b", "drive", 1, 1e9 / YEAR_S),))
    for system in (forever, often):
        assert "one walk follows at most" in why_not(system, "history")
        assert "one walk follows at most" in why_not(system, "splitting")
    # 12 drives × 0.0513 × 3.17e7 years fail, and each is detected and gets four shards back.
    failures = 12 * -log1p(-0.05) * 1e15 / YEAR_S
    assert events_of_history(forever) == pytest.approx(failures * (1 + 1 + 4))


def test_histories_tell_their_effort():
    told = []
    exposure_losses(
        grouped(afr=0.05, hours=4.0),
        walks=20,
        progress=lambda words, total=None: told.append((words, total)),
    )
    assert "histories" in told[0][0]
    assert all(total >= number for number, (_, total) in enumerate(told, 1))


def test_stripes_and_sets():
    assert stripe_lost(3, 2, 3, 3) == 1
    assert stripe_lost(2, 1, 2, 4) == pytest.approx(1 / comb(4, 2))
    assert any_of(1e-20, 1e6) == pytest.approx(1e-14, rel=1e-9, abs=0)


def test_a_loss_destroys_a_whole_stripe_even_if_three_drives_rarely_share_one():
    # Given 20 stripes of RS(4,2) on 30 drives, each on a given set of three with probability p
    stripes = 20
    system = declustered("rs:4,2", 30, stripes=float(stripes))
    p = comb(27, 3) / comb(30, 6)
    # Then the three share 0.099 stripes on average, and 1.05 if they share any.
    shared = stripes * p / (1 - (1 - p) ** stripes)
    by_hand = shared * system.client_bytes / stripes
    # Numbers of stripes are Poisson there, whose mean with at least one is p / 2 larger.
    assert bytes_given_loss(system) == pytest.approx(by_hand, rel=0.005)


def test_a_fixed_window_is_kinder_than_a_chain():
    window = fixed_window_loss(20, 3, 0.00405, 6.5)
    system = clustered(
        "rs:17,3", 20, afr=0.00405, pace=20e12 / (6.5 * 86400), policy="parallel"
    )
    assert window < chain_of(system).loss_probability(YEAR_S) < 10 * window


def test_a_thinned_burst_is_weighed_as_plain_sampling_finds():
    system, code = grouped("lrc:4,4,2", groups=12), code_of("lrc:4,4,2")
    found, low, high, *_ = loss_of_burst(
        system, Burst("power", "host", 3, 1 / YEAR_S, 0.6)
    )
    generator, hits = np.random.default_rng(0), 0
    for _ in range(4000):
        dead = np.isin(system.units["host"], generator.choice(4, 3, replace=False))
        gone = dead & (generator.random(12) < 0.6)
        masks = (gone[system.groups] << np.arange(code.width)).sum(axis=1)
        hits += bool((code.distances[masks] == 0).any())
    # Three standard errors of 4,000 draws, and those of the estimate.
    assert abs(found - hits / 4000) < 0.025 + (high - low)


def test_splitting_sees_a_thinned_burst_that_plain_simulation_would_not():
    burst = Burst("power", "host", 3, 0.5 / YEAR_S, 0.02)
    system = grouped(afr=1e-6, groups=30, bursts=(burst,))
    lost, *_ = loss_of_burst(system, burst)
    assert lost < 3e-4
    found = split(system, walks=500)
    assert abs(log10(found.probability / (lost * 0.5))) < 0.15


# Splitting.


@pytest.mark.parametrize(
    "system",
    [
        clustered(),
        clustered("rs:6,3", 9, afr=0.01, pace=1e9, policy="parallel"),
        clustered("lrc:4,4,2", 8, afr=0.02, policy="parallel"),
        clustered("rep:2", 2, afr=0.001, pace=1e9),
    ],
    ids=["rs:8,2", "rs:6,3", "lrc", "rep:2"],
)
def test_intervals_cover_the_exact_value_as_often_as_they_say(system):
    exact = -log10(chain_of(system).loss_probability(YEAR_S))
    ends = [split(system, seed=seed, walks=300).nines[1:] for seed in range(24)]
    covered = sum(low <= exact <= high for low, high in ends)
    # Of 24 intervals of 95 %, fewer than 19 cover with a probability of 0.1 %.
    assert covered >= 19
    assert np.median([high - low for low, high in ends]) < 0.4


def test_a_horizon_shorter_than_a_rebuild_is_resolved():
    system = clustered(horizon_s=1.0)
    exact = -log10(chain_of(system).loss_probability(1.0))
    # Three of ten drives within a second, of five pools: 5 C(10, 3) (λ s)³.
    rate = -log1p(-0.05) / YEAR_S
    assert exact == pytest.approx(-log10(5 * comb(10, 3) * rate**3), abs=0.01)
    found, low, high = split(system).nines
    assert low - 0.05 <= exact <= high + 0.05
    assert found == pytest.approx(exact, abs=0.2)


def test_a_loss_that_is_never_seen_ends_early_with_a_bound():
    # Ten stripes on 500 drives: five failures within a rebuild rarely hit the same stripe.
    system = declustered("rs:8,4", 500, afr=0.01, pace=1e10, stripes=10.0)
    found = split(system)
    assert found.probability == 0
    assert chain_of(system).loss_probability(YEAR_S) < found.high < 1e-6
    assert found.walks + found.events < splitting.UNSEEN_EFFORT_MAX
    assert found.nines[1] == pytest.approx(-log10(found.high))


def test_walks_are_limited_by_the_memory_for_their_states(monkeypatch):
    system = grouped(groups=64, afr=0.1)
    all_walks = split(system, walks=200).walks
    state_bytes = sum(
        part.nbytes for part in splitting.initial_state(splitting.prepare(system))
    )
    monkeypatch.setattr(splitting, "STATES_BYTES_MAX", 2 * 50 * state_bytes)
    # A quarter of the walks in each of 20 batches and at each of three levels.
    assert split(system, walks=200).walks == 20 * 3 * 50 < all_walks


FREQUENT = {
    "clustered, shared pace": replace(
        clustered("rs:4,2", 6, afr=0.9), repair=DriveRepair(1e7, "shared", detection_s=1e5)
    ),
    "clustered, one at a time": replace(clustered("rs:4,2", 6, afr=0.6), repair=DriveRepair(1e7, "serial")),
    "declustered": declustered("rs:4,2", 12, afr=0.5, pace=5e7),
    "declustered, progress": replace(
        declustered("rs:4,2", 12, afr=0.5), repair=DriveRepair(3e7, progress=True, detection_s=1e5)
    ),
    "declustered, few stripes": declustered("rs:4,2", 24, afr=0.5, pace=2e7, stripes=40.0),
    "groups": grouped(),
    "groups, lrc": grouped("lrc:4,4,2", hours=800.0),
    "groups, wear-out": replace(
        grouped(), lifetime=Lifetime.weibull(YEAR_S, 3.0, 2 * YEAR_S), age_s=0.3 * YEAR_S
    ),
    "groups, infant mortality": replace(grouped(), lifetime=Lifetime((0.0, 3e6), (1e-7, 3e-8))),
    "groups, sector errors": grouped(hours=150.0, sector_errors=0.2),
    "groups, bursts": grouped(
        hours=100.0,
        bursts=(Burst("power", "host", 2, 1 / YEAR_S, 0.4), Burst("worm", "drive", 3, 0.2 / YEAR_S)),
    ),
    "groups, few spares": grouped(hours=50.0, afr=0.5, spares=1, replacement_s=1e6),
}  # fmt: skip


@pytest.mark.parametrize("name", FREQUENT)
def test_splitting_agrees_with_plain_monte_carlo_where_loss_is_frequent(
    name, monkeypatch
):
    # Walks are split and weighted, although plain ones would do.
    monkeypatch.setattr(splitting, "_FREQUENT", 2.0)
    system = FREQUENT[name]
    plain = plain_monte_carlo(system, seed=5, walks=600)
    found = split(system, seed=6, walks=600)
    assert 0.002 < plain.probability < 0.9
    sigmas = [(log10(e.high) - log10(e.low)) / 2 / 2.093 for e in (plain, found)]
    # Four standard errors: one false alarm in 16,000 for each of a dozen systems.
    assert abs(log10(plain.probability / found.probability)) < 4 * np.hypot(*sigmas)
    assert max(sigmas) < 0.1


@pytest.mark.parametrize("hours", [1000.0, 3000.0])
def test_splitting_covers_losses_that_are_nearly_certain(hours):
    # Given pools whose drives fail nearly once a year and are rebuilt in a sixth of it or more
    system = clustered("rs:4,2", 30, 0.9, 20e12 / hours / 3600, policy="parallel")
    exact = chain_of(system).loss_probability(YEAR_S)
    assert exact > 0.999
    # When 20 walks of each batch are followed, then the chain's value is within the interval.
    found = split(system, walks=20)
    assert found.low <= exact <= found.high
    assert found.probability == pytest.approx(exact, abs=0.01)


def test_splitting_knows_that_walks_which_all_lose_data_prove_little():
    # Given mirrors whose drives all fail within days, so that each of 400 walks loses data
    system = grouped("rep:2", 8, 64, 0.9, 3000.0)
    found = split(system, walks=20)
    assert found.probability == 1
    # Then losses of 400 of 400 exclude probabilities below 0.025^(1/400).
    assert found.low == pytest.approx(0.025 ** (1 / 400))
    # And the number of losses is not known.
    row = assess(system, "splitting", walks=20)
    assert row["bytes_lost_per_year"] is None
    assert any("Bytes lost are not given" in line for line in row["assumptions"])


@pytest.mark.parametrize("method", ["splitting", "history"])
def test_the_rebuild_of_a_drive_with_many_groups_meets_its_latent_errors_once(method):
    # Given RS(2,1) in 400 groups on eight drives, rebuilt too fast for a second failure to matter
    system = replace(scattered("rs:2,1", 8, 400), sector_errors=0.01)
    fast = replace(system.repair, bytes_per_s=1e12)
    # When 150 groups of a failed drive are rebuilt, then they read as much as two drives hold.
    by_hand = system.failures * 2 * 0.01
    row = assess(replace(system, repair=fast), method, walks=200)
    assert row["loss_probability"] == pytest.approx(by_hand, rel=0.15)


def test_groups_on_as_many_drives_as_shards_are_all_rebuilt_one_by_one():
    # Given 32 groups, each with all three drives, which are rebuilt in T
    system = grouped("rep:3", 3, 32, afr=0.05, hours=22.0)
    rate_per_s = system.lifetime.rate_per_s
    # Then one of three fails, one of two in the T that follows, and one in what is left: λ³ 3 × 2 × T² / 2.
    by_hand = 3 * rate_per_s**3 * system.transfer_s**2 * YEAR_S
    assert split(system, walks=200).probability == pytest.approx(by_hand, rel=0.1)


def test_an_exposure_draws_failures_of_its_own_groups_only():
    # Given ten mirrors with plenty of spares. One of 20 drives fails, and then its partner within T.
    system = clustered("rep:2", 20, policy="parallel", spares=9, replacement_s=5e6)
    by_hand = 20 * system.lifetime.rate_per_s**2 * system.transfer_s * YEAR_S
    # When exposures follow one another, each of one mirror, then weights match the mirror at risk.
    found = split(system)
    assert found.low <= by_hand <= found.high
    assert found.probability == pytest.approx(by_hand, rel=0.15)


def test_one_drive_at_a_time_gives_way_to_one_with_a_group_nearer_to_loss():
    # Given a failed drive with 100 groups, and two that failed after it and share a group
    system = System(
        code=code_of("rep:3"), placement="crush", drives=6, drive_bytes=1e12,
        lifetime=Lifetime.exponential(0.1), repair=DriveRepair(1e8, "serial"),
        groups=np.array([[0, 1, 2]] + [[3, 4, 5]] * 100, dtype=np.int32),
    )  # fmt: skip
    prepared = splitting.prepare(system)
    complete = splitting.initial_state(prepared)
    states = States(*(np.repeat(part, 20_000, axis=0) for part in complete))
    states.failed[:] = 3
    states.drive[:, :3] = [3, 0, 1]
    states.lane[:, :3] = DETECTING
    states.review[:, :3] = LANE_FREE
    states.in_lane[:] = -1
    # When the failures are detected, then the third drive of that group has to fail while it is rebuilt.
    weights = np.zeros(20_000)
    stage(prepared.layout, states, 3, 1, weights)
    by_hand = system.lifetime.rate_per_s * system.group_transfer_s
    assert weights.mean() == pytest.approx(by_hand, rel=0.1)


def test_the_chain_of_a_pool_leaves_fixed_times_in_turn_to_simulation():
    # Given RS(3,2) on nine pools, one drive at a time, and T for each exactly
    pools = clustered("rs:3,2", 45, afr=0.2, policy="serial")
    fixed = replace(pools, repair=replace(pools.repair, fixed=True))
    # When one of five drives fails, two of four must fail within T, in either order: T² / 2.
    rate_per_s = fixed.lifetime.rate_per_s
    by_hand = 9 * 5 * 4 * 3 * rate_per_s**3 * fixed.transfer_s**2 / 2 * YEAR_S
    method, _ = recommended_method(fixed)
    assert method == "splitting"
    row = assess(fixed, method, walks=300)
    assert row["loss_probability"] == pytest.approx(by_hand, rel=0.15)
    # Then the chain, whose exponential times have the second moment 2 T², claims no interval.
    assert assess(fixed, "markov")["nines_low"] is None
    assert assess(pools, "markov")["loss_probability"] == pytest.approx(
        2 * by_hand, rel=0.15
    )
    assert recommended_method(pools).method == "markov"


def test_walks_depend_only_on_their_seed():
    system = grouped()
    first, again, other = (split(system, seed=seed, walks=200) for seed in (1, 1, 2))
    backwards = split(
        system,
        seed=1,
        walks=200,
        spread=lambda work, numbers: [work(n) for n in list(numbers)[::-1]][::-1],
    )
    assert first == again == backwards
    assert other.probability != first.probability


def test_paths_name_hosts():
    system = replace(
        grouped("rep:2", groups=200),
        groups=np.array([[0, 1], [3, 4], [6, 7], [9, 10]], dtype=np.int32),
    )
    (path, share), *_ = split(system, walks=300).paths
    assert path == (0, 2)
    assert share == pytest.approx(1)


# Histories with side walks.


def with_bursts(system, *bursts):
    return replace(system, bursts=tuple(bursts))


SEEN_BY_SIDE_WALKS = {
    "in turn": IN_TURN["prioritised"],
    "pattern": IN_TURN["pattern"],
    "exponential": IN_TURN["exponential"],
    "shared pace": IN_TURN["shared pace"],
    "sector errors": IN_TURN["sector errors"],
    "pools": clustered(),
    "bursts of hosts": with_bursts(
        grouped(hours=4.0, afr=0.05, groups=64, drives=24),
        Burst("power", "host", 2, 1 / YEAR_S, 0.02),
    ),
    "bursts and failures": with_bursts(
        grouped(hours=40.0, afr=0.05, groups=64, drives=24),
        Burst("upgrade", "host", 1, 2 / YEAR_S, 0.5),
    ),
    "wear-out": replace(
        grouped(hours=20.0, groups=64, drives=24),
        lifetime=Lifetime.weibull(YEAR_S, 3.0, 2 * YEAR_S),
        age_s=0.3 * YEAR_S,
    ),
}


@pytest.mark.parametrize("name", SEEN_BY_SIDE_WALKS)
def test_histories_with_side_walks_agree_with_splitting(name):
    system = SEEN_BY_SIDE_WALKS[name]
    walked = split(system, seed=4, walks=400)
    seen = exposure_losses(system, seed=3, walks=200)
    assert seen.probability < 0.01
    sigmas = [(log10(e.high) - log10(e.low)) / 2 / 2.093 for e in (walked, seen)]
    # Four standard errors: one false alarm in 16,000 for each of these systems.
    assert abs(log10(walked.probability / seen.probability)) < 4 * np.hypot(*sigmas)
    assert max(sigmas) < 0.1
    assert seen.lost_bytes == pytest.approx(walked.lost_bytes, rel=0.2)


def mirrors(pairs, afr, hours, **more):
    """Mirrored pairs, on one drive of each of two hosts."""
    groups = np.arange(2 * pairs, dtype=np.int32).reshape(2, pairs).T.copy()
    return System(
        code=code_of("rep:2"), placement="crush", drives=2 * pairs, drive_bytes=1e12,
        lifetime=Lifetime.exponential(afr), repair=DriveRepair(1e12 / (hours * 3600), "parallel"),
        groups=groups, units={"host": np.arange(2 * pairs, dtype=np.int32) // pairs}, **more,
    )  # fmt: skip


def test_side_walks_count_what_mirrors_lose_by_hand():
    # A drive fails with rate λ and is rebuilt in T. Its partner fails meanwhile with probability λ T, so n
    # pairs lose data 2 n λ² T times a second.
    pairs, afr, hours = 100, 0.02, 10.0
    rate, time_s = -log1p(-afr) / YEAR_S, hours * 3600
    independent = 2 * pairs * rate**2 * time_s * YEAR_S
    seen = exposure_losses(mirrors(pairs, afr, hours), walks=400)
    assert seen.low < -np.expm1(-independent) < seen.high
    # A power cut that takes the data of one host once a year meets each other drive while it is rebuilt, or
    # fails before the pair is complete again: n λ 2 T.
    cut = Burst("power", "host", 1, 1 / YEAR_S)
    together = independent + pairs * rate * 2 * time_s
    seen = exposure_losses(mirrors(pairs, afr, hours, bursts=(cut,)), walks=400)
    assert seen.low < -np.expm1(-together) < seen.high
    assert log10(seen.high / seen.low) < 0.35


@pytest.mark.parametrize("scheme", ["rs:8,2", "rs:6,3"])
def test_intervals_of_histories_cover_the_exact_value_as_often_as_they_say(scheme):
    system = clustered(scheme, int(scheme[3]) + int(scheme[5]), afr=0.02, pace=5e8)
    exact = -log10(chain_of(system).loss_probability(YEAR_S))
    ends = [exposure_losses(system, seed=seed, walks=50).nines for seed in range(16)]
    covered = sum(low <= exact <= high for _, low, high in ends)
    # Of 16 intervals of 95 %, fewer than 12 cover with a probability of 0.1 %.
    assert covered >= 12
    assert np.median([high - low for _, low, high in ends]) < 0.5


AIMED = {
    "three drives of many": ("rep:3", "drive", 3, 1.0, {}),
    "few drives of a host": ("rep:3", "host", 4, 0.02, {}),
    "two shards on a host": ("rs:4,2", "host", 3, 0.1, {}),
    "patterns": ("lrc:4,3,2", "drive", 4, 0.02, {}),
    "holes": ("rs:4,2", "host", 2, 0.1, {"holes": 7}),
}


def with_few_spares(afr):
    """Replicas on twelve drives with one spare, which takes 90 days to replace and 20 hours to rebuild."""
    return grouped(
        "rep:3", 12, 16, afr, 20.0, spares=1, replacement_s=90 * 86400, horizon_s=10 * YEAR_S,
    )  # fmt: skip


def test_side_walks_wait_for_spares_as_walks_do():
    # Given spares that run out now and then: 12 × 0.105 × 90 d / 365.25 d = 0.31 drives wait for one
    system = with_few_spares(0.1)
    plain = plain_monte_carlo(system, walks=60)
    # Then histories count losses in exposures of 90 days, which are few among those of 20 hours.
    seen = exposure_losses(system, walks=60)
    assert plain.low < seen.probability < plain.high


def test_histories_of_a_small_system_that_often_loses_data_are_counted():
    # Given pools that share spares, which run out for good: one exposure of a history brings its loss
    system = clustered(
        "rs:4,2", 60, 0.2, 1e8, spares=2, replacement_s=60 * 86400, horizon_s=10 * YEAR_S,
    )  # fmt: skip
    plain = plain_monte_carlo(system, walks=200)
    # Then whole histories are counted, and their interval meets that of plain walks.
    for seed in range(4):
        seen = exposure_losses(system, seed=seed, walks=200)
        assert seen.low < plain.high
        assert plain.low < seen.high
    row = assess(with_few_spares(0.2), "history", walks=200)
    assert any("whole histories are followed" in line for line in row["assumptions"])


def test_intervals_cover_losses_that_are_more_likely_than_not():
    # Given a mirror of which an exposure loses data with 0.09, so that exposures are hardly independent
    system = clustered("rep:2", 2, 0.5, 5.5e6, horizon_s=10 * YEAR_S)
    exact = chain_of(system).loss_probability(system.horizon_s)
    assert 0.5 < exact < 0.7
    ends = [exposure_losses(system, seed=seed, walks=300) for seed in range(40)]
    covered = sum(seen.low <= exact <= seen.high for seen in ends)
    # Of 40 intervals of 95 %, fewer than 36 cover with a probability of 5 %.
    assert covered >= 36


def struck(scheme, unit, units, lost_fraction, holes=0):
    """40 groups on eight hosts of three drives, the first of them without their last shard."""
    system = grouped(scheme, drives=24, groups=40, afr=1e-12)
    groups = system.groups.copy()
    groups[:holes, -1] = -1
    burst = Burst("strike", unit, units, 1e-3 / YEAR_S, lost_fraction)
    return with_bursts(replace(system, groups=groups), burst)


def lethal_share(system):
    """Strike each set of units, and lose each set of their drives, as the definition of a burst says."""
    (burst,) = system.bursts
    units = system.units.get(burst.unit, np.arange(system.drives))
    code = system.code
    # A hole is a drive that is always lost.
    members = np.where(system.groups < 0, system.drives, system.groups)
    total = 0.0
    sets = list(combinations(range(int(units.max()) + 1), burst.units))
    for selected in sets:
        drives = np.flatnonzero(np.isin(units, selected))
        lost = np.zeros((1 << len(drives), system.drives + 1), dtype=np.int64)
        lost[:, drives] = np.arange(len(lost))[:, None] >> np.arange(len(drives)) & 1
        taken = lost.sum(axis=1)
        lost[:, -1] = 1
        masks = (lost[:, members] << np.arange(code.width)).sum(axis=2)
        if code.distances is None:
            is_lethal = np.bitwise_count(masks) > code.tolerated
        else:
            is_lethal = code.distances[masks] == 0
        kept = (1 - burst.lost_fraction) ** (len(drives) - taken)
        chances = burst.lost_fraction**taken * kept
        total += chances[is_lethal.any(axis=1)].sum()
    return total / len(sets)


@pytest.mark.parametrize("name", AIMED)
def test_aimed_strikes_estimate_what_every_strike_gives(name):
    scheme, unit, units, lost_fraction, more = AIMED[name]
    system = struck(scheme, unit, units, lost_fraction, **more)
    exact = lethal_share(system)
    loss = loss_of_burst(system, system.bursts[0])
    # Four standard errors, and an interval that is narrow however rare the loss is.
    assert abs(loss.probability - exact) <= 2.05 * (loss.high - loss.low) / 2 + 1e-12
    assert loss.high - loss.low < 0.15 * exact
    seen = exposure_losses(system, walks=100)
    half = max(0.1, 2 * log10(seen.high / seen.low))
    assert abs(log10(seen.probability / (1e-3 * exact))) < half


def test_a_burst_that_cannot_lose_data_is_exactly_harmless():
    # Mirrors on two hosts survive the loss of any one of them.
    system = mirrors(100, 0.02, 10.0)
    cut = Burst("power", "host", 1, 1 / YEAR_S, 0.5)
    assert loss_of_burst(system, cut) == (0.0, 0.0, 0.0, 0.0, 0.0)
    allowed = replace(system, min_shards=2)
    # But each pair is below a min_size of 2 shards while a host is away.
    assert loss_of_burst(allowed, cut).unavailable == pytest.approx(1.0)


def test_equal_draws_do_not_count_as_exact():
    # A burst takes both drives of one of 50 pairs: never more than one group.
    system = mirrors(50, 0.02, 10.0)
    pairs = {"host": np.arange(100, dtype=np.int32) % 50}
    loss = loss_of_burst(
        replace(system, units=pairs), Burst("p", "host", 1, 1 / YEAR_S, 1e-4)
    )
    assert loss.low < 1e-8 <= loss.high * (1 + 1e-9)
    assert loss.low != loss.high


def test_histories_that_see_few_exposures_say_so(monkeypatch):
    # Given a floor that a few histories hardly reach, or the one that they choose
    system = several_at_once(grouped("rs:4,2", 24, 200, 0.02, 20.0), 4)
    chosen = assess(system, "history", walks=100)
    monkeypatch.setattr(histories, "_floor", lambda *_: 2)
    monkeypatch.setattr(histories, "EFFORT_MAX", 4_000_000)
    rare = assess(system, "history", walks=100)
    # Then the answer warns of the rare one, whose interval may miss.
    warnings = [
        [
            line
            for line in row["assumptions"]
            if "exposure" in line and "too few" in line
        ]
        for row in (chosen, rare)
    ]
    assert [len(lines) for lines in warnings] == [0, 1]


def test_bursts_of_a_large_system_meet_failures_as_by_hand():
    # Given 30,000 mirrors in 100 rooms, where drives of room r have their partners in room r + 50, and a fire
    # in two random rooms once a year, which loses 1 % of their drives
    large = mirrors(30_000, 0.02, 10.0)
    rooms = np.arange(large.drives, dtype=np.int32) * 100 // large.drives
    fire = Burst("fire", "host", 2, 1 / YEAR_S, 0.01)
    system = replace(large, units={"host": rooms}, bursts=(fire,))
    # When it is assessed by histories
    row = assess(system, "history", walks=100)
    # Then pairs of drives fail within one another's rebuild: 2 n λ² T a year.
    rate = -log1p(-0.02) / YEAR_S
    rebuild_s = 10 * 3600
    independent = 2 * 30_000 * rate**2 * rebuild_s * YEAR_S
    # The rooms of a fire are partners in 50 of 4,950 fires. Their 600 pairs lose both drives with 1e-4.
    at_once = 50 / 4950 * -np.expm1(600 * log1p(-1e-4))
    # A fire loses 12 drives on average. Their partners are rebuilding with λ T, or fail within T.
    in_turn = 12 * 2 * rate * rebuild_s
    expected = independent + at_once + in_turn
    assert row["loss_probability"] == pytest.approx(-np.expm1(-expected), rel=0.1)
    assert 10 ** -row["nines_high"] < -np.expm1(-expected) < 10 ** -row["nines_low"]
    assert not any("excluded" in text for text in row["assumptions"])
    paths = {one["path"]: one["share"] for one in row["paths"]}
    assert paths["burst fire (first to second shard)"] == pytest.approx(
        at_once / expected, rel=0.3
    )


def test_histories_depend_only_on_their_seed():
    system = SEEN_BY_SIDE_WALKS["bursts of hosts"]
    first, again, other = (
        exposure_losses(system, seed=seed, walks=20) for seed in (1, 1, 2)
    )
    backwards = exposure_losses(
        system,
        seed=1,
        walks=20,
        spread=lambda work, numbers: [work(n) for n in list(numbers)[::-1]][::-1],
    )
    assert first == again == backwards
    assert other.probability != first.probability


def test_a_large_system_is_left_to_histories():
    # 2 · 30,000 drives · 2 % fail 1,212 times a year, more than a walk of splitting should follow.
    large = mirrors(30_000, 0.02, 10.0)
    assert unsuited(large, "history") is None
    assert "1,212 failures" in unsuited(large, "splitting")
    small = mirrors(100, 0.02, 10.0)
    assert unsuited(small, "splitting") is None
    assert unsuited(small, "history") is not None
    aged = replace(large, lifetime=Lifetime((0.0, 1e7), (1e-9, 2e-9)))
    assert recommended_method(aged).method == "history"
    assert "history" not in applicable(declustered())
