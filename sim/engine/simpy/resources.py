"""The resources of the SimPy engine, one class for each discipline; the cores have `cores.py`."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence

from stripesim.sim.engine.graph import ACQUIRE, ENTER, TURN
from stripesim.sim.engine.simpy.kernel import (
    FIRST_STEP,
    LOOK,
    LOST_SERVICE,
    Call,
    Kernel,
    Moment,
)
from stripesim.sim.engine.simpy.paths import Request, Step
from stripesim.sim.engine.simpy.queues import BatchQueue, Queue, Visit


class Level:
    """A number that changes with time, and its integral."""

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
        # What wake-ups of its threads were spared because their process had just run.
        self.warm_ns = 0
        self._kind = kernel.kinds[index]

    @property
    def idle(self) -> bool:
        """Whether a server or a unit is free, or no ticket of a gate is out."""
        raise NotImplementedError

    def begin(self, request: Request, step: Step) -> None:
        """Begin a step whose predecessors have completed."""
        raise NotImplementedError

    def sleep(self) -> None:
        """Count that a server or a unit becomes idle because nothing waits for it."""
        self.sleeps += 1
        if self.kernel.sleep_bins.bin_ns:
            self.kernel.sleep_bins.at(self.kernel.now_ns)[self._kind] += 1

    def waited_ns(self, end_ns: int) -> int:
        """Return the time that steps have waited, all together, up to the end of the run."""
        raise NotImplementedError

    def held_ns(self, end_ns: int) -> int:
        """Return the time for which units or tickets were out, up to the end of the run."""
        return 0

    def users(self) -> Iterable[Request]:
        """Yield the requests that hold a unit or a ticket."""
        return ()

    def at_rest(self) -> bool:
        """Tell whether nothing is taken and nothing waits."""
        raise NotImplementedError

    def stop(self) -> Sequence[Resource]:
        """Stop; return the resources at which others may go on for it."""
        self.stopped = True
        return ()

    def start(self) -> None:
        """Work again."""
        self.stopped = False

    def cut_off(self, cut: Collection[Request]) -> bool:
        """Drop some requests; tell whether others may go on for it."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Let those go on that wait for what was given back or started."""
        raise NotImplementedError


class Queued(Resource):
    """A resource that has a queue. What a visit gets there, subclasses say."""

    def __init__(self, kernel: Kernel, index: int, queue: Queue) -> None:
        super().__init__(kernel, index)
        self.queue = queue
        # Servers or units that nobody has.
        self.free = self.capacity
        self._waited_ns = 0
        self._look: Call | None = None

    @property
    def idle(self) -> bool:
        """Whether a server or a unit is free."""
        return self.free > 0

    def arrive(self, visit: Visit) -> None:
        """Enqueue a visit, which goes on at once if it may."""
        self.queue.join(visit)
        if self.free:
            self.dispatch(awake=0)

    def dispatch(self, awake: int) -> int:
        """Serve what may go on; return how many were served. All but the first `awake` wake someone up."""
        queue = self.queue
        now_ns = self.kernel.now_ns
        served = 0
        while queue and self.free and self.can_serve():
            visit = queue.take(now_ns)
            if visit is None:
                break
            self._waited_ns += now_ns - visit.joined_ns
            for other in visit.others:
                self._waited_ns += now_ns - other.joined_ns
            self.serve(visit, woken=served >= awake)
            served += 1
        if queue or self._look:
            self._look_again()
        return served

    def can_serve(self) -> bool:
        """Tell whether what is free may be given out."""
        return not self.stopped

    def serve(self, visit: Visit, *, woken: bool) -> None:
        """Give a server or a unit to a visit, which wakes it up if it sleeps."""
        raise NotImplementedError

    def _look_again(self) -> None:
        """Look at the queue again as soon as a visit may go on that has to wait for nothing but time."""
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
        """Return the time that visits have waited, all together."""
        return self._waited_ns + sum(end_ns - visit.joined_ns for visit in self.queue)

    def at_rest(self) -> bool:
        """Tell whether nothing is taken and nothing waits."""
        return self.free == self.capacity and not self.queue

    def stop(self) -> Sequence[Resource]:
        """Serve nobody any more."""
        self.stopped = True
        self._look_again()
        return ()

    def cut_off(self, cut: Collection[Request]) -> bool:
        """Drop visits from the queue. Others may go on for it only where they wait for a time."""
        dropped = [visit for visit in self.queue if visit.request in cut]
        for visit in dropped:
            self._waited_ns += self.kernel.now_ns - visit.joined_ns
        self.queue.leave(cut)
        return bool(dropped and self._look)

    def go_on(self) -> None:
        """Serve what waits. What a director gives back is awake."""
        self.dispatch(awake=self.capacity)


