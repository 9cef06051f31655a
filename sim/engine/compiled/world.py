"""The state of the compiled engine: flat arrays of records. This module does not use numba.

A *cell* is a step of a request in flight: ``slot << cell_bits | step``. Each cell is in at
most one place (calendar, ready list or a queue). So a calendar and a ready list with room for
all cells never overflow, and queues are links between cells.
"""

from math import prod
from typing import Any, NamedTuple

import numpy as np

from stripesim.sim.engine.draws import factor_cells, seed_state
from stripesim.sim.engine.graph import COUNTERS
from stripesim.sim.engine.program import (
    BATCH,
    GATE,
    PENDING,
    SLOWDOWN_UNIT,
    DirectedSource,
    Program,
    Resources,
)
from stripesim.sim.engine.shares import TAG_BEFORE, quota_offset_ns

# Reasons for the kernel to return to Python.
DONE, MORE_REQUESTS, MORE_SLOTS, MORE_LOG, MORE_BINS, MORE_PINS = range(6)
MORE_PARKED, MORE_REPORTS, DIRECT = range(6, 9)
GO_ON = -1

NEVER_NS = (1 << 63) - 1
# x86-64 and ARM with pages of 4 KiB.
_HUGE_PAGE_BYTES = 2 << 20
# In place of a cell, a resource or another index.
NOTHING = -1
# Completions that the client has not noticed form a chain. This marks the first of them.
LAST_UNNOTICED = -2

# A step waits for its single predecessor, for all of them, or for those that run.
ONE, ALL, MERGE = range(3)
# Outstanding predecessors of a skipped step. It stays negative however many predecessors
# complete.
SKIPPED = -(1 << 13)
# Added to a merge's outstanding predecessors once one of them has run.
LIVE = 1 << 13
# Outstanding predecessors of a step whose completion is tested, once it has completed. Fewer predecessors
# than this can follow, so it stays above `SKIPPED`.
COMPLETED = -(1 << 12)

# State of a ticket, held in place of the outstanding predecessors of its `enter`. A waiting
# ticket subtracts the number of its turn step.
TICKET_PASSED = -1
TICKET_LEFT = -2
TICKET_IN = -3
TICKET_WAITS = -4
# The same for an acquire that has its unit and for a release that has returned one.
UNIT_MOVED = -1
# An acquire that found its unit idle, so that its thread had to be woken.
UNIT_WOKEN = -2
# The same after a core has spent the wake-up time.
UNIT_AWAKE = -3
# Reasons for a pool to give out no unit: the director, or a batch that its threads run.
STOPPED = 1
FLUSHING = 2
# Reasons for services to take longer: two threads share a core, or the director.
PAIRED = 1
SLOWED = 2
# Added to the spread of a use that takes less the more steps wait, or longer if its thread had to be woken.
SORTED = 1 << 8
ON_THREAD = 1 << 9

# Flags of a step that uses more than the plain words.
TAKEN = 1
ONCE = 2
BRANCHES = 4
SPAWNS = 8
NAMES_KEYS = 16
FOLLOWED = 32
TESTED = 64

# Index of the calendar's root. With 3, the four children of a node share a cache line.
ROOT = 3
_CACHE_LINE_BYTES = 64

Array = np.ndarray[Any, Any]


def _record(*fields: str) -> np.dtype[Any]:
    """Create a record type from texts of a type and the names of its fields."""
    return np.dtype(
        [(name, kind) for kind, *names in map(str.split, fields) for name in names]
    )


