"""Sizes as text: each suffix has one meaning."""

import pytest

from stripesim.models.problems import ProblemsError
from stripesim.scenarios.schema.units import format_size, parse_size_bytes


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        (0, 0),
        (4096, 4096),
        ("4096", 4096),
        ("512B", 512),
        ("4k", 4096),
        ("4K", 4096),
        ("4KiB", 4096),
        ("4kB", 4000),
        ("4KB", 4000),
        ("4MiB", 4 * 2**20),
        ("4M", 4 * 2**20),
        ("1MB", 10**6),
        ("1.5 MiB", 3 * 2**19),
        ("100GB", 10**11),
        ("2TiB", 2**41),
        ("2PiB", 2**51),
        ("0.5PB", 5 * 10**14),
    ],
)
def test_sizes_read(text: int | str, size_bytes: int) -> None:
    assert parse_size_bytes(text) == size_bytes


@pytest.mark.parametrize(
    "value",
    [
        "",
        "k",
        "4q",
        "-1",
        "4ki",
        "4 k k",
        "1e3",
        "0.3B",
        "1.0001k",
        "9EiB",
        "8388608TiB",
        "٤k",
        -1,
        2**63,
    ],
)
def test_bad_sizes_are_reported_with_value_and_form(value: int | str) -> None:
    with pytest.raises(ProblemsError, match="got ") as caught:
        parse_size_bytes(value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [True, 4.0, None, [4]])
def test_other_types_are_not_sizes(value: object) -> None:
    with pytest.raises(ProblemsError, match="wanted"):
        parse_size_bytes(value)  # type: ignore[arg-type]


def test_sizes_are_written_in_the_shortest_exact_unit() -> None:
    sizes = (0, 1, 1024, 1000, 131072, 10**11, 4097, 3 * 10**15, 2**63 - 1)
    texts = [
        "0B",
        "1B",
        "1KiB",
        "1kB",
        "128KiB",
        "100GB",
        "4097B",
        "3PB",
        "9223372036854775807B",
    ]
    assert [format_size(size) for size in sizes] == texts
