"""Guarantees of CRUSH for any map, checked on small random maps."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stripesim.models.placement import (
    NONE,
    Bucket,
    CrushMap,
    Device,
    Rule,
    Step,
    StepOp,
    build_map,
    map_to_text,
    parse_map,
)

XS = np.arange(200)
SIXTEEN_BITS = 1 << 16
WEIGHTS = st.sampled_from([0, 1, 6553, 32768, 65536, 65536, 98304, 655360])

# The first mapping of a process loads compiled code, or compiles it, and no single time means anything.


@st.composite
def maps(draw):
    """Draw regular maps with random OSD weights. A bucket weighs the sum of its items."""
    racks = draw(st.none() | st.integers(1, 3))
    hosts = (racks or 1) * draw(st.integers(1, 4))
    crush = build_map(hosts=hosts, osds_per_host=draw(st.integers(1, 6)), racks=racks)
    weight_of = {device.id: draw(WEIGHTS) for device in crush.devices}
    if not any(weight_of.values()):
        weight_of[draw(st.sampled_from(sorted(weight_of)))] = SIXTEEN_BITS
    buckets = []
    for bucket in crush.buckets:
        weights = tuple(weight_of[item] for item in bucket.items)
        weight_of[bucket.id] = sum(weights)
        buckets.append(replace(bucket, weights=weights))
    return replace(crush, buckets=tuple(buckets))


def osd_weights(crush):
    return {
        i: w
        for b in crush.buckets
        for i, w in zip(b.items, b.weights, strict=True)
        if i >= 0
    }


def parents(crush):
    return {item: bucket.id for bucket in crush.buckets for item in bucket.items}


rules = st.sampled_from(["rep", "rep_osd", "ec", "ec_osd"])


@given(maps(), rules, st.integers(1, 8), st.data())
def test_zero_weights_are_never_chosen_and_no_item_twice(crush, rule, num_rep, data):
    weights = osd_weights(crush)
    out = data.draw(st.sets(st.sampled_from(sorted(weights))))
    for row in crush.mappings(rule, XS, num_rep, dict.fromkeys(out, 0.0)):
        chosen = [osd for osd in row if osd != NONE]
        assert len(set(chosen)) == len(chosen)
        assert all(weights[osd] > 0 and osd not in out for osd in chosen)
        assert len(row) == num_rep if rule.startswith("ec") else NONE not in row


@given(maps(), st.integers(1, 8), st.data())
def test_failure_domains_hold_at_most_one(crush, num_rep, data):
    rule = data.draw(
        st.sampled_from([r.name for r in crush.rules if not r.name.endswith("osd")])
    )
    up = parents(crush)
    for row in crush.mappings(rule, XS, num_rep):
        domains = [up[osd] for osd in row if osd != NONE]
        if rule.endswith("rack"):
            domains = [up[host] for host in domains]
        assert len(set(domains)) == len(domains)


@given(maps(), st.integers(1, 8), st.data())
def test_an_osd_marked_out_moves_only_the_necessary_shards(crush, num_rep, data):
    """Indep: inputs without the OSD stay as they are; elsewhere every slot stays that its first draw filled.

    The second is exact because a first round of draws runs the same with the OSD out, but for the OSD's own
    slot: a draw of the OSD is then refused for being out where it was refused for being taken.
    """
    gone = data.draw(st.sampled_from(sorted(osd_weights(crush))))
    before = crush.map_many("ec_osd", XS, num_rep)
    after = crush.map_many("ec_osd", XS, num_rep, {gone: 0.0})
    without = ~np.any(before == gone, axis=1)
    assert np.array_equal(before[without], after[without])
    assert not np.any(after == gone)

    ec_osd = crush.rule("ec_osd")
    one_try = tuple(
        replace(s, count=1) if s.op is StepOp.SET_CHOOSE_TRIES else s
        for s in ec_osd.steps
    )
    first = replace(crush, rules=(replace(ec_osd, steps=one_try),)).map_many(
        "ec_osd", XS, num_rep
    )
    settled = (first != NONE) & (first != gone)
    assert np.array_equal(first[settled], before[settled])
    assert np.array_equal(first[settled], after[settled])


def test_an_osd_that_goes_out_leaves_nearly_all_other_slots_in_place():
    crush = build_map(hosts=8, osds_per_host=6)
    before = crush.map_many("ec_osd", np.arange(5000), 9)
    after = crush.map_many("ec_osd", np.arange(5000), 9, {7: 0.0})
    others = before != 7
    moved = np.mean(before[others] != after[others])
    # A slot moves only where the OSD's substitute took what a later try of that slot would have drawn. The
    # inputs are fixed; the bound is loose, to catch an order of magnitude and not a digit.
    assert 0 < moved < 0.005
    assert np.all(after[before == 7] != 7)


@st.composite
def flat_maps(draw):
    weights = draw(st.lists(st.integers(1, 4 * SIXTEEN_BITS), min_size=2, max_size=20))
    return flat(weights)


def flat(weights):
    """One bucket of OSDs."""
    n = len(weights)
    steps = (Step(StepOp.TAKE, -1), Step(StepOp.CHOOSE_FIRSTN, 0, 0), Step(StepOp.EMIT))
    return CrushMap(
        devices=tuple(Device(i, f"osd.{i}") for i in range(n)),
        types=((0, "osd"), (1, "root")),
        buckets=(Bucket(-1, "root", 1, tuple(range(n)), tuple(weights)),),
        rules=(Rule(0, "one", "replicated", steps),),
    )


@given(flat_maps(), st.data())
def test_a_changed_weight_moves_data_only_to_or_from_its_item(crush, data):
    (bucket,) = crush.buckets
    changed = data.draw(st.integers(0, len(bucket.items) - 1))
    weight = data.draw(st.integers(1, 4 * SIXTEEN_BITS))
    weights = (*bucket.weights[:changed], weight, *bucket.weights[changed + 1 :])
    other = replace(crush, buckets=(replace(bucket, weights=weights),))
    before, after = crush.map_many(0, XS, 1)[:, 0], other.map_many(0, XS, 1)[:, 0]
    moved = before != after
    if weight >= bucket.weights[changed]:
        assert np.all(after[moved] == changed)
    if weight <= bucket.weights[changed]:
        assert np.all(before[moved] == changed)


def chi_square_p(weights, xs):
    counts = np.bincount(flat(weights).map_many(0, xs, 1)[:, 0], minlength=len(weights))
    expected = np.array(weights) / sum(weights) * len(xs)
    return stats.chisquare(counts, expected).pvalue


def test_shares_are_proportional_to_weight():
    # Inputs and outcome are fixed. At 0.001, one sound set of inputs in a thousand would fail.
    for weights in (
        [SIXTEEN_BITS] * 10,
        [32768, 65536, 98304, 131072, 655360],
        [1000, 64000, 65536],
    ):
        assert chi_square_p(weights, np.arange(50_000)) > 0.001


def test_the_test_of_shares_can_fail():
    weights = [65536, 65536, 65536, 65536]
    counts = np.bincount(flat(weights).map_many(0, np.arange(50_000), 1)[:, 0])
    assert (
        stats.chisquare(counts, np.array([0.26, 0.26, 0.24, 0.24]) * 50_000).pvalue
        < 1e-6
    )


def test_reweight_is_the_share_an_osd_keeps():
    crush = build_map(hosts=1, osds_per_host=5)
    xs = np.arange(40_000)
    full = crush.map_many("rep_osd", xs, 1)[:, 0]
    half = crush.map_many("rep_osd", xs, 1, {2: 0.25})[:, 0]
    kept = np.sum((full == 2) & (half == 2))
    assert stats.binomtest(int(kept), int(np.sum(full == 2)), 0.25).pvalue > 0.001
    # Shards of other OSDs stay, because only OSD 2 rejects inputs.
    assert np.all(half[full != 2] == full[full != 2])


@given(maps())
def test_a_map_comes_back_from_its_text(crush):
    # Bucket weights here stay below 256, so that their 16.16 form fits the 24 bits of the text's floats.
    assert parse_map(map_to_text(crush)) == crush
