"""Properties of every plan for any request."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.coding import (
    RedundancyScheme,
    ReedSolomon,
    Replication,
    ShardExtent,
    StripeGeometry,
    WritePlan,
    parse_scheme,
)

#: Schemes of other families than replication and Reed-Solomon, of which any numbers are drawn.
#: A new code is one more name.
OTHERS = ["lrc:4,3,2", "lrc-ceph:4,2,3", "shec:4,3,2", "clay:4,2,5"]


@dataclass(frozen=True)
class Request:
    scheme: RedundancyScheme
    geometry: StripeGeometry
    offset: int
    length: int
    size: int
    missing: frozenset[int]


#: Schemes that read k whole shards to decode or to repair.
separable = st.one_of(
    st.builds(ReedSolomon, k=st.integers(1, 8), m=st.integers(1, 4)),
    st.builds(Replication, copies=st.integers(1, 4)),
)
schemes = st.one_of(separable, st.sampled_from(OTHERS).map(parse_scheme))


@st.composite
def requests(
    draw: st.DrawFn, of: st.SearchStrategy[RedundancyScheme] = schemes
) -> Request:
    scheme = draw(of)
    missing = draw(
        st.frozensets(
            st.integers(0, scheme.width - 1), max_size=scheme.failures_tolerated
        )
    )
    numbers = st.integers(0, 400)
    return Request(
        scheme=scheme,
        geometry=scheme.geometry(draw(st.integers(1, 16))),
        offset=draw(numbers),
        length=draw(st.integers(1, 200)),
        size=draw(numbers),
        missing=missing,
    )


def padded_bytes(request: Request, size: int) -> int:
    return -(-size // request.geometry.stripe_bytes) * request.geometry.stripe_bytes


def object_bytes(extents: tuple[ShardExtent, ...], request: Request) -> list[int]:
    """Object offsets of the bytes these extents hold on data shards, as often as they occur."""
    geometry = request.geometry
    if request.scheme.kind == "replicated":
        first = min((e.shard for e in extents), default=0)
        return [
            b
            for e in extents
            if e.shard == first
            for b in range(e.offset_bytes, e.end_bytes)
        ]
    unit = geometry.stripe_unit_bytes
    return [
        b // unit * geometry.stripe_bytes + e.shard * unit + b % unit
        for e in extents
        if e.shard < geometry.k
        for b in range(e.offset_bytes, e.end_bytes)
    ]


def fill_bytes(plan: WritePlan, r: Request, offset: int) -> int:
    """Bytes of the stripes in front of the request that are written because it begins beyond the end."""
    if r.scheme.kind == "replicated":
        return 0
    return (
        offset // r.geometry.stripe_bytes - plan.write_stripes[0]
    ) * r.geometry.stripe_bytes


@given(requests())
def test_writes_cover_the_request_once_and_every_shard_equally(
    request: Request,
) -> None:
    r = request
    plan = r.scheme.plan_write(
        offset_bytes=r.offset,
        length_bytes=r.length,
        object_size_bytes=r.size,
        geometry=r.geometry,
    )
    written = object_bytes(plan.writes, r)
    assert len(written) == len(set(written))
    assert set(range(r.offset, r.offset + r.length)) <= set(written)
    per_shard = {
        shard: [
            (e.offset_bytes, e.length_bytes) for e in plan.writes if e.shard == shard
        ]
        for shard in range(r.scheme.width)
    }
    assert all(extents == per_shard[0] for extents in per_shard.values())


@given(requests())
def test_write_conserves_bytes(request: Request) -> None:
    r = request
    plan = r.scheme.plan_write(
        offset_bytes=r.offset,
        length_bytes=r.length,
        object_size_bytes=r.size,
        geometry=r.geometry,
        missing=r.missing,
    )
    moved = sum(e.length_bytes for e in plan.writes)
    present = r.scheme.width - len(r.missing)
    if r.scheme.kind == "replicated":
        assert moved == present * r.length
        return
    assert moved * r.geometry.k == present * plan.encode_data_bytes
    # The encoded data is fill or a stripe of the request.
    first, stop = r.geometry.stripe_range(r.offset, r.length)
    assert (
        plan.encode_data_bytes
        == fill_bytes(plan, r, r.offset) + (stop - first) * r.geometry.stripe_bytes
    )
    assert not {e.shard for e in (*plan.reads, *plan.writes)} & r.missing


@given(requests())
def test_a_write_reads_the_bytes_to_preserve_but_none_past_the_end(
    request: Request,
) -> None:
    r = request
    plan = r.scheme.plan_write(
        offset_bytes=r.offset,
        length_bytes=r.length,
        object_size_bytes=r.size,
        geometry=r.geometry,
    )
    if r.scheme.kind == "replicated":
        assert plan.reads == ()
        return
    read = object_bytes(plan.reads, r)
    assert len(read) == len(set(read))
    assert all(b < padded_bytes(r, r.size) for b in read)
    requested = set(range(r.offset, r.offset + r.length))
    overwritten = set(object_bytes(plan.writes, r)) & set(range(r.size))
    assert overwritten - requested <= set(read)
    assert set(read) <= set(object_bytes(plan.writes, r))


@given(
    requests(),
    st.lists(
        st.tuples(st.integers(0, 400), st.integers(1, 60)), min_size=1, max_size=8
    ),
)
def test_an_object_is_filled_once(
    request: Request, writes: list[tuple[int, int]]
) -> None:
    r = request
    size = filled = 0
    touched: set[int] = set()
    for offset, length in writes:
        plan = r.scheme.plan_write(
            offset_bytes=offset,
            length_bytes=length,
            object_size_bytes=size,
            geometry=r.geometry,
        )
        touched |= set(range(*plan.write_stripes))
        filled += fill_bytes(plan, r, offset)
        size = max(size, offset + length)
    if r.scheme.kind == "replicated":
        assert filled == 0
        return
    assert touched == set(range(r.geometry.stripe_count(size)))
    # Each byte is new once: fill covers only bytes that no request wrote first, at most the object.
    assert filled < padded_bytes(r, size)
    repeat = r.scheme.plan_write(
        offset_bytes=0, length_bytes=size, object_size_bytes=size, geometry=r.geometry
    )
    assert fill_bytes(repeat, r, 0) == 0


@given(requests(separable))
def test_reads_give_the_wanted_bytes_or_enough_to_decode_them(request: Request) -> None:
    r = request
    plan = r.scheme.plan_read(
        offset_bytes=r.offset,
        length_bytes=r.length,
        object_size_bytes=r.size,
        geometry=r.geometry,
        missing=r.missing,
    )
    wanted = set(range(r.offset, min(r.offset + r.length, r.size)))
    assert plan.returned_bytes == len(wanted)
    shards = {e.shard for e in plan.reads}
    assert not shards & r.missing
    assert all(e.end_bytes <= padded_bytes(r, r.size) for e in plan.reads)
    if not wanted:
        assert plan.reads == ()
    elif plan.erasures:
        assert len(shards) == r.scheme.k
        assert sum(e.length_bytes for e in plan.reads) == plan.decode_data_bytes
        assert plan.erasures == sum(s < r.scheme.k for s in r.missing)
    else:
        assert wanted <= set(object_bytes(plan.reads, r))


@given(requests(separable))
def test_repair_reads_k_shards_and_writes_the_lost(request: Request) -> None:
    r = request
    plan = r.scheme.plan_repair(
        lost=r.missing, object_size_bytes=r.size, geometry=r.geometry
    )
    if not r.missing or r.size == 0:
        assert (plan.reads, plan.writes) == ((), ())
        return
    assert {e.shard for e in plan.writes} == r.missing
    assert not {e.shard for e in plan.reads} & r.missing
    assert len(plan.reads) == r.scheme.k
    lengths = {e.length_bytes for e in (*plan.reads, *plan.writes)}
    stored = (
        r.size if r.scheme.kind == "replicated" else r.geometry.shard_size_bytes(r.size)
    )
    assert lengths == {stored}
