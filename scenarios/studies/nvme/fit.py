"""Fit the set `nvme` by least squares on calibration rows of 3-replication only.

``python -m stripesim.scenarios.studies.nvme.fit`` writes the numbers into the set and into ``hardware.toml``
of `stripesim.calibration.measured`. ``fit.toml`` holds parameters, starts and bounds. With the argument
``erasure`` it only carries over the costs of the set `pacific` (`erasure_costs`).
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from stripesim.calibration.fitting import Fit
from stripesim.calibration.measured.rows import MeasuredRow
from stripesim.calibration.parameters import sets
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.cells.measured import PARAMETERS, ROUNDS
from stripesim.scenarios.studies.nvme.measured import load, study_hardware
from stripesim.scenarios.studies.nvme.runs import simulate_rows
from stripesim.scenarios.studies.parameters import Changes, changes_applied
from stripesim.scenarios.studies.staged_fit import (
    FitStage,
    RowValues,
    fit_stages,
    run_stages,
    with_proportions,
)

STUDY = "nvme"
# The first of these that a row has is fitted. Rates and mean latencies are equivalent in a closed loop.
METRICS = ("iops", "mb_s", "latency_mean_ms")
# Processor time of a thread that another one wakes through a condition variable, with warm caches: three
# rounds of 100,000 switches on an AMD EPYC, 3.76 to 3.82 us. An OSD has more memory to touch, so its threads
# take more.
SWITCH_NS = 3_800
# A search runs short simulations, corrected by the ratio to the study's length at the start.
SHORT_ROUNDS = 8


def _measured(names: Sequence[str]) -> dict[str, MeasuredRow]:
    """Return the rows of a stage, and refuse those that a fit may not see."""
    rows = {row.id: row for row in load()[0] if row.id in names}
    for row in rows.values():
        assert row.role == "calibration", f"{row.id} is {row.role}"
        assert parse_scheme(row.scheme).kind == "replicated", (
            f"{row.id} is not of replication"
        )
    return rows


def _metric(row: MeasuredRow) -> str:
    return next(metric for metric in METRICS if metric in row.measured)


def simulated(
    rows: Mapping[str, MeasuredRow], values: Mapping[str, float], rounds: int
) -> dict[str, float]:
    """Simulate rows with some numbers changed, and each shared run once."""
    simulated_values: dict[str, float] = {}
    runs: dict[object, list[MeasuredRow]] = {}
    for row in rows.values():
        runs.setdefault(row.run_key[1:], []).append(row)
    with changes_applied(Changes(with_proportions(STUDY, values))):
        clusters = load()[1]
        for shared in runs.values():
            hardware = study_hardware(shared[0], clusters, "clusters.toml")
            for row, result in zip(
                shared, simulate_rows(shared, hardware, rounds=rounds), strict=True
            ):
                simulated_values[row.id] = float(result[_metric(row)])
    return simulated_values


def simulator(
    stage: FitStage, known: Mapping[str, float]
) -> Callable[[Mapping[str, float]], RowValues]:
    """Return the function that simulates a stage's rows in short runs, corrected to long ones."""
    # Numbers of later stages have their starts.
    given: dict[str, float] = {}
    for each in fit_stages(STUDY):
        given |= each.start
    given |= known
    rows = _measured(stage.rows)
    long = simulated(rows, {**given, **stage.start}, ROUNDS)
    short = simulated(rows, {**given, **stage.start}, SHORT_ROUNDS)

    def corrected(values: Mapping[str, float]) -> RowValues:
        tried = simulated(rows, {**given, **values}, SHORT_ROUNDS)
        return {name: value * long[name] / short[name] for name, value in tried.items()}

    return corrected


def measured(stage: FitStage) -> RowValues:
    """Return the measured values of a stage's rows."""
    rows = _measured(stage.rows)
    return {name: row.measured[_metric(row)] for name, row in rows.items()}


def write(fits: Sequence[tuple[FitStage, Fit]]) -> None:
    """Write the numbers with source and interval into the files of parameters."""
    for stage, fit in fits:
        source = f"least squares on the 3-replication rows with the role calibration: {', '.join(stage.rows)}"
        for one in fit.parameters:
            for name, factor in with_proportions(STUDY, {one.name: 1.0}).items():
                numbers = [
                    _digits(part * factor)
                    for part in (one.value, *one.confidence_interval)
                ]
                origin = (
                    source
                    if name == one.name
                    else f"in proportion to {one.name}, as in kraken; {source}"
                )
                _put(
                    name,
                    numbers[0],
                    origin,
                    f"confidence_interval = [{numbers[1]}, {numbers[2]}]\n",
                )


def write_erasure_costs() -> None:
    """Write the costs of an erasure code, from the present `pacific`."""
    origin = "{}; fitted on RS(6,3) there (set pacific, a stage by itself), on no row of this study"
    transaction_ns, copy_ns_per_byte = erasure_costs()
    wakes = (
        "the wake-ups that a transaction of RS(6,3) adds on a real Ceph 16.2.15 (threads.ec_wakes_count), "
        "each of 3.8 us, as measured between two threads on an AMD EPYC"
    )
    _put("cpu.ec_transaction_ns", _digits(transaction_ns), origin.format(wakes))
    part = "in the ratio that a real Ceph 16.2.15 shows to what messages and store take for a byte"
    _put("cpu.ec_copy_ns_per_byte", _digits(copy_ns_per_byte), origin.format(part))


def erasure_costs() -> tuple[float, float]:
    """Return the costs of an erasure code beyond replication, from a real Ceph 16 [ns], [ns/B].

    A transaction adds as many wake-ups as there, with the time of a wake-up here. A copied byte keeps its
    ratio to a byte's way through messages and store.
    """
    pacific_set = ParameterSet("pacific")
    nvme_set = ParameterSet(PARAMETERS)
    transaction_ns = _number(pacific_set, "threads.ec_wakes_count") * SWITCH_NS
    bytes_ns = _number(nvme_set, "cpu.message_ns_per_byte") + _number(
        nvme_set, "cpu.store_ns_per_byte"
    )
    per_byte = bytes_ns / _number(pacific_set, "cpu.message_ns_per_byte")
    return transaction_ns, per_byte * _number(pacific_set, "cpu.ec_copy_ns_per_byte")


def _number(chosen: ParameterSet, name: str) -> float:
    table, key = name.split(".")
    return float((chosen.table(table) or {})[key]["value"])


def _digits(value: float) -> str:
    return f"{float(f'{value:.4g}'):.12g}"


def _put(name: str, value: str, source: str, interval: str = "") -> None:
    """Replace a number's table in the one file that has it."""
    text = f'[{name}]\nvalue = {value}\nprovenance = "fitted"\nsource = "{source}"\n{interval}'
    counts = []
    files = (
        Path(sets.__file__).parent / f"{PARAMETERS}.toml",
        Path(sets.__file__).parents[1] / "measured" / "hardware.toml",
    )
    for file in files:
        before = file.read_text(encoding="utf-8")
        after, count = re.subn(
            rf"\[{re.escape(name)}\]\n(?:[^\[\n].*\n)*", lambda _: text, before
        )
        file.write_text(after, encoding="utf-8")
        counts.append(count)
    assert sum(counts) == 1, f"{name}: in {sum(counts)} files"


if __name__ == "__main__":
    if sys.argv[1:] != ["erasure"]:
        write(run_stages(fit_stages(STUDY), simulator=simulator, published=measured))
    write_erasure_costs()
