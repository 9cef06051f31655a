"""Measured rows of a cluster, and the corresponding simulated runs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from stripesim.calibration.measured.hardware import MeasuredHardware, hardware_of
from stripesim.calibration.measured.rows import METRICS, MeasuredRow, read_measured
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import parse_scheme
from stripesim.models.problems import MeasuredError, Problem
from stripesim.scenarios.cells.measured import (
    ROUNDS_MIN,
    ModelChange,
    models_of,
    part_of,
    predict,
    scenario_of,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import size_text
from stripesim.sim.ceph.cluster import Models

#: Metrics for the fit, which uses the first one of each row.
FITTED_METRICS = ("iops", "mb_s", "latency_mean_ms")
#: Utilisation of the busiest resource below which the fit uses a mean latency, if there is one. Latencies at
#: low load tell about the network, drives and the client, rates at high load about the processor.
LOW_UTILISATION = 0.5


@dataclass(frozen=True, kw_only=True)
class CalibrationRow:
    """One measured row."""

    id: str
    role: str  #: ``calibration`` or ``held-out``
    scheme: str
    op: str
    pattern: str
    block_bytes: int
    clients: int
    queue_depth: int
    measured: Mapping[str, float]  #: Metric of `METRICS` → value in its unit
    #: ``read`` or ``write``: requests of a mixed load that the values describe. Empty: all
    part: str = ""
    read_fraction: float | None = (
        None  #: Share of the requests that read, None if not stated
    )
    #: What a simulation of the row depends on beyond its load. Repeats of a run have the same.
    run: Hashable = ()

    @property
    def fitted_metric(self) -> str:
        """The metric used in the fit at high load."""
        return next(metric for metric in FITTED_METRICS if metric in self.measured)

    def fitted_at(self, utilisation: float) -> str:
        """Return the metric used in the fit at a utilisation of the busiest resource."""
        if utilisation < LOW_UTILISATION and "latency_mean_ms" in self.measured:
            return "latency_mean_ms"
        return self.fitted_metric

    @property
    def load_text(self) -> str:
        """The load as text, such as ``rep:3 write 4 KiB rand, 1 × 1``, or its part of a mixed one."""
        size = size_text(self.block_bytes)
        op = self.op
        if op == "mixed" and self.read_fraction is not None:
            op = f"{100 * self.read_fraction:.0f} % reads"
        part = f", {self.part}s" if self.part else ""
        return f"{self.scheme} {op} {size} {self.pattern}, {self.clients} × {self.queue_depth}{part}"


RowT = TypeVar("RowT", CalibrationRow, MeasuredRow)


@dataclass(frozen=True)
class Load:
    """A closed-loop load to measure."""

    op: str
    pattern: str
    block_bytes: int
    clients: int
    queue_depth: int  #: Requests in flight per client

    @property
    def name(self) -> str:
        """Name of the load, for file names."""
        size = (
            f"{self.block_bytes >> 10}k"
            if self.block_bytes < 1 << 20
            else f"{self.block_bytes >> 20}M"
        )
        return f"{self._kind}-{size}-{self.clients}x{self.queue_depth}"

    @property
    def _kind(self) -> str:
        return f"rand{self.op}" if self.pattern == "rand" else self.op

    @property
    def fio_command(self) -> str:
        """The fio command that measures the load."""
        return (
            f"fio --name={self.name} --ioengine=rbd --pool=POOL --rbdname=IMAGE --rw={self._kind} "
            f"--bs={self.block_bytes >> 10}k --iodepth={self.queue_depth} --numjobs={self.clients} "
            f"--time_based --runtime=60 --group_reporting --output-format=json --output={self.name}.json"
        )

    def of(self, row: RowT) -> RowT:
        """Return a row of the same cluster and scheme under this load."""
        return replace(
            row,
            id=self.name,
            op=self.op,
            pattern=self.pattern,
            block_bytes=self.block_bytes,
            clients=self.clients,
            queue_depth=self.queue_depth,
        )


class SimulatedRow(NamedTuple):
    """Metrics of a simulated row by name, and the check of the audit that its run fails, if it fails one."""

    metrics: Mapping[str, float]
    refused: str | None
    utilisation: float = 0.0  #: Of the busiest resource, 0 to 1
    #: Class of resources whose queue is too slow for the percentiles of the run, or None
    slow_class: str | None = None


class CalibrationRun(Protocol):
    """A measured run with one or more rows that can be simulated."""

    @property
    def rows(self) -> tuple[CalibrationRow, ...]:
        """The rows of the run."""

    def scenario(self) -> Scenario:
        """Return the run as a scenario."""

    def models(self) -> Models:
        """Return the models before calibration."""

    @property
    def drive_set(self) -> ParameterSet | None:
        """The parameter set of the drives, for their capacity, or None if a data sheet describes them."""

    @property
    def step_hosts(self) -> int:
        """Hosts that a step of the fit simulates [count]."""

    def simulate(self, change: ModelChange, *, rounds: int) -> dict[str, SimulatedRow]:
        """Simulate the run with changed models and return its rows, keyed by row id."""

    def under(self, load: Load) -> CalibrationRun:
        """Return a run on the same cluster under another load."""


@dataclass(frozen=True)
class TableRun:
    """A run of ``times.csv``, on the hardware of ``clusters.toml``."""

    measured: tuple[MeasuredRow, ...]
    hardware: MeasuredHardware

    @property
    def rows(self) -> tuple[CalibrationRow, ...]:
        """The rows of the run."""
        return tuple(_calibration_row(row) for row in self.measured)

    @property
    def drive_set(self) -> None:
        """None, because a data sheet describes the drives."""

    @property
    def step_hosts(self) -> int:
        """Hosts that a step of the fit simulates [count]."""
        return part_of(self.measured[0], ROUNDS_MIN).nodes

    def scenario(self) -> Scenario:
        """Return the run as a scenario."""
        return scenario_of(self.measured[0], self.hardware)

    def models(self) -> Models:
        """Return the models before calibration."""
        return models_of(self.scenario(), self.measured[0], self.hardware)

    def simulate(self, change: ModelChange, *, rounds: int) -> dict[str, SimulatedRow]:
        """Simulate the run with changed models and return its rows, keyed by row id."""
        simulated = predict(self.measured, self.hardware, rounds=rounds, change=change)
        return {
            row["row_id"]: SimulatedRow(
                {metric: float(row[metric]) for metric in METRICS},
                row["refused"],
                row["utilisation"],
                row["slow_class"],
            )
            for row in simulated
        }

    def under(self, load: Load) -> TableRun:
        """Return a run on the same cluster under another load."""
        reads = float(load.op == "read")
        row = replace(load.of(self.measured[0]), part="", read_fraction=reads)
        return TableRun((row,), self.hardware)


def _calibration_row(row: MeasuredRow) -> CalibrationRow:
    return CalibrationRow(
        id=row.id,
        role=row.role,
        scheme=row.scheme,
        op=row.op,
        pattern=row.pattern,
        block_bytes=row.block_bytes,
        clients=row.clients,
        queue_depth=row.queue_depth,
        measured=row.measured,
        part=row.part,
        read_fraction=row.read_fraction,
        run=row.run_key,
    )


def table_runs(folder: Path) -> list[TableRun]:
    """Read runs from a folder with ``times.csv`` and ``clusters.toml``.

    Raises
    ------
    MeasuredError
        If the rows are of several clusters.
    MeasuredError
        If a file cannot be read or a row is invalid, with a line for each problem.
    """
    measured, clusters = read_measured(folder)
    counted = [row for row in measured if row.role != "not-derivable"]
    # Rows on parts of a cluster have names of their own and its hardware.
    names = sorted({row.hardware for row in counted})
    where = folder / "times.csv"
    if len(names) > 1:
        raise MeasuredError(
            Problem(
                place=str(where),
                key="cluster",
                got=", ".join(names),
                wanted="rows of one cluster",
            )
        )
    by_run: dict[tuple[Any, ...], list[MeasuredRow]] = {}
    for row in counted:
        by_run.setdefault(row.run_key, []).append(row)
    file = str(folder / "clusters.toml")
    return [
        TableRun(tuple(rows), hardware_of(rows[0], clusters, file))
        for rows in by_run.values()
    ]


def check_rows(rows: list[CalibrationRow], where: str) -> None:
    """Check that at least one row is fitted, and that only replication rows are.

    Raises
    ------
    MeasuredError
        A line for each problem.
    """
    problems = [
        Problem(
            place=f"{where}: {row.id}",
            key="role",
            got=f"calibration with {row.scheme}",
            wanted="held-out: a calibration is fitted to replication alone, so that erasure coding is "
            "predicted",
        )
        for row in rows
        if row.role == "calibration" and parse_scheme(row.scheme).kind == "erasure"
    ]
    fitted = [row for row in rows if row.role == "calibration"]
    if not fitted:
        problems.append(
            Problem(
                place=where,
                got="no row with the role calibration",
                wanted="at least one of replication",
            )
        )
    problems += [
        Problem(
            place=f"{where}: {row.id}",
            got=f"only {', '.join(row.measured)}" if row.measured else "no number",
            wanted=f"one of {', '.join(FITTED_METRICS)}",
        )
        for row in fitted
        if not any(metric in row.measured for metric in FITTED_METRICS)
    ]
    if problems:
        raise MeasuredError(*problems)
