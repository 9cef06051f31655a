"""Figure 7: httpd is written, then nodes leave and join at the times of a failure trace."""

import gzip
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.models.coding import parse_scheme
from stripesim.models.nic import NicModel
from stripesim.models.problems import MeasuredError, Problem, file_reason
from stripesim.scenarios.studies.erasurebench2016 import parameters
from stripesim.scenarios.studies.erasurebench2016.codes import (
    K,
    codes,
    local_first_sources,
    positions_read,
)
from stripesim.scenarios.studies.erasurebench2016.sequences import archive_writes
from stripesim.scenarios.studies.erasurebench2016.source import plotted
from stripesim.scenarios.studies.tasks import Row
from stripesim.sim.systems.kv_proxy import proxy
from stripesim.sim.systems.kv_proxy.cluster import (
    AdminCosts,
    RepairSources,
    StoreCluster,
)
from stripesim.sim.systems.kv_proxy.plan import keys_of, write_operations
from stripesim.sim.systems.kv_proxy.proxy import (
    Operations,
    acknowledged_bytes,
    run_operations,
    traffic_of,
)

TRACE = Path("failure-traces/fta_websites02_derived/websites_size.csv.gz")
KINDS = ("check", "read", "write", "cluster", "other")
"""The source's kinds of traffic. Answers without a value and bare acknowledgements are ``other``."""
RUNS = ("RS", "LRC", "LRC as run")
NS_PER_S = 1e9
INITIAL_S = 180.0
WINDOW_S = (1200.0, 1800.0)
"""Length of the first write, and the window that the source evaluates [s]."""
Floats = npt.NDArray[np.float64]


class Event(NamedTuple):
    """A change of the store's number of nodes."""

    at_s: float
    nodes: int


def plotted_events() -> tuple[Event, ...]:
    """Return the points of Figure 7, top."""
    points = plotted(7, code="nodes")
    window_s = parameters.number("replay", "window_s")
    return tuple(
        Event(x, int(y))
        for x, y in zip(points["x"], points["y"], strict=True)
        if x <= window_s
    )


def traced_events(data: Path) -> tuple[Event, ...]:
    """Return the same window from the failure trace, which is in a folder of data."""
    path = data / TRACE
    start_s, window_s = (
        parameters.number("replay", name) for name in ("window_start_s", "window_s")
    )
    before = None
    events = []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                at, _, nodes = line.strip().partition(",")
                if not (at.isdigit() and nodes.isdigit()):
                    raise MeasuredError(
                        Problem(
                            place=f"{path}:{number}",
                            got=f"{line.strip()!r}",
                            wanted="seconds,nodes",
                        )
                    )
                if int(at) <= start_s:
                    before = int(nodes)
                elif int(at) <= start_s + window_s:
                    events.append(Event(int(at) - start_s, int(nodes)))
    except (OSError, UnicodeDecodeError, EOFError) as error:
        wanted = "a trace of events in gzip"
        raise MeasuredError(
            Problem(place=str(path), got=file_reason(error), wanted=wanted)
        ) from None
    if before is None:
        raise MeasuredError(
            Problem(
                place=str(path),
                got=f"no line before second {start_s:.0f}",
                wanted="the trace's begin",
            )
        )
    return (Event(0.0, before), *events)


