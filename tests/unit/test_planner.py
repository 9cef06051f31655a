"""From requests to templates: equal requests share one, and requests across objects are split and joined."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripesim.sim.ceph.clients.workload import Replay, Requests, Synthetic
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.paths import (
    pipelined_write_path,
    read_path,
    roll_forward_path,
    write_path,
)
from stripesim.sim.ceph.planner import RequestPlanner, row_codes
from stripesim.sim.observe.recording import account
from stripesim.sim.run import simulate
from support.examples import SLOW

KIB = 1024
MIB = 1 << 20


def listed(requests, *, queue_depth=4, arrivals=None):
    """A workload of (is write, offset, length) on image 0."""
    columns = list(zip(*requests, strict=True)) or [(), (), ()]
    return Replay(
        Requests(
            is_write=np.array(columns[0], dtype=bool),
            images=np.zeros(len(requests), dtype=np.int64),
            offsets_bytes=np.array(columns[1], dtype=np.int64),
            lengths_bytes=np.array(columns[2], dtype=np.int64),
            arrivals_ns=None
            if arrivals is None
            else np.array(arrivals, dtype=np.int64),
        ),
        queue_depth=queue_depth,
    )


def plan(pool, requests, *, prefilled=True, chunk=4096):
    book = pool.book()
    planner = RequestPlanner(pool, book, listed(requests), prefilled=prefilled)
    chunks = []
    while len(part := planner.take(chunk)):
        chunks.append(part)
    templates = np.concatenate([part.templates for part in chunks])
    return book, templates, planner.planned


def parts_of(requests, object_bytes, *, prefilled):
    """Yield whether each part of the requests is a write, and its extent in its object."""
    sizes: dict[int, int] = {}
    for is_write, start, length in requests:
        offset, end = start, start + length
        while offset < end:
            number, within = divmod(offset, object_bytes)
            part = min(end, (number + 1) * object_bytes) - offset
            before = object_bytes if prefilled else sizes.get(number, 0)
            yield (
                is_write,
                {
                    "offset_bytes": within,
                    "length_bytes": part,
                    "object_size_bytes": before,
                },
            )
            if is_write:
                sizes[number] = max(sizes.get(number, 0), within + part)
            offset += part


@pytest.fixture(scope="module")
def uncached(models, change):
    return change(models, store={"read_cache_bytes": 0})


def same(left, right):
    return all(
        np.array_equal(getattr(left, name), getattr(right, name))
        for name in (
            "words",
            "roles",
            "demands_ns",
            "successors",
            "successor_starts",
            "amounts",
        )
    )


@pytest.mark.parametrize("prefilled", [True, False])
@pytest.mark.parametrize(
    ("scheme", "unit"),
    [("rep:3", 4 * KIB), ("rs:4,2", 4 * KIB), ("rs:6,3", KIB), ("rs:6,3", 6 * KIB)],
)
@settings(max_examples=SLOW)
@given(
    requests=st.lists(
        st.tuples(st.booleans(), st.integers(0, 500_000), st.integers(1, 130_000)),
        min_size=1,
        max_size=12,
    ),
    chunk=st.integers(1, 5),
)
def test_a_shared_template_equals_the_one_planned_for_a_single_request(
    uncached, make_pool, prefilled, scheme, unit, requests, chunk
):
    """Shifting request and object together must change nothing: neither steps nor bytes nor times."""
    pool = make_pool(uncached, scheme, object_bytes=256 * KIB, unit_bytes=unit)
    book, templates, planned = plan(pool, requests, prefilled=prefilled, chunk=chunk)
    expected = list(parts_of(requests, pool.object_bytes, prefilled=prefilled))
    assert planned.lengths_bytes.tolist() == [
        extent["length_bytes"] for _, extent in expected
    ]
    for template, (is_write, extent) in zip(templates, expected, strict=True):
        path = write_path if is_write else read_path
        alone = path(pool.contexts[0], **extent)
        assert same(book.templates[template], alone), extent


def test_requests_equal_up_to_whole_stripes_share_a_template(uncached, make_pool):
    pool = make_pool(uncached, "rs:6,3")
    stripe = 24 * KIB
    requests = [(True, index * stripe + 4 * KIB, 4 * KIB) for index in range(100)]
    book, templates, _ = plan(pool, requests)
    assert len(book.templates) == 1 and set(templates.tolist()) == {0}
    # Whichever part of a stripe it writes, the whole stripe is read and encoded.
    book, _, _ = plan(
        pool, [*requests, (True, 8 * KIB, 4 * KIB), (True, 5 * KIB, 4 * KIB)]
    )
    assert len(book.templates) == 1
    book, _, _ = plan(
        pool, [*requests, (True, 20 * KIB, 8 * KIB), (False, 4 * KIB, 4 * KIB)]
    )
    assert len(book.templates) == 3


@pytest.mark.parametrize("down", [None, 0, 2])
@settings(max_examples=SLOW)
@given(
    requests=st.lists(
        st.tuples(st.booleans(), st.integers(0, 120_000), st.integers(1, 60_000)),
        min_size=1,
        max_size=20,
    )
)
def test_in_the_pipeline_too_a_shared_template_is_the_one_of_each_request(
    uncached, change, make_pool, down, requests
):
    acting = [[shard if shard != down else NO_OSD for shard in range(6)]]
    pool = make_pool(
        change(uncached, pg_lock={"scope": "dispatch"}),
        "rs:4,2",
        acting=acting,
        object_bytes=256 * KIB,
    )
    context = pool.contexts[0]
    roll_forward = roll_forward_path(context, context.members)
    write = partial(
        pipelined_write_path,
        context,
        cached_stripes=frozenset(),
        roll_forward=roll_forward,
    )
    book, templates, _ = plan(pool, requests, prefilled=False)
    expected = parts_of(requests, pool.object_bytes, prefilled=False)
    for template, (is_write, extent) in zip(templates, expected, strict=True):
        path = write if is_write else partial(read_path, context)
        planned = book.templates[template]
        assert same(planned, path(**extent)), extent
        if is_write:
            (spawned,) = planned.dynamics.spawned
            assert same(spawned, roll_forward)
            assert any(spawned is other for other in book.templates)


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_a_request_across_objects_is_split_and_rejoined(uncached, make_pool, scheme):
    pool = make_pool(uncached, scheme, object_bytes=64 * KIB)
    requests = [
        (False, 60 * KIB, 8 * KIB),
        (False, 0, 4 * KIB),
        (False, 10 * KIB, 200 * KIB),
    ]
    _, _, planned = plan(pool, requests)
    assert planned.owners.tolist() == [0, 0, 1, 2, 2, 2, 2]
    assert (planned.lengths_bytes / KIB).tolist() == [4, 4, 4, 54, 64, 64, 18]
    result = simulate(pool, listed(requests))
    assert len(result.requested.lengths_bytes) == 3
    assert (result.requested.lengths_bytes / KIB).tolist() == [8, 4, 200]
    stream = result.engine_run.streams[0]
    assert len(stream.issued_ns) == 7
    assert result.requested.completed_ns.tolist() == [
        stream.completed_ns[:2].max(),
        stream.completed_ns[2],
        stream.completed_ns[3:].max(),
    ]
    assert result.row.requests == 3


def test_owners_continue_from_chunk_to_chunk(uncached, make_pool):
    pool = make_pool(uncached, "rep:3", object_bytes=64 * KIB)
    requests = [(False, 60 * KIB, 8 * KIB)] * 5
    for chunk in (1, 2, 5):
        _, _, planned = plan(pool, requests, chunk=chunk)
        assert planned.owners.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def device_reads(pool, requests, **found):
    result = simulate(pool, listed(requests, queue_depth=1), **found)
    return result.row.device_read_bytes_per_client_byte


@pytest.mark.parametrize(
    ("scheme", "stripe"),
    [("rep:3", 4 * KIB), ("rs:6,3", 24 * KIB), ("rs:10,4", 40 * KIB)],
)
@pytest.mark.parametrize("block", [KIB, 2 * KIB, 4 * KIB])
def test_sequential_reads_read_each_byte_from_the_device_once(
    models, make_pool, scheme, stripe, block
):
    pool = make_pool(models, scheme)
    count = 10 * stripe // block
    requests = [(False, index * block, block) for index in range(count)]
    assert device_reads(pool, requests) == 1


@pytest.mark.parametrize(("scheme", "factor"), [("rep:3", 4), ("rs:6,3", 24)])
def test_without_a_cache_small_sequential_reads_read_again_and_again(
    uncached, make_pool, scheme, factor
):
    requests = [(False, index * KIB, KIB) for index in range(240)]
    assert device_reads(make_pool(uncached, scheme), requests) == factor


def test_a_write_invalidates_the_cache(models, make_pool):
    pool = make_pool(models, "rep:3")
    again = [(False, 0, 4 * KIB), (False, 0, 4 * KIB)]
    assert device_reads(pool, again) == 1 / 2
    assert device_reads(pool, [again[0], (True, 0, 4 * KIB), again[1]]) == 2 / 3


@pytest.mark.parametrize(
    ("unit", "cached_again"), [(4 * KIB, 0), (KIB, 0), (16 * KIB, 0), (6 * KIB, 0)]
)
def test_a_stripe_needed_twice_is_read_once_for_any_unit(
    models, make_pool, unit, cached_again
):
    pool = make_pool(models, "rs:4,2", unit_bytes=unit)
    stripe = 4 * unit
    once = simulate(pool, listed([(False, 0, stripe)], queue_depth=1)).row
    twice = simulate(pool, listed([(False, 0, stripe)] * 2, queue_depth=1)).row
    more = (
        2 * twice.device_read_bytes_per_client_byte
        - once.device_read_bytes_per_client_byte
    )
    assert more == cached_again


def test_pristine_and_prefilled_images(models, make_pool):
    pool = make_pool(models, "rs:6,3", object_bytes=24 * KIB * 10)
    last = [(True, 9 * 24 * KIB, 4 * KIB)]
    pristine = simulate(pool, listed(last), prefilled=False).row
    prefilled = simulate(pool, listed(last), prefilled=True).row
    meta = models.store.metadata_bytes + models.store.roll_forward_log_bytes
    # Ten stripes are filled; over existing data one stripe is read and written.
    assert pristine.device_write_bytes_per_client_byte == 9 * (10 * 4 * KIB + meta) / (
        4 * KIB
    )
    assert pristine.device_read_bytes_per_client_byte == 0
    assert prefilled.device_write_bytes_per_client_byte == 9 * (4 * KIB + meta) / (
        4 * KIB
    )
    assert prefilled.device_read_bytes_per_client_byte == 6
    # The second write finds the object as the first one left it.
    both = simulate(pool, listed(last * 2, queue_depth=1), prefilled=False).row
    assert both.device_write_bytes_per_client_byte * 2 == pytest.approx(
        pristine.device_write_bytes_per_client_byte
        + prefilled.device_write_bytes_per_client_byte
    )


@pytest.mark.parametrize("write", [False, True])
def test_a_bare_device_moves_whole_blocks(models, make_pool, write):
    pool = make_pool(models, "none")
    row = simulate(pool, listed([(write, index * MIB, KIB) for index in range(20)])).row
    moved, other = ("write", "read") if write else ("read", "write")
    assert getattr(row, f"device_{moved}_bytes_per_client_byte") == 4
    assert getattr(row, f"device_{other}_bytes_per_client_byte") == 0
    assert (
        row.private_net_bytes_per_client_byte
        == row.public_net_bytes_per_client_byte
        == 0
    )


def test_accounts_are_sums_over_plans(uncached, make_pool):
    pool = make_pool(uncached, "rs:4,2", groups=3, hosts=[0, 0, 1, 1, 2, 2])
    workload = Synthetic(
        pattern="rand",
        block_bytes=4 * KIB,
        image_bytes=64 * MIB,
        read_fraction=0.5,
        requests=50,
        queue_depth=8,
    ).start()
    book = pool.book()
    planner = RequestPlanner(pool, book, workload, prefilled=True)
    stream = simulate(
        pool,
        Synthetic(
            pattern="rand",
            block_bytes=4 * KIB,
            image_bytes=64 * MIB,
            read_fraction=0.5,
            requests=50,
            queue_depth=8,
        ).start(),
    ).engine_run.streams[0]
    planner.take(50)
    found = account(stream, book)
    by_hand = dict.fromkeys(found, 0)
    for template, binding in zip(
        stream.templates.tolist(), stream.bindings.tolist(), strict=True
    ):
        path = book.templates[template]
        row = [*(book.bindings[binding] >= 0).tolist(), True]
        for step in range(path.steps):
            if row[path.roles[step]]:
                for column, name in enumerate(list(found)[:-1]):
                    by_hand[name] += int(path.amounts[step, column])
                by_hand["uses"] += int(path.words[step] == 1)
    assert found == by_hand


def test_a_sample_sees_the_objects_as_all_requests_leave_them(models, make_pool):
    """Given random writes that fill objects, when one of four is planned.

    Then it has the graph that it has among all of them, and of the first writes one of four is there.
    """
    pool = make_pool(models, "rs:4,2", groups=4, object_bytes=256 * KIB)
    load = Synthetic(
        pattern="rand",
        block_bytes=4 * KIB,
        image_bytes=16 * MIB,
        read_fraction=0,
        requests=800,
        queue_depth=4,
    )
    requests = {}
    for every in (1, 4):
        planner = RequestPlanner(
            pool, pool.book(), load.start(), prefilled=False, every=every
        )
        for _ in range(4):
            planner.take(200 // every)
        planned = planner.planned
        shapes = [planner._graphs._shapes[number] for number in planned.shapes]
        requests[every] = list(zip(planned.objects.tolist(), shapes, strict=True))
    # The sample is among all, in their order.
    rest = iter(enumerate(requests[1]))
    sample = [
        next(row for row, other in rest if other == request) for request in requests[4]
    ]
    first = np.unique([of for of, _ in requests[1]], return_index=True)[1]
    assert len(first) == 64
    assert len(np.intersect1d(sample, first)) == 64 / 4
    assert len(sample) == 800 / 4


def test_a_sample_does_not_depend_on_the_chunks_of_the_requests(models, make_pool):
    # Given 20 writes, each to another object, of which one of four is planned
    pool = make_pool(models, "rep:3")
    workload = listed([(True, number * 4 * MIB, 4 * KIB) for number in range(20)])
    planner = RequestPlanner(pool, pool.book(), workload, prefilled=True, every=4)
    # When they come in parts that are no multiples of four
    for count in (5, 7, 8):
        planner.plan(workload.take(count))
    # Then it is every fourth of all.
    assert planner.planned.objects.tolist() == [0, 4, 8, 12, 16]


def test_a_run_of_a_sample_takes_the_course_of_the_whole_run(models, make_pool):
    """Given an image that fills, when one of four requests runs in a quarter of the time."""
    pool = make_pool(models, "rs:4,2", groups=16, object_bytes=256 * KIB)
    load = Synthetic(
        pattern="rand",
        block_bytes=4 * KIB,
        image_bytes=1024 * MIB,
        read_fraction=0,
        requests=None,
        queue_depth=4,
    )

    def written(every: int, until_ns: int) -> float:
        """Return the bytes that drives write for a byte of the clients."""
        source = partial(RequestPlanner, prefilled=False, every=every)
        result = simulate(
            pool, load.start(), prefilled=False, until_ns=until_ns, foreground=source
        )
        return result.accepted().row.device_write_bytes_per_client_byte

    whole_ns = 4_000_000_000
    whole = written(1, whole_ns)
    assert written(4, whole_ns // 4) == pytest.approx(whole, rel=0.05)
    # A quarter of the run without the other requests fills more for each of them.
    assert written(1, whole_ns // 4) > 1.2 * whole


@pytest.mark.parametrize("largest", [3, 1 << 40])
def test_rows_are_equal_where_their_codes_are(largest):
    # Given rows of four values each, of which 40-bit ones do not fit into one number
    values = np.random.default_rng(7).integers(0, 3, size=(4, 500))
    columns = np.where(values == 2, largest, values)
    codes = row_codes(list(columns))
    assert codes.min() >= 0
    number_of_row = {}
    for row, code in zip(columns.T.tolist(), codes.tolist(), strict=True):
        assert number_of_row.setdefault(tuple(row), code) == code
    assert len(set(number_of_row.values())) == len(number_of_row)
