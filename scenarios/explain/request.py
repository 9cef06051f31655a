"""One request alone on the reference engine: every step with its time, its bytes and its source."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import generations
from stripesim.scenarios.explain.record import record, shares_of
from stripesim.scenarios.explain.timeline import Timeline, critical_path, holds, located
from stripesim.scenarios.run.build import (
    build_cell,
    build_models,
    check_schemes,
    up_sets,
)
from stripesim.scenarios.run.notes import kernel_warnings
from stripesim.scenarios.schema.keys import Cell, DegradedSpec, Scenario
from stripesim.scenarios.schema.loader import (
    ScenarioError,
    load_scenario,
    parse_scenario,
)
from stripesim.scenarios.schema.units import format_size
from stripesim.sim.ceph.clients.workload import Requests
from stripesim.sim.ceph.cluster import NO_OSD, Models
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.failures.work import OperationBook, RecoveryFeed
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.paths import ObjectExtent, can_read_directly
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS
from stripesim.sim.engine.graph import Template
from stripesim.sim.engine.program import Program, RequestSource

OPS = ("write", "read", "repair")
STATES = ("healthy", "degraded")
# Options that are passed on as keys of a scenario.
_OPTIONS = {
    "generation": "--generation",
    "workload.image": "--image",
    "cluster.object_bytes": "--size",
    "cluster.stripe_unit_bytes": "--stripe-unit",
    "cluster.direct_reads": "--direct-reads",
}

# The small cluster of an explanation: a host for each shard, so that every message is seen on the wire,
# and one to spare, which a repair needs.
_DEFAULT_TOML = """
name = "explain"
generation = "kraken"
[cluster]
parameters = "kraken"
osds_per_host = 1
pg_num = 64
[workload]
requests = 1
queue_depth = 1
"""


class ExplainError(ValueError):
    """A request that cannot be explained."""


def explain(
    op: str,
    schemes: Sequence[str] | str,
    size_bytes: int,
    *,
    offset_bytes: int = 0,
    generation: Sequence[str] | str | None = None,
    state: str = "healthy",
    image: str = "prefilled",
    lost_shard: int = 1,
    scenario: str | Path | None = None,
    sets: Sequence[str] = (),
    stripe_unit_bytes: int | None = None,
    direct_reads: bool = False,
) -> list[Timeline]:
    """Run one request alone, once for each release and scheme, and return all its steps.

    Parameters
    ----------
    op : {"write", "read", "repair"}
    schemes : sequence of str, or str
        Such as ``["rep:3", "rs:6,3"]``; all on one and the same cluster.
    size_bytes : int
        Of the request [B]; of a repair the size of the object.
    offset_bytes : int
        In the image [B]; not for a repair.
    generation : str or sequence of str, optional
        Ceph release, or several to compare; None: the scenario's.
    state : {"healthy", "degraded"}
        ``degraded``: one shard of the placement group is down.
    image : {"prefilled", "pristine"}
        Whether the object exists in full beforehand.
    lost_shard : int
        Which shard is down (degraded) or lost and rebuilt (repair), from 0.
    scenario : str or Path, optional
        Cluster to use; None: a small one with a host for each shard.
    sets : sequence of str
        Overrides, ``key=value``.
    stripe_unit_bytes : int, optional
        Chunk of one stripe on one shard [B]; None: the scenario's.
    direct_reads : bool
        Whether the client reads shards of an erasure-coded object itself; of several releases, those that
        offer it.

    Returns
    -------
    list of Timeline
        Release by release, each in the order of `schemes`.

    Raises
    ------
    ValueError
        If a scheme, the request or the scenario is wrong; the message says what was wanted.

    Notes
    -----
    Service times are means: the spread that a parameter set gives to device times is left out, so that
    each duration is what its parameters say. Nothing else is on the cluster, so a wait is the request
    waiting for itself: sub-writes for the primary's network, replies for its placement group.

    Examples
    --------
    >>> one, = explain("write", "rep:3", 4096)
    >>> sum(one.latency_by_category_ns().values()) == one.latency_ns
    True
    """
    names = [schemes] if isinstance(schemes, str) else list(schemes)
    _check(op, names, size_bytes, offset_bytes, state, image)
    unit = (
        []
        if stripe_unit_bytes is None
        else [f"cluster.stripe_unit_bytes={stripe_unit_bytes}"]
    )
    releases: list[str | None] = (
        [generation] if generation is None or isinstance(generation, str) else []
    )
    releases = releases or [*(generation or ())]
    offering = [
        name for name, release in generations().items() if release.ec.direct_reads
    ]
    offers = [release for release in releases if release in offering]
    found: list[Timeline] = []
    for release in releases:
        direct = direct_reads and (release in offers or not offers)
        given = [*unit, *(["cluster.direct_reads=true"] if direct else [])]
        read = _scenario(
            op, names, size_bytes, release, image, scenario, [*given, *sets]
        )
        for name in read.schemes:
            alone = read.model_copy(update={"schemes": (name,)})
            models = build_models(alone)
            check_schemes(alone, models)
            one = _Explanation(
                read, models, name, op, size_bytes, offset_bytes, state, lost_shard
            )
            found.append(
                replace(one.timeline(), kernel_notes=tuple(kernel_warnings(alone)))
            )
    return found


def _check(
    op: str,
    names: list[str],
    size_bytes: int,
    offset_bytes: int,
    state: str,
    image: str,
) -> None:
    whole = op == "repair"
    rules = (
        (op not in OPS, f"explain: got {op!r}, wanted one of {', '.join(OPS)}"),
        (not names, "--scheme: got none, wanted one or more, such as rep:3 or rs:6,3"),
        (
            "none" in names,
            "--scheme: got none, a bare device, wanted a scheme such as rep:3 or rs:6,3",
        ),
        (size_bytes < 1, f"--size: got {size_bytes}, wanted 1 byte or more"),
        (offset_bytes < 0, f"--offset: got {offset_bytes}, wanted 0 or more"),
        (
            state not in STATES,
            f"--state: got {state!r}, wanted one of {', '.join(STATES)}",
        ),
        (
            whole and offset_bytes,
            f"--offset: got {offset_bytes}, wanted none: a repair rebuilds a whole object",
        ),
        (
            whole and (state != "healthy" or image != "prefilled"),
            "explain repair: got --state or --image, wanted neither: one lost shard is rebuilt",
        ),
    )
    for wrong, words in rules:
        if wrong:
            raise ExplainError(words)


def _scenario(
    op: str,
    names: list[str],
    size_bytes: int,
    generation: str | None,
    image: str,
    scenario: str | Path | None,
    sets: Sequence[str],
) -> Scenario:
    """Read the cluster's scenario, or make the small one."""
    hosts = max(parse_scheme(name).width for name in names) + 1
    quoted = ", ".join(f'"{name}"' for name in dict.fromkeys(names))
    forced = [f"schemes=[{quoted}]", f"workload.image={image}"]
    forced += [] if generation is None else [f"generation={generation}"]
    forced += [f"cluster.object_bytes={size_bytes}"] if op == "repair" else []
    try:
        if scenario is None:
            every = [f"cluster.hosts={hosts}", *forced, *sets]
            return parse_scenario(_DEFAULT_TOML, label="explain", sets=every)
        return load_scenario(scenario, sets=[*forced, *sets])
    except ScenarioError as error:
        # A problem names the option that a key came from, unless the user set the key itself.
        text, given = str(error), {item.partition("=")[0].strip() for item in sets}
        for key, option in _OPTIONS.items():
            text = (
                text if key in given else text.replace(f"--set: {key}: ", f"{option}: ")
            )
        raise ScenarioError(text) from None


