"""Each term of the drive's service time alone."""

from dataclasses import replace

import pytest

from stripesim.models.provenance import Provenance
from stripesim.models.ssd import FACTOR_POINTS, SsdModel

FLAT = (1.0,) * FACTOR_POINTS
ZERO = {
    "channels": 1,
    "raid0_drives": 1,
    "read_base_ns": 0.0,
    "read_ns_per_byte": 0.0,
    "write_base_ns": 0.0,
    "write_ns_per_byte": 0.0,
    "flush_base_ns": 0.0,
    "steady_state_write_factor": 1.0,
    "ftl_write_factor": 1.0,
    "block_bytes": 512,
    "write_servers_count": 0,
    "link_ns_per_byte": 0.0,
    "read_quantiles": FLAT,
    "write_quantiles": FLAT,
}


def drive(**numbers):
    values = {**ZERO, **numbers}
    return SsdModel(
        **values, provenance=dict.fromkeys(values, Provenance("assumed", "a test"))
    )


def times(ssd, size_bytes=1024):
    return ssd.read_ns(size_bytes), ssd.write_ns(size_bytes), ssd.sync_ns(size_bytes)


def test_with_all_terms_zero_all_durations_are_zero():
    assert times(drive()) == (0, 0, 0)


@pytest.mark.parametrize(
    ("term", "value", "expected"),
    [
        ("read_base_ns", 70.0, (70, 0, 0)),
        ("write_base_ns", 70.0, (0, 70, 70)),
        ("read_ns_per_byte", 2.0, (2048, 0, 0)),
        ("write_ns_per_byte", 2.0, (0, 2048, 2048)),
        ("flush_base_ns", 70.0, (0, 0, 70)),
        ("steady_state_write_factor", 3.0, (0, 0, 0)),
        ("ftl_write_factor", 3.0, (0, 0, 0)),
        ("raid0_drives", 3, (0, 0, 0)),
    ],
)
def test_each_term_alone(term, value, expected):
    assert times(drive(**{term: value})) == expected


def test_steady_state_multiplies_writes_but_neither_reads_nor_the_flush():
    numbers = {
        "read_base_ns": 5.0,
        "write_base_ns": 10.0,
        "write_ns_per_byte": 0.5,
        "flush_base_ns": 7.0,
    }
    fresh, worn = drive(**numbers), drive(**numbers, steady_state_write_factor=2.0)
    assert times(fresh) == (5, 10 + 512, 10 + 512 + 7)
    assert times(worn) == (5, 2 * (10 + 512), 2 * (10 + 512) + 7)


@pytest.mark.parametrize(
    ("size_bytes", "blocks_bytes"), [(0, 0), (1, 512), (512, 512), (513, 1024)]
)
def test_sizes_are_rounded_up_to_blocks(size_bytes, blocks_bytes):
    ssd = drive(read_ns_per_byte=1.0, write_ns_per_byte=1.0)
    assert ssd.blocks_bytes(size_bytes) == blocks_bytes
    assert ssd.read_ns(size_bytes) == ssd.write_ns(size_bytes) == blocks_bytes


def test_servers_are_channels_over_all_drives():
    assert drive(channels=4, raid0_drives=3).servers == 12


@pytest.mark.parametrize(
    "name",
    [
        "channels",
        "raid0_drives",
        "block_bytes",
        "steady_state_write_factor",
        "ftl_write_factor",
    ],
)
@pytest.mark.parametrize("value", [0, -1])
def test_refuses_values_that_are_not_positive(name, value):
    with pytest.raises(ValueError, match=rf"^SsdModel: {name}: got {value}.*0$"):
        drive(**{name: value})


@pytest.mark.parametrize(
    "name",
    [
        "read_base_ns",
        "read_ns_per_byte",
        "write_base_ns",
        "write_ns_per_byte",
        "flush_base_ns",
    ],
)
def test_refuses_negative_times(name):
    with pytest.raises(ValueError, match=rf"^SsdModel: {name}: got -1,"):
        drive(**{name: -1})
    assert drive(**{name: 0})


@pytest.mark.parametrize("name", ["read_quantiles", "write_quantiles"])
@pytest.mark.parametrize(
    ("points", "message"),
    [
        ((1.0,) * 255, "got 255 points of mean 1.0000"),
        ((), "got 0 points of mean 0.0000"),
        ((1.01,) * 256, "got 256 points of mean 1.0100"),
        ((float("nan"),) * 256, "got 256 points of mean nan"),
    ],
)
def test_refuses_distributions_of_another_length_or_mean(name, points, message):
    with pytest.raises(
        ValueError,
        match=f"^SsdModel: {name}: {message},.* 256 .* 1,.* 0$",
    ):
        drive(**{name: points})


def test_refuses_a_distribution_with_negative_times():
    points = (-1.0, 3.0) * 128
    with pytest.raises(ValueError, match="read_quantiles"):
        drive(read_quantiles=points)


def test_replacing_a_number_checks_it_again():
    with pytest.raises(ValueError, match="channels: got 0"):
        replace(drive(), channels=0)


@pytest.mark.parametrize("size_bytes", [1, 4096, 32768, 65535, 65536, 70000, 131072])
def test_one_request_is_spread_over_the_channels_without_loss(models, size_bytes):
    parts = models.ssd.parts_bytes(size_bytes)
    assert sum(parts) == size_bytes
    assert len(parts) == max(1, size_bytes // 32768)
    assert all(part % models.ssd.block_bytes == 0 for part in parts[:-1])
    assert max(parts) - min(parts) < 2 * models.ssd.block_bytes


def test_parts_do_not_exceed_the_servers(models, change):
    lone = change(models, ssd={"channels": 1, "raid0_drives": 1}).ssd
    assert lone.parts_bytes(131072) == [131072]