# `thread` is the acquire of the thread that performs a use. A record fills half a cache line.
STEP = _record(
    "i8 demand_ns",
    "i4 successors_from successors_to role",
    "i2 word spread thread accounts special",
    "i1 is_reply waits_for",
)
# `share_class` and `cost` apply to queues shared by classes. `position_ns`: part of the demand that is
# shorter the more steps wait. `pins` counts the successors that pin each key range.
SPECIAL = _record(
    "i2 test keys ticket yes_count",
    "i4 spawns",
    "i4 share_class",
    "i8 cost position_ns",
    "2i2 pins",
)
# Key ranges of a request in flight, and the number of times it has pinned each.
KEYS = _record("2i8 first stop held")
PIN = _record("i8 key count")
# `spent_ns`: service time begun at a server, or time for which units of a pool or tickets of a
# gate were out. `slice_ns`: time for which a thread keeps a core while others wait. `partner`:
# 1 + the pool whose threads run a batch server, or 1 + that server, 0 for none. `share`: 1 +
# the index of its queue in `World.shares`, 0 for a plain queue, −1 for a batch server.
# `stopped`: a sum of `STOPPED` and `FLUSHING`. `stretched`: a sum of `PAIRED` and `SLOWED`. A
# record fills one cache line.
RESOURCE = _record(
    "i8 spent_ns waited_ns sleeps",
    "i4 free first last waiting capacity wake_ns slice_ns partner share",
    "i1 kind stretched discipline stopped",
)
# The queue of a resource shared by classes, and the waiting steps of one class. `left_ns`: quota left
# in `period`.
SHARE = _record(
    "i8 resource drawn cost_max virtual_ns quota_ns period_ns offset_ns left_ns period",
    "i4 first_line",
    "i2 lines kind",
)
LINE = _record(
    "i8 strict weight reservation limit reservation_ns limit_ns proportion ahead seen_ns",
    "i4 first last",
    "i8 waiting",
)
# `draw`: the key of its random draws, apart from the seed: its number mixed with its retries.
# `client_row`: binding row of its client, or none.
REQUEST = _record(
    "i8 number", "u8 draw", "i4 entry row client_row first_step stream steps_left"
)
TEMPLATE = _record("i4 first_step steps")
ENTRY = _record("i8 time_ns cell")
# A cell of a distribution of random factors. Its fields are the columns of `draws.factor_cells`.
FACTOR_CELL = _record("i8 low knot rise later_rise")
# `look_ns`: when to check the oldest unfinished request for a timeout. `newest`: number of the first part
# of the request issued last. `issued`, `at` and `planned` count parts, `outstanding` counts requests.
STREAM = _record(
    "i8 queue_depth issued at planned ended arrival_ns outstanding feed reports timeout_ns look_ns",
    "i8 newest_only drained unnoticed last_unnoticed newest",
)
# A request waiting to be issued, for the first time or again.
PARKED = _record("i8 number entry", "2i8 first stop")
REPORT = _record("i8 stream index")
# A service whose steps were all cut off.
LOST = _record("i8 end_ns resource")
# `parts`: of the first part of a request, its parts that have neither replied nor ended. Of another part,
# minus the number of rows back to the first.
LOG = _record("i8 issued_ns completed_ns binding", "i4 template group stream parts")
# `kept`: the core that a thread keeps at the moment, or none. The next two fields are that
# thread's pool and the time since when it has had the core.
CLOCK = _record(
    "i8 now_ns until_ns bin_ns bin bins_used bins_end_ns signal_ns direct_ns look_ns uses",
    "i8 calendar_end calendar_hole ready_from ready_to cell_bits slots_free roles streams_filled logged",
    "i8 wanting pinned parked reported",
    "u8 seed_state",
    "i8 kept kept_pool kept_since_ns paired_slowdown warm_ns cool_ns",
)


