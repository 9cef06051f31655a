"""Detection times are exact, and an idle cluster repairs as fast as its bottleneck lets it."""

from __future__ import annotations

import math
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.models.recovery import SECOND_NS
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures import Failure, FaultPlan
from stripesim.sim.ceph.failures.cluster_state import initial_state
from stripesim.sim.ceph.failures.detection import Detection, Heartbeats
from stripesim.sim.ceph.failures.monitor import Monitor
from stripesim.sim.ceph.failures.results import series
from stripesim.sim.ceph.heartbeats import heartbeat_peers
from stripesim.sim.run import simulate

MIB = 1 << 20


@pytest.mark.parametrize(
    ("generation", "earliest_s", "latest_s"), [("kraken", 14, 21), ("pacific", 20, 27)]
)
def test_silence_is_noticed_a_grace_after_the_last_answer_or_the_first_ping_without_one(
    generation: str, earliest_s: int, latest_s: int
) -> None:
    model = recovery_model(generation)
    beats = Heartbeats(
        model, np.array([[watcher, 0] for watcher in range(1, 40)]), 40, seed=3
    )
    fails_ns = 100 * SECOND_NS
    for watcher in beats.watchers(0):
        phase_ns = beats.phases_ns[watcher]
        pings_ns = phase_ns + np.arange(60) * 6 * SECOND_NS
        counted_ns = (
            pings_ns[pings_ns < fails_ns].max()
            if generation == "kraken"
            else pings_ns[pings_ns >= fails_ns].min()
        )
        ticks_ns = phase_ns + np.arange(400) * SECOND_NS
        expected_ns = ticks_ns[ticks_ns >= counted_ns + 20 * SECOND_NS].min()
        assert beats.noticed_ns(watcher, fails_ns, "power") == expected_ns
        assert earliest_s * SECOND_NS <= expected_ns - fails_ns <= latest_s * SECOND_NS
        assert beats.noticed_ns(watcher, fails_ns, "process") == fails_ns


def ring(make_pool, models, groups, spare=None):
    """Make a rep:2 pool where OSD 0 holds every group with a partner and `spare` replaces it."""
    acting = [[0, 1 + group % 3] for group in range(groups)]
    pool = make_pool(
        models, "rep:2", hosts=[0, 1, 2, 3, 4, 5], acting=acting, object_bytes=4 * MIB
    )

    def up_sets(weights):
        rows = np.array(acting, dtype=np.int64)
        if 0 in weights.out:
            rows[:, 0] = 4 if spare is None else spare
        return rows

    return pool, up_sets


def story(
    make_pool,
    models,
    *,
    kind="process",
    model=None,
    groups=12,
    objects=60,
    back_ns=None,
    **plan_keys,
):
    pool, up_sets = ring(make_pool, models, groups)
    plan = FaultPlan(
        failures=[
            Failure(osds=(0,), time_ns=10 * SECOND_NS, kind=kind, back_ns=back_ns)
        ],
        up_sets=up_sets,
        image_objects=objects,
        # Without the manager's digests nothing but maps makes a map wait.
        model=model or recovery_model("pacific").given(digest_period_ns=0),
        **plan_keys,
    )
    return plan, simulate(pool, one_read(objects), faults=plan)


def one_read(objects):
    """Start a client that reads once from an image of so many objects, and leaves recovery alone."""
    return Synthetic(
        pattern="seq",
        block_bytes=4096,
        image_bytes=objects * 4 * MIB,
        read_fraction=1.0,
        requests=1,
        queue_depth=1,
    ).start()


def moments(result):
    return {
        event["what"]: event["time_s"] for event in reversed(result.timeline["events"])
    }


