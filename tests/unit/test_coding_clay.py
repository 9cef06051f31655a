"""Clay codes: the grid, the reads of a repair, impossible repairs, and chunks of whole sub-chunks."""

import numpy as np
import pytest

from stripesim.models.coding import Clay, StripeGeometry, parse_scheme
from stripesim.models.coding.clay_coder import ClayCoder, ClayShape, coder_of
from stripesim.models.problems import SchemeError, UnavailableError

CLAY = Clay(k=9, m=3, d=11)


@pytest.mark.parametrize(
    ("k", "m", "d", "q", "t", "virtual", "sub_chunks"),
    [
        # As (n, k, d): (4, 2, 3), (6, 4, 5), (12, 9, 11) and (20, 16, 19), of Vajha et al., FAST 2018.
        (2, 2, 3, 2, 2, 0, 4),
        (4, 2, 5, 2, 3, 0, 8),
        (9, 3, 11, 3, 4, 0, 81),
        (16, 4, 19, 4, 5, 0, 1024),
        # Shortened: 8 + 3 shards fill a grid of 12 nodes, 10 + 4 one of 16.
        (8, 3, 10, 3, 4, 1, 81),
        (10, 4, 13, 4, 4, 2, 256),
        # Fewer helpers, a smaller q and more columns.
        (8, 4, 10, 3, 4, 0, 81),
    ],
)
def test_grid(k, m, d, q, t, virtual, sub_chunks):
    shape = Clay(k=k, m=m, d=d).shape
    assert (shape.q, shape.t, shape.virtual, shape.sub_chunks) == (
        q,
        t,
        virtual,
        sub_chunks,
    )
    columns = {shard: shape.column(shard) for shard in range(k + m)}
    assert all(shard in columns[other] for shard in columns for other in columns[shard])


def test_runs_get_shorter_from_column_to_column():
    # Column 0 reads one third of the chunk in one piece, column 3 in 27 pieces.
    assert CLAY.shape.repair_runs(0) == [(0, 27)]
    assert CLAY.shape.repair_runs(2) == [(54, 27)]
    assert CLAY.shape.repair_runs(3) == [(0, 9), (27, 9), (54, 9)]
    assert CLAY.shape.repair_runs(11) == [(2 + 3 * i, 1) for i in range(27)]
    # A virtual node stands between data and parity: shard 8, the first parity, is node 9 = (0, 3).
    assert Clay(k=8, m=3, d=10).shape.repair_runs(8) == [(3 * i, 1) for i in range(27)]


def repair(code, lost, unavailable=(), unit=81 * 32, stripes=2):
    geometry = code.geometry(unit)
    return code.plan_repair(
        lost=frozenset(lost),
        object_size_bytes=stripes * geometry.stripe_bytes,
        geometry=geometry,
        unavailable=frozenset(unavailable),
    )


