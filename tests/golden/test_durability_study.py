"""The ledger of published durability keeps its right verdicts, and no value is fitted."""

import pytest

from stripesim.scenarios.studies.registry import study_named


@pytest.fixture(scope="module")
def result():
    return study_named("durability").run()


def rows(result, start):
    return [
        entry for entry in result.ledger.entries if entry.claim.id.startswith(start)
    ]


def test_chains_and_combinatorics_are_right_to_four_digits(result):
    exact = [*rows(result, "ctmc-"), *rows(result, "hyper")]
    assert len(exact) == 24
    assert all(abs(entry.error) < 1e-4 and entry.verdict == "right" for entry in exact)


def test_backblaze_is_right_up_to_rounding(result):
    wrong = {
        entry.claim.id
        for entry in rows(result, "backblaze")
        if entry.verdict != "right"
    }
    assert wrong == {"backblaze-5"}


@pytest.mark.parametrize(
    "curve",
    ["mlec-8-2-50-", "mlec-8-1-45-", "mlec-8-2-10-sim-", "mlecw-", "mlec-split-"],
)
def test_curves_that_were_never_fitted_are_predicted(result, curve):
    found = [entry for entry in rows(result, curve) if entry.claim.role == "held-out"]
    assert len(found) >= 4
    assert all(entry.verdict == "right" for entry in found)


def test_known_errors_are_not_exceeded(result):
    wrong = [
        entry.claim.id
        for entry in result.ledger.entries
        if entry.verdict == "wrong" and entry.claim.role == "held-out"
    ]
    others = [
        claim
        for claim in wrong
        if not claim.startswith(("mlec-8-2-10-web-raid-8-2-disk100", "backblaze-5"))
    ]
    assert others == ["mlec-16-2-54-sim-dp-16-2-2"]
    # The study's README names them: eight of the eleven points of that curve.
    assert sum("web-raid-8-2-disk100" in claim for claim in wrong) == 8
    summary = result.ledger.summary()
    assert summary["right"] >= 250
    assert summary["fitted_parameters"] == 0
