"""Queues of the compiled engine, in order of arrival or shared by classes. Part of the inner loop.

Read with ``simpy/queues.py``.

`World.looks` is a tree of minima that holds when to look at each shared queue. Its leaves are
the times of the queues, and each node is the lesser of its two children. The root has index 1.
Few runs have such queues, so their functions are not inlined.
"""

from typing import Any

import numpy as np

from stripesim.sim.engine.compiled.opcodes import (
    at,
    inlined,
    mixed,
    outlined,
    special_of,
    wide,
)
from stripesim.sim.engine.compiled.world import NEVER_NS, NOTHING, World
from stripesim.sim.engine.shares import (
    FAIR,
    IDLE_AGE_NS,
    MCLOCK,
    NS_PER_S,
    QUOTA,
    TAG_NEVER,
    WEIGHT_BITS,
    WPQ,
)

_WEIGHT_SCALE = 1 << WEIGHT_BITS


@inlined
def wait(world: World, resource: Any, cell: int) -> None:
    """Enqueue a step."""
    resource.waited_ns -= world.clock[0].now_ns
    world.links[at(cell)] = NOTHING
    if resource.waiting:
        world.links[at(resource.last)] = cell
    else:
        resource.first = cell
    resource.last = cell
    resource.waiting += 1


@inlined
def first(world: World, resource: Any) -> int:
    """Dequeue the first step."""
    resource.waited_ns += world.clock[0].now_ns
    cell = resource.first
    resource.first = world.links[at(cell)]
    resource.waiting -= 1
    return int(wide(cell))


