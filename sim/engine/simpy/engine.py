"""The reference engine, on SimPy: a readable implementation of the machine of ENGINE.md.

Read ``kernel.py`` first (calendar and ready list), then ``resources.py`` and ``cores.py`` (one class
per discipline), then this file (completion of steps). ``paths.py`` holds templates
and requests, ``streams.py`` issues requests, ``director.py`` stops resources and cuts requests off.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import inf
from time import perf_counter

import numpy as np

from stripesim.sim.engine.checks import (
    ChunkChecks,
    check_no_deadlock,
    check_program,
)
from stripesim.sim.engine.conditions import ALONE, ALWAYS, COMPLETED, IDLE
from stripesim.sim.engine.draws import retried_state, seed_state
from stripesim.sim.engine.graph import (
    BRANCH,
    DELAY,
    NO_ROLE,
    PIN,
    SPAWN,
    UNPIN,
    USE,
    IntArray,
)
from stripesim.sim.engine.program import (
    BATCH,
    GATE,
    PENDING,
    POOL,
    EngineRun,
    Program,
    bound_rows,
)
from stripesim.sim.engine.shares import FAIR, MCLOCK, QUOTA
from stripesim.sim.engine.simpy.cores import (
    Cores,
    FairQueue,
    Processes,
    ServedBatch,
    ServingPool,
)
from stripesim.sim.engine.simpy.director import DirectedKernel, Direction
from stripesim.sim.engine.simpy.logs import Log
from stripesim.sim.engine.simpy.paths import Path, PathStep, RequestInFlight
from stripesim.sim.engine.simpy.pins import Pins
from stripesim.sim.engine.simpy.queues import (
    FifoQueue,
    MClockQueue,
    Queue,
    QuotaQueue,
    WpqQueue,
)
from stripesim.sim.engine.simpy.resources import (
    BatchServer,
    Delays,
    Fifo,
    Gate,
    Resource,
    UnitPool,
)
from stripesim.sim.engine.simpy.streams import Stream


class SimpyEngine(DirectedKernel):
    """A SimPy environment that runs the requests of a program."""

    def __init__(self, program: Program) -> None:
        check_program(program)
        super().__init__(program)
        self.planning_s = 0.0
        self.checks = ChunkChecks(program)
        self._bound_ns = program.until_ns
        self.processes = Processes(program.resources)
        self.resources = make_resources(self)
        self.delays = Delays(self)
        self.pins = Pins()
        self.held = [False] * program.groups
        self.flying = {}
        self.direction = Direction(self, program.director) if program.director else None
        self.streams = [Stream(self, index) for index in range(len(program.streams))]
        # Completion times of the steps of followed requests, by number.
        self._followed_ns: dict[int, list[int]] = {
            position * len(program.streams): []
            for position in program.followed.tolist()
        }
        self._saved_ns: dict[int, list[int]] = {
            number: [] for number in self._followed_ns
        }
        self._seed = seed_state(program.seed)
        self._paths: dict[int, Path] = {}
        self._rows: dict[int, list[Resource | None]] = {}

    # ------------------------------------------------------------------------- a run

    def execute(self) -> EngineRun:
        """Run the program to its end."""
        start_s = perf_counter()
        if self.direction:
            self.direction.begin()
        for stream in self.streams:
            stream.fill()
            if not stream.queue_depth:
                stream.schedule_arrival()
        self.work_off()
        end_ns = self._run_to_bound()
        wall_s = perf_counter() - start_s - self.planning_s
        self._check_end(end_ns)
        return self._result(end_ns, wall_s)

    def end(self) -> None:
        """End the run at this moment, if its bound is not earlier."""
        if self._bound_ns is None or self.now_ns < self._bound_ns:
            self._bound_ns = self.now_ns

    def _run_to_bound(self) -> int:
        """Process all events up to the bound of the run, and return the time of the end [ns]."""
        while (next_ns := self.peek()) < inf:
            if self._bound_ns is not None and next_ns > self._bound_ns:
                self.now_ns = self._bound_ns
                break
            self.happen()
        return self.now_ns

    def _result(self, end_ns: int, wall_s: float) -> EngineRun:
        counted = self.direction is not None
        resources = self.resources
        return EngineRun(
            streams=[stream.result(counted=counted) for stream in self.streams],
            spawned=[stream.spawned.result(counted=counted) for stream in self.streams],
            busy_ns=_int64(resource.busy_ns for resource in resources),
            held_ns=_int64(resource.held_ns(end_ns) for resource in resources),
            waited_ns=_int64(resource.waited_ns(end_ns) for resource in resources),
            sleeps=_int64(resource.sleeps for resource in resources),
            warm_ns=_int64(resource.warm_ns for resource in resources),
            uses=self.uses,
            end_ns=end_ns,
            bins=self.bins.table(),
            sleep_bins=self.sleep_bins.table(),
            wall_s=wall_s,
            followed_ns=self._followed_table(self._followed_ns, PENDING),
            followed_saved_ns=self._followed_table(self._saved_ns, 0),
        )

    def _followed_table(
        self, times_ns: Mapping[int, Sequence[int]], absent: int
    ) -> IntArray:
        width = max((path.steps for path in self.program.book.templates), default=0)
        table = np.full((len(times_ns), width), absent, dtype=np.int64)
        for row, of_request in zip(table, times_ns.values(), strict=True):
            row[: len(of_request)] = of_request
        return table

    def _check_end(self, end_ns: int) -> None:
        """Assert that a run that reached its end left nothing behind."""
        if self.direction:
            self.direction.check_end()
            return
        if self.program.until_ns is not None and end_ns >= self.program.until_ns:
            return
        waiting = _int64(resource.waiting for resource in self.resources)
        check_no_deadlock(self.program, waiting)
        assert all(resource.at_rest() for resource in self.resources), (
            "a server or a lock is held after the end"
        )
        logs = chain(self.streams, (stream.spawned for stream in self.streams))
        assert all(PENDING not in log.completed_ns for log in logs), (
            "a request was lost"
        )
        assert not self.pins.counts, "a key is pinned after the end"

    # ---------------------------------------------------------------------- requests

    def issue(self, stream: Stream, position: int, keys: Sequence[range]) -> None:
        """Start a request, or hold it for its placement group."""
        if self.held[stream.groups[position]]:
            assert self.direction is not None
            self.direction.waiting[stream.number(position)] = keys
        else:
            self.start(stream, position, keys)

    def start(self, log: Log, position: int, keys: Sequence[range]) -> None:
        """Start a request at its step 0."""
        number = log.number(position)
        path = self._path(log.templates[position])
        row = self._row(log.bindings[position])
        retries = log.retries[position]
        seed = retried_state(self._seed, retries) if retries else self._seed
        request = RequestInFlight(number, path, row, keys, log, position, seed)
        if number in self._followed_ns:
            request.follow(self._followed_ns[number], self._saved_ns[number])
        if self.direction:
            self.flying[number] = request
        self.ready.append((request, path.steps[0]))

    def report(self, stream: int, position: int) -> None:
        """Report a completion to the director."""
        assert self.direction is not None
        self.direction.report(stream, position)

    def time_out(self, stream: Stream, positions: Sequence[int]) -> None:
        """Cut off requests that have timed out."""
        assert self.direction is not None
        self.direction.time_out(stream, positions)

    def _path(self, template: int) -> Path:
        if template not in self._paths:
            templates = self.program.book.templates
            counted = self.direction is not None
            self._paths[template] = Path(template, templates, counted=counted)
        return self._paths[template]

    def _row(self, binding: int) -> Sequence[Resource | None]:
        """Return the resources of a binding, with a last entry for steps without a role."""
        if binding not in self._rows:
            [bound] = bound_rows(self.program.book, np.array([binding], dtype=np.int64))
            row = [
                self.resources[index] if index >= 0 else None
                for index in bound.tolist()
            ]
            self._rows[binding] = [*row, None]
        return self._rows[binding]

    # ------------------------------------------------------------------------- steps

    def complete(self, request: RequestInFlight, step: PathStep) -> None:
        """Complete a step and begin the steps that it makes ready."""
        if self.direction:
            self._count_down(request)
        if step in request.skipped:
            self._skip_all(request, step.following)
            self._skip_all(request, step.otherwise)
            return
        path = request.path
        if self.bins.bin_ns:
            self.account(request, step)
        if not path.planned:
            self._account_taken(request, step)
        if request.ends_ns is not None:
            request.ends_ns[step.number] = self.now_ns
        if step.is_tested:
            request.completed.add(step)
        if step is path.reply:
            request.log.complete(request.position, self.now_ns)
        following = step.following
        if step.word == BRANCH:
            following = self._branch(request, step)
        elif step.word == SPAWN:
            self._spawn(request, step)
        pending = request.pending
        for after in following:
            number = after.number
            pending[number] -= 1
            if after.is_merge:
                request.reached.add(after)
            if not pending[number]:
                self._begin(request, after)

    def _begin(self, request: RequestInFlight, step: PathStep) -> None:
        """Begin a step whose predecessors have completed."""
        if step.at_resource:
            resource = request.row[step.role]
            if resource is not None:
                resource.begin(request, step)
                return
        elif step.word == DELAY and step.bound(request):
            self.delays.begin(request, step)
            return
        elif step.word == PIN:
            self.pins.pin(request, step.keys)
        elif step.word == UNPIN:
            self.pins.unpin(request, step.keys)
        self.ready.append((request, step))

    def _branch(self, request: RequestInFlight, step: PathStep) -> list[PathStep]:
        """Skip the side not taken, and return the successors on the other."""
        if self._holds(request, step):
            self._skip_all(request, step.otherwise)
            return step.following
        self._skip_all(request, step.following)
        return step.otherwise

    def _skip_all(self, request: RequestInFlight, steps: Sequence[PathStep]) -> None:
        """Process steps that have a predecessor that does not run."""
        for step in steps:
            if step in request.skipped:
                continue
            if step.is_merge:
                request.pending[step.number] -= 1
                if request.pending[step.number]:
                    continue
            if step not in request.reached:
                request.skipped.add(step)
            self.ready.append((request, step))

    def _spawn(self, request: RequestInFlight, step: PathStep) -> None:
        """Start a detached graph if the test holds."""
        if not self._holds(request, step):
            return
        log = request.log.spawned
        binding = request.log.bindings[request.position]
        group = request.log.groups[request.position]
        position = log.note(self.now_ns, step.spawned, binding, group)
        self.start(log, position, request.keys)

    def _holds(self, request: RequestInFlight, step: PathStep) -> bool:
        """Evaluate the test of a step."""
        if step.test == ALWAYS:
            return True
        if step.test == COMPLETED:
            return request.path.steps[step.ticket] in request.completed
        if step.test not in (IDLE, ALONE):
            return self.pins.pinned_by_others(request, step.keys)
        resource = request.row[step.role]
        if resource is None:
            return True
        if step.test == IDLE:
            return resource.idle
        assert isinstance(resource, Gate)
        return resource.alone(request, step.ticket)

    def _count_down(self, request: RequestInFlight) -> None:
        """Count one completed step, and forget the request after its last."""
        request.steps_left -= 1
        if not request.steps_left:
            del self.flying[request.number]

    # -------------------------------------------------------------------- accounting

    def account(self, request: RequestInFlight, step: PathStep) -> None:
        """Add a completed step's amounts to the bin of the current time."""
        if step.bound(request):
            bin_now = self.bins.at(self.now_ns)
            bin_now += step.amounts

    def _account_taken(self, request: RequestInFlight, step: PathStep) -> None:
        """Add a completed step's amounts to its stream's totals."""
        if step.bound(request):
            request.log.taken += step.amounts
            request.log.taken_uses += step.word == USE and step.role != NO_ROLE

    def account_service(self, request: RequestInFlight, step: PathStep) -> None:
        """Account a step's amounts per service."""
        assert step.once is not None
        request.log.taken += step.once
        if self.program.bin_ns:
            bin_now = self.bins.at(self.now_ns)
            bin_now += step.once


