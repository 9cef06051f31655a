"""The calendar of the compiled engine: a heap with four children per node. Part of the inner loop.

Each node is a time and a cell. Four siblings share a cache line.
"""

from stripesim.sim.engine.compiled.opcodes import at, inlined, outlined
from stripesim.sim.engine.compiled.world import NEVER_NS, ROOT, World


@inlined
def precedes(world: World, cell: int, other: int) -> bool:
    """Return True if a cell precedes another of the same time, by request, then step."""
    bits = world.clock[0].cell_bits
    number = world.requests[at(cell >> bits)].number
    other_number = world.requests[at(other >> bits)].number
    return bool(number < other_number or (number == other_number and cell < other))


@inlined
def _put(world: World, node: int, time_ns: int, cell: int) -> None:
    entry = world.calendar[at(node)]
    entry.time_ns = time_ns
    entry.cell = cell


@outlined
def _earliest(world: World, child: int, end: int) -> int:
    """Return the earliest of up to four siblings, the first of which is `child`."""
    best = child
    for rival in range(child + 1, min(child + 4, end)):
        time_ns = world.calendar[at(rival)].time_ns
        least_ns = world.calendar[at(best)].time_ns
        if time_ns < least_ns or (
            time_ns == least_ns
            and precedes(
                world, world.calendar[at(rival)].cell, world.calendar[at(best)].cell
            )
        ):
            best = rival
    return best


@inlined
def sift_down(world: World, time_ns: int, cell: int) -> None:
    """Insert an entry at the root and sift it down."""
    calendar = world.calendar
    end = world.clock[0].calendar_end
    node = ROOT
    while True:
        child = 4 * node - 8
        if child >= end:
            break
        # Unused nodes of the last group are later than all events, and differ.
        t0 = calendar[at(child)].time_ns
        t1 = calendar[at(child + 1)].time_ns
        t2 = calendar[at(child + 2)].time_ns
        t3 = calendar[at(child + 3)].time_ns
        left = t1 if t1 < t0 else t0
        right = t3 if t3 < t2 else t2
        least = right if right < left else left
        if least > time_ns:
            break
        # Sums and masks instead of branches, which no processor predicts.
        of_left = int(t1 < t0)
        to_right = 2 + int(t3 < t2) - of_left
        best = child + of_left + (to_right & -int(right < left))
        if (t0 == t1) | (t2 == t3) | (left == right):
            best = _earliest(world, child, end)
        if least == time_ns and precedes(world, cell, calendar[at(best)].cell):
            break
        _put(world, node, least, calendar[at(best)].cell)
        node = best
    _put(world, node, time_ns, cell)


@inlined
def push(world: World, time_ns: int, cell: int) -> None:
    """Insert a cell into the calendar."""
    clock = world.clock[0]
    if clock.calendar_hole:
        # Reuse the root, which the entry taken last has left.
        clock.calendar_hole = 0
        sift_down(world, time_ns, cell)
        return
    calendar = world.calendar
    node = clock.calendar_end
    clock.calendar_end = node + 1
    if node & 3 == 0:
        for unused in range(node + 1, node + 4):
            _clear(world, unused)
    while node > ROOT:
        parent = (node + 8) >> 2
        above_ns = calendar[at(parent)].time_ns
        if above_ns < time_ns or (
            above_ns == time_ns and not precedes(world, cell, calendar[at(parent)].cell)
        ):
            break
        _put(world, node, above_ns, calendar[at(parent)].cell)
        node = parent
    _put(world, node, time_ns, cell)


@inlined
def _clear(world: World, node: int) -> None:
    """Mark a node as unused, by another time than its unused neighbours."""
    world.calendar[at(node)].time_ns = NEVER_NS - (node & 1)


@inlined
def close_hole(world: World) -> None:
    """Move the calendar's last entry to the root, which the entry taken last has left."""
    clock = world.clock[0]
    clock.calendar_hole = 0
    end = clock.calendar_end - 1
    clock.calendar_end = end
    time_ns = world.calendar[at(end)].time_ns
    cell = world.calendar[at(end)].cell
    _clear(world, end)
    if end > ROOT:
        sift_down(world, time_ns, cell)
