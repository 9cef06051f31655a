"""Arithmetic of the claims ledger, one comparison at a time, on rows made by hand."""

from __future__ import annotations

import io
import json
import math

import pytest
from rich.console import Console

from stripesim.calibration.ledger.verdicts import Claim, Observation, judge
from stripesim.models.problems import MeasuredError
from support.messages import states


def claim(
    key: str = "a",
    published: object = 100.0,
    *,
    compare: str = "value",
    role: str = "held-out",
    tolerance: float | None = 0.2,
    text: str | None = None,
    metric: str = "throughput",
    disputed: str | None = None,
) -> Claim:
    return Claim(
        id=key,
        paper="made up",
        locus="here",
        metric=metric,
        scheme="",
        baseline="",
        pattern="",
        op="",
        block_size="",
        published=published,
        published_text=str(published) if text is None else text,
        unit="MB/s",
        kind="exact",
        role=role,
        compare=compare,
        tolerance=tolerance,
        note="",
        statement="a made-up statement",
        disputed=disputed,
    )


def only(one: Claim, simulated: object):
    return judge([one], {one.id: simulated}).entries[0]


@pytest.mark.parametrize("compare", ["value", "extremum"])
@pytest.mark.parametrize(
    ("simulated", "error", "verdict"),
    [
        (100, 0.0, "right"),
        (120, 0.2, "right"),
        (120.1, 0.201, "wrong"),
        (80, -0.2, "right"),
        (79.9, -0.201, "wrong"),
        (0, -1.0, "wrong"),
    ],
)
def test_value_and_extremum_are_two_sided(compare, simulated, error, verdict):
    entry = only(claim(compare=compare), simulated)
    assert entry.error == pytest.approx(error)
    assert entry.error_kind == "relative"
    assert entry.verdict == verdict


@pytest.mark.parametrize(
    ("simulated", "verdict"), [(1, "right"), (120, "right"), (121, "wrong")]
)
def test_at_most_fails_only_above(simulated, verdict):
    assert only(claim(compare="at-most"), simulated).verdict == verdict


@pytest.mark.parametrize(("simulated", "exceeds"), [(100, False), (101, True)])
def test_a_right_bound_says_that_it_is_exceeded(simulated, exceeds):
    entry = only(claim(compare="at-most"), simulated)
    assert entry.verdict == "right"
    assert (entry.reason is not None) == exceeds


@pytest.mark.parametrize(
    ("simulated", "error", "verdict"),
    [
        (12, 0.0, "right"),
        (8, -0.2, "right"),
        (7.9, -0.21, "wrong"),
        (18, 0.2, "right"),
        (18.3, 0.22, "wrong"),
        ((10, 15), 0.0, "right"),
        ((15, 10), 0.0, "right"),
        ((9, 17), 2 / 15, "right"),
        # Both ends lie inside 10-15, but the upper end is not reached.
        ((10, 11), 11 / 15 - 1, "wrong"),
        ((13, 15), 0.3, "wrong"),
    ],
)
def test_range_takes_a_number_or_both_ends(simulated, error, verdict):
    entry = only(claim(published=(10.0, 15.0), compare="range"), simulated)
    assert entry.error == pytest.approx(error)
    assert entry.verdict == verdict


@pytest.mark.parametrize(
    ("published", "simulated", "error", "verdict"),
    [
        (0.0, 0.05, 0.05, "right"),
        (0.0, 0.051, 0.051, "wrong"),
        (0.049, 0.0, -0.049, "right"),
        (-0.01, 0.05, 0.06, "wrong"),
    ],
)
def test_near_zero_the_difference_is_compared(published, simulated, error, verdict):
    entry = only(claim(published=published, tolerance=0.2), simulated)
    assert (entry.error, entry.error_kind) == (pytest.approx(error), "absolute")
    assert entry.tolerance == 0.05
    assert entry.verdict == verdict


def test_at_five_hundredths_the_error_is_relative_again():
    entry = only(claim(published=0.05, tolerance=0.2), 0.07)
    assert (entry.error_kind, entry.verdict) == ("relative", "wrong")


