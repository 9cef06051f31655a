"""Shards read and written by requests under each release: published counts, rules and an oracle."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.coding import EcPolicy, parse_scheme, stored_bytes
from stripesim.models.generations import generation
from stripesim.models.problems import SchemeError
from stripesim.scenarios.answers.explain.request import explain

KIB = 1024
PAGE = 4096
OBJECT = 4 << 20
FACTS = Path(__file__).resolve().parents[1] / "golden" / "fastec_io.csv"
FAST = EcPolicy(writes="shards", reads="pages", tie="reconstruct")
DELTA = EcPolicy(writes="shards", reads="pages", tie="delta")


def facts():
    lines = [
        line
        for line in FACTS.read_text("utf-8").splitlines()
        if not line.startswith("#")
    ]
    return list(csv.DictReader(lines))


def shards(extents):
    return {extent.shard for extent in extents}


def planned(row, offset=0):
    scheme = parse_scheme(row["scheme"])
    plan = scheme.plan_write if row["op"] == "write" else scheme.plan_read
    return plan(
        offset_bytes=offset,
        length_bytes=int(row["bytes"]),
        object_size_bytes=OBJECT,
        geometry=scheme.geometry(int(row["stripe_unit_bytes"])),
        policy=generation(row["generation"]).ec,
    )


def test_the_table_of_facts_is_whole():
    assert len(facts()) == 132


@pytest.mark.parametrize(
    "row", facts(), ids=lambda row: "-".join(list(row.values())[:5])
)
def test_published_counts(row):
    plan = planned(row)
    writes = shards(getattr(plan, "writes", ()))
    assert len(shards(plan.reads)) == int(row["shard_reads"])
    assert len(writes) == int(row["shard_writes"])
    if row["op"] == "write":
        assert plan.method == row["method"]
        # A request that begins one unit later leaves shard 0 out, unless it covers all data shards.
        later = planned(row, offset=int(row["stripe_unit_bytes"]))
        assert len(later.metadata_shards) <= int(row["metadata_writes_max"])
        assert set(later.metadata_shards) == ({0} - shards(later.writes))


@pytest.mark.parametrize(
    "row", facts()[::19], ids=lambda row: "-".join(list(row.values())[:5])
)
def test_explain_counts_the_same(row):
    (timeline,) = explain(
        row["op"],
        row["scheme"],
        int(row["bytes"]),
        generation=row["generation"],
        stripe_unit_bytes=int(row["stripe_unit_bytes"]),
        direct_reads=row["direct_reads"] == "1",
        with_parameters=False,
    )
    document = timeline.to_json()
    assert document["shard_reads"] == int(row["shard_reads"])
    assert document["shard_writes"] == int(row["shard_writes"])
    assert document["metadata_writes"] <= int(row["metadata_writes_max"])
    assert document["method"] == row["method"]


def write(scheme, unit, offset, length, size=OBJECT, policy=FAST, **more):
    code = parse_scheme(scheme)
    return code.plan_write(
        offset_bytes=offset,
        length_bytes=length,
        object_size_bytes=size,
        geometry=code.geometry(unit),
        policy=policy,
        **more,
    )


def test_a_tie_goes_the_way_of_the_release():
    # 4+2, one unit: 3 shards either way.
    assert write("rs:4,2", 16 * KIB, 0, 4 * KIB, policy=FAST).method == "reconstruct"
    assert write("rs:4,2", 16 * KIB, 0, 4 * KIB, policy=DELTA).method == "parity delta"


def test_a_delta_of_k_shards_is_never_taken():
    # 8+6, two units: the delta reads 8 shards, the reconstruction 6. 3+2, one unit: 3 against 2.
    assert write("rs:3,2", 16 * KIB, 0, 4 * KIB, policy=DELTA).method == "reconstruct"


def test_shard_0_gets_the_object_info_and_other_untouched_shards_nothing():
    plan = write("rs:6,2", 16 * KIB, 32 * KIB, 4 * KIB)
    assert shards(plan.writes) == {2, 6, 7}
    assert plan.metadata_shards == (0,)
    assert write("rs:6,2", 16 * KIB, 0, 4 * KIB).metadata_shards == ()


def test_a_growing_object_updates_every_shard_and_reads_only_stored_data():
    plan = write("rs:6,2", 16 * KIB, 20 * KIB, 4 * KIB, size=20 * KIB)
    # Shard 1 ends after one page. The appended page is in the same row as data of shard 0.
    assert plan.method == "reconstruct"
    assert [
        (extent.shard, extent.offset_bytes, extent.length_bytes)
        for extent in plan.reads
    ] == [(0, 4 * KIB, 4 * KIB)]
    assert shards(plan.writes) == {1, 6, 7}
    assert plan.metadata_shards == (0, 2, 3, 4, 5)


def test_a_new_object_is_written_without_a_read_and_without_filling_earlier_stripes():
    plan = write("rs:4,2", 16 * KIB, 1 << 20, 4 * KIB, size=0)
    assert plan.reads == ()
    assert shards(plan.writes) == {0, 4, 5}
    assert sum(extent.length_bytes for extent in plan.writes) == 3 * PAGE


def test_a_write_below_a_page_reads_the_page():
    plan = write("rs:2,2", 16 * KIB, 512, 512)
    assert plan.method == "reconstruct"
    assert shards(plan.reads) == {0, 1}
    assert all(
        (extent.offset_bytes, extent.length_bytes) == (0, PAGE) for extent in plan.reads
    )


def test_a_write_across_a_chunk_border_touches_two_rows():
    plan = write("rs:6,2", 16 * KIB, 14 * KIB, 4 * KIB, policy=DELTA)
    assert plan.method == "parity delta"
    rows = {(extent.shard, extent.offset_bytes) for extent in plan.writes}
    assert rows == {(0, 12 * KIB), (1, 0), (6, 0), (6, 12 * KIB), (7, 0), (7, 12 * KIB)}


def test_an_object_in_the_extent_cache_gets_no_delta():
    assert write("rs:8,2", 16 * KIB, 0, 4 * KIB, in_cache=True).method == "reconstruct"


def test_a_missing_shard_decides_for_the_way_that_does_not_need_it():
    # The shard itself: nothing to take a difference from.
    lost = write("rs:8,2", 16 * KIB, 0, 4 * KIB, missing=frozenset({0}))
    assert lost.method == "reconstruct"
    assert 0 not in shards(lost.reads) | shards(lost.writes)
    # A neighbour: the delta does without it, though 4+2 would reconstruct.
    beside = write("rs:4,2", 16 * KIB, 0, 4 * KIB, missing=frozenset({1}))
    assert beside.method == "parity delta"


def read(scheme, unit, offset, length, policy, **more):
    code = parse_scheme(scheme)
    return code.plan_read(
        offset_bytes=offset,
        length_bytes=length,
        object_size_bytes=OBJECT,
        geometry=code.geometry(unit),
        policy=policy,
        **more,
    )


def test_reads_are_of_pages_chunks_or_stripes():
    moved = {
        name: sum(
            extent.length_bytes
            for extent in read(
                "rs:6,2", 16 * KIB, 17 * KIB, 2 * KIB, generation(name).ec
            ).reads
        )
        for name in ("squid", "reef-partial-read", "tentacle")
    }
    assert moved == {
        "squid": 96 * KIB,
        "reef-partial-read": 16 * KIB,
        "tentacle": 4 * KIB,
    }


def test_a_degraded_read_takes_the_first_k_shards_where_the_lost_one_was_wanted():
    plan = read("rs:4,2", 16 * KIB, 0, 4 * KIB, FAST, missing=frozenset({0}))
    assert shards(plan.reads) == {1, 2, 3, 4}
    assert (plan.decode_data_bytes, plan.erasures) == (4 * PAGE, 1)
    elsewhere = read("rs:4,2", 16 * KIB, 0, 4 * KIB, FAST, missing=frozenset({1}))
    assert (shards(elsewhere.reads), elsewhere.decode_stripes) == ({0}, 0)


@pytest.mark.parametrize(
    "scheme", ["clay:4,2,5", "shec:6,3,2", "lrc:6,4,3", "lrc-ceph:4,2,3"]
)
def test_other_plug_ins_are_refused_with_the_reason(scheme):
    with pytest.raises(SchemeError, match=r"got an optimised pool.*plug-in"):
        write(scheme, 16 * KIB, 0, 4 * KIB)


def test_a_small_object_takes_a_page_and_its_parities():
    code = parse_scheme("rs:4,2")
    assert stored_bytes(code, code.geometry(4 * KIB), 1, policy=FAST) == 3 * PAGE
    assert stored_bytes(code, code.geometry(4 * KIB), 1) == 6 * PAGE
    # Five pages: shard 0 has two, shards 1 to 3 one, both parities two.
    assert stored_bytes(code, code.geometry(4 * KIB), 5 * PAGE, policy=FAST) == 9 * PAGE


def pages_of(code, unit, offset, length):
    """For every page of the object that a request touches its shard and its row, without intervals."""
    found = set()
    for page in range(offset // PAGE, -(-(offset + length) // PAGE)):
        chunk, within = divmod(page * PAGE, unit)
        found.add((chunk % code.k, (chunk // code.k * unit + within) // PAGE))
    return found


def rows_of(extents):
    return {
        (extent.shard, row)
        for extent in extents
        for row in range(extent.offset_bytes // PAGE, -(-extent.end_bytes // PAGE))
    }


@given(
    k=st.integers(1, 9),
    m=st.integers(1, 4),
    unit=st.sampled_from([4, 8, 16, 64]).map(lambda kib: kib * KIB),
    offset=st.integers(0, 400 * KIB),
    length=st.integers(1, 300 * KIB),
    size=st.integers(0, 800 * KIB),
    tie=st.sampled_from(["reconstruct", "delta"]),
)
def test_a_write_moves_the_pages_that_its_parities_need(
    k, m, unit, offset, length, size, tie
):
    code = parse_scheme(f"rs:{k},{m}")
    plan = write(
        code.name,
        unit,
        offset,
        length,
        size=size,
        policy=EcPolicy("shards", "pages", tie),
    )
    touched = pages_of(code, unit, offset, length)
    rows = {row for _, row in touched}
    parity = {(shard, row) for shard in range(k, k + m) for row in rows}
    assert rows_of(plan.writes) == touched | parity
    exists = pages_of(code, unit, 0, size) if size else set()
    partial = {page for page in (offset, offset + length) if page % PAGE}
    cut = {
        page for at in partial for page in pages_of(code, unit, at // PAGE * PAGE, PAGE)
    }
    others = {(shard, row) for shard in range(k) for row in rows} - touched
    rest = (others | cut) & exists
    delta = len(shards(plan.writes))
    needed = len({shard for shard, _ in rest})
    wins = delta < needed or (tie == "delta" and delta == needed)
    if rest and offset + length <= size and delta < k and wins:
        assert plan.method == "parity delta"
        assert rows_of(plan.reads) == rows_of(plan.writes)
    else:
        assert rows_of(plan.reads) == rest
        assert plan.method == ("reconstruct" if rest else "full stripe")
    grows = offset + length > size
    informed = set(range(k + m)) if grows else {0, *range(k, k + m)}
    assert set(plan.metadata_shards) == informed - shards(plan.writes)


@given(
    k=st.integers(1, 9),
    unit=st.sampled_from([4, 16]).map(lambda kib: kib * KIB),
    offset=st.integers(0, 400 * KIB),
    length=st.integers(1, 300 * KIB),
)
def test_a_read_moves_the_pages_that_hold_its_bytes(k, unit, offset, length):
    code = parse_scheme(f"rs:{k},2")
    plan = read(code.name, unit, offset, length, FAST)
    assert rows_of(plan.reads) == pages_of(code, unit, offset, length)
    assert sum(extent.length_bytes for extent in plan.reads) == PAGE * len(
        rows_of(plan.reads)
    )


def test_a_code_that_was_never_timed_is_explained_with_interpolated_costs():
    (timeline,) = explain(
        "write", "rs:10,2", 5000, offset_bytes=3000, generation="umbrella"
    )
    (note,) = timeline.kernel_notes
    assert note.startswith("rs:10,2: ")
    assert (timeline.shard_reads, timeline.shard_writes, timeline.method) == (
        4,
        4,
        "parity delta",
    )
