"""The recorded ledger of the study of releases, against the shipped rows."""

import json
from pathlib import Path

import pytest

from stripesim.scenarios.studies.releases.claims import claims_of
from stripesim.scenarios.studies.releases.measured import load

LEDGER = Path(__file__).resolve().parents[2] / "docs/ledgers/releases.json"


@pytest.fixture(scope="module")
def claims():
    return {claim.id: claim for claim in claims_of(load())}


@pytest.fixture(scope="module")
def wrong():
    return {claim["id"] for claim in json.loads(LEDGER.read_text())["not_right"]}


def held_out_codes(claims, metric):
    return {
        claim.id
        for claim in claims.values()
        if claim.role == "held-out"
        and claim.metric == metric
        and not claim.scheme.startswith("rep")
    }


def test_ids_are_those_of_rows_and_quantities(claims, wrong):
    assert "t20-ec42f-write-rand-4096-q16:device_write" in claims
    assert "t20-degraded:ec63f:4096:private_net" in claims
    assert wrong <= claims.keys()


@pytest.mark.parametrize(
    ("metric", "least"),
    [
        ("device_data_write", 0.95),
        ("private_net", 0.95),
        ("device_write", 0.9),
        ("device_read", 0.85),
    ],
)
def test_bytes_of_codes_that_no_fit_has_seen(claims, wrong, metric, least):
    ids = held_out_codes(claims, metric)
    assert len(ids) > 150
    assert len(ids - wrong) >= least * len(ids)


def test_14_makes_no_claim_on_data_writes_alone(claims):
    # Its counter of log bytes leaves out what was in the last block before.
    of_14 = {claim.metric for name, claim in claims.items() if name.startswith("t14-")}
    assert "device_write" in of_14
    assert "device_data_write" not in of_14
