"""Plan a single request: find its placement group and compile its op graphs."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from stripesim.models.placement import OsdWeights
from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.placement import up_sets
from stripesim.scenarios.schema.keys import Cell, DegradedSpec, cells
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import format_size
from stripesim.sim.ceph.clients.objects import S3Load
from stripesim.sim.ceph.clients.workload import Requests, SyntheticStream
from stripesim.sim.ceph.cluster import NO_OSD, Models
from stripesim.sim.ceph.failures.background.operations import (
    OperationBook,
    OperationFeed,
)
from stripesim.sim.ceph.failures.cluster_map import aligned_up_set
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.gateway.paths import S3Paths
from stripesim.sim.ceph.gateway.planner import S3Planner
from stripesim.sim.ceph.kinds import kind_of
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.paths import ObjectExtent, can_read_directly
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.draws import FACTOR_ONE, FACTOR_POINTS
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import Program, RequestSource


@dataclass(frozen=True)
class RequestQuestion:
    """The request to explain and the state of the object and its placement group."""

    op: str
    size_bytes: int
    offset_bytes: int
    state: str
    image: str
    lost_shard: int


@dataclass(frozen=True)
class EngineInput:
    """The input of an engine: the book of op graphs and the source of the request."""

    book: Book
    source: RequestSource
    rounds: int = 1  # Rounds of a repair, of which only the first is planned.

    def program(self, pool: Pool) -> Program:
        """Return the program of the request. All factors are one, so service times do not vary."""
        return Program(
            resources=pool.cluster.resources,
            book=self.book,
            streams=[self.source],
            groups=pool.cluster.groups,
            factor_tables=np.full((8, FACTOR_POINTS), FACTOR_ONE, dtype=np.int64),
        )


@dataclass(frozen=True)
class PlacedRequest:
    """A request in a pool that is reduced to its placement group."""

    question: RequestQuestion
    pool: Pool
    up: IntArray | None  # OSDs of the shards after a repair, None for reads and writes.

    @property
    def missing(self) -> tuple[int, ...]:
        """Unavailable shards, or the shard that a repair rebuilds."""
        if self.question.op == "repair":
            return (self.question.lost_shard,)
        return tuple(np.flatnonzero(self.pool.cluster.acting[0] == NO_OSD).tolist())

    @property
    def osds(self) -> tuple[int, ...]:
        """OSD of each shard, −1 for a shard without one."""
        row = self.pool.cluster.acting[0] if self.up is None else self.up
        return tuple(int(osd) if osd != NO_OSD else -1 for osd in row)

    def plan(self, models: Models, *, in_rounds: bool = False) -> EngineInput:
        """Compile the request under given models, a repair `in_rounds` if it is too large for one graph."""
        cluster = replace(self.pool.cluster, models=models)
        pool = replace(self.pool, cluster=cluster)
        if self.up is not None:
            return _plan_repair(
                pool, self.question.lost_shard, self.up, in_rounds=in_rounds
            )
        book = pool.book()
        prefilled = self.question.image == "prefilled"
        source = RequestPlanner(pool, book, _One(self.question), prefilled=prefilled)
        return EngineInput(book, source)

    @property
    def width(self) -> int:
        """Shards of the pool."""
        return self.pool.scheme.width

    def role_name(self, role: int) -> str:
        """Return the name of a role of the request."""
        return self.pool.cluster.role_name(role)

    def shard_counts(self) -> dict[str, Any]:
        """Return the counts of shards read and written, and the method, as fields of a `Timeline`."""
        if self.question.op == "repair":
            return self._repair_counts()
        size_bytes = self.pool.object_bytes
        extent = ObjectExtent(
            offset_bytes=self.question.offset_bytes % size_bytes,
            length_bytes=self.question.size_bytes,
            object_size_bytes=size_bytes if self.question.image == "prefilled" else 0,
        )
        if self.question.op == "read":
            counts = self._read_counts(extent)
        else:
            write = self.pool.contexts[0].plan_write(**extent)
            counts = {
                "shard_reads": len({extent.shard for extent in write.reads}),
                "shard_writes": len({extent.shard for extent in write.writes}),
                "metadata_writes": len(write.metadata_shards),
                "method": write.method,
            }
        if counts["method"] == "direct" or not self._is_of_primary(extent):
            return counts
        return counts | {"remote_offset_bytes": self._remote_offset_bytes(extent)}

    def _read_counts(self, extent: ObjectExtent) -> dict[str, Any]:
        context = self.pool.contexts[0]
        read = context.plan_read(**extent)
        shards = {extent.shard for extent in read.reads}
        if not can_read_directly(context, read) or self.pool.scheme.kind != "erasure":
            return {"shard_reads": len(shards), "method": "primary"}
        # The client asks the primary for the object info if no shard that it reads is the primary's.
        asks_primary = len(shards) > 1 and context.primary not in shards
        return {
            "shard_reads": len(shards),
            "metadata_reads": int(asks_primary),
            "method": "direct",
        }

    def _is_of_primary(self, extent: ObjectExtent) -> bool:
        """Whether the primary of a coded pool has all data that a request reads or changes."""
        scheme = self.pool.scheme
        if scheme.kind != "erasure":
            return False
        context = self.pool.contexts[0]
        if self.question.op == "read":
            shards = {one.shard for one in context.plan_read(**extent).reads}
        else:
            written = {one.shard for one in context.plan_write(**extent).writes}
            shards = {shard for shard in written if shard < scheme.k}
        return shards == {context.primary}

    def _remote_offset_bytes(self, extent: ObjectExtent) -> int | None:
        """Return the next offset in the image whose data the primary does not have [B], if there is one."""
        unit_bytes = self.pool.geometry.stripe_unit_bytes
        start = extent["offset_bytes"] // unit_bytes * unit_bytes
        last = self.pool.object_bytes - extent["length_bytes"]
        for offset in range(start + unit_bytes, last + 1, unit_bytes):
            if not self._is_of_primary({**extent, "offset_bytes": offset}):
                return self.question.offset_bytes - extent["offset_bytes"] + offset
        return None

    def _repair_counts(self) -> dict[str, Any]:
        repair = self.pool.scheme.plan_repair(
            lost=frozenset({self.question.lost_shard}),
            object_size_bytes=self.pool.object_bytes,
            geometry=self.pool.geometry,
        )
        return {
            "shard_reads": len({extent.shard for extent in repair.reads}),
            "shard_writes": len({extent.shard for extent in repair.writes}),
        }


@dataclass(frozen=True)
class PlacedS3Request:
    """An S3 request to a pool behind gateways. Its timeline has parts instead of shards."""

    question: RequestQuestion
    pool: Pool
    load: S3Load
    missing: tuple[int, ...] = ()
    osds: tuple[int, ...] = ()
    width: int = 0

    def plan(self, models: Models, *, in_rounds: bool = False) -> EngineInput:
        """Compile the request under given models. It has no rounds."""
        pool = replace(self.pool, cluster=replace(self.pool.cluster, models=models))
        book = pool.book()
        return EngineInput(book, S3Planner(pool, book, self.load.start()))

    def role_name(self, role: int) -> str:
        """Return the name of a role of the request."""
        gateways = self.pool.cluster.gateways
        assert gateways is not None
        return gateways.roles.name(role)

    def shard_counts(self) -> dict[str, Any]:
        """Return the number of RADOS objects of the S3 object, as the method."""
        layout = S3Paths(kind_of(self.pool), self.pool.contexts, self.load.tls).layout(
            self.question.size_bytes
        )
        count = len(layout.tail_bytes)
        if self.question.op in ("head", "list") or not count:
            return {"method": ""}
        tails = "a tail object" if count == 1 else f"{count} tail objects"
        return {"method": f"head and {tails}"}


def place_s3_request(
    question: RequestQuestion, scenario: Scenario, models: Models
) -> PlacedS3Request:
    """Build an S3 request on the cluster of a scenario with one scheme."""
    (cell,) = cells(scenario)
    built = build_cell(scenario, cell, models)
    assert isinstance(built.workload, SyntheticStream)
    load = built.workload.workload
    assert isinstance(load, S3Load)
    return PlacedS3Request(question, built.pool, load)


def place_request(
    question: RequestQuestion, scenario: Scenario, models: Models
) -> PlacedRequest:
    """Find the placement group of a request on the cluster of a scenario with one scheme."""
    pool = _pool(question, scenario, models)
    group = _group(question, pool)
    up = None
    if question.op == "repair":
        lost_osd = _lost_osd(question, pool, group)
        up = up_sets(scenario, pool.scheme, OsdWeights(out=(lost_osd,)))[group]
    elif question.state == "degraded":
        down = DegradedSpec(missing_osds=(_lost_osd(question, pool, group),))
        degraded = scenario.replaced(degraded=down)
        pool = _pool(question, degraded, models)
    cluster = replace(pool.cluster, acting=pool.cluster.acting[[group]])
    return PlacedRequest(question, replace(pool, cluster=cluster), up)


def _pool(question: RequestQuestion, scenario: Scenario, models: Models) -> Pool:
    op: Literal["read", "write"] = "read" if question.op == "read" else "write"
    cell = Cell(scenario.schemes[0], op, "seq", question.size_bytes)
    return build_cell(scenario, cell, models).pool


def _group(question: RequestQuestion, pool: Pool) -> int:
    """Return the placement group of the object that the request accesses."""
    first = question.offset_bytes // pool.object_bytes
    end_bytes = question.offset_bytes + question.size_bytes
    if end_bytes > (first + 1) * pool.object_bytes:
        size = format_size(question.size_bytes)
        raise AnswerError(
            Problem(
                place="--size",
                got=f"{size} at offset {question.offset_bytes}, which crosses an object boundary",
                wanted=f"a request within one object of {format_size(pool.object_bytes)}",
            )
        )
    image = np.zeros(1, dtype=np.int64)
    return int(pool.groups_of(image, np.array([first], dtype=np.int64))[0])


def _lost_osd(question: RequestQuestion, pool: Pool, group: int) -> int:
    name = pool.scheme.name
    last = pool.scheme.width - 1
    # A single copy does not survive whatever shard is asked for.
    if last and not 0 <= question.lost_shard <= last:
        wanted = f"0 to {last} for {name}"
        raise AnswerError(
            Problem(place="--lost-shard", got=str(question.lost_shard), wanted=wanted)
        )
    if not last or not pool.scheme.can_decode(frozenset({question.lost_shard})):
        raise AnswerError(
            Problem(
                place="--scheme",
                got=f"{name}, which loses data with shard {min(question.lost_shard, last)}",
                wanted="a scheme that survives the loss of a shard",
            )
        )
    return int(pool.cluster.acting[group, question.lost_shard])


def _plan_repair(
    pool: Pool, lost_shard: int, up: IntArray, *, in_rounds: bool
) -> EngineInput:
    """Plan the rebuild of one object's shard, or its first round, as recovery does."""
    acting = pool.cluster.acting[0]
    lost_osd = int(acting[lost_shard])
    group = Group(0, pool.scheme, acting.tolist(), [0])
    group.forget({lost_osd})
    up_osds = set(range(pool.cluster.osds)) - {lost_osd}
    group.up = aligned_up_set(
        group.up, up.tolist(), up_osds, is_replicated=group.is_replicated
    )
    group.add_empty_copies()
    group.members = group.choose_members(up_osds)
    book = pool.book()
    layout = Layout(pool)
    whole_object = OperationBook(pool, book, layout, in_one_graph=True)
    operations = whole_object.operations(group, 0, up_osds)
    # A replica that replaces the primary is pulled by it.
    rebuild = next((one for one in operations if one.kind in ("rebuild", "pull")), None)
    if rebuild is None:
        raise AnswerError(
            Problem(
                key="repair",
                got=f"no new OSD for shard {lost_shard} of {pool.scheme.name} from CRUSH",
                wanted="a spare failure domain",
            )
        )
    if not in_rounds:
        try:
            rounds, binding = whole_object.plan(group, rebuild, up_osds)
        except ValueError:
            # Too large for one graph.
            in_rounds = True
    if in_rounds:
        by_round = OperationBook(pool, book, layout)
        rounds, binding = by_round.plan(group, rebuild, up_osds)
    feed = OperationFeed(1)
    feed.push(rounds[0], binding, 0)
    return EngineInput(book, feed, len(rounds))


class _One:
    """A workload that consists of one request."""

    queue_depth = 1

    def __init__(self, question: RequestQuestion) -> None:
        self._left = [
            (question.op == "write", question.offset_bytes, question.size_bytes)
        ]

    def take(self, count: int) -> Requests:
        """Return the request, at the first call only."""
        rows = [self._left.pop() for _ in range(min(count, len(self._left)))]
        writes, offsets, lengths = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return Requests(
            is_write=writes.astype(np.bool_),
            images=np.zeros(len(rows), dtype=np.int64),
            offsets_bytes=offsets,
            lengths_bytes=lengths,
        )
