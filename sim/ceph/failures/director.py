"""The director: from a failure to a clean cluster, placement group by placement group."""

from collections.abc import Iterator, Sequence

import numpy as np

from stripesim.models.recovery import min_size
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.failures.agenda import Agenda
from stripesim.sim.ceph.failures.groups import Group, Members, State
from stripesim.sim.ceph.failures.monitor import Change, Monitor
from stripesim.sim.ceph.failures.outages import Outages
from stripesim.sim.ceph.failures.recovery import Priority, Recovery
from stripesim.sim.ceph.failures.schedule import FaultPlan
from stripesim.sim.ceph.failures.scrubs import Scrubs
from stripesim.sim.ceph.failures.timeline import Timeline, osd_names
from stripesim.sim.ceph.failures.work import NOTES, OperationBook, RecoveryFeed
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.ceph.planner import Foreground
from stripesim.sim.ceph.pool import Book, Pool
from stripesim.sim.engine.graph import COUNTER_INDEX, IntArray
from stripesim.sim.engine.program import (
    PENDING,
    Action,
    Begun,
    Progress,
    Report,
    SetGroup,
    Wake,
)

# Notes of one placement group in flight: two rounds for one interval, in blocks where others stand in.
_NOTES_MAX = 8
# Writes of an object whose history is unknown: more than any log holds.
_LONG_AGO = 1 << 20


class _Writer:
    """Finds what one stream of the foreground has written since the last look, and what it is writing."""

    def __init__(self, client: Foreground, stream: int) -> None:
        self._client, self._stream = client, stream
        self._seen = np.zeros(0, dtype=bool)
        self._ended = 0

    def written(self, progress: Progress) -> IntArray:
        """Return placement group and object of each write that completed since, shape (2, writes)."""
        completed = progress.completed_ns(self._stream)[self._ended :]
        seen = np.zeros(len(completed), dtype=bool)
        seen[: len(self._seen)] = self._seen
        fresh = np.flatnonzero((completed >= 0) & ~seen)
        seen |= completed != PENDING
        # What lies before the oldest request that has not ended need not be looked at again.
        ended = int(seen.argmin()) if not seen.all() else len(seen)
        first, self._ended, self._seen = self._ended, self._ended + ended, seen[ended:]
        if not len(fresh):
            return np.zeros((2, 0), dtype=np.int64)
        planned = self._client.planned
        fresh = fresh[planned.is_write[first + fresh]] + first
        return np.stack([planned.groups[fresh], planned.objects[fresh]])

    def writing(self, progress: Progress) -> Iterator[tuple[int, int, Begun]]:
        """Yield placement group and object of the writes in flight, and what has begun, the last first."""
        planned = self._client.planned
        for one in sorted(progress.begun(self._stream), key=lambda one: -one.number):
            if planned.is_write[one.number]:
                yield (
                    int(planned.groups[one.number]),
                    int(planned.objects[one.number]),
                    one,
                )