class World(NamedTuple):
    """All arrays that the kernel works on. The types above describe the records.

    Attributes
    ----------
    clock
        Scalars, shape (1,).
    steps
        Steps of all templates, one template after another.
    predecessors
        Number of predecessors that each of `steps` waits for.
    successors
        Successors of all steps, as step numbers within their template.
    amounts
        Amounts accounted by each of `steps`, shape (steps, counters).
    templates
        First step and number of steps of each template.
    bindings
        Resource of each role, row after row of ``clock.roles`` entries.
    factor_cells
        Cells of all distributions of random factors, from `draws.factor_cells`, shape
        (distributions * FACTOR_POINTS,).
    position_factors
        `Program.position_factors`.
    resources
        The resources.
    requests
        Requests in flight, shape (slots,).
    free_slots
        Unused slots of `requests`. The first ``clock.slots_free`` entries are valid.
    pending
        Outstanding predecessors, shape (cells,).
    links
        Next cell in the queue where a cell waits, shape (cells,).
    ready
        The ready list, a ring of shape (cells,).
    calendar
        The calendar, a heap with four children per node.
    held
        1 for each placement group whose requests wait, shape (groups,).
    streams
        The streams.
    plan
        Planned requests not issued yet, shape (streams, requests, 5): group, arrival time,
        template, binding, rows to the end of the request that the row is a part of.
    log
        One row per request, in the order of issue over all streams.
    bins
        Counters by time, shape (bins, counters).
    sleep_bins
        Number of times that servers and units became idle, shape (bins, kinds).
    specials
        Attributes of `steps` that use more than the plain words, shape (steps,).
    once
        Amounts that each of `steps` accounts once per service, shape (steps, counters).
    taken
        Amounts and number of uses accounted by steps of templates that are not planned, shape
        (2 * streams, counters + 1): by stream, then by the stream whose requests spawned them.
    spawned
        Number of requests that each stream's requests have spawned, shape (streams,).
    plan_keys
        Key ranges of the requests in `plan`, shape (streams, requests), or (streams, 0) if no
        chunk has any.
    keys
        Key ranges of the requests in flight, shape (slots,), or (0,) if no chunk has any.
    pins
        Hash table of the pinned keys, at most half full. An entry with count 0 is free.
    parked
        Requests waiting for their placement group. The first ``clock.parked`` rows are valid.
    reports
        Completions not reported to the director yet. The first ``clock.reported`` rows are valid.
    followed
        Row in `ends_ns` of each request of the first stream up to the last followed one, −1 if
        it is not followed.
    ends_ns
        Completion time of each step, shape (followed requests, steps).
    saved_ns
        Time that each of these steps saved because others waited, of the same shape.
    shares
        The queues shared by classes.
    lines
        The classes of all `shares`, one share after another.
    looks
        Tree of the next look at each of `shares` (see ``queues.py``), shape (power of two,).
    joined_ns
        Time at which each cell joined its shared queue, shape (cells,). A fair queue uses its
        virtual time. Empty if no queue is shared.
    since_ns
        Time since when a thread has had the core that serves a cell, shape (cells,). Empty if no
        core has a slice.
    processes
        Process of each pool's threads, −1 for none, shape (resources,).
    spared_ns
        Wake-up time that each pool's threads have saved, shape (resources,).
    flows
        Flow of each pool, shape (resources,). See `Resources.flows`.
    had_ns
        Virtual time up to which each flow has received its share of the cores, shape (flows,).
    runs_until_ns
        End of the latest service of each process, shape (processes,).
    slowdowns
        Duration of a service of each resource with `SLOWED`, in 1/`SLOWDOWN_UNIT` of the normal one,
        shape (resources,).
    """

    clock: Array
    steps: Array
    predecessors: Array
    successors: Array
    amounts: Array
    templates: Array
    bindings: Array
    factor_cells: Array
    position_factors: Array
    resources: Array
    requests: Array
    free_slots: Array
    pending: Array
    links: Array
    ready: Array
    calendar: Array
    held: Array
    streams: Array
    plan: Array
    log: Array
    bins: Array
    sleep_bins: Array
    specials: Array
    once: Array
    taken: Array
    spawned: Array
    plan_keys: Array
    keys: Array
    pins: Array
    parked: Array
    reports: Array
    followed: Array
    ends_ns: Array
    saved_ns: Array
    shares: Array
    lines: Array
    looks: Array
    joined_ns: Array
    since_ns: Array
    processes: Array
    spared_ns: Array
    flows: Array
    had_ns: Array
    runs_until_ns: Array
    slowdowns: Array


