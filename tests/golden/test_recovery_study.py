"""The study of published recoveries: claims as they were fixed, hung OSDs, plans of codes."""

from __future__ import annotations

from collections import Counter

import pytest

from stripesim.scenarios.studies.lookup import claims_of
from stripesim.scenarios.studies.recovery.runs import HUNG, hung_row, pair_row


def test_roles_and_tolerances_are_those_fixed_before_the_first_run():
    roles = Counter(claim.role for claim in claims_of("recovery"))
    assert roles == {"held-out": 25, "not-derivable": 15, "calibration": 7}
    assert {claim.tolerance for claim in claims_of("recovery")} == {0.25}
    assert not [
        c
        for c in claims_of("recovery")
        if c.role == "held-out" and c.baseline.startswith("wpq")
    ]


@pytest.mark.parametrize("name", HUNG)
def test_a_write_waits_for_a_hung_osd_only_where_it_needs_it(name):
    (row,) = hung_row(name, "compiled")
    published = next(
        claim.published for claim in claims_of("recovery") if claim.baseline == name
    )
    if published < 100:
        assert row["acknowledgement_ms"] < published
    else:
        assert row["acknowledgement_ms"] == pytest.approx(published, rel=0.25)


def test_codes_read_the_planned_bytes():
    (row,) = pair_row("xorbas2013", "compiled")
    # A local group has 5 others. CRUSH also moves a few surviving shards, which are copied.
    assert row["recovery_device_read_bytes_per_lost_byte_ratio"] == pytest.approx(
        5 / 10, rel=0.05
    )
