"""Resources of the SimPy engine, one class per discipline. ``cores.py`` adds cores."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence

from stripesim.sim.engine.draws import FACTOR_BITS, FACTOR_ONE
from stripesim.sim.engine.graph import ACQUIRE, ENTER, TURN
from stripesim.sim.engine.program import SLOWDOWN_UNIT
from stripesim.sim.engine.simpy.kernel import (
    FIRST_STEP,
    LOOK,
    LOST_SERVICE,
    Kernel,
    Moment,
    ScheduledCall,
)
from stripesim.sim.engine.simpy.paths import PathStep, RequestInFlight
from stripesim.sim.engine.simpy.queues import BatchQueue, Queue, Visit


class Level:
    """A value that changes over time, and its integral."""

    def __init__(self) -> None:
        self.value = 0
        self._since_ns = 0
        self._integral_ns = 0

    def change(self, change: int, now_ns: int) -> None:
        """Change the number."""
        self._integral_ns += self.value * (now_ns - self._since_ns)
        self._since_ns = now_ns
        self.value += change

    def integral_ns(self, now_ns: int) -> int:
        """Return the integral up to a time."""
        return self._integral_ns + self.value * (now_ns - self._since_ns)


class Resource:
    """A resource of the cluster."""

    def __init__(self, kernel: Kernel, index: int) -> None:
        resources = kernel.program.resources
        self.kernel = kernel
        self.index = index
        self.capacity = int(resources.capacities[index])
        self.wake_ns = int(resources.wake_ns[index])
        self.stopped = False
        self.busy_ns = 0
        self.sleeps = 0
        # Wake-up time that its threads saved because their process had just run.
        self.warm_ns = 0
        self._kind = kernel.kinds[index]

    @property
    def idle(self) -> bool:
        """True if a server or unit is idle, or no ticket of a gate is out."""
        raise NotImplementedError

    @property
    def waiting(self) -> int:
        """Number of steps that wait."""
        raise NotImplementedError

    def begin(self, request: RequestInFlight, step: PathStep) -> None:
        """Begin a step whose predecessors have completed."""
        raise NotImplementedError

    def sleep(self) -> None:
        """Count a server or unit that becomes idle because nothing waits for it."""
        self.sleeps += 1
        if self.kernel.sleep_bins.bin_ns:
            self.kernel.sleep_bins.at(self.kernel.now_ns)[self._kind] += 1

    def waited_ns(self, end_ns: int) -> int:
        """Return the time that steps have waited, summed until the end of the run."""
        raise NotImplementedError

    def held_ns(self, end_ns: int) -> int:
        """Return the time that units or tickets were out, summed until the end of the run."""
        return 0

    def users(self) -> Iterable[RequestInFlight]:
        """Yield the requests that hold a unit or a ticket."""
        return ()

    def at_rest(self) -> bool:
        """Return True if nothing is taken and nothing waits."""
        raise NotImplementedError

    def stop(self) -> Sequence[Resource]:
        """Stop, and return the resources to resume as a consequence."""
        self.stopped = True
        return ()

    def start(self) -> None:
        """Resume work."""
        self.stopped = False

    def cut_off(self, cut: Collection[RequestInFlight]) -> bool:
        """Drop some requests. Return True if the resource has to be resumed."""
        raise NotImplementedError

    def resume(self) -> None:
        """Serve waiting steps after a start or a return."""
        raise NotImplementedError


class Queued(Resource):
    """A resource with a queue. Subclasses define how a visit is served."""

    def __init__(self, kernel: Kernel, index: int, queue: Queue) -> None:
        super().__init__(kernel, index)
        self.queue = queue
        # Idle servers or units.
        self.free = self.capacity
        self._waited_ns = 0
        self._look: ScheduledCall | None = None

    @property
    def idle(self) -> bool:
        """True if a server or unit is idle."""
        return self.free > 0

    @property
    def waiting(self) -> int:
        """Number of steps in the queue."""
        return len(self.queue)

    def arrive(self, visit: Visit) -> None:
        """Enqueue a visit, and serve it immediately if possible."""
        self.queue.join(visit)
        if self.free:
            self.dispatch(awake=0)

    def dispatch(self, awake: int) -> int:
        """Serve the queue, and return the number of visits served.

        All visits but the first `awake` wake a sleeping server or unit.
        """
        queue = self.queue
        now_ns = self.kernel.now_ns
        served = 0
        while queue and self.free and self.can_serve():
            visit = queue.take(now_ns)
            if visit is None:
                break
            self._waited_ns += now_ns - visit.joined_ns
            for follower in visit.followers:
                self._waited_ns += now_ns - follower.joined_ns
            self.serve(visit, woken=served >= awake)
            served += 1
        if queue or self._look:
            self._look_again()
        return served

    def can_serve(self) -> bool:
        """Return True if idle servers or units may be used."""
        return not self.stopped

    def serve(self, visit: Visit, *, woken: bool) -> None:
        """Assign a server or unit, which may have to be woken, to a visit."""
        raise NotImplementedError

    def _look_again(self) -> None:
        """Schedule the next look at a queue that waits only for time to pass."""
        look_ns = None
        if self.queue and self.free and self.can_serve():
            look_ns = self.queue.next_ns()
        if self._look:
            if self._look.time_ns == look_ns:
                return
            self.kernel.cancel(self._look)
            self._look = None
        if look_ns is not None:
            priority = LOOK + self.index
            self._look = self.kernel.call_at(look_ns, priority, self._look_at_queue)

    def _look_at_queue(self) -> None:
        self._look = None
        self.dispatch(awake=0)

    def waited_ns(self, end_ns: int) -> int:
        """Return the time that visits have waited, summed until the end of the run."""
        return self._waited_ns + sum(end_ns - visit.joined_ns for visit in self.queue)

    def at_rest(self) -> bool:
        """Return True if nothing is taken and nothing waits."""
        return self.free == self.capacity and not self.queue

    def stop(self) -> Sequence[Resource]:
        """Stop serving."""
        self.stopped = True
        self._look_again()
        return ()

    def cut_off(self, cut: Collection[RequestInFlight]) -> bool:
        """Drop visits from the queue. Only a queue that waits for a look has to be resumed."""
        dropped = [visit for visit in self.queue if visit.request in cut]
        if not dropped:
            return False
        for visit in dropped:
            self._waited_ns += self.kernel.now_ns - visit.joined_ns
        self.queue.leave(cut)
        return self._look is not None

    def resume(self) -> None:
        """Serve waiting visits. Units returned by a director are awake."""
        self.dispatch(awake=self.capacity)


class Service(Moment):
    """A service in progress. As a moment, it is the end of the service."""

    __slots__ = ("end_ns", "server", "since_ns", "visit")

    def __init__(self, server: Fifo, visit: Visit, end_ns: int, since_ns: int) -> None:
        self.server = server
        self.visit = visit
        self.end_ns = end_ns
        # Time since when the server works for the same thread.
        self.since_ns = since_ns
        server.services[self] = None
        priority = FIRST_STEP + visit.request.order + visit.step.number
        server.kernel.put(end_ns, priority, self)

    def act(self) -> None:
        """End the service."""
        self.server.end(self)


class Fifo(Queued):
    """Servers that serve one visit after another."""

    def __init__(self, kernel: Kernel, index: int, queue: Queue) -> None:
        super().__init__(kernel, index, queue)
        self.services: dict[Service, None] = {}
        # Duration of a service, in 1/SLOWDOWN_UNIT of the normal one.
        self.slowdown = SLOWDOWN_UNIT
        # Services whose requests were all cut off. They occupy their servers until their end.
        self.lost: dict[ScheduledCall, None] = {}

    def begin(self, request: RequestInFlight, step: PathStep) -> None:
        """Take a server or wait for one."""
        demand_ns = self.demand_ns(request, step)
        if step.thread in request.woken:
            demand_ns += self.waking_ns(request, step)
        self.arrive(Visit(request, step, demand_ns, self.kernel.now_ns))

    def demand_ns(self, request: RequestInFlight, step: PathStep) -> int:
        """Return the time of a use on a server that is awake."""
        if step.spread:
            return self.kernel.random_ns(request, step)
        return step.demand_ns

    def waking_ns(self, request: RequestInFlight, step: PathStep) -> int:
        """Return the time that waking its thread adds to a use."""
        assert step.thread is not None
        pool = request.row[step.thread.role]
        assert pool is not None
        return pool.wake_ns

    def serve(self, visit: Visit, *, woken: bool) -> None:
        """Begin a service on an idle server."""
        self.free -= 1
        demand_ns = visit.demand_ns - self.saved_ns(visit.request, visit.step)
        if woken:
            demand_ns += self.wake_ns
        self.begin_service(visit, demand_ns, self.kernel.now_ns)

    def saved_ns(self, request: RequestInFlight, step: PathStep) -> int:
        """Return the time that a use saves because others wait, scaled by its random factor [ns]."""
        if not step.position_ns:
            return 0
        factors = self.kernel.position_factors
        queued = min(len(self.queue) // self.capacity, len(factors) - 1)
        saved_ns = step.position_ns * (FACTOR_ONE - factors[queued]) >> FACTOR_BITS
        if request.saved_ns is not None:
            request.saved_ns[step.number] = saved_ns
        random_ns = self.kernel.random_ns
        return random_ns(request, step) - random_ns(request, step, saved_ns)

    def begin_service(self, visit: Visit, demand_ns: int, since_ns: int) -> None:
        """Begin a service on a server already taken."""
        demand_ns = demand_ns * self.slowdown // SLOWDOWN_UNIT
        self.busy_ns += demand_ns
        self.queue.spend(demand_ns)
        Service(self, visit, self.kernel.now_ns + demand_ns, since_ns)

    def end(self, service: Service) -> None:
        """End a service. Its server is free before its steps complete."""
        del self.services[service]
        visit = service.visit
        kernel = self.kernel
        kernel.uses += 1
        if visit.step.once is not None:
            kernel.account_service(visit.request, visit.step)
        kernel.ready.append((visit.request, visit.step))
        self.hand_over(service)
        for follower in visit.followers:
            kernel.uses += 1
            kernel.ready.append((follower.request, follower.step))

    def hand_over(self, service: Service) -> None:
        """Release the server of a service that has ended."""
        self.free_server()

    def free_server(self) -> None:
        """Return a server, which is awake, to the queue."""
        self.free += 1
        if not self.dispatch(awake=1):
            self.sleep()

    def stop(self) -> Sequence[Resource]:
        """Lose all services in progress."""
        for moment in (*self.services, *self.lost):
            self.kernel.cancel(moment)
        self.services.clear()
        self.lost.clear()
        self.free = 0
        return super().stop()

    def start(self) -> None:
        """Resume work with all servers idle."""
        self.stopped = False
        self.free = self.capacity

    def cut_off(self, cut: Collection[RequestInFlight]) -> bool:
        """Drop visits in the queue and in service."""
        for service in list(self.services):
            visits = [service.visit, *service.visit.followers]
            left = [visit for visit in visits if visit.request not in cut]
            if len(left) < len(visits):
                self._leave_service(service, left)
        return super().cut_off(cut)

    def _leave_service(self, service: Service, left: list[Visit]) -> None:
        """Continue a service for its remaining visits. Without any, it only occupies the server."""
        self.kernel.cancel(service)
        del self.services[service]
        if left:
            leader, *followers = left
            leader.followers = followers
            Service(self, leader, service.end_ns, service.since_ns)
            return

        def end() -> None:
            del self.lost[lost]
            self.free_server()

        priority = LOST_SERVICE + self.index
        lost = self.kernel.call_at(service.end_ns, priority, end)
        self.lost[lost] = None


class BatchServer(Fifo):
    """Servers whose service serves all visits that waited when it began."""

    def __init__(self, kernel: Kernel, index: int) -> None:
        super().__init__(kernel, index, BatchQueue())


class UnitPool(Queued):
    """Units that requests acquire and release."""

    def __init__(self, kernel: Kernel, index: int, queue: Queue) -> None:
        super().__init__(kernel, index, queue)
        self._out = Level()
        # Number of units of each request.
        self._units: defaultdict[RequestInFlight, int] = defaultdict(int)

    def begin(self, request: RequestInFlight, step: PathStep) -> None:
        """Take a unit or wait for one, or return one."""
        if step.word == ACQUIRE:
            self.arrive(Visit(request, step, 0, self.kernel.now_ns))
            return
        self._give_back(request, 1)
        self.release()
        self.kernel.ready.append((request, step))

    def serve(self, visit: Visit, *, woken: bool) -> None:
        """Assign an idle unit to a visit."""
        request = visit.request
        self.free -= 1
        self._out.change(1, self.kernel.now_ns)
        self._units[request] += 1
        if woken:
            request.woken.add(visit.step)
        self.kernel.ready.append((request, visit.step))

    def release(self) -> None:
        """Pass a returned unit to the queue."""
        if not self.dispatch(awake=1):
            self.sleep()

    def _give_back(self, request: RequestInFlight, units: int) -> None:
        self.free += units
        self._out.change(-units, self.kernel.now_ns)
        self._units[request] -= units
        if not self._units[request]:
            del self._units[request]

    def held_ns(self, end_ns: int) -> int:
        """Return the time that units were out, summed until the end of the run."""
        return self._out.integral_ns(end_ns)

    def users(self) -> Iterable[RequestInFlight]:
        """Yield the requests that have a unit."""
        return self._units

    def cut_off(self, cut: Collection[RequestInFlight]) -> bool:
        """Drop visits from the queue and take units back."""
        to_resume = super().cut_off(cut)
        holders = [request for request in self._units if request in cut]
        for request in holders:
            self._give_back(request, self._units[request])
        return to_resume or bool(holders)


class Ticket:
    """A ticket of a gate."""

    def __init__(self, request: RequestInFlight, entered_ns: int) -> None:
        self.request = request
        # The waiting turn.
        self.turn: Visit | None = None
        # True after its turn or its return.
        self.passed = False


class Gate(Resource):
    """Grants turns in the order of tickets."""

    def __init__(self, kernel: Kernel, index: int) -> None:
        super().__init__(kernel, index)
        # Tickets that have not had their turn, the earliest first.
        self._tickets: deque[Ticket] = deque()
        # Tickets that are out, by request and number of the enter step.
        self._out: dict[tuple[RequestInFlight, int], Ticket] = {}
        self._count = Level()
        self._waited_ns = 0

    @property
    def waiting(self) -> int:
        """Number of turns that wait."""
        return sum(ticket.turn is not None for ticket in self._tickets)

    @property
    def idle(self) -> bool:
        """True if no ticket is out."""
        return not self._out

    def alone(self, request: RequestInFlight, enter: int) -> bool:
        """Return True if no ticket is out except the one of an enter step."""
        return self._out.keys() <= {(request, enter)}

    def begin(self, request: RequestInFlight, step: PathStep) -> None:
        """Take a ticket, wait for its turn, or return it."""
        now_ns = self.kernel.now_ns
        if step.word == ENTER:
            ticket = Ticket(request, now_ns)
            self._tickets.append(ticket)
            self._out[request, step.number] = ticket
            self._count.change(1, now_ns)
        elif step.word == TURN:
            self._out[request, step.ticket].turn = Visit(request, step, 0, now_ns)
            self._pass_tickets()
            return
        else:
            self._give_back(request, step.ticket)
            self._pass_tickets()
        self.kernel.ready.append((request, step))

    def _pass_tickets(self) -> None:
        """Grant turns to the earliest tickets, up to one that does not wait for its turn yet."""
        tickets = self._tickets
        while tickets and not self.stopped:
            ticket = tickets[0]
            if not (ticket.passed or ticket.turn):
                return
            tickets.popleft()
            if ticket.turn:
                self.kernel.ready.append((ticket.request, ticket.turn.step))
                self._end_wait(ticket)
            ticket.passed = True

    def _end_wait(self, ticket: Ticket) -> None:
        if ticket.turn:
            self._waited_ns += self.kernel.now_ns - ticket.turn.joined_ns
            ticket.turn = None

    def _give_back(self, request: RequestInFlight, enter: int) -> None:
        ticket = self._out.pop((request, enter))
        self._end_wait(ticket)
        ticket.passed = True
        self._count.change(-1, self.kernel.now_ns)

    def waited_ns(self, end_ns: int) -> int:
        """Return the time that turns have waited, summed until the end of the run."""
        waiting = [ticket.turn for ticket in self._tickets if ticket.turn]
        return self._waited_ns + sum(end_ns - turn.joined_ns for turn in waiting)

    def held_ns(self, end_ns: int) -> int:
        """Return the time that tickets were out, summed until the end of the run."""
        return self._count.integral_ns(end_ns)

    def users(self) -> Iterable[RequestInFlight]:
        """Yield the requests that have a ticket."""
        return (ticket.request for ticket in self._out.values())

    def at_rest(self) -> bool:
        """Return True if no ticket is out."""
        return not self._out

    def cut_off(self, cut: Collection[RequestInFlight]) -> bool:
        """Take tickets back, without granting turns yet."""
        dropped = [key for key in self._out if key[0] in cut]
        for request, enter in dropped:
            self._give_back(request, enter)
        return bool(dropped)

    def resume(self) -> None:
        """Grant turns."""
        self._pass_tickets()


class Delays:
    """Delays, which need no resource."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._running: dict[Delay, None] = {}

    def begin(self, request: RequestInFlight, step: PathStep) -> None:
        """Begin a delay."""
        delay = Delay(self, request, step)
        self._running[delay] = None
        end_ns = self._kernel.now_ns + step.demand_ns
        self._kernel.put(end_ns, FIRST_STEP + request.order + step.number, delay)

    def end(self, delay: Delay) -> None:
        """Complete a delay."""
        del self._running[delay]
        self._kernel.ready.append((delay.request, delay.step))

    def cut_off(self, cut: Collection[RequestInFlight]) -> None:
        """Drop the delays of some requests."""
        for delay in list(self._running):
            if delay.request in cut:
                self._kernel.cancel(delay)
                del self._running[delay]


class Delay(Moment):
    """A delay in progress. As a moment, it is the end of the delay."""

    __slots__ = ("delays", "request", "step")

    def __init__(
        self, delays: Delays, request: RequestInFlight, step: PathStep
    ) -> None:
        self.delays = delays
        self.request = request
        self.step = step

    def act(self) -> None:
        """End the delay."""
        self.delays.end(self)