class Service(Moment):
    """A service in progress: the moment of its end."""

    __slots__ = ("end_ns", "server", "since_ns", "visit")

    def __init__(self, server: Fifo, visit: Visit, end_ns: int, since_ns: int) -> None:
        self.server = server
        self.visit = visit
        self.end_ns = end_ns
        # Since when the server works for the same thread.
        self.since_ns = since_ns

    def act(self) -> None:
        """End the service."""
        self.server.end(self)


class Fifo(Queued):
    """Servers that serve one visit after the other."""

    def __init__(self, kernel: Kernel, index: int, queue: Queue) -> None:
        super().__init__(kernel, index, queue)
        self.services: dict[Service, None] = {}
        # Services whose requests were cut off, which occupy their servers to the end.
        self.lost: dict[Call, None] = {}

    def begin(self, request: Request, step: Step) -> None:
        """Take a server or wait for one."""
        demand_ns = self.demand_ns(request, step)
        if step.thread in request.woken:
            demand_ns += self.waking_ns(request, step)
        self.arrive(Visit(request, step, demand_ns, self.kernel.now_ns))

    def demand_ns(self, request: Request, step: Step) -> int:
        """Return how long a use takes a server that is awake."""
        if step.spread:
            return self.kernel.random_ns(request, step)
        return step.demand_ns

    def waking_ns(self, request: Request, step: Step) -> int:
        """Return by how much a use takes longer because its thread had to be woken."""
        assert step.thread is not None
        pool = request.row[step.thread.role]
        assert pool is not None
        return pool.wake_ns

    def serve(self, visit: Visit, *, woken: bool) -> None:
        """Begin a service by a free server."""
        self.free -= 1
        demand_ns = visit.demand_ns
        if woken:
            demand_ns += self.wake_ns
        self.begin_service(visit, demand_ns, self.kernel.now_ns)

    def begin_service(self, visit: Visit, demand_ns: int, since_ns: int) -> None:
        """Begin a service by a server that is taken."""
        self.busy_ns += demand_ns
        self._put(Service(self, visit, self.kernel.now_ns + demand_ns, since_ns))

    def _put(self, service: Service) -> None:
        """Put the end of a service into the calendar, under the key of its visit."""
        visit = service.visit
        self.services[service] = None
        priority = FIRST_STEP + visit.request.key + visit.step.number
        self.kernel.put(service.end_ns, priority, service)

    def end(self, service: Service) -> None:
        """End a service; hand its server over before the steps of its visits go on."""
        del self.services[service]
        visit = service.visit
        kernel = self.kernel
        kernel.uses += 1
        if visit.step.once is not None:
            kernel.account_service(visit.request, visit.step)
        kernel.ready.append((visit.request, visit.step))
        self.hand_over(service)
        for other in visit.others:
            kernel.uses += 1
            kernel.ready.append((other.request, other.step))

    def hand_over(self, service: Service) -> None:
        """Let the next visit have the server of a service that has ended."""
        self.free_server()

    def free_server(self) -> None:
        """Free a server that is awake."""
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
        """Work again, with all servers free."""
        self.stopped = False
        self.free = self.capacity

    def cut_off(self, cut: Collection[Request]) -> bool:
        """Drop visits in the queue and in service."""
        for service in list(self.services):
            visits = [service.visit, *service.visit.others]
            left = [visit for visit in visits if visit.request not in cut]
            if len(left) < len(visits):
                self._leave_service(service, left)
        return super().cut_off(cut)

    def _leave_service(self, service: Service, left: list[Visit]) -> None:
        """Serve on for the visits that are left; without any the server stays occupied all the same."""
        self.kernel.cancel(service)
        del self.services[service]
        if left:
            leader, *others = left
            leader.others = others
            self._put(Service(self, leader, service.end_ns, service.since_ns))
            return

        def end() -> None:
            del self.lost[lost]
            self.free_server()

        priority = LOST_SERVICE + self.index
        lost = self.kernel.call_at(service.end_ns, priority, end)
        self.lost[lost] = None


class Batch(Fifo):
    """Servers of which one service serves all that waited when it began."""

    def __init__(self, kernel: Kernel, index: int) -> None:
        super().__init__(kernel, index, BatchQueue())


