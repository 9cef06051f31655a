"""Processor time, client, message sizes, PG lock: small models, each refusal and each term."""

from dataclasses import fields

import pytest

from stripesim.models.clock import round_ns
from stripesim.models.cpu import ClientModel, CpuModel
from stripesim.models.messages import MessageModel
from stripesim.models.pg_lock import PgLockModel
from stripesim.models.provenance import Provenance
from stripesim.models.threads import ThreadModel

CPU_NUMBERS = {f.name: 0.0 for f in fields(CpuModel) if f.name != "provenance"} | {
    "cores_per_host": 1
}
CLIENT_NUMBERS = {f.name: 1 for f in fields(ClientModel) if f.name != "provenance"}
MESSAGE_NUMBERS = {f.name: 1 for f in fields(MessageModel) if f.name != "provenance"}


def found(numbers):
    return {
        **numbers,
        "provenance": dict.fromkeys(numbers, Provenance("assumed", "a test")),
    }


def cpu(**numbers):
    return CpuModel(**found({**CPU_NUMBERS, **numbers}))


def lock(scope="commit"):
    return PgLockModel(scope=scope, provenance={})


def test_a_message_costs_its_base_and_its_bytes():
    assert cpu().message_ns(4096) == 0
    assert cpu(message_base_ns=100.0).message_ns(4096) == 100
    assert cpu(message_ns_per_byte=0.5).message_ns(4096) == 2048
    assert cpu(message_base_ns=100.0, message_ns_per_byte=0.5).message_ns(4096) == 2148
    assert cpu(message_base_ns=100.0, frame_ns=7.0).message_ns(4096, frames=3) == 121


@pytest.mark.parametrize(
    "name", [name for name in CPU_NUMBERS if name != "cores_per_host"]
)
def test_cpu_refuses_negative_times(name):
    with pytest.raises(ValueError, match=f"^CpuModel: {name}: got -1,"):
        cpu(**{name: -1})


def test_cpu_refuses_no_core_and_a_fraction_above_one():
    with pytest.raises(ValueError, match=r"cores_per_host: got 0.*0\b"):
        cpu(cores_per_host=0)
    with pytest.raises(ValueError, match=r"user_fraction: got 1.5.*0.*1\b"):
        cpu(user_fraction=1.5)
    assert cpu(user_fraction=1.0).user_fraction == 1


def test_client_refuses_no_thread_and_negative_time():
    with pytest.raises(ValueError, match=r"submit_threads_count: got 0.*0\b"):
        ClientModel(**found({**CLIENT_NUMBERS, "submit_threads_count": 0}))
    with pytest.raises(ValueError, match=r"submit_ns: got -1.*0\b"):
        ClientModel(**found({**CLIENT_NUMBERS, "submit_ns": -1}))


@pytest.mark.parametrize("name", list(MESSAGE_NUMBERS))
def test_messages_refuse_negative_sizes(name):
    with pytest.raises(
        ValueError,
        match=f"^MessageModel: {name}: got -1,",
    ):
        MessageModel(**found({**MESSAGE_NUMBERS, name: -1}))


def test_lock_knows_its_scopes():
    assert [lock("coded").of_pool(erasure=coded).scope for coded in (True, False)] == [
        "commit",
        "dispatch",
    ]
    assert lock("none").of_pool(erasure=True).scope == "none"
    with pytest.raises(
        ValueError,
        match="scope: got 'ever'",
    ):
        lock("ever")


def test_threads_refuse_an_osd_without_any_and_negative_costs():
    numbers = {
        "op_shards_count": 8,
        "op_threads_per_shard_count": 2,
        "messenger_threads_count": 3,
        "wake_ns": 1000.0,
        "sync_wakes_count": 0,
        "cool_ns": 0,
        "sync_ns": 0,
        "queue_wakes_count": 1,
        "ec_wakes_count": 0,
        "peer_acks_count": 1,
        "preemptions_per_wake_count": 0,
        "lock_waits_per_thread_count": 0,
        "hand_over_ns": 0.0,
        "slice_ns": 0.0,
        "finish_threads_count": 1,
    }
    assert ThreadModel(**found(numbers)).wake_ns == 1000
    with pytest.raises(ValueError, match="op_shards_count: got 0"):
        ThreadModel(**found({**numbers, "op_shards_count": 0}))
    with pytest.raises(ValueError, match="wake_ns: got -1"):
        ThreadModel(**found({**numbers, "wake_ns": -1}))
    with pytest.raises(ValueError, match="sync_wakes_count: got a number above 0"):
        ThreadModel(**found({**numbers, "sync_wakes_count": 2}))


@pytest.mark.parametrize(
    ("duration_ns", "whole_ns"),
    [
        (0, 0),
        (0.5, 0),
        (1.5, 2),
        (2.5, 2),
        (2.500001, 3),
        (7, 7),
        (2**53 - 1, 2**53 - 1),
    ],
)
def test_clock_rounds_halves_to_even(duration_ns, whole_ns):
    assert round_ns(duration_ns) == whole_ns
    assert type(round_ns(duration_ns)) is int


@pytest.mark.parametrize(
    "duration_ns", [-1, -1e-9, 2.0**53, float("inf"), float("nan")]
)
def test_the_clock_refuses_invalid_durations(duration_ns):
    with pytest.raises(ValueError, match=r"^duration: got .* ns.*0.*2\*\*53"):
        round_ns(duration_ns)
