"""Fit the numbers of a study in the stages of its ``fit.toml``.

The file holds a table for each stage, in the order of the runs::

    [[stages]]
    rows = ["run-1", "run-2"]                  # claims or measured rows that the stage sees
    metrics = ["iops"]                         # of each row, if the rows have several
    parameters = { "cpu.sync_ns" = 4000 }      # start of the search, or [start, lowest, highest]
    tolerance = 0.1                            # weight of a row (default: the study's)
    evaluations = 4                            # at most (default: 25)

    [proportions."cpu.sync_ns"]                # numbers that keep their proportion to a fitted one
    "cpu.wake_ns" = 0.5

Each stage starts from the results of the previous ones. A study simulates rows and supplies measured values.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stripesim.calibration.fitting import Fit, fit_parameters
from stripesim.scenarios.studies.description import shipped_toml

#: A row's values of one stage, by row.
RowValues = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class FitStage:
    """One stage of a study's fit."""

    parameters: Mapping[str, float | Sequence[float]]
    rows: Sequence[str] = ()
    metrics: Sequence[str] = ()
    tolerance: float = 0.0
    evaluations: int = 25
    group: str = ""  #: For studies that run some stages apart from others
    source: str = ""  #: Source of the fitted numbers, for a parameter file

    @property
    def start(self) -> dict[str, float]:
        """Return the start of each parameter's search."""
        return {
            name: range_[0] if isinstance(range_, Sequence) else range_
            for name, range_ in self.parameters.items()
        }

    @property
    def bounds(self) -> dict[str, tuple[float, float]] | None:
        """Return the lowest and the highest value of each parameter, if stated."""
        ranges = {
            name: (range_[1], range_[2])
            for name, range_ in self.parameters.items()
            if isinstance(range_, Sequence)
        }
        return ranges or None


def fit_stages(study: str, group: str = "") -> list[FitStage]:
    """Read the stages of a study's fit, all or those of one group."""
    stages = [FitStage(**table) for table in shipped_toml(study, "fit.toml")["stages"]]
    return [stage for stage in stages if group in ("", stage.group)]


def with_proportions(study: str, values: Mapping[str, float]) -> dict[str, float]:
    """Add the numbers that keep their proportion to a fitted one."""
    spread = dict(values)
    for name, shape in shipped_toml(study, "fit.toml").get("proportions", {}).items():
        if name in values:
            spread |= {other: values[name] * part for other, part in shape.items()}
    return spread


def run_stages(
    stages: Iterable[FitStage],
    *,
    simulator: Callable[
        [FitStage, Mapping[str, float]], Callable[[Mapping[str, float]], RowValues]
    ],
    published: Callable[[FitStage], RowValues],
    tolerance: Callable[[FitStage], RowValues] | None = None,
    given: Mapping[str, float] | None = None,
) -> list[tuple[FitStage, Fit]]:
    """Run stages one after another and print their results.

    Parameters
    ----------
    stages
        The stages, in order.
    simulator
        Function of a stage and the numbers known before it. It returns the function that simulates the
        stage's rows with some parameters.
    published
        Measured values of a stage's rows.
    tolerance
        Weights of rows, by default the stage's.
    given
        Numbers known before the first stage.
    """
    known = dict(given or {})
    fits = []
    for stage in stages:
        measured = published(stage)
        fit = fit_parameters(
            simulator(stage, known),
            start=stage.start,
            published=measured,
            tolerance=tolerance(stage)
            if tolerance
            else dict.fromkeys(measured, stage.tolerance),
            bounds=stage.bounds,
            most=stage.evaluations,
        )
        known |= {fitted.name: fitted.value for fitted in fit.parameters}
        print_fit(fit)
        fits.append((stage, fit))
    return fits


def print_fit(fit: Fit) -> None:
    """Print fitted numbers with their intervals, and the error of each row."""
    for fitted in fit.parameters:
        low, high = fitted.confidence_interval
        interval = f"[{low:.5g}, {high:.5g}]"
        print(f"{fitted.name:42s} {fitted.value:10.6g}   {interval}", flush=True)
    for row, error in fit.errors.items():
        print(f"    {row:62s} {100 * error:+.1f} %", flush=True)
