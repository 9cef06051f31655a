"""Time calls in turns, in processor time, and build rows of measurements."""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Row = dict[str, Any]
#: A function that repeats the call to time a given number of times.
Loop = Callable[[int], Any]


@dataclass
class Case:
    """A call that is timed in turns with others. `samples_s` holds processor times per call [s]."""

    loop: Loop
    each: int = 1
    calls: int = 1
    samples_s: list[float] = field(default_factory=list)

    def settle(self, sample_s: float) -> None:
        """Warm up, and choose a repeat count such that a sample lasts at least `sample_s` [s]."""
        self.loop(self.each)
        once_s = min(cpu_seconds(self.loop, self.each) for _ in range(3))
        self.calls = self.each * max(1, round(sample_s / once_s / self.each))


def repeated(call: Callable[[], Any]) -> Loop:
    """Return a Python loop over a call."""

    def loop(calls: int) -> None:
        for _ in range(calls):
            call()

    return loop


def cpu_seconds(loop: Loop, calls: int) -> float:
    """Return processor time per call [s], which excludes waiting for a shared processor."""
    start_ns = time.thread_time_ns()
    loop(calls)
    return max(1, time.thread_time_ns() - start_ns) / calls / 1e9


def sample(
    cases: Iterable[Case], rounds: int, rng: random.Random | None = None
) -> None:
    """Time all cases once per round, in random order if a generator is given."""
    order = list(cases)
    for _ in range(rounds):
        if rng is not None:
            rng.shuffle(order)
        for case in order:
            case.samples_s.append(cpu_seconds(case.loop, case.calls))


def row_of(
    backend: str,
    scheme: str,
    op: str,
    erasures: int,
    size_bytes: int,
    samples_s: Sequence[float],
    *,
    copy_s: float | None = None,
    verified: bool | None = True,
    **more: Any,
) -> Row:
    """Build a row of measurements.

    Parameters
    ----------
    backend, scheme, op, erasures
        The case.
    size_bytes
        Data per call [B].
    samples_s
        Times per call [s].
    copy_s
        Time of the same call with the null code [s], or None if unknown.
    verified
        True if the result was correct, None if unknown.
    **more
        Further columns.

    Returns
    -------
    dict
        The columns above, with the median, 10th and 90th percentile of the time [s] and the speed [B/s].
    """
    p10_s, median_s, p90_s = (float(q) for q in np.quantile(samples_s, (0.1, 0.5, 0.9)))
    return {
        "backend": backend,
        "scheme": scheme,
        "op": op,
        "erasures": erasures,
        "size_bytes": size_bytes,
        "seconds_median": median_s,
        "seconds_p10": p10_s,
        "seconds_p90": p90_s,
        "bytes_per_s": size_bytes / median_s,
        "copy_seconds_median": copy_s,
        "verified": verified,
        **more,
    }
