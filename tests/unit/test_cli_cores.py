"""`stripesim run --cores-at` prints the cores that a rate keeps busy."""

import pytest

GIVEN = ("run", "quickstart", "--no-costs", "--set", 'schemes=["rep:3"]')


@pytest.mark.parametrize("rate", ["0", "-5", "nan", "inf"])
def test_a_rate_that_is_none_is_refused(command, rate: str) -> None:
    status, out, err = command(*GIVEN, "--cores-at", rate)
    assert (status, out) == (2, "")
    assert "--cores-at" in err


def test_a_rate_beyond_the_cluster_is_named_as_such(command) -> None:
    sets = ("--set", "workload.ops=write", "--set", "workload.requests=300")
    _, possible, _ = command(*GIVEN, *sets, "--cores-at", "1000")
    _, impossible, _ = command(*GIVEN, *sets, "--cores-at", "5e9")
    assert "1,000 requests/s keep" in possible
    assert "5,000,000,000 requests/s are more than this cluster serves" in impossible
