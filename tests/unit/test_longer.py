"""When a run that the audit refuses is run again with more requests."""

from types import SimpleNamespace

import numpy as np
import pytest

from stripesim.scenarios.cells.longer import REQUESTS_MAX, next_length

# A run of a twentieth of the requests that the longest run may have.
ISSUED = REQUESTS_MAX // 20


@pytest.mark.parametrize(
    ("times", "length"),
    [(3, 3), (20, 20), (40, 20), (41, None), (100, None)],
)
def test_a_run_that_needs_over_twice_the_requests_that_it_may_have_is_given_up(
    times, length
):
    # Given a run that the audit refuses and that uses little, and a need of so many times its requests
    refused = SimpleNamespace(
        refused="too short",
        requested=SimpleNamespace(issued_ns=np.zeros(ISSUED, dtype=np.int64)),
        uses=1,
        requests_wanted=times * ISSUED,
        length=1,
    )
    # Then it runs 20 times as long at most, which may do for up to 40 times: the need is a rough estimate.
    assert next_length(refused) == length