def make_resources(engine: SimpyEngine) -> list[Resource]:
    """Create the resources of a program."""
    resources = engine.program.resources
    made = [_resource(engine, index) for index in range(len(resources))]
    for server, threads in enumerate(resources.served_by.tolist()):
        if threads >= 0:
            batch = made[server]
            pool = made[threads]
            assert isinstance(batch, ServedBatch) and isinstance(pool, ServingPool)
            batch.threads = pool
            pool.server = batch
    return made


def _resource(engine: SimpyEngine, index: int) -> Resource:
    resources = engine.program.resources
    discipline = resources.disciplines[index]
    if discipline == GATE:
        return Gate(engine, index)
    if discipline == BATCH:
        is_served = resources.served_by[index] >= 0
        return (ServedBatch if is_served else BatchServer)(engine, index)
    queue = _queue(engine, index)
    if discipline == POOL:
        serves = index in resources.served_by
        return (ServingPool if serves else UnitPool)(engine, index, queue)
    if resources.slice_ns[index] or resources.paired[index]:
        return Cores(engine, index, queue, engine.processes)
    return Fifo(engine, index, queue)


def _queue(engine: SimpyEngine, index: int) -> Queue:
    resources = engine.program.resources
    if resources.share_indices[index] < 0:
        return FifoQueue()
    share = resources.shares[resources.share_indices[index]]
    if share.kind == FAIR:
        return FairQueue(engine.processes)
    if share.kind == QUOTA:
        return QuotaQueue(share, index)
    if share.kind == MCLOCK:
        return MClockQueue(share)
    return WpqQueue(share, seed_state(engine.program.seed), index)


def _int64(values: Iterable[int]) -> IntArray:
    return np.array(list(values), dtype=np.int64)


def run(program: Program) -> EngineRun:
    """Execute a program on the reference engine.

    Parameters
    ----------
    program
        The program.

    Returns
    -------
    EngineRun
        The result, equal to the compiled engine's except for `wall_s`.

    Raises
    ------
    ProblemsError
        If the program, a chunk or an action of the director is invalid.
    """
    return SimpyEngine(program).execute()
