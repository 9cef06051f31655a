"""Stripe geometry and scheme texts, counted by hand."""

import pytest

from stripesim.models.coding import StripeGeometry, parse_scheme
from stripesim.models.problems import SchemeError

GEOMETRY = StripeGeometry(k=6, stripe_unit_bytes=4096)


@pytest.mark.parametrize(
    ("offset", "length", "wanted"),
    [
        (0, 1, (0, 1)),
        (24575, 1, (0, 1)),
        (24575, 2, (0, 2)),
        (24576, 24576, (1, 2)),
        (49152, 0, (2, 2)),
    ],
)
def test_stripe_range(offset: int, length: int, wanted: tuple[int, int]) -> None:
    assert GEOMETRY.stripe_range(offset, length) == wanted


@pytest.mark.parametrize(
    ("size", "shard"),
    [(0, 0), (1, 4096), (24576, 4096), (24577, 8192), (4 << 20, 700416)],
)
def test_shards_hold_whole_chunks(size: int, shard: int) -> None:
    assert GEOMETRY.shard_size_bytes(size) == shard


def test_bad_geometry_is_reported_with_its_value() -> None:
    with pytest.raises(SchemeError, match=r"k: got 0.*1\b"):
        StripeGeometry(k=0, stripe_unit_bytes=4096)
    with pytest.raises(SchemeError, match="stripe_unit_bytes: got -1"):
        StripeGeometry(k=1, stripe_unit_bytes=-1)
    with pytest.raises(SchemeError, match="offset_bytes: got -5"):
        GEOMETRY.stripe_range(-5, 1)


@pytest.mark.parametrize(
    ("text", "name", "kind", "k", "m", "overhead", "tolerated"),
    [
        ("rep:3", "rep:3", "replicated", 1, 2, 3.0, 2),
        ("rep:1", "rep:1", "replicated", 1, 0, 1.0, 0),
        (" none ", "none", "replicated", 1, 0, 1.0, 0),
        ("rs:6,3", "rs:6,3", "erasure", 6, 3, 1.5, 3),
        ("rs:010,4", "rs:10,4", "erasure", 10, 4, 1.4, 4),
        ("rs:253,3", "rs:253,3", "erasure", 253, 3, 256 / 253, 3),
    ],
)
def test_schemes_parse(
    text: str, name: str, kind: str, k: int, m: int, overhead: float, tolerated: int
) -> None:
    scheme = parse_scheme(text)
    assert (scheme.name, scheme.kind, scheme.k, scheme.m) == (name, kind, k, m)
    assert scheme.width == k + m
    assert scheme.storage_overhead == pytest.approx(overhead)
    assert scheme.failures_tolerated == tolerated
    assert parse_scheme(scheme.name) == scheme


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "foo",
            "rep:N, rs:k,m",
        ),
        ("", "rep:N, rs:k,m"),
        ("rs", "rep:N, rs:k,m"),
        ("none:1", "rep:N, rs:k,m"),
        ("rs:6", "rs:k,m"),
        ("rs:6,3,1", "rs:k,m"),
        ("rs:6,-3", "rs:k,m"),
        ("rs:6, 3", "rs:k,m"),
        ("rep:", "rep:N"),
        ("rep:٣", "rep:N"),
        ("rs:0,3", r"k: got 0.*1\b"),
        ("rs:6,0", r"m: got 0.*1\b"),
        ("rs:250,7", r"k \+ m: got 257.*256\b"),
        ("rep:0", r"copies: got 0.*1.*256\b"),
    ],
)
def test_bad_schemes_give_one_clear_line(text: str, wanted: str) -> None:
    with pytest.raises(SchemeError, match=wanted) as caught:
        parse_scheme(text)
    assert "\n" not in str(caught.value)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rs:0,2", "k of at least 1"),
        ("rs:300,3", "k + m of at most 256"),
        ("lrc:4,3,9", "locality of 1 to k - 1 = 3"),
    ],
)
def test_what_is_wanted_names_the_number_of_the_scheme(text, wanted):
    # A scenario shows it without the name of the number: schemes: got "rs:0,2", wanted ...
    with pytest.raises(SchemeError) as caught:
        parse_scheme(text)
    assert caught.value.problems[0].wanted == wanted
