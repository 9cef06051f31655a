"""Frames, serialisation and what counters show."""

import pytest

from stripesim.models.nic import NicModel
from stripesim.models.provenance import Provenance

NUMBERS = {
    "rate_bits_per_s": 8e9,  # One byte per nanosecond.
    "frame_payload_bytes": 1000,
    "frame_overhead_bytes": 0,
    "frame_header_bytes": 0,
    "latency_ns": 0.0,
}


def nic(**numbers):
    values = {**NUMBERS, **numbers}
    return NicModel(
        **values, provenance=dict.fromkeys(values, Provenance("assumed", "a test"))
    )


@pytest.mark.parametrize(
    ("size_bytes", "frames"),
    [(0, 1), (1, 1), (1000, 1), (1001, 2), (2000, 2), (2001, 3)],
)
def test_frames_are_whole_and_an_empty_message_takes_one(size_bytes, frames):
    assert nic().frames(size_bytes) == frames


@pytest.mark.parametrize("size_bytes", [1, 999, 1001, 4096])
def test_without_overhead_a_byte_takes_its_time_and_counts_once(size_bytes):
    assert nic().serialise_ns(size_bytes) == pytest.approx(size_bytes)
    assert nic().traffic_bytes(size_bytes) == size_bytes


def test_rate_is_in_bits():
    assert nic(rate_bits_per_s=1e9).serialise_ns(1000) == pytest.approx(8000)


def test_overhead_takes_time_once_per_frame_but_is_not_traffic():
    card = nic(frame_overhead_bytes=90)
    assert card.serialise_ns(2500) == pytest.approx(2500 + 3 * 90)
    assert card.traffic_bytes(2500) == 2500


def test_headers_are_traffic_once_per_frame_but_take_no_further_time():
    card = nic(frame_header_bytes=52)
    assert card.serialise_ns(2500) == pytest.approx(2500)
    assert card.traffic_bytes(2500) == 2500 + 3 * 52


def test_latency_is_separate_from_serialisation():
    assert nic(latency_ns=10_000.0).serialise_ns(1000) == nic().serialise_ns(1000)


def test_ten_gigabit_ethernet_carries_94_percent_of_its_rate():
    # 1448 payload bytes of 1538 on the wire: the textbook goodput of TCP over an MTU of 1500.
    card = nic(rate_bits_per_s=10e9, frame_payload_bytes=1448, frame_overhead_bytes=90)
    size_bytes = 1448 * 1000
    assert size_bytes * 8 / (card.serialise_ns(size_bytes) * 1e-9) == pytest.approx(
        10e9 * 1448 / 1538
    )


@pytest.mark.parametrize("name", ["rate_bits_per_s", "frame_payload_bytes"])
def test_refuses_zero(name):
    with pytest.raises(ValueError, match=f"^NicModel: {name}: got 0,"):
        nic(**{name: 0})


@pytest.mark.parametrize(
    "name", ["frame_overhead_bytes", "frame_header_bytes", "latency_ns"]
)
def test_refuses_negative(name):
    with pytest.raises(ValueError, match=f"^NicModel: {name}: got -1,"):
        nic(**{name: -1})
