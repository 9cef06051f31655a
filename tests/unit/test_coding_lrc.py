"""LRC: its matrix, which losses it bears (against a rank counted in plain Python), and where repairs read."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from stripesim.models.coding import LRC, CephLRC, parse_scheme
from stripesim.models.coding.galois import matrix_product
from stripesim.models.problems import SchemeError, UnavailableError

XORBAS = LRC(k=10, m=6, locality=5)
CEPH = parse_scheme("lrc-ceph:4,2,3")


def product(a: int, b: int) -> int:
    """Russian-peasant product in GF(2^8), sharing nothing with the tables under test."""
    total = 0
    while b:
        if b & 1:
            total ^= a
        a = (a << 1) ^ (0x11D if a & 0x80 else 0)
        b >>= 1
    return total


PRODUCTS = [[product(a, b) for b in range(256)] for a in range(256)]
INVERSES = [0] + [row.index(1) for row in PRODUCTS[1:]]


def rank(rows: list[list[int]]) -> int:
    rows, found = [list(row) for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(found, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[found], rows[pivot] = rows[pivot], rows[found]
        scale = PRODUCTS[INVERSES[rows[found][column]]]
        rows[found] = [scale[value] for value in rows[found]]
        for i in range(found + 1, len(rows)):
            by = PRODUCTS[rows[i][column]]
            rows[i] = [
                value ^ by[top] for value, top in zip(rows[i], rows[found], strict=True)
            ]
        found += 1
    return found


def readable(generator: list[list[int]], k: int, missing: tuple[int, ...]) -> bool:
    """Return True if the remaining parities determine the lost data, given the remaining data."""
    lost = [shard for shard in missing if shard < k]
    left = [
        row
        for shard, row in enumerate(generator)
        if shard >= k and shard not in missing
    ]
    return rank([[row[shard] for shard in lost] for row in left]) == len(lost)


@pytest.mark.parametrize(
    "numbers", [(10, 6, 5), (6, 4, 3), (9, 6, 3), (5, 4, 2), (7, 3, 4)]
)
def test_decodability_equals_full_rank_of_the_matrix(numbers):
    k, m, locality = numbers
    code = LRC(k=k, m=m, locality=locality)
    generator = code.generator.tolist()
    assert generator[:k] == np.eye(k, dtype=int).tolist()
    tolerated = None
    for size in range(m + 2):
        patterns = list(combinations(range(code.width), size))
        good = [pattern for pattern in patterns if readable(generator, k, pattern)]
        assert code.decodable_patterns(size) == len(good)
        assert sum(code.can_decode(frozenset(p)) for p in patterns[::7]) == len(
            set(good) & set(patterns[::7])
        )
        if tolerated is None and len(good) < len(patterns):
            tolerated = size - 1
    assert code.failures_tolerated == tolerated
    # Gopalan et al. 2012: distance <= n - k - ceil(k / r) + 2.
    assert code.failures_tolerated + 1 <= m - -(-k // locality) + 2


def test_xorbas_bears_any_four_losses_and_most_of_six():
    assert [XORBAS.decodable_patterns(size) for size in range(5)] == [
        comb(16, size) for size in range(5)
    ]
    assert XORBAS.failures_tolerated == 4
    bad = [p for p in combinations(range(16), 5) if not XORBAS.can_decode(frozenset(p))]
    assert {(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)} <= set(bad)
    assert XORBAS.decodable_patterns(5) == comb(16, 5) - len(bad)
    assert 0 < XORBAS.decodable_patterns(6) < comb(16, 6)
    assert XORBAS.decodable_patterns(7) == 0


def test_groups_add_up_to_zero_and_so_do_all_parities():
    data = np.random.default_rng(1).integers(0, 256, (10, 64), dtype=np.uint8)
    shards = matrix_product(XORBAS.generator, data)
    assert [sorted(group) for group in XORBAS.groups] == [
        [0, 1, 2, 3, 4, 14],
        [5, 6, 7, 8, 9, 15],
        [10, 11, 12, 13, 14, 15],
    ]
    for group in XORBAS.groups:
        assert not np.bitwise_xor.reduce(shards[sorted(group)]).any()
    assert not matrix_product(XORBAS.parity_check, shards).any()


def repair(code, lost, unavailable=(), stripes=3):
    geometry = code.geometry(4096)
    return code.plan_repair(
        lost=frozenset(lost),
        object_size_bytes=stripes * geometry.stripe_bytes,
        geometry=geometry,
        unavailable=frozenset(unavailable),
    )


@pytest.mark.parametrize(
    ("lost", "unavailable", "sources", "erasures"),
    [
        ({0}, (), [1, 2, 3, 4, 14], 1),
        ({7}, (), [5, 6, 8, 9, 15], 1),
        ({10}, (), [11, 12, 13, 14, 15], 1),
        ({14}, (), [0, 1, 2, 3, 4], 1),
        # One group each: both are mended locally, from ten shards.
        ({0, 5}, (), [1, 2, 3, 4, 6, 7, 8, 9, 14, 15], 2),
        # The local parity comes from the implied group, and then mends the data shard.
        ({0, 14}, (), [1, 2, 3, 4, 10, 11, 12, 13, 15], 2),
        # Two of one group: the stripe is decoded from k shards, local parities before the others.
        ({0, 1}, (), [2, 3, 4, 5, 6, 7, 8, 9, 10, 14], 2),
        # An unavailable shard also damages the group, and is an erasure of the decode.
        ({0}, (1,), [2, 3, 4, 5, 6, 7, 8, 9, 10, 14], 2),
        ({0}, (5,), [1, 2, 3, 4, 14], 1),
    ],
)
def test_where_a_repair_reads(lost, unavailable, sources, erasures):
    plan = repair(XORBAS, lost, unavailable)
    assert sorted(extent.shard for extent in plan.reads) == sources
    assert {(e.offset_bytes, e.length_bytes) for e in (*plan.reads, *plan.writes)} == {
        (0, 3 * 4096)
    }
    assert [extent.shard for extent in plan.writes] == sorted(lost)
    assert plan.erasures == erasures
    assert plan.decode_stripes == 3
    assert plan.decode_data_bytes == 3 * 4096 * len(sources)


def test_an_empty_repair_has_an_empty_plan():
    assert repair(XORBAS, ()).reads == repair(XORBAS, {0}, stripes=0).reads == ()


def test_a_degraded_read_takes_the_local_parity():
    geometry = XORBAS.geometry(4096)
    plan = XORBAS.plan_read(
        offset_bytes=0,
        length_bytes=4096,
        object_size_bytes=1 << 20,
        geometry=geometry,
        missing=frozenset({2}),
    )
    assert [extent.shard for extent in plan.reads] == [0, 1, 3, 4, 5, 6, 7, 8, 9, 14]
    assert (plan.decode_stripes, plan.erasures) == (1, 1)


def test_undecodable_data_is_an_error():
    with pytest.raises(
        UnavailableError, match=r"lrc:10,6,5: missing shards: got \[0, 1, 2, 3, 4\]"
    ):
        repair(XORBAS, {0, 1, 2, 3, 4})
    with pytest.raises(SchemeError, match="indices 0 to 15"):
        XORBAS.can_decode(frozenset({16}))
    with pytest.raises(SchemeError, match=r"size: got 17.*0.*16\b"):
        XORBAS.decodable_patterns(17)


def test_a_tolerance_that_is_too_expensive_to_count_is_a_lower_bound():
    wide = LRC(k=40, m=18, locality=4)
    assert wide.global_parities == 8 > max(len(group) - 1 for group in wide.groups[:-1])
    assert wide.failures_tolerated == 8
    rng = np.random.default_rng(2)
    for _ in range(50):
        assert wide.can_decode(frozenset(rng.choice(58, 8, replace=False).tolist()))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("lrc:10,6", "lrc:k,m,l"),
        ("lrc:1,6,1", r"k: got 1.*2\b"),
        ("lrc:10,6,0", r"locality: got 0.*9\b"),
        ("lrc:10,6,10", r"locality: got 10.*9\b"),
        ("lrc:10,2,5", r"m: got 2.*3.*2\b"),
        ("lrc:250,6,125", r"k \+ m: got 256.*255\b"),
        ("lrc-ceph:4,2,4", r"l: got 4.*6\b"),
        ("lrc-ceph:4,2,1", r"l: got 1.*2\b"),
        ("lrc-ceph:5,1,3", r"k: got 5.*2\b"),
        ("lrc-ceph:4,0,2", r"m: got 0.*1\b"),
        ("shec:13,3,2", r"k: got 13.*1.*12\b"),
        ("shec:4,5,2", r"m: got 5.*1.*4\b"),
        ("shec:12,9,2", r"m: got 9.*1.*8\b"),
        ("shec:4,3,4", r"c: got 4.*1.*3\b"),
        ("shec:4,3", "shec:k,m,c"),
        ("lrc-ceph:180,60,4", r"shards: got 300.*256\b"),
    ],
)
def test_impossible_parameters_give_one_clear_line(text, wanted):
    with pytest.raises(SchemeError, match=wanted) as caught:
        parse_scheme(text)
    assert "\n" not in str(caught.value) and repr(text) in str(caught.value)


@pytest.mark.parametrize(
    "text", ["lrc:10,6,5", "lrc-ceph:4,2,3", "lrc-ceph:8,4,3", "shec:4,3,2"]
)
def test_names_are_read_back(text):
    code = parse_scheme(text)
    assert code.name == text and parse_scheme(code.name) == code
    assert code.kind == "erasure"


def test_cephs_layers():
    assert isinstance(CEPH, CephLRC)
    assert (CEPH.width, CEPH.m, CEPH.global_parities, CEPH.storage_overhead) == (
        8,
        4,
        2,
        2.0,
    )
    assert [sorted(group) for group in CEPH.groups] == [[0, 1, 4, 6], [2, 3, 5, 7]]
    for shard in range(8):
        (group,) = (group for group in CEPH.groups if shard in group)
        assert {extent.shard for extent in repair(CEPH, {shard}).reads} == group - {
            shard
        }
    # Three of the Reed-Solomon layer in one group are one too many for both layers.
    bad = [p for p in combinations(range(8), 3) if not CEPH.can_decode(frozenset(p))]
    assert bad == [(0, 1, 4), (2, 3, 5)]
    assert CEPH.failures_tolerated == 2
    assert CEPH.decodable_patterns(3) == comb(8, 3) - 2


def test_cephs_decoder_never_claims_more_than_the_rank_allows():
    generator = CEPH.generator.tolist()
    for size in range(1, 5):
        for pattern in combinations(range(8), size):
            assert readable(generator, 4, pattern) or not CEPH.can_decode(
                frozenset(pattern)
            )


@pytest.mark.parametrize(
    ("text", "shingles"),
    [
        # One full row and a layer of two halves read less on average than one layer of three.
        ("shec:4,3,2", [[0, 1, 2, 3], [0, 1], [2, 3]]),
        ("shec:6,3,1", [[0, 1], [2, 3], [4, 5]]),
        ("shec:3,3,3", [[0, 1, 2]] * 3),
    ],
)
def test_shingles(text, shingles):
    code = parse_scheme(text)
    covered = [
        sorted(shard for shard in group if shard < code.k) for group in code.groups
    ]
    assert covered == shingles
    for row, shingle in zip(code.generator[code.k :].tolist(), shingles, strict=True):
        assert [shard for shard, factor in enumerate(row) if factor] == shingle


@pytest.mark.parametrize("text", ["shec:4,3,2", "shec:8,4,3", "shec:6,4,2"])
def test_shec_decodes_by_rank_and_mends_from_the_smallest_shingle(text):
    code = parse_scheme(text)
    generator = code.generator.tolist()
    for size in range(code.m + 1):
        good = [
            p
            for p in combinations(range(code.width), size)
            if readable(generator, code.k, p)
        ]
        assert code.decodable_patterns(size) == len(good)
        whole = len(good) == comb(code.width, size)
        if size <= code.failures_tolerated + 1:
            assert whole == (size <= code.failures_tolerated)
    for shard in range(code.k):
        assert (
            len(repair(code, {shard}).reads)
            == min(len(g) - 1 for g in code.groups if shard in g)
            <= code.k
        )