@pytest.mark.parametrize("compare", ["trend", "ordering"])
@pytest.mark.parametrize(
    ("simulated", "verdict"),
    [
        (Observation("Decreasing", (3.0, 2.0, 1.0)), "right"),
        (Observation("flat", (1.0, 1.0)), "wrong"),
        ("decreasing", "right"),
        ("increasing", "wrong"),
        (True, "right"),
        (False, "wrong"),
    ],
)
def test_words_are_compared_as_words(compare, simulated, verdict):
    entry = only(claim(published=None, compare=compare, text="decreasing"), simulated)
    assert entry.verdict == verdict
    assert entry.error is None


def test_observed_numbers_are_kept_with_their_labels():
    entry = only(
        claim(published=None, compare="trend", text="decreasing"),
        Observation("decreasing", (3.0, 1.0)),
    )
    assert entry.simulated == (3.0, 1.0)
    assert entry.simulated_text == "decreasing"


@pytest.mark.parametrize(
    ("simulated", "verdict"), [("jerasure", "right"), ("isa", "wrong")]
)
def test_text_of_a_configuration(simulated, verdict):
    assert (
        only(
            claim(published=None, compare="text", text="jerasure", role="given"),
            simulated,
        ).verdict
        == verdict
    )


def test_a_list_of_numbers_is_compared_member_by_member():
    sizes = claim(published=(1.0, 2.0), compare="text", text="1,2", role="given")
    assert only(sizes, [1, 2]).verdict == "right"
    assert only(sizes, [1, 3]).verdict == "wrong"


def test_missing_values_are_not_derivable_with_their_reason():
    ledger = judge([claim("a"), claim("b")], {"a": None}, reasons={"a": "no such runs"})
    assert [entry.verdict for entry in ledger.entries] == ["not-derivable"] * 2
    assert ledger.entries[0].reason == "no such runs"
    assert ledger.entries[1].reason


def test_a_row_that_the_source_leaves_open_is_never_right():
    entry = only(claim(role="not-derivable"), 100)
    assert (entry.verdict, entry.error) == ("not-derivable", 0.0)


def test_a_row_without_tolerance_is_shown_not_judged():
    entry = only(claim(role="derived", tolerance=None), 150)
    assert (entry.verdict, entry.error) == ("not-derivable", pytest.approx(0.5))
    assert "tolerance" in entry.reason


@pytest.mark.parametrize(
    ("one", "simulated"),
    [
        (claim(), math.nan),
        (claim(), math.inf),
        (claim(), "fast"),
        (claim(), True),
        (claim(), (1.0, 2.0)),
        (claim(), ()),
        (claim(), object()),
        (claim(published=(1.0, 2.0), compare="range"), "between"),
    ],
)
def test_values_that_do_not_fit_are_refused(one, simulated):
    with pytest.raises(MeasuredError, match=r"^a: got "):
        only(one, simulated)


def test_unknown_ids_and_incomplete_parameters_are_refused_together():
    with pytest.raises(MeasuredError) as caught:
        judge(
            [claim("a")],
            {"z": 1.0},
            parameters=[{"name": "s", "value": 1, "unit": "ms"}],
        )
    claim_fault, parameter_fault = str(caught.value).splitlines()
    assert claim_fault.startswith("z: got ")
    assert states(parameter_fault, "s: got ... provenance")


def held_out_ledger():
    claims = [
        claim("a", 100.0),
        claim("b", 10.0, metric="latency"),
        claim("c", 1.0, metric="latency"),
        claim("d", 5.0),
        claim("e", 50.0, compare="at-most"),
        claim("f", None, compare="trend", text="flat", disputed="doubtful"),
        claim("g", 7.0, role="calibration"),
        claim("h", 7.0, role="contradicted"),
    ]
    simulated = {
        "a": 110.0,
        "b": 15.0,
        "c": 0.5,
        "e": 1.0,
        "f": "flat",
        "g": 99.0,
        "h": 7.0,
    }
    parameters = [
        {"name": "x", "value": 1, "unit": "ns", "provenance": "fitted: rows a and g"},
        {"name": "y", "value": 2, "unit": "ns", "provenance": {"kind": "fitted"}},
        {"name": "z", "value": 3, "unit": "ns", "provenance": "datasheet, not fitted"},
    ]
    return judge(claims, simulated, parameters=parameters, groups={"latency": "delays"})