class Pool(Queued):
    """Units that requests acquire and release."""

    def __init__(self, kernel: Kernel, index: int, queue: Queue) -> None:
        super().__init__(kernel, index, queue)
        self._out = Level()
        # How many units each request has.
        self._units: defaultdict[Request, int] = defaultdict(int)

    def begin(self, request: Request, step: Step) -> None:
        """Take a unit or wait for one; or give one back."""
        if step.word == ACQUIRE:
            self.arrive(Visit(request, step, 0, self.kernel.now_ns))
            return
        self._give_back(request, 1)
        self.release()
        self.kernel.ready.append((request, step))

    def serve(self, visit: Visit, *, woken: bool) -> None:
        """Give a free unit to a visit."""
        request = visit.request
        self.free -= 1
        self._out.change(1, self.kernel.now_ns)
        self._units[request] += 1
        if woken:
            request.woken.add(visit.step)
        self.kernel.ready.append((request, visit.step))

    def release(self) -> None:
        """Hand a unit over that has been given back and is awake."""
        if not self.dispatch(awake=1):
            self.sleep()

    def _give_back(self, request: Request, units: int) -> None:
        self.free += units
        self._out.change(-units, self.kernel.now_ns)
        self._units[request] -= units
        if not self._units[request]:
            del self._units[request]

    def held_ns(self, end_ns: int) -> int:
        """Return the time for which units were out."""
        return self._out.integral_ns(end_ns)

    def users(self) -> Iterable[Request]:
        """Yield the requests that have a unit."""
        return self._units

    def cut_off(self, cut: Collection[Request]) -> bool:
        """Drop visits in the queue and take units back."""
        others_may_go_on = super().cut_off(cut)
        holders = [request for request in self._units if request in cut]
        for request in holders:
            self._give_back(request, self._units[request])
        return others_may_go_on or bool(holders)


class Ticket:
    """A place in a gate."""

    def __init__(self, request: Request, entered_ns: int) -> None:
        self.request = request
        # The turn that waits.
        self.turn: Visit | None = None
        # Whether it has had its turn or has been given back.
        self.passed = False


class Gate(Resource):
    """Gives tickets out, and turns in the order of the tickets."""

    def __init__(self, kernel: Kernel, index: int) -> None:
        super().__init__(kernel, index)
        # Tickets that have not had their turn, the earliest first.
        self._tickets: deque[Ticket] = deque()
        # Tickets that are out, by their request and the number of their enter step.
        self._out: dict[tuple[Request, int], Ticket] = {}
        self._count = Level()
        self._waited_ns = 0

    @property
    def idle(self) -> bool:
        """Whether no ticket is out."""
        return not self._out

    def alone(self, request: Request, enter: int) -> bool:
        """Tell whether no ticket is out but that of an enter step."""
        others = len(self._out) - ((request, enter) in self._out)
        return others == 0

    def begin(self, request: Request, step: Step) -> None:
        """Take a ticket, wait for its turn, or give it back."""
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
        """Let tickets have their turn, the earliest first, up to the first that has not come to it."""
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

    def _give_back(self, request: Request, enter: int) -> None:
        ticket = self._out.pop((request, enter))
        self._end_wait(ticket)
        ticket.passed = True
        self._count.change(-1, self.kernel.now_ns)

    def waited_ns(self, end_ns: int) -> int:
        """Return the time that turns have waited, all together."""
        waiting = [ticket.turn for ticket in self._tickets if ticket.turn]
        return self._waited_ns + sum(end_ns - turn.joined_ns for turn in waiting)

    def held_ns(self, end_ns: int) -> int:
        """Return the time for which tickets were out."""
        return self._count.integral_ns(end_ns)

    def users(self) -> Iterable[Request]:
        """Yield the requests that have a ticket."""
        return (ticket.request for ticket in self._out.values())

    def at_rest(self) -> bool:
        """Tell whether no ticket is out."""
        return not self._out

    def cut_off(self, cut: Collection[Request]) -> bool:
        """Take tickets back, without letting others have their turn."""
        dropped = [key for key in self._out if key[0] in cut]
        for request, enter in dropped:
            self._give_back(request, enter)
        return bool(dropped)

    def go_on(self) -> None:
        """Let tickets have their turn."""
        self._pass_tickets()


class Delays:
    """Lapses of time without a queue."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._running: dict[Delay, None] = {}

    def begin(self, request: Request, step: Step) -> None:
        """Let time pass."""
        delay = Delay(self, request, step)
        self._running[delay] = None
        end_ns = self._kernel.now_ns + step.demand_ns
        self._kernel.put(end_ns, FIRST_STEP + request.key + step.number, delay)

    def end(self, delay: Delay) -> None:
        """Complete a step whose time has passed."""
        del self._running[delay]
        self._kernel.ready.append((delay.request, delay.step))

    def cut_off(self, cut: Collection[Request]) -> None:
        """Drop the delays of some requests."""
        for delay in list(self._running):
            if delay.request in cut:
                self._kernel.cancel(delay)
                del self._running[delay]


class Delay(Moment):
    """The end of a lapse of time."""

    __slots__ = ("delays", "request", "step")

    def __init__(self, delays: Delays, request: Request, step: Step) -> None:
        self.delays = delays
        self.request = request
        self.step = step

    def act(self) -> None:
        """End the lapse of time."""
        self.delays.end(self)
