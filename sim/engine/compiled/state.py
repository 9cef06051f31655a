"""The world of a compiled run, and the room that grows in it. This module does not use numba."""

import numpy as np

from stripesim.sim.engine.checks import ChunkChecks, next_chunk, planning
from stripesim.sim.engine.compiled import world as layout
from stripesim.sim.engine.compiled.tables import ProgramTables
from stripesim.sim.engine.compiled.world import Array, empty_world
from stripesim.sim.engine.program import PENDING, Program, RequestChunk

_SLOTS = 64
_LOG = 4096
_PINS = 1024


class RunState:
    """The world of a run. Its methods make room, which replaces arrays of the world.

    Parameters
    ----------
    program
        The program.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.planning_s = 0.0
        self.checks = ChunkChecks(program)
        # The world may lack the resources with slices at first.
        self._has_slices = bool(program.resources.slice_ns.any())
        self._tables = ProgramTables(program)
        self.numbers = self._tables.numbers
        self.world = self.numbers.begin(empty_world(program, _LOG))
        self._last_arrivals_ns = [0] * len(program.streams)

    def provide(self, status: int) -> None:
        """Provide what the kernel lacks.

        Parameters
        ----------
        status
            The reason for the kernel's return.
        """
        makers = {
            layout.MORE_REQUESTS: self._more_requests,
            layout.MORE_SLOTS: self.more_slots,
            layout.MORE_LOG: self._more_log,
            layout.MORE_BINS: self._more_bins,
            layout.MORE_PINS: self._more_pins,
            layout.MORE_PARKED: self.more_parked,
            layout.MORE_REPORTS: self._more_reports,
        }
        makers[status]()

    def learn(self) -> None:
        """Adopt new templates and bindings of the book."""
        self.world, bits = self._tables.learn(self.world)
        if bits > self.world.clock["cell_bits"][0]:
            self._resize_cells(len(self.world.requests), bits)

    def _more_requests(self) -> None:
        """Append the next chunk to the planned requests of the stream that needs one."""
        index = int(self.world.clock["wanting"][0])
        stream = self.world.streams[index : index + 1]
        with planning(self):
            chunk = next_chunk(self.program.streams[index], index)
        self.learn()
        stream["ended"] = len(chunk) == 0
        if not len(chunk):
            return
        self.checks.check(index, chunk, self._last_arrivals_ns[index])
        kept = self.world.plan[index, stream["at"][0] : stream["planned"][0]].copy()
        planned = len(kept) + len(chunk)
        self._lengthen_plan(planned)
        rows = self.world.plan[index]
        rows[: len(kept)] = kept
        rows = rows[len(kept) : planned]
        rows[:, 0] = chunk.groups
        if chunk.arrivals_ns is not None:
            rows[:, 1] = chunk.arrivals_ns
            self._last_arrivals_ns[index] = int(chunk.arrivals_ns[-1])
        rows[:, 2] = chunk.templates
        rows[:, 3] = chunk.bindings
        rows[:, 4] = chunk.rows_left
        self._plan_keys(
            index, chunk, int(stream["at"][0]), int(stream["planned"][0]), planned
        )
        stream["at"] = 0
        stream["planned"] = planned

    def _plan_keys(
        self, index: int, chunk: RequestChunk, start: int, stop: int, planned: int
    ) -> None:
        """Store the key ranges of a chunk with its plan, once any chunk has key ranges."""
        world = self.world
        if chunk.keys is None and not len(world.keys):
            return
        plan_keys = world.plan_keys
        if plan_keys.shape != world.plan.shape[:2]:
            plan_keys = np.zeros(world.plan.shape[:2], dtype=layout.KEYS)
            plan_keys[:, : world.plan_keys.shape[1]] = world.plan_keys
        kept = plan_keys[index, start:stop].copy()
        plan_keys[index, : len(kept)] = kept
        rows = plan_keys[index, len(kept) : planned]
        if chunk.keys is not None:
            rows["first"] = chunk.keys[:, :, 0]
            rows["stop"] = chunk.keys[:, :, 1]
        else:
            rows[:] = np.zeros((), dtype=layout.KEYS)
        keys = world.keys
        if not len(keys):
            # Requests issued or waiting so far have no keys.
            keys = np.zeros(max(1, len(world.requests)), dtype=layout.KEYS)
            world.parked["first"] = world.parked["stop"] = 0
        self.world = self.world._replace(plan_keys=plan_keys, keys=keys)

    def _lengthen_plan(self, requests: int) -> None:
        plan = self.world.plan
        if requests > plan.shape[1]:
            longer = np.zeros((len(plan), requests, plan.shape[2]), dtype=np.int64)
            longer[:, : plan.shape[1]] = plan
            self.world = self.world._replace(plan=longer)

    def more_slots(self) -> None:
        """Make room for more requests in flight."""
        bits = int(self.world.clock["cell_bits"][0])
        self._resize_cells(max(_SLOTS, 2 * len(self.world.requests)), bits)

    def _more_log(self) -> None:
        log = self.world.log
        if len(log) > np.iinfo(np.int32).max // 2:
            raise ValueError(
                f"got more than {len(log)} requests in a run, wanted fewer"
            )
        self.world = self.world._replace(
            log=layout.grown(log, len(log) + len(log) // 2 + 1)
        )

    def more_parked(self) -> None:
        """Make room for more requests that wait for their placement groups."""
        self.world = self.world._replace(
            parked=layout.grown(self.world.parked, 2 * len(self.world.parked))
        )

    def _more_reports(self) -> None:
        self.world = self.world._replace(
            reports=layout.grown(self.world.reports, 2 * len(self.world.reports))
        )

    def set_clock(self, time_ns: int) -> None:
        """Set the time, as the kernel does."""
        clock = self.world.clock[0]
        bin_ns = self.program.bin_ns
        clock["now_ns"] = time_ns
        if bin_ns:
            clock["bin"] = time_ns // bin_ns
            if time_ns >= clock["bins_end_ns"]:
                clock["wanting"] = clock["bin"]
                self._more_bins()

    def follow_again(self, numbers: Array) -> None:
        """Forget the recorded ends of steps of requests that start over."""
        world = self.world
        of_first_stream = numbers % len(world.streams) == 0
        indices = numbers[of_first_stream] // len(world.streams)
        rows = world.followed[indices[indices < len(world.followed)]]
        world.ends_ns[rows[rows != layout.NOTHING]] = PENDING
        world.saved_ns[rows[rows != layout.NOTHING]] = 0

    def _more_bins(self) -> None:
        clock = self.world.clock
        bins = self.world.bins
        larger = np.zeros(
            (max(2 * len(bins), int(clock["wanting"][0]) + 1), bins.shape[1]),
            dtype=np.int64,
        )
        larger[: len(bins)] = bins
        clock["bins_end_ns"] = min(len(larger) * self.program.bin_ns, layout.NEVER_NS)
        sleeps = np.zeros((len(larger), self.world.sleep_bins.shape[1]), dtype=np.int64)
        sleeps[: len(bins)] = self.world.sleep_bins
        self.world = self.world._replace(bins=larger, sleep_bins=sleeps)

    def _more_pins(self) -> None:
        """Make room for the wanted number of pins, and insert the existing ones again."""
        world = self.world
        pins = world.pins[world.pins["count"] != 0]
        size = _power_of_two(max(_PINS, 4 * int(world.clock["wanting"][0])))
        positions = _hash_positions(pins["key"], size)
        table = np.zeros(size, dtype=layout.PIN)
        table[positions] = pins
        self.world = world._replace(pins=table)

    def _resize_cells(self, slots: int, bits: int) -> None:
        """Make room for `slots` requests of ``2**bits`` steps, and move those in flight.

        New slots are used in ascending order. No result depends on a request's slot.
        """
        world = self.world
        clock = world.clock[0]
        old_slots = len(world.requests)
        old_bits = int(clock["cell_bits"])
        cells = slots << bits
        if cells > np.iinfo(np.int32).max:
            raise ValueError(
                f"got {slots} requests of up to {1 << bits} steps in flight, wanted fewer"
            )

        def moved(old: Array) -> Array:
            if bits == old_bits:
                return old
            # A skipped step is ~cell in the ready list. The value for no cell is ~0 and stays
            # so.
            cell = np.where(old >= 0, old, ~old)
            cell = (cell >> old_bits) << bits | cell & ((1 << old_bits) - 1)
            return np.where(old >= 0, cell, ~cell).astype(np.int32)

        def relaid(old: Array) -> Array:
            new = layout.zeros((cells,), old.dtype)
            steps = 1 << old_bits
            new.reshape(slots, 1 << bits)[:old_slots, :steps] = old.reshape(
                old_slots, steps
            )
            return new

        end, ready_from, ready_to = (
            int(clock[name]) for name in ("calendar_end", "ready_from", "ready_to")
        )
        calendar = layout.zeros((cells + layout.ROOT + 4,), layout.ENTRY)
        filled = min(len(world.calendar), (end + 3) & ~3)
        calendar[:filled] = world.calendar[:filled]
        calendar["cell"][:end] = moved(world.calendar["cell"][:end])
        ready = layout.zeros((cells,), np.dtype(np.int32))
        waiting = np.arange(ready_from, ready_to) & (len(world.ready) - 1)
        ready[: len(waiting)] = moved(world.ready[waiting])
        clock["ready_from"] = 0
        clock["ready_to"] = len(waiting)
        free = int(clock["slots_free"])
        free_slots = np.empty(slots, dtype=np.int32)
        free_slots[: slots - old_slots] = np.arange(old_slots, slots)[::-1]
        free_slots[slots - old_slots : slots - old_slots + free] = world.free_slots[
            :free
        ]
        clock["slots_free"] = free + slots - old_slots
        clock["cell_bits"] = bits
        for name in ("first", "last"):
            world.resources[name] = moved(world.resources[name])
            world.lines[name] = moved(world.lines[name])
        wider = ((0, 0), (0, (1 << bits) - world.ends_ns.shape[1]))
        self.world = world._replace(
            requests=layout.grown(world.requests, slots),
            keys=layout.grown(world.keys, slots) if len(world.keys) else world.keys,
            free_slots=free_slots,
            pending=relaid(world.pending),
            links=moved(relaid(world.links)),
            joined_ns=relaid(world.joined_ns) if len(world.shares) else world.joined_ns,
            since_ns=relaid(world.since_ns) if self._has_slices else world.since_ns,
            ready=ready,
            calendar=calendar,
            ends_ns=np.pad(world.ends_ns, wider, constant_values=PENDING),
            saved_ns=np.pad(world.saved_ns, wider),
        )


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _hash_positions(keys: Array, size: int) -> list[int]:
    """Return the positions of keys in an empty hash table of the kernel. See ``opcodes._scatter``."""
    homes = (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    taken: set[int] = set()
    positions = []
    for home in homes.tolist():
        position = home & (size - 1)
        while position in taken:
            position = (position + 1) & (size - 1)
        taken.add(position)
        positions.append(position)
    return positions
