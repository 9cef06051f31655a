"""Simulate the gain of purchases: each resource doubled, alone and in pairs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil
from typing import Any, ClassVar, Final, NamedTuple

from stripesim.models.documents import Documented
from stripesim.models.provenance import Provenance
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.checks import host_cores_needed
from stripesim.scenarios.schema.keys import Cell, cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.observe.intervals import Interval, student_interval
from stripesim.sim.observe.limits import resource_name
from stripesim.sim.observe.progress import OnStep, silent
from stripesim.sim.observe.result_row import ResultRow

#: Runs of each purchase, with the same seeds as the runs without it.
REPLICATIONS: Final = 3
#: Most cells of a scenario with advice.
CELLS_MAX: Final = 12
# Purchases combined in pairs: first those that relieve a limit, then those with the largest gain.
_PAIRED: Final = 5
# Least additional gain at which a pair is shown, compared with the better of the two.
_NOTABLE: Final = 0.02


class Purchase(NamedTuple):
    """A resource to double: its scenario key, its name, and the classes of resources that it relieves."""

    key: tuple[str, str]
    words: str
    kinds: tuple[str, ...]


# Not a number of the scenario: halves the times of the device's parameter set.
_DRIVE: Final = ("cluster", "drive")
_PUBLIC: Final = ("public.tx", "public.rx", "client.tx", "client.rx")
_PRIVATE: Final = Purchase(
    ("cluster", "private_gbit_per_s"),
    "private network",
    ("private.tx", "private.rx"),
)

_OSDS: Final = Purchase(
    ("cluster", "osds_per_host"), "OSDs", ("ssd", "kv", "sync", "worker")
)
_CORES: Final = Purchase(("cluster", "cores_per_host"), "CPU cores", ("cpu",))
PURCHASES: Final = (
    _OSDS,
    Purchase(_DRIVE, "drive speed", ("ssd", "kv")),
    _CORES,
    Purchase(("cluster", "public_gbit_per_s"), "public network", _PUBLIC),
    _PRIVATE,
    Purchase(
        ("cluster", "pg_num"), "placement groups", ("pg.lock", "pg.exec", "pg.pipeline")
    ),
    Purchase(("client", "threads"), "client threads", ("client.submit",)),
)
#: A further purchase for an object store, whose clients are not those of OSDs.
_GATEWAYS: Final = Purchase(
    ("cluster", "gateways.count"),
    "gateways",
    tuple(
        f"gateway.{part}"
        for part in ("thread", "messenger", "serial", "budget", "cpu", "tx", "rx")
    ),
)


@dataclass(frozen=True)
class Gain(Documented):
    """Relative changes from one purchase or a pair, with 95 % intervals."""

    cell: Cell
    purchases: tuple[Purchase, ...]
    iops: Interval
    latency_mean: Interval
    latency_p99: Interval

    in_document: ClassVar = (
        *((name, f"cell.{name}") for name in Cell._fields),
        "doubled",
        "words",
        *(
            (f"{name}_gain{suffix}", f"{name}.{end}")
            for name in ("iops", "latency_mean", "latency_p99")
            for suffix, end in (("", "mean"), ("_low", "low"), ("_high", "high"))
        ),
    )

    @property
    def words(self) -> str:
        """Name the purchases."""
        return " and ".join(one.words for one in self.purchases)

    @property
    def doubled(self) -> list[str]:
        """Keys of what is bought."""
        return [".".join(one.key) for one in self.purchases]


def notable(advice: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out pairs that gain hardly more than the better of the two."""
    singles = {
        (Cell.of_row(row), row["doubled"][0]): row
        for row in advice
        if len(row["doubled"]) == 1
    }
    rows = []
    for row in advice:
        alone = [singles[Cell.of_row(row), key] for key in row["doubled"]]
        faster = row["iops_gain"] > max(one["iops_gain"] for one in alone) + _NOTABLE
        sooner = (
            row["latency_mean_gain"]
            < min(one["latency_mean_gain"] for one in alone) - _NOTABLE
        )
        if len(alone) == 1 or faster or sooner:
            rows.append(row)
    return rows


