"""Whatever fails and comes back: no request is lost, bytes add up, and the cluster ends clean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from stripesim.models.coding import parse_scheme
from stripesim.models.generations import recovery_model
from stripesim.models.placement import (
    NONE,
    Movement,
    OsdWeights,
    build_map,
    pg_mappings,
    reweighted,
)
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.problems import ProblemsError
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.ceph.failures import (
    Corruption,
    Failure,
    FaultPlan,
    PlannedChange,
    SlowDrives,
)
from stripesim.sim.ceph.failures.cluster_map import MapChange
from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.failures.plan import FillPlan
from stripesim.sim.engine.graph import COUNTER_INDEX
from stripesim.sim.engine.program import FAILED, PENDING
from stripesim.sim.run import simulate
from support.examples import SLOW, SLOWEST

KIB = 1024
MS = 1_000_000
HOSTS, OSDS_PER_HOST = 5, 2
OSDS = HOSTS * OSDS_PER_HOST
ENGINES = ["compiled"]
# Stories are short enough to read, and shrinking them further would take minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)

# Clocks a hundred times as fast, so that a whole story takes seconds.
MODEL = {
    generation: recovery_model(generation).given(
        heartbeat_interval_ns=60 * MS,
        heartbeat_grace_ns=200 * MS,
        osd_tick_ns=10 * MS,
        report_timeout_ns=3000 * MS,
        down_out_interval_ns=400 * MS,
        monitor_tick_ns=50 * MS,
        propose_interval_ns=10 * MS,
        propose_min_wait_ns=1 * MS,
        boot_ns=3 * MS,
        async_recovery_min_count=2,
        min_in_fraction=0.3,
        scrub_interval_ns=500 * MS,
    )
    for generation in ("kraken", "pacific")
}

failures = st.builds(
    lambda osds, at, gone, kind, keeps: Failure(
        osds=tuple(sorted(osds)),
        time_ns=at * MS,
        back_ns=(at + gone) * MS,
        kind=kind,
        keeps_data=keeps,
    ),
    osds=st.sets(st.integers(0, OSDS - 1), min_size=1, max_size=3),
    at=st.integers(0, 1500),
    gone=st.integers(1, 2500),
    kind=st.sampled_from(["process", "power", "hang"]),
    keeps=st.just(True),
)
stories = st.fixed_dictionaries(
    {
        "scheme": st.sampled_from(
            ["rep:2", "rep:3", "rs:2,1", "rs:4,2", "lrc:4,3,2", "clay:4,2,5"]
        ),
        "scope": st.sampled_from(["commit", "dispatch"]),
        "generation": st.sampled_from(["kraken", "pacific"]),
        "failures": st.lists(failures, min_size=1, max_size=4),
        "corruptions": st.lists(
            st.builds(
                lambda osd, at: Corruption(osd=osd, time_ns=at * MS, shards_count=2),
                st.integers(0, OSDS - 1),
                st.integers(0, 1500),
            ),
            max_size=1,
        ),
        "read_fraction": st.sampled_from([0.0, 0.5, 1.0]),
        "block_bytes": st.sampled_from([4 * KIB, 48 * KIB]),
        "depth": st.sampled_from([0, 4]),
        "timeout_ns": st.sampled_from([0, 150 * MS]),
        "object_writes": st.sampled_from([None, 1]),
        "chunk_bytes": st.sampled_from([32 * KIB, 8192 * KIB]),
        "seed": st.integers(0, 3),
    }
)


def _wild(osds, host, at, gone, kind, keeps):
    """Return a failure of some OSDs, or of a whole host, that may be for good or cost the data."""
    if host is not None:
        osds = range(host * OSDS_PER_HOST, (host + 1) * OSDS_PER_HOST)
    return Failure(
        osds=tuple(sorted(osds)),
        hosts=() if host is None else (host,),
        time_ns=at * MS,
        back_ns=None if gone is None else (at + gone) * MS,
        kind=kind,
        keeps_data=keeps,
    )


# For the engines' sake also what loses data or never ends well.
wild_stories = st.builds(
    lambda story, wild: story | {"failures": wild},
    stories,
    st.lists(
        st.builds(
            _wild,
            osds=st.sets(st.integers(0, OSDS - 1), min_size=1, max_size=4),
            host=st.none() | st.integers(0, HOSTS - 1),
            at=st.integers(0, 1500),
            gone=st.none() | st.integers(1, 2500),
            kind=st.sampled_from(["process", "power", "hang"]),
            keeps=st.booleans(),
        ),
        min_size=1,
        max_size=5,
    ),
)


# Weights are of the map's OSDs, 1 each: a few OSDs leave, come back, or get a share.
planned_changes = st.lists(
    st.builds(
        lambda kind, osds, weight, at: PlannedChange(
            kind=kind,
            changes=tuple(
                MapChange(kind, osd, weight if kind == "weight" else 0)
                for osd in sorted(osds)
            ),
            time_ns=None if at is None else at * MS,
        ),
        kind=st.sampled_from(["out", "in", "weight"]),
        osds=st.sets(st.integers(0, OSDS - 1), min_size=1, max_size=3),
        weight=st.sampled_from([0, WEIGHT_ONE // 2, WEIGHT_ONE, 2 * WEIGHT_ONE]),
        at=st.none() | st.integers(0, 3000),
    ),
    min_size=1,
    max_size=4,
)


# Drives that are slow for some time, or until the end; a plan refuses those that overlap on one OSD.
slow_drives = st.lists(
    st.builds(
        lambda osds, at, lasts, slowdown: SlowDrives(
            osds=tuple(sorted(osds)),
            time_ns=at * MS,
            slowdown=slowdown,
            end_ns=None if lasts is None else (at + lasts) * MS,
        ),
        osds=st.sets(st.integers(0, OSDS - 1), min_size=1, max_size=3),
        at=st.integers(0, 1500),
        lasts=st.none() | st.integers(1, 2000),
        slowdown=st.sampled_from([1000, 1500, 10_000, 123_456]),
    ),
    max_size=2,
)


def _fill(acting, share):
    """Return OSDs that are full to a share on average, if each PG had five objects; None for no plan."""
    if share is None:
        return None
    used = 5.0 * np.bincount(acting[acting < OSDS], minlength=OSDS)
    return FillPlan(
        capacity_bytes=np.full(OSDS, used.mean() / share),
        used_bytes=used,
        shard_bytes=1,
        nearfull_ratio=0.85,
        backfillfull_ratio=0.9,
        full_ratio=0.95,
        clients_write=True,
    )


def played(story, models, change, make_pool, engine, until_ns=60_000 * MS):
    """Run a story and return pool, plan and result."""
    scheme = parse_scheme(story["scheme"])
    crush = build_map(hosts=HOSTS, osds_per_host=OSDS_PER_HOST)
    rule = ("rep" if scheme.kind == "replicated" else "ec") + "_osd"

    def up_sets(weights):
        changed = reweighted(crush, dict(weights.crush))
        reweights = dict.fromkeys(weights.out, 0.0)
        return np.asarray(
            pg_mappings(changed, rule, 1, 8, scheme.width, reweights), dtype=np.int64
        )

    pool = make_pool(
        change(models, pg_lock={"scope": story["scope"]}),
        story["scheme"],
        hosts=[osd // OSDS_PER_HOST for osd in range(OSDS)],
        acting=up_sets(OsdWeights()),
        object_bytes=96 * KIB,
    )
    workload = Synthetic(
        pattern="rand",
        block_bytes=story["block_bytes"],
        image_bytes=40 * 96 * KIB,
        read_fraction=story["read_fraction"],
        requests=60,
        queue_depth=story["depth"],
        rate_per_s=None if story["depth"] else 40.0,
        seed=story["seed"],
    ).start()
    plan = FaultPlan(
        failures=story["failures"],
        slow_drives=story.get("slow_drives", ()),
        corruptions=story["corruptions"],
        changes=story.get("changes", ()),
        fill=_fill(up_sets(OsdWeights()), story.get("fill")),
        up_sets=up_sets,
        image_objects=40,
        model=MODEL[story["generation"]].given(
            recovery_chunk_bytes=story.get("chunk_bytes", 8192 * KIB)
        ),
        object_writes_count=story.get("object_writes"),
        scrubs=story.get("scrubs", False),
        seed=story["seed"],
        series_ns=100 * MS,
    )
    try:
        plan.check(pool.cluster.osd_hosts)
    except ProblemsError:
        assume(False)
    result = simulate(
        pool,
        workload,
        faults=plan,
        timeout_ns=story["timeout_ns"],
        seed=story["seed"],
        engine=engine,
        # Scrubs never end.
        until_ns=4_000 * MS if plan.scrubs else until_ns,
    )
    return pool, plan, result


@pytest.mark.parametrize("engine", ENGINES)
@settings(
    max_examples=SLOW,
    suppress_health_check=list(HealthCheck),
    phases=PHASES,
)
@given(story=stories)
def test_no_request_is_lost_and_bytes_add_up_under_any_failure(
    models, change, make_pool, directors, engine, story
):
    directors.clear()
    _, _, result = played(story, models, change, make_pool, engine)
    row, run = result.row.as_dict(), result.engine_run
    completed = run.streams[0].completed_ns
    assert len(completed) >= 60
    assert ((completed >= 0) | (completed == FAILED) | (completed == PENDING)).all()
    assert (
        row["requests"] + row["requests_failed"] + row["requests_pending"]
        == row["requests_issued"]
    )
    if not story["timeout_ns"]:
        assert row["requests_failed"] == 0
    # All OSDs return with their data, so no object stays unavailable, and none is lost
    # unless too many of its shards are corrupt.
    director = directors[-1]
    if row["objects_lost"] == 0:
        assert row["requests_pending"] == 0
        assert director.state.timeline.all_clean, director.state.timeline.states
    for group in director.state.groups:
        if director.state.timeline.states[group.number] == State.CLEAN:
            assert group.members.acting == group.up
            assert all(
                not group.copy_of(osd, shard).missing
                for shard, osd in enumerate(group.up)
            )
    # Recovery wrote the rebuilt data and its logs.
    stream = run.streams[1]
    done = stream.completed_ns >= 0
    assert row["recovery_device_write_bytes"] >= row["recovery_bytes"]
    assert (
        (run.streams[1].taken[COUNTER_INDEX["device_write_bytes"]])
        >= row["recovery_bytes"]
    )
    assert (done.sum() == row["recovery_operations"]) or story["chunk_bytes"] < 96 * KIB


@pytest.mark.parametrize("engine", ENGINES)
@settings(
    max_examples=SLOW,
    suppress_health_check=list(HealthCheck),
    phases=PHASES,
)
@given(story=stories)
def test_degraded_templates_run_only_while_the_group_is_not_clean(
    models, change, make_pool, directors, engine, story
):
    directors.clear()
    pool, _, result = played(story, models, change, make_pool, engine)
    stream = result.engine_run.streams[0]
    director = directors[-1]
    templates = result.book.templates
    history: dict[int, list[tuple[int, str]]] = {}
    for time_ns, number, state in director.state.timeline.changes:
        history.setdefault(number, [(-1, State.CLEAN)]).append((time_ns, state))
    # The engine's groups of reads and writes of a PG differ by a multiple of the number of PGs.
    groups = stream.groups % pool.cluster.groups
    columns = (stream.templates, groups, stream.issued_ns, stream.completed_ns)
    for template, group, issued, completed in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        if completed >= 0 and " without " in templates[template].name:
            # It may have been on its way when the last shard was rebuilt.
            states = history.get(group, [(-1, State.CLEAN)])
            at_issue = [state for time_ns, state in states if time_ns <= issued][-1]
            later = {state for time_ns, state in states if issued < time_ns < completed}
            assert {at_issue} | later != {State.CLEAN}


@settings(
    max_examples=SLOWEST,
    suppress_health_check=list(HealthCheck),
    phases=PHASES,
)
@given(story=stories | wild_stories, slow_drives=slow_drives, scrubs=st.booleans())
def test_a_story_ends_the_same_on_both_engines(
    models, change, make_pool, story, slow_drives, scrubs
):
    story = story | {"slow_drives": slow_drives, "scrubs": scrubs}
    compiled, simpy = (
        played(story, models, change, make_pool, engine)[2]
        for engine in ("compiled", "simpy")
    )
    assert compiled.sha256 == simpy.sha256
    assert compiled.timeline == simpy.timeline
    for mine, other in zip(
        compiled.engine_run.streams, simpy.engine_run.streams, strict=True
    ):
        assert mine.completed_ns.tolist() == other.completed_ns.tolist()
        assert mine.taken.tolist() == other.taken.tolist()


@settings(
    max_examples=settings.default.max_examples // 2,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=PHASES,
)
@given(
    story=stories,
    changes=planned_changes,
    failures=st.just([]) | st.lists(failures, max_size=2),
    slow_drives=st.just([]) | slow_drives,
    fill=st.none() | st.floats(0.5, 0.9),
)
def test_planned_changes_end_the_same_on_both_engines(
    models, change, make_pool, directors, story, changes, failures, slow_drives, fill
):
    directors.clear()
    story = story | {"changes": changes, "failures": failures, "corruptions": []}
    story["slow_drives"] = slow_drives
    story["fill"] = fill
    compiled, simpy = (
        played(story, models, change, make_pool, engine)[2]
        for engine in ("compiled", "simpy")
    )
    assert compiled.sha256 == simpy.sha256
    assert compiled.timeline == simpy.timeline
    for mine, other in zip(
        compiled.engine_run.streams, simpy.engine_run.streams, strict=True
    ):
        assert mine.completed_ns.tolist() == other.completed_ns.tolist()
        assert mine.taken.tolist() == other.taken.tolist()
    assert compiled.row.faults.objects_lost == 0
    # A shard that moves is written once; a change within a change may move it again.
    director = directors[0]
    outcomes = director.changes.applied
    objects = np.array([len(group.objects) for group in director.state.groups])
    movements = [
        Movement.between(
            outcome.up_before,
            outcome.up_after,
            is_replicated=story["scheme"].startswith("rep"),
        )
        for outcome in outcomes
    ]
    moved = sum(objects[movement.groups].sum() for movement in movements)
    shard_bytes = compiled.row.faults.recovery.recovery_bytes
    one_by_one = all(planned.time_ns is None for planned in changes)
    is_whole = all(NONE not in up_set for o in outcomes for up_set in o.up_after)
    is_free = one_by_one and is_whole and fill is None
    if not failures and is_free and story["read_fraction"] == 1.0:
        assert shard_bytes == moved * director.operations.data.shard_bytes


def test_an_osd_that_comes_back_empty_is_filled_again(
    models, change, make_pool, directors
):
    story = {
        "scheme": "rs:4,2",
        "scope": "dispatch",
        "generation": "pacific",
        "failures": [
            Failure(
                osds=(4,),
                time_ns=200 * MS,
                back_ns=300 * MS,
                kind="process",
                keeps_data=False,
            )
        ],
        "corruptions": [],
        "read_fraction": 1.0,
        "block_bytes": 4 * KIB,
        "depth": 4,
        "timeout_ns": 0,
        "seed": 0,
    }
    _, _, result = played(story, models, change, make_pool, "simpy")
    director = directors[-1]
    held = sum(len(group.objects) for group in director.state.groups if 4 in group.up)
    assert held > 0
    assert result.row.faults.recovery.recovery_operations == held
    assert result.row.faults.clean_at_end


def test_a_run_that_ends_when_clean_reports_the_recovery_time(
    models, change, make_pool
):
    story = {
        "scheme": "rs:4,2",
        "scope": "dispatch",
        "generation": "pacific",
        "failures": [Failure(osds=(4,), time_ns=200 * MS, kind="process")],
        "corruptions": [],
        "read_fraction": 1.0,
        "block_bytes": 4 * KIB,
        "depth": 0,
        "timeout_ns": 0,
        "seed": 0,
    }
    whole = played(story, models, change, make_pool, "compiled")[2]
    (clean_s,) = [
        event["time_s"]
        for event in whole.timeline["events"]
        if event["what"] == "clean"
    ]
    cut = played(
        story, models, change, make_pool, "compiled", until_ns=round(clean_s * 1e9)
    )[2]
    assert "after" in whole.timeline["phases"] and "after" not in cut.timeline["phases"]
    assert cut.timeline["end_s"] == clean_s
    for key in ("recovery_s", "failure_to_clean_s", "checking_s"):
        assert getattr(cut.row.faults, key) == getattr(whole.row.faults, key) > 0


def test_more_failures_than_the_code_tolerates_are_reported_as_loss(
    models, change, make_pool, directors
):
    dead = Failure(osds=tuple(range(0, OSDS, 2)), time_ns=200 * MS, kind="process")
    story = {
        "scheme": "rs:4,2",
        "scope": "dispatch",
        "generation": "pacific",
        "failures": [dead],
        "corruptions": [],
        "read_fraction": 1.0,
        "block_bytes": 4 * KIB,
        "depth": 0,
        "timeout_ns": 0,
        "seed": 0,
    }
    _, _, result = played(story, models, change, make_pool, "simpy")
    director = directors[-1]
    undecodable = [
        group
        for group in director.state.groups
        if sum(
            osd in dead.osds
            for osd in np.asarray(director.state.pool.cluster.acting[group.number])
        )
        > 2
    ]
    assert undecodable
    assert result.row.faults.pgs_lost == len(
        [group for group in undecodable if group.objects]
    )
    assert result.row.faults.objects_lost == sum(
        len(group.objects) for group in undecodable
    )
    assert result.row.faults.requests_pending > 0
    assert not result.row.faults.clean_at_end
