"""What the latency of a cell's requests consists of: a sample of them followed step by step, and a table."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stripesim.scenarios.run.cell import run_cell
from stripesim.scenarios.schema.keys import Cell, Scenario
from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.loops import ClientStream
from stripesim.sim.ceph.planner import RequestPlanner
from stripesim.sim.engine.draws import seed_state
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.observe.critical_path import (
    SERVED_STEPS,
    STEPS,
    WAITED_STEPS,
    PathSplitter,
)
from stripesim.sim.run import RunResult, factor_tables

#: Requests followed, at most: the mean of so many of them is known to a few per cent.
SAMPLE_MAX: Final = 1000
# The sample comes from so many requests behind the transient, at most, so that following costs seconds.
_CANDIDATES_MAX: Final = 50_000
_CLIENT: Final = STEPS.index("client")


def cost_key(step: str, *, waiting: bool = False) -> str:
    """Name the column of a step's mean time in service, or waiting.

    >>> cost_key("device"), cost_key("lock", waiting=True)
    ('cost_device_ns', 'cost_lock_wait_ns')
    """
    return f"cost_{step}_wait_ns" if waiting else f"cost_{step}_ns"


def steps_with_time(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the steps that any row spends time on, in their order."""
    keys = {step: (cost_key(step), cost_key(step, waiting=True)) for step in STEPS}
    return [
        step
        for step, pair in keys.items()
        if any(row.get(key) for row in rows for key in pair)
    ]


#: Columns of a row that are parts of the latency: service and waiting of each step, in the steps' order.
COST_KEYS: Final = tuple(
    cost_key(step, waiting=waiting)
    for step in STEPS
    for waiting in (False, True)
    if step in (WAITED_STEPS if waiting else SERVED_STEPS)
)


def dominant(row: Mapping[str, Any]) -> str | None:
    """Name the largest part of a row's latency, such as ``device`` or ``lock_wait``; None without costs."""
    if row.get(COST_KEYS[0]) is None:
        return None
    largest = max(COST_KEYS, key=lambda key: row[key])
    return largest.removeprefix("cost_").removesuffix("_ns")


def cell_costs(
    scenario: Scenario, cell: Cell, result: RunResult, engine: str, models: Models
) -> dict[str, Any]:
    """Run a cell once more, follow a sample of its requests, and split their mean latency.

    The sample is spread evenly over the requests that the row's mean latency is made of, or over the first
    50,000 of them. A request that crosses objects has the path of the part that completes last; that the
    client issued this part late, or took notice of its reply late, is waiting for the client.
    """
    chosen = _sample(result)
    if not len(chosen):
        return {}
    requested, first = result.first, result.engine_run.streams[0]
    owners = _owners(result)
    parts = np.flatnonzero(np.isin(owners, chosen))
    until_ns = int(requested.completed_ns[chosen].max())
    again = run_cell(scenario, cell, engine, models, until_ns=until_ns, followed=parts)
    stream = again.engine_run.streams[0]
    if not np.array_equal(stream.completed_ns[parts], first.completed_ns[parts]):
        raise RuntimeError(
            f"costs of {cell.scheme}: the run that was followed is not the run"
        )
    splitters = _splitters(scenario, again, stream.templates[parts])
    served, waited = (
        np.zeros(len(STEPS), dtype=np.int64),
        np.zeros(len(STEPS), dtype=np.int64),
    )
    for row in _last_parts(owners[parts], stream.completed_ns[parts]):
        part = int(parts[row])
        splitter, ends_ns = (
            splitters[int(stream.templates[part])],
            again.engine_run.followed_ns[row],
        )
        times = splitter.split(
            part * len(again.engine_run.streams),
            int(stream.issued_ns[part]),
            ends_ns.tolist(),
            retries=int(stream.retries[part]) if len(stream.retries) else 0,
        )
        served += times.served_ns
        waited += times.waited_ns
        waited[_CLIENT] += stream.issued_ns[part] - requested.issued_ns[owners[part]]
        # A client that waits for its newest request sees other replies later than they come.
        waited[_CLIENT] += stream.completed_ns[part] - ends_ns[splitter.template.reply]
    totals_ns = {cost_key(step): int(served[index]) for index, step in enumerate(STEPS)}
    totals_ns |= {
        cost_key(step, waiting=True): int(waited[index])
        for index, step in enumerate(STEPS)
    }
    latencies_ns = requested.completed_ns[chosen] - requested.issued_ns[chosen]
    if sum(totals_ns.values()) != latencies_ns.sum():
        raise RuntimeError(
            f"costs of {cell.scheme}: the parts of the latency do not add up to it"
        )
    row_costs: dict[str, Any] = {
        "cost_requests": len(chosen),
        "cost_latency_mean_ns": float(latencies_ns.mean()),
    }
    row_costs |= {key: totals_ns[key] / len(chosen) for key in COST_KEYS}
    return {**row_costs, "cost_dominant": dominant(row_costs)}


def _sample(result: RunResult) -> IntArray:
    """Choose requests to follow, by number among the client's requests, ascending."""
    requested = result.first
    if result.window is None:
        return np.zeros(0, dtype=np.int64)
    candidates = np.flatnonzero(result.window.holds(requested))[:_CANDIDATES_MAX]
    if len(candidates) <= SAMPLE_MAX:
        return candidates
    return candidates[
        np.linspace(0, len(candidates) - 1, SAMPLE_MAX).round().astype(np.int64)
    ]