@inlined
def _increment(cost: int, rate: int, scale: int) -> int:
    """Return the increment of a tag, as `shares.increment`."""
    return int((cost * scale + (rate >> 1)) // rate)


@inlined
def _weight_clock(now_ns: int) -> int:
    """Convert a time to the unit of weight tags, as `shares.weight_clock`."""
    return int(
        (now_ns // NS_PER_S << WEIGHT_BITS)
        + ((now_ns % NS_PER_S) << WEIGHT_BITS) // NS_PER_S
    )


@inlined
def _tag(world: World, line: Any) -> None:
    cost = special_of(world, wide(line.first)).cost
    joined_ns = world.joined_ns[at(line.first)]
    line.seen_ns = world.clock[0].now_ns
    if line.reservation:
        earliest_ns = line.reservation_ns + _increment(cost, line.reservation, NS_PER_S)
        line.reservation_ns = max(joined_ns, earliest_ns)
    if line.limit:
        line.limit_ns = max(
            joined_ns, line.limit_ns + _increment(cost, line.limit, NS_PER_S)
        )
    if line.weight:
        earliest = line.proportion + _increment(cost, line.weight, _WEIGHT_SCALE)
        line.proportion = max(_weight_clock(joined_ns), earliest)


@inlined
def _catch_up(world: World, share: Any, own: int) -> None:
    now_ns = world.clock[0].now_ns
    least = TAG_NEVER
    for number in range(share.first_line, share.first_line + share.lines):
        line = world.lines[at(number)]
        if number == own or line.weight == 0 or line.strict:
            continue
        if line.waiting or now_ns - line.seen_ns < IDLE_AGE_NS:
            least = min(least, line.proportion + line.ahead)
    if least != TAG_NEVER:
        world.lines[at(own)].ahead = least - _weight_clock(now_ns)


@outlined
def join(world: World, index: int, cell: int) -> None:
    """Enqueue a step at a resource shared by classes."""
    clock = world.clock[0]
    resource = world.resources[at(index)]
    share = world.shares[at(resource.share - 1)]
    special = special_of(world, cell)
    has_classes = share.kind not in (FAIR, QUOTA)
    own = share.first_line + (special.share_class if has_classes else 0)
    line = world.lines[at(own)]
    tagged = not line.strict and share.kind == MCLOCK
    if not line.strict and share.kind == WPQ:
        share.cost_max = max(share.cost_max, special.cost)
    if tagged and line.waiting == 0 and clock.now_ns - line.seen_ns >= IDLE_AGE_NS:
        _catch_up(world, share, own)
    resource.waited_ns -= clock.now_ns
    resource.waiting += 1
    world.joined_ns[at(cell)] = share.virtual_ns if share.kind == FAIR else clock.now_ns
    world.links[at(cell)] = NOTHING
    if line.waiting:
        world.links[at(line.last)] = cell
    else:
        line.first = cell
    line.last = cell
    line.waiting += 1
    if tagged and line.waiting == 1:
        _tag(world, line)


@inlined
def first_of_line(world: World, resource: Any, line: Any) -> int:
    """Dequeue the first step of a class."""
    resource.waited_ns += world.clock[0].now_ns
    resource.waiting -= 1
    cell = line.first
    line.first = world.links[at(cell)]
    line.waiting -= 1
    return int(wide(cell))


@inlined
def _next_draw(world: World, share: Any) -> int:
    """Return the next draw of a queue, as `draws.share_draw`."""
    share.drawn += 1
    own = mixed(np.uint64(share.resource << 40 | share.drawn))
    return np.int64(mixed(world.clock[0].seed_state ^ own) >> np.uint64(1))  # type: ignore[return-value]


@inlined
def _draw(world: World, share: Any) -> int:
    total = waiting = 0
    last = NOTHING
    for number in range(share.first_line, share.first_line + share.lines):
        if world.lines[at(number)].waiting:
            total += world.lines[at(number)].weight
            waiting += 1
            last = number
    while waiting > 1:
        drawn = _next_draw(world, share) % total
        for number in range(share.first_line, share.first_line + share.lines):
            if world.lines[at(number)].waiting:
                drawn -= world.lines[at(number)].weight
                if drawn < 0:
                    last = number
                    break
        worth = (
            share.cost_max
            - special_of(world, wide(world.lines[at(last)].first)).cost * 9 // 10
        )
        if share.cost_max == 0 or _next_draw(world, share) % share.cost_max <= worth:
            break
    return last


@inlined
def _take_tagged(world: World, resource: Any, share: Any) -> int:
    now_ns = world.clock[0].now_ns
    reserved = ready = NOTHING
    for number in range(share.first_line, share.first_line + share.lines):
        line = world.lines[at(number)]
        if line.waiting == 0:
            continue
        due = line.reservation and line.reservation_ns <= now_ns
        if due and (
            reserved == NOTHING
            or line.reservation_ns < world.lines[at(reserved)].reservation_ns
        ):
            reserved = number
        if line.weight and line.limit_ns <= now_ns:
            if ready == NOTHING:
                ready = number
            else:
                best = world.lines[at(ready)]
                if line.proportion + line.ahead < best.proportion + best.ahead:
                    ready = number
    if reserved == NOTHING and ready == NOTHING:
        return NOTHING
    line = world.lines[at(ready if reserved == NOTHING else reserved)]
    cell = first_of_line(world, resource, line)
    if line.waiting:
        _tag(world, line)
    if reserved == NOTHING and line.reservation:
        # Service by weight does not count against the reservation.
        line.reservation_ns -= _increment(
            special_of(world, cell).cost, line.reservation, NS_PER_S
        )
    return cell


@outlined
def take(world: World, index: int) -> int:
    """Dequeue the next step that may be served now, or none."""
    resource = world.resources[at(index)]
    share = world.shares[at(resource.share - 1)]
    if resource.waiting == 0:
        return NOTHING
    strict = NOTHING
    for number in range(share.first_line, share.first_line + share.lines):
        line = world.lines[at(number)]
        if not line.waiting or not line.strict:
            continue
        if strict == NOTHING or line.strict > world.lines[at(strict)].strict:
            strict = number
    if strict == NOTHING:
        if share.kind != WPQ:
            return _take_tagged(world, resource, share)
        strict = _draw(world, share)
    return first_of_line(world, resource, world.lines[at(strict)])


@outlined
def take_quota(world: World, index: int) -> int:
    """Dequeue the first step, unless the quota of the period is used up."""
    resource = world.resources[at(index)]
    share = world.shares[at(resource.share - 1)]
    if resource.waiting == 0:
        return NOTHING
    period = (world.clock[0].now_ns + share.offset_ns) // share.period_ns
    refilled_ns = share.left_ns + (period - share.period) * share.quota_ns
    share.left_ns = min(share.quota_ns, refilled_ns)
    share.period = period
    if share.left_ns <= 0:
        return NOTHING
    return first_of_line(world, resource, world.lines[at(share.first_line)])


@outlined
def next_ns(world: World, index: int) -> int:
    """Return when a step may be served, if none may be now."""
    share = world.shares[at(world.resources[at(index)].share - 1)]
    if share.kind == QUOTA:
        periods = -share.left_ns // share.quota_ns + 1
        return int((share.period + periods) * share.period_ns - share.offset_ns)
    least_ns = NEVER_NS
    for number in range(share.first_line, share.first_line + share.lines):
        line = world.lines[at(number)]
        if line.waiting and line.reservation:
            least_ns = min(least_ns, line.reservation_ns)
        if line.waiting and line.weight:
            least_ns = min(least_ns, line.limit_ns)
    return least_ns


@inlined
def next_signal(world: World) -> None:
    """Update the time of the next look, arrival or moment of the director.

    The calendar does not hold these.
    """
    clock = world.clock[0]
    least_ns = min(clock.direct_ns, clock.look_ns)
    for index in range(len(world.streams)):
        least_ns = min(least_ns, world.streams[at(index)].arrival_ns)
    clock.signal_ns = least_ns


@outlined
def set_look(world: World, number: int, time_ns: int) -> None:
    """Set the next look at a queue, by its index in `World.shares`. `NEVER_NS` for none."""
    looks = world.looks
    node = len(looks) // 2 + number
    if looks[at(node)] == time_ns:
        return
    looks[at(node)] = time_ns
    while node > 1:
        node >>= 1
        looks[at(node)] = min(looks[at(2 * node)], looks[at(2 * node + 1)])
    if world.clock[0].look_ns != looks[1]:
        world.clock[0].look_ns = looks[1]
        next_signal(world)


@inlined
def looked_at(world: World) -> int:
    """Return the resource of the next queue to look at, the first of equal times."""
    looks = world.looks
    node = 1
    while 2 * node < len(looks):
        node *= 2
        if looks[at(node)] != looks[1]:
            node += 1
    return int(world.shares[at(node - len(looks) // 2)].resource)
