"""Op graphs: compiled steps, refused graphs, and sums over a template."""

import numpy as np
import pytest

from stripesim.sim.ceph import roles
from stripesim.sim.engine.graph import (
    ACQUIRE,
    COUNTER_INDEX,
    DELAY,
    NONE,
    RELEASE,
    SSD_READ,
    STEPS_MAX,
    USE,
)
from stripesim.sim.engine.graph_builder import (
    DEMAND_MAX_NS,
    DEMAND_SPREAD_MAX_NS,
    GraphBuilder,
)


def diamond():
    """Issue, then two uses side by side, then a join and the reply."""
    graph = GraphBuilder("diamond")
    left = graph.use(
        0, 10, after=[graph.issue], label="left", device_read_bytes=100, messages=1
    )
    right = graph.use(
        1, 20, after=[graph.issue], label="right", spread=SSD_READ, device_read_bytes=7
    )
    both = graph.join([left, right])
    reply = graph.use(2, 5, after=[both], label="reply", public_net_bytes=3)
    late = graph.use(1, 50, after=[both], label="afterwards", device_write_bytes=11)
    return graph.finish(reply=reply), (left, right, both, reply, late)


def test_steps_keep_their_words_roles_and_demands():
    template, (left, right, both, reply, _) = diamond()
    assert template.steps == 6
    assert template.words.tolist() == [NONE, USE, USE, NONE, USE, USE]
    assert template.roles.tolist() == [-1, 0, 1, -1, 2, 1]
    assert template.demands_ns[[left, right, both, reply]].tolist() == [10, 20, 0, 5]
    assert template.spreads[[left, right]].tolist() == [0, SSD_READ]
    assert template.reply == reply
    assert template.labels == ("issue", "left", "right", "join", "reply", "afterwards")


def test_predecessors_and_successors_agree():
    template, _ = diamond()
    assert template.predecessors.tolist() == [0, 1, 1, 2, 1, 1]
    starts = template.successor_starts
    following = [
        template.successors[starts[i] : starts[i + 1]].tolist()
        for i in range(template.steps)
    ]
    assert following == [[1, 2], [3], [3], [4, 5], [], []]


def test_totals_leave_out_steps_whose_role_is_bound_to_nothing():
    template, _ = diamond()
    everything = np.array([True, True, True, False])
    totals = template.totals(everything)
    assert totals[COUNTER_INDEX["device_read_bytes"]] == 107
    assert totals[COUNTER_INDEX["device_write_bytes"]] == 11
    assert totals[COUNTER_INDEX["public_net_bytes"]] == 3
    assert totals[COUNTER_INDEX["messages"]] == 1
    assert totals[-1] == 4
    without_right = np.array([True, False, True, False])
    totals = template.totals(without_right)
    assert totals[COUNTER_INDEX["device_read_bytes"]] == 100
    assert totals[COUNTER_INDEX["device_write_bytes"]] == 0
    assert totals[-1] == 2


def test_a_join_of_one_step_is_that_step_and_names_twice_count_once():
    graph = GraphBuilder("small")
    step = graph.use(0, 1, after=[graph.issue, graph.issue], label="use")
    assert graph.join([step, step]) == step
    template = graph.finish(reply=step)
    assert template.steps == 2
    assert template.predecessors[step] == 1


def test_demands_are_rounded_half_to_even_once():
    graph = GraphBuilder("rounding")
    steps = [
        graph.use(0, demand, after=[0], label="use") for demand in (0.5, 1.5, 2.5, 2.6)
    ]
    assert graph.finish(reply=steps[-1]).demands_ns[steps].tolist() == [0, 2, 2, 3]


@pytest.mark.parametrize("after", [[], [1], [-1], [0, 5]])
def test_refuses_predecessors_that_do_not_exist_yet(after):
    graph = GraphBuilder("a path")
    with pytest.raises(ValueError, match=r"^a path: use: got predecessors"):
        graph.use(0, 1, after=after, label="use")


def test_refuses_demands_that_would_not_fit():
    graph = GraphBuilder("a path")
    graph.use(0, DEMAND_MAX_NS - 1, after=[0], label="long")
    graph.use(0, DEMAND_SPREAD_MAX_NS - 1, after=[0], label="long", spread=SSD_READ)
    with pytest.raises(ValueError, match=f"got {DEMAND_MAX_NS} ns.* {DEMAND_MAX_NS} "):
        graph.use(0, DEMAND_MAX_NS, after=[0], label="too long")
    with pytest.raises(ValueError, match=f" {DEMAND_SPREAD_MAX_NS} "):
        graph.use(0, DEMAND_SPREAD_MAX_NS, after=[0], label="too long", spread=SSD_READ)
    with pytest.raises(ValueError, match="duration: got -1 ns"):
        graph.delay(0, -1, after=[0], label="back in time")


def test_refuses_unknown_counters():
    with pytest.raises(ValueError, match=r"\['beans'\]"):
        GraphBuilder("a path").use(0, 1, after=[0], label="use", beans=1)


def test_refuses_locks_that_do_not_balance():
    graph = GraphBuilder("a path")
    step = graph.acquire(roles.PG_LOCK, after=[0], label="lock")
    named = (
        rf"^a path: role {int(roles.PG_LOCK)}: got acquire × 1 and release × 0, wanted"
    )
    with pytest.raises(ValueError, match=named):
        graph.finish(reply=step)
    other = graph.release(roles.PRIMARY_WORKER, after=[step], label="another's lock")
    with pytest.raises(ValueError, match=r"^a path: "):
        graph.finish(reply=other)


@pytest.mark.parametrize("before_release", ["nothing", "the issue alone"])
def test_refuses_a_release_that_may_run_before_its_acquire(before_release):
    graph = GraphBuilder("returned first")
    if before_release == "nothing":
        returned = graph.release(0, after=[graph.issue], label="unlock")
        last = graph.acquire(0, after=[returned], label="lock")
    else:
        taken = graph.acquire(0, after=[graph.issue], label="lock")
        returned = graph.release(0, after=[graph.issue], label="unlock")
        last = graph.join([taken, returned])
    with pytest.raises(ValueError, match="unlock"):
        graph.finish(reply=last)


def test_acquire_release_and_delay_have_their_words():
    graph = GraphBuilder("a path")
    taken = graph.acquire(roles.PG_LOCK, after=[0], label="lock")
    waited = graph.delay(-1, 70, after=[taken], label="sleep")
    back = graph.release(roles.PG_LOCK, after=[waited], label="unlock")
    template = graph.finish(reply=back)
    assert template.words.tolist() == [NONE, ACQUIRE, DELAY, RELEASE]
    assert template.demands_ns.tolist() == [0, 0, 70, 0]


def test_refuses_more_steps_than_a_key_can_name():
    graph = GraphBuilder("long")
    step = 0
    for _ in range(STEPS_MAX - 1):
        step = graph.delay(-1, 1, after=[step], label="tick")
    assert graph.finish(reply=step).steps == STEPS_MAX
    graph.delay(-1, 1, after=[step], label="one more")
    with pytest.raises(ValueError, match=f"got {STEPS_MAX + 1} .*{STEPS_MAX}$"):
        graph.finish(reply=step)


@pytest.mark.parametrize("width", [1, 3, 14])
def test_every_role_has_a_unique_name(width):
    names = [roles.role_name(role) for role in range(roles.role_count(width))]
    assert len(set(names)) == len(names) == roles.role_count(width)
    assert names[roles.shard_role(width - 1, roles.SSD)] == f"shard[{width - 1}].ssd"
    assert names[roles.PG_LOCK] == "pg.lock"
    assert roles.role_name(-1) == ""
