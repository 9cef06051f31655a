"""The simulations of the study: each is one task, which can be sent to a worker."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from stripesim.models.ssd import TRANSFER_MAX_BYTES
from stripesim.scenarios.cells.build import CellInputs, build_cell
from stripesim.scenarios.cells.longer import long_enough
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import row_of
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.scenario import Scenario, load_scenario
from stripesim.scenarios.studies.base import chosen
from stripesim.scenarios.studies.koh2017 import ablations as what_if
from stripesim.scenarios.studies.koh2017.cells import Cell as RowCell
from stripesim.scenarios.studies.koh2017.claims import required_cells
from stripesim.scenarios.studies.koh2017.creation import CreationSource
from stripesim.scenarios.studies.koh2017.paper import FIGURES, PAPER_FIGURES
from stripesim.scenarios.studies.koh2017.series import BLOCK_BYTES, RUNS
from stripesim.scenarios.studies.parameters import (
    ParameterFile,
    changed_models,
    scenario_changes,
    with_values,
)
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.heartbeats import HeartbeatSource
from stripesim.sim.ceph.planner import CompiledGraphs, Foreground, RequestPlanner
from stripesim.sim.engine.graph import COUNTER_INDEX
from stripesim.sim.observe.recording import bins_with_wake_ups
from stripesim.sim.run import Run, simulate

PARAMETERS = ParameterFile("koh2017")
SECOND_NS = 1_000_000_000
# Two whole intervals: every pair pings twice.
_HEARTBEAT_S = 12.0


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """A task: one simulation.

    ``kind`` is ``cell`` (one row), ``ablation`` (one row with something changed), ``series`` (one row per
    second) or ``heartbeat`` (one row: the pings' traffic). ``name`` names the series or the ablation. Without
    a duration [simulated s] it takes the scenario's number of requests. One of `every` requests is simulated,
    in a duration `every` times shorter, while all of them fill the image. A series may pause at the
    first write into each object [ns] and fill objects, see
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
    every: int = 1
    engine: str = "compiled"

    @property
    def words(self) -> str:
        """A few words for a progress bar."""
        return f"{self.name} {self.scheme} {self.op} {self.pattern} {self.size_bytes}".lstrip()

    @property
    def weight(self) -> float:
        """Expected duration relative to the others. Runs bounded by time are by far the longest."""
        simulated_s = (self.duration_s or 0.0) / self.every
        return simulated_s * (2.0 if self.scheme.startswith("rs") else 1.0)

    @property
    def cell(self) -> Cell:
        """The simulated cell."""
        return Cell(self.scheme, self.op, self.pattern, self.size_bytes)  # type: ignore[arg-type]

    def perform(self) -> list[Row]:
        """Simulate it."""
        return {"series": _series, "heartbeat": _heartbeat, "ablation": _ablated}.get(
            self.kind, _row
        )(self)


class _FreeEncoding(Models):
    """Models without encoding and decoding times; the difference is the cost of the arithmetic alone."""

    def encode_ns(self, scheme: str, data_bytes: float) -> float:
        """Take no time."""
        return 0.0

    def decode_ns(self, scheme: str, data_bytes: float, erasures: int) -> float:
        """Take no time."""
        return 0.0


@cache
def base_models(
    ablation: str = "baseline", scheme: str = ""
) -> tuple[Scenario, Models]:
    """Return the study's scenario and models, with an ablation's changes for one scheme."""
    sets = {**scenario_changes()}
    change = what_if.CHANGES[ablation]
    if scheme:
        sets |= change.sets(scheme)
    base = load_scenario("koh2017", sets=sets)
    models = with_values(changed_models(build_models(base)), change.numbers)
    if change.free_encoding:
        models = _FreeEncoding(**vars(models))
    return base, models


def _merging(models: Models, size_bytes: int) -> Models:
    """Merge neighbouring requests that wait for a bare drive into one transfer; each takes its share."""
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
        duration_s = task.duration_s / task.every
        workload |= {"requests": None, "duration_s": duration_s}
    return base.with_workload(**workload)


def _simulate(
    task: Simulation,
    base: Scenario,
    models: Models,
    *,
    fill: str = "gap",
    pause_ns: int = 0,
    **further: Any,
) -> Run:
    scenario = _setting(base, task)
    if task.scheme == "none" and task.pattern == "seq":
        models = _merging(models, task.size_bytes)
    setting = build_cell(scenario, task.cell, models)
    source: Callable[..., Foreground] | None = None
    if task.every > 1:
        prefilled = task.image == "prefilled"
        source = partial(RequestPlanner, prefilled=prefilled, every=task.every)
    if task.image == "pristine" and (fill != "gap" or pause_ns):
        source = partial(CreationSource, pause_ns=pause_ns, fill=fill)

    def run(inputs: CellInputs, compiled: CompiledGraphs | None) -> Run:
        arguments = vars(inputs) | further
        return simulate(
            **arguments,
            seed=scenario.seed,
            engine=task.engine,
            foreground=source,
            compiled=compiled,
        )

    return long_enough(setting, run).accepted()


def _row(task: Simulation) -> list[Row]:
    base, models = base_models()
    row = row_of(_setting(base, task), task.cell, _simulate(task, base, models))
    return [row.as_dict()]


def _ablated(task: Simulation) -> list[Row]:
    base, models = base_models(task.name, task.scheme)
    result = _simulate(task, base, models, fill=what_if.CHANGES[task.name].fill)
    row = row_of(_setting(base, task), task.cell, result)
    return [{**row.as_dict(), "ablation": task.name}]


def _series(task: Simulation) -> list[Row]:
    """Return one row per whole second of the run, which a sample of its requests covers in a part of it."""
    base, models = base_models()
    bin_ns = SECOND_NS // task.every
    result = _simulate(
        task, base, models, fill=task.fill, pause_ns=task.pause_ns, bin_ns=bin_ns
    )
    run = result.engine_run
    requested = result.requested
    seconds = min(len(run.bins), int(run.end_ns // bin_ns))
    done = requested.done
    edges = np.arange(seconds + 1, dtype=np.float64) * bin_ns
    moved = np.histogram(
        requested.completed_ns[done], bins=edges, weights=requested.lengths_bytes[done]
    )[0]
    cluster = build_cell(_setting(base, task), task.cell, models).pool.cluster
    bins = bins_with_wake_ups(cluster, run)[:seconds]
    cores = int(cluster.cores.sum())
    per_s = task.every * bins
    counters = {name: per_s[:, index].tolist() for name, index in COUNTER_INDEX.items()}
    return [
        {
            "series": task.name,
            "scheme": task.scheme,
            "op": task.op,
            "pattern": task.pattern,
            "image": task.image,
            "block_size_bytes": task.size_bytes,
            "time_s": second + 1,
            "throughput_bytes_per_s": float(task.every * moved[second]),
            "cpu_utilisation": counters["cpu_ns"][second] / (cores * SECOND_NS),
            "context_switches_per_s": counters["context_switches"][second],
            "private_net_bytes_per_s": counters["private_net_bytes"][second],
            "pause_ns": task.pause_ns,
            "pg_log_entries_max": task.every
            * int(np.bincount(run.streams[0].groups).max()),
        }
        for second in range(seconds)
    ]


def _heartbeat(task: Simulation) -> list[Row]:
    """Return the traffic of pings while clients read."""
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


def chosen_figures(
    figures: Sequence[str] | None, ablations: Sequence[str]
) -> tuple[str, ...]:
    """Return the numbers of the figures that options ask for.

    Raises
    ------
    ValueError
        If a figure does not exist.
    """
    if figures is None and ablations:
        # Ablations alone run their own cells and no figure's.
        return ()
    return chosen("--figure", figures, PAPER_FIGURES)


def tasks_for(
    *,
    figures: Sequence[str] | None = None,
    ablations: Sequence[str] = (),
    engine: str = "compiled",
) -> list[Simulation]:
    """List the simulations that figures of the paper and ablations need.

    Parameters
    ----------
    figures
        Numbers of figures. None selects all, or none if ablations are named.
    ablations
        Names of ablations.
    engine
        ``compiled`` or ``simpy``.

    Raises
    ------
    ValueError
        If a figure or an ablation does not exist.
    """
    wanted = chosen_figures(figures, ablations)
    tasks = [*_cell_tasks(wanted), *_series_tasks(wanted)]
    if "17" in wanted:
        cell = ("rep:3", "read", "rand", "prefilled", 4096)
        tasks.append(
            _simulation("heartbeat", "heartbeats", cell, duration_s=_HEARTBEAT_S)
        )
    tasks += _ablation_tasks(ablations)
    return [replace(task, engine=engine) for task in tasks]


def _simulated_every() -> int:
    """Return n, where a run over time simulates one request in n."""
    return round(PARAMETERS.number("study", "simulated_every"))


def _cell_tasks(wanted: Sequence[str]) -> Iterator[Simulation]:
    """Yield the cells of the paper's figures that show one value per scheme, operation and block size."""
    drawn = [FIGURES[entry] for number in wanted for entry in PAPER_FIGURES[number]]
    for cell in required_cells():
        scheme, op, pattern, image, _ = cell
        kind = (op, pattern, image)
        if not any(kind == runs[:3] and scheme in runs.schemes for runs in drawn):
            continue
        options: dict[str, Any] = {}
        if kind == ("write", "rand", "pristine"):
            # The paper does not state the length of random writes on a pristine image.
            options = {
                "duration_s": PARAMETERS.number("study", "run_length_s"),
                "every": _simulated_every(),
            }
        yield _simulation("cell", "", cell, **options)


def _series_tasks(wanted: Sequence[str]) -> Iterator[Simulation]:
    """Yield the runs of the paper's figures over time."""
    for name, run in RUNS.items():
        if run.figure not in wanted:
            continue
        cell = (run.scheme, "write", run.pattern, run.image, BLOCK_BYTES)
        options: dict[str, Any] = {"pause_ns": run.pause_ns, "fill": run.fill}
        if run.pattern == "rand":
            options["every"] = _simulated_every()
        yield _simulation("series", name, cell, duration_s=run.duration_s, **options)


def _ablation_tasks(ablations: Sequence[str]) -> Iterator[Simulation]:
    """Yield all cells of each ablation."""
    cells = list(product(what_if.SCHEMES, what_if.KINDS, what_if.SIZES_BYTES))
    for name in what_if.named(ablations):
        for scheme, kind, size_bytes in cells:
            length_s = what_if.PRISTINE_DURATION_S if "pristine" in kind else None
            cell = (scheme, *kind, size_bytes)
            yield _simulation("ablation", name, cell, duration_s=length_s)


def _simulation(kind: str, name: str, cell: RowCell, **further: Any) -> Simulation:
    """Return the task of a cell: scheme, operation, pattern, image and block size."""
    scheme, op, pattern, image, size_bytes = cell
    return Simulation(
        kind=kind,
        name=name,
        scheme=scheme,
        op=op,
        pattern=pattern,
        image=image,
        size_bytes=size_bytes,
        **further,
    )
