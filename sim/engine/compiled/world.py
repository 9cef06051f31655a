"""What the compiled engine works on: flat arrays of records. No numba here.

A *cell* is a step of a request in flight: ``slot << cell_bits | step``. Each cell is in at
most one place (calendar, ready list, a queue), so a calendar and a ready list of as many
places as there are cells never overflow, and queues are links between cells.
"""

from typing import Any, NamedTuple

import numpy as np

from stripesim.sim.engine.draws import seed_state
from stripesim.sim.engine.graph import COUNTERS
from stripesim.sim.engine.program import BATCH, GATE, PENDING, DirectedSource, Program
from stripesim.sim.engine.shares import TAG_BEFORE

# Why the kernel came back to Python.
DONE, MORE_REQUESTS, MORE_SLOTS, MORE_LOG, MORE_BINS, MORE_PINS = range(6)
MORE_PARKED, MORE_REPORTS, DIRECT = range(6, 9)
GO_ON = -1

NEVER_NS = (1 << 63) - 1
NOBODY = -1
# In the place of a completion that its client has not looked at, the first of a chain.
LAST_UNNOTICED = -2

# How a step waits: for its one predecessor, for all, for those that run.
ONE, ALL, MERGE = range(3)
# Predecessors outstanding of a step that is skipped: never 0 again, however many report.
SKIPPED = -(1 << 13)
# Added to a merge's outstanding predecessors once one of them has run.
LIVE = 1 << 13

# What stands in the place of an enter's outstanding predecessors once it has entered: the
# state of its ticket. One that waits for its turn adds the number of its turn step.
TICKET_PASSED = -1
TICKET_LEFT = -2
TICKET_IN = -3
TICKET_WAITS = -4
# The same of an acquire that has its unit, and of a release that has given one back.
UNIT_MOVED = -1
# Of an acquire that found its unit idle: its thread had to be woken.
UNIT_WOKEN = -2
# The same once a core has spent the time of waking it.
UNIT_AWAKE = -3
# What stops a pool: the director, or that its threads serve their batch server.
STOPPED = 1
FLUSHING = 2
# Added to the spread of a use that takes longer if its thread had to be woken.
ON_THREAD = 1 << 8

# What a step has beyond the plain words; a sum of these.
TAKEN = 1
ONCE = 2
BRANCHES = 4
SPAWNS = 8
NAMES_KEYS = 16
FOLLOWED = 32

# The root's place in the calendar: with it the four children of a node share a cache line.
ROOT = 3

Array = np.ndarray[Any, Any]


def _record(*fields: str) -> np.dtype[Any]:
    """Make a record of fields in this order, each text a type, with its shape, and the names that have it."""
    return np.dtype(
        [(name, kind) for kind, *names in map(str.split, fields) for name in names]
    )


STEP = _record(
    "i8 demand_ns",
    "i4 successors_from successors_to role",
    "i2 word spread is_reply waits_for accounts special",
)
# `thread` is the acquire of the thread that does a use; `share_class` and `cost` count at a resource that
# classes share; `pins` is how many of the successors pin each key range.
SPECIAL = _record(
    "i2 test keys ticket yes_count",
    "i4 spawns",
    "i2 thread share_class",
    "i8 cost",
    "2i2 pins",
)
# Of a request in flight: its key ranges, how often it has pinned each.
KEYS = _record("2i8 first stop held")
PIN = _record("i8 key count")
# `spent_ns`: service time begun at a server; time for which units of a pool, or tickets of a gate, were out.
# `slice_ns`: how long a thread keeps one of these cores while others wait. `partner`: of a batch server that
# threads serve, one more than their pool, and the other way round; 0: none. `share`: above 0 one more than
# its place among the shares; 0 has none, −1 is a batch server. `stopped`: `STOPPED`, `FLUSHING` or both.
# A resource fills one cache line.
RESOURCE = _record(
    "i8 spent_ns waited_ns sleeps",
    "i4 free first last waiting capacity wake_ns slice_ns partner share",
    "i1 kind paired discipline stopped",
)
# The queue of a resource that classes share, and what waits of each class.
SHARE = _record(
    "i8 resource drawn cost_max virtual_ns", "i4 first_line", "i2 lines kind"
)
LINE = _record(
    "i8 strict weight reservation limit reservation_ns limit_ns proportion ahead seen_ns",
    "i4 first last",
    "i8 waiting",
)
# `draw`: what its random draws begin with, beside the seed: its number, mixed with its retries.
# `client_row`: row of its client, `NOBODY` if it has none.
REQUEST = _record(
    "i8 number", "u8 draw", "i4 entry row client_row first_step stream steps_left"
)
TEMPLATE = _record("i4 first_step steps")
# `look_ns`: when to look at the oldest unfinished request, whose time may be out then.
STREAM = _record(
    "i8 depth issued at planned ended arrival_ns outstanding feed reports timeout_ns look_ns newest_only",
    "i8 drained unnoticed last_unnoticed",
)
# A request that waits to be issued, for the first time or again.
PARKED = _record("i8 number entry", "2i8 first stop")
REPORT = _record("i8 stream index")
# A service whose steps were all cut off.
LOST = _record("i8 end_ns resource")
LOG = _record("i8 issued_ns completed_ns binding", "i4 template group stream")
# `kept`: the core that a thread keeps just now (`NOBODY`: none), then its pool, and since when it has it.
CLOCK = _record(
    "i8 now_ns until_ns bin_ns bin bins_used bins_end_ns signal_ns direct_ns look_ns uses",
    "i8 calendar_end calendar_hole ready_from ready_to cell_bits slots_free roles streams_filled logged",
    "i8 wanting pinned parked reported",
    "u8 seed_state",
    "i8 kept kept_pool kept_since_ns paired_slowdown warm_ns cool_ns",
)