def test_a_killed_daemon_is_down_after_one_map_and_out_at_the_first_tick_after_the_interval(
    make_pool, models
):
    _, result = story(make_pool, models)
    when = moments(result)
    assert when["down"] == pytest.approx(10 + 0.05)
    # 610.05 s is not a multiple of the monitors' tick of 5 s. The next map follows 0.05 s later.
    assert when["out"] == pytest.approx(615.05)
    # Stand-ins, and the primary's life in this interval, take a map each, a second apart.
    assert when["recovering"] == pytest.approx(617.05, abs=0.01)
    assert result.row.faults.detection_s == pytest.approx(0.05)
    assert result.row.faults.checking_s == pytest.approx(607.05, abs=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_a_map_waits_an_interval_after_the_last_digest(make_pool, models, seed):
    model = recovery_model("pacific")
    pool, up_sets = ring(make_pool, models, 12)
    plan = FaultPlan(up_sets=up_sets, image_objects=0, model=model, seed=seed)
    state = initial_state(pool, plan)
    monitor = Monitor(state)
    maps = []
    monitor.subscribers.append(lambda _: maps.append(state.now_ns))
    now_ns = 10 * SECOND_NS
    state.clock.now_ns = now_ns
    monitor.propose("out", 0)
    due_ns = state.clock.next_ns()
    assert due_ns is not None
    # A report of an OSD is seen at a digest, at most one report and one digest later.
    digest_ns = monitor.status.seen_ns(0) % (2 * SECOND_NS)
    last_ns = now_ns - (now_ns - digest_ns) % (2 * SECOND_NS)
    for osd in range(6):
        assert now_ns <= monitor.status.seen_ns(osd) < now_ns + 7 * SECOND_NS
    state.clock.now_ns = due_ns
    state.clock.run_due()
    assert maps == [max(now_ns + model.propose_min_wait_ns, last_ns + SECOND_NS)]


@pytest.mark.parametrize(("kind", "waits"), [("process", False), ("power", True)])
def test_clients_wait_for_read_leases_only_if_the_lost_osd_may_still_run(
    make_pool, models, kind, waits
):
    model = recovery_model("pacific").given(down_out_interval_ns=0, digest_period_ns=0)
    _, result = story(make_pool, models, kind=kind, model=model)
    states = result.timeline["pg_states"]
    assert bool(max(states["active+wait"])) == waits
    when = moments(result)
    # A lease lasts 16 s and is renewed in half of that: the wait is 8 s to 16 s after the interval's end,
    # and the last interval before the final one ends with the last but one map.
    if waits:
        assert 8 <= when["clean"] - when["out"] <= 16 + 4
    else:
        assert when["clean"] - when["out"] < 8


def test_a_clean_group_forgets_who_held_a_lease_before(make_pool, models):
    # Given OSD 0, which loses power and may still run, and long after the cluster is clean OSD 1, which is
    # known to have died
    pool, _ = ring(make_pool, models, 12)
    acting = pool.cluster.acting.astype(np.int64)

    def up_sets(weights):
        rows = acting.copy()
        for osd, spare in ((0, 4), (1, 5)):
            if osd in weights.out:
                rows[rows == osd] = spare
        return rows

    plan = FaultPlan(
        failures=[
            Failure(osds=(0,), time_ns=10 * SECOND_NS, kind="power"),
            Failure(osds=(1,), time_ns=300 * SECOND_NS, kind="process"),
        ],
        up_sets=up_sets,
        image_objects=60,
        model=recovery_model("pacific").given(
            down_out_interval_ns=60 * SECOND_NS, digest_period_ns=0
        ),
    )
    result = simulate(pool, one_read(60), faults=plan)
    states = result.timeline["pg_states"]
    waits = np.array(states["active+wait"])
    times_s = np.array(states["time_s"])
    # Then groups wait for the lease of the first, and none for one of the second.
    assert waits[times_s < 300].max() > 0
    assert times_s.max() > 300
    assert waits[times_s >= 300].max() == 0


def test_a_primary_whose_operations_are_cut_off_recovers_others_instead(
    make_pool, models, change
):
    # Given primaries that recover one object at a time to OSD 4, over a network that takes half a second, and
    # its death while they do
    slow = change(models, private_nic={"latency_ns": 0.5e9})
    pool, _ = ring(make_pool, slow, 12)
    acting = pool.cluster.acting.astype(np.int64)

    def up_sets(weights):
        spare = 5 if 4 in weights.out else 4
        return np.where((acting == 0) & (0 in weights.out), spare, acting)

    plan = FaultPlan(
        failures=[
            Failure(osds=(osd,), time_ns=time_s * SECOND_NS, kind="process")
            for osd, time_s in ((0, 10), (4, 40))
        ],
        up_sets=up_sets,
        image_objects=60,
        model=recovery_model("pacific").given(
            down_out_interval_ns=0, digest_period_ns=0, recovery_max_active_count=1
        ),
    )
    faults = simulate(pool, one_read(60), faults=plan).row.faults
    assert faults.recovery.recovery_operations_cut > 0
    assert faults.clean_at_end


def test_two_reporters_from_two_hosts_are_waited_for(make_pool, models):
    plan, result = story(make_pool, models, kind="power")
    pool, _ = ring(make_pool, models, 12)
    beats = Heartbeats(
        plan.model, heartbeat_peers(pool.cluster), pool.cluster.osds, plan.seed
    )
    noticed = sorted(
        beats.noticed_ns(watcher, 10 * SECOND_NS, "power")
        for watcher in beats.watchers(0)
    )
    # Each OSD is a host here: the second report counts.
    assert moments(result)["detected"] == pytest.approx(noticed[1] / 1e9)
    assert moments(result)["down"] == pytest.approx(noticed[1] / 1e9 + 0.05)


def detected_s(make_pool, models, hosts, **settings):
    """Return when OSD 0, silent from 10 s on, is reported; its detection and the OSDs that ping it."""
    acting = [[0, partner] for partner in range(1, len(hosts))]
    pool = make_pool(models, "rep:2", hosts=hosts, acting=acting)
    model = recovery_model("pacific").given(digest_period_ns=0, **settings)
    plan = FaultPlan(
        up_sets=lambda weights: np.array(acting), image_objects=0, model=model
    )
    state = initial_state(pool, plan)
    detection = Detection(state, Monitor(state))
    state.clock.now_ns = 10 * SECOND_NS
    detection.silent[0] = Failure(osds=(0,), time_ns=10 * SECOND_NS, kind="power")
    detection.watch(0)
    while (next_ns := state.clock.next_ns()) is not None:
        state.clock.now_ns = next_ns
        state.clock.run_due()
    detected_ns = state.timeline.first_ns("detected")
    assert detected_ns is not None
    beats = Heartbeats(model, heartbeat_peers(pool.cluster), len(hosts), plan.seed)
    noticed_s = {
        watcher: beats.noticed_ns(watcher, 10 * SECOND_NS, "power") / SECOND_NS
        for watcher in beats.watchers(0)
    }
    return detected_ns / SECOND_NS, noticed_s


def test_two_reporters_on_one_host_count_once(make_pool, models):
    # Given OSDs 1 to 4 on one host and OSD 5 on another, all of which ping OSD 0
    at_s, noticed_s = detected_s(make_pool, models, hosts=[0, 1, 1, 1, 1, 2])
    assert set(noticed_s) == {1, 2, 3, 4, 5}
    first_s = min(noticed_s[osd] for osd in (1, 2, 3, 4))
    assert at_s == max(first_s, noticed_s[5])
    # Some two of the first host are earlier.
    assert sorted(noticed_s.values())[1] < at_s


def test_the_monitors_notice_an_osd_by_themselves_if_too_few_hosts_can_report_it(
    make_pool, models
):
    # Given peers of OSD 0 on one host only, and monitors that wait 100 s for its reports
    at_s, noticed_s = detected_s(
        make_pool, models, hosts=[0, 1, 1], report_timeout_ns=100 * SECOND_NS
    )
    assert at_s == 10 + 100
    assert max(noticed_s.values()) < at_s


def test_members_are_asked_in_rounds_that_each_take_a_round_trip(
    make_pool, models, change
):
    # Given messages that take half a second each way, so that nothing else matters
    slow = change(models, private_nic={"latency_ns": 0.5e9})
    peering_pg_s = []
    for rounds in (1, 2, 4):
        model = recovery_model("pacific").given(
            digest_period_ns=0, peering_rounds_count=rounds
        )
        _, result = story(make_pool, slow, model=model)
        peering_pg_s.append(result.row.faults.peering_pg_s)
    one, two, four = peering_pg_s
    # Each of the 12 groups loses OSD 0, gets OSD 4 in its place, and serves by it once it has the data.
    intervals = (two - one) / 1.0
    assert intervals >= 12 * 2
    assert four - one == pytest.approx(3 * intervals * 1.0, rel=0.01)


def test_osds_ping_those_of_their_groups_and_their_neighbours(make_pool, models):
    pool = make_pool(
        models, "rep:2", hosts=[0, 1, 2, 3, 4], acting=[[0, 2], [2, 0], [3, 0]]
    )
    # A ring of neighbours, and pairs of groups; each pair in both directions.
    pairs = {(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (3, 0)}
    expected = sorted(pairs | {(second, first) for first, second in pairs})
    assert heartbeat_peers(pool.cluster).tolist() == [list(pair) for pair in expected]


def test_the_peers_of_many_osds_take_memory_for_the_pairs_alone():
    """A table of 100,000 × 100,000 would take 10 GB. 200,002 pairs take 3 MB."""
    cluster = SimpleNamespace(osds=100_000, width=2, acting=np.array([[0, 50_000]]))
    tracemalloc.start()
    pairs = heartbeat_peers(cluster)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(pairs) == 2 * 100_000 + 2
    assert peak_bytes < 100e6


def test_a_series_of_too_many_bins_is_coarser_and_holds_the_same(
    make_pool, models, monkeypatch
):
    _, fine = story(make_pool, models)
    monkeypatch.setattr(series, "SERIES_BINS_MAX", 7)
    _, coarse = story(make_pool, models)
    width_s = math.ceil(math.ceil(fine.timeline["end_s"]) / 7)
    times_s = coarse.timeline["recovery"]["time_s"]
    assert times_s == [number * width_s for number in range(len(times_s))]
    assert len(times_s) <= 7
    rebuilt_bytes = [
        sum(x.timeline["recovery"]["rebuilt_bytes_per_s"]) for x in (fine, coarse)
    ]
    assert rebuilt_bytes[0] == pytest.approx(rebuilt_bytes[1] * width_s)


def test_an_idle_cluster_repairs_at_the_pace_of_the_sleep(make_pool, models):
    model = recovery_model("pacific").given(
        recovery_sleep_ns=SECOND_NS // 2, down_out_interval_ns=0
    )
    _, result = story(make_pool, models, model=model, objects=60)
    starts = result.engine_run.streams[1].issued_ns
    assert len(starts) == 60
    # Three primaries, each at most one object in half a second, one group after another on the one target.
    # The engine's groups of recovery are 12 more than those of clients, so both have the same partner.
    partners = result.engine_run.streams[1].groups % 3
    assert np.unique(partners).tolist() == [0, 1, 2]
    for partner in range(3):
        pauses_ns = np.diff(np.sort(starts[partners == partner]))
        assert pauses_ns.min() >= SECOND_NS // 2
    seconds = (starts.max() - starts.min()) / 1e9
    assert seconds >= 0.5 * (60 / 3 - 1)
    assert seconds <= 0.5 * 60 + 12 * 2.1
    assert result.row.faults.recovery.recovery_limited_by == "sleep"
    # A group waits out the pause after each of its objects but the last, less the time of the object itself.
    pauses = 60 - len(np.unique(result.engine_run.streams[1].groups))
    waits = result.timeline["recovery_waits"]
    expected_s = pauses * (0.5 - waits["object_s"])
    assert waits["groups_mean"][
        "sleep"
    ] * result.row.faults.recovery_s == pytest.approx(expected_s, rel=0.02)


def test_an_idle_cluster_repairs_at_the_rate_of_the_targets_network(
    make_pool, models, change
):
    slow = change(models, private_nic={"rate_bits_per_s": 1e8})
    model = recovery_model("pacific").given(
        down_out_interval_ns=0, max_backfills_count=12
    )
    _, result = story(make_pool, slow, model=model, objects=60)
    # One target receives all; 10^8 bit/s carry 12.5 MB/s less the frames' share.
    bytes_sent = result.row.faults.recovery.recovery_private_net_bytes
    least_s = bytes_sent * 8 / 1e8
    stream = result.engine_run.streams[1]
    took_s = (stream.completed_ns.max() - stream.issued_ns.min()) / 1e9
    # A group moves one object at a time, first out of its primary's interface and then into the target's: as
    # long as two primaries have work the target is busy; the last groups are alone at half its rate.
    groups = np.bincount(stream.groups)
    alone_s = groups.max() * bytes_sent / groups.sum() * 8 / 1e8
    assert least_s <= took_s <= 1.05 * least_s + alone_s
    assert result.row.faults.recovery.recovery_limited_by == "contention"


def test_an_osd_back_before_out_recovers_only_missed_writes(make_pool, models):
    _, result = story(make_pool, models, back_ns=60 * SECOND_NS)
    # Nothing was written meanwhile: nothing moves, and a map or two later all is clean.
    assert result.row.faults.recovery.recovery_operations == 0
    assert result.row.faults.clean_at_end
    assert "out" not in moments(result)
    assert result.row.faults.failure_to_clean_s == pytest.approx(
        50 + 0.321 + 0.05 + 1.0, abs=0.01
    )


def test_min_size_is_the_default_of_a_new_ceph_pool():
    assert parse_scheme("rep:3").min_size == 2
    assert parse_scheme("rep:2").min_size == 1
    assert parse_scheme("rs:4,2").min_size == 5
    assert parse_scheme("rs:2,1").min_size == 2


def test_a_group_with_an_initial_hole_does_not_prevent_a_clean_cluster(
    make_pool, models
):
    acting = np.array([[0, 1], [1, 2], [2, NO_OSD]], dtype=np.int64)
    pool = make_pool(
        models, "rep:2", hosts=[0, 1, 2, 3], acting=acting, object_bytes=MIB
    )
    plan = FaultPlan(
        failures=[Failure(osds=(0,), time_ns=SECOND_NS)],
        up_sets=lambda weights: (
            np.where(acting == 0, 3, acting) if weights.out else acting
        ),
        image_objects=30,
        model=recovery_model("kraken"),
    )
    workload = Synthetic(
        pattern="rand",
        block_bytes=4096,
        image_bytes=30 * MIB,
        read_fraction=0.5,
        requests=9,
        queue_depth=1,
    )
    result = simulate(pool, workload.start(), faults=plan)
    assert result.row.faults.clean_at_end
    assert result.row.requests == 9
    assert result.row.faults.failure_to_clean_s > 600


def syncs(result, stream):
    """Count the transactions that the operations of a stream committed."""
    found = 0
    for template in result.engine_run.streams[stream].templates.tolist():
        found += result.book.templates[template].labels.count("kv sync")
    return found


def test_members_note_intervals_activations_and_deletions(make_pool, models):
    # A lost OSD, one member left: an interval, and two transactions when it is active. Out: an interval of
    # two members, one of them new; another with the old one as stand-in; the last one, and then clean.
    expected = (1 + 2) + 2 * 1 + 2 * (1 + 2) + 2 * (1 + 2 + 1)
    _, result = story(make_pool, models)
    assert syncs(result, 2) == 12 * expected
    assert syncs(result, 1) == 60
    # A member that gets a log also gets its deletions, two transactions each, before the objects. It lacks
    # few enough objects to be a member immediately: one interval instead of three.
    _, result = story(make_pool, models, object_writes_count=1, log_deletions_count=5)
    assert syncs(result, 2) == 12 * ((1 + 2) + 2 * (1 + 2 + 1))
    assert syncs(result, 1) == 60 + 12 * 5 * 2
    assert result.row.faults.recovery.recovery_bytes == 60 * 4 * MIB
