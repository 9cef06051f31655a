"""Cores and their threads in the SimPy engine: slices, fair shares, pairs, warm caches, batches.

A thread is a unit of a pool. Its work consists of the `use` steps that name it (`GraphBuilder.on_thread`).
"""

from collections.abc import Collection, Iterator, Sequence

from stripesim.sim.engine.program import PAIRED_UNIT, Resources
from stripesim.sim.engine.simpy.kernel import Kernel
from stripesim.sim.engine.simpy.paths import PathStep, RequestInFlight, Station
from stripesim.sim.engine.simpy.queues import Queue, Visit
from stripesim.sim.engine.simpy.resources import (
    BatchServer,
    Fifo,
    Resource,
    Service,
    UnitPool,
)


def thread_pool(request: RequestInFlight, step: PathStep) -> Station | None:
    """Return the pool of the thread that performs a use, or None."""
    return request.row[step.thread.role] if step.thread else None


class Processes:
    """Processes and their use of cores."""

    def __init__(self, resources: Resources) -> None:
        self._warm_ns = resources.warm_ns
        self._cool_ns = resources.cool_ns
        # Process and flow of each pool. A pool without a process has −1.
        self._processes: list[int] = resources.processes.tolist()
        self._flows: list[int] = resources.flows.tolist()
        # Virtual time up to which each flow has received its share.
        self._had_ns = [0] * (max(self._flows, default=0) + 1)
        # End of the latest service of each process.
        processes = max(self._processes, default=-1) + 1
        self._runs_until_ns = [-self._cool_ns] * processes

    def spared_ns(self, pool: Station, now_ns: int) -> int:
        """Return the wake-up time saved because the process has just run."""
        process = self._processes[pool.index]
        if process < 0 or not self._cool_ns:
            return 0
        gap_ns = max(0, now_ns - self._runs_until_ns[process])
        left_ns = max(0, self._cool_ns - gap_ns)
        return self._warm_ns * left_ns // self._cool_ns

    def run(self, pool: Station, now_ns: int, demand_ns: int) -> None:
        """Record that a thread runs on a core."""
        self._had_ns[self._flows[pool.index]] += demand_ns
        process = self._processes[pool.index]
        if process >= 0:
            until_ns = max(self._runs_until_ns[process], now_ns + demand_ns)
            self._runs_until_ns[process] = until_ns

    def had_ns(self, pool: Station | None) -> int:
        """Return the virtual time up to which a flow has received its share, 0 without a thread."""
        return self._had_ns[self._flows[pool.index]] if pool else 0

    def begin_share(self, pool: Station | None, start_ns: int) -> None:
        """Record the virtual start of a flow's next share."""
        if pool:
            self._had_ns[self._flows[pool.index]] = start_ns


