"""Read runs measured with fio from a folder of JSON outputs with a scenario of the cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from stripesim.calibration.measured.rows import METRICS, mean_latency_bounds_ms
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import is_scheme
from stripesim.models.problems import MeasuredError, Problem
from stripesim.scenarios.answers.calibrate.rows import (
    CalibrationRow,
    Load,
    SimulatedRow,
)
from stripesim.scenarios.cells.measured import (
    REQUESTS_MIN,
    ModelChange,
    is_step,
    request_count,
    requests_max,
)
from stripesim.scenarios.cells.models import build_models, device_set
from stripesim.scenarios.cells.notes import slow_class
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.clusters.fio import (
    FioDirection,
    FioJob,
    ValueT,
    block_bytes,
    check_rate,
    count,
    latency_mean_ns,
    mean_block_bytes,
    percentile_ns,
    rate_of,
    read_fio_jobs,
)
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario, load_scenario
from stripesim.sim.ceph.cluster import Models

#: Operation and pattern of each fio load type (``rw``).
_LOADS: Final = {
    "read": ("read", "seq"),
    "write": ("write", "seq"),
    "randread": ("read", "rand"),
    "randwrite": ("write", "rand"),
}
#: Metric of each percentile that is read, and fio's key.
_PERCENTILES: Final = {
    "latency_p50_ms": "50.000000",
    "latency_p95_ms": "95.000000",
    "latency_p99_ms": "99.000000",
}


@dataclass(frozen=True)
class FioRun:
    """A fio output and the scenario of the measured cluster."""

    row: CalibrationRow
    scenario_path: Path

    @property
    def rows(self) -> tuple[CalibrationRow, ...]:
        """The single row of the run."""
        return (self.row,)

    @property
    def drive_set(self) -> ParameterSet:
        """The parameter set of the drives."""
        return device_set(self._scenario)

    def scenario(self) -> Scenario:
        """Return the run as a scenario."""
        return self._scenario

    @cached_property
    def _scenario(self) -> Scenario:
        return self._with_requests(REQUESTS_MIN)

    def _with_requests(self, requests: int) -> Scenario:
        row = self.row
        load = {
            "kind": "closed",
            "ops": [row.op],
            "patterns": [row.pattern],
            "block_sizes_bytes": [row.block_bytes],
            "clients": row.clients,
            "queue_depth": row.queue_depth,
            "requests": requests,
        }
        sets: dict[str, Any] = {f"workload.{key}": value for key, value in load.items()}
        # The loads of the scenario are not those that fio measured.
        sets |= {"workloads": [], "schemes": [row.scheme]}
        return load_scenario(self.scenario_path, sets=sets)

    def models(self) -> Models:
        """Return the models before calibration."""
        return build_models(self._scenario)

    @property
    def step_hosts(self) -> int:
        """Hosts that a step of the fit simulates: all of them [count]."""
        return self._scenario.cluster.host_count

    def simulate(self, change: ModelChange, *, rounds: int) -> dict[str, SimulatedRow]:
        """Simulate the run with changed models and return its row, keyed by row id."""
        in_flight = self.row.clients * self.row.queue_depth
        requests = request_count(in_flight, rounds, requests_max(rounds))
        scenario = self._with_requests(requests)
        models = change(build_models(scenario))
        (cell, *_) = cells(scenario)
        result = run_cell(
            scenario, cell, "compiled", models, unchecked=True, is_step=is_step(rounds)
        )
        row = result.row.as_dict()
        metrics = {
            "iops": row["iops"],
            "mb_s": row["throughput_bytes_per_s"] / 1e6,
            "latency_mean_ms": row["latency_mean_ns"] / 1e6,
            "latency_p99_ms": row["latency_p99_ns"] / 1e6,
        }
        simulated = SimulatedRow(
            metrics, result.refused, result.utilisation, slow_class(scenario, result)
        )
        return {self.row.id: simulated}

    def under(self, load: Load) -> FioRun:
        """Return a run on the same cluster under another load."""
        return FioRun(load.of(self.row), self.scenario_path)


def fio_runs(folder: Path) -> list[FioRun]:
    """Read the fio outputs of a folder. Its only TOML file is the scenario of the cluster.

    A file name that begins with a scheme, with hyphens for its colon and comma (``rs-4-2-randwrite.json``),
    indicates a pool of that scheme. All other files use the first scheme of the scenario. Replication runs
    are fitted and all others are held out.

    Raises
    ------
    MeasuredError
        If there is not exactly one scenario, or an output cannot be used, with a line for each problem.
    ScenarioError
        If the scenario cannot be used.
    """
    scenarios = sorted(folder.glob("*.toml"))
    if len(scenarios) != 1:
        raise MeasuredError(
            Problem(
                place=str(folder),
                got=f"{len(scenarios)} TOML files next to fio's outputs",
                wanted="one: the scenario of the cluster that was measured",
            )
        )
    any_load = {"workload.requests": REQUESTS_MIN, "workloads": []}
    scenario = load_scenario(scenarios[0], sets=any_load)
    problems: list[Problem] = []
    runs = []
    for path in sorted(folder.glob("*.json")):
        try:
            runs.append(FioRun(_row(path, scenario.schemes), scenarios[0]))
        except MeasuredError as error:
            problems += error.problems
    if problems:
        raise MeasuredError(*problems)
    return runs


@dataclass(frozen=True, kw_only=True)
class FioLoad:
    """The load that a fio output measured, and its numbers.

    Attributes
    ----------
    op, pattern, block_bytes
        Kind of request.
    clients, queue_depth
        Jobs, and requests that each keeps in flight [count].
    measured
        ``iops``, ``latency_mean_ms`` and, if a single entry reports them, percentiles such as
        ``latency_p99_ms``.
    object_bytes
        Size of the objects that requests are of [B]. None: those of an image.
    """

    op: str
    pattern: str
    block_bytes: int
    clients: int
    queue_depth: int
    measured: Mapping[str, float]
    object_bytes: int | None = None


def read_fio(path: Path) -> FioLoad:
    """Read the output of one fio run.

    Raises
    ------
    MeasuredError
        If the file is not an output of fio, or holds several loads.
    """
    jobs = read_fio_jobs(path)
    _check_together(jobs)
    op, pattern = _load_of(jobs)
    _check_one_size(jobs)
    directions = [direction for job in jobs for direction in job.directions(op)]
    iops = rate_of(directions)
    check_rate(path, iops, op)
    clients = sum(job.clients for job in jobs)
    queue_depth = _common(jobs, "iodepth", "1", count)
    measured = {"iops": iops, **_latencies(directions)}
    _check_in_flight(path, measured, clients * queue_depth)
    return FioLoad(
        op=op,
        pattern=pattern,
        block_bytes=_one_size(jobs, op),
        clients=clients,
        queue_depth=queue_depth,
        measured=measured,
    )


def _check_together(jobs: Sequence[FioJob]) -> None:
    """Refuse jobs that ran one after the other, whose rates are not those of one load."""
    if len({job.group for job in jobs}) > 1:
        raise MeasuredError(
            Problem(
                place=str(jobs[0].path),
                key="jobs",
                got=f"{len(jobs)} jobs in several groups (stonewall, new_group)",
                wanted="jobs of one group, which run at the same time",
            )
        )


def _check_in_flight(path: Path, measured: Mapping[str, float], asked: int) -> None:
    """Refuse a rate and a latency that do not keep the requests of the load in flight."""
    rate_per_s = measured["iops"]
    latency_ms = measured.get("latency_mean_ms")
    if latency_ms is None:
        return
    low_ms, high_ms = mean_latency_bounds_ms(rate_per_s, asked)
    if low_ms <= latency_ms <= high_ms:
        return
    in_flight = rate_per_s * latency_ms / 1e3
    got = f"{rate_per_s:,.6g} requests/s of {latency_ms:.4g} ms, {in_flight:,.4g} in flight"
    wanted = f"at most numjobs × iodepth, {asked:,}"
    if latency_ms < low_ms:
        wanted = (
            f"numjobs × iodepth, {asked:,}, without pauses (rate_iops, thinktime) and with an ioengine that "
            "works asynchronously, such as rbd"
        )
    raise MeasuredError(Problem(place=str(path), key="jobs", got=got, wanted=wanted))


def _row(path: Path, schemes: Sequence[str]) -> CalibrationRow:
    load = read_fio(path)
    scheme = scheme_of(path, schemes)
    return CalibrationRow(
        id=path.stem,
        role="calibration" if scheme.startswith("rep:") else "held-out",
        scheme=scheme,
        op=load.op,
        pattern=load.pattern,
        block_bytes=load.block_bytes,
        clients=load.clients,
        queue_depth=load.queue_depth,
        measured={
            metric: value
            for metric, value in load.measured.items()
            if metric in METRICS
        },
    )


def _load_of(jobs: Sequence[FioJob]) -> tuple[str, str]:
    kind = _common(jobs, "rw", "", str)
    if kind not in _LOADS:
        raise MeasuredError(
            Problem(
                place=str(jobs[0].path),
                key="rw",
                got=str(kind or "nothing"),
                wanted=f"one of {', '.join(_LOADS)}",
            )
        )
    return _LOADS[kind]


def _common(
    jobs: Sequence[FioJob], key: str, default: str, convert: Callable[[str], ValueT]
) -> ValueT:
    """Return an option that all jobs of a file share."""
    values = {str(job.options.get(key, default)) for job in jobs}
    if len(values) > 1:
        raise MeasuredError(
            Problem(
                place=str(jobs[0].path),
                key=key,
                got=", ".join(sorted(values)),
                wanted="one load per file",
            )
        )
    return jobs[0].option(key, default, convert)


def _check_one_size(jobs: Sequence[FioJob]) -> None:
    """Refuse a load with requests of several sizes."""
    for key in ("bsrange", "bssplit"):
        for job in jobs:
            if key in job.options:
                place, got = str(job.path), str(job.options[key])
                wanted = "bs: requests of one size"
                raise MeasuredError(
                    Problem(place=place, key=key, got=got, wanted=wanted)
                )


def _one_size(jobs: Sequence[FioJob], op: str) -> int:
    """Return the size of the requests, which all jobs of a file share [B]. ``bs`` may state two."""
    _common(jobs, "bs", "4k", block_bytes)
    return mean_block_bytes(jobs[0], op)


def _latencies(directions: Sequence[FioDirection]) -> dict[str, float]:
    """Return the mean latency of all jobs [ms], and percentiles if a single entry reports them."""
    latencies_ns = {"latency_mean_ms": latency_mean_ns(directions)}
    latencies_ns |= {
        metric: percentile_ns(directions, key) for metric, key in _PERCENTILES.items()
    }
    return {
        metric: latency_ns / 1e6
        for metric, latency_ns in latencies_ns.items()
        if latency_ns
    }


def scheme_of(path: Path, schemes: Sequence[str]) -> str:
    """Return the scheme that a file name begins with, or the first one.

    Raises
    ------
    MeasuredError
        If the name begins with another scheme.
    """
    slugs = {re.sub("[:,]", "-", scheme): scheme for scheme in schemes}
    fitting = [
        slug for slug in slugs if path.stem == slug or path.stem.startswith(f"{slug}-")
    ]
    if fitting:
        return slugs[max(fitting, key=len)]
    named_scheme = _scheme_named(path.stem)
    if named_scheme is not None:
        got = f"a file name that begins with {named_scheme}"
        wanted = f"one of {' '.join(schemes)}, or another beginning"
        raise MeasuredError(Problem(place=str(path), got=got, wanted=wanted))
    return schemes[0]


def _scheme_named(stem: str) -> str | None:
    """Return the longest scheme that a file name begins with, such as lrc-ceph-4-2-3, or None."""
    name_parts = stem.split("-")
    for end in range(len(name_parts), 1, -1):
        for start in range(1, end):
            name = f"{'-'.join(name_parts[:start])}:{','.join(name_parts[start:end])}"
            if is_scheme(name):
                return name
    return None
