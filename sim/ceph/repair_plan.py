"""The background stream that rebuilds what lost OSDs held."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.paths import PathContext, repair_path
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.program import RequestChunk


class RepairPlanner:
    """Plans the repair of every object that had a shard on a lost OSD.

    Parameters
    ----------
    pool : Pool
        The pool in its degraded state: `NO_OSD` in the slots that were lost.
    book : Book
        Receives templates and binding rows.
    targets : ndarray of int64, shape (groups, width)
        The acting sets after CRUSH has replaced the lost OSDs.
    image_objects : int
        Objects of the image, numbered from 0.
    object_bytes : int
        Size of each [B].
    stay_down : collection of int
        OSDs that are down but not out: what they held is missing and not rebuilt.

    Raises
    ------
    ValueError
        If CRUSH has found no new home for a lost shard of some placement group.

    Notes
    -----
    The stream is a closed loop as deep as it has requests: the throttles are the recovery
    slots of the primaries and the reservations of the targets, as in the daemon. Objects
    come in the order of their numbers, which over placement groups is no order at all.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        *,
        targets: IntArray,
        image_objects: int,
        object_bytes: int,
        stay_down: Collection[int] = (),
    ) -> None:
        acting = pool.cluster.acting
        hurt = np.flatnonzero((acting == NO_OSD).any(axis=1))
        filled = acting[hurt]
        for index, group in enumerate(hurt.tolist()):
            filled[index] = _fill(acting[group], targets[group], stay_down, group)
        rebuilt = filled != acting[hurt]
        # A placement group whose missing OSDs stay down has nowhere to rebuild to, and nothing to do.
        chosen = rebuilt.any(axis=1)
        rows, filled, rebuilt = hurt[chosen], filled[chosen], rebuilt[chosen]
        self._bindings = np.full(len(acting), -1, dtype=np.int64)
        self._bindings[rows] = book.add_bindings(
            pool.cluster.bind(filled, pool.primaries[rows], rows.astype(np.int64))
        )
        self._templates = np.full(len(acting), -1, dtype=np.int64)
        found: dict[tuple[int, tuple[int, ...]], int] = {}
        for index, group in enumerate(rows.tolist()):
            slots = np.flatnonzero(rebuilt[index])
            # Reservations are taken in the order of the OSDs they are at, the same for all objects:
            # otherwise two objects could each hold what the other waits for.
            order = tuple(slots[np.argsort(filled[index, slots])].tolist())
            key = (int(pool.views[group]), order)
            if key not in found:
                found[key] = book.add(_compile(pool.contexts[key[0]], order, object_bytes))
            self._templates[group] = found[key]
        objects = np.arange(image_objects, dtype=np.int64)
        groups = pool.groups_of(np.zeros_like(objects), objects)
        self.groups: IntArray = groups[self._templates[groups] >= 0]
        self.depth = max(1, len(self.groups))
        self._at = 0
        shards = np.zeros(len(acting), dtype=np.int64)
        shards[rows] = rebuilt.sum(axis=1)
        self.lost_bytes = self._shard_bytes(pool, object_bytes) * int(shards[self.groups].sum())

    @staticmethod
    def _shard_bytes(pool: Pool, object_bytes: int) -> int:
        if pool.scheme.kind == "erasure":
            return pool.geometry.stripe_count(object_bytes) * pool.stripe_unit_bytes
        return object_bytes

    def take(self, count: int) -> RequestChunk:
        """Plan the next objects."""
        groups = self.groups[self._at : self._at + count]
        self._at += len(groups)
        return RequestChunk(
            templates=self._templates[groups],
            bindings=self._bindings[groups],
            groups=groups,
        )


def _fill(acting: IntArray, target: IntArray, stay_down: Collection[int], group: int) -> IntArray:
    """Put new OSDs into the lost slots: the same slot if CRUSH kept the order, else any new one."""
    held = set(acting[acting != NO_OSD].tolist())
    chosen = target[target != NO_OSD].tolist()
    new = [osd for osd in chosen if osd not in held and osd not in stay_down]
    # What CRUSH still maps to an OSD that is down but not out is not rebuilt.
    slots = np.flatnonzero(acting == NO_OSD).tolist()
    slots.sort(key=lambda slot: int(target[slot]) in stay_down)
    filled = acting.copy()
    for slot in slots[: len(slots) - sum(osd in stay_down for osd in chosen)]:
        if not new:
            raise ValueError(
                f"repair: placement group {group:x}: CRUSH found no new OSD for shard {slot}; "
                "wanted a spare failure domain"
            )
        here = int(target[slot])
        filled[slot] = new.pop(new.index(here) if here in new else 0)
    return filled


def _compile(context: PathContext, lost: tuple[int, ...], object_bytes: int) -> Template:
    sources = replace(context, missing=context.missing - set(lost))
    return repair_path(sources, lost=lost, object_size_bytes=object_bytes)
