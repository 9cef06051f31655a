"""Bytes are conserved and no request beats its own path, on random small clusters and both engines."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.engine.draws import FACTOR_ONE
from stripesim.sim.engine.graph import COUNTERS, USE
from stripesim.sim.engine.program import UNBOUND
from stripesim.sim.observe.recording import account
from stripesim.sim.run import factor_tables, simulate

KIB = 1024

schemes = st.sampled_from(["rep:1", "rep:2", "rep:3", "rs:2,1", "rs:4,2"])
shapes = st.fixed_dictionaries(
    {
        "scheme": schemes,
        "scope": st.sampled_from(["commit", "dispatch", "none"]),
        "groups": st.integers(1, 6),
        "osds_per_host": st.integers(1, 3),
        "pattern": st.sampled_from(["seq", "rand"]),
        "block_bytes": st.sampled_from([KIB, 4 * KIB, 12 * KIB, 160 * KIB]),
        "read_fraction": st.sampled_from([0.0, 0.5, 1.0]),
        "queue_depth": st.integers(1, 20),
        "prefilled": st.booleans(),
        "seed": st.integers(0, 5),
        "engine": st.sampled_from(["compiled", "simpy"]),
    }
)


def made(shape, models, change, make_pool):
    pool = make_pool(
        change(models, pg_lock={"scope": shape["scope"]}),
        shape["scheme"],
        groups=shape["groups"],
        hosts=[osd // shape["osds_per_host"] for osd in range(7)],
        object_bytes=256 * KIB,
    )
    workload = Synthetic(
        pattern=shape["pattern"],
        block_bytes=shape["block_bytes"],
        image_bytes=4096 * KIB,
        read_fraction=shape["read_fraction"],
        requests=30,
        queue_depth=shape["queue_depth"],
        seed=shape["seed"],
    )
    return pool, workload


@given(shape=shapes)
def test_steps_account_the_planned_bytes(sleepless, change, make_pool, shape):
    pool, workload = made(shape, sleepless, change, make_pool)
    result = simulate(
        pool,
        workload.start(),
        prefilled=shape["prefilled"],
        seed=shape["seed"],
        engine=shape["engine"],
        bin_ns=10_000_000,
    )
    book = pool.book()
    planner = RequestPlanner(pool, book, workload.start(), prefilled=shape["prefilled"])
    chunk = planner.take(4096)
    rounds = result.engine_run.spawned[0].templates.size
    if rounds or not all(template.planned for template in book.templates):
        # Only the run knows branches and spawned rounds, but it counts sums and bins separately.
        stream, spawned = result.engine_run.streams[0], result.engine_run.spawned[0]
        counted = account(stream, book, spawned=spawned)
        assert result.engine_run.bins.sum(axis=0).tolist() == [
            counted[name] for name in COUNTERS
        ]
        assert result.uses == counted["uses"]
        return
    totals = np.zeros(len(COUNTERS) + 1, dtype=np.int64)
    for template, binding in zip(
        chunk.templates.tolist(), chunk.bindings.tolist(), strict=True
    ):
        bound = np.append(book.bindings[binding] != UNBOUND, False)
        totals += book.templates[template].totals(bound)
    *planned, uses = totals.tolist()
    assert result.engine_run.bins.sum(axis=0).tolist() == planned
    assert result.uses == uses
    # Every byte of the client is accounted: it crosses the public network once, in one direction.
    sent = result.requested.lengths_bytes[result.requested.is_write].sum()
    assert planned[COUNTERS.index("public_net_bytes")] >= sent
    assert result.requested.lengths_bytes.sum() == 30 * shape["block_bytes"]
    # Each resource was busy for exactly the demands of its uses (no spread here; a shared sync is shorter).
    served = np.zeros(len(pool.cluster.resources), dtype=np.int64)
    for template, binding in zip(
        chunk.templates.tolist(), chunk.bindings.tolist(), strict=True
    ):
        path, row = book.templates[template], np.append(book.bindings[binding], UNBOUND)
        resource = row[path.roles]
        use = (path.words == USE) & (resource != UNBOUND)
        np.add.at(served, resource[use], path.demands_ns[use])
    sync = np.array([kind == "sync" for kind in pool.cluster.resources.kinds])
    assert result.engine_run.busy_ns[~sync].tolist() == served[~sync].tolist()
    assert (result.engine_run.busy_ns[sync] <= served[sync]).all()


@given(shape=shapes)
def test_no_request_ends_before_its_critical_path(sleepless, change, make_pool, shape):
    pool, workload = made(shape, sleepless, change, make_pool)
    result = simulate(
        pool,
        workload.start(),
        prefilled=shape["prefilled"],
        seed=shape["seed"],
        engine=shape["engine"],
    )
    book = pool.book()
    RequestPlanner(pool, book, workload.start(), prefilled=shape["prefilled"]).take(
        4096
    )
    stream = result.engine_run.streams[0]
    bounds = {}
    for template, binding in zip(
        stream.templates.tolist(), stream.bindings.tolist(), strict=True
    ):
        if (template, binding) not in bounds:
            bounds[template, binding] = longest_ns(
                book.templates[template], book.bindings[binding]
            )
    least = [
        bounds[pair]
        for pair in zip(
            stream.templates.tolist(), stream.bindings.tolist(), strict=True
        )
    ]
    taken = stream.completed_ns - stream.issued_ns
    assert (taken >= np.array(least)).all()
    # Alone and first, the first request of a chain without forks takes exactly that long.
    if shape["queue_depth"] == 1 and shape["scheme"] == "rep:1":
        assert taken[0] == least[0]


def longest_ns(path, row):
    """Return the longest path to the reply, without any queueing."""
    ends = np.zeros(path.steps, dtype=np.int64)
    if not path.planned:
        # A side of a branch may be the shorter one.
        return 0
    for step in range(path.steps):
        role = path.roles[step]
        if role < 0 or row[role] != UNBOUND:
            ends[step] += path.demands_ns[step]
        for after in path.successors[
            path.successor_starts[step] : path.successor_starts[step + 1]
        ]:
            ends[after] = max(ends[after], ends[step])
    return int(ends[path.reply])


def test_these_models_have_no_spread(sleepless, make_pool):
    # The properties above rely on this.
    assert (factor_tables(make_pool(sleepless, "rep:1")) == FACTOR_ONE).all()
