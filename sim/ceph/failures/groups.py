"""Placement groups: the copies of their shards, their members, and their logs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from stripesim.models.coding import RedundancyScheme
from stripesim.sim.ceph.cluster import NO_OSD


class State(StrEnum):
    """States of a PG, from well to ill.

    A PG is `STALE` until the cluster knows of a dead member, and in `WAIT` while a former member that may
    still run could serve reads on an old lease.
    """

    CLEAN = "active+clean"
    STALE = "stale"
    PEERING = "peering"
    WAIT = "active+wait"
    DEGRADED = "active+degraded"
    RECOVERY_WAIT = "active+recovery_wait"
    RECOVERING = "active+recovering"
    BACKFILL_WAIT = "active+backfill_wait"
    BACKFILLING = "active+backfilling"
    BACKFILL_TOOFULL = "active+backfill_toofull"
    INACTIVE = "inactive"
    INCOMPLETE = "incomplete"


STATES = tuple(State)
# 2⁶⁴ over the golden ratio, whose multiples are spread evenly.
_ODD: Final = 0x9E3779B97F4A7C15


@dataclass
class Copy:
    """One OSD's copy of one shard of a PG.

    The OSD knows that it lacks the `missing` objects. The `corrupt` ones are yet unnoticed. `missed_count`
    entries of the log are new to it. With `backfill` they are more than the log holds, and all objects are
    scanned. `cut_off` are missing objects of writes that the end of an interval cut off.
    """

    missing: set[int] = field(default_factory=set)
    corrupt: set[int] = field(default_factory=set)
    cut_off: set[int] = field(default_factory=set)
    backfill: bool = False
    missed_count: int = 0

    def miss(self, item: int, writes_count: int = 1) -> None:
        """Note writes of an object that did not reach the copy."""
        self.missing.add(item)
        self.missed_count += writes_count


@dataclass(frozen=True)
class ServingOsds:
    """The OSDs that serve a PG in one interval.

    `acting` serves each shard, `joining` is brought up to date (`NO_OSD`: none). A joining OSD that is not
    far behind is also the acting one, and serves the objects it has. The primary is the OSD of one of
    `leaders`.
    """

    acting: tuple[int, ...]
    joining: tuple[int, ...]
    leaders: tuple[int, ...]

    @property
    def primary(self) -> int | None:
        """Shard of the primary: the first served one of `leaders`, or None."""
        for shard in self.leaders:
            if self.acting[shard] != NO_OSD:
                return shard
        return None

    @property
    def primary_osd(self) -> int | None:
        """The primary, or None."""
        shard = self.primary
        return None if shard is None else self.acting[shard]

    @property
    def missing(self) -> frozenset[int]:
        """Shards that no OSD serves."""
        return frozenset(
            shard for shard, osd in enumerate(self.acting) if osd == NO_OSD
        )

    @property
    def served_count(self) -> int:
        """Shards that an OSD serves [count]."""
        return len(self.acting) - self.acting.count(NO_OSD)

    @property
    def written(self) -> tuple[int, ...]:
        """The OSD that writes of each shard reach: the acting one, else the one that joins."""
        pairs = zip(self.acting, self.joining, strict=True)
        return tuple(serves if serves != NO_OSD else joins for serves, joins in pairs)

    @property
    def has_joining(self) -> bool:
        """True if an OSD is brought up to date."""
        return self.joining.count(NO_OSD) < len(self.joining)

    @property
    def osds(self) -> frozenset[int]:
        """All OSDs that take part."""
        return frozenset((*self.acting, *self.joining)) - {NO_OSD}


@dataclass
class PgInterval:
    """A period in which a PG has the same members, up to a map that changes them.

    It began with map `epoch`. The PG has `peered` once its primary knows the copies of all members. It is
    `active` while it serves clients, since `active_ns`.
    """

    epoch: int = 1
    peered: bool = True
    active: bool = True
    active_ns: int = 0


class PgLog:
    """A PG's log of writes: how many entries it has had, and how many of them it still holds.

    Parameters
    ----------
    lengths
        Entries to which the log is trimmed while the PG is not clean, and while it is. An OSD that missed
        more is backfilled, others are recovered by log.
    entries_count
        Entries that the log has had before the run.
    deletions_count
        Objects that are gone but listed in the log: each OSD that gets the log has to note each.
    async_recovery_min
        Entries up to which an OSD that is behind serves while it is recovered.
    """

    def __init__(
        self,
        lengths: tuple[int, int] = (0, 0),
        *,
        entries_count: int = 0,
        deletions_count: int = 0,
        async_recovery_min: int = 0,
    ) -> None:
        self._lengths = lengths
        self.entries_count = entries_count
        self.deletions_count = deletions_count
        self.async_recovery_min = async_recovery_min
        self._trimmed_count = 0

    def append(self, count: int, *, is_clean: bool) -> None:
        """Add entries and trim the log."""
        self.entries_count += count
        self.trim(is_clean=is_clean)

    def trim(self, *, is_clean: bool) -> None:
        """Drop the entries beyond the length that the log has now."""
        excess = self.entries_count - self._lengths[is_clean]
        self._trimmed_count = max(self._trimmed_count, excess)

    @property
    def held_count(self) -> int:
        """Entries that the log holds."""
        return self.entries_count - self._trimmed_count


class Group:
    """A placement group: its objects, the copies of its shards, its members and its interval.

    Parameters
    ----------
    number
        Number of the PG.
    scheme
        Redundancy of its pool.
    up
        OSD of each shard as the first map has it, `NO_OSD` for none.
    objects
        Its objects.
    leaders
        Shards whose OSD may be the primary, None for all.
    log
        Its log as the run begins, None for one that holds nothing.
    first_osd
        For replicas, the OSD that CRUSH lists first. It leads if it is complete, wherever it is in `up`.
    recovered_one_in
        Of the objects that clients store, one in this many is recovered here. 0: none.
    """

    def __init__(
        self,
        number: int,
        scheme: RedundancyScheme,
        up: Sequence[int],
        objects: Iterable[int],
        leaders: tuple[int, ...] | None = None,
        *,
        log: PgLog | None = None,
        first_osd: int = NO_OSD,
        recovered_one_in: int = 1,
    ) -> None:
        self.number = number
        self.scheme = scheme
        self._min_size = scheme.min_size
        self._leaders = tuple(range(scheme.width)) if leaders is None else leaders
        self.up = tuple(up)
        self.first_osd = first_osd
        self._recovered_one_in = recovered_one_in
        self.objects = set(objects)
        self.log = PgLog() if log is None else log
        self.deleted = set(range(-self.log.deletions_count, 0))
        self.copies: dict[tuple[int, int], Copy] = {
            key: Copy() for key in self._up_keys()
        }
        no_joining = (NO_OSD,) * len(self.up)
        self.members = ServingOsds(self.up, no_joining, self._leaders)
        self.interval = PgInterval()
        # The acting set that the current or the next map names instead of the up set (``pg_temp``).
        self.pg_temp: tuple[int, ...] | None = None
        self.log.trim(is_clean=self.is_clean)

    # Copies.

    @property
    def is_replicated(self) -> bool:
        """True if all shards have the same content."""
        return self.scheme.kind == "replicated"

    def content(self, shard: int) -> int:
        """Return the content of a shard: its own number, or 0 for each replica."""
        return 0 if self.is_replicated else shard

    def copy_of(self, osd: int, shard: int) -> Copy:
        """Return an OSD's copy of a shard."""
        return self.copies[osd, self.content(shard)]

    def copies_on(self, osd: int) -> list[Copy]:
        """Return the copies on an OSD."""
        return [copy for (holder, _), copy in self.copies.items() if holder == osd]

    def add_empty_copies(self) -> None:
        """Give every OSD of the up set that holds nothing an empty copy."""
        for key in self._up_keys():
            if key not in self.copies:
                missing = self.objects | self.deleted
                self.copies[key] = Copy(missing, missed_count=self.log.entries_count)

    def wipe(self, osd: int) -> None:
        """Empty the copies of an OSD that comes back with a new device."""
        for key in self.copies:
            if key[0] == osd:
                self.copies[key] = Copy(
                    set(self.objects), missed_count=self.log.entries_count
                )

    def forget(self, osds: Set[int]) -> None:
        """Drop the copies of OSDs that are gone."""
        self.copies = {
            key: copy for key, copy in self.copies.items() if key[0] not in osds
        }

    def drop_strays(self, up: Set[int]) -> list[tuple[int, int]]:
        """Forget the copies beyond those of a clean PG; return the OSD and the objects [count] of each."""
        strays = [
            key
            for key in sorted(self.copies.keys() - set(self._up_keys()))
            if key[0] in up
        ]
        dropped = []
        for key in strays:
            copy = self.copies.pop(key)
            dropped.append((key[0], len(self.objects - copy.missing)))
        return dropped

    def is_held_by(self, osds: Set[int]) -> bool:
        """Return True if one of some OSDs has a copy."""
        return any(osd in osds for osd, _ in self.copies)

    def holders(self, item: int, up: Set[int]) -> dict[int, int]:
        """Return for each shard of an object an OSD that has it, the acting one if it does.

        For replicas the shards are mere positions: all holders, in order.
        """
        keys = [
            (osd, content)
            for (osd, content), copy in self.copies.items()
            if osd in up and item not in copy.missing
        ]
        if self.is_replicated:
            position = {osd: shard for shard, osd in enumerate(self.members.acting)}
            osds = [osd for osd, _ in keys]
            osds.sort(key=lambda osd: (position.get(osd, len(position)), osd))
            return dict(enumerate(osds[: len(self.up)]))
        serving = set(self.members.acting)
        keys.sort(key=lambda key: (key[0] not in serving, key[0]))
        holder_of: dict[int, int] = {}
        for osd, content in keys:
            holder_of.setdefault(content, osd)
        return holder_of

    def is_decodable(self, item: int, gone: Set[int]) -> bool:
        """Return True if copies on OSDs that are not gone suffice to read an object.

        Corrupt shards do not count, noticed or not.
        """
        contents = {
            content
            for (osd, content), copy in self.copies.items()
            if osd not in gone and item not in copy.missing and item not in copy.corrupt
        }
        if self.is_replicated:
            return bool(contents)
        return self.scheme.can_decode(frozenset(range(len(self.up))) - contents)

    def is_misplaced(self, item: int, up: Set[int]) -> bool:
        """Return True if OSDs that are up have every shard of an object, on whichever of them."""
        holders = {
            osd if self.is_replicated else content
            for (osd, content), copy in self.copies.items()
            if osd in up and item not in copy.missing and item not in copy.corrupt
        }
        return len(holders) >= len(self.up)

    # Members.

    def choose_members(self, up: Set[int]) -> ServingOsds:
        """Return the members, given the OSDs that are up and their copies."""
        complete = [self._is_complete(osd, shard) for shard, osd in enumerate(self.up)]
        used = {osd for osd, serves in zip(self.up, complete, strict=True) if serves}
        outside = self._recovered_outside(complete)
        acting = []
        joining = []
        for shard, osd in enumerate(self.up):
            if complete[shard]:
                acting.append(osd)
                joining.append(NO_OSD)
            else:
                substitute = NO_OSD
                if shard not in outside:
                    substitute = self._substitute(shard, used, up)
                used.add(substitute)
                acting.append(substitute)
                joining.append(osd)
        return ServingOsds(tuple(acting), tuple(joining), self._leaders_now())

    def members_for(self, item: int) -> ServingOsds:
        """Return the members that serve an object: those that have it."""
        acting = list(self.members.acting)
        for shard, copy in self.joining_inside.items():
            if item in copy.missing:
                acting[shard] = NO_OSD
        return replace(self.members, acting=tuple(acting))

    @property
    def joining_copies(self) -> dict[int, Copy]:
        """Copies that are brought up to date, by shard."""
        return {
            shard: self.copy_of(osd, shard)
            for shard, osd in enumerate(self.members.joining)
            if osd != NO_OSD
        }

    @property
    def joining_inside(self) -> dict[int, Copy]:
        """Joining copies whose OSDs serve meanwhile, by shard."""
        members = self.members
        return {
            shard: copy
            for shard, copy in self.joining_copies.items()
            if members.acting[shard] == members.joining[shard]
        }

    @property
    def needs_pg_temp(self) -> bool:
        """True if an OSD outside the acting set is brought up to date."""
        return len(self.joining_inside) < len(self.joining_copies)

    def is_named(self, up: Set[int]) -> bool:
        """Return True if the map, or the next one, names those OSDs to act that do, as far as they are up."""
        named = self.up if self.pg_temp is None else self.pg_temp
        return self.members.acting == tuple(
            osd if osd in up else NO_OSD for osd in named
        )

    @property
    def is_backfilled(self) -> bool:
        """True if a joining copy is too far behind for the log."""
        return any(copy.backfill for copy in self.joining_copies.values())

    @property
    def is_clean(self) -> bool:
        """True if every shard is up to date on its OSD of the up set."""
        members = self.members
        is_complete = members.acting == self.up and NO_OSD not in members.acting
        return self.interval.active and is_complete and not members.has_joining

    # Writes of clients.

    def note_writes(self, counts: Mapping[int, int]) -> None:
        """Note completed writes, by object: copies that do not take part fall behind.

        A joining OSD gets the write too, but cannot apply it to an object it lacks.
        """
        self.log.append(sum(counts.values()), is_clean=self.is_clean)
        kept = [item for item in counts if not self._is_left_out(item)]
        self.objects.update(kept)
        members = self.members.osds
        left_out = [
            copy for (osd, _), copy in self.copies.items() if osd not in members
        ]
        for item in kept:
            for copy in left_out:
                copy.miss(item, counts[item])
        if self._recovered_one_in:
            # An OSD is as far behind as with all objects.
            others_count = sum(counts.values()) - sum(counts[item] for item in kept)
            for copy in left_out:
                copy.missed_count += others_count

    def settle_cut_off_write(
        self, item: int, touched: Set[int], reached: Set[int], alive: Set[int]
    ) -> bool:
        """Settle a write that was cut off; return True if it stays.

        It stays if those of the `reached` shards whose OSDs are `alive` suffice to read the object. Then the
        other `touched` shards lack it. Otherwise the OSDs that have it roll it back.

        References
        ----------
        Ceph v16.2.15, ``src/osd/PGLog.h`` (``_merge_object_divergent_entries``) and
        ``src/osd/PeeringState.cc`` (``find_best_info``).
        """
        if self._is_left_out(item):
            return False
        osds = self.members.written
        have = {
            shard
            for shard in reached
            if osds[shard] in alive
            and item not in self.copy_of(osds[shard], shard).missing
        }
        dead = {shard for shard, osd in enumerate(osds) if osd not in alive}
        if not have or not self.scheme.can_decode(frozenset(dead | (touched - have))):
            return False
        self.objects.add(item)
        self.log.append(1, is_clean=self.is_clean)
        living_members = self.members.osds & alive
        for osd, copy in self._copies_without(have, touched):
            if osd in living_members and item not in copy.missing:
                copy.cut_off.add(item)
            copy.miss(item)
        return True

    def _is_left_out(self, item: int) -> bool:
        if self._recovered_one_in == 1 or item in self.objects:
            return False
        return not self._recovered_one_in or bool(
            _scattered(item) % self._recovered_one_in
        )

    def _copies_without(
        self, have: Set[int], touched: Set[int]
    ) -> Iterator[tuple[int, Copy]]:
        """Yield OSD and copy of each shard that lacks a write."""
        acting = self.members.acting
        joining = self.members.joining
        members = self.members.osds
        written = {
            (osd, self.content(shard))
            for shard in have
            for osd in (acting[shard], joining[shard])
        }
        changed = {self.content(shard) for shard in touched}
        for (osd, content), copy in self.copies.items():
            is_concerned = content in changed or osd not in members
            if is_concerned and (osd, content) not in written:
                yield osd, copy

    def _up_keys(self) -> list[tuple[int, int]]:
        return [
            (osd, self.content(shard))
            for shard, osd in enumerate(self.up)
            if osd != NO_OSD
        ]

    def _leaders_now(self) -> tuple[int, ...]:
        """Return the shards whose OSD may be the primary, by preference."""
        if not self.is_replicated or self.first_osd not in self.up:
            return self._leaders
        first = self.up.index(self.first_osd)
        return (first, *(shard for shard in self._leaders if shard != first))

    def _is_complete(self, osd: int, shard: int) -> bool:
        copy = self.copies.get((osd, self.content(shard)))
        return copy is not None and not copy.missing

    def _recovered_outside(self, complete: Sequence[bool]) -> set[int]:
        """Return the shards that no OSD serves while theirs is recovered by the log.

        These are the shards whose OSDs are furthest behind, as many as `min_size` allows.

        References
        ----------
        Ceph v16.2.15, ``src/osd/PeeringState.cc`` (``choose_async_recovery_ec``,
        ``choose_async_recovery_replicated``).
        """
        missed = {
            shard: self.copy_of(osd, shard).missed_count
            for shard, osd in enumerate(self.up)
            if osd != NO_OSD
            and not complete[shard]
            and not self._is_beyond_log(osd, shard)
        }
        behind = [
            shard
            for shard, missed_count in missed.items()
            if missed_count > self.log.async_recovery_min
        ]
        behind.sort(key=lambda shard: -missed[shard])
        served_count = len(self.up) - self.up.count(NO_OSD)
        return set(behind[: max(0, served_count - self._min_size)])

    def _is_beyond_log(self, osd: int, shard: int) -> bool:
        """Return True if an OSD missed more writes than the log holds, and is backfilled."""
        copy = self.copy_of(osd, shard)
        if copy.missed_count > self.log.held_count:
            copy.backfill = True
        return copy.backfill

    def _substitute(self, shard: int, used: Set[int], up: Set[int]) -> int:
        """Return the OSD that serves a shard until that of the up set is up to date."""
        osd = self.up[shard]
        if osd != NO_OSD and self._is_beyond_log(osd, shard):
            return self._stray(shard, used, up)
        return osd

    def _stray(self, shard: int, used: Set[int], up: Set[int]) -> int:
        """Return the first OSD outside the up set that still holds a shard, or `NO_OSD`."""
        for (osd, content), copy in sorted(
            self.copies.items(), key=lambda entry: entry[0]
        ):
            if content != self.content(shard) or copy.missing:
                continue
            if osd in up and osd not in used:
                return osd
        return NO_OSD


def _scattered(number: int) -> int:
    """Return a number without the pattern of consecutive ones, such as heads and tails of objects.

    >>> sum(_scattered(number) % 10 == 0 for number in range(0, 20_000, 2))
    1002
    """
    return number * _ODD % (1 << 64) >> 40