def test_summary_counts_over_all_held_out_rows():
    summary = held_out_ledger().summary()
    assert (summary["right"], summary["wrong"], summary["not_derivable"]) == (3, 2, 1)
    assert summary["held_out"] == 6
    assert summary["share_right"] == pytest.approx(3 / 6)
    assert summary["counts"]["calibration"] == {
        "right": 0,
        "wrong": 1,
        "not-derivable": 0,
    }
    assert summary["counts"]["contradicted"]["right"] == 1
    assert summary["orderings_and_trends"] == {
        "right": 1,
        "wrong": 0,
        "not-derivable": 0,
    }
    assert summary["fitted_parameters"] == 2
    assert summary["disputed"] == ["f"]


def test_summary_errors_leave_out_upper_bounds_and_other_roles():
    summary = held_out_ledger().summary()
    assert summary["mape_percent"] == pytest.approx((10 + 50 + 50) / 3)
    assert summary["median_error_percent"] == pytest.approx(50)
    assert summary["mape_percent_by_metric"] == {
        "delays": {"mape_percent": pytest.approx(50), "rows": 2},
        "throughput": {"mape_percent": pytest.approx(10), "rows": 1},
    }
    assert summary["worst"]["id"] in ("b", "c")
    assert abs(summary["worst"]["error"]) == pytest.approx(0.5)


def test_rank_correlation_by_hand():
    # Published ranks of a, b, c, e are 4, 2, 1, 3. Simulated 110, 15, 0.5, 1 rank 4, 3, 1, 2:
    # 1 - 6·(0 + 1 + 0 + 1) / (4·15) = 0.8.
    summary = held_out_ledger().summary()
    assert summary["spearman"] == pytest.approx(0.8)
    assert summary["spearman_rows"] == 4


@pytest.mark.parametrize(
    "simulated", [{"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 1.0, "c": 1.0}]
)
def test_no_rank_correlation_from_too_few_or_equal_values(simulated):
    ledger = judge([claim("a", 1.0), claim("b", 2.0), claim("c", 3.0)], simulated)
    assert ledger.summary()["spearman"] is None


def test_an_empty_ledger_has_a_summary():
    summary = judge([], {}).summary()
    assert (summary["held_out"], summary["share_right"], summary["mape_percent"]) == (
        0,
        None,
        None,
    )


def test_json_holds_numbers_arrays_or_null():
    claims = [
        claim("a"),
        claim("b", (10.0, 15.0), compare="range", text="10-15"),
        claim("c", None, compare="trend", text="flat"),
    ]
    ledger = judge(
        claims, {"a": 90, "b": [10, 15], "c": Observation("flat", (1.0, 1.0))}
    )
    document = json.loads(json.dumps(ledger.to_json(), allow_nan=False))
    rows = {row["id"]: row for row in document["claims"]}
    assert rows["a"]["published"] == 100.0
    assert rows["a"]["simulated"] == 90.0
    assert rows["a"]["error"] == pytest.approx(-0.1)
    assert rows["b"]["published"] == [10.0, 15.0]
    assert rows["b"]["simulated"] == [10.0, 15.0]
    assert rows["c"]["published"] is None
    assert rows["c"]["simulated"] == [1.0, 1.0]
    assert rows["c"]["published_text"] == rows["c"]["simulated_text"] == "flat"
    wanted = {
        *(
            "id",
            "role",
            "published",
            "simulated",
            "error",
            "tolerance",
            "verdict",
            "statement",
        ),
        *("locus", "unit", "compare", "note"),
    }
    assert all(wanted <= row.keys() for row in rows.values())
    assert set(document) == {"claims", "summary", "parameters"}


def test_frame_has_one_row_per_claim():
    frame = held_out_ledger().to_frame()
    assert frame.height == 8
    assert frame.filter(frame["id"] == "a")["simulated"].to_list() == [[110.0]]
    assert frame.filter(frame["id"] == "d")["simulated"].to_list() == [None]


def test_printing_shows_verdicts_and_escapes_markup():
    console = Console(width=160, record=True, file=io.StringIO())
    ledger = judge(
        [claim("a"), claim("b", role="given")], {"a": 500.0}, reasons={"b": "see [III]"}
    )
    console.print(ledger.laid_out(everything=True))
    text = console.export_text()
    assert "wrong" in text
    assert "+400 %" in text
    assert "see [III]" in text
    assert "0 of 1 held-out claims right (0 %)" in text