def empty_world(program: Program, log_rows: int) -> World:
    """Create the world of a run that has not begun.

    Parameters
    ----------
    program
        The program.
    log_rows
        Requests that the log has room for at first.

    Notes
    -----
    It has no resources yet. See `stripesim.sim.engine.compiled.tables.ResourceNumbers`.
    """
    resources = program.resources
    streams = _streams(program)
    shares, lines = _shares(program)
    return World(
        clock=_clock(program),
        steps=np.zeros(0, dtype=STEP),
        predecessors=np.zeros(0, dtype=np.int16),
        successors=np.zeros(0, dtype=np.int32),
        amounts=np.zeros((0, len(COUNTERS)), dtype=np.int64),
        templates=np.zeros(0, dtype=TEMPLATE),
        bindings=np.zeros(0, dtype=np.int32),
        factor_cells=factor_cells(program.factor_tables).view(FACTOR_CELL).ravel(),
        position_factors=program.position_factors.astype(np.int64),
        resources=np.zeros(0, dtype=RESOURCE),
        requests=np.zeros(0, dtype=REQUEST),
        free_slots=np.zeros(0, dtype=np.int32),
        pending=np.zeros(0, dtype=np.int16),
        links=np.zeros(0, dtype=np.int32),
        ready=np.zeros(0, dtype=np.int32),
        calendar=np.zeros(ROOT + 1, dtype=ENTRY),
        held=np.zeros(program.groups, dtype=np.int8),
        streams=streams,
        plan=np.zeros((len(program.streams), 0, 5), dtype=np.int64),
        log=np.zeros(log_rows, dtype=LOG),
        bins=np.zeros((1, len(COUNTERS)), dtype=np.int64),
        sleep_bins=np.zeros((1, len(resources.kind_names)), dtype=np.int64),
        specials=np.zeros(0, dtype=SPECIAL),
        once=np.zeros((0, len(COUNTERS)), dtype=np.int64),
        taken=np.zeros((2 * len(streams), len(COUNTERS) + 1), dtype=np.int64),
        spawned=np.zeros(len(streams), dtype=np.int64),
        plan_keys=np.zeros((len(streams), 0), dtype=KEYS),
        keys=np.zeros(0, dtype=KEYS),
        pins=np.zeros(0, dtype=PIN),
        # One row suffices until the first request waits or reports.
        parked=np.zeros(1, dtype=PARKED),
        reports=np.zeros(1, dtype=REPORT),
        followed=_followed(program),
        ends_ns=np.full((len(program.followed), 1), PENDING, dtype=np.int64),
        saved_ns=np.zeros((len(program.followed), 1), dtype=np.int64),
        shares=shares,
        lines=lines,
        looks=np.full(
            2 << max(len(shares) - 1, 1).bit_length(), NEVER_NS, dtype=np.int64
        ),
        joined_ns=np.zeros(0, dtype=np.int64),
        since_ns=np.zeros(0, dtype=np.int64),
        processes=np.zeros(0, dtype=np.int64),
        spared_ns=np.zeros(0, dtype=np.int64),
        flows=np.zeros(0, dtype=np.int64),
        had_ns=np.zeros(resources.flow_count, dtype=np.int64),
        runs_until_ns=np.full(
            int(resources.processes.max(initial=-1)) + 1, -resources.cool_ns
        ),
        slowdowns=np.zeros(0, dtype=np.int64),
    )


def _streams(program: Program) -> Array:
    streams = np.zeros(len(program.streams), dtype=STREAM)
    streams["queue_depth"] = [stream.queue_depth for stream in program.streams]
    streams["arrival_ns"] = streams["look_ns"] = NEVER_NS
    streams["newest_only"][list(program.newest_only)] = 1
    streams["last_unnoticed"] = NOTHING
    for index, source in enumerate(program.streams if program.director else ()):
        assert isinstance(source, DirectedSource)
        streams[index]["feed"] = source.feed
        streams[index]["reports"] = source.reports
        streams[index]["timeout_ns"] = source.timeout_ns
    return streams


