"""Fit the set `nvme` by least squares on rows of 3-replication with the role `calibration`, on nothing else.

Run as ``python -m stripesim.scenarios.studies.nvme.fit``; it writes what it finds into the set and into the
study's ``parameters.toml``. What is searched, from where and within which bounds stands in `STAGES`. With the
argument ``erasure`` it searches nothing and carries over what the set `pacific` has now (`erasure_costs`).
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stripesim.calibration.fitting import Fit, fit_parameters
from stripesim.calibration.parameters import sets
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.studies.ceph16.measured import load as ceph16_runs
from stripesim.scenarios.studies.nvme.hardware import hardware_of
from stripesim.scenarios.studies.nvme.measured import MeasuredRow, load
from stripesim.scenarios.studies.nvme.runs import PARAMETERS, ROUNDS, predict
from stripesim.scenarios.studies.parameters import Changes, changes_applied

# Processor times of the stages relative to each other, as `kraken` and `pacific` have them [ns]: one
# factor for those of any operation, one for what a write adds, one for the key-value thread.
SPREAD = {
    "cpu.op_prepare_ns": {
        "cpu.op_prepare_ns": 40_000,
        "cpu.message_base_ns": 20_000,
        "cpu.sub_op_send_ns": 10_000,
        "cpu.sub_op_prepare_ns": 25_000,
        "cpu.op_finish_ns": 30_000,
        "cpu.store_read_ns": 35_000,
    },
    "cpu.store_transaction_ns": {
        "cpu.store_transaction_ns": 40_000,
        "cpu.sub_write_send_ns": 10_000,
        "cpu.sub_reply_ns": 20_000,
    },
    "cpu.kv_transaction_ns": {
        "cpu.kv_transaction_ns": 20_000,
        "cpu.kv_finish_ns": 20_000,
    },
}
# What a row is judged by: the first that it has. Rates and mean latencies say the same in a closed loop.
METRICS = ("iops", "mb_s", "latency_mean_ms")
# Weight of a row, the same for all.
TOLERANCE = 0.1
# Processor time of a write of 4 KiB under 3-replication: measured on a real Ceph 16 (this run), and here
# (upstream-mako-5x6-020: 3.65 hardware threads for each of 30 OSDs at 450,500 a second) [ns].
CEPH16_RUN, WRITE_CPU_NS = "main-rep3-write-rand-4096-q64", 3.65e9 * 30 / 450_500
# A search runs short simulations; how far each is from one as long as the study's is measured at its start.
SHORT_ROUNDS = 4


@dataclass(frozen=True)
class Stage:
    """A step: what it searches, as (start, least, highest), the rows that it sees, and its most steps."""

    parameters: Mapping[str, tuple[float, float, float]]
    rows: tuple[str, ...]
    evaluations: int = 4


def _rows(cluster: str, *numbers: str) -> tuple[str, ...]:
    return tuple(f"{cluster}-{number}" for number in numbers)


STAGES = (
    # 4 MiB. Starts: a microsecond for a frame of 1448 bytes; the drive's data sheet. Copies and checksums are
    # measured, not fitted. Three rows of reads are left out, for the wire alone decides them, and 027 of
    # 10x6, which no mechanism of the model limits (71 GB/s where the wire would carry 119).
    Stage(
        {
            "cpu.frame_ns": (1_000, 100, 5_000),
            "client.submit_ns_per_byte": (0.2, 0.02, 2.0),
            "drive.write_rate_fraction": (0.95, 0.3, 1.0),
        },
        _rows("upstream-mako-5x6", "021", "031", "035", "040", "053", "073", "077")
        + _rows("upstream-mako-10x6", "028"),
    ),
    # Reads of 4 KiB. Starts: stages at a quarter of `kraken`'s (Xeons of 2012); a second thread
    # on a core adds a quarter to its work (usual figures are 1.2 to 1.3 times): each takes 1.6 times as long.
    Stage(
        {
            "cpu.op_prepare_ns": (8_000, 1_000, 80_000),
            "cpu.paired_slowdown_fraction": (0.6, 0.2, 1.0),
            "cpu.after_reply_ns": (20_000, 1_000, 200_000),
            "threads.hand_over_ns": (20_000, 1_000, 200_000),
            "client.submit_ns": (6_000, 1_000, 50_000),
            # A client of librbd has six threads that work: one of fio, two of librados, three messengers
            # (Ceph v18.2.0: librados_thread_count, ms_async_op_threads). At 148,000 reads a second
            # (upstream-mako-5x6-057) that leaves at most 40.5 us for each.
            "client.processor_ns": (30_000, 5_000, 40_500),
        },
        _rows("upstream-mako-5x6", "001", "005", "010", "041", "057", "065")
        + _rows("upstream-mako-6x2", "001")
        + _rows("upstream-mako-10x6", "001", "009", "025"),
    ),
    # Writes of 4 KiB.
    Stage(
        {
            "cpu.store_transaction_ns": (40_000, 5_000, 400_000),
            "cpu.kv_transaction_ns": (8_000, 1_000, 80_000),
            "client.submit_write_ns": (4_000, 500, 50_000),
        },
        _rows("upstream-mako-5x6", "011", "015", "020", "045", "061", "069")
        + _rows("upstream-mako-10x6", "011", "019", "021", "026"),
    ),
    # IBM's processor and how fast its drives take large writes; nothing else of them can be found from four
    # rows, so the rest of the drive is that of the other cluster. Starts: the other cluster's, too.
    Stage(
        {
            "cpu_factor.ibm_fastec_1x8": (1.0, 0.3, 6.0),
            "ibm_drive.write_mb_s": (1_900, 500, 20_000),
        },
        _rows("ibm-fastec-1x8", "052", "067", "085", "087"),
        evaluations=12,
    ),
)


def _spread(values: Mapping[str, float]) -> dict[str, float]:
    """Return every number that a search's values stand for."""
    found = dict(values)
    for name, shape in SPREAD.items():
        if name in values:
            found |= {
                each: values[name] * part / shape[name] for each, part in shape.items()
            }
    return found