class World(NamedTuple):
    """All that the kernel touches; see the dtypes above for the records."""

    clock: Array  # Shape (1,). Scalars.
    steps: Array  # Steps of all templates, one template after the other.
    predecessors: Array  # Number of predecessors of each of `steps`.
    successors: Array  # Successors of all steps, as steps of their template.
    amounts: Array  # Shape (steps, counters). What each of `steps` accounts.
    templates: Array
    bindings: Array  # Resource of each role, row after row, ``clock.roles`` a row.
    factors: Array  # Shape (distributions, FACTOR_POINTS).
    resources: Array
    requests: Array  # Shape (slots,). Requests in flight.
    # Shape (slots,). Slots of `requests` that nobody has; the first ``clock.slots_free`` count.
    free_slots: Array
    pending: Array  # Shape (cells,). Predecessors outstanding.
    links: Array  # Shape (cells,). The next cell of the queue that a cell waits in.
    ready: Array  # Shape (cells,). The ready list, a ring.
    # The calendar, a heap with four children a node.
    times_ns: Array
    cells: Array
    held: Array  # Shape (groups,). Whether requests to a placement group wait.
    streams: Array
    # Shape (streams, requests, 4). What is planned and not yet issued: group, arrival time, template,
    # binding.
    plan: Array
    log: Array  # A row a request, in order of issue over all streams.
    bins: Array  # Shape (bins, counters).
    sleep_bins: Array  # Shape (bins, kinds). How often servers and units became idle, by kind of resource.
    specials: Array  # Shape (steps,). What each of `steps` has beyond the plain words.
    once: Array  # Shape (steps, counters). What each of `steps` accounts once per service.
    # Shape (2 * streams, counters + 1). What steps of templates that are not planned accounted, and their
    # uses; by stream, then by the stream of what each spawned.
    taken: Array
    spawned: (
        Array  # Shape (streams,). How many requests those of each stream have spawned.
    )
    # Shape (streams, requests). Key ranges of what stands in `plan`; no requests if no chunk has any.
    plan_keys: Array
    keys: Array  # Shape (slots,). Key ranges of the requests in flight; empty if no chunk has any.
    pins: Array  # A hash table of the keys pinned, at most half full; a count of 0 is a free place.
    parked: Array  # Requests that wait for their placement group; the first ``clock.parked`` count.
    reports: Array  # What the director has not yet heard of; the first ``clock.reported`` count.
    # Row of `ends_ns` of each request of the first stream, `NOBODY` where it is not followed; as long as the
    # last one that is.
    followed: Array
    ends_ns: Array  # Shape (followed requests, steps). When their steps completed.
    shares: Array  # The queues that classes share.
    lines: Array  # The classes of each of `shares`, one share after the other.
    # Shape (power of two,). A tree of when to look at which of `shares`; see ``compiled/shares.py``.
    looks: Array
    # Shape (cells,). When each cell that waits in one of `shares` has joined it, by the queue's virtual time
    # where it is fair; empty if there are none.
    joined_ns: Array
    # Shape (cells,). Since when the thread has had the core on which a cell is in service; empty if no core
    # has a slice.
    since_ns: Array
    # Shape (resources,). Process of each pool's threads, `NOBODY` if none; what their wake-ups were spared.
    processes: Array
    spared_ns: Array
    flows: Array  # Shape (resources,). See `Resources.flows`.
    had_ns: Array  # Shape (flows,). Virtual time up to which each has had its share of the cores.
    runs_until_ns: (
        Array  # Shape (processes,). Until when the last service of each process lasts.
    )


