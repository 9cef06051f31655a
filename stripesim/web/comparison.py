"""Compare two options: their numbers next to each other, their simulations, CSV and a report to share."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from stripesim._version import __version__
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.page.render import render
from stripesim.scenarios.show.tables import Table
from stripesim.sim.observe.intervals import student_interval
from stripesim.sim.observe.limits import resource_name
from stripesim.sim.observe.resource_words import limit_words
from stripesim.web.controls import BY_DEPTH
from stripesim.web.fields import Control
from stripesim.web.jobs import Job
from stripesim.web.options import Number, PlanOption, difference

_NOTHING: Final = "–"
_PENDING: Final = "…"
# Columns of a simulation, with the factor that converts to the unit shown.
_MEASURED: Final = {"iops": 1.0, "latency_mean_ns": 1e-6, "latency_p99_ns": 1e-6}
# Rows about a simulation in the CSV file and the report.
_SUMMARISED: Final = {
    "iops": "served [1/s]",
    "latency_mean_ns": "mean [ms]",
    "latency_p99_ns": "p99 [ms]",
    "limit": "near its limit",
}
# Numbers of the headline.
_HEADLINE: Final = {
    "safe": "usable capacity",
    "bound": "highest rate",
    "nines": "nines",
}
# Spreadsheets interpret text with these first characters as a formula.
_FORMULA_STARTS: Final = ("=", "+", "-", "@")


class NumberRow(NamedTuple):
    """One number for both options, and the difference of B from A."""

    pair: Sequence[Number | None]
    difference: str

    @property
    def known(self) -> Number:
        """The number of the first option that has one."""
        return next(number for number in self.pair if number is not None)

    @property
    def texts(self) -> list[str]:
        """The number of each option as text."""
        return [_NOTHING if number is None else number.text for number in self.pair]


def number_rows(options: Mapping[str, PlanOption]) -> list[NumberRow]:
    """Pair the numbers of both options."""
    by_side = [
        {number.key: number for number in option.numbers} for option in options.values()
    ]
    keys = dict.fromkeys(key for numbers in by_side for key in numbers)
    rows = []
    for key in keys:
        pair = [numbers.get(key) for numbers in by_side]
        rows.append(NumberRow(pair, _difference(key, *pair)))
    return rows


def _difference(key: str, first: Number | None, second: Number | None) -> str:
    first_value = None if first is None else first.value
    second_value = None if second is None else second.value
    if key == "nines" and first_value is not None and second_value is not None:
        # For a logarithm, the absolute difference is more meaningful than the ratio.
        return f"{second_value - first_value:+.1f}"
    return difference(first_value, second_value)


def headline(options: Mapping[str, PlanOption]) -> str:
    """Describe the difference of the second option from the first in a sentence."""
    invalid = [side.upper() for side, option in options.items() if option.problems]
    if invalid:
        return f"Option {' and '.join(invalid)}: see the problems below."
    first, second = (option.values["scheme"] for option in options.values())
    differences = {row.known.key: row.difference for row in number_rows(options)}
    parts = [
        f"{label} {differences[key]}"
        for key, label in _HEADLINE.items()
        if key in differences
    ]
    return f"B {second} against A {first}: {', '.join(parts)}."


def job_rows(job: Job) -> list[dict[str, str]]:
    """Return one row per option of a job, with means and 95 % intervals over the finished seeds."""
    return [
        _job_row(side, option, job.of("load", side))
        for side, option in job.options.items()
    ]


def _job_row(
    side: str, option: PlanOption, rows: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    line = {"side": side.upper(), "scheme": option.values["scheme"]}
    is_saturated = any(row["saturated"] for row in rows)
    for key, factor in _MEASURED.items():
        line[key] = _mean_text([row[key] for row in rows], factor)
        if is_saturated:
            # Both depend on the length of the run.
            line[key] = _NOTHING
    kinds = (str(row["bottleneck"]) for row in rows)
    bottlenecks = dict.fromkeys(
        limit_words(kind) or resource_name(kind) for kind in kinds
    )
    line["limit"] = ", ".join(bottlenecks) or _PENDING
    line["verdict"] = _verdict(rows, option.values["arrivals"])
    return line


def _mean_text(values: Sequence[float], factor: float) -> str:
    """Write a mean over seeds, with half of its interval where it has one.

    >>> _mean_text([2.0, 2.0], 1), _mean_text([], 1) == _PENDING
    ('2', True)
    """
    if not values:
        return _PENDING
    interval = student_interval(values)
    text = number_text(interval.mean, factor)
    if interval.half is None:
        return text
    return f"{text} ± {number_text(interval.half, factor, digits=2)}"


def _verdict(rows: Sequence[Mapping[str, Any]], arrivals: str) -> str:
    if not rows:
        return _PENDING
    if arrivals == BY_DEPTH:
        return "the most at this depth"
    if any(row["saturated"] for row in rows):
        return "saturated: cannot serve the rate, see the load curve"
    return "serves the rate"


def option_rows(
    options: Mapping[str, PlanOption], job: Job | None
) -> Iterator[dict[str, str]]:
    """Return the fields and numbers of both options, one row for each."""
    names = ("number", "A", "B", "difference", "why")
    lines = []
    for control in _controls(options):
        values = [
            _escape_formula(option.values[control.name]) for option in options.values()
        ]
        lines.append([control.name, *values, "", "the form"])
    lines += _lines(options, job)
    return (dict(zip(names, line, strict=True)) for line in lines)


def _controls(options: Mapping[str, PlanOption]) -> tuple[Control, ...]:
    """Return the controls of the form, which both options share."""
    return next(iter(options.values())).controls


def _escape_formula(text: str) -> str:
    return "'" + text if text.startswith(_FORMULA_STARTS) else text


def report_of_options(options: Mapping[str, PlanOption], job: Job | None) -> str:
    """Render both options as a self-contained page."""
    both = options.values()
    columns = ["number", "A", "B", "B against A", "why"]
    # An empty field means what its placeholder says.
    fields = [
        [
            control.label,
            *(option.values[control.name] or control.placeholder for option in both),
        ]
        for control in _controls(options)
    ]
    warnings = [
        line
        for option in both
        for line in (*option.problem_lines, *option.risks, *option.warnings)
    ]
    return render(
        "compare.html.j2",
        kind="Two options compared",
        title=" or ".join(option.values["scheme"] for option in both),
        introduction="Capacity, bounds and durability from closed forms, rates where simulated.",
        meta=[f"stripesim {__version__}"],
        numbers=Table(
            "Numbers", columns, _lines(options, job), numeric=False, form="stack"
        ),
        asked=Table("Inputs", ["control", "A", "B"], fields),
        warnings=list(dict.fromkeys(warnings)),
    )


def _lines(options: Mapping[str, PlanOption], job: Job | None) -> list[list[str]]:
    """Return all numbers as rows of text: number, A, B, difference, reason."""
    lines = []
    for row in number_rows(options):
        known = row.known
        why = f"{known.why}; {known.source}; {known.range}"
        lines.append([known.label, *row.texts, row.difference, why])
    if job is None:
        return lines
    by_side = {row["side"]: row for row in job_rows(job)}
    for key, label in _SUMMARISED.items():
        pair = [by_side[side][key] if side in by_side else _NOTHING for side in "AB"]
        lines.append([f"simulated: {label}", *pair, "", "mean ± 95 % over seeds"])
    return lines
