"""What the study runs, piece by piece: one task is one simulation, fit to be sent to a worker."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any

import numpy as np

from stripesim.models.ssd import TRANSFER_MAX_BYTES
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import row_of
from stripesim.scenarios.schema.keys import Cell, Scenario
from stripesim.scenarios.schema.loader import load_scenario
from stripesim.scenarios.studies.base import chosen
from stripesim.scenarios.studies.koh2017 import ablations as what_if
from stripesim.scenarios.studies.koh2017.claims import required_cells
from stripesim.scenarios.studies.koh2017.creation import CreationSource
from stripesim.scenarios.studies.koh2017.paper import FIGURES, PAPER_FIGURES
from stripesim.scenarios.studies.koh2017.series import BLOCK_BYTES, RUNS
from stripesim.scenarios.studies.parameters import (
    ParameterFile,
    changed_models,
    scenario_sets,
    with_values,
)
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.heartbeats import HeartbeatSource
from stripesim.sim.engine.graph import COUNTER_INDEX
from stripesim.sim.observe.recording import bins_with_wake_ups
from stripesim.sim.run import RunResult, simulate

PARAMETERS = ParameterFile("koh2017")
SECOND_NS = 1_000_000_000
# Two whole intervals: every pair pings twice, whatever its moment.
_HEARTBEAT_S = 12.0


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """A task: one simulation.

    ``kind`` is ``cell`` (a row), ``ablation`` (a row, something changed), ``series`` (a row per second) or
    ``heartbeat`` (a row: what the pings carry); ``name`` is that of the series or the ablation. Without a
    duration, in simulated time [s], it takes the scenario's number of requests. A series may pause at the
    first write into each object [ns] (−1: as long as the object map takes), and fill objects, see
    `stripesim.scenarios.studies.koh2017.creation.CreationSource`.
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
        return f"{self.name} {self.scheme} {self.op} {self.pattern} {self.size_bytes}".lstrip()

    @property
    def weight(self) -> float:
        """How long it takes compared with others: runs bounded by time are by far the longest."""
        return (self.duration_s or 0.0) * (2.0 if self.scheme.startswith("rs") else 1.0)

    @property
    def cell(self) -> Cell:
        """The cell that is simulated."""
        return Cell(self.scheme, self.op, self.pattern, self.size_bytes)  # type: ignore[arg-type]

    def perform(self) -> list[Row]:
        """Simulate it."""
        return {"series": _series, "heartbeat": _heartbeat, "ablation": _ablated}.get(
            self.kind, _row
        )(self)


class _FreeEncoding(Models):
    """Models whose encoding and decoding take no time: what arithmetic alone costs is the difference."""

    def encode_ns(self, scheme: str, data_bytes: float) -> float:
        """Take no time."""
        return 0.0

    def decode_ns(self, scheme: str, data_bytes: float, erasures: int) -> float:
        """Take no time."""
        return 0.0


@cache
def base_models(settings: tuple[str, ...] = ()) -> tuple[Scenario, Models]:
    """The study's scenario and its models, with what is changed in them."""
    base = load_scenario("koh2017", sets=(*scenario_sets(), *settings))
    return base, changed_models(build_models(base))


def _merging(models: Models, size_bytes: int) -> Models:
    """Let neighbouring requests that wait for a bare drive go to it as one transfer, each with its share."""
    merged = min(
        PARAMETERS.number("bare", "merged_requests"), TRANSFER_MAX_BYTES / size_bytes
    )
    shares = {
        f"ssd.{op}_base_ns": getattr(models.ssd, f"{op}_base_ns") / merged
        for op in ("read", "write")
    }
    return with_values(
        models, {**shares, "ssd.block_bytes": min(models.ssd.block_bytes, size_bytes)}
    )


def _setting(base: Scenario, task: Simulation) -> Scenario:
    workload: dict[str, Any] = {"image": task.image}
    if task.duration_s is not None:
        workload |= {"requests": None, "duration_s": task.duration_s}
    return base.model_copy(
        update={"workload": base.workload.model_copy(update=workload)}
    )


def _simulate(
    task: Simulation,
    base: Scenario,
    models: Models,
    *,
    fill: str = "gap",
    pause_ns: int = 0,
    **further: Any,
) -> RunResult:
    scenario = _setting(base, task)
    if task.scheme == "none" and task.pattern == "seq":
        models = _merging(models, task.size_bytes)
    setting = build_cell(scenario, task.cell, models)
    changed = task.image == "pristine" and (fill != "gap" or pause_ns)
    source = partial(CreationSource, pause_ns=pause_ns, fill=fill) if changed else None
    inputs = vars(setting) | further
    return simulate(**inputs, seed=scenario.seed, engine=task.engine, foreground=source)


def _row(task: Simulation) -> list[Row]:
    base, models = base_models()
    row = row_of(_setting(base, task), task.cell, _simulate(task, base, models))
    return [row.as_dict()]


def _ablated(task: Simulation) -> list[Row]:
    ablation = what_if.ABLATIONS[task.name]
    base, models = base_models(ablation.settings(task.scheme))
    models = with_values(models, ablation.numbers)
    if ablation.free_encoding:
        models = _FreeEncoding(
            **{each.name: getattr(models, each.name) for each in fields(models)}
        )
    result = _simulate(task, base, models, fill=ablation.fill)
    row = row_of(_setting(base, task), task.cell, result)
    return [{**row.as_dict(), "ablation": task.name}]


