"""The proxy over a key-value store: how writes become keys, and that operations run one after another."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.problems import ProblemsError
from stripesim.scenarios.studies.erasurebench2016 import parameters
from stripesim.sim.systems.kv_proxy.costs import base64_bytes
from stripesim.sim.systems.kv_proxy.plan import (
    SLOTS,
    draw_slots,
    even_owners,
    extraction,
    gets,
    keys_of,
    read_operations,
    sequential,
    sets,
    write_operations,
)
from stripesim.sim.systems.kv_proxy.proxy import EXISTS, GET, SET, WORK, run_operations

K = 10


def planned(writes, width, nodes=20, code="RS"):
    system = parameters.system(nodes)
    keys = keys_of(writes, system.aggregation, width=width)
    placed = even_owners(nodes)[
        draw_slots(len(keys.stripes), width, np.random.default_rng(0))
    ]
    return (
        system,
        keys,
        placed,
        write_operations(system, writes, keys, placed, code=code),
    )


def test_base64_grows_by_a_third_rounded_up():
    assert [base64_bytes(size) for size in (0, 1, 3, 4, 12)] == [0, 4, 4, 8, 16]


def test_a_file_of_ten_bytes_makes_one_key_of_sixteen_characters_per_position():
    system, keys, _, operations = planned(sequential(10, 10, k=K), 14)
    assert keys.count == 14 and keys.stored_bytes(system.aggregation) == 14 * 16
    assert (operations.kinds == SET).sum() == 14 and (
        operations.kinds == GET
    ).sum() == 0


def test_writes_of_128_kib_need_one_buffer_without_parity_and_two_with():
    writes = sequential(1 << 17, 1 << 17, k=K)
    model = parameters.aggregation()
    assert [
        len(keys_of(writes, model, width=width).stripes) for width in (10, 14, 16)
    ] == [1, 2, 2]


def test_a_write_inside_a_stripe_reads_the_old_data():
    writes = sequential(25, 13, k=K)
    assert writes.stripes.tolist() == [2, 2] and writes.restored.tolist() == [0, 3]
    _, _, _, operations = planned(writes, 14)
    assert (operations.kinds == GET).sum() == 3


@given(sizes=st.lists(st.integers(1, 40_000), min_size=1, max_size=12))
def test_extraction_writes_every_byte_once_and_never_past_a_record(sizes):
    model = parameters.aggregation()
    writes = extraction(np.array(sizes), model, k=K)
    written = np.bincount(writes.files, weights=writes.size_bytes, minlength=len(sizes))
    assert written.tolist() == sizes
    assert writes.size_bytes.max() <= model.extract_record_bytes
    # A write that begins inside a stripe touches it again, so stripes are at least the data's.
    assert (writes.stripes * K >= writes.size_bytes + writes.restored).all()
    assert (writes.stripes * K < writes.size_bytes + writes.restored + K).all()


@given(nodes=st.integers(1, 200), width=st.sampled_from([10, 14, 16]))
def test_positions_have_separate_slots_that_are_spread_evenly(nodes, width):
    slots = draw_slots(50, width, np.random.default_rng(nodes))
    each = SLOTS // width
    assert (slots // each == np.arange(width)).all()
    shares = np.bincount(even_owners(nodes), minlength=nodes)
    assert shares.sum() == SLOTS and shares.max() - shares.min() <= 1


@given(
    size=st.integers(1, 5000),
    code=st.sampled_from([("NC", 10), ("RS", 14), ("LRC", 16)]),
)
def test_time_is_the_sum_of_work_requests_and_wire(size, code):
    system, _, _, operations = planned(
        sequential(size, 700, k=K), code[1], code=code[0]
    )
    run = run_operations(system, operations)
    nic, served = system.nic, system.model.service_ns(system.nodes)
    total = 0
    for kind, sent, answered, work in zip(
        operations.kinds.tolist(),
        operations.sent_bytes.tolist(),
        operations.answered_bytes.tolist(),
        operations.work_ns.tolist(),
        strict=True,
    ):
        wire = sum(
            nic.serialise_ns(n) + nic.serialise_ns(min(n, nic.frame_payload_bytes))
            for n in (sent, answered)
        )
        total += work if kind == WORK else served + wire
    # Each step is rounded to a nanosecond separately.
    assert run.elapsed_ns == pytest.approx(total, abs=3 * len(operations))
    assert run.binned(10**8).sum() == run.traffic_bytes.sum()


def test_both_engines_complete_every_operation_at_the_same_time():
    system, _, _, operations = planned(sequential(3000, 900, k=K), 14)
    listed = [
        run_operations(system, operations, engine=engine).completed_ns
        for engine in ("compiled", "simpy")
    ]
    assert len(listed[0]) == len(operations) and (listed[0] == listed[1]).all()
    assert (np.diff(listed[0]) >= 0).all()


def test_a_read_looks_for_every_position_and_fetches_its_sources():
    system, keys, placed, _ = planned(sequential(100, 100, k=K), 14)
    found = read_operations(
        system,
        keys,
        placed,
        code="RS",
        data_bytes=np.array([100]),
        sources=[tuple(range(K))],
    )
    assert [(found.kinds == kind).sum() for kind in (EXISTS, GET, WORK)] == [14, K, 1]
    lost = read_operations(
        system, keys, placed, code="RS", data_bytes=np.array([100]), sources=[()]
    )
    assert (lost.kinds == GET).sum() == 0


def test_more_nodes_make_a_request_slower_as_figure_3_shows():
    operations = sets(parameters.system(20), np.zeros(100, dtype=np.int64), 500)
    times = [
        run_operations(parameters.system(nodes), operations).elapsed_ns
        for nodes in (20, 60, 100)
    ]
    assert times == sorted(times) and times[0] < times[-1]


def test_wrong_runs_are_refused_in_one_line():
    system = parameters.system(3)
    operations = gets(system, np.array([3]), 10)
    with pytest.raises(ProblemsError, match=r"nodes: got 3 to 3.*0.*2\b"):
        run_operations(system, operations)
    with pytest.raises(ProblemsError, match="got no operations"):
        run_operations(system, gets(system, np.zeros(0, dtype=np.int64), 10))
    with pytest.raises(ProblemsError, match="nodes: got 0"):
        replace(system, nodes=0)