class Traffic:
    """Traffic of a replay [B], by kind and time bin."""

    def __init__(self, bin_s: float) -> None:
        self.bin_s = bin_s
        self.sums: dict[str, dict[int, int]] = {
            kind: defaultdict(int) for kind in KINDS
        }

    def add(self, kind: str, at_s: Floats, size_bytes: npt.NDArray[np.int64]) -> None:
        """Count bytes of one kind at some times."""
        bins, index = np.unique(
            (at_s // self.bin_s).astype(np.int64), return_inverse=True
        )
        for where, size in zip(
            bins.tolist(), np.bincount(index, weights=size_bytes).tolist(), strict=True
        ):
            self.sums[kind][where] += round(size)

    def bins(
        self,
        kinds: Sequence[str] = KINDS,
        *,
        first_s: float = 0,
        last_s: float = np.inf,
    ) -> dict[int, int]:
        """Return bytes of some kinds in the bins that begin in a span of time."""
        sums: dict[int, int] = defaultdict(int)
        for kind in kinds:
            for where, size in self.sums[kind].items():
                if first_s <= where * self.bin_s < last_s:
                    sums[where] += size
        return sums


class Replayed(NamedTuple):
    """Outcome of a replay, with the number of keys that no repair could restore."""

    traffic: Traffic
    actions: list[tuple[float, float, str]]
    lost_keys: int


def sources_of(run: str) -> RepairSources:
    """Return the rule for positions that a repair reads: RS, LRC, or LRC as configured in the source."""
    if run == "LRC as run":
        return partial(local_first_sources, 5, 1)
    return partial(planned_sources, codes()[run].scheme)


@lru_cache(maxsize=1 << 14)
def planned_sources(scheme: str, lost: frozenset[int]) -> tuple[int, ...]:
    """Return the positions that the code's own repair plan reads, or none if the data is lost."""
    code = parse_scheme(scheme)
    return positions_read(
        lambda: code.plan_repair(
            lost=lost, object_size_bytes=code.k, geometry=code.geometry(1)
        )
    )


def replay(
    run: str,
    events: Sequence[Event],
    *,
    bin_s: float,
    seed: int,
    engine: str = "compiled",
) -> Replayed:
    """Write httpd, then follow the events, one action at a time, towards the newest number of nodes.

    As in the source's scripts, nodes are added and slots moved to them, or nodes are killed one after another
    and then every file is checked and repaired. Further events wait in the meantime.

    Parameters
    ----------
    run
        One of `RUNS`.
    events
        Numbers of nodes over time, beginning with the initial one.
    bin_s
        Width of the bins of traffic [s].
    seed
        Seed of slots, leaving nodes and moving slots.
    engine
        ``compiled`` or ``simpy``.

    Raises
    ------
    MeasuredError
        If an event cannot be followed.
    """
    _check(events)
    code = run.partition(" ")[0]
    have = events[0].nodes
    joins = sum(max(0, b.nodes - a.nodes) for a, b in itertools.pairwise(events))
    system = parameters.system(have + joins)
    writes = archive_writes("httpd")
    keys = keys_of(writes, system.aggregation, width=codes()[code].width)
    admin = AdminCosts(
        command_ns=parameters.number("admin", "command_ns"),
        line_bytes=int(parameters.number("admin", "line_bytes")),
        loads_count=int(parameters.number("admin", "loads_count")),
    )
    cluster = StoreCluster(system, keys, nodes=have, admin=admin, seed=seed)
    traffic = Traffic(bin_s)
    actions = []
    now_s = 0.0

    def act(words: str, operations: Operations) -> None:
        nonlocal now_s
        done = run_operations(system, operations, engine=engine)
        _count(
            traffic, done.operations, now_s + done.completed_ns / NS_PER_S, system.nic
        )
        ended_s = now_s + done.elapsed_ns / NS_PER_S
        actions.append((now_s, ended_s, words))
        now_s = ended_s

    act(
        "write",
        write_operations(system, writes, keys, cluster.nodes_of_keys, code=code),
    )
    waiting = list(events[1:])
    while waiting:
        now_s = max(now_s, waiting[0].at_s)
        wanted = have
        while waiting and waiting[0].at_s <= now_s:
            wanted = waiting.pop(0).nodes
        for _ in range(wanted - have):
            act("join", cluster.join())
        for _ in range(have - wanted):
            act("leave", cluster.leave())
        if wanted < have:
            work = system.model.read_ns_per_byte(code)
            act(
                "repair",
                cluster.repair(sources_of(run), work_ns_per_byte=work, data_blocks=K),
            )
        have = wanted
    return Replayed(traffic, actions, int(cluster.lost.sum()))


def _check(events: Sequence[Event]) -> None:
    """Refuse an impossible schedule."""
    if not events:
        raise MeasuredError(
            Problem(key="events", got="none", wanted="the nodes at the begin")
        )
    for index, event in enumerate(events):
        if event.at_s < 0 or event.nodes < 2:
            raise MeasuredError(
                Problem(
                    place=f"event {index}",
                    got=f"{event.nodes} nodes at {event.at_s} s",
                    wanted="2 or more at 0 or later",
                )
            )
        if index and event.at_s < events[index - 1].at_s:
            raise MeasuredError(
                Problem(
                    place=f"event {index}",
                    got=f"{event.at_s} s",
                    wanted=f"no earlier than {events[index - 1].at_s}",
                )
            )


def _count(
    traffic: Traffic, operations: Operations, at_s: Floats, nic: NicModel
) -> None:
    """Count the traffic of operations and their answers by the source's kinds."""
    sent, answered = (
        traffic_of(nic, size)
        for size in (operations.sent_bytes, operations.answered_bytes)
    )
    bare = acknowledged_bytes(nic, operations.sent_bytes, operations.answered_bytes)
    for kind, words, answers in (
        (proxy.EXISTS, "check", "check"),
        (proxy.GET, "read", "read"),
        (proxy.SET, "write", "other"),
        (proxy.ADMIN, "cluster", "cluster"),
        (proxy.MIGRATE, "other", "other"),
    ):
        mine = operations.kinds == kind
        traffic.add(words, at_s[mine], sent[mine])
        traffic.add(answers, at_s[mine], answered[mine])
        traffic.add("other", at_s[mine], bare[mine])


def rows(
    events: Sequence[Event], source: str, *, bin_s: float, seed: int, engine: str
) -> Iterator[Row]:
    """Yield result rows of the replays under RS, LRC and LRC as run."""
    for run in RUNS:
        done = replay(run, events, bin_s=bin_s, seed=seed, engine=engine)
        traffic = done.traffic
        initial = traffic.bins(last_s=INITIAL_S)
        window = traffic.bins(first_s=WINDOW_S[0], last_s=WINDOW_S[1])
        repairs_s = [
            end - begin for begin, end, words in done.actions if words == "repair"
        ]
        scheme = codes()[run.partition(" ")[0]].scheme
        base: dict[str, Any] = {
            "code": run,
            "scheme": scheme,
            "op": "repair",
            "pattern": "seq",
        }
        yield {
            **base,
            "experiment": "replay",
            "events_from": source,
            "peak_initial_bin_bytes": max(initial.values(), default=0),
            "peak_window_bin_bytes": max(window.values(), default=0),
            "initial_bytes": sum(initial.values()),
            "read_after_bytes": sum(
                traffic.bins(("read",), first_s=INITIAL_S).values()
            ),
            "repairs": len(repairs_s),
            "repair_mean_s": float(np.mean(repairs_s)),
            "lost_keys": done.lost_keys,
        }
        for kind, sums in traffic.sums.items():
            for where, size in sorted(sums.items()):
                at_s = float(where * bin_s)
                series = {"experiment": "replay series", "traffic_kind": kind}
                yield {**base, **series, "at_s": at_s, "bin_bytes": size}
    for event in events:
        yield {
            "experiment": "replay nodes",
            "code": "nodes",
            "at_s": event.at_s,
            "nodes": event.nodes,
        }
