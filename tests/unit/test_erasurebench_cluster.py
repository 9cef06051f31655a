"""A key-value cluster whose nodes come and go: slots have owners, keys are lost and mended, nothing else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.coding import LRC
from stripesim.models.problems import ProblemsError
from stripesim.scenarios.studies.erasurebench2016 import parameters
from stripesim.scenarios.studies.erasurebench2016.codes import (
    explanations,
    local_first_sources,
)
from stripesim.scenarios.studies.erasurebench2016.replay import sources_of
from stripesim.sim.systems.kv_proxy.cluster import AdminCosts, StoreCluster
from stripesim.sim.systems.kv_proxy.plan import SLOTS, Writes, keys_of
from stripesim.sim.systems.kv_proxy.proxy import (
    ADMIN,
    EXISTS,
    GET,
    MIGRATE,
    SET,
    run_operations,
)

ADMIN_COSTS = AdminCosts(command_ns=1000, line_bytes=10, loads_count=1)
FILES = 20


def cluster_of(width=14, nodes=12, room=20, seed=1):
    each = np.arange(FILES, dtype=np.int64)
    writes = Writes(each, np.full_like(each, 50), np.full_like(each, 5), 0 * each)
    system = parameters.system(room)
    keys = keys_of(writes, system.aggregation, width=width)
    return StoreCluster(system, keys, nodes=nodes, admin=ADMIN_COSTS, seed=seed)


@given(
    schedule=st.lists(st.sampled_from(["leave", "join", "repair"]), max_size=10),
    seed=st.integers(0, 99),
)
def test_any_schedule_keeps_slots_owned_and_loses_no_operation(schedule, seed):
    cluster = cluster_of(seed=seed)
    for words in schedule:
        if words == "repair":
            before = cluster.lost.copy()
            operations = cluster.repair(
                sources_of("RS"), work_ns_per_byte=1.0, data_blocks=10
            )
            readable = before.sum(axis=1) <= 4
            # Repairable data is repaired, and other data stays lost.
            assert not cluster.lost[readable].any()
            assert (cluster.lost[~readable] == before[~readable]).all()
            assert (operations.kinds == GET).sum() == 10 * (
                before.any(axis=1) & readable
            ).sum()
            assert (operations.kinds == EXISTS).sum() == before.size
            assert (operations.kinds == SET).sum() == FILES * before.shape[1]
        else:
            if (words == "leave" and len(cluster.alive) < 3) or (
                words == "join" and cluster._next > 19
            ):
                continue
            operations = getattr(cluster, words)()
        assert set(np.unique(cluster.owners)) <= set(cluster.alive)
        assert len(cluster.owners) == SLOTS and 0 in cluster.alive
        run = run_operations(cluster.system, operations)
        assert (
            len(run.completed_ns) == len(operations)
            and (np.diff(run.completed_ns) >= 0).all()
        )


def test_a_leaving_node_takes_its_keys_and_only_those():
    cluster = cluster_of()
    before = cluster.nodes_of_keys.copy()
    cluster.leave()
    (gone,) = set(range(12)) - set(cluster.alive)
    assert ((before == gone) == cluster.lost).all()


def test_a_joining_node_gets_its_share_and_the_values_move():
    cluster = cluster_of()
    operations = cluster.join()
    assert (cluster.owners == 12).sum() == round(SLOTS / 13)
    moved = operations.kinds == MIGRATE
    arrived = (cluster.nodes_of_keys == 12).sum()
    values = (
        operations.sent_bytes[moved].sum() - moved.sum() * cluster.system.command_bytes
    )
    assert values == arrived * cluster.system.aggregation.value_bytes(5)
    assert (operations.kinds == ADMIN).sum() == len(cluster.alive)


def test_same_seed_same_cluster():
    a, b = cluster_of(seed=5), cluster_of(seed=5)
    for cluster in (a, b):
        cluster.leave()
        cluster.join()
    assert (a.owners == b.owners).all() and a.alive == b.alive


def test_lrc_mends_one_lost_key_from_five():
    for lost in range(16):
        assert len(sources_of("LRC")(frozenset({lost}))) == 5
        assert len(sources_of("RS")(frozenset({lost % 14}))) == 10
    assert sources_of("LRC")(frozenset(range(7))) == ()


def test_groups_of_two_read_two_and_stop_as_the_table_states():
    sizes = [len(local_first_sources(5, 1, frozenset({lost}))) for lost in range(16)]
    assert sorted(sizes) == [2] * 15 + [5]
    survives = explanations()["groups of two, else 10 of 11"].survives
    for lost in (
        frozenset({5, 6}),
        frozenset({5, 6, 7}),
        frozenset({0, 15}),
        frozenset({0, 5, 7}),
    ):
        found = local_first_sources(5, 1, lost)
        assert bool(found) == survives[sum(1 << position for position in lost)]
        assert not set(found) & lost


def test_groups_with_two_local_parities_are_those_of_the_code():
    # Ours numbers data first; the group sizes must agree.
    ours = sorted(len(group) for group in LRC(k=10, m=6, locality=5).groups)
    assert ours == [6, 6, 6]
    assert {
        len(local_first_sources(2, 4, frozenset({lost}))) for lost in range(16)
    } == {5}


def test_clusters_that_cannot_be_are_refused():
    with pytest.raises(ProblemsError, match=r"nodes: got 30.*2.*20\b"):
        cluster_of(nodes=30)
    full = cluster_of(nodes=20)
    with pytest.raises(ProblemsError, match=r"got node 20.*20\b"):
        full.join()
    small = cluster_of(nodes=2)
    small.leave()
    with pytest.raises(ProblemsError, match="wanted"):
        small.leave()
