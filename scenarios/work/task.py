"""Name a task of a sweep: a cell of a scenario under one seed. `attempt` runs it.

The name covers all inputs of the row, so that rows can be reused. A command that hands out tasks needs no
engine, so this module loads none.
"""

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from glob import iglob
from pathlib import Path
from typing import Any, Final, NamedTuple

from stripesim._version import __version__
from stripesim.models.coding import parse_scheme
from stripesim.models.documents import canonical_json
from stripesim.models.kernel.cost import KernelModel
from stripesim.scenarios.cells.files import file_sha256
from stripesim.scenarios.cells.models import build_models, device_set
from stripesim.scenarios.schema.keys import (
    Cell,
    ClientSpec,
    ClusterSpec,
    WorkloadSpec,
    names_file,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.cluster import Models

#: Source files and tables of releases that affect rows. Readers of parameter sets and kernel tables are left
#: out, since the task's name covers their results. A test compares this with the modules that a task loads.
_SOURCE: Final = (
    "models/**/*.py",
    "models/**/*.toml",
    "sim/**/*.py",
    "traces/**/*.py",
    "scenarios/schema/*.py",
    "scenarios/cells/*.py",
    "scenarios/forms/capacity.py",
    "scenarios/work/attempt.py",
    "scenarios/work/task.py",
)


@dataclass(frozen=True, kw_only=True)
class SweepTask:
    """A cell of a scenario under one seed.

    The name covers the scenario with all defaults (except its name and description), the cell, the
    replication, the engine, the version and source of stripesim, the values of the parameter sets and the
    kernel table, and the content of every file that the scenario names (traces, CRUSH map). It does not
    cover other cells, so that a sweep that is extended later keeps its rows.
    """

    task_id: str  # SHA-256 of all inputs of the row, 64 hex digits.
    scenario: Scenario  # Scenario of this cell alone, with the seed of the replication.
    cell: Cell
    replication: int  # From 0.
    engine: str
    # Swept key → value at this point.
    swept: Mapping[str, Any] = field(default_factory=dict)
    code: str  # SHA-256 of the source files that affect rows.
    models: str  # SHA-256 of the values in the models.
    # SHA-256 of each file that the scenario names, in the order of `Scenario.files`.
    files: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return a short description of the task, for messages."""
        swept = [f"{key}={value}" for key, value in self.swept.items()]
        return " ".join([self.cell.name, *swept, f"replication {self.replication}"])


class EndedTask(NamedTuple):
    """A task that has ended, with its row or the reason why it failed."""

    task: SweepTask
    row: dict[str, Any] | None
    reason: str | None

    @property
    def words(self) -> str:
        """A short description, for messages."""
        return self.task.label if self.row is not None else f"failed: {self.task.label}"


#: Tasks of a sweep that one message carries to a worker.
Batch = Sequence[SweepTask]

#: Processor time of a batch [s]. Messages then take little of the time, and little is lost if a sweep stops.
BATCH_S: Final = 0.1
_BATCH_TASKS_MAX: Final = 64
_TRIALS_PER_WORKER: Final = 4


class CompletedBatch(NamedTuple):
    """A batch that a worker has run: the row of each task, or the reason why it failed."""

    rows: list[dict[str, Any] | None]
    reasons: list[str | None]
    duration_s: float  # Processor time of the longest task.

    def outcomes(self, batch: Batch) -> list[EndedTask]:
        """Return the outcome of each task of the batch."""
        return list(map(EndedTask, batch, self.rows, self.reasons))


class Batches:
    """Cut tasks into batches, by the duration of the first tasks, which are sent one by one."""

    def __init__(self, tasks: Sequence[SweepTask], workers: int) -> None:
        trials = _TRIALS_PER_WORKER * workers
        self.first: list[Batch] = [(task,) for task in tasks[:trials]]
        self._rest = tasks[trials:]
        self._answered = 0
        self._longest_s = 0.0

    def rest_after(self, duration_s: float) -> list[Batch]:
        """Return all further batches, once half of the first tasks have ended; nothing before and after.

        Parameters
        ----------
        duration_s
            Processor time of the task that has just ended [s].
        """
        self._answered += 1
        self._longest_s = max(self._longest_s, duration_s)
        if 2 * self._answered < len(self.first):
            return []
        rest = self._rest
        self._rest = ()
        size = min(_BATCH_TASKS_MAX, max(1, int(BATCH_S / self._longest_s)))
        return [rest[start : start + size] for start in range(0, len(rest), size)]

    def after_death(
        self, batch: Batch, reason: str
    ) -> tuple[list[EndedTask], list[Batch]]:
        """Return outcomes and further batches after workers died over a batch.

        One task of several kills workers, and the others are innocent, so all are sent again, one by one.
        """
        if len(batch) > 1:
            return [], [(task,) for task in batch]
        return [EndedTask(batch[0], None, reason)], self.rest_after(math.inf)


def make_task(
    scenario: Scenario,
    cell: Cell,
    *,
    replication: int = 0,
    engine: str = "compiled",
    swept: Mapping[str, Any],
    files: tuple[str, ...] | None = None,
) -> SweepTask:
    """Return the task of a cell and replication, given `files_sha256` of the scenario if it is known."""
    narrowed = scenario.of_cell(cell).seeded(replication)
    code = code_sha256()
    models = _models_sha256(models_key(scenario, cell.scheme))
    if files is None:
        files = files_sha256(scenario)
    named = {
        "scenario": narrowed.model_dump(mode="json", exclude={"name", "description"}),
        "cell": list(cell),
        "replication": replication,
        "engine": engine,
        "stripesim": __version__,
        "code": code,
        "models": models,
        "files": files,
    }
    text = canonical_json(named)
    return SweepTask(
        task_id=hashlib.sha256(text.encode()).hexdigest(),
        scenario=narrowed,
        cell=cell,
        replication=replication,
        engine=engine,
        swept=dict(swept),
        code=code,
        models=models,
        files=files,
    )


def expected_work(task: SweepTask) -> int:
    """Estimate the duration of a task relative to others, from its requests and the shards of each."""
    scheme = parse_scheme(task.cell.scheme)
    shards = scheme.k if task.cell.op == "read" else scheme.width
    return shards * (task.scenario.workload.requests or 1)


def models_of(task: SweepTask) -> Models:
    """Return the models of a task.

    Raises
    ------
    ValueError
        If the source, the models or the files differ from those at the time of planning.
    """
    if task.code != code_sha256():
        raise ValueError(
            f"worker: got the source of another stripesim (here {__version__}), wanted that of the sweep"
        )
    key = models_key(task.scenario, task.cell.scheme)
    if task.models != _models_sha256(key):
        forget_models()
    if task.models != _models_sha256(key):
        raise ValueError(
            "worker: got other parameter sets or kernel tables, wanted those of the sweep"
        )
    if task.files != files_sha256(task.scenario):
        names = ", ".join(path for _, path in task.scenario.files())
        raise ValueError(
            f"worker: got {names} with other content, wanted the files that the sweep was planned with"
        )
    return _models(key)


@cache
def code_sha256() -> str:
    """Return a hash of the source that affects rows, since different checkouts may share a version."""
    digest = hashlib.sha256()
    for name, path in sorted(source_files().items()):
        digest.update(f"{name}\0".encode())
        with open(path, "rb", buffering=0) as file:
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


def source_files() -> dict[str, str]:
    """Return the paths of the files that `code_sha256` covers, by their names within the package."""
    # The folder that holds scenarios/: the package, or the root of a checkout.
    root = Path(__file__).resolve().parents[2]
    return {
        name.replace(os.sep, "/"): os.path.join(root, name)
        for pattern in _SOURCE
        for name in iglob(pattern, root_dir=root, recursive=True)
    }


def files_sha256(scenario: Scenario) -> tuple[str, ...]:
    """Hash the files that a scenario names, which are those of each of its cells."""
    return tuple(file_sha256(scenario.resolve(path)) for _, path in scenario.files())


def forget_models() -> None:
    """Clear cached parameter sets and kernel tables, which may have changed on disk."""
    _models.cache_clear()
    _models_sha256.cache_clear()


class ModelsKey(NamedTuple):
    """All inputs of a task's models; parameter files count by absolute path and content."""

    scheme: str
    generation: str
    cluster: ClusterSpec
    client: ClientSpec
    files_sha256: tuple[str, ...]
    has_gateways: bool


def models_key(scenario: Scenario, scheme: str) -> ModelsKey:
    """Return the inputs of the models of a cell."""
    cluster = scenario.cluster
    paths = {
        key: scenario.resolve(name).absolute()
        for key in ("drive", "parameters")
        if names_file(key, name := getattr(cluster, key))
    }
    if paths:
        cluster = cluster.replaced(**{key: str(path) for key, path in paths.items()})
    # A user's own code may state its costs.
    every = [*paths.values(), *map(scenario.resolve, scenario.codes)]
    contents = tuple(file_sha256(path) for path in every)
    return ModelsKey(
        scheme,
        scenario.generation,
        cluster,
        scenario.client,
        contents,
        scenario.workload.is_s3,
    )


def _scenario_of(key: ModelsKey) -> Scenario:
    return Scenario.model_construct(
        schemes=(key.scheme,),
        generation=key.generation,
        cluster=key.cluster,
        client=key.client,
        workload=WorkloadSpec(kind="s3" if key.has_gateways else "closed"),
    )


@lru_cache(maxsize=64)
def _models(key: ModelsKey) -> Models:
    return build_models(_scenario_of(key))


@lru_cache(maxsize=4096)
def _models_sha256(key: ModelsKey) -> str:
    models = _models(key)
    parameters = [
        list(model.parameters(f"{name}.")) for name, model in models.described().items()
    ]
    # A set of a drive may have constants of recovery, which are in no model.
    recovery = device_set(_scenario_of(key)).table("recovery")
    text = canonical_json([parameters, recovery])
    kernel = _kernel_text(models.kernel, key.scheme)
    return hashlib.sha256(f"{text}\n{kernel}".encode()).hexdigest()


def _kernel_text(table: KernelModel, scheme: str) -> str:
    """Return what tasks of a code use of a kernel table: its libraries in order, and the code's costs.

    To write the costs of all codes takes longer than to build the models.
    """
    costs = [cost for cost in table.costs if cost.scheme == scheme]
    return repr((table.name, table.provenance, table.backends, costs))