class _One:
    """A workload of one request."""

    depth = 1

    def __init__(self, *, write: bool, offset_bytes: int, length_bytes: int) -> None:
        self._left = [(write, offset_bytes, length_bytes)]

    def take(self, count: int) -> Requests:
        """Return the request, once."""
        rows = [self._left.pop() for _ in range(min(count, len(self._left)))]
        writes, offsets, lengths = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return Requests(
            is_write=writes.astype(np.bool_),
            images=np.zeros(len(rows), dtype=np.int64),
            offsets_bytes=offsets,
            lengths_bytes=lengths,
        )


@dataclass(frozen=True)
class _Explanation:
    """One request under one scheme, from scenario to timeline."""

    scenario: Scenario
    models: Models
    scheme: str
    op: str
    size_bytes: int
    offset_bytes: int
    state: str
    lost_shard: int

    def timeline(self) -> Timeline:
        pool, targets = self._place()
        book, source, how = self._plan(pool, targets)
        program = Program(
            resources=pool.cluster.resources,
            book=book,
            streams=[source],
            groups=pool.cluster.groups,
            # Every factor one: no spread.
            factor_tables=np.full((8, FACTOR_POINTS), FACTOR_ONE, dtype=np.int64),
        )
        steps, reply_ns, graphs = record(program)
        shares, parameters = shares_of(
            self._planner(pool, targets, graphs), self.models
        )
        acting, primary, repair = (
            pool.cluster.acting[0],
            int(pool.primaries[0]),
            self.op == "repair",
        )
        row = acting if targets is None else targets[0]
        return Timeline(
            scheme=pool.scheme.name,
            op=self.op,  # type: ignore[arg-type]
            state="lost shard" if repair else self.state,
            generation=self.scenario.generation,
            size_bytes=self.size_bytes,
            offset_bytes=self.offset_bytes,
            width=pool.scheme.width,
            data_shards=getattr(pool.scheme, "k", 1),
            primary=primary,
            missing=(self.lost_shard,)
            if repair
            else tuple(np.flatnonzero(acting == NO_OSD).tolist()),
            osds=tuple(int(osd) if osd != NO_OSD else -1 for osd in row),
            latency_ns=reply_ns,
            end_ns=max(step.end_ns for step in steps),
            steps=tuple(located(steps, shares, primary)),
            holds=tuple(holds(steps)),
            path=critical_path(steps, book.templates[graphs[0]].reply),
            parameters=parameters,
            **self._shards(pool) | how,
        )

    def _shards(self, pool: Pool) -> dict[str, Any]:
        """Count the shards that the plan reads and writes."""
        context, size_bytes = pool.contexts[0], pool.object_bytes
        if self.op == "repair":
            repair = pool.scheme.plan_repair(
                lost=frozenset({self.lost_shard}),
                object_size_bytes=size_bytes,
                geometry=pool.geometry,
            )
            return {
                "shard_reads": len({extent.shard for extent in repair.reads}),
                "shard_writes": len({extent.shard for extent in repair.writes}),
            }
        extent = ObjectExtent(
            offset_bytes=self.offset_bytes % size_bytes,
            length_bytes=self.size_bytes,
            object_size_bytes=size_bytes
            if self.scenario.workload.image == "prefilled"
            else 0,
        )
        if self.op == "read":
            plan = context.plan_read(**extent)
            shards = {extent.shard for extent in plan.reads}
            direct = can_read_directly(context, plan) and pool.scheme.kind == "erasure"
            return {
                "shard_reads": len(shards),
                "metadata_reads": int(
                    direct and len(shards) > 1 and context.primary not in shards
                ),
                "method": "direct" if direct else "primary",
            }
        written = context.plan_write(**extent)
        return {
            "shard_reads": len({extent.shard for extent in written.reads}),
            "shard_writes": len({extent.shard for extent in written.writes}),
            "metadata_writes": len(written.metadata_shards),
            "method": written.method,
        }

    def _place(self) -> tuple[Pool, Any]:
        """Return a pool of the one placement group that is concerned, and a repair's new acting set."""
        object_bytes = self.scenario.cluster.object_bytes
        number = self.offset_bytes // object_bytes
        if (self.offset_bytes + self.size_bytes - 1) // object_bytes != number:
            raise ExplainError(
                f"--size: got {format_size(self.size_bytes)} at offset {self.offset_bytes}, which crosses an "
                f"object, wanted a request within one object of {format_size(object_bytes)}"
            )
        workload = self.scenario.workload.model_copy(
            update={
                "kind": "closed",
                "read_fraction": None,
                "rate_per_s": None,
                "queue_depth": 1,
            }
            | {"image_bytes": max(self.scenario.workload.image_bytes, self.size_bytes)}
        )
        plain = self.scenario.model_copy(
            update={"repair": None, "degraded": None, "workload": workload}
        )
        cell = Cell(
            self.scheme,
            "read" if self.op == "read" else "write",
            "seq",
            self.size_bytes,
        )
        pool = build_cell(plain, cell, self.models).pool
        group = int(
            pool.groups_of(
                np.zeros(1, dtype=np.int64), np.array([number], dtype=np.int64)
            )[0]
        )
        targets = None
        if self.op == "repair" or self.state == "degraded":
            most = pool.scheme.width - 1
            if not 0 <= self.lost_shard <= most:
                wanted = f"0 to {most} for {self.scheme}"
                raise ExplainError(
                    f"--lost-shard: got {self.lost_shard}, wanted {wanted}"
                )
            osd = int(pool.cluster.acting[group, self.lost_shard])
            if self.op == "repair":
                targets = up_sets(plain, pool.scheme, (osd,))[[group]]
            else:
                degraded = plain.model_copy(
                    update={"degraded": DegradedSpec(missing_osds=(osd,))}
                )
                pool = build_cell(degraded, cell, self.models).pool
        cluster = replace(pool.cluster, acting=pool.cluster.acting[[group]])
        return replace(pool, cluster=cluster), targets

    def _plan(
        self, pool: Pool, targets: Any
    ) -> tuple[Book, RequestSource, dict[str, str]]:
        book = Book(pool.bindings())
        if targets is not None:
            return book, *self._repair(pool, book, targets)
        write, prefilled = (
            self.op == "write",
            self.scenario.workload.image == "prefilled",
        )
        workload = _One(
            write=write, offset_bytes=self.offset_bytes, length_bytes=self.size_bytes
        )
        return book, RequestPlanner(pool, book, workload, prefilled=prefilled), {}

    def _repair(
        self, pool: Pool, book: Book, targets: Any
    ) -> tuple[RequestSource, dict[str, str]]:
        """Plan the rebuild of the lost shard of one object, as the director of failures does.

        Of an object that is too large for one graph it is the first round; the second value says so.
        """
        lost = int(pool.cluster.acting[0, self.lost_shard])
        group = Group(0, pool.scheme, pool.cluster.acting[0].tolist(), [0])
        group.copies = {
            key: copy for key, copy in group.copies.items() if key[0] != lost
        }

        def is_up(osd: int) -> bool:
            return osd != lost

        group.up = group.aligned(targets[0].tolist(), is_up)
        group.add_empty_copies()
        group.members = group.decide(is_up)
        layout = Layout(pool)
        operations = OperationBook(pool, book, layout, whole=True)
        found = [
            one
            for one in operations.operations(group, 0, is_up)
            if one.kind == "rebuild"
        ]
        if not found:
            raise ExplainError(
                f"repair: CRUSH found no new OSD for shard {self.lost_shard} of {self.scheme}; "
                "wanted a spare failure domain"
            )
        feed = RecoveryFeed(1)
        try:
            rounds, binding = operations.plan(group, found[0], is_up)
        except ValueError:
            rounds, binding = OperationBook(pool, book, layout).plan(
                group, found[0], is_up
            )
        feed.push(rounds[0], binding, 0)
        return feed, {} if len(rounds) == 1 else {
            "method": f"the first of {len(rounds)} rounds"
        }

    def _planner(
        self, pool: Pool, targets: Any, graphs: Sequence[int]
    ) -> Callable[[Models], Sequence[Template]]:
        def templates(models: Models) -> list[Template]:
            book, source, _ = self._plan(
                replace(pool, cluster=replace(pool.cluster, models=models)), targets
            )
            source.take(1)
            return [book.templates[graph] for graph in graphs]

        return templates
