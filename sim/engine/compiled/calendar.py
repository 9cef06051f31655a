"""The calendar of the compiled engine: a heap with four children per node. Part of the inner loop."""

from stripesim.sim.engine.compiled.opcodes import at, inlined, wide
from stripesim.sim.engine.compiled.world import NEVER_NS, ROOT, World


@inlined
def precedes(world: World, cell: int, other: int) -> bool:
    """Return True if a cell precedes another of the same time, by request, then step."""
    bits = world.clock[0].cell_bits
    number = world.requests[at(cell >> bits)].number
    other_number = world.requests[at(other >> bits)].number
    return bool(number < other_number or (number == other_number and cell < other))


@inlined
def sift_down(world: World, time_ns: int, cell: int) -> None:
    """Insert an entry at the root and sift it down."""
    times_ns = world.times_ns
    cells = world.cells
    end = world.clock[0].calendar_end
    node = ROOT
    while True:
        child = 4 * node - 8
        if child >= end:
            break
        # Unused nodes of the last group hold NEVER_NS.
        t0 = times_ns[at(child)]
        t1 = times_ns[at(child + 1)]
        t2 = times_ns[at(child + 2)]
        t3 = times_ns[at(child + 3)]
        left = t1 if t1 < t0 else t0
        right = t3 if t3 < t2 else t2
        least = right if right < left else left
        if least > time_ns:
            break
        at_0 = t0 == least
        at_1 = t1 == least
        at_2 = t2 == least
        at_3 = t3 == least
        if int(at_0) + int(at_1) + int(at_2) + int(at_3) == 1:
            best = child + at_1 + 2 * at_2 + 3 * at_3
        else:
            best = child + (0 if at_0 else 1 if at_1 else 2)
            for rival in range(best + 1, min(child + 4, end)):
                if times_ns[at(rival)] == least and precedes(
                    world, wide(cells[at(rival)]), wide(cells[at(best)])
                ):
                    best = rival
        if least == time_ns and precedes(world, cell, wide(cells[at(best)])):
            break
        times_ns[at(node)] = least
        cells[at(node)] = cells[at(best)]
        node = best
    times_ns[at(node)] = time_ns
    cells[at(node)] = cell


@inlined
def push(world: World, time_ns: int, cell: int) -> None:
    """Insert a cell into the calendar."""
    clock = world.clock[0]
    if clock.calendar_hole:
        # Reuse the root, which the entry taken last has left.
        clock.calendar_hole = 0
        sift_down(world, time_ns, cell)
        return
    times_ns = world.times_ns
    cells = world.cells
    node = clock.calendar_end
    clock.calendar_end = node + 1
    if node & 3 == 0:
        times_ns[at(node + 1)] = times_ns[at(node + 2)] = times_ns[at(node + 3)] = (
            NEVER_NS
        )
    while node > ROOT:
        parent = (node + 8) >> 2
        above_ns = times_ns[at(parent)]
        if above_ns < time_ns or (
            above_ns == time_ns and not precedes(world, cell, wide(cells[at(parent)]))
        ):
            break
        times_ns[at(node)] = above_ns
        cells[at(node)] = cells[at(parent)]
        node = parent
    times_ns[at(node)] = time_ns
    cells[at(node)] = cell


@inlined
def close_hole(world: World) -> None:
    """Move the calendar's last entry to the root, which the entry taken last has left."""
    clock = world.clock[0]
    clock.calendar_hole = 0
    end = clock.calendar_end - 1
    clock.calendar_end = end
    time_ns = world.times_ns[at(end)]
    cell = wide(world.cells[at(end)])
    world.times_ns[at(end)] = NEVER_NS
    if end > ROOT:
        sift_down(world, time_ns, cell)
