"""Programs for the engine that lessons in a page run: queues, an OSD that two classes share, and rebuilds.

Lessons also run the first cell of a scenario (`engine_page.page.program_of`). The programs here have no
events that Python must decide during the run, so a page can simulate them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from stripesim.models.placement import OsdWeights
from stripesim.models.problems import AnswerError, Problem
from stripesim.notebooks.page_data import imported
from stripesim.scenarios.answers.engine_page.page import program_of_scenario
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.placement import up_sets
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.sim.ceph.failures.background.operations import OperationBook
from stripesim.sim.ceph.failures.cluster_map import aligned_up_set
from stripesim.sim.ceph.failures.groups import Group
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.distributions import exponential, service_times
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import (
    FIFO,
    ListedRequests,
    Program,
    RequestSource,
    Resources,
)
from stripesim.sim.engine.shares import MCLOCK, Share, ShareClass
from stripesim.sim.run import factor_tables, planned_program

#: Seed of all runs. The student's seed draws codes, sizes and loads.
SEED: Final = 1
#: Mean service time of a queue [ns].
SERVICE_NS: Final = 10_000
#: Service time of a request at the shared OSD [ns]: it serves 10,000 requests a second.
SHARED_SERVICE_NS: Final = 100_000
#: Requests of each class of the shared OSD.
SHARED_REQUESTS: Final = 4000

Gaps = npt.NDArray[np.float64]


def arrivals_ns(gaps: Gaps, rate_per_s: float) -> npt.NDArray[np.int64]:
    """Return the arrival times of gaps in units of their mean [ns]. ``engine.js`` computes the same."""
    return np.rint(np.cumsum(gaps * (1e9 / rate_per_s))).astype(np.int64)


def queue(of: Mapping[str, Any], gaps: Gaps, rate_per_s: float) -> Program:
    """Return a queue as a program: one queue for all servers.

    Parameters
    ----------
    of
        ``servers``, 1 if missing. ``branches``: each request is served in so many queues at once and waits
        for the slowest. ``fixed``: true if each service takes 10 µs, otherwise exponential with that mean.
    gaps
        Times between arrivals in units of their mean, shape (requests,).
    rate_per_s
        Requests per second.
    """
    branches = int(of.get("branches", 1))
    graph = GraphBuilder("queue")
    spread = 0 if of.get("fixed") else 1
    served = [
        graph.use(role, SERVICE_NS, after=[graph.issue], label="serve", spread=spread)
        for role in range(branches)
    ]
    names = tuple(f"queue {number}" for number in range(branches))
    servers = np.full(branches, int(of.get("servers", 1)))
    arrivals = ListedRequests(
        *np.zeros((2, len(gaps)), dtype=np.int64),
        queue_depth=0,
        arrivals_ns=arrivals_ns(gaps, rate_per_s),
    )
    return Program(
        resources=Resources(names, names, servers, np.full(branches, FIFO)),
        book=_RowBook([graph.finish(reply=graph.join(served))], branches),
        streams=[arrivals],
        seed=SEED,
        factor_tables=service_times(exponential()),
    )


def shared_osd(of: Mapping[str, Any], in_flight: int) -> Program:
    """Return an OSD that serves clients and recovery by mClock, each with more requests than it can serve.

    Parameters
    ----------
    of
        ``clients`` and ``recovery``, each with ``weight``, and ``reservation_percent`` and ``limit_percent``
        of the OSD's capacity, 0 if missing. Without ``recovery``, or without ``clients``, only the other.
    in_flight
        Requests in flight of each.
    """
    capacity = 1_000_000_000 // SHARED_SERVICE_NS
    wanted = [name for name in ("clients", "recovery") if name in of]
    classes = []
    templates = []
    for number, name in enumerate(wanted):
        tags = of[name]
        classes.append(
            ShareClass(
                weight=int(tags["weight"]),
                reservation=capacity * int(tags.get("reservation_percent", 0)) // 100,
                limit=capacity * int(tags.get("limit_percent", 0)) // 100,
            )
        )
        graph = GraphBuilder(name)
        step = graph.use(0, SHARED_SERVICE_NS, after=[graph.issue], label="serve")
        graph.in_class(step, number, cost=1)
        templates.append(graph.finish(reply=step))
    zeros = np.zeros(SHARED_REQUESTS, dtype=np.int64)
    return Program(
        resources=Resources(
            ("osd",),
            ("osd",),
            np.ones(1, dtype=np.int64),
            np.full(1, FIFO),
            shares=(Share(MCLOCK, tuple(classes)),),
            share_indices=np.zeros(1, dtype=np.int64),
        ),
        book=_RowBook(templates, 1),
        streams=[
            ListedRequests(zeros + number, zeros, queue_depth=in_flight)
            for number in range(len(wanted))
        ],
        seed=SEED,
    )


def reported(report: str, pool: str, sets: Mapping[str, Any]) -> Program:
    """Return a number of requests to a pool of a cluster, as imported from a report of ``data/``."""
    with TemporaryDirectory() as folder:
        imported(report, pools=(pool,)).save(folder)
        path = Path(folder) / "scenario.toml"
        # The imported scenario ends by time.
        lines = path.read_text("utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith("duration_s")]
        path.write_text("".join(kept), encoding="utf-8")
        return program_of_scenario(load_scenario(path, sets=sets, seed=SEED))


def rebuild(scenario: str, sets: Mapping[str, Any], of: Mapping[str, Any]) -> Program:
    """Return the rebuild of objects that an OSD held, alone or alongside the scenario's clients.

    Parameters
    ----------
    scenario, sets
        The cluster, and the load of clients.
    of
        ``osd``: the OSD that lost its data. ``objects``: how many of its objects are rebuilt. ``returns``:
        true if they come back to that OSD, otherwise CRUSH chooses others. ``in_flight``: objects in recovery
        at a time alongside clients. Without it, no client has requests; the workload's queue depth counts.

    Notes
    -----
    Failure detection, peering and the reservations of recovery are decided in Python while a run goes on.
    So they are missing here: the program begins when data moves, and a fixed number of objects is in flight.
    """
    loaded = load_scenario(scenario, sets=sets, seed=SEED)
    inputs = build_cell(loaded, cells(loaded)[0])
    pool = inputs.pool
    osd = int(of["osd"])
    up = pool.cluster.acting
    if not of.get("returns"):
        up = up_sets(loaded, pool.scheme, OsdWeights(out=(osd,)))
    alone_depth = loaded.workload.queue_depth
    queue_depth = int(of.get("in_flight", alone_depth))

    def operations(pool: Pool, book: Book) -> RequestSource:
        rows = _rebuilds(pool, book, osd, up, int(of["objects"]))
        templates, bindings = np.array(rows, dtype=np.int64).T
        return ListedRequests(templates, bindings, queue_depth=queue_depth)

    if "in_flight" in of:
        return planned_program(
            pool,
            inputs.workload,
            background=[operations],
            seed=SEED,
            prefilled=inputs.prefilled,
            newest_only=inputs.newest_only,
        )
    book = pool.book()
    return Program(
        resources=pool.cluster.resources,
        book=book,
        streams=[operations(pool, book)],
        groups=pool.cluster.groups,
        seed=SEED,
        factor_tables=factor_tables(pool),
    )


def _rebuilds(
    pool: Pool, book: Book, osd: int, up: npt.NDArray[Any], count: int
) -> list[tuple[int, int]]:
    """Return template and binding of the rebuild of each object, one placement group after the other."""
    groups = [
        _group_without(pool, number, osd, up[number])
        for number in np.flatnonzero((pool.cluster.acting == osd).any(axis=1)).tolist()
    ]
    layout = Layout(pool)
    planner = OperationBook(pool, book, layout, in_one_graph=True)
    up_osds = set(range(pool.cluster.osds))
    rebuilds: list[tuple[int, int]] = []
    for group in groups:
        for operation in planner.operations(group, 0, up_osds):
            templates, binding = planner.plan(group, operation, up_osds)
            rebuilds += [(template, binding) for template in templates]
    if not rebuilds:
        raise AnswerError(
            Problem(key="rebuild", got=f"no PG on osd.{osd}", wanted="an OSD with PGs")
        )
    return [rebuilds[number % len(rebuilds)] for number in range(count)]


def _group_without(pool: Pool, number: int, osd: int, up: npt.NDArray[Any]) -> Group:
    """Return a placement group of one object whose copy on an OSD is lost."""
    everyone = set(range(pool.cluster.osds))
    group = Group(number, pool.scheme, pool.cluster.acting[number].tolist(), [0])
    group.forget({osd})
    group.up = aligned_up_set(
        group.up, up.tolist(), everyone, is_replicated=group.is_replicated
    )
    group.add_empty_copies()
    group.members = group.choose_members(everyone)
    return group


class _RowBook:
    """Templates on one row of resources."""

    def __init__(self, templates: Sequence[Any], resources: int) -> None:
        self.templates = templates
        self.bindings = np.arange(resources, dtype=np.int32)[None, :]