def _series(task: Simulation) -> list[Row]:
    """One row per whole second of the run."""
    base, models = base_models()
    pause_ns = (
        task.pause_ns
        if task.pause_ns >= 0
        else _object_map_ns(base, models, task.engine)
    )
    result = _simulate(
        task, base, models, fill=task.fill, pause_ns=pause_ns, bin_ns=SECOND_NS
    )
    run = result.engine_run
    requested = result.requested
    seconds = min(len(run.bins), int(run.end_ns // SECOND_NS))
    done = requested.done
    edges = np.arange(seconds + 1, dtype=np.float64) * SECOND_NS
    moved = np.histogram(
        requested.completed_ns[done], bins=edges, weights=requested.lengths_bytes[done]
    )[0]
    cluster = build_cell(_setting(base, task), task.cell, models).pool.cluster
    bins = bins_with_wake_ups(cluster, run)[:seconds]
    cores = int(cluster.cores.sum())
    counters = {name: bins[:, index].tolist() for name, index in COUNTER_INDEX.items()}
    return [
        {
            "series": task.name,
            "scheme": task.scheme,
            "op": task.op,
            "pattern": task.pattern,
            "image": task.image,
            "block_size_bytes": task.size_bytes,
            "time_s": second + 1,
            "throughput_bytes_per_s": float(moved[second]),
            "cpu_utilisation": counters["cpu_ns"][second] / (cores * SECOND_NS),
            "context_switches_per_s": counters["context_switches"][second],
            "private_net_bytes_per_s": counters["private_net_bytes"][second],
            "pause_ns": pause_ns,
            "pg_log_entries_max": int(np.bincount(run.streams[0].groups).max()),
        }
        for second in range(seconds)
    ]


def _object_map_ns(base: Scenario, models: Models, engine: str) -> int:
    """Time of one update of the object map: a small write of the replicated metadata pool, alone [ns]."""
    workload = base.workload.model_copy(update={"queue_depth": 1, "requests": 200})
    setting = build_cell(
        base.model_copy(update={"workload": workload}),
        Cell("rep:3", "write", "rand", 4096),
        models,
    )
    result = simulate(
        setting.pool, setting.workload, prefilled=True, seed=base.seed, engine=engine
    )
    assert result.row.latency_mean_ns is not None
    return round(result.row.latency_mean_ns)


def _heartbeat(task: Simulation) -> list[Row]:
    """What the pings carry while clients read."""
    assert task.duration_s is not None
    pings = partial(
        HeartbeatSource,
        interval_ns=round(PARAMETERS.number("heartbeat", "interval_ns")),
        size_bytes=round(PARAMETERS.number("heartbeat", "message_bytes")),
        until_ns=round(task.duration_s * SECOND_NS),
    )
    (counted,) = _simulate(task, *base_models(), background=[pings]).background
    return [
        {
            "heartbeat_private_bytes_per_s": counted["private_net_bytes"]
            / task.duration_s,
            "heartbeat_messages_per_s": counted["messages"] / task.duration_s,
        }
    ]


def tasks_for(
    *,
    figures: Sequence[str] | None = None,
    ablations: Sequence[str] = (),
    engine: str = "compiled",
) -> list[Simulation]:
    """List the simulations that the figures of the paper need, by number, and those of ablations.

    Left out: all figures, or none if ablations are named. A ValueError says that there is no such figure or
    ablation.
    """
    # Ablations alone have runs of their own and need no figure's.
    wanted = (
        ()
        if figures is None and ablations
        else chosen("--figure", figures, PAPER_FIGURES)
    )
    kinds = {FIGURES[entry][:3] for number in wanted for entry in PAPER_FIGURES[number]}
    new = partial(Simulation, engine=engine)
    # How long runs of random writes on a pristine image last; the paper does not state it.
    bounded_s = PARAMETERS.number("study", "run_length_s")
    tasks: list[Simulation] = []
    where: dict[str, Any]
    for scheme, op, pattern, image, size_bytes in required_cells():
        if "18" in wanted if scheme == "none" else (op, pattern, image) in kinds:
            where = {
                "scheme": scheme,
                "op": op,
                "pattern": pattern,
                "image": image,
                "size_bytes": size_bytes,
            }
            bounded = (op, pattern, image) == ("write", "rand", "pristine")
            tasks.append(
                new(kind="cell", duration_s=bounded_s if bounded else None, **where)
            )
    for name, run in RUNS.items():
        if run.figure in wanted:
            how = {
                key: value
                for key, value in vars(run).items()
                if key not in ("figure", "says")
            }
            tasks.append(
                new(kind="series", name=name, op="write", size_bytes=BLOCK_BYTES, **how)
            )
    if "17" in wanted:
        where = {
            "scheme": "rep:3",
            "op": "read",
            "pattern": "rand",
            "image": "prefilled",
        }
        where |= {"size_bytes": 4096, "duration_s": _HEARTBEAT_S}
        tasks.append(new(kind="heartbeat", name="heartbeats", **where))
    for name in what_if.named(ablations):
        for scheme in what_if.SCHEMES:
            for op, pattern, image in what_if.KINDS:
                length_s = what_if.PRISTINE_DURATION_S if image == "pristine" else None
                where = {"scheme": scheme, "op": op, "pattern": pattern, "image": image}
                for size_bytes in what_if.SIZES_BYTES:
                    tasks.append(
                        new(
                            kind="ablation",
                            name=name,
                            size_bytes=size_bytes,
                            duration_s=length_s,
                            **where,
                        )
                    )
    return tasks
