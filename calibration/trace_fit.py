"""Fit everything that a block or failure trace allows, for `stripesim trace fit`."""

from dataclasses import dataclass

from stripesim.calibration.ssd.interference import Interference, fit_interference
from stripesim.calibration.ssd.result import Operation, ServiceFit, TimeKind
from stripesim.calibration.ssd.time_fit import fit_times
from stripesim.calibration.survival import DeviceState, SurvivalFit, fit_survival
from stripesim.calibration.workload.model_fit import WorkloadFit, fit_workload
from stripesim.models.documents import Documented
from stripesim.models.problems import TraceError
from stripesim.traces import BlockTrace
from stripesim.traces.failures.columns import FailureTrace


@dataclass(frozen=True)
class TraceFit(Documented):
    """All fits to a trace, and the reasons for missing ones."""

    source: str  #: The trace
    #: Service times of reads and writes, or response times if the format records no service times.
    service: tuple[ServiceFit, ...] = ()
    interference: tuple[
        Interference, ...
    ] = ()  #: Service times by the commands in flight
    workload: WorkloadFit | None = None  #: Arrivals, sizes and offsets
    survival: tuple[SurvivalFit, ...] = ()  #: Times to failure and to repair
    missing: tuple[
        str, ...
    ] = ()  #: One line for each part that the trace does not allow

    def summary(self) -> str:
        """Return several lines for a terminal."""
        parts = [fit.summary() for fit in self.service]
        parts += [fit.summary() for fit in self.survival]
        for one in self.interference:
            line = (
                f"  {one.operation}, {one.company}: {one.commands} commands,"
                f" mean {one.mean_ns / 1e3:.4g} µs"
            )
            if one.slowdown is not None and one.slowdown_ci95 is not None:
                low, high = one.slowdown_ci95
                line += f", {one.slowdown:.2f} times as long as alone (95 % {low:.2f} to {high:.2f})"
            parts.append(line)
        if self.workload is not None:
            parts.append(self.workload.summary())
        parts += [f"not fitted: {line}" for line in self.missing]
        return "\n".join(parts)


def fit_trace(trace: BlockTrace | FailureTrace, *, seed: int = 1) -> TraceFit:
    """Fit everything that a trace allows.

    Parameters
    ----------
    trace
        Block or failure trace.
    seed
        Seed of bootstraps and of the synthetic trace.

    Returns
    -------
    TraceFit
        The fits, and the reasons for missing ones.

    Raises
    ------
    TraceError
        If nothing can be fitted, with one line per part.
    """
    if isinstance(trace, FailureTrace):
        fitted = _fit_failures(trace)
    else:
        fitted = _fit_block(trace, seed)
    if not (fitted.service or fitted.workload or fitted.survival):
        raise TraceError(*fitted.missing)
    return fitted


def _fit_failures(trace: FailureTrace) -> TraceFit:
    fits: list[SurvivalFit] = []
    missing: list[str] = []
    states: tuple[DeviceState, ...] = ("up", "down")
    for state in states:
        try:
            fits.append(fit_survival(trace, state))
        except TraceError as error:
            missing += map(str, error.problems)
    return TraceFit(
        trace.source, survival=tuple(fits), missing=tuple(dict.fromkeys(missing))
    )


def _fit_block(trace: BlockTrace, seed: int) -> TraceFit:
    fits: list[ServiceFit] = []
    missing: list[str] = []
    quantity: TimeKind = "response" if trace.commands is None else "service"
    operations: tuple[Operation, ...] = ("read", "write")
    for operation in operations:
        try:
            fits.append(
                fit_times(trace, operation=operation, quantity=quantity, seed=seed)
            )
        except TraceError as error:
            missing += map(str, error.problems)
    workload = None
    try:
        workload = fit_workload(trace, seed=seed)
    except TraceError as error:
        missing += map(str, error.problems)
    return TraceFit(
        trace.source,
        tuple(fits),
        fit_interference(trace, seed=seed),
        workload,
        missing=tuple(missing),
    )