def _measured(names: Sequence[str]) -> dict[str, MeasuredRow]:
    """Return the rows of a stage; any that a fit may not see is refused."""
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
    """Simulate rows with some numbers changed; rows of one run are simulated once."""
    found: dict[str, float] = {}
    runs: dict[object, list[MeasuredRow]] = {}
    for row in rows.values():
        runs.setdefault(row.run_key[1:], []).append(row)
    with changes_applied(Changes(_spread(values))):
        clusters = load()[1]
        for shared in runs.values():
            hardware = hardware_of(shared[0], clusters, "clusters.toml")
            for row, result in zip(
                shared, predict(shared, hardware, rounds=rounds), strict=True
            ):
                found[row.id] = float(result[_metric(row)])
    return found


def fit_stage(stage: Stage, given: Mapping[str, float]) -> Fit:
    """Search a stage's numbers with those of the others given."""
    start = {name: start for name, (start, _, _) in stage.parameters.items()}
    rows = _measured(stage.rows)
    long = simulated(rows, {**given, **start}, ROUNDS)
    short = simulated(rows, {**given, **start}, SHORT_ROUNDS)

    def corrected(values: Mapping[str, float]) -> dict[str, float]:
        found = simulated(rows, {**given, **values}, SHORT_ROUNDS)
        return {name: value * long[name] / short[name] for name, value in found.items()}

    return fit_parameters(
        corrected,
        start=start,
        published={name: row.measured[_metric(row)] for name, row in rows.items()},
        tolerance=dict.fromkeys(rows, TOLERANCE),
        bounds={
            name: (least, most) for name, (_, least, most) in stage.parameters.items()
        },
        most=stage.evaluations,
    )


def fit_all() -> list[Fit]:
    """Run all stages, each with what those before it found; numbers of later ones stand at their starts."""
    known = {
        name: start
        for stage in STAGES
        for name, (start, _, _) in stage.parameters.items()
    }
    fits = []
    for stage in STAGES:
        fits.append(fit_stage(stage, known))
        known |= {one.name: one.value for one in fits[-1].parameters}
        for one in fits[-1].parameters:
            low, high = one.confidence_interval
            print(
                f"{one.name:32s} {one.value:10.6g}   [{low:.5g}, {high:.5g}]",
                flush=True,
            )
        for name, error in fits[-1].errors.items():
            print(f"    {name:32s} {error:+.1%}", flush=True)
    return fits


def write(fits: Sequence[Fit]) -> None:
    """Write what was found, where it came from and how well it is known into the files of parameters."""
    for stage, fit in zip(STAGES, fits, strict=True):
        source = f"least squares on the 3-replication rows with the role calibration: {', '.join(stage.rows)}"
        for one in fit.parameters:
            for name, factor in _spread({one.name: 1.0}).items():
                numbers = [
                    _digits(part * factor)
                    for part in (one.value, *one.confidence_interval)
                ]
                said = (
                    source
                    if name == one.name
                    else f"in proportion to {one.name}, as in kraken; {source}"
                )
                _put(
                    name,
                    numbers[0],
                    said,
                    f"confidence_interval = [{numbers[1]}, {numbers[2]}]\n",
                )


def write_erasure_costs() -> None:
    """Write what an erasure code costs, as `pacific` has it now."""
    said = (
        "in the ratio that a real Ceph 16.2.15 shows to what {}; fitted on RS(6,3) there (set pacific, a "
        "stage by itself), on no row of this study"
    )
    part = f"a replica's part of a write takes in all (ceph16: {CEPH16_RUN}, here: upstream-mako-5x6-020)"
    transaction_ns, copy_ns_per_byte = erasure_costs()
    _put("cpu.ec_transaction_ns", _digits(transaction_ns), said.format(part))
    part = "messages and store take for a byte"
    _put("cpu.ec_copy_ns_per_byte", _digits(copy_ns_per_byte), said.format(part))


def erasure_costs() -> tuple[float, float]:
    """Carry over what an erasure code costs beyond replication on a real Ceph 16 [ns], [ns/B].

    There a transaction takes so much more than a replica's part of a write, and copies so much more than a
    byte's way through messages and store; here it is as much of what those cost here.
    """
    there, here = ParameterSet("pacific"), ParameterSet(PARAMETERS)
    measured = next(
        run for run in ceph16_runs().runs if run.run_id == CEPH16_RUN
    ).measured
    # Both writes have three replicas.
    replicas = WRITE_CPU_NS / (1e3 * measured["cpu_us_per_op"])
    transaction_ns = _number(there, "threads.ec_wakes_count") * _number(
        there, "threads.wake_ns"
    )
    bytes_ns = _number(here, "cpu.message_ns_per_byte") + _number(
        here, "cpu.store_ns_per_byte"
    )
    per_byte = bytes_ns / _number(there, "cpu.message_ns_per_byte")
    return replicas * transaction_ns, per_byte * _number(
        there, "cpu.ec_copy_ns_per_byte"
    )


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
        Path(__file__).parent / "parameters.toml",
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
        write(fit_all())
    write_erasure_costs()