class FaultDirector:
    """Makes things fail and lets the cluster deal with it, as Ceph's monitors and OSDs do.

    The foreground's `clients` are the first streams of the run; `feed_stream` has the recovery operations,
    the next one what members write about their intervals.

    Failure → silence or refused connections → reports → down in a new map → its placement groups peer (held)
    → they serve without the lost shards, if `min_size` are left → out → CRUSH names new OSDs → peering, with
    the old members as stand-ins (``pg_temp``) → reservations → one object after another → a last map and
    peering → clean.

    See Ceph v16.2.15, ``src/osd/PeeringState.cc``, ``src/osd/OSD.cc``, ``src/mon/OSDMonitor.cc``.
    """

    def __init__(
        self,
        pool: Pool,
        book: Book,
        plan: FaultPlan,
        layout: Layout,
        clients: Sequence[Foreground],
        *,
        feed_stream: int,
    ) -> None:
        cluster = pool.cluster
        plan.check(cluster.osd_hosts)
        if not np.array_equal(plan.up_sets(()), cluster.acting):
            raise ValueError(
                "faults: up_sets: got other sets for no OSD out than the pool has, wanted the same"
            )
        self._pool, self._book, self._plan, self._layout = pool, book, plan, layout
        self._writers = [
            _Writer(client, stream) for stream, client in enumerate(clients)
        ]
        self._feed_stream = feed_stream
        self._model = plan.model
        self._min_size = min_size(
            kind=pool.scheme.kind, k=pool.scheme.k, width=pool.scheme.width
        )
        self.timeline = Timeline(cluster.groups)
        self._agenda = Agenda()
        self._monitor = Monitor(
            plan.model,
            self._agenda,
            cluster.osd_hosts,
            plan.osd_racks,
            self._on_map,
            self.timeline.note,
            plan.seed,
        )
        # When the cluster's status shows each placement group as clean [ns].
        self._seen_clean_ns: dict[int, int] = {}
        self._monitor.up_thru = dict.fromkeys(range(cluster.osds), 1)
        self.feed = RecoveryFeed(cluster.osds * plan.model.recovery_max_active_count)
        # What members write about their intervals; few of a placement group's are in flight at once.
        self.notes = RecoveryFeed(_NOTES_MAX * cluster.groups, reports=False)
        operations = OperationBook(pool, book, layout)
        self.shard_bytes = operations.shard_bytes
        self.wake_ns = cluster.resources.wake_ns
        self.recovery = Recovery(
            plan.model,
            self._agenda,
            operations,
            self.feed,
            self.notes,
            osds=cluster.osds,
            groups_count=cluster.groups,
            is_up=self._is_up,
            started=self._recovery_started,
            recovered=self._recovered,
            finished=self._recovery_finished,
        )
        self.groups = self._initial_groups()
        self._exchange_ns = plan.model.peering_rounds_count * _round_trip_ns(pool)
        self._waiting: set[int] = set()
        self._progress: Progress | None = None
        self._has_looked = False
        self._actions: list[Action] = []
        self._is_recovering = False
        # Writes that were cut off when some members had them in their stores; the steps of templates where
        # they come there; the writes in flight of each placement group at this moment, None: not asked for.
        self.interrupted = {"recovered": 0, "rolled back": 0}
        self._stores: dict[int, dict[int, int]] = {}
        self._writing: dict[int, list[tuple[int, Begun]]] | None = None
        self._outages = Outages(
            plan,
            pool,
            self._agenda,
            self._monitor,
            self.groups,
            self.timeline,
            act=self._actions.append,
            serve=self._serve,
            note_writes=self._note_writes,
        )
        self.scrubs = Scrubs(
            plan,
            self._agenda,
            operations,
            self.groups,
            is_ready=lambda group: (
                self.timeline.states[group.number] == State.CLEAN and group.is_clean
            ),
            found=self._outages.found,
        )
        # What the OSDs lost before the run have left to rebuild.
        self.lost_objects = 0
        self.lost_shards_at_start = 0
        if plan.lost_osds or plan.missing_osds:
            self._agenda.at(0, self._begin_degraded, self._lose_at_start())

    def _initial_groups(self) -> list[Group]:
        pool, plan = self._pool, self._plan
        items: list[list[int]] = [[] for _ in range(pool.cluster.groups)]
        if plan.prefilled:
            objects = np.arange(plan.image_objects, dtype=np.int64)
            for item, number in enumerate(
                pool.groups_of(np.zeros_like(objects), objects).tolist()
            ):
                items[number].append(item)
        # The primary trims the log, by the groups that its OSD has: here those that it begins with.
        acting = pool.cluster.acting
        leads = acting[np.arange(len(acting)), pool.primaries]
        on_lead = np.bincount(acting[acting != NO_OSD])[leads].tolist()
        writes = (
            _LONG_AGO if plan.object_writes_count is None else plan.object_writes_count
        )
        groups = [
            Group(
                number,
                pool.scheme,
                row,
                items[number],
                pool.leaders,
                plan.log_deletions_count,
                # A deleted object was written once.
                entries=len(items[number]) * writes + 2 * plan.log_deletions_count,
                log_lengths=self._model.log_lengths(on_lead[number]),
                beside_count=self._model.async_recovery_min_count,
            )
            for number, row in enumerate(acting.tolist())
        ]
        for group in groups:
            if NO_OSD in group.up:
                self.timeline.narrow += 1
                self.timeline.enter(0, group.number, State.DEGRADED)
        return groups

    def _lose_at_start(self) -> list[Group]:
        """Take OSDs out of the initial state; return the placement groups that are not clean then."""
        lost, missing = set(self._plan.lost_osds), set(self._plan.missing_osds)
        self._monitor.up -= lost | missing
        self._monitor.out |= lost
        raw = self._plan.up_sets(tuple(sorted(lost))).tolist()
        hurt = []
        for group in self.groups:
            before, chosen = group.up, raw[group.number]
            group.up = group.aligned(chosen, self._is_up)
            if group.up == before:
                continue
            # What CRUSH still maps to an OSD that is down but not out is not rebuilt.
            holes = before.count(NO_OSD) + len(missing.intersection(chosen))
            if group.up.count(NO_OSD) > holes:
                raise ValueError(
                    f"repair: placement group {group.number:x}: CRUSH found no new OSD for shard "
                    f"{group.up.index(NO_OSD)}; wanted a spare failure domain"
                )
            group.copies = {
                key: copy for key, copy in group.copies.items() if key[0] not in lost
            }
            hurt.append(group)
        return hurt

    def _begin_degraded(self, now_ns: int, hurt: Sequence[Group]) -> None:
        """Let placement groups serve and recover that lost members before the run; they have peered."""
        names = osd_names((*self._plan.lost_osds, *self._plan.missing_osds))
        self.timeline.note(now_ns, "failed", f"{names} (before the run)")
        for group in hurt:
            self._serve(now_ns, group)
            group.temp = group.needs_stand_ins
            pairs = zip(group.members.acting, group.members.joining, strict=True)
            shards = sum(osd in (NO_OSD, new) and new != NO_OSD for osd, new in pairs)
            self.lost_objects += len(group.objects) * (shards > 0)
            self.lost_shards_at_start += len(group.objects) * shards

    @property
    def lost_shards(self) -> int:
        """Shards that failed OSDs held, and shards that scrubs found bad [count]."""
        return self.lost_shards_at_start + self._outages.lost_shards

    # What the engine asks.

    def begin(self, progress: Progress) -> None:
        """Take the engine's view of the run."""
        self._progress = progress

    def next_ns(self) -> int | None:
        """Return the next moment at which something happens [ns]."""
        return self._agenda.next_ns()

    def act(self, now_ns: int, reports: Sequence[Report]) -> Sequence[Action]:
        """Let happen what happens now."""
        self._actions.clear()
        self._has_looked, self._writing = False, None
        for report in reports:
            part = self.recovery if report.stream == self._feed_stream else self.scrubs
            part.done(now_ns, report.index)
        self._agenda.run(now_ns)
        for stream in self.recovery.hand_over():
            self._actions.append(Wake(self._feed_stream + (stream is self.notes)))
        if self.scrubs.hand_over():
            self._actions.append(Wake(self._feed_stream + 2))
        return tuple(self._actions)

    # What clients have written.

    def _note_writes(self) -> None:
        """Let copies that take no part fall behind by what clients have written since the last look.

        It comes before members change for the first time in a moment, so that a write counts for those
        who were members when it completed.
        """
        if self._has_looked:
            return
        self._has_looked = True
        assert self._progress is not None
        written = [writer.written(self._progress) for writer in self._writers]
        pairs, counts = np.unique(
            np.concatenate(written, axis=1), axis=1, return_counts=True
        )
        for (number, item), count in zip(
            pairs.T.tolist(), counts.tolist(), strict=True
        ):
            self.groups[number].written(item, count)

    def _note_interrupted(self, group: Group) -> None:
        """Let members disagree about the writes of a placement group that a new interval cuts off.

        Deviation: a client that sends a logged write again is answered at once in Ceph; here it is written.
        """
        assert self._progress is not None
        if self._writing is None:
            self._writing = {}
            for writer in self._writers:
                for number, item, one in writer.writing(self._progress):
                    self._writing.setdefault(number, []).append((item, one))
        settled: set[int] = set()
        for item, one in self._writing.pop(group.number, ()):
            stores = self._stores_of(one.template)
            reached = {shard for step, shard in stores.items() if one.steps[step]}
            if reached and item not in settled:
                touched = set(stores.values())
                stays = group.interrupted(item, touched, reached, self._answers)
                self.interrupted["recovered" if stays else "rolled back"] += (
                    touched != reached
                )
                settled |= {item} if stays else set()

    def _answers(self, osd: int) -> bool:
        return self._is_up(osd) and self._outages.silent_since_ns(osd) is None

    def _stores_of(self, number: int) -> dict[int, int]:
        """Return by step of a write's template the shard whose store has the write once it has begun."""
        if number not in self._stores:
            template = self._book.templates[number]
            steps = template.amounts[:, COUNTER_INDEX["device_write_bytes"]] > 0
            steps |= np.array(template.phases) == Phase.LOG
            self._stores[number] = {
                step: template.shards[step] for step in np.flatnonzero(steps).tolist()
            }
        return self._stores[number]

    def _is_up(self, osd: int) -> bool:
        return osd in self._monitor.up

    # Maps and peering.

    def _on_map(self, now_ns: int, changes: Sequence[Change]) -> None:
        """Let every placement group that a new map concerns enter a new interval."""
        restarted = {
            change.subject for change in changes if change.what in ("down", "up")
        }
        remapped = any(change.what not in {"up_thru", "pg_temp"} for change in changes)
        temps = {change.subject for change in changes if change.what == "pg_temp"}
        for change in changes:
            if change.what in ("down", "up", "out"):
                self.timeline.note(
                    now_ns,
                    change.what,
                    f"osd.{change.subject}, map {self._monitor.epoch}",
                )
                self._outages.on_change(now_ns, change)
        raw = (
            self._plan.up_sets(tuple(sorted(self._monitor.out))).tolist()
            if remapped
            else None
        )
        for group in self.groups:
            up = (
                group.up
                if raw is None
                else group.aligned(raw[group.number], self._is_up)
            )
            if (
                up != group.up
                or group.members.osds & restarted
                or group.number in temps
            ):
                self._note_writes()
                group.up = up
                self._peer(now_ns, group)
            elif group.peered and not group.is_clean and group.holds(restarted):
                # Someone beyond the members has copies that recovery may need, or has needed.
                self._serve(now_ns, group)
        for number in sorted(self._waiting):
            if self._is_recorded(self.groups[number]):
                self._waiting.discard(number)
                self._serve(now_ns, self.groups[number])

    def _peer(self, now_ns: int, group: Group) -> None:
        """Begin a new interval: hold what clients want, and ask the members what they have."""
        self._note_writes()
        self.recovery.cancel(now_ns, group)
        self.scrubs.cancel(group.number)
        self._waiting.discard(group.number)
        self._note_interrupted(group)
        group.interval += 1
        group.since_epoch = self._monitor.epoch
        if group.active:
            self._end_leases(now_ns, group)
        group.peered = group.active = False
        group.add_empty_copies()
        group.members = group.decide(self._is_up)
        self._actions.append(SetGroup(group.number, held=True, interrupt=True))
        self._cut_recovery(group)
        if not group.members.osds:
            self.timeline.enter(now_ns, group.number, State.INCOMPLETE)
            return
        self.recovery.note(group, NOTES["interval"])
        self.timeline.enter(now_ns, group.number, State.PEERING)
        self._agenda.at(
            now_ns + self._exchange_ns, self._exchanged, group, group.interval
        )

    def _end_leases(self, now_ns: int, group: Group) -> None:
        """Note how long reads may be served on a lease of the interval that ends.

        A lease is renewed in half its time, and counts as long as every member has agreed to it.
        """
        lease_ns = self._model.read_lease_ns
        if not lease_ns:
            return
        silent = [self._outages.silent_since_ns(osd) for osd in group.members.osds]
        agreed_ns = min([now_ns, *(since for since in silent if since is not None)])
        if agreed_ns >= group.active_ns:
            half_ns = lease_ns // 2
            renewed_ns = agreed_ns - (agreed_ns - group.active_ns) % half_ns
            group.lease_ns = max(group.lease_ns, renewed_ns + lease_ns)

    def _waits(self, now_ns: int, group: Group) -> bool:
        """Tell whether somebody who may still run could answer reads that this interval's members would."""
        if group.lease_ns <= now_ns:
            return False
        return any(
            not self._is_up(osd) and not self._outages.is_known_dead(osd)
            for osd in group.past
        )

    def _lease_ended(self, now_ns: int, group: Group, interval: int) -> None:
        """The last lease of earlier intervals is over: clients may go on."""
        if group.interval != interval or not group.active or self._waits(now_ns, group):
            return
        self._actions.append(SetGroup(group.number, held=False, interrupt=False))
        if self.timeline.states[group.number] == State.WAIT:
            joins = bool(group.joining_copies)
            self.timeline.enter(now_ns, group.number, self._state(group, True, joins))
            if not joins and not group.members.missing:
                self._cleaned(now_ns, group)

    def _cut_recovery(self, group: Group) -> None:
        shadow = group.number + self._pool.cluster.groups
        self._actions.append(SetGroup(shadow, held=False, interrupt=True))

    def _exchanged(self, now_ns: int, group: Group, interval: int) -> None:
        """The primary knows what everybody has."""
        if group.interval != interval:
            return
        if group.needs_stand_ins and not group.temp:
            group.temp = True
            self._monitor.propose(now_ns, Change("pg_temp", group.number))
            return
        if self._is_recorded(group):
            self._serve(now_ns, group)
            return
        self._waiting.add(group.number)
        lead = self._lead(group)
        if lead is not None:
            self._monitor.propose(now_ns, Change("up_thru", lead))

    def _lead(self, group: Group) -> int | None:
        primary = group.members.primary
        return None if primary is None else group.members.acting[primary]

    def _is_recorded(self, group: Group) -> bool:
        """Tell whether the monitors know that the primary was alive in this interval (``up_thru``)."""
        lead = self._lead(group)
        return lead is None or self._monitor.up_thru.get(lead, 0) >= group.since_epoch

    # Serving and recovering.

    def _serve(self, now_ns: int, group: Group) -> None:
        """Decide what a placement group can do with the members it has, and let it."""
        self._note_writes()
        if self.recovery.cancel(now_ns, group) | self.scrubs.cancel(group.number):
            self._cut_recovery(group)
        group.add_empty_copies()
        group.members = members = group.decide(self._is_up)
        group.peered = True
        joins = group.joining_copies
        lacking = (
            set().union(*(copy.missing for copy in group.inside.values()))
            & group.objects
        )
        apart = {item: group.members_for(item) for item in sorted(lacking)}
        serving = sum(osd != NO_OSD for osd in members.acting)
        readable = all(
            one.primary is not None and self._pool.scheme.can_decode(one.missing)
            for one in {members, *apart.values()}
        )
        if readable and serving >= self._min_size and not group.active:
            group.active_ns = now_ns
            self.recovery.note(group, NOTES["activation"])
        group.active = readable and serving >= self._min_size
        group.past |= members.osds
        waits = group.active and self._waits(now_ns, group)
        if group.active:
            self._show(group, members)
            for item, one in apart.items():
                self._show(group, one, item)
            if waits:
                self._agenda.at(
                    group.lease_ns, self._lease_ended, group, group.interval
                )
            else:
                self._actions.append(
                    SetGroup(group.number, held=False, interrupt=False)
                )
        elif self.timeline.states[group.number] != State.PEERING:
            self._actions.append(SetGroup(group.number, held=True, interrupt=True))
        state = State.WAIT if waits else self._state(group, readable, bool(joins))
        self.timeline.enter(now_ns, group.number, state)
        if joins:
            self.recovery.request(
                now_ns,
                group,
                self._priority(group),
                everyone=not self._backfills(group),
            )
        elif group.active and not members.missing and not waits:
            self._cleaned(now_ns, group)

    def _show(self, group: Group, members: Members, item: int | None = None) -> None:
        """Let clients see who serves a placement group, or one object of it."""
        assert members.primary is not None
        self._layout.set(
            self._book,
            group.number,
            members.written,
            members.missing,
            members.primary,
            item,
        )

    def _recovered(self, group: Group, item: int) -> None:
        """Let requests go to members that have one object more."""
        if group.active and self.timeline.states[group.number] != State.WAIT:
            self._show(group, group.members_for(item), item)
            self._actions.append(SetGroup(group.number, held=False, interrupt=False))

    def _state(self, group: Group, readable: bool, joins: bool) -> State:
        if not readable:
            return State.INCOMPLETE
        if not group.active:
            return State.INACTIVE
        if joins:
            return (
                State.BACKFILL_WAIT if self._backfills(group) else State.RECOVERY_WAIT
            )
        return State.DEGRADED if group.members.missing else State.CLEAN

    def _backfills(self, group: Group) -> bool:
        return any(copy.backfill for copy in group.joining_copies.values())

    def _priority(self, group: Group) -> int:
        if not group.active:
            return Priority.INACTIVE
        if not self._backfills(group):
            return Priority.RECOVERY
        return Priority.DEGRADED if group.members.missing else Priority.MOVE

    def _recovery_started(self, now_ns: int, group: Group) -> None:
        behind = any(
            not copy.missing <= copy.cut_off for copy in group.joining_copies.values()
        )
        if behind and not self._is_recovering:
            self._is_recovering = True
            self.timeline.note(
                now_ns, "recovering", f"pg {group.number:x} is the first"
            )
        if group.active and self.timeline.states[group.number] != State.WAIT:
            state = State.BACKFILLING if self._backfills(group) else State.RECOVERING
            self.timeline.enter(now_ns, group.number, state)

    def _recovery_finished(self, now_ns: int, group: Group) -> None:
        """All that could be recovered is: a last map takes the stand-ins away."""
        lacking = 0
        for copy in group.joining_copies.values():
            lacking += len(copy.missing)
            if not copy.missing:
                copy.backfill, copy.missed_count = False, 0
        if lacking:
            self.timeline.note(
                now_ns,
                "unfound",
                f"pg {group.number:x}: {lacking} shards are nowhere to be had",
            )
            if group.active:
                self.timeline.enter(now_ns, group.number, State.DEGRADED)
        elif group.temp:
            group.temp = False
            self._monitor.propose(now_ns, Change("pg_temp", group.number))
        else:
            self._serve(now_ns, group)

    def _cleaned(self, now_ns: int, group: Group) -> None:
        group.temp = False
        self.recovery.note(group, NOTES["clean"])
        if self._plan.scrubs:
            self._agenda.at(now_ns, self.scrubs.begin)
        group.drop_strays(self._is_up)
        group.past = set(group.members.osds)
        lead = self._lead(group)
        assert lead is not None
        self._seen_clean_ns[group.number] = self._monitor.seen_ns(now_ns, lead)
        if self.timeline.all_clean:
            self._is_recovering = False
            self.timeline.note(now_ns, "clean", "all placement groups")
            seen_ns = max(self._seen_clean_ns.values())
            self.timeline.note(
                seen_ns,
                "seen clean",
                "the cluster's status shows all placement groups clean",
            )


def _round_trip_ns(pool: Pool) -> int:
    """Return the time of a question and its answer between two OSDs, with little in them [ns]."""
    models = pool.cluster.models
    size_bytes = models.messages.sub_reply_bytes
    way_ns = (
        2 * models.cpu.message_ns(size_bytes, models.private_nic.frames(size_bytes))
        + 2 * models.private_nic.serialise_ns(size_bytes)
        + models.private_nic.latency_ns
    )
    return round(2 * way_ns)
