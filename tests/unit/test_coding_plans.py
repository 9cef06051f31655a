"""Plans of writes, reads and repairs, every byte counted by hand."""

import pytest

from stripesim.models.coding import (
    ReedSolomon,
    Replication,
    ShardExtent,
    StripeGeometry,
    WritePlan,
)
from stripesim.models.problems import SchemeError, UnavailableError

RS63 = ReedSolomon(k=6, m=3)
G63 = RS63.geometry(4096)
REP3 = Replication(copies=3)
G1 = REP3.geometry(4096)
MIB4 = 4 << 20
# 4 MiB are 170.67 stripes of 24 KiB.
STRIPES_4MIB = 171


def write(
    offset: int, length: int, size: int, missing: frozenset[int] = frozenset()
) -> WritePlan:
    return RS63.plan_write(
        offset_bytes=offset,
        length_bytes=length,
        object_size_bytes=size,
        geometry=G63,
        missing=missing,
    )


def total(extents: tuple[ShardExtent, ...]) -> int:
    return sum(extent.length_bytes for extent in extents)


def test_replicated_write_sends_the_extent_to_every_copy() -> None:
    plan = REP3.plan_write(
        offset_bytes=1000, length_bytes=500, object_size_bytes=0, geometry=G1
    )
    assert plan.writes == tuple(ShardExtent(copy, 1000, 500) for copy in range(3))
    assert (plan.reads, plan.encode_stripes) == ((), 0)


def test_replicated_write_skips_a_missing_copy() -> None:
    plan = REP3.plan_write(
        offset_bytes=0,
        length_bytes=1,
        object_size_bytes=9,
        geometry=G1,
        missing=frozenset({0}),
    )
    assert [extent.shard for extent in plan.writes] == [1, 2]


def test_replicated_read_takes_the_first_copy_there_and_stops_at_the_end() -> None:
    plan = REP3.plan_read(
        offset_bytes=4096,
        length_bytes=4096,
        object_size_bytes=6000,
        geometry=G1,
        missing=frozenset({0}),
    )
    assert plan.reads == (ShardExtent(1, 4096, 1904),)
    assert plan.returned_bytes == 1904


def test_replicated_repair_reads_once_and_writes_each_lost_copy() -> None:
    plan = REP3.plan_repair(lost=frozenset({0, 2}), object_size_bytes=MIB4, geometry=G1)
    assert plan.reads == (ShardExtent(1, 0, MIB4),)
    assert plan.writes == (ShardExtent(0, 0, MIB4), ShardExtent(2, 0, MIB4))
    assert plan.decode_data_bytes == 0


def test_rs_first_write_of_a_full_stripe_reads_nothing() -> None:
    plan = write(0, 24576, 0)
    assert plan.reads == ()
    assert plan.writes == tuple(ShardExtent(shard, 0, 4096) for shard in range(9))
    assert (plan.encode_stripes, plan.encode_data_bytes, plan.write_stripes) == (
        1,
        24576,
        (0, 1),
    )


def test_rs_4k_overwrite_reads_six_chunks_and_writes_nine() -> None:
    plan = write(24576 + 4096, 4096, MIB4)
    assert plan.reads == tuple(ShardExtent(shard, 4096, 4096) for shard in range(6))
    assert plan.writes == tuple(ShardExtent(shard, 4096, 4096) for shard in range(9))
    assert plan.read_stripes == ((1, 2),)
    assert plan.write_stripes == (1, 2)


def test_rs_append_reads_the_stripe_with_the_old_end() -> None:
    # The object ends inside stripe 0, so its existing chunks must be read.
    plan = write(4096, 4096, 4096)
    assert total(plan.reads) == 24576
    assert plan.write_stripes == (0, 1)


def test_rs_write_over_three_stripes_reads_head_and_tail_only() -> None:
    plan = write(4096, 2 * 24576, MIB4)
    assert plan.read_stripes == ((0, 1), (2, 3))
    assert total(plan.reads) == 2 * 24576
    assert total(plan.writes) == 3 * 36864
    assert plan.encode_stripes == 3


def test_rs_head_and_tail_side_by_side_are_one_read_per_shard() -> None:
    plan = write(20480, 8192, MIB4)
    assert plan.reads == tuple(ShardExtent(shard, 0, 8192) for shard in range(6))


def test_rs_tail_beyond_the_objects_end_is_not_read() -> None:
    # One stripe exists; the write covers half of it and half of the next, new one.
    plan = write(12288, 24576, 24576)
    assert plan.read_stripes == ((0, 1),)
    assert plan.write_stripes == (0, 2)


def test_rs_first_random_write_initialises_everything_before_it() -> None:
    offset = MIB4 - 4096
    plan = write(offset, 4096, 0)
    assert plan.reads == ()
    assert plan.write_stripes == (0, STRIPES_4MIB)
    assert plan.encode_stripes == STRIPES_4MIB
    assert total(plan.writes) == STRIPES_4MIB * 36864
    # The second write to the same place finds the object there and fills nothing.
    again = write(offset, 4096, MIB4)
    assert (again.encode_stripes, total(again.reads), total(again.writes)) == (
        1,
        24576,
        36864,
    )


def test_rs_fill_starts_at_the_stripe_after_the_old_end() -> None:
    plan = write(5 * 24576, 24576, 24577)
    assert plan.write_stripes == (2, 6)
    assert plan.encode_stripes == 4
    assert plan.reads == ()


