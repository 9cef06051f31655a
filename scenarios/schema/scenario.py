"""Define a scenario: a question for the simulator, as data.

A `Scenario` is made from keywords, from TOML (`load_scenario`, `parse_scenario`) or from another one
(`overridden`). Each way checks every key and every rule, and reports all problems at once. The keys are
defined in `stripesim.scenarios.schema.keys`.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Required, Self, TypedDict, Unpack

from stripesim.models.documents import canonical_json
from stripesim.models.problems import Problem, ScenarioError
from stripesim.scenarios.schema.keys import (
    S3_KEYS,
    Cell,
    ClientSpec,
    ClusterSpec,
    DegradedSpec,
    LoadSpec,
    RepairSpec,
    ScenarioKeys,
    WorkloadSpec,
)
from stripesim.scenarios.schema.loader import (
    Draft,
    Overrides,
    checked_keys,
    draft_of_toml,
    draft_of_values,
    find_file,
    read_text,
)
from stripesim.scenarios.schema.tables import (
    ChangeSpec,
    DurabilitySpec,
    FaultsSpec,
    PlanSpec,
    Throttles,
)
from stripesim.scenarios.schema.toml import key_text
from stripesim.scenarios.schema.types import GenerationName


class ScenarioKeywords(TypedDict, total=False):
    """Keywords of `Scenario`: tables as mappings, lists as sequences, sizes as text or in bytes."""

    schemes: Required[Sequence[str]]
    name: str
    description: str
    generation: GenerationName
    codes: Sequence[str | Path | type]
    seed: int
    cluster: ClusterSpec | Mapping[str, Any]
    workload: WorkloadSpec | Mapping[str, Any]
    workloads: Sequence[LoadSpec | Mapping[str, Any]]
    client: ClientSpec | Mapping[str, Any]
    repair: RepairSpec | Mapping[str, Any] | None
    degraded: DegradedSpec | Mapping[str, Any] | None
    faults: FaultsSpec | Mapping[str, Any] | None
    changes: Sequence[ChangeSpec | Mapping[str, Any]]
    durability: DurabilitySpec | Mapping[str, Any] | None
    plan: PlanSpec | Mapping[str, Any] | None


class Scenario(ScenarioKeys):
    """Describe a cluster, its schemes and its load. The keys are those of a scenario file.

    Raises
    ------
    ScenarioError
        If a key is wrong. This `ValueError` has one line per problem: the key, the value it got and the value
        it wanted.

    Examples
    --------
    >>> Scenario(schemes=["rep:3"], cluster={"hosts": 4}, workload={"requests": 10}).cluster.hosts
    4
    """

    def __init__(self, **keywords: Unpack[ScenarioKeywords]) -> None:
        draft = draft_of_values(keywords, "Scenario")
        keys = checked_keys(draft, Path(), sets=(), seed=None)
        super().__init__(**{key: getattr(keys, key) for key in keys.model_fields_set})
        self._take_places(keys)

    def _take_places(self, keys: ScenarioKeys) -> None:
        """Take over where relative paths start, and where keys are written."""
        self._base_dir = keys._base_dir
        self._places = keys._places

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """Note the files of codes in a worker process, which loads them when it needs one."""
        super().__setstate__(state)
        if self.codes:
            from stripesim.models.coding import note_code_files

            note_code_files(self.resolve(path) for path in self.codes)

    @property
    def introduction(self) -> str:
        """The description, with the keys that overrides changed since it was written; or ""."""
        changed = [
            key_text(path) for path in self._places.overrides if path != ("seed",)
        ]
        if not self.description or not changed or self.is_override("description"):
            return self.description
        return f"{self.description} (changed: {', '.join(changed)})"

    @property
    def has_fresh_object_maps(self) -> bool:
        """True if images have object maps that no write has filled yet."""
        load = self.workload
        # By default, every release since Jewel gives an image an object map.
        has_map = load.image_features is None or "object-map" in load.image_features
        return has_map and load.image == "pristine"

    @property
    def changes_during_run(self) -> bool:
        """True if the cluster fails, recovers or changes during the run."""
        parts = (self.faults, self.repair)
        return bool(self.changes) or any(part is not None for part in parts)

    @property
    def clients(self) -> int:
        """Clients of all workloads together [count]."""
        return sum(load.clients for load in self.loads)

    @property
    def states_clients(self) -> bool:
        """True if the scenario says how many clients there are, or describes their machines."""
        if self.client.model_fields_set:
            return True
        counts = {"clients", "clients_per_host"}
        tables = (self.workload, *self.workloads)
        return any(counts & table.model_fields_set for table in tables)

    def with_enough_clients(self) -> Self:
        """Return the scenario with clients that do not limit the rate, or itself if it states clients."""
        if self.states_clients:
            return self
        return self.replaced(client=self.client.replaced(unlimited=True))

    def with_cluster(self, **keys: Any) -> Self:
        """Return the scenario with some keys of `[cluster]` replaced."""
        return self.replaced(cluster=self.cluster.replaced(**keys))

    def with_recovered_objects(self) -> Self:
        """Return the scenario with images whose objects have the size of the RADOS objects of its buckets."""
        if not self.workload.is_s3:
            return self
        return self.with_cluster(object_bytes=self.workload.rados_object_bytes)

    def with_workload(self, **keys: Any) -> Self:
        """Return the scenario with some keys of `[workload]` replaced."""
        return self.replaced(workload=self.workload.replaced(**keys))

    def at_rate(self, rate_per_s: float) -> Self:
        """Return the scenario with Poisson arrivals at a rate [requests/s]."""
        return self.replaced(workload=self.workload.at_rate(rate_per_s))

    def closed(self, in_flight: int, *, requests: int) -> Self:
        """Return the scenario as a closed loop that keeps at least this many requests in flight."""
        each = -(-in_flight // self.workload.clients)
        return self.replaced(workload=self.workload.closed(each, requests=requests))

    def seeded(self, number: int) -> Self:
        """Return the scenario with the seed of one of its runs, counted from 0."""
        return self.replaced(seed=self.seed + number)

    def of_cell(self, cell: Cell) -> Self:
        """Return the scenario reduced to one cell."""
        sizes_key = "block_sizes_bytes"
        if self.workload.is_s3:
            sizes_key = "object_sizes_bytes"
        coordinates = {
            "ops": cell.op,
            "patterns": cell.pattern,
            sizes_key: cell.block_size_bytes,
        }
        if self.workload.size_shares is not None:
            del coordinates[sizes_key]
        only = {
            key: (value,)
            for key, value in coordinates.items()
            if value not in ("mixed", "trace", None)
        }
        return self.with_workload(**only).replaced(schemes=(cell.scheme,))

    def without_osd(self, osd: int, load: WorkloadSpec) -> Self:
        """Return the scenario with an OSD lost at the start and rebuilt under a load, equally throttled.

        The pool holds the images of the load and nothing else.
        """
        return self.with_cluster(stored_bytes=None).replaced(
            repair=self.repair_of(osd), workload=load, workloads=(), faults=None
        )

    def repair_of(self, osd: int) -> RepairSpec:
        """Return the loss of an OSD, with the limits on recovery of this scenario's faults or repair."""
        limits = self.faults or self.repair
        stated = {name: getattr(limits, name, None) for name in Throttles.model_fields}
        return RepairSpec(lost_osds=(osd,), **stated)

    @property
    def in_flight_count(self) -> int | None:
        """Requests that closed loops keep in flight [count], or None if some arrive at given times."""
        loads = self.loads
        if not all(load.is_closed for load in loads):
            return None
        return sum(load.clients * load.queue_depth for load in loads)

    @property
    def until_ns(self) -> int | None:
        """Simulated time after which a run stops [ns], or None."""
        if self.duration_s is None:
            return None
        return round(self.duration_s * 1e9)

    def __repr__(self) -> str:
        return f"<Scenario: {self.name}, {', '.join(self.schemes)}>"

    def where(self, *path: str | int) -> str:
        """Return a key with its file and line where they are known, for messages."""
        return self._places.text(path)

    def located(
        self, *path: str | int, got: str = "", wanted: str = "", detail: str = ""
    ) -> Problem:
        """Return a problem of a key, with its file and line where they are known."""
        return Problem(
            place=self._places.place(path),
            key=key_text(path),
            got=got,
            wanted=wanted,
            detail=detail,
        )

    def problem(self, path: str, got: str, wanted: str) -> ScenarioError:
        """Return the error for a dotted key: ``file:line: key: got …, wanted …``.

        Digits in the key are list indices.
        """
        parts = [int(part) if part.isdigit() else part for part in path.split(".")]
        return ScenarioError(self.located(*parts, got=got, wanted=wanted))

    def hash(self) -> str:
        """Return the SHA-256 of the content, with paths as written and without absent optional tables."""
        left_out: dict[str, Any] = {
            key: True for key in ("durability", "plan") if getattr(self, key) is None
        }
        if not self.changes:
            left_out["changes"] = True
        else:
            late = ("copy_parallel", "command_s", "norebalance")
            left_out["changes"] = {
                "__all__": {
                    key
                    for key in late
                    if all(getattr(change, key) is None for change in self.changes)
                }
            }
        if not self.codes:
            left_out["codes"] = True
        # Scenarios without these keys keep the hash that they had before the keys existed.
        late_keys = (
            "pool_id",
            "upmap_max_deviation",
            "backfillfull_ratio",
            "osd_reweights",
            "primary_affinities",
            "upmap_items",
            "stored_bytes",
            "used_bytes",
            "gateways",
        )
        stated = self.cluster.model_fields_set
        left_out["cluster"] = {key for key in late_keys if key not in stated}
        if self.plan and "spare_domains" not in self.plan.model_fields_set:
            left_out["plan"] = {"spare_domains"}
        if "unlimited" not in self.client.model_fields_set:
            left_out["client"] = {"unlimited"}
        left_out["workload"] = S3_KEYS - self.workload.model_fields_set
        left_out["workloads"] = {
            number: S3_KEYS - load.model_fields_set
            for number, load in enumerate(self.workloads)
        }
        canonical = canonical_json(self.model_dump(mode="json", exclude=left_out))
        return hashlib.sha256(canonical.encode()).hexdigest()


