"""The answer of `stripesim calibrate`: factors, values before and after, and what to measure next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stripesim.models.documents import json_value
from stripesim.scenarios.answers.calibrate.accuracy import (
    JudgedValue,
    error_lines,
    repeat_noise,
)
from stripesim.scenarios.answers.calibrate.calibrate import Calibration, FittedFactor
from stripesim.scenarios.answers.calibrate.parameter_file import (
    FILE,
    parameter_text,
    scenario_text,
)
from stripesim.scenarios.cells.measured import REQUESTS_PAST_SATURATION
from stripesim.scenarios.cells.notes import settling_text
from stripesim.scenarios.schema.units import number_text
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.tables import Table
from stripesim.sim.observe.audit import failed_check

if TYPE_CHECKING:
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure


def answer_of_calibration(calibration: Calibration) -> Answer:
    """Return the answer of a calibration."""

    def figures() -> Mapping[str, CaptionedFigure]:
        from stripesim.scenarios.answers.calibrate.figure import draw_calibration

        return {"calibration": draw_calibration(calibration)}

    return Answer(
        document=document_of(calibration),
        shown=[
            _factors(calibration),
            _values(calibration),
            *_errors(calibration),
            *_sentences(calibration),
        ],
        warnings=_warnings(calibration),
        refusals=calibration.refusals,
        saved_as="calibration.json",
        files=lambda: _files(calibration),
        figures=figures,
    )


def document_of(calibration: Calibration) -> dict[str, Any]:
    """Return the document that ``--json`` and ``calibration.json`` hold."""
    return {
        "fitted": json_value(calibration.fitted),
        "rows": json_value(calibration.values),
        "summary": {
            "held_out": calibration.held_out(),
            "within_25_percent_before": calibration.count_within(after=False),
            "within_25_percent_after": calibration.count_within(after=True),
        },
        "errors": json_value(error_lines(calibration.values)),
        "noise": json_value(repeat_noise(calibration.rows)),
        "further": json_value(calibration.further),
        "warnings": _warnings(calibration),
    }


def _files(calibration: Calibration) -> dict[str, bytes]:
    """Return the parameter set, and a scenario that uses it."""
    files = {FILE: parameter_text(calibration).encode()}
    if calibration.scenario.cluster.crush_map is None:
        files["scenario.toml"] = scenario_text(calibration).encode()
    return files


def _factors(calibration: Calibration) -> Table:
    rows = [
        {
            "factor": factor.name,
            "value": f"{factor.value:.2f}",
            "95 % interval": f"{factor.low:.2f} to {factor.high:.2f}",
            "unit": "µs" if factor.unit == "us" else "×",
            "told by the rows": _known_text(factor),
        }
        for factor in calibration.fitted
    ]
    return Table.of("Fitted factors", rows, numeric=False)


def _known_text(factor: FittedFactor) -> str:
    """Write whether the rows determine a factor."""
    if factor.is_at_end:
        return "no: at the end of its range"
    return "yes" if factor.is_known else "no: as assumed"


def _warnings(calibration: Calibration) -> list[str]:
    """Name the rows that no factor explains, and those whose percentiles depend on the length of a run."""
    return [*_unexplained(calibration), *_unsettled(calibration)]


def _unexplained(calibration: Calibration) -> Iterator[str]:
    wrong = calibration.unexplained()
    if not wrong:
        return
    rows = ", ".join(
        f"{value.id} ({_number(value.after)} after the fit, {_number(value.measured)} measured)"
        for value in wrong
    )
    yield (
        f"no factors explain {rows}: look for another cause, such as other drives, another load beside it or "
        "a limit, before you trust this parameter set (`stripesim check` names some)"
    )


def _unsettled(calibration: Calibration) -> Iterator[str]:
    values = calibration.unsettled()
    if not values:
        return
    rows = ", ".join(value.id for value in values)
    kinds = dict.fromkeys(value.slow_class for value in values if value.slow_class)
    yield (
        f"{rows}: {settling_text(kinds)}. A calibration simulates at most {REQUESTS_PAST_SATURATION:,} "
        "requests: trust its rates, and compare p99 with fewer requests in flight"
    )


def _values(calibration: Calibration) -> Table:
    rows = [
        {
            "value": value.id,
            "role": value.role,
            "load": value.load,
            "measured": _number(value.measured),
            "before": "refused" if value.before is None else _number(value.before),
            "after": _number(value.after),
            "after / measured": _ratio(value),
        }
        for value in calibration.values
    ]
    return Table.of("Values before and after", rows, words=(1, 2))


def _errors(calibration: Calibration) -> Iterator[Table]:
    """Yield a table of the error by kind of row and band of utilisation, beside the noise of repeats."""
    noises = {one.kind: one for one in repeat_noise(calibration.rows)}
    rows = []
    for line in error_lines(calibration.values):
        noise = noises.get(line.kind)
        rows.append(
            {
                "kind": line.kind,
                "busiest resource": line.band,
                "within 25 %": f"{line.within_25_percent} of {line.values}",
                "median error": f"{line.median_error_percent:.0f} %",
                "worst": f"{line.worst_error_percent:.0f} %",
                "median before": _percent(line.median_error_percent_before),
                "repeats differ by": f"{noise.noise_percent:.1f} %"
                if noise
                else "not repeated",
                "judged on": f"{line.basis} rows",
            }
        )
    if rows:
        yield Table.of("Error by utilisation", rows, numeric=False, caption_shown=True)


def _number(value: float | None) -> str:
    """Write a number with four digits, or a dash for None."""
    return number_text(value, digits=4)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} %"


def _ratio(value: JudgedValue) -> str:
    """Write simulated over measured, and the check that the row's run fails."""
    mark = ""
    if value.refused is not None:
        mark = failed_check(value.refused)
    if value.after is None:
        return f"refused: {mark}"
    ratio = f"{value.after / value.measured:.2f}"
    return f"{ratio} (unchecked: {mark})" if mark else ratio


def _sentences(calibration: Calibration) -> Iterator[str]:
    held_out = calibration.held_out()
    if held_out:
        before = calibration.count_within(after=False)
        after = calibration.count_within(after=True)
        yield (
            f"held out: {after} of {held_out} values within 25 % after calibration, {before} before"
        )
    hosts = calibration.scenario.cluster.host_count
    if calibration.step_hosts < hosts:
        yield (
            f"steps of the fit simulated {calibration.step_hosts} of {hosts} hosts. On a cluster of 63 "
            "hosts, 16 had its rate within 1 %, and 24 % less where most requests wait at one OSD. Runs of "
            "the whole before the fit correct the steps"
        )
    if calibration.further:
        best = calibration.further[0]
        yield f"measure next: {best.load}, whose rate is known to ±{100 * best.uncertainty:.0f} %"
        if best.gains:
            gain = best.gains[0]
            yield (
                f"  it would narrow the factor {gain.factor} from ±{100 * gain.spread_before:.0f} % to "
                f"±{100 * gain.spread_after:.0f} % (one standard deviation)"
            )
        yield f"  {best.fio}"
