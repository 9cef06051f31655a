"""Schedule the backfill of full-size PGs, each of which first waits for reservations on its OSDs."""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from stripesim.scenarios.rehearsal.exact_movement import ExactMovement
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.background.reservations import Reservations


class Backfill(NamedTuple):
    """A PG to backfill, with its acting primary and its target OSDs."""

    lead: int
    targets: tuple[int, ...]


def backfills_of(exact: ExactMovement) -> list[Backfill]:
    """Return the PGs that a change moves, in ascending order."""
    targets_of: dict[int, set[int]] = {}
    movement = exact.movement
    for group, osd in zip(
        movement.groups.tolist(), movement.targets.tolist(), strict=True
    ):
        targets_of.setdefault(group, set()).add(osd)
    backfills = []
    for group in sorted(targets_of):
        # The old members act until the new ones are filled (pg_temp).
        lead = next(osd for osd in exact.up_before[group] if osd != NO_OSD)
        targets = tuple(sorted(targets_of[group] - {lead}))
        backfills.append(Backfill(lead, targets))
    return backfills


def schedule_s(
    backfills: Sequence[Backfill], *, group_s: float, slots: int, osds: int
) -> float:
    """Return the time until all PGs are backfilled [s].

    Parameters
    ----------
    backfills
        The PGs to backfill.
    group_s
        Time to backfill one PG once it has its reservations [s].
    slots
        Reservations that each OSD grants as primary, and again as target (``osd_max_backfills``).
    osds
        Number of OSDs.
    """
    reservations = Reservations(slots, osds)
    running: list[tuple[float, int]] = []
    now_s = 0.0
    for number, backfill in enumerate(backfills):
        reservations.ask_primary(number, 0, backfill.lead)
    while True:
        for number in reservations.granted():
            if not reservations.ask_next(number, 0, backfills[number].targets):
                heapq.heappush(running, (now_s + group_s, number))
        if not running:
            return now_s
        now_s, number = heapq.heappop(running)
        reservations.release(number, *backfills[number])