@pytest.mark.parametrize("lost", range(12))
def test_a_repair_reads_a_third_of_eleven_chunks(lost):
    plan = repair(CLAY, {lost})
    shard_bytes = 2 * 81 * 32
    values = {shard: 0 for shard in range(12) if shard != lost}
    for extent in plan.reads:
        values[extent.shard] += extent.length_bytes
    assert set(values.values()) == {shard_bytes // 3}
    assert plan.decode_data_bytes == 11 * shard_bytes // 3
    assert (plan.erasures, plan.decode_stripes) == (1, 2)
    assert [(e.shard, e.offset_bytes, e.length_bytes) for e in plan.writes] == [
        (lost, 0, shard_bytes)
    ]
    # The same runs in every stripe and on every helper.
    runs = len(CLAY.shape.repair_runs(lost))
    assert len(plan.reads) == 11 * 2 * runs
    # Runs of one shard never touch, so each is a separate read.
    ends = {}
    for extent in sorted(plan.reads):
        assert extent.offset_bytes > ends.get(extent.shard, -1)
        ends[extent.shard] = extent.end_bytes


@pytest.mark.parametrize(
    ("lost", "unavailable"),
    [({0, 1}, ()), ({0}, (5,)), ({0}, (1,)), ({3, 7, 11}, ()), ({2}, (9, 10))],
)
def test_without_all_helpers_whole_chunks_are_decoded(lost, unavailable):
    plan = repair(CLAY, lost, unavailable)
    whole = [
        (shard, 0, 2 * 81 * 32)
        for shard in range(12)
        if shard not in {*lost, *unavailable}
    ][:9]
    assert [(e.shard, e.offset_bytes, e.length_bytes) for e in plan.reads] == whole
    assert plan.erasures == len({*lost, *unavailable})


def test_fewer_helpers_than_shards_leave_room_for_one_that_is_away():
    code = Clay(k=8, m=4, d=10)
    assert code.helpers(frozenset({0})) == list(range(1, 11))
    assert code.helpers(frozenset({0}), frozenset({5})) == [
        1,
        2,
        3,
        4,
        6,
        7,
        8,
        9,
        10,
        11,
    ]
    # Shards 1 and 2 are in the column of shard 0 and cannot be replaced.
    assert code.helpers(frozenset({0}), frozenset({1})) == []
    assert code.helpers(frozenset({0}), frozenset({5, 6})) == []
    # The column goes first even where its numbers are the last.
    assert {9, 10} <= set(code.helpers(frozenset({11})))
    assert len(repair(code, {0}, (5, 6)).reads) == 8


def test_an_empty_repair_has_an_empty_plan():
    assert repair(CLAY, ()).reads == repair(CLAY, {0}, stripes=0).reads == ()
    with pytest.raises(UnavailableError, match="at least 9 of 12"):
        repair(CLAY, {0, 1, 2, 3})


def test_a_chunk_is_padded_to_whole_sub_chunks():
    assert CLAY.geometry(4096) == StripeGeometry(k=9, stripe_unit_bytes=5184)
    assert CLAY.geometry(5184).stripe_unit_bytes == 5184
    assert Clay(k=4, m=2, d=5).geometry(4096).stripe_unit_bytes == 4096
    with pytest.raises(SchemeError, match=r"stripe_unit_bytes: got 0.*1\b"):
        CLAY.geometry(0)
    with pytest.raises(SchemeError, match=r"got 4096.*81\b"):
        CLAY.plan_repair(
            lost=frozenset({0}), object_size_bytes=1, geometry=StripeGeometry(9, 4096)
        )
    with pytest.raises(SchemeError, match=r"got k = 6.*9\b"):
        CLAY.plan_repair(
            lost=frozenset({0}), object_size_bytes=1, geometry=StripeGeometry(6, 5184)
        )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("clay:9,3", "clay:k,m,d"),
        ("clay:0,3,2", r"k: got 0.*1\b"),
        ("clay:9,1,9", r"m: got 1.*2\b"),
        ("clay:9,3,9", r"d: got 9.*10.*11\b"),
        ("clay:9,3,12", r"d: got 12.*10.*11\b"),
        ("clay:20,10,21", r"sub-chunks: got 2\^15.*4096\b"),
        (
            "clay:254,3,256",
            r"shards: got 258 .*256\b",
        ),
        ("clay:200000,200000,200001", "256"),
    ],
)
def test_impossible_parameters_give_one_clear_line(text, wanted):
    with pytest.raises(SchemeError, match=wanted) as caught:
        parse_scheme(text)
    assert "\n" not in str(caught.value) and repr(text) in str(caught.value)


def test_names_are_read_back():
    code = parse_scheme("clay:9,3,11")
    assert code == CLAY and code.name == "clay:9,3,11"
    assert (code.kind, code.width, code.failures_tolerated) == ("erasure", 12, 3)


def test_the_coder_refuses_wrong_shapes():
    coder = coder_of(ClayShape(4, 2, 5))
    assert coder is coder_of(ClayShape(4, 2, 5))
    data = np.zeros((4, 16), dtype=np.uint8)
    with pytest.raises(SchemeError, match=r"shape: got \(3, 16\)"):
        coder.encode(data[:3])
    with pytest.raises(SchemeError, match="wanted one multiple of 8 sub-chunks"):
        coder.encode(np.zeros((4, 15), dtype=np.uint8))
    with pytest.raises(UnavailableError, match=r"got 3 shards.*4\b"):
        coder.decode(dict(enumerate(data[:3])))
    shards = coder.encode(data)
    parts = {shard: coder.helper_part(shards[shard], lost=0) for shard in (2, 3, 4, 5)}
    with pytest.raises(UnavailableError, match=r"wanted 5, \[1\] among them"):
        coder.repair(0, parts)


def test_every_parity_byte_depends_on_every_data_shard():
    """A coupling that did nothing, or a parity that ignored a shard, would show here."""
    coder = ClayCoder(ClayShape(4, 2, 5))
    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, (4, 8), dtype=np.uint8)
    shards = coder.encode(data)
    for shard in range(4):
        other = data.copy()
        other[shard] ^= 0xFF
        assert (coder.encode(other)[4:] != shards[4:]).any(axis=1).all()
    # Layers are coupled: one changed sub-chunk changes parity in more than its own plane.
    other = data.copy()
    other[0, 3] ^= 1
    assert (coder.encode(other)[4:] != shards[4:]).sum() > 2
