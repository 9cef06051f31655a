"""No model takes a number without saying where it comes from."""

from dataclasses import dataclass

import pytest

from stripesim.models.provenance import KINDS, MeasuredModel, Provenance, unit_of

ORIGIN = Provenance("measured", "a stopwatch", (1.0, 3.0))


@dataclass(frozen=True, kw_only=True)
class Lamp(MeasuredModel):
    warm_up_ns: float
    bulbs_count: int
    colour: str
    lit: bool = False


def lamp(**provenance):
    return Lamp(warm_up_ns=2.0, bulbs_count=1, colour="red", provenance=provenance)


def test_text_and_switches_need_no_provenance():
    assert lamp(warm_up_ns=ORIGIN, bulbs_count=ORIGIN).number_names() == [
        "warm_up_ns",
        "bulbs_count",
    ]


def test_refuses_a_number_without_provenance():
    with pytest.raises(ValueError, match=r"^Lamp: .* bulbs_count$"):
        lamp(warm_up_ns=ORIGIN)
    with pytest.raises(ValueError, match=r"^Lamp: .* bulbs_count, warm_up_ns$"):
        lamp()


def test_refuses_provenance_for_unknown_fields():
    with pytest.raises(ValueError, match=r"^Lamp: .* colour, watts$"):
        lamp(warm_up_ns=ORIGIN, bulbs_count=ORIGIN, watts=ORIGIN, colour=ORIGIN)


def test_refuses_an_unknown_kind_and_an_empty_source():
    with pytest.raises(ValueError, match="got kind 'guessed'"):
        Provenance("guessed", "somewhere")
    for source in ("", "  \n"):
        with pytest.raises(ValueError, match="source"):
            Provenance("measured", source)
    assert {Provenance(kind, "x").kind for kind in KINDS} == set(KINDS)


def test_rows_have_name_value_unit_and_origin():
    rows = list(
        lamp(warm_up_ns=ORIGIN, bulbs_count=Provenance("given", "the box")).parameters(
            "lamp."
        )
    )
    assert rows == [
        {
            "name": "lamp.warm_up_ns",
            "value": 2.0,
            "unit": "ns",
            "provenance": "measured",
            "source": "a stopwatch",
            "confidence_interval": [1.0, 3.0],
        },
        {
            "name": "lamp.bulbs_count",
            "value": 1,
            "unit": "1",
            "provenance": "given",
            "source": "the box",
            "confidence_interval": None,
        },
    ]


def test_other_numbers_come_with_their_origin():
    guess = Provenance("assumed", "a guess")
    changed = lamp(warm_up_ns=ORIGIN, bulbs_count=ORIGIN).with_numbers(
        {"warm_up_ns": 5.0}, guess
    )
    assert (changed.warm_up_ns, changed.bulbs_count, changed.colour) == (5.0, 1, "red")
    assert changed.provenance == {"warm_up_ns": guess, "bulbs_count": ORIGIN}
    with pytest.raises(TypeError):
        changed.with_numbers({"cold_ns": 1.0}, guess)
    with pytest.raises(ValueError, match=r"warm_up_ns: got -1"):
        changed.with_numbers({"warm_up_ns": -1.0}, guess)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("latency_ns", "ns"),
        ("read_ns_per_byte", "ns/B"),
        ("decode_ns_per_stripe", "ns/stripe"),
        ("rate_bits_per_s", "bit/s"),
        ("rate_bytes_per_s", "B/s"),
        ("header_bytes", "B"),
        ("user_fraction", "1"),
        ("ftl_write_factor", "1"),
        ("channels", "1"),
    ],
)
def test_the_unit_is_the_end_of_the_name(name, unit):
    assert unit_of(name) == unit
