"""What the study runs, piece by piece: one task is one simulation, fit to be sent to a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from stripesim.scenarios.run.build import build_cell, build_models
from stripesim.scenarios.run.cell import row_of
from stripesim.scenarios.schema.keys import Cell, Scenario
from stripesim.scenarios.schema.loader import load_scenario
from stripesim.scenarios.studies.koh2017.ablations import ABLATIONS, Ablation
from stripesim.scenarios.studies.koh2017.figures import PRISTINE_DURATION_S
from stripesim.scenarios.studies.koh2017.heartbeats import INTERVAL_NS, MESSAGE_BYTES
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.creation import CreationSource
from stripesim.sim.ceph.heartbeats import HeartbeatSource
from stripesim.sim.engine.graph import COUNTER_INDEX
from stripesim.sim.run import RunResult, simulate

SECOND_NS = 1_000_000_000
TENTHS = 10


class StudyError(ValueError):
    """A study that cannot be run as asked; one line says why."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One simulation.

    Parameters
    ----------
    kind : str
        ``cell`` (a row), ``ablation`` (a row, something changed), ``series`` (a row per second) or
        ``heartbeat`` (a row: what the pings carry).
    name : str
        Of the series or the ablation.
    scheme, op, pattern, image : str
    size_bytes : int
        Of a request [B].
    duration_s : float or None
        Bound in simulated time [s]; None: the scenario's number of requests.
    pause_ns : int
        Of a series: pause at the first write into each object [ns]; −1: as long as the object map takes.
    fill : str
        Of a series: see `stripesim.sim.ceph.creation.CreationSource`.
    engine : str
    """

    kind: str
    name: str = ""
    scheme: str
    op: str
    pattern: str
    image: str
    size_bytes: int
    duration_s: float | None = None
    pause_ns: int = 0
    fill: str = "gap"
    engine: str = "compiled"

    @property
    def words(self) -> str:
        """A few words for a progress bar."""
        return " ".join(
            part for part in (self.name, self.scheme, self.op, self.pattern, str(self.size_bytes)) if part
        )

    @property
    def weight(self) -> float:
        """How long it takes beside others: runs bounded by time are by far the longest."""
        return (self.duration_s or 0.0) * (2.0 if self.scheme.startswith("rs") else 1.0)


@dataclass(frozen=True)
class Done:
    """What came of a task: rows, or why there are none."""

    rows: list[dict[str, Any]]
    fault: str | None = None


def scenario_for(pattern: str, op: str, image: str, base: Scenario) -> Scenario:
    """Return the scenario of one kind of run: image state and bound."""
    bounded = (pattern, op, image) == ("rand", "write", "pristine")
    return _scenario(base, image, PRISTINE_DURATION_S if bounded else None)


def _scenario(base: Scenario, image: str, duration_s: float | None) -> Scenario:
    workload = base.workload.model_copy(update={"image": image})
    if duration_s is not None:
        workload = workload.model_copy(update={"requests": None, "duration_s": duration_s})
    return base.model_copy(update={"workload": workload})


@cache
def _base() -> tuple[Scenario, Models]:
    base = load_scenario("koh2017")
    return base, build_models(base)


def perform(task: Task) -> Done:
    """Run one task; a fault comes back as words, because it may have to cross processes."""
    try:
        return Done({"series": _series, "heartbeat": _heartbeat}.get(task.kind, _row)(task))
    except ValueError as error:
        return Done([], f"{task.words}: {error}")


def _row(task: Task) -> list[dict[str, Any]]:
    base, models = _base()
    ablation = ABLATIONS.get(task.name, Ablation(""))
    base, models = ablation.scenario(base, task.scheme), ablation.models(models)
    scenario = _scenario(base, task.image, task.duration_s)
    result = _simulate(task, scenario, models, fill=ablation.fill)
    row = row_of(scenario, _cell(task), result)
    return [{**row, "ablation": task.name} if task.kind == "ablation" else row]


def _cell(task: Task) -> Cell:
    return Cell(task.scheme, task.op, task.pattern, task.size_bytes)  # type: ignore[arg-type]


def _simulate(
    task: Task, scenario: Scenario, models: Models, *, fill: str, pause_ns: int = 0, **further: Any
) -> RunResult:
    setting = build_cell(scenario, _cell(task), models)
    changed = task.image == "pristine" and (fill != "gap" or pause_ns)
    source = partial(CreationSource, pause_ns=pause_ns, fill=fill) if changed else None
    return simulate(
        setting.pool,
        setting.workload,
        prefilled=setting.prefilled,
        until_ns=setting.until_ns,
        newest_only=setting.newest_only,
        seed=scenario.seed,
        engine=task.engine,
        foreground=source,
        **further,
    )


def _series(task: Task) -> list[dict[str, Any]]:
    """One row per whole second of the run."""
    base, models = _base()
    pause_ns = task.pause_ns if task.pause_ns >= 0 else _object_map_ns(base, models, task.engine)
    scenario = _scenario(base, task.image, task.duration_s)
    result = _simulate(task, scenario, models, fill=task.fill, pause_ns=pause_ns, bin_ns=SECOND_NS)
    bins = result.engine_run.bins
    cluster = build_cell(scenario, _cell(task), models).pool.cluster
    cores = cluster.hosts * cluster.models.cpu.cores_per_host
    seconds = min(len(bins), int(result.engine_run.end_ns // SECOND_NS))
    edges = np.arange(seconds * TENTHS + 1, dtype=np.float64) * (SECOND_NS // TENTHS)
    done = result.requested.done
    tenths = np.histogram(
        result.requested.completed_ns[done], bins=edges, weights=result.requested.lengths_bytes[done]
    )[0].reshape(seconds, TENTHS)
    entries = np.bincount(result.engine_run.streams[0].groups).max()
    counters = {name: bins[:seconds, index].tolist() for name, index in COUNTER_INDEX.items()}
    return [
        {
            "series": task.name,
            "scheme": task.scheme,
            "op": task.op,
            "pattern": task.pattern,
            "image": task.image,
            "block_size_bytes": task.size_bytes,
            "time_s": second + 1,
            "throughput_bytes_per_s": float(tenths[second].sum()),
            "throughput_lowest_tenth_bytes_per_s": float(tenths[second].min() * TENTHS),
            "cpu_utilisation": counters["cpu_ns"][second] / (cores * SECOND_NS),
            "context_switches_per_s": counters["context_switches"][second],
            "private_net_bytes_per_s": counters["private_net_bytes"][second],
            "device_read_bytes_per_s": counters["device_read_bytes"][second],
            "device_write_bytes_per_s": counters["device_write_bytes"][second],
            "pause_ns": pause_ns,
            "pg_log_entries_max": int(entries),
        }
        for second in range(seconds)
    ]


def _object_map_ns(base: Scenario, models: Models, engine: str) -> int:
    """Time of one update of the object map: a small write of the replicated metadata pool, alone [ns]."""
    workload = base.workload.model_copy(update={"queue_depth": 1, "requests": 200})
    told = base.model_copy(update={"workload": workload})
    setting = build_cell(told, Cell("rep:3", "write", "rand", 4096), models)
    result = simulate(setting.pool, setting.workload, prefilled=True, seed=base.seed, engine=engine)
    return round(float(result.row["latency_mean_ns"]))


def _heartbeat(task: Task) -> list[dict[str, Any]]:
    """What the pings carry while clients read."""
    base, models = _base()
    scenario = _scenario(base, task.image, task.duration_s)
    assert task.duration_s is not None
    pings = partial(
        HeartbeatSource,
        interval_ns=INTERVAL_NS,
        size_bytes=MESSAGE_BYTES,
        until_ns=round(task.duration_s * SECOND_NS),
    )
    result = _simulate(task, scenario, models, fill="gap", background=[pings])
    (counted,) = result.background
    return [
        {
            "heartbeat_private_bytes_per_s": counted["private_net_bytes"] / task.duration_s,
            "heartbeat_messages_per_s": counted["messages"] / task.duration_s,
        }
    ]


def run_tasks(
    tasks: Iterable[Task], *, jobs: int, progress: Callable[[str, int], None] | None = None
) -> list[Done]:
    """Run tasks, on several processes where asked; results come in the order of the tasks.

    Parameters
    ----------
    tasks : iterable of Task
    jobs : int
        Worker processes [count]; 1: none, all in this process.
    progress : callable, optional
        Called after each task with a few words about it and the number of tasks in all.

    Raises
    ------
    StudyError
        With one line per task that could not be run.
    """
    told = list(tasks)
    found: dict[Task, Done] = {}
    for task, done in _each(told, jobs):
        found[task] = done
        if progress is not None:
            progress(task.words, len(told))
    faults = [done.fault for done in found.values() if done.fault]
    if faults:
        raise StudyError("\n".join(faults))
    return [found[task] for task in told]


def _each(tasks: list[Task], jobs: int) -> Iterator[tuple[Task, Done]]:
    if jobs <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield task, perform(task)
        return
    from stripesim.scenarios.sweep.pool import Death, run_pool

    # The longest first, so that no worker begins one when the others are done.
    for task, done in run_pool(perform, sorted(tasks, key=lambda t: -t.weight), jobs=jobs):
        yield task, Done([], f"{task.words}: {done.reason}") if isinstance(done, Death) else done
