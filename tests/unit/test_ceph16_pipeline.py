"""The write pipeline of the generation pacific, counted by hand on the measured cluster."""

from dataclasses import replace

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.object_store.store import DEFERRED, FRESH, IN_MEMORY, STORED
from stripesim.scenarios.studies.ceph16.cluster import build_pool, models_for
from stripesim.sim.ceph.clients.workload import Replay, Requests
from stripesim.sim.run import simulate

KIB = 1024
UNIT = 4 * KIB


def writes(offsets, length):
    offsets = np.asarray(offsets, dtype=np.int64)
    return Requests(
        is_write=np.ones(len(offsets), dtype=bool),
        images=np.zeros(len(offsets), dtype=np.int64),
        offsets_bytes=offsets,
        lengths_bytes=np.full(len(offsets), length, dtype=np.int64),
    )


def ran(
    scheme,
    requests,
    queue_depth,
    *,
    prefilled=False,
    unit=UNIT,
    engine="compiled",
    models=None,
):
    pool = build_pool(scheme, unit, models=models)
    return simulate(
        pool,
        Replay(requests, queue_depth=queue_depth),
        prefilled=prefilled,
        engine=engine,
    )


def test_at_depth_1_every_write_into_a_started_stripe_reads_it():
    # Six 4 KiB writes fill a stripe of RS(6,3): the first finds nothing to read, five read six chunks each.
    row = ran("rs:6,3", writes(np.arange(12) * UNIT, UNIT), 1).row
    assert row.device_read_bytes_per_client_byte == pytest.approx(5 * 6 / 6)
    assert row.device_data_write_bytes_per_client_byte == 9


def test_in_flight_stripes_are_not_read():
    row = ran("rs:6,3", writes(np.arange(12) * UNIT, UNIT), 12).row
    assert row.device_read_bytes_per_client_byte == 0
    # An overwritten stripe is read once, by the first of those that are in flight together.
    row = ran("rs:6,3", writes(np.arange(12) * UNIT, UNIT), 12, prefilled=True).row
    assert row.device_read_bytes_per_client_byte == pytest.approx(2 * 6 / 12)


def test_a_write_past_the_end_fills_the_gap():
    # 41 stripes of 24 KiB precede the one with byte 1,000,000.
    row = ran("rs:6,3", writes([244 * UNIT], UNIT), 1).row
    stripes = 244 * UNIT // (6 * UNIT) + 1
    assert row.device_data_write_bytes_per_client_byte == 9 * stripes


@pytest.mark.parametrize(("queue_depth", "rounds"), [(1, 12), (12, 1)])
def test_a_drained_pipeline_rolls_forward_once(queue_depth, rounds):
    plain = models_for(parse_scheme("rs:6,3"))
    result = ran("rs:6,3", writes(np.arange(12) * UNIT, UNIT), queue_depth)
    assert len(result.engine_run.spawned[0].completed_ns) == rounds
    # On the wire it sends one message to each of eight members, and no more.
    silent = replace(plain, messages=replace(plain.messages, roll_forward_bytes=0))
    without = ran(
        "rs:6,3", writes(np.arange(12) * UNIT, UNIT), queue_depth, models=silent
    )
    saved_per_byte = (
        result.row.private_net_bytes_per_client_byte
        - without.row.private_net_bytes_per_client_byte
    )
    saved = saved_per_byte * 12 * UNIT
    assert saved == pytest.approx(
        rounds * 8 * plain.messages.roll_forward_bytes, rel=1e-9
    )


@pytest.mark.parametrize(
    ("scheme", "unit", "chunks", "gathered"),
    [("rs:4,2", 16 * KIB, 6, 4), ("rs:8,3", 8 * KIB, 11, 8)],
)
def test_other_codes_and_stripe_units(scheme, unit, chunks, gathered):
    row = ran(scheme, writes([3 * unit + UNIT], UNIT), 1, prefilled=True, unit=unit).row
    assert row.device_data_write_bytes_per_client_byte == chunks * unit / UNIT
    assert row.device_read_bytes_per_client_byte == gathered * unit / UNIT


def test_both_engines_agree_on_pipelines():
    offsets = np.random.default_rng(3).integers(0, 300, 80) * UNIT
    for prefilled in (False, True):
        one, other = (
            ran(
                "rs:6,3",
                writes(offsets, 3 * UNIT),
                16,
                prefilled=prefilled,
                engine=engine,
            )
            for engine in ("compiled", "simpy")
        )
        assert one.sha256 == other.sha256
        assert one.uses == other.uses
        left, right = (
            {k: v for k, v in r.row.as_dict().items() if k != "engine_wall_s"}
            for r in (one, other)
        )
        assert left == right


def test_syncs_share_the_end_of_the_log():
    # Six replicas' transactions at depth 1 are six syncs; each writes its metadata and the shared blocks.
    models = models_for(parse_scheme("rep:3"))
    result = ran("rep:3", writes([0, 8 << 20], UNIT), 1)
    log_bytes = models.store.metadata_bytes + models.store.sync_log_bytes
    assert result.row.device_write_bytes_per_client_byte == pytest.approx(
        3 * (UNIT + log_bytes) / UNIT
    )


@pytest.mark.parametrize(
    ("state", "read", "data", "deferred", "logged"),
    [
        (FRESH, 0, UNIT, 0, 0),
        (STORED, UNIT, 0, UNIT, UNIT),
        (IN_MEMORY, 0, 0, UNIT, UNIT),
        (DEFERRED, 0, 0, 0, UNIT),
    ],
)
def test_each_state_of_a_partial_unit(state, read, data, deferred, logged):
    store = models_for(parse_scheme("rep:3")).store
    io = store.partial_write_io(KIB, KIB, (state, state))
    assert (io.read_bytes, io.data_bytes, io.deferred_bytes) == (read, data, deferred)
    assert io.log_bytes == store.metadata_bytes + logged
    # Both ends partial and a whole unit between them.
    io = store.partial_write_io(KIB, 2 * UNIT, (state, FRESH))
    assert (io.read_bytes, io.data_bytes, io.deferred_bytes) == (
        read,
        data + 2 * UNIT,
        deferred,
    )


def test_small_overwrites_read_a_unit_once_and_defer_it_once():
    # Four 1 KiB writes to one unit of three replicas: the unit is read once and goes to its place once.
    row = ran("rep:3", writes(np.arange(4) * KIB, KIB), 4, prefilled=True).row
    assert row.device_read_bytes_per_client_byte == 3
    assert row.device_data_write_bytes_per_client_byte == 3


def test_a_code_that_does_not_fit_is_reported_in_one_line():
    with pytest.raises(ValueError, match=r"rs:14,3: got 17 shards.*16\b"):
        build_pool("rs:14,3", UNIT)