class FairQueue:
    """Queue of cores shared by processes. The process with the smallest share so far goes first.

    References
    ----------
    Goyal, Vin, Cheng: Start-time fair queueing, SIGCOMM 1996.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._virtual_ns = 0
        # Visits with the virtual time at which they joined.
        self._items: list[tuple[int, Visit]] = []

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Visit]:
        return (visit for _, visit in self._items)

    def join(self, visit: Visit) -> None:
        """Enqueue a visit. A flow that was idle is not compensated."""
        self._items.append((self._virtual_ns, visit))

    def take(self, now_ns: int) -> Visit | None:
        """Dequeue the visit with the earliest virtual start. Ties go to the first that joined."""
        if not self._items:
            return None
        item = min(self._items, key=self._start_ns)
        start_ns = self._start_ns(item)
        _, visit = item
        self._items.remove(item)
        self._virtual_ns = max(self._virtual_ns, start_ns)
        self._processes.begin_share(thread_pool(visit.request, visit.step), start_ns)
        return visit

    def _start_ns(self, item: tuple[int, Visit]) -> int:
        joined_ns, visit = item
        pool = thread_pool(visit.request, visit.step)
        return max(joined_ns, self._processes.had_ns(pool))

    def next_ns(self) -> None:
        """Return None, because visits wait only for cores."""

    def spend(self, service_ns: int) -> None:
        """Ignore the length of a service, which flows count."""

    def leave(self, cut: Collection[RequestInFlight]) -> None:
        """Drop the visits of some requests."""
        self._items = [item for item in self._items if item[1].request not in cut]


class Cores(Fifo):
    """Cores: threads wake up on them and keep them for a slice, and two threads may share one."""

    def __init__(
        self, kernel: Kernel, index: int, queue: Queue, processes: Processes
    ) -> None:
        super().__init__(kernel, index, queue)
        resources = kernel.program.resources
        self.processes = processes
        # Time for which a thread keeps a core while others wait. 0 releases it after each use.
        self.slice_ns = int(resources.slice_ns[index])
        self.paired = bool(resources.paired[index])
        self.paired_slowdown = resources.paired_slowdown
        # The service that has just ended on a core kept by its thread.
        self._kept: Service | None = None

    def begin(self, request: RequestInFlight, step: PathStep) -> None:
        """Continue on the core that the thread keeps. Otherwise take a core or wait for one."""
        if self._kept and self._keeper() is thread_pool(request, step):
            now_ns = self.kernel.now_ns
            demand_ns = self.demand_ns(request, step) - self.saved_ns(request, step)
            visit = Visit(request, step, demand_ns, now_ns)
            since_ns = self._kept.since_ns
            self._kept = None
            self.kernel.when_quiet.remove(self._give_up)
            self.begin_service(visit, demand_ns, since_ns)
            return
        super().begin(request, step)

    def _keeper(self) -> Station | None:
        assert self._kept is not None
        visit = self._kept.visit
        return thread_pool(visit.request, visit.step)

    def hand_over(self, service: Service) -> None:
        """Keep the core for its thread until the ready list is empty, unless the slice is used up."""
        visit = service.visit
        used_ns = self.kernel.now_ns - service.since_ns
        used_up = self.queue and used_ns >= self.slice_ns
        has_thread = thread_pool(visit.request, visit.step) is not None
        if self.slice_ns and has_thread and not used_up:
            self._kept = service
            self.kernel.when_quiet.append(self._give_up)
        else:
            self.free_server()

    def _give_up(self) -> None:
        """Free the core of a thread without further work."""
        self._kept = None
        self.free_server()

    def waking_ns(self, request: RequestInFlight, step: PathStep) -> int:
        """Return 0 on cores with a slice. They add wake-ups when services begin."""
        return 0 if self.slice_ns else super().waking_ns(request, step)

    def begin_service(self, visit: Visit, demand_ns: int, since_ns: int) -> None:
        """Begin a use on a core already taken."""
        if self.slice_ns:
            demand_ns = self._on_thread(visit, demand_ns)
        if self.paired:
            demand_ns += self._slower_ns(demand_ns)
        super().begin_service(visit, demand_ns, since_ns)

    def _on_thread(self, visit: Visit, demand_ns: int) -> int:
        """Return the time of a use and its thread's wake-up, and record that the thread runs."""
        request = visit.request
        thread = visit.step.thread
        pool = thread_pool(request, visit.step)
        if pool is None or thread is None:
            return demand_ns
        if thread in request.woken and thread not in request.awake:
            request.awake.add(thread)
            assert isinstance(pool, UnitPool)
            spared_ns = self.processes.spared_ns(pool, self.kernel.now_ns)
            pool.warm_ns += spared_ns
            demand_ns += pool.wake_ns - spared_ns
        self.processes.run(pool, self.kernel.now_ns, demand_ns)
        return demand_ns

    def _slower_ns(self, demand_ns: int) -> int:
        """Return the time that sharing adds to a use whose own core is already taken."""
        busy = self.capacity - self.free
        sharing = max(0, 2 * (busy - (self.capacity + 1) // 2))
        return demand_ns * sharing * self.paired_slowdown // (busy * PAIRED_UNIT)


class ServedBatch(BatchServer):
    """A batch server run by the threads of a pool when they have no other work."""

    threads: "ServingPool"

    def can_serve(self) -> bool:
        """Return True if all threads are idle."""
        return super().can_serve() and self.threads.free == self.threads.capacity

    def in_service(self) -> bool:
        """Return True if a batch is in service, even if its requests were cut off."""
        return bool(self.services or self.lost)

    def free_server(self) -> None:
        """Return to the threads' own queue, or begin the next batch."""
        self.free += 1
        self.threads.dispatch(awake=0)
        if self.queue:
            self.dispatch(awake=1)
        else:
            self.sleep()

    def stop(self) -> Sequence[Resource]:
        """Lose the service, and let the threads resume."""
        super().stop()
        return [self.threads]


class ServingPool(UnitPool):
    """The threads that run a batch server. They do nothing else meanwhile."""

    server: ServedBatch

    def can_serve(self) -> bool:
        """Return True if no batch is in service."""
        return super().can_serve() and not self.server.in_service()

    def release(self) -> None:
        """Pass on a thread to the queue, or begin a batch."""
        super().release()
        self.server.dispatch(awake=1)

    def resume(self) -> None:
        """Serve the queue, or begin a batch."""
        super().resume()
        self.server.dispatch(awake=1)
