"""Audit the numbers of a run by physical laws that every result row obeys.

`CHECKS` is the catalogue, which the documentation prints. `audit_row` and `audit_run` apply it to the numbers
that `stripesim.sim.observe.audit_numbers` takes from a run. They know no scheme and no engine.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isclose, sqrt
from typing import Final, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from stripesim.models.problems import RefusedError
from stripesim.sim.engine.graph import IntArray

_Numbers = TypeVar("_Numbers")

# Deviation that Little's law and bounds allow in addition to the interval of the row.
_TOLERANCE: Final = 0.05
# Requests of a closed loop for each request in flight, at least.
ROUNDS_MIN: Final = 8
#: Periods of a quota of processor time that a run lasts at least, if the quota stops OSDs.
PERIODS_MIN: Final = 10
# Change of the rate between the halves of a window, as a part of it.
_DRIFT: Final = 0.03
# Requests that the busiest OSD completes in a window, at least, unless fewer wait there.
_COMPLETED_MIN: Final = 1600
# Most that a run may ask for by its completions there, of which a short one knows few.
_GROWTH_MAX: Final = 8
# Part of the requests in flight at one OSD above which the completions there decide the rate.
_CROWDED: Final = 0.25
#: Part of the requests of a whole run that may complete after its window, if the utilisation law is to hold.
QUEUED_MAX: Final = 0.05
# Rounding of sums of whole nanoseconds.
_ROUNDING: Final = 1e-3


class Check(NamedTuple):
    """One check of the catalogue.

    Attributes
    ----------
    name
        Name that refusals begin with.
    equation
        The law, in plain text.
    meaning
        What the law says, and what its failure means.
    tolerance
        Deviation that passes, and its reason.
    applies_to
        Rows or runs that it checks.
    refuses
        True if a failure withholds the row. False if it adds a warning.
    """

    name: str
    equation: str
    meaning: str
    tolerance: str
    applies_to: str
    refuses: bool = True


RUN_LENGTH: Final = Check(
    name="Run length",
    equation=f"requests issued ≥ {ROUNDS_MIN} × requests in flight",
    meaning=(
        "A closed loop starts with all its requests in flight and ends while the last ones drain. A run "
        "that issues hardly more requests than those shows its start and its end, not the rate of the "
        "cluster. A run of random requests starts with the queues of its estimated steady state, and has to "
        "keep its rate: as many requests complete in one half of the window as in the other. Where the "
        "requests in flight wait at one OSD, that OSD alone sets the rate, so it must complete as many "
        "requests in the window as arrive there, and enough of them: all that wait there, or "
        f"{_COMPLETED_MIN:,}. Where a CPU limit stops OSDs, the run has to last {PERIODS_MIN} of its periods."
    ),
    tolerance=(
        "None for the length. The first fifth of a run is a warm-up, and the drain takes about one round of "
        f"requests. Eight rounds leave five to measure. Halves may differ by {100 * _DRIFT:.0f} %, arrivals "
        "and completions by 5 %, both also by chance: 1 / √n of n requests. These are the requests of the "
        "window, and where a quarter of those in flight wait at one OSD, its own. A run that is too short is "
        "lengthened first, up to a budget of some ten seconds of computing."
    ),
    applies_to="closed loops without failures or changes",
)
LITTLE: Final = Check(
    name="Little's law",
    equation="rate × mean latency = requests in flight",
    meaning=(
        "Rate, latency and requests in flight are measured separately. They agree only if all three "
        "describe the same requests over the same time. In a closed loop, the requests in flight are the "
        "clients × the queue depth of the scenario. In an open loop, they are the measured time-average "
        "over the window, as they are where clients wait for their newest request alone. Where latencies "
        "have no steady value (traces, failures, saturated open loops), requests × mean latency must equal "
        "the time integral of the requests in flight. Closed loops must also keep their requests in flight "
        "until the first client has none left to issue, under failures too."
    ),
    tolerance=(
        "5 %, because requests straddle the ends of a window. Except in closed loops, the larger of the "
        "half-widths of the row's 95 % intervals is added. Where the whole run counts, requests in flight at "
        "its end count with their whole latency and not in the rate: their share, and the part of the "
        "latency after the end, are added. The time integral: 0.1 %, for rounding."
    ),
    applies_to="every row with completed requests",
)
BUSY: Final = Check(
    name="Busy time",
    equation="busy time ≤ servers × time; uses performed = uses planned",
    meaning=(
        "No drive, core, thread or interface works longer than the run lasts, and each performs exactly the "
        "steps that the plans of the requests contain."
    ),
    tolerance=(
        "None where all requests complete. In a run that time bounds, a service that has begun counts in "
        "full, which adds at most the longest service to each server, and requests in flight have performed "
        "a part of their uses. Uses are not compared under failures, which cut requests off."
    ),
    applies_to="every run",
)
BYTES: Final = Check(
    name="Bytes",
    equation=(
        "bytes written to devices ≥ bytes written by clients × n / k; bytes received = bytes sent; bytes "
        "rebuilt ≤ bytes held"
    ),
    meaning=(
        "Redundancy is really written: the n shards of an object take n / k of its bytes, less those of "
        "members that are absent. Each network delivers what it carries, once. A repair of lost OSDs "
        "makes no more than the shards that they held and those that CRUSH then moves."
    ),
    tolerance=(
        "0.1 %, for rounding. Traffic is compared as the time for which interfaces are busy. Where requests "
        "are in flight at the end, or were cut off, less may have been received than was sent."
    ),
    applies_to="every run; bytes rebuilt: runs under failures, repairs or changes",
)
BOUND: Final = Check(
    name="Bounds",
    equation="rate × demand per request ≤ servers; rate ≤ bound",
    meaning=(
        "The utilisation law: a cluster serves no more requests than its wires, drives and processors have "
        "time for. It holds for each class of resources. Where an answer states the bound that planned "
        "demands set, the rate may not exceed that either."
    ),
    tolerance=(
        "5 %, plus the half-width of the row's 95 % interval, because the requests of a window are a sample "
        "of those of the run."
    ),
    applies_to=(
        "runs of one workload without failures and background work, except open loops that are saturated or "
        f"end with {100 * QUEUED_MAX:.0f} % of their requests in flight, in which cheap requests overtake "
        "the others, and stores that defer writes, which their disks perform later; stated bounds: random "
        "requests. On a fresh image, that of the state, fresh or filled, that demands less"
    ),
)
MONOTONE: Final = Check(
    name="Monotone",
    equation="rate with more ≥ rate with less",
    meaning=(
        "More hardware or more requests in flight should not lower a rate. It can happen, because queues "
        "reorder. More often the run is short or a key is wrong, so the answer names the step."
    ),
    tolerance="5 %, plus the half-widths of both 95 % intervals.",
    applies_to="load curves below saturation; sweeps over hardware, clients or the queue depth",
    refuses=False,
)
LOSS: Final = Check(
    name="Expected loss",
    equation="bytes lost a year = losses a year × bytes lost in a loss",
    meaning=(
        "The probability of a loss and its size describe the same events, by every method. A loss is never "
        "larger than the bytes stored."
    ),
    tolerance="5 %, or the interval of the probability where that is wider.",
    applies_to="rows of `stripesim durability` that state bytes lost",
)

#: The catalogue, in the order in which a row is checked. Its first failure names the refusal.
CHECKS: Final[tuple[Check, ...]] = (
    RUN_LENGTH,
    LITTLE,
    BUSY,
    BYTES,
    BOUND,
    MONOTONE,
    LOSS,
)


class BusiestQueue(NamedTuple):
    """Requests of a window at the OSD where most of them are in flight.

    Attributes
    ----------
    waiting
        Requests in flight there in the middle of the window [count].
    arrived, completed
        Requests that were issued to the OSD and that completed there in the window [count].
    """

    waiting: int
    arrived: int
    completed: int


@dataclass(frozen=True, kw_only=True)
class RowNumbers:
    """The numbers of one row, and of its requests.

    Attributes
    ----------
    loop
        ``closed``; ``open`` if rates and latencies have a steady value; ``whole`` if latencies describe the
        whole run.
    requests, issued
        Requests completed and issued [count].
    iops, latency_mean_ns
        Rate and mean latency of the row [1/s, ns].
    half_fraction
        Larger of the half-widths of the intervals of both, as a part of the value. 0 without intervals.
    asked
        Requests that closed loops keep in flight: clients × queue depth [count]. 0 for an open loop.
    keeps_depth
        False for clients that keep fewer in flight: they wait for their newest request alone, or issue all
        requests at once.
    is_steady
        True if the window leaves out a warm-up and the drain, so that loops keep their depth throughout.
    in_flight
        Time-average of the requests in flight over the window [count].
    in_flight_kept
        The same, until the first client has issued its last request [count].
    in_flight_s
        Time integral of the requests in flight, of those that completed [s].
    edge_fraction
        Deviation by the requests in flight at the end, where the window cuts no warm-up and no drain.
    length_key
        Key of a scenario that lengthens the run.
    least
        Requests that the run has to issue at least [count]: `ROUNDS_MIN` times those in flight, and those of
        `PERIODS_MIN` periods of a quota that stops OSDs.
    halves
        Requests that complete in the first and in the second half of the window [count], of a run that
        starts in its estimated steady state. None for other runs.
    queue
        Requests at the busiest OSD of such a run. None for other runs.
    """

    loop: Literal["closed", "open", "whole"]
    requests: int
    issued: int
    iops: float
    latency_mean_ns: float
    half_fraction: float
    asked: int
    keeps_depth: bool
    is_steady: bool
    in_flight: float
    in_flight_kept: float
    in_flight_s: float
    edge_fraction: float
    length_key: str
    least: int
    halves: tuple[int, int] | None = None
    queue: BusiestQueue | None = None

    @property
    def is_long_enough(self) -> bool:
        """True if the run has issued enough requests for its load."""
        return self.issued >= self.least

    @property
    def requests_wanted(self) -> int:
        """Requests that the run should issue at least, as far as this run can tell."""
        wanted = self.least
        if self.queue is None or not self.is_long_enough:
            return wanted
        growth = _completed_wanted(self.queue) / max(1, self.queue.completed)
        return max(wanted, ceil(min(growth, _GROWTH_MAX) * self.issued))


@dataclass(frozen=True, kw_only=True)
class RunNumbers:
    """The numbers of a run that all its rows share.

    Attributes
    ----------
    kinds
        Classes of resources, such as ``ssd``.
    kind_indices
        Index into `kinds` of each resource, shape (resources,).
    capacities
        Servers of each resource, shape (resources,).
    used_ns
        Busy time of each resource, or time for which its units were out [ns], shape (resources,).
    span_ns
        Length of the run [ns].
    service_max_ns
        Longest service that may outlast the run [ns]. 0 if none can.
    uses, uses_planned
        Uses that the engine performed, and least and most of those planned.
    written_bytes
        Bytes that clients wrote [B].
    factor
        Bytes that a scheme writes for a byte of a client, at least.
    device_write_bytes
        Bytes that devices wrote [B].
    sent_ns, received_ns
        Busy time of sending and receiving interfaces by network [ns].
    is_delivered
        True if every message sent was received before the end.
    rebuilt_bytes, held_bytes
        Bytes that a repair rebuilt, and that the lost OSDs held [B]; 0 without a repair.
    rate_per_s
        Rate of all requests in the window [1/s], or None if it need not match the demands of the run.
    requests
        Requests completed [count].
    half_fraction
        Half-width of the interval of the rate, as a part of it.
    """

    kinds: Sequence[str]
    kind_indices: npt.NDArray[np.int16]
    capacities: IntArray
    used_ns: IntArray
    span_ns: int
    service_max_ns: int
    uses: int
    uses_planned: tuple[int, int] | None
    written_bytes: int
    factor: float
    device_write_bytes: int
    sent_ns: Mapping[str, int]
    received_ns: Mapping[str, int]
    is_delivered: bool
    rebuilt_bytes: int
    held_bytes: int
    rate_per_s: float | None
    requests: int
    half_fraction: float


def audit_row(row: RowNumbers) -> str | None:
    """Return the refusal of a row, beginning with the name of the check that it fails, or None.

    Parameters
    ----------
    row
        Numbers of the row.
    """
    return _first_failure({RUN_LENGTH: _length_failures, LITTLE: _little_failures}, row)


def audit_run(run: RunNumbers) -> str | None:
    """Return the refusal of all rows of a run, beginning with the name of the check that fails, or None.

    Parameters
    ----------
    run
        Numbers of the run.
    """
    return _first_failure(
        {BUSY: _busy_failures, BYTES: _bytes_failures, BOUND: _law_failures}, run
    )


def audit_bound(
    iops: float, bound_iops: float, resource: str, *, half_fraction: float = 0.0
) -> str | None:
    """Return the refusal of a rate above the bound of a resource, or None.

    Parameters
    ----------
    iops
        Served rate [1/s].
    bound_iops
        Rate at which the resource is always busy [1/s].
    resource
        Name of the resource.
    half_fraction
        Half-width of the interval of the rate, as a part of it.
    """
    if iops <= bound_iops * (1 + _TOLERANCE + half_fraction):
        return None
    return refusal(
        BOUND,
        f"got {iops:,.0f} requests/s, wanted at most {bound_iops:,.0f} "
        f"(the bound of {resource})",
    )


def audit_loss(contradiction: str | None) -> str | None:
    """Return the refusal of a durability row, or None.

    Parameters
    ----------
    contradiction
        What `stripesim.sim.durability.losses.inconsistency` says of the row.
    """
    return None if contradiction is None else refusal(LOSS, contradiction)


class RatePoint(NamedTuple):
    """A rate at one step of a curve, with half the width of its interval (0 without)."""

    name: str
    iops: float
    half: float


def falls(points: Sequence[RatePoint]) -> Iterator[str]:
    """Yield a warning for each step of an ascending curve at which the rate falls.

    >>> list(falls([RatePoint("depth 1", 100.0, 0.0), RatePoint("depth 2", 80.0, 2.0)]))
    ['Monotone: got 80 requests/s at depth 2, wanted no less than the 100 at depth 1']
    """
    for less, more in pairwise(points):
        least = less.iops * (1 - _TOLERANCE) - less.half - more.half
        if more.iops < least:
            yield refusal(
                MONOTONE,
                f"got {more.iops:,.0f} requests/s at {more.name}, wanted no less than the "
                f"{less.iops:,.0f} at {less.name}",
            )


def refusal(check: Check, sentence: str) -> str:
    """Return the text of a failure: the name of the check, and what was got and wanted."""
    return f"{check.name}: {sentence}"


def failed_check(refused: str) -> str:
    """Return the name of the check in a text that `refusal` has returned.

    >>> failed_check("Run length: got 5 requests")
    'Run length'
    """
    return refused.partition(":")[0]


# Where refusals are collected. None if they are raised.
_collected: ContextVar[list[str] | None] = ContextVar("collected", default=None)


@contextmanager
def collecting_refusals(unchecked: bool = True) -> Iterator[list[str]]:
    """Collect the refusals of results in a list instead of raising them, if a command runs `unchecked`.

    >>> with collecting_refusals() as refusals:
    ...     refuse("Run length: got 8 requests, wanted 80")
    >>> refusals
    ['Run length: got 8 requests, wanted 80']
    """
    refusals: list[str] = []
    token = _collected.set(refusals if unchecked else None)
    try:
        yield refusals
    finally:
        _collected.reset(token)


def refuse(sentence: str) -> None:
    """Raise the refusal of a result, or collect it within `collecting_refusals`.

    Raises
    ------
    RefusedError
        If refusals are not collected.
    """
    refusals = _collected.get()
    if refusals is None:
        raise RefusedError(sentence)
    if sentence not in refusals:
        refusals.append(sentence)


def _first_failure(
    checks: Mapping[Check, Callable[[_Numbers], Iterator[str]]], numbers: _Numbers
) -> str | None:
    for check, failures_of in checks.items():
        for sentence in failures_of(numbers):
            return refusal(check, sentence)
    return None


def _length_failures(row: RowNumbers) -> Iterator[str]:
    if not row.is_long_enough:
        yield (
            f"got {row.issued:,} requests with {row.asked:,} in flight, wanted at least {row.least:,} "
            f"({row.length_key})"
        )
    yield from _queue_failures(row)
    if row.halves is None or not sum(row.halves):
        return
    fraction = row.halves[0] / sum(row.halves)
    allowed = _DRIFT / 2 + 1 / sqrt(_deciding_requests(row))
    if abs(fraction - 1 / 2) > allowed:
        yield (
            f"got {100 * fraction:.1f} % of the requests in the first half of the window, wanted "
            f"{50 - 100 * allowed:.1f} % to {50 + 100 * allowed:.1f} %: queues still grow or shrink "
            f"({row.length_key})"
        )


def _queue_failures(row: RowNumbers) -> Iterator[str]:
    """Compare what arrives at the busiest OSD with what it completes."""
    queue = row.queue
    if queue is None:
        return
    wanted = _completed_wanted(queue)
    if queue.completed < wanted:
        yield (
            f"got {queue.completed:,} requests completed at the busiest OSD, where {queue.waiting:,} wait, "
            f"wanted at least {wanted:,} ({row.length_key})"
        )
        return
    allowed = (_TOLERANCE + 1 / sqrt(queue.completed)) * queue.completed
    if abs(queue.arrived - queue.completed) > allowed:
        yield (
            f"got {queue.arrived:,} requests that arrive at the busiest OSD and {queue.completed:,} that it "
            f"completes, wanted equal numbers within {allowed:,.0f}: its queue still grows or shrinks "
            f"({row.length_key})"
        )


def _completed_wanted(queue: BusiestQueue) -> int:
    return max(1, min(queue.waiting, _COMPLETED_MIN))


def _deciding_requests(row: RowNumbers) -> int:
    """Return the requests whose number decides how far halves of a window differ by chance."""
    assert row.halves is not None
    if row.queue is not None and row.queue.waiting > _CROWDED * row.asked:
        return row.queue.completed
    return sum(row.halves)


def _little_failures(row: RowNumbers) -> Iterator[str]:
    yield from _rate_failures(row)
    if not row.asked:
        return
    is_more = row.in_flight_kept > row.asked * (1 + _ROUNDING)
    is_less = row.keeps_depth and row.in_flight_kept < row.asked * (1 - _TOLERANCE)
    if is_more or is_less:
        yield (
            f"got {row.in_flight_kept:.4g} requests in flight, wanted the {row.asked:,} that clients keep "
            "in flight"
        )


def _rate_failures(row: RowNumbers) -> Iterator[str]:
    if row.loop == "whole":
        summed_s = row.requests * row.latency_mean_ns / 1e9
        if not isclose(summed_s, row.in_flight_s, rel_tol=_ROUNDING, abs_tol=1e-9):
            yield (
                f"got {row.requests:,} requests × {_milliseconds(row.latency_mean_ns)} = {summed_s:.4g} s, "
                f"wanted the time integral of the requests in flight, {row.in_flight_s:.4g} s"
            )
        return
    wanted = row.in_flight
    load_text = "in flight on average"
    allowed = _TOLERANCE + row.half_fraction + row.edge_fraction
    if row.loop == "closed" and row.keeps_depth and row.is_steady:
        # However the rate varies, this many are in flight.
        wanted = float(row.asked)
        load_text = "that clients keep in flight"
        allowed = _TOLERANCE
    product = row.iops * row.latency_mean_ns / 1e9
    if abs(product - wanted) > allowed * wanted:
        yield (
            f"got {row.iops:,.6g} requests/s × {_milliseconds(row.latency_mean_ns)} = {product:.4g}, "
            f"wanted the {wanted:.4g} requests {load_text}, within {100 * allowed:.1f} % ({row.length_key})"
        )


def _busy_failures(run: RunNumbers) -> Iterator[str]:
    limits_ns = run.capacities * (run.span_ns + run.service_max_ns)
    over = np.flatnonzero(run.used_ns > limits_ns)
    if len(over):
        worst = int(over[np.argmax(run.used_ns[over] / limits_ns[over])])
        share = run.used_ns[worst] / (run.capacities[worst] * max(1, run.span_ns))
        kind = run.kinds[run.kind_indices[worst]]
        yield f"got {kind} busy {100 * share:.1f} % of the time, wanted at most 100 %"
    if run.uses_planned is None:
        return
    least, most = run.uses_planned
    if not least <= run.uses <= most:
        wanted = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        yield f"got {run.uses:,} uses of resources, wanted the {wanted} planned"


def _bytes_failures(run: RunNumbers) -> Iterator[str]:
    least = run.written_bytes * run.factor
    if run.device_write_bytes < least * (1 - _ROUNDING):
        yield (
            f"got {run.device_write_bytes:,} B written to devices, wanted at least {run.written_bytes:,} B "
            f"of clients × {run.factor:.4g}"
        )
    for network, sent_ns in run.sent_ns.items():
        received_ns = run.received_ns[network]
        is_equal = isclose(received_ns, sent_ns, rel_tol=_ROUNDING)
        if is_equal or (received_ns < sent_ns and not run.is_delivered):
            continue
        yield (
            f"got {received_ns / 1e9:.6g} s of receiving on the {network} network, wanted the "
            f"{sent_ns / 1e9:.6g} s of sending"
        )
    if run.rebuilt_bytes > run.held_bytes * (1 + _ROUNDING):
        yield f"got {run.rebuilt_bytes:,} B rebuilt, wanted at most the {run.held_bytes:,} B held"


def _law_failures(run: RunNumbers) -> Iterator[str]:
    """Apply the utilisation law to each class of resources, with the demands that the run measured."""
    if run.rate_per_s is None:
        return
    demands_ns = _by_kind(run, run.used_ns) / run.requests
    servers = _by_kind(run, run.capacities)
    shares = run.rate_per_s * demands_ns / 1e9 / servers
    worst = int(np.argmax(shares))
    if shares[worst] <= 1 + _TOLERANCE + run.half_fraction:
        return
    yield (
        f"got {run.rate_per_s:,.0f} requests/s × {demands_ns[worst] / 1e3:.4g} µs of {run.kinds[worst]}, "
        f"{100 * shares[worst]:.1f} % of its time, wanted at most 100 %"
    )


def _by_kind(run: RunNumbers, values: IntArray) -> npt.NDArray[np.float64]:
    return np.bincount(run.kind_indices, weights=values).astype(np.float64)


def _milliseconds(latency_ns: float) -> str:
    return f"{latency_ns / 1e6:.4g} ms"
