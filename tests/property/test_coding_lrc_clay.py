"""Plans against bytes: the planned reads from encoded shards suffice to restore the lost data."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.coding import LRC, Clay, ReedSolomon, parse_scheme
from stripesim.models.coding.clay_coder import coder_of
from stripesim.models.coding.galois import independent_rows, invert, matrix_product
from stripesim.models.problems import UnavailableError

LRCS = (
    "lrc:10,6,5",
    "lrc:6,4,3",
    "lrc:9,6,3",
    "lrc:5,4,2",
    "lrc-ceph:4,2,3",
    "lrc-ceph:8,4,3",
    "lrc-ceph:6,3,3",
    "shec:4,3,2",
    "shec:8,4,3",
    "shec:10,6,3",
)
CLAYS = (
    (2, 2, 3),
    (4, 2, 5),
    (5, 3, 7),
    (5, 3, 6),
    (3, 3, 4),
    (6, 3, 8),
    (4, 4, 6),
    (7, 4, 10),
    (8, 4, 10),
)


def random_bytes(seed, *shape):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@given(st.data())
def test_lrc_repairs_from_the_planned_reads(data):
    code = parse_scheme(data.draw(st.sampled_from(LRCS)))
    shards = matrix_product(
        code.generator, random_bytes(data.draw(st.integers(0, 99)), code.k, 12)
    )
    gone = data.draw(
        st.sets(st.integers(0, code.width - 1), min_size=1, max_size=code.m)
    )
    lost = frozenset(data.draw(st.sets(st.sampled_from(sorted(gone)), min_size=1)))
    geometry = code.geometry(12)

    def plan():
        return code.plan_repair(
            lost=lost,
            object_size_bytes=geometry.stripe_bytes,
            geometry=geometry,
            unavailable=frozenset(gone) - lost,
        )

    if not code.can_decode(frozenset(gone)):
        try:
            plan()
        except UnavailableError:
            return
        raise AssertionError("a plan for what cannot be decoded")
    found = plan()
    sources = [extent.shard for extent in found.reads]
    assert not set(sources) & gone and len(sources) <= code.k
    assert {extent.shard for extent in found.writes} == lost
    # Express each lost row by the rows read: solvable only if these hold enough.
    rows = code.generator[sources]
    for shard in lost:
        assert (
            solve(rows, code.generator[shard], shards[sources]) == shards[shard]
        ).all()


def solve(rows, wanted, symbols):
    """The shard with this generator row from shards with those rows, by a basis of them."""
    basis = independent_rows(rows, range(len(rows)), len(rows))
    columns = independent_rows(rows[basis].T.copy(), range(rows.shape[1]), len(basis))
    weights = matrix_product(
        wanted[None, columns], invert(rows[np.ix_(basis, columns)])
    )
    assert (matrix_product(weights, rows[basis])[0] == wanted).all(), (
        "the rows read do not span the lost one"
    )
    return matrix_product(weights, symbols[basis])[0]


@given(st.data())
def test_lrc_decodes_from_the_sources_of_a_degraded_read(data):
    code = parse_scheme(data.draw(st.sampled_from(LRCS)))
    content = random_bytes(data.draw(st.integers(0, 99)), code.k, 8)
    shards = matrix_product(code.generator, content)
    missing = frozenset(
        data.draw(
            st.sets(st.integers(0, code.width - 1), max_size=code.failures_tolerated)
        )
    )
    geometry = code.geometry(8)
    plan = code.plan_read(
        offset_bytes=0,
        length_bytes=8 * code.k,
        object_size_bytes=8 * code.k,
        geometry=geometry,
        missing=missing,
    )
    sources = [extent.shard for extent in plan.reads]
    assert len(sources) == code.k and not set(sources) & missing
    assert (
        matrix_product(invert(code.generator[sources]), shards[sources]) == content
    ).all()


@given(st.data())
def test_clay_encode_erase_decode(data):
    code = Clay(*data.draw(st.sampled_from(CLAYS)))
    coder, size = (
        coder_of(code.shape),
        code.shape.sub_chunks * data.draw(st.integers(1, 3)),
    )
    content = random_bytes(data.draw(st.integers(0, 99)), code.k, size)
    shards = coder.encode(content)
    assert (shards[: code.k] == content).all()
    gone = data.draw(st.sets(st.integers(0, code.width - 1), max_size=code.m))
    assert code.can_decode(frozenset(gone))
    left = {shard: shards[shard] for shard in range(code.width) if shard not in gone}
    assert (coder.decode(left) == shards).all()


@given(st.data())
def test_clay_repairs_from_the_planned_reads(data):
    code = Clay(*data.draw(st.sampled_from(CLAYS)))
    geometry = code.geometry(1)
    unit, stripes = geometry.stripe_unit_bytes, data.draw(st.integers(1, 2))
    coder = coder_of(code.shape)
    content = random_bytes(data.draw(st.integers(0, 99)), stripes, code.k, unit)
    encoded = [coder.encode(stripe) for stripe in content]
    stored = np.concatenate(encoded, axis=1)
    gone = data.draw(
        st.sets(st.integers(0, code.width - 1), min_size=1, max_size=code.m)
    )
    lost = frozenset(
        data.draw(st.sets(st.sampled_from(sorted(gone)), min_size=1, max_size=2))
    )
    unavailable = frozenset(gone) - lost
    plan = code.plan_repair(
        lost=lost,
        object_size_bytes=stripes * geometry.stripe_bytes,
        geometry=geometry,
        unavailable=unavailable,
    )
    read: dict[int, list[np.ndarray]] = {}
    for extent in plan.reads:
        assert extent.shard not in gone
        assert extent.offset_bytes // unit == (
            extent.end_bytes - 1
        ) // unit or not code.helpers(lost, unavailable)
        read.setdefault(extent.shard, []).append(
            stored[extent.shard, extent.offset_bytes : extent.end_bytes]
        )
    pieces = {
        shard: np.concatenate(runs).reshape(stripes, -1) for shard, runs in read.items()
    }
    for stripe in range(stripes):
        here = {shard: piece[stripe] for shard, piece in pieces.items()}
        if code.helpers(lost, unavailable):
            (shard,) = lost
            parts = {
                s: part.reshape(code.shape.sub_chunks // code.shape.q, -1)
                for s, part in here.items()
            }
            assert (coder.repair(shard, parts) == encoded[stripe][shard]).all()
        else:
            assert (coder.decode(here) == encoded[stripe]).all()


@given(
    code=st.sampled_from(
        [*(parse_scheme(text) for text in LRCS), *(Clay(*numbers) for numbers in CLAYS)]
    ),
    offset=st.integers(0, 200_000),
    length=st.integers(1, 100_000),
    size=st.integers(0, 200_000),
)
def test_whole_objects_are_written_and_read_as_by_reed_solomon(
    code, offset, length, size
):
    """With nothing missing only the number of parities counts."""
    geometry = code.geometry(4096)
    plain = ReedSolomon(k=code.k, m=code.m)
    values = {
        "offset_bytes": offset,
        "length_bytes": length,
        "object_size_bytes": size,
        "geometry": geometry,
    }
    assert code.plan_write(**values) == plain.plan_write(**values)
    assert code.plan_read(**values) == plain.plan_read(**values)


@given(
    k=st.integers(2, 12),
    groups=st.integers(2, 4),
    extra=st.integers(1, 4),
    data=st.data(),
)
def test_no_lrc_of_any_shape_loses_fewer_than_its_reed_solomon_parities(
    k, groups, extra, data
):
    locality = -(-k // groups)
    if locality >= k:
        return
    code = LRC(k=k, m=-(-k // locality) + extra, locality=locality)
    missing = data.draw(
        st.sets(st.integers(0, code.width - 1), max_size=code.failures_tolerated)
    )
    assert code.can_decode(frozenset(missing))
    for shard in range(code.width):
        plan = code.plan_repair(
            lost=frozenset({shard}),
            object_size_bytes=1,
            geometry=code.geometry(16),
            unavailable=frozenset(),
        )
        limit = (
            locality
            if shard not in range(k, k + extra)
            else min(k, extra - 1 + code.local_parities)
        )
        assert len(plan.reads) <= limit