def gain_text(row: Mapping[str, Any], name: str) -> str:
    """Write a relative change with its interval, in per cent.

    >>> gain_text({"iops_gain": 0.154, "iops_gain_low": 0.14, "iops_gain_high": 0.168}, "iops")
    '+15.4 ±1.4'
    """
    low = row[f"{name}_gain_low"]
    high = row[f"{name}_gain_high"]
    about = "" if low is None else f" ±{100 * (high - low) / 2:.1f}"
    return f"{100 * row[f'{name}_gain']:+.1f}{about}"


def simulations(scenario: Scenario, *, replications: int = REPLICATIONS) -> int:
    """Return the largest number of runs that advice takes."""
    singles = len(_offered(scenario))
    pairs = min(singles, _PAIRED) * (min(singles, _PAIRED) - 1) // 2
    return len(cells(scenario)) * (1 + singles + pairs) * replications


def check_advice(scenario: Scenario) -> None:
    """Raise an error if advice on a scenario would take too many runs."""
    count = len(cells(scenario))
    if count > CELLS_MAX:
        raise ValueError(
            f"--advise: got {count} cells, wanted at most {CELLS_MAX}: narrow schemes, ops, patterns "
            "or block sizes with --set"
        )


def advise(
    scenario: Scenario,
    *,
    engine: str = "compiled",
    replications: int = REPLICATIONS,
    progress: OnStep = silent,
) -> list[Gain]:
    """Simulate the gain of doubling each resource, and the most promising ones in pairs."""
    check_advice(scenario)
    all_gains: list[Gain] = []
    for cell in cells(scenario):
        gains = _of_cell(scenario, cell, engine, replications, progress)
        all_gains += sorted(
            gains, key=lambda gain: (-round(gain.iops[0], 3), gain.latency_mean[0])
        )
    return all_gains


def _offered(scenario: Scenario) -> list[Purchase]:
    """List the purchases for a scenario.

    With a CRUSH map, the number of OSDs is fixed. With one network, there is no private one. OSDs may have
    cores or a CPU limit of their own.
    """
    cluster = scenario.cluster
    fixed = None if cluster.crush_map is None else _OSDS.key
    offered = [one for one in PURCHASES if one.key != fixed]
    own = {_CORES: _cores, _OSDS: _osds}
    offered = [own[one](scenario) if one in own else one for one in offered]
    if cluster.networks == 1:
        offered.remove(_PRIVATE)
    if scenario.workload.is_s3:
        offered.append(_GATEWAYS)
    return offered


def _cores(scenario: Scenario) -> Purchase:
    """Return the purchase of the cores that OSDs have: their limit, those of their own, or the host's."""
    key = scenario.cluster.cores_key
    if key not in _OF_OSDS:
        return _CORES
    return Purchase(("cluster", key), _OF_OSDS[key], ("osd.cpu", "cpu"))


def _osds(scenario: Scenario) -> Purchase:
    """Return the purchase of OSDs, which names further cores if hosts have too few for them."""
    more = _doubled(scenario, [_OSDS])
    groups = zip(more.cluster.host_groups, scenario.cluster.host_groups, strict=True)
    if any(after.cores != before.cores for after, before in groups):
        return _OSDS._replace(words="OSDs with cores")
    return _OSDS


def with_host_cores(scenario: Scenario) -> Scenario:
    """Return a scenario with the cores that limits and pinned OSDs need, if it has fewer."""
    cluster = scenario.cluster
    pinned, limit = cluster.cores_per_osd, cluster.cpu_limit_per_osd
    if pinned is not None and limit is not None and limit > pinned:
        scenario = scenario.with_cluster(cores_per_osd=ceil(limit))
    own = [group.cores or 0 for group in cluster.host_groups]
    needed = [ceil(cores) for cores in host_cores_needed(scenario)]
    more = list(map(max, own, needed))
    if more == own:
        return scenario
    if isinstance(cluster.hosts, int):
        return scenario.with_cluster(cores_per_host=more[0])
    groups = zip(cluster.hosts, more, strict=True)
    return scenario.with_cluster(
        hosts=tuple(group.replaced(cores=cores) for group, cores in groups)
    )