def _clock(program: Program) -> Array:
    resources = program.resources
    clock = np.zeros(1, dtype=CLOCK)
    clock["until_ns"] = NEVER_NS if program.until_ns is None else program.until_ns
    clock["bin_ns"] = clock["bins_end_ns"] = program.bin_ns
    clock["calendar_end"] = ROOT
    clock["seed_state"] = seed_state(program.seed)
    clock["kept"] = NOTHING
    clock["paired_slowdown"] = resources.paired_slowdown
    clock["warm_ns"] = resources.warm_ns
    clock["cool_ns"] = resources.cool_ns
    clock["signal_ns"] = clock["direct_ns"] = clock["look_ns"] = NEVER_NS
    return clock


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return zeros of this shape from the beginning of a cache line on, in huge pages if they are large.

    A processor then finds more of them in its cache of addresses. NumPy asks for huge pages from 4 MiB on,
    and Linux gives them from one of their boundaries on.
    """
    size = prod(shape) * dtype.itemsize
    boundary = _HUGE_PAGE_BYTES if size >= _HUGE_PAGE_BYTES else _CACHE_LINE_BYTES
    memory = np.zeros(size + boundary, np.uint8)
    start = -memory.ctypes.data % boundary
    return memory[start : start + size].view(dtype).reshape(shape)


def grown(array: Array, size: int) -> Array:
    """Return an array of `size` rows that begins with the rows of `array`."""
    larger = zeros((size, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def lengthened(array: Array, rows: Array) -> Array:
    """Return an array with further rows."""
    longer = grown(array, len(array) + len(rows))
    longer[len(array) :] = rows
    return longer


def with_resources(
    world: World, resources: Resources, indices: Array, partners: Array
) -> World:
    """Append resources to a world.

    Parameters
    ----------
    world
        The world.
    resources
        All resources of the program.
    indices
        Index of each resource to append, shape (n,).
    partners
        Number of its partner in the world, −1 for none, shape (n,).
    """
    rows = np.zeros(len(indices), dtype=RESOURCE)
    rows["free"] = rows["capacity"] = resources.capacities[indices]
    rows["discipline"] = resources.disciplines[indices]
    rows["wake_ns"] = resources.wake_ns[indices]
    rows["slice_ns"] = resources.slice_ns[indices]
    rows["partner"] = partners + 1
    rows["kind"] = resources.kind_indices[indices]
    rows["stretched"] = np.where(resources.paired[indices], PAIRED, 0)
    rows["share"][rows["discipline"] == BATCH] = -1
    for end in ("first", "last"):
        rows[end][rows["discipline"] == GATE] = NOTHING
    processes = resources.processes[indices].astype(np.int64)
    added = {
        "resources": rows,
        "processes": np.where(processes < 0, NOTHING, processes),
        "spared_ns": np.zeros(len(indices), dtype=np.int64),
        "flows": resources.flows_of(indices),
        "slowdowns": np.full(len(indices), SLOWDOWN_UNIT, dtype=np.int64),
    }
    return world._replace(
        **{name: lengthened(getattr(world, name), more) for name, more in added.items()}
    )


def _shares(program: Program) -> tuple[Array, Array]:
    indices = program.resources.share_indices
    shared = np.flatnonzero(indices >= 0)
    kinds = [program.resources.shares[index] for index in indices[shared].tolist()]
    counts = [len(kind.classes) for kind in kinds]
    shares = np.zeros(len(shared), dtype=SHARE)
    shares["resource"] = shared
    shares["lines"] = counts
    shares["first_line"] = np.cumsum([0, *counts])[:-1]
    shares["kind"] = [kind.kind for kind in kinds]
    shares["quota_ns"] = shares["left_ns"] = [kind.quota_ns for kind in kinds]
    shares["period_ns"] = [kind.period_ns for kind in kinds]
    shares["offset_ns"] = [
        quota_offset_ns(resource, kind.period_ns)
        for resource, kind in zip(shared.tolist(), kinds, strict=True)
    ]
    lines = np.zeros(sum(counts), dtype=LINE)
    for name in ("strict", "weight", "reservation", "limit"):
        lines[name] = [getattr(one, name) for kind in kinds for one in kind.classes]
    for name in ("reservation_ns", "limit_ns", "proportion", "seen_ns"):
        lines[name] = TAG_BEFORE
    return shares, lines


def _followed(program: Program) -> Array:
    """Return the row of each followed request, by its number in the first stream."""
    followed = program.followed
    rows = np.full(
        int(followed[-1]) + 1 if len(followed) else 0, NOTHING, dtype=np.int32
    )
    rows[followed] = np.arange(len(followed))
    return rows