def empty_world(program: Program, log_rows: int) -> World:
    """Return the world of a run that has not begun."""
    resources = np.zeros(len(program.resources), dtype=RESOURCE)
    resources["free"] = program.resources.capacities
    resources["discipline"] = program.resources.disciplines
    resources["capacity"] = program.resources.capacities
    resources["wake_ns"] = program.resources.wake_ns
    resources["slice_ns"] = program.resources.slice_ns
    resources["partner"] = program.resources.partners + 1
    resources["kind"] = program.resources.kind_indices
    resources["paired"] = program.resources.paired
    for end in ("first", "last"):
        resources[end][program.resources.disciplines == GATE] = NOBODY
    streams = np.zeros(len(program.streams), dtype=STREAM)
    streams["depth"] = [stream.depth for stream in program.streams]
    streams["arrival_ns"] = streams["look_ns"] = NEVER_NS
    streams["newest_only"][list(program.newest_only)] = 1
    streams["last_unnoticed"] = NOBODY
    for index, source in enumerate(program.streams if program.director else ()):
        assert isinstance(source, DirectedSource)
        streams[index]["feed"] = source.feed
        streams[index]["reports"] = source.reports
        streams[index]["timeout_ns"] = source.timeout_ns
    clock = np.zeros(1, dtype=CLOCK)
    clock["until_ns"] = NEVER_NS if program.until_ns is None else program.until_ns
    clock["bin_ns"] = clock["bins_end_ns"] = program.bin_ns
    clock["calendar_end"] = ROOT
    clock["seed_state"] = seed_state(program.seed)
    clock["kept"] = NOBODY
    clock["paired_slowdown"] = program.resources.paired_slowdown
    clock["warm_ns"] = program.resources.warm_ns
    clock["cool_ns"] = program.resources.cool_ns
    clock["signal_ns"] = clock["direct_ns"] = clock["look_ns"] = NEVER_NS
    shares, lines = _shares(program)
    resources["share"][program.resources.disciplines == BATCH] = -1
    resources["share"][shares["resource"]] = 1 + np.arange(len(shares))
    return World(
        clock=clock,
        steps=np.zeros(0, dtype=STEP),
        predecessors=np.zeros(0, dtype=np.int16),
        successors=np.zeros(0, dtype=np.int32),
        amounts=np.zeros((0, len(COUNTERS)), dtype=np.int64),
        templates=np.zeros(0, dtype=TEMPLATE),
        bindings=np.zeros(0, dtype=np.int32),
        factors=np.array(program.factor_tables, dtype=np.int64, order="C"),
        resources=resources,
        requests=np.zeros(0, dtype=REQUEST),
        free_slots=np.zeros(0, dtype=np.int32),
        pending=np.zeros(0, dtype=np.int16),
        links=np.zeros(0, dtype=np.int32),
        ready=np.zeros(0, dtype=np.int32),
        times_ns=np.zeros(ROOT + 1, dtype=np.int64),
        cells=np.zeros(ROOT + 1, dtype=np.int32),
        held=np.zeros(program.groups, dtype=np.int8),
        streams=streams,
        plan=np.zeros((len(program.streams), 0, 4), dtype=np.int64),
        log=np.zeros(log_rows, dtype=LOG),
        bins=np.zeros((1, len(COUNTERS)), dtype=np.int64),
        sleep_bins=np.zeros((1, len(program.resources.kind_names)), dtype=np.int64),
        specials=np.zeros(0, dtype=SPECIAL),
        once=np.zeros((0, len(COUNTERS)), dtype=np.int64),
        taken=np.zeros((2 * len(streams), len(COUNTERS) + 1), dtype=np.int64),
        spawned=np.zeros(len(streams), dtype=np.int64),
        plan_keys=np.zeros((len(streams), 0), dtype=KEYS),
        keys=np.zeros(0, dtype=KEYS),
        pins=np.zeros(0, dtype=PIN),
        # Where nobody has to wait or reports, there is room enough.
        parked=np.zeros(1, dtype=PARKED),
        reports=np.zeros(1, dtype=REPORT),
        followed=_followed(program),
        ends_ns=np.full((len(program.followed), 1), PENDING, dtype=np.int64),
        shares=shares,
        lines=lines,
        looks=np.full(
            2 << max(len(shares) - 1, 1).bit_length(), NEVER_NS, dtype=np.int64
        ),
        joined_ns=np.zeros(0, dtype=np.int64),
        since_ns=np.zeros(0, dtype=np.int64),
        processes=np.where(
            program.resources.processes < 0, NOBODY, program.resources.processes
        ),
        spared_ns=np.zeros(len(resources), dtype=np.int64),
        flows=program.resources.flows,
        had_ns=np.zeros(program.resources.flows.max(initial=0) + 1, dtype=np.int64),
        runs_until_ns=np.full(
            program.resources.processes.max(initial=-1) + 1, -program.resources.cool_ns
        ),
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
    lines = np.zeros(sum(counts), dtype=LINE)
    for name in ("strict", "weight", "reservation", "limit"):
        lines[name] = [getattr(one, name) for kind in kinds for one in kind.classes]
    for name in ("reservation_ns", "limit_ns", "proportion", "seen_ns"):
        lines[name] = TAG_BEFORE
    return shares, lines


def _followed(program: Program) -> Array:
    """Return the row of each request that is followed, by its number in the first stream."""
    followed = program.followed
    rows = np.full(
        int(followed[-1]) + 1 if len(followed) else 0, NOBODY, dtype=np.int32
    )
    rows[followed] = np.arange(len(followed))
    return rows
