"""A run holds the placement groups and resources that its requests need, not those of the whole cluster."""

import numpy as np
import pytest

from stripesim.sim.ceph.clients.workload import Replay, Requests
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.engine.compiled.engine import CompiledRun
from stripesim.sim.engine.compiled.world import grown
from stripesim.sim.engine.program import Program
from stripesim.sim.engine.simpy import engine as engine_simpy
from stripesim.sim.run import factor_tables

OBJECTS = np.array([0, 5, 0, 9, 5])


def program_of(pool):
    """Return a program of five writes to three objects."""
    count = len(OBJECTS)
    requests = Requests(
        np.ones(count, dtype=bool),
        np.zeros(count, dtype=np.int64),
        OBJECTS * pool.object_bytes,
        np.full(count, 4096),
    )
    book = pool.book()
    planner = RequestPlanner(
        pool, book, Replay(requests, queue_depth=2), prefilled=True
    )
    return Program(
        resources=pool.cluster.resources,
        book=book,
        streams=[planner],
        groups=pool.cluster.groups,
        factor_tables=factor_tables(pool),
    )


@pytest.mark.parametrize("rows", [3, 100_000, 300_001])
def test_large_tables_begin_at_a_huge_page(rows):
    before = np.arange(9, dtype=np.int32).reshape(3, 3)
    table = grown(before, rows)
    assert table.shape == (rows, 3) and table.dtype == np.int32
    assert (table[:3] == before).all() and not table[3:].any()
    if table.nbytes >= 2 << 20:
        assert table.ctypes.data % (2 << 20) == 0


def test_only_groups_of_requests_are_bound(make_pool, models):
    pool = make_pool(models, "rep:3")
    groups = pool.groups_of(np.zeros(3, dtype=np.int64), np.unique(OBJECTS))
    program = program_of(pool)
    chunk = program.streams[0].take(5)
    assert len(program.book.bindings) == len(np.unique(groups))
    rows = program.book.bindings[chunk.bindings]
    assert (rows == pool.group_bindings(chunk.groups)).all()


def test_the_compiled_engine_holds_only_resources_that_are_named(make_pool, models):
    pool = make_pool(models, "rep:3")
    compiled = CompiledRun(program_of(pool))
    result = compiled.execute()
    named = np.unique(compiled.program.book.bindings)
    # Bindings name both a key-value thread and the server of its syncs.
    assert len(compiled.state.world.resources) == (named >= 0).sum()
    assert len(compiled.state.world.resources) < len(pool.cluster.resources)
    # Results are by the index in the cluster, as in the engine that makes all resources.
    other = engine_simpy.run(program_of(pool))
    for name in ("busy_ns", "held_ns", "waited_ns", "sleeps", "warm_ns"):
        assert getattr(result, name).tolist() == getattr(other, name).tolist()


@pytest.mark.parametrize("slot", [0, 1])
def test_a_resource_without_a_partner_in_a_binding_brings_it_along(slot):
    from stripesim.sim.engine.compiled.tables import ResourceNumbers
    from stripesim.sim.engine.compiled.world import empty_world
    from stripesim.sim.engine.program import BATCH, FIFO, POOL, Resources

    # Resource 3 is a batch server that the threads of pool 1 run.
    resources = Resources(
        ("r0", "r1", "r2", "r3"),
        ("a", "b", "a", "c"),
        np.ones(4, dtype=np.int64),
        np.array([FIFO, POOL, FIFO, BATCH]),
        served_by=np.array([-1, -1, -1, 1]),
    )
    program = Program(resources=resources, book=None, streams=[])
    numbers = ResourceNumbers(program)
    world = numbers.learn(numbers.begin(empty_world(program, 1)), np.array([2]))
    assert numbers.of(np.array([2, -1])).tolist() == [0, -1]
    bound = np.array([[3, 1][slot], -2])
    world = numbers.learn(world, bound)
    # Pool 1 is the second and batch server 3 the third. Partners are numbers plus 1.
    assert world.resources["partner"].tolist() == [0, 3, 2]
    assert numbers.of(np.array([1, 3])).tolist() == [1, 2]
    values = numbers.by_index(np.array([7, 8, 9]))
    assert values.tolist() == [0, 8, 7, 9]


def test_rows_that_a_table_grows_by_hold_nothing(monkeypatch):
    # A page stores whole tables: memory of arbitrary contents made its bytes differ from build to build.
    filled = lambda shape, dtype=float: np.full(shape, 7, dtype)  # noqa: E731
    monkeypatch.setattr(np, "empty", filled)
    assert grown(np.ones(2, dtype=np.int64), 4).tolist() == [1, 1, 0, 0]
