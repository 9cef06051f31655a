"""One task of a sweep: a cell of a scenario under one seed, named by all that its row depends on."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from stripesim._version import __version__
from stripesim.models.kernel.tables import table_to_json
from stripesim.scenarios.cells.files import file_sha256, first_line
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import row_of, run_cell
from stripesim.scenarios.schema.keys import Cell, ClusterSpec, Scenario, names_file
from stripesim.scenarios.sweep.stats import unsteady_reason
from stripesim.sim.ceph.cluster import Models

#: Source that rows come from. Not what reads parameter sets and kernel tables, nor what checks a scenario:
#: their outcome is hashed. A test compares this with the modules that a task loads.
_SOURCE: Final = (
    "models/**/*.py",
    "sim/**/*.py",
    "traces/**/*.py",
    *(
        f"scenarios/cells/{name}.py"
        for name in (
            "build",
            "failures",
            "files",
            "kernel_costs",
            "models",
            "placement",
            "replay",
            "run",
        )
    ),
    *(
        f"scenarios/schema/{name}.py"
        for name in (
            "geometry",
            "keys",
            "problems",
            "tables",
            "toml",
            "topology",
            "types",
            "units",
        )
    ),
    *(f"scenarios/sweep/{name}.py" for name in ("stats", "task")),
)


@dataclass(frozen=True, kw_only=True)
class SweepTask:
    """A cell of a scenario under one seed.

    The name covers the scenario (every default written out, without its name and description, which no row
    depends on), cell, replication, engine, version and source of stripesim, the numbers of the parameter sets
    and kernel table, and the content of every file that the scenario names (traces, CRUSH map). What a row
    does not depend on is left out: the cells beside it. So a sweep that is widened later keeps its rows.
    """

    task_id: str  # SHA-256 of what the row depends on, 64 hex digits
    scenario: Scenario  # narrowed to the cell; its seed is that of the replication
    cell: Cell
    replication: int  # from 0
    engine: str
    swept: Mapping[str, Any] = field(
        default_factory=dict
    )  # swept key → its value at this point
    code: str  # SHA-256 of the source that rows come from
    models: str  # SHA-256 of the numbers the models hold
    files: tuple[
        str, ...
    ]  # SHA-256 of each file that the scenario names, in the order of `Scenario.files`

    @property
    def label(self) -> str:
        """The task in a few words, for messages."""
        parts = [str(part) for part in self.cell if part is not None]
        parts += [f"{key}={value}" for key, value in self.swept.items()]
        return " ".join([*parts, f"replication {self.replication}"])


class Outcome(NamedTuple):
    """What became of a task: its row, or why there is none."""

    task: SweepTask
    row: dict[str, Any] | None
    reason: str | None


def make_task(
    scenario: Scenario,
    cell: Cell,
    *,
    replication: int = 0,
    engine: str = "compiled",
    swept: Mapping[str, Any],
) -> SweepTask:
    """Name a task."""
    narrowed = _narrowed(scenario, cell, replication)
    models = _models_sha256(_models_key(scenario, cell.scheme))
    files = _files_sha256(narrowed)
    named = {
        "scenario": narrowed.model_dump(mode="json", exclude={"name", "description"}),
        "cell": list(cell),
        "replication": replication,
        "engine": engine,
        "stripesim": __version__,
        "code": code_sha256(),
        "models": models,
        "files": files,
    }
    text = json.dumps(named, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return SweepTask(
        task_id=hashlib.sha256(text.encode()).hexdigest(),
        scenario=narrowed,
        cell=cell,
        replication=replication,
        engine=engine,
        swept=dict(swept),
        code=code_sha256(),
        models=models,
        files=files,
    )


def run_task(task: SweepTask) -> dict[str, Any]:
    """Run a task."""
    got = f"the source of another stripesim (here {__version__}), wanted that of the sweep"
    if task.code != code_sha256():
        raise ValueError(f"worker: got {got}")
    key = _models_key(task.scenario, task.cell.scheme)
    if task.models != _models_sha256(key):
        forget_models()
    if task.models != _models_sha256(key):
        raise ValueError(
            "worker: got other parameter sets or kernel tables, wanted those of the sweep"
        )
    if task.files != _files_sha256(task.scenario):
        named = ", ".join(path for _, path in task.scenario.files())
        wanted = "the files that the sweep was planned with"
        raise ValueError(f"worker: got {named} with other content, wanted {wanted}")
    result = run_cell(task.scenario, task.cell, task.engine, _models(key))
    found = result.requested
    reason = unsteady_reason(
        found.issued_ns, found.completed_ns, end_ns=result.engine_run.end_ns
    )
    row = {
        **row_of(task.scenario, task.cell, result),
        "replication": task.replication,
        "seed": task.scenario.seed,
        "completions_sha256": result.sha256,
        "steady": reason is None,
        "unsteady_reason": reason,
    }
    return {name: _plain(value) for name, value in row.items()}


def attempt(task: SweepTask) -> Outcome:
    """Run a task; an error becomes the reason why it has no row, so that it can cross between processes."""
    try:
        return Outcome(task, run_task(task), None)
    except (ValueError, OSError) as error:
        return Outcome(task, None, first_line(error))
    except Exception as error:
        # A fault in stripesim itself: one cell must not take the others' rows away.
        return Outcome(task, None, f"{type(error).__name__}: {first_line(error)}")


def _narrowed(scenario: Scenario, cell: Cell, replication: int) -> Scenario:
    """Leave only what one cell depends on."""
    given = {
        "ops": cell.op,
        "patterns": cell.pattern,
        "block_sizes_bytes": cell.block_size_bytes,
    }
    own = {
        key: (value,)
        for key, value in given.items()
        if value not in ("mixed", "trace", None)
    }
    seed, workload = (
        scenario.seed + replication,
        scenario.workload.model_copy(update=own),
    )
    return scenario.model_copy(
        update={"schemes": (cell.scheme,), "seed": seed, "workload": workload}
    )


@cache
def code_sha256() -> str:
    """Fingerprint of the source that rows come from: the version alone does not tell two checkouts apart."""
    found = hashlib.sha256()
    for name, path in sorted(source_files().items()):
        found.update(f"{name}\0".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def source_files() -> dict[str, Path]:
    """Files that `code_sha256` covers, by their names within the package."""
    # The folder that holds scenarios/: the package, or the root of a checkout.
    root = Path(__file__).resolve().parents[2]
    files: dict[str, Path] = {}
    for package, _, below in (pattern.partition("/") for pattern in _SOURCE):
        folder = root / package
        files |= {
            f"{package}/{path.relative_to(folder).as_posix()}": path
            for path in folder.glob(below)
        }
    return files


def _files_sha256(scenario: Scenario) -> tuple[str, ...]:
    return tuple(file_sha256(scenario.resolve(path)) for _, path in scenario.files())


def forget_models() -> None:
    """Read parameter sets and kernel tables again: a long-lived process may hold those of an hour ago."""
    _models.cache_clear()
    _models_sha256.cache_clear()


class _ModelsKey(NamedTuple):
    """What the models of a task depend on; a device file by its absolute path and its content."""

    scheme: str
    generation: str
    cluster: ClusterSpec
    device_sha256: str


def _models_key(scenario: Scenario, scheme: str) -> _ModelsKey:
    cluster = scenario.cluster
    if not names_file("ssd", cluster.ssd):
        return _ModelsKey(scheme, scenario.generation, cluster, "")
    path = scenario.resolve(cluster.ssd).absolute()
    cluster = cluster.model_copy(update={"ssd": str(path)})
    return _ModelsKey(scheme, scenario.generation, cluster, file_sha256(path))


@lru_cache(maxsize=64)
def _models(key: _ModelsKey) -> Models:
    return build_models(
        Scenario.model_construct(
            schemes=(key.scheme,), generation=key.generation, cluster=key.cluster
        )
    )


@lru_cache(maxsize=4096)
def _models_sha256(key: _ModelsKey) -> str:
    models = _models(key)
    parameters = [
        list(model.parameters(f"{name}.")) for name, model in models.described().items()
    ]
    found = json.dumps(parameters, sort_keys=True, default=_plain)
    return hashlib.sha256(
        f"{found}\n{table_to_json(models.kernel)}".encode()
    ).hexdigest()


def _plain(value: Any) -> Any:
    """Convert NumPy's scalars and arrays, so that a row is the same wherever it was computed."""
    return value.tolist() if hasattr(value, "tolist") else value