def load_scenario(
    name_or_path: str | Path, *, sets: Overrides = (), seed: int | None = None
) -> Scenario:
    """Read a scenario by name or from a file.

    Parameters
    ----------
    name_or_path
        Name of a shipped scenario (`koh2017`), or the path of a TOML file.
    sets
        Overrides, applied in order: a mapping of keys to values, or a list of `Override` objects and of texts
        ``key.path=value``. The value in a text is TOML, or a bare word (``4k``), which is taken as text. A
        single value for a list key becomes a list of one. ``workload.requests`` and ``workload.duration_s``
        replace each other, as do ``workload.ops`` and ``workload.read_fraction``. Relative paths in
        overrides start at the current folder.
    seed
        Seed that replaces the scenario's, 0 … 2⁶³ − 1.

    Returns
    -------
    Scenario
        Validated. Its relative paths start at the file's folder.

    Raises
    ------
    ScenarioError
        If anything is wrong, with one line for each problem.

    Warns
    -----
    FutureWarning
        If a key has an old name.
    """
    path = find_file(str(name_or_path))
    text = read_text(path)
    return parse_scenario(
        text, label=str(path), base_dir=path.parent.absolute(), sets=sets, seed=seed
    )


def parse_scenario(
    text: str,
    *,
    label: str = "scenario",
    base_dir: Path | None = None,
    sets: Overrides = (),
    seed: int | None = None,
) -> Scenario:
    """Read a scenario from TOML text.

    Parameters
    ----------
    text
        The TOML document.
    label
        Name of the document in messages, usually its path.
    base_dir
        Base folder of relative paths in the document. Default: the current folder.
    sets, seed
        As for `load_scenario`.

    Returns
    -------
    Scenario
        Validated.

    Raises
    ------
    ScenarioError
        If anything is wrong, with one line for each problem.

    Examples
    --------
    >>> parse_scenario('schemes = ["rep:3"]', sets=["workload.requests=10"]).workload.requests
    10
    """
    return _scenario_of(draft_of_toml(text, label), base_dir, sets, seed)