def _owners(result: RunResult) -> IntArray:
    """Number of the client's request that each part issued belongs to, as in `ClientRequests`."""
    owners = result.foreground.planned.owners[
        : len(result.engine_run.streams[0].issued_ns)
    ]
    numbers: IntArray = np.cumsum(np.r_[False, owners[1:] != owners[:-1]])
    return numbers


def _last_parts(owners: IntArray, completed_ns: IntArray) -> list[int]:
    """Return of each request the part that completed last, of several the first."""
    order = np.lexsort((-np.arange(len(owners)), completed_ns, owners))
    last = np.flatnonzero(np.r_[owners[order][1:] != owners[order][:-1], True])
    return sorted(order[last].tolist())


def _splitters(
    scenario: Scenario, result: RunResult, templates: IntArray
) -> dict[int, PathSplitter]:
    """Make what splits the paths of requests on these templates."""
    planner = result.foreground
    assert isinstance(planner, RequestPlanner | ClientStream)
    tables, state = factor_tables(planner.pool), seed_state(scenario.seed)
    return {
        index: PathSplitter(result.book.templates[index], tables, state)
        for index in np.unique(templates).tolist()
    }


#: More cells than these are not read on a terminal: of a larger grid one size is shown.
ROWS_MAX: Final = 24
_USUAL_SIZE_BYTES: Final = 4096


class StepLook(NamedTuple):
    """How a step is shown."""

    words: str
    heading: str  # two lines each and hardly wider than a number, so that all fit on 100 columns
    colour: str


# Okabe & Ito, "Color universal design" (2008), two shades of blue and green each, greys and the wine of Tol's
# "Colour schemes" (2021); neighbours in the stack differ in lightness too.
STEP_LOOKS: Final[Mapping[str, StepLook]] = {
    "client": StepLook("client", "cli-\nent", "#E69F00"),
    "public_net": StepLook("public network", "pub.\nnet", "#56B4E9"),
    "lock": StepLook("PG lock, order of writes", "PG\nlock", "#222222"),
    "primary_cpu": StepLook("primary's CPU", "pri.\nCPU", "#009E73"),
    "encode": StepLook("encode, decode", "en-\ncode", "#CC79A7"),
    "read_back": StepLook("reading back", "read\nback", "#A6CFE8"),
    "distribution": StepLook("distribution", "dis-\ntri.", "#0072B2"),
    "shard_cpu": StepLook("shards' CPU", "OSDs\nCPU", "#B5DBA0"),
    "device": StepLook("device", "de-\nvice", "#D55E00"),
    "log": StepLook("log", "log", "#F0E442"),
    "pause": StepLook("saving old stripes", "pause", "#BBBBBB"),
    "hung": StepLook("resent after a fault", "hung", "#882255"),
}
_NOTE: Final = (
    "% of the mean latency of the requests followed, along their critical paths: first in service, below it "
    "waiting. * = the largest part; log = the store's log and its thread; distri. = private network of "
    "sub-writes; read back = private network of reads; OSDs CPU = of the members; pause = saving what is "
    "overwritten; hung = waiting for a dead member, until the request is issued again"
)


def print_costs(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print what the latency of each row consists of, service above waiting; of many cells, one size."""
    costed = [row for row in rows if row.get(COST_KEYS[0]) is not None]
    if not costed:
        return
    title = "Cost by step [%]"
    sizes = sorted({row.get("block_size_bytes") or 0 for row in costed})
    if len(costed) > ROWS_MAX and len(sizes) > 1:
        shown = _USUAL_SIZE_BYTES if _USUAL_SIZE_BYTES in sizes else sizes[0]
        costed = [row for row in costed if row.get("block_size_bytes") == shown]
        title += f", {format_size(shown)} of {len(sizes)} sizes (all: --out, figures costs-…)"
    steps = steps_with_time(costed)
    table = Table(
        box=SIMPLE_HEAD,
        caption=_NOTE,
        caption_justify="left",
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=title,
        title_justify="left",
    )
    table.add_column("requests")
    for head in ("mean\n[ms]", *(STEP_LOOKS[step].heading for step in steps)):
        table.add_column(head, justify="right", no_wrap=True)
    for row in costed:
        size = row.get("block_size_bytes")
        words = [
            str(row[key])
            for key in ("scheme", "op", "pattern")
            if row.get(key) is not None
        ]
        words += [] if size is None else [format_size(size)]
        latency = number_text(row["cost_latency_mean_ns"] * 1e-6)
        table.add_row(
            escape(" ".join(words)), latency, *(_share(row, step) for step in steps)
        )
        waits = (_share(row, step, waiting=True) for step in steps)
        table.add_row("  waiting", "", *waits, style="dim")
    console.print(table)


def _share(row: Mapping[str, Any], step: str, *, waiting: bool = False) -> str:
    """Write a part in percent of the latency; a dot for none, nothing where there can be none."""
    key = cost_key(step, waiting=waiting)
    part_ns = row.get(key)
    if not part_ns:
        return "" if part_ns is None else "·"
    mark = "*" if key == f"cost_{dominant(row)}_ns" else ""
    percent = 100 * part_ns / row["cost_latency_mean_ns"]
    return (
        f"{percent:.0f}{mark}"
        if percent >= 10
        else f"{percent:.1f}{mark}"
        if percent >= 0.05
        else "0.0"
    )