def test_rs_degraded_write_decodes_its_reads_and_skips_missing_shards() -> None:
    plan = write(0, 4096, MIB4, frozenset({2, 7}))
    assert [extent.shard for extent in plan.reads] == [0, 1, 3, 4, 5, 6]
    assert [extent.shard for extent in plan.writes] == [0, 1, 3, 4, 5, 6, 8]
    assert (plan.decode_stripes, plan.decode_data_bytes, plan.erasures) == (1, 24576, 1)


def test_rs_4k_read_moves_a_whole_stripe() -> None:
    plan = RS63.plan_read(
        offset_bytes=4096, length_bytes=4096, object_size_bytes=MIB4, geometry=G63
    )
    assert plan.reads == tuple(ShardExtent(shard, 0, 4096) for shard in range(6))
    assert (plan.decode_stripes, plan.erasures, plan.returned_bytes) == (0, 0, 4096)


def test_rs_degraded_read_takes_the_first_k_shards_and_decodes() -> None:
    plan = RS63.plan_read(
        offset_bytes=0,
        length_bytes=24577,
        object_size_bytes=MIB4,
        geometry=G63,
        missing=frozenset({0, 3, 6}),
    )
    assert plan.reads == tuple(
        ShardExtent(shard, 0, 8192) for shard in (1, 2, 4, 5, 7, 8)
    )
    assert (plan.decode_stripes, plan.decode_data_bytes, plan.erasures) == (2, 49152, 2)


def test_rs_read_with_only_parity_missing_decodes_nothing() -> None:
    plan = RS63.plan_read(
        offset_bytes=0,
        length_bytes=1,
        object_size_bytes=1,
        geometry=G63,
        missing=frozenset({6, 7, 8}),
    )
    assert [extent.shard for extent in plan.reads] == list(range(6))
    assert plan.decode_stripes == 0


def test_reads_beyond_the_end_touch_nothing() -> None:
    request = {"offset_bytes": 100, "length_bytes": 10, "object_size_bytes": 100}
    assert RS63.plan_read(**request, geometry=G63).reads == ()
    assert REP3.plan_read(**request, geometry=G1).reads == ()


def test_rs_repair_reads_k_whole_shards() -> None:
    plan = RS63.plan_repair(
        lost=frozenset({1, 8}),
        object_size_bytes=MIB4,
        geometry=G63,
        unavailable=frozenset({0}),
    )
    shard_bytes = STRIPES_4MIB * 4096
    assert plan.reads == tuple(
        ShardExtent(shard, 0, shard_bytes) for shard in (2, 3, 4, 5, 6, 7)
    )
    assert plan.writes == (
        ShardExtent(1, 0, shard_bytes),
        ShardExtent(8, 0, shard_bytes),
    )
    assert (plan.erasures, plan.decode_stripes) == (2, STRIPES_4MIB)
    assert plan.decode_data_bytes == STRIPES_4MIB * 24576


def test_repair_of_nothing_is_empty() -> None:
    assert (
        RS63.plan_repair(lost=frozenset(), object_size_bytes=MIB4, geometry=G63).reads
        == ()
    )
    assert (
        RS63.plan_repair(lost=frozenset({1}), object_size_bytes=0, geometry=G63).writes
        == ()
    )
    assert (
        REP3.plan_repair(lost=frozenset({1}), object_size_bytes=0, geometry=G1).writes
        == ()
    )


def test_too_many_losses_are_an_error_not_a_plan() -> None:
    assert RS63.can_decode(frozenset({0, 1, 2}))
    assert not RS63.can_decode(frozenset({0, 1, 2, 3}))
    with pytest.raises(
        UnavailableError,
        match=r"rs:6,3: missing shards: got \[0, 1, 2, 3\], wanted at least 6 of 9 shards",
    ):
        RS63.plan_repair(
            lost=frozenset({0, 1, 2, 3}), object_size_bytes=1, geometry=G63
        )
    with pytest.raises(
        UnavailableError, match=r"rep:3: missing shards: got \[0, 1, 2\]"
    ):
        REP3.plan_read(
            offset_bytes=0,
            length_bytes=1,
            object_size_bytes=1,
            geometry=G1,
            missing=frozenset({0, 1, 2}),
        )


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"offset_bytes": -1}, "offset_bytes: got -1"),
        ({"length_bytes": 0}, "length_bytes: got 0"),
        ({"object_size_bytes": -1}, "object_size_bytes: got -1"),
        ({"missing": frozenset({9})}, r"shards: got \[9\].*0.*8\b"),
        (
            {"geometry": StripeGeometry(k=10, stripe_unit_bytes=4096)},
            r"got k = 10.*6\b",
        ),
    ],
)
def test_bad_requests_are_refused(change: dict[str, object], wanted: str) -> None:
    request: dict[str, object] = {
        "offset_bytes": 0,
        "length_bytes": 1,
        "object_size_bytes": 1,
        "geometry": G63,
    }
    with pytest.raises(SchemeError, match=wanted):
        RS63.plan_write(**(request | change))  # type: ignore[arg-type]
    with pytest.raises(SchemeError, match=wanted):
        RS63.plan_read(**(request | change))  # type: ignore[arg-type]


def test_bare_scheme_has_one_copy() -> None:
    with pytest.raises(SchemeError, match=r"got 2 copies.*1\b"):
        Replication(copies=2, bare=True)