#: Keys of the cores that OSDs have for themselves → words of their purchase.
_OF_OSDS: Final = {
    "cpu_limit_per_osd": "CPU limit of OSDs",
    "cores_per_osd": "CPU cores of OSDs",
}
#: Key of a cluster → key of a group of hosts that overrides it.
_OF_GROUPS: Final = {"osds_per_host": "osds", "cores_per_host": "cores"}


def _of_cell(
    scenario: Scenario,
    cell: Cell,
    engine: str,
    replications: int,
    progress: OnStep,
) -> Iterator[Gain]:
    def rows(purchases: Sequence[Purchase]) -> list[ResultRow]:
        changed, models = with_doubled(scenario, purchases)
        rows = []
        for replication in range(replications):
            seeded = changed.seeded(replication)
            rows.append(run_cell(seeded, cell, engine, models).row)
            progress(
                f"{cell.scheme}: "
                + (" and ".join(one.words for one in purchases) or "as it is")
            )
        return rows

    base = rows(())
    offered = _offered(scenario)
    singles = {one: _gain(cell, (one,), base, rows((one,))) for one in offered}
    yield from singles.values()
    near = base[0].limits or ""

    def rank(one: Purchase) -> tuple[bool, float]:
        return not any(resource_name(kind) in near for kind in one.kinds), -singles[
            one
        ].iops[0]

    for pair in combinations(sorted(offered, key=rank)[:_PAIRED], 2):
        yield _gain(cell, pair, base, rows(pair))


def with_doubled(
    scenario: Scenario, purchases: Sequence[Purchase]
) -> tuple[Scenario, Models]:
    """Return a scenario with twice as much of some resources, and its models."""
    scenario = _doubled(scenario, purchases)
    models = build_models(scenario)
    if any(purchase.key == _DRIVE for purchase in purchases):
        drive = models.ssd
        halves = {
            name: getattr(drive, name) / 2
            for name in drive.number_names()
            if name.endswith(("_ns", "_ns_per_byte"))
        }
        origin = Provenance("assumed", "twice as fast a drive")
        models = replace(models, ssd=drive.with_numbers(halves, origin))
    return scenario, models


def _doubled(scenario: Scenario, purchases: Sequence[Purchase]) -> Scenario:
    """Return a scenario with twice as much of some resources, but the speed of drives, which models have."""
    for table, key in (one.key for one in purchases if one.key != _DRIVE):
        own = getattr(scenario, table)
        groups = scenario.cluster.hosts
        if key == "gateways.count":
            twice = scenario.cluster.gateways.replaced(
                count=2 * scenario.cluster.gateway_count
            )
            scenario = scenario.with_cluster(gateways=twice)
            continue
        value = getattr(own, key)
        if value is None:
            # Without a value in the scenario, the parameter set has it.
            value = build_models(scenario).client.submit_threads_count
        update: dict[str, Any] = {key: 2 * value}
        if key in _OF_GROUPS and not isinstance(groups, int):
            name = _OF_GROUPS[key]
            pairs = zip(groups, scenario.cluster.host_groups, strict=True)
            doubled = (
                mine.replaced(**{name: 2 * getattr(full, name)}) for mine, full in pairs
            )
            update["hosts"] = tuple(doubled)
        scenario = scenario.replaced(**{table: own.replaced(**update)})
    return with_host_cores(scenario)


def _gain(
    cell: Cell,
    purchases: tuple[Purchase, ...],
    base: Sequence[ResultRow],
    rows: Sequence[ResultRow],
) -> Gain:
    """Return the mean relative changes of pairs of runs, with Student's intervals."""

    def change(name: str) -> Interval:
        ratios = [
            getattr(row, name) / getattr(before, name)
            for before, row in zip(base, rows, strict=True)
        ]
        return student_interval([ratio - 1 for ratio in ratios])

    return Gain(
        cell,
        purchases,
        iops=change("iops"),
        latency_mean=change("latency_mean_ns"),
        latency_p99=change("latency_p99_ns"),
    )
