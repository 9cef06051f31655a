"""What each OSD holds of each placement group, and who serves it: the state that peering decides on."""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stripesim.models.coding import RedundancyScheme
from stripesim.sim.ceph.cluster import NO_OSD


class State(StrEnum):
    """States of a placement group, from well to ill.

    `STALE` until the cluster knows of a dead member; `WAIT`: members have peered, but one that may still run
    could serve reads on an old lease.
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
    INACTIVE = "inactive"
    INCOMPLETE = "incomplete"


STATES = tuple(State)


@dataclass
class Copy:
    """One OSD's copy of one shard of a placement group.

    It lacks the objects `missing`, and knows it; `corrupt` ones nobody has noticed. `missed_count` entries of
    the log are new to it; `backfill`: more than the others' logs hold, so that it is scanned as a whole.
    `cut_off` are objects that it lacks of writes that an interval's end cut off.
    """

    missing: set[int] = field(default_factory=set)
    corrupt: set[int] = field(default_factory=set)
    cut_off: set[int] = field(default_factory=set)
    backfill: bool = False
    missed_count: int = 0


@dataclass(frozen=True)
class Members:
    """Who serves a placement group in one interval.

    `acting` serves each shard, `joining` has to be brought up to date (`NO_OSD`: nobody): beside the former
    if it is far behind, else it is the former and serves what it has. The OSD of one of `leaders` may be the
    primary.
    """

    acting: tuple[int, ...]
    joining: tuple[int, ...]
    leaders: tuple[int, ...]

    @property
    def primary(self) -> int | None:
        """Shard whose OSD leads: the first that is there and may; None if nobody is."""
        return next(
            (shard for shard in self.leaders if self.acting[shard] != NO_OSD), None
        )

    @property
    def missing(self) -> frozenset[int]:
        """Shards that nobody serves."""
        return frozenset(
            shard for shard, osd in enumerate(self.acting) if osd == NO_OSD
        )

    @property
    def written(self) -> tuple[int, ...]:
        """The OSD that writes of each shard reach: who serves it, or else is brought up to date."""
        pairs = zip(self.acting, self.joining, strict=True)
        return tuple(serves if serves != NO_OSD else joins for serves, joins in pairs)

    @property
    def osds(self) -> frozenset[int]:
        """All OSDs that take part."""
        return frozenset((*self.acting, *self.joining)) - {NO_OSD}


class Group:
    """A placement group: its objects, the copies of its shards, and its interval.

    `leaders` are the shards whose OSD may be the primary; None: all. Its log has had `entries` so far, and is
    trimmed to `log_lengths` while the group is not clean, and while it is: whoever missed more than it holds
    is backfilled, the others are recovered by log. Up to `beside_count` entries behind they serve meanwhile.
    """

    def __init__(
        self,
        number: int,
        scheme: RedundancyScheme,
        up: Sequence[int],
        objects: Iterable[int],
        leaders: tuple[int, ...] | None = None,
        deletions: int = 0,
        *,
        entries: int = 0,
        log_lengths: tuple[int, int] = (0, 0),
        beside_count: int = 0,
    ) -> None:
        self._leaders = tuple(range(scheme.width)) if leaders is None else leaders
        self.number, self._log_lengths, self._beside_count = (
            number,
            log_lengths,
            beside_count,
        )
        self.objects = set(objects)
        # Objects that are gone but stand in the log: whoever gets that log has to note each.
        self.deleted = set(range(-deletions, 0))
        self._scheme = scheme
        self._replicated = scheme.kind == "replicated"
        self.up = tuple(up)
        self.copies: dict[tuple[int, int], Copy] = {
            (osd, self.content(shard)): Copy()
            for shard, osd in enumerate(up)
            if osd != NO_OSD
        }
        self.members = Members(self.up, (NO_OSD,) * len(self.up), self._leaders)
        self.interval = 0
        self.since_epoch = 1
        self.temp = False
        self.peered = True
        self.active = True
        # All entries of the log so far, and those that were trimmed.
        self._entries = self._trimmed = 0
        self._append(entries)
        # Who has served since it was last clean; since when it serves; when the last read lease ends [ns].
        self.past = set(self.members.osds)
        self.active_ns = 0
        self.lease_ns = 0

    def _append(self, count: int) -> None:
        """Add entries to the log, and trim it."""
        self._entries += count
        self._trimmed = max(
            self._trimmed, self._entries - self._log_lengths[self.is_clean]
        )

    def content(self, shard: int) -> int:
        """Return what a shard holds: itself, or the same in all copies."""
        return 0 if self._replicated else shard

    def aligned(
        self, raw: Sequence[int], is_up: Callable[[int], bool]
    ) -> tuple[int, ...]:
        """Put the OSDs that CRUSH names into shards: an erasure code's are fixed, copies keep their place."""
        chosen = [osd if osd != NO_OSD and is_up(osd) else NO_OSD for osd in raw]
        if not self._replicated:
            return tuple(chosen)
        listed = [osd for osd in chosen if osd != NO_OSD]
        kept = [osd if osd in listed else NO_OSD for osd in self.up]
        new = [osd for osd in listed if osd not in kept]
        return tuple(
            osd if osd != NO_OSD else (new.pop(0) if new else NO_OSD) for osd in kept
        )

    def decide(self, is_up: Callable[[int], bool]) -> Members:
        """Return who serves each shard, given who is up and what each holds."""
        used = {
            osd
            for osd in self.up
            if osd != NO_OSD and self._complete(osd, self.up.index(osd))
        }
        acting, joining = [], []
        for shard, osd in enumerate(self.up):
            if osd != NO_OSD and self._complete(osd, shard):
                acting.append(osd)
                joining.append(NO_OSD)
                continue
            joining.append(osd)
            acting.append(osd)
            if osd != NO_OSD:
                copy = self.copy_of(osd, shard)
                copy.backfill |= copy.missed_count > self._entries - self._trimmed
                if copy.backfill or copy.missed_count > self._beside_count:
                    acting[-1] = self._stand_in(shard, used, is_up)
            used.add(acting[-1])
        return Members(tuple(acting), tuple(joining), self._leaders)

    def _complete(self, osd: int, shard: int) -> bool:
        copy = self.copies.get((osd, self.content(shard)))
        return copy is not None and not copy.missing

    def _stand_in(
        self, shard: int, used: set[int], is_up: Callable[[int], bool]
    ) -> int:
        """Return an OSD that is no longer meant to hold a shard, but still does."""
        content = self.content(shard)
        for (osd, held), copy in sorted(self.copies.items(), key=lambda item: item[0]):
            if held == content and osd not in used and is_up(osd) and not copy.missing:
                return osd
        return NO_OSD

    def add_empty_copies(self) -> None:
        """Give every OSD that joins and holds nothing an empty copy."""
        for shard, osd in enumerate(self.up):
            if osd != NO_OSD and (osd, self.content(shard)) not in self.copies:
                missing = self.objects | self.deleted
                self.copies[osd, self.content(shard)] = Copy(
                    missing, missed_count=self._entries
                )

    def copy_of(self, osd: int, shard: int) -> Copy:
        """Return an OSD's copy of a shard."""
        return self.copies[osd, self.content(shard)]

    @property
    def joining_copies(self) -> dict[int, Copy]:
        """Copies that are brought up to date, by shard."""
        members = enumerate(self.members.joining)
        return {
            shard: self.copy_of(osd, shard) for shard, osd in members if osd != NO_OSD
        }

    @property
    def inside(self) -> dict[int, Copy]:
        """Those of them that serve meanwhile; the others are brought up to date beside the acting set."""
        acting, joining = self.members.acting, self.members.joining
        return {
            shard: copy
            for shard, copy in self.joining_copies.items()
            if acting[shard] == joining[shard]
        }

    @property
    def needs_stand_ins(self) -> bool:
        """Whether somebody is brought up to date beside the acting set."""
        return len(self.inside) < len(self.joining_copies)

    def members_for(self, item: int) -> Members:
        """Return who serves an object: those of the members that have it."""
        acting = list(self.members.acting)
        for shard, copy in self.inside.items():
            if item in copy.missing:
                acting[shard] = NO_OSD
        return replace(self.members, acting=tuple(acting))

    def holders(self, item: int, is_up: Callable[[int], bool]) -> dict[int, int]:
        """Return for each shard of an object an OSD that has it, the acting one where it does.

        For copies the shards are mere places: all holders, in order.
        """
        have = [
            (osd, content)
            for (osd, content), copy in self.copies.items()
            if item not in copy.missing and is_up(osd)
        ]
        serving = set(self.members.acting)
        have.sort(key=lambda pair: (pair[0] not in serving, pair[0]))
        if self._replicated:
            order = {osd: place for place, osd in enumerate(self.members.acting)}
            have.sort(key=lambda pair: (order.get(pair[0], len(order)), pair[0]))
            return {place: osd for place, (osd, _) in enumerate(have[: len(self.up)])}
        found: dict[int, int] = {}
        for osd, content in have:
            found.setdefault(content, osd)
        return found

    def decodable(self, item: int, keeps: Callable[[int], bool]) -> bool:
        """Tell whether the copies on some OSDs are enough to read an object, unnoticed rot included."""
        contents = {
            content
            for (osd, content), copy in self.copies.items()
            if keeps(osd) and item not in copy.missing and item not in copy.corrupt
        }
        if self._replicated:
            return bool(contents)
        return self._scheme.can_decode(frozenset(range(len(self.up))) - contents)

    def written(self, item: int, count: int) -> None:
        """Note that clients have written an object: copies that do not take part fall behind."""
        self.objects.add(item)
        self._append(count)
        taking_part = self.members.osds
        for (osd, _), copy in self.copies.items():
            if osd not in taking_part:
                copy.missing.add(item)
                copy.missed_count += count
            # Who is being brought up to date gets the write, but cannot apply it to what it lacks.

    def interrupted(
        self,
        item: int,
        touched: Set[int],
        reached: Set[int],
        is_up: Callable[[int], bool],
    ) -> bool:
        """Decide on a write that was cut off, of which the OSDs of some shards have an entry in their log.

        If what they have is enough to read the object, those that were to write and did not lack it;
        else they take it back. Tell whether it stays.

        See Ceph v16.2.15, ``src/osd/PGLog.h`` (``_merge_object_divergent_entries``) and
        ``src/osd/PeeringState.cc`` (``find_best_info``).
        """
        pairs = list(zip(self.members.acting, self.members.joining, strict=True))
        bound = self.members.written
        have = {
            shard
            for shard in reached
            if is_up(bound[shard])
            and item not in self.copies[bound[shard], self.content(shard)].missing
        }
        absent = {
            shard for shard, osd in enumerate(bound) if osd == NO_OSD or not is_up(osd)
        }
        if not have or not self._scheme.can_decode(
            frozenset(absent | (touched - have))
        ):
            return False
        written = {(osd, self.content(shard)) for shard in have for osd in pairs[shard]}
        self.objects.add(item)
        self._append(1)
        changed = {self.content(shard) for shard in touched}
        for (osd, content), copy in self.copies.items():
            if (osd, content) not in written and (
                osd not in self.members.osds or content in changed
            ):
                if osd in self.members.osds and is_up(osd) and item not in copy.missing:
                    copy.cut_off.add(item)
                copy.missing.add(item)
                copy.missed_count += 1
        return True

    @property
    def is_clean(self) -> bool:
        """Whether every shard has an OSD that is up to date and meant to hold it."""
        is_whole = self.members.acting == self.up and not self.joining_copies
        return self.active and is_whole and NO_OSD not in self.up

    def holds(self, osds: set[int]) -> bool:
        """Tell whether one of some OSDs has a copy."""
        return any(osd in osds for osd, _ in self.copies)

    def wipe(self, osd: int) -> None:
        """An OSD comes back with an empty device."""
        for holder, content in self.copies:
            if holder == osd:
                self.copies[holder, content] = Copy(
                    set(self.objects), missed_count=self._entries
                )

    def drop_strays(self, is_up: Callable[[int], bool]) -> None:
        """A clean placement group deletes the copies that OSDs hold beyond its members."""
        members = self.members.osds
        for osd, content in list(self.copies):
            if osd not in members and is_up(osd):
                del self.copies[osd, content]