def scenario_from(
    values: Mapping[str, Any],
    *,
    label: str = "Scenario",
    base_dir: Path | None = None,
    sets: Overrides = (),
    seed: int | None = None,
) -> Scenario:
    """Build a scenario from Python values: mappings become tables, sequences become arrays.

    The other parameters, the result and the errors are those of `parse_scenario`.
    """
    return _scenario_of(draft_of_values(values, label), base_dir, sets, seed)


def _scenario_of(
    draft: Draft, base_dir: Path | None, sets: Overrides, seed: int | None
) -> Scenario:
    keys = checked_keys(draft, base_dir or Path(), sets=sets, seed=seed)
    scenario = Scenario.model_construct(keys.model_fields_set, **dict(keys))
    scenario._take_places(keys)
    return scenario


def as_scenario(
    source: Scenario | str | Path, *, sets: Overrides = (), seed: int | None = None
) -> Scenario:
    """Return a scenario from what a caller gives: a scenario, the name of a shipped one, or a file.

    `sets`, `seed` and the errors are those of `load_scenario`.
    """
    if isinstance(source, Scenario):
        return overridden(source, sets, seed=seed)
    given: object = source
    if not isinstance(given, str | Path):
        got = type(given).__name__
        wanted = "a Scenario, such as Scenario(**keys), the name of a shipped scenario, or the path of a file"
        raise ScenarioError(Problem(key="scenario", got=got, wanted=wanted))
    return load_scenario(given, sets=sets, seed=seed)


def overridden(
    scenario: Scenario, sets: Overrides, *, seed: int | None = None
) -> Scenario:
    """Return a copy of a scenario with some keys replaced, fully validated.

    `sets`, `seed` and the errors are those of `load_scenario`.
    """
    if not sets and seed is None:
        from stripesim.models.coding import note_code_files

        note_code_files(scenario.resolve(path) for path in scenario.codes)
        return scenario
    values = scenario.model_dump(mode="json", exclude_unset=True)
    return scenario_from(
        values,
        label=scenario._places.label or "Scenario",
        base_dir=scenario._base_dir,
        sets=sets,
        seed=seed,
    )
