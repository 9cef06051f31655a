"""What the study runs, piece by piece: one task is one simulation, fit to be sent to a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl

from stripesim.scenarios.run.build import build_cell, build_models
from stripesim.scenarios.run.cell import row_of
from stripesim.scenarios.schema.keys import Cell, Scenario
from stripesim.scenarios.schema.loader import load_scenario
from stripesim.scenarios.studies.base import chosen
from stripesim.scenarios.studies.koh2017 import ablations as what_if
from stripesim.scenarios.studies.koh2017.ablations import ABLATIONS, Change
from stripesim.scenarios.studies.koh2017.claims import required_cells
from stripesim.scenarios.studies.koh2017.paper import FIGURES, PAPER_FIGURES
from stripesim.scenarios.studies.koh2017.series import BLOCK_BYTES, RUNS
from stripesim.scenarios.studies.parameters import ParameterFile, changed_models, scenario_sets
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.creation import CreationSource
from stripesim.sim.ceph.heartbeats import HeartbeatSource
from stripesim.sim.engine.graph import COUNTER_INDEX
from stripesim.sim.run import RunResult, simulate

PARAMETERS = ParameterFile("koh2017")
SECOND_NS = 1_000_000_000
TENTHS = 10
# Two whole intervals: every pair pings twice, whatever its moment.
_HEARTBEAT_S = 12.0


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
        """How long it takes compared with others: runs bounded by time are by far the longest."""
        return (self.duration_s or 0.0) * (2.0 if self.scheme.startswith("rs") else 1.0)

    def perform(self) -> list[Row]:
        """Simulate it."""
        return {"series": _series, "heartbeat": _heartbeat}.get(self.kind, _row)(self)


def pristine_duration_s() -> float:
    """How long runs of random writes on a pristine image last [s]; the paper does not state it."""
    return PARAMETERS.number("study", "run_length_s")


def scenario_for(pattern: str, op: str, image: str, base: Scenario) -> Scenario:
    """Return the scenario of one kind of run: image state and bound."""
    bounded = (pattern, op, image) == ("rand", "write", "pristine")
    return _scenario(base, image, pristine_duration_s() if bounded else None)


def _scenario(base: Scenario, image: str, duration_s: float | None) -> Scenario:
    workload = base.workload.model_copy(update={"image": image})
    if duration_s is not None:
        workload = workload.model_copy(update={"requests": None, "duration_s": duration_s})
    return base.model_copy(update={"workload": workload})


@cache
def base_models() -> tuple[Scenario, Models]:
    """The study's scenario and its models, with what is changed in them."""
    base = load_scenario("koh2017", sets=scenario_sets())
    return base, changed_models(build_models(base))


def _row(task: Task) -> list[dict[str, Any]]:
    base, models = base_models()
    ablation = ABLATIONS.get(task.name, Change(""))
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
    base, models = base_models()
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
    found = base.model_copy(update={"workload": workload})
    setting = build_cell(found, Cell("rep:3", "write", "rand", 4096), models)
    result = simulate(setting.pool, setting.workload, prefilled=True, seed=base.seed, engine=engine)
    return round(float(result.row["latency_mean_ns"]))


def _heartbeat(task: Task) -> list[dict[str, Any]]:
    """What the pings carry while clients read."""
    base, models = base_models()
    scenario = _scenario(base, task.image, task.duration_s)
    assert task.duration_s is not None
    pings = partial(
        HeartbeatSource,
        interval_ns=round(PARAMETERS.number("heartbeat", "interval_ns")),
        size_bytes=round(PARAMETERS.number("heartbeat", "message_bytes")),
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


def tasks_for(
    *, figures: Sequence[str] | None = None, ablations: Sequence[str] | None = None, engine: str = "compiled"
) -> list[Task]:
    """List the simulations of a study.

    Parameters
    ----------
    figures : sequence of str, optional
        Numbers of the paper's figures, or ``all``; left out: all, or none if ablations are named.
    ablations : sequence of str, optional
        Names from `stripesim.scenarios.studies.koh2017.ablations.ABLATIONS`, or ``all``; left out: none.
    engine : str

    Raises
    ------
    ValueError
        If there is no such figure or ablation.
    """
    # Ablations alone have runs of their own and need no figure's.
    wanted = () if figures is None and ablations else chosen("--figure", figures, PAPER_FIGURES)
    kinds = {FIGURES[entry] for number in wanted for entry in PAPER_FIGURES[number]}
    tasks = []
    for scheme, op, pattern, image, size_bytes in required_cells():
        bare = scheme == "none"
        if bare and "18" not in wanted:
            continue
        if not bare and (op, pattern, image) not in {(k.op, k.pattern, k.image) for k in kinds}:
            continue
        bounded = (op, pattern, image) == ("write", "rand", "pristine")
        tasks.append(
            Task(
                kind="cell", scheme=scheme, op=op, pattern=pattern, image=image, size_bytes=size_bytes,
                duration_s=pristine_duration_s() if bounded else None, engine=engine,
            )
        )  # fmt: skip
    for name, run in RUNS.items():
        if run.figure in wanted:
            tasks.append(
                Task(
                    kind="series", name=name, scheme=run.scheme, op="write", pattern=run.pattern,
                    image=run.image, size_bytes=BLOCK_BYTES, duration_s=run.duration_s,
                    pause_ns=run.pause_ns, fill=run.fill, engine=engine,
                )
            )  # fmt: skip
    if "17" in wanted:
        tasks.append(
            Task(
                kind="heartbeat", name="heartbeats", scheme="rep:3", op="read", pattern="rand",
                image="prefilled", size_bytes=4096, duration_s=_HEARTBEAT_S, engine=engine,
            )
        )  # fmt: skip
    return [*tasks, *_ablation_tasks(ablations or (), engine)]


def _ablation_tasks(names: Sequence[str], engine: str) -> list[Task]:
    if not names:
        return []
    return [
        Task(
            kind="ablation", name=name, scheme=scheme, op=op, pattern=pattern, image=image,
            size_bytes=size_bytes, engine=engine,
            duration_s=what_if.PRISTINE_DURATION_S if image == "pristine" else None,
        )
        for name in what_if.named(names)
        for scheme in what_if.SCHEMES
        for op, pattern, image in what_if.KINDS
        for size_bytes in what_if.SIZES_BYTES
    ]  # fmt: skip


def rows_by_kind(tasks: Sequence[Any], rows: Sequence[list[Row]]) -> dict[str, list[Row]]:
    """Put the rows of all tasks of one kind together."""
    found: dict[str, list[Row]] = {}
    for task, part in zip(tasks, rows, strict=True):
        found.setdefault(task.kind, []).extend(part)
    return found


def frame(rows: list[Row]) -> pl.DataFrame:
    """Put rows in a table."""
    return pl.DataFrame(rows, infer_schema_length=None)


def with_image(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with a column of the image's state, also where there are none."""
    if "image" in rows.columns:
        return rows
    return rows.with_columns(pl.lit(None, dtype=pl.String).alias("image"))
