"""What limits a run: resources near their limit, the way between sites, and a rate that is not served."""

import numpy as np
import pytest

from stripesim.sim.engine.program import PENDING
from stripesim.sim.observe.client_requests import ClientRequests
from stripesim.sim.observe.limits import ResourceUse, limits_of_run
from stripesim.sim.observe.window import offered_load


def used(kind, **more):
    """Return the use of a class whose busiest member is used for a tenth of the time."""
    shares = {"wait_fraction": 0.1, "latency_share": 0.1, "time_share": 0.1}
    use = {"utilisation": 0.1, "mean_utilisation": 0.1, **shares, **more}
    return ResourceUse(kind=kind, **use)


@pytest.mark.parametrize(
    ("in_use", "line_share", "bottleneck"),
    [
        (0.7, 0.7, "pg.lock"),
        (
            0.69,
            0.9,
            "latency",
        ),  # Requests rarely meet at a lock, though they then wait for long.
        (5.0, 0.69, "latency"),  # Many locks are in use, but few requests wait for one.
    ],
)
def test_the_few_locks_that_a_stream_uses_are_a_limit_if_it_uses_and_waits_for_them(
    in_use, line_share, bottleneck
):
    lock = used("pg.lock", in_use=in_use, line_share=line_share)
    limits = limits_of_run((lock, used("ssd", time_share=0.5)), is_closed=True)
    assert limits.bottleneck == bottleneck


@pytest.mark.parametrize(
    ("travelling", "place", "fraction"),
    [(0.3, "ssd", 0.4), (0.5, "ssd", 0.4), (0.51, "sites", 0.51)],
)
def test_requests_spend_their_time_between_sites_if_that_is_more_than_half_of_it(
    travelling, place, fraction
):
    uses = (used("cpu"), used("ssd", time_share=0.4))
    limits = limits_of_run(uses, is_closed=True, travelling=travelling)
    assert (limits.latency_at, limits.latency_at_fraction) == (place, fraction)


@pytest.mark.parametrize(
    ("left", "is_saturated"), [(45, False), (50, False), (51, True)]
)
def test_a_cluster_is_saturated_if_ten_and_four_deviations_of_the_arrivals_are_left(
    left, is_saturated
):
    # Given 100 arrivals, a number with a standard deviation of 10, of which the first are served at once
    issued_ns = np.arange(1, 101) * 10**9
    completed_ns = issued_ns.copy()
    completed_ns[100 - left :] = PENDING
    requested = requests(issued_ns, completed_ns)
    load = offered_load(requested, 100 * 10**9, is_closed=False)
    assert load.is_saturated == is_saturated


@pytest.mark.parametrize(
    ("grows_by", "is_saturated"), [(0.0, False), (0.1, False), (0.2, True)]
)
def test_a_short_run_is_saturated_if_more_requests_are_in_flight_at_its_end(
    grows_by, is_saturated
):
    # Given 1,000 arrivals, 1 s apart, that take 200 s at first, and each longer than the last: 200 are
    # left at the end, or 273 or 334. More than 136 are too many, if over 68 of them came in the second half.
    issued_ns = np.arange(1, 1001) * 10**9
    latencies_ns = 200 * 10**9 + np.arange(1000) * round(grows_by * 10**9)
    requested = requests(issued_ns, issued_ns + latencies_ns)
    load = offered_load(requested, 1200 * 10**9, is_closed=False)
    assert load.is_saturated == is_saturated


def requests(issued_ns, completed_ns):
    zeros = np.zeros(len(issued_ns), dtype=np.int64)
    return ClientRequests(
        issued_ns=issued_ns,
        completed_ns=completed_ns,
        lengths_bytes=zeros + 4096,
        is_write=zeros == 0,
        groups=zeros,
        ages_ns=zeros,
    )
