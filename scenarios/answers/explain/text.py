"""Write a timeline as text: a character drawing, a table of steps, and the split of the latency."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from stripesim.scenarios.answers.explain.timeline import (
    Timeline,
    TimelineStep,
)
from stripesim.scenarios.schema.units import format_size, size_text
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.sim.ceph.paths.message import split_label


class Category(NamedTuple):
    """The look of one category of time."""

    words: str
    glyph: str  # Character in a drawing: light for waiting, dark for work.
    style: str  # Style of the glyph on a terminal.
    colour: str  # Colour in a figure.
    row: str  # Row of a host on the page that plays requests.


CATEGORIES: Final = {
    "client": Category("client", "o", "yellow", "#E69F00", "CPU"),
    "network": Category("network", "=", "cyan", "#56B4E9", "network"),
    "cpu": Category("CPU", "#", "green", "#009E73", "CPU"),
    "coding": Category("encode/decode", "E", "bold magenta", "#CC79A7", "CPU"),
    "ssd": Category("drive", "D", "red", "#D55E00", "drive"),
    "pause": Category("pause", "~", "dim", "#D9D9D9", "pause"),
    "wait": Category("waiting", ".", "dim", "#FFFFFF", ""),
}

#: Label and colour of each lock and slot that a request can hold.
LOCKS: Final = {
    "pg.lock": ("PG lock held", "#0072B2"),
    "pg.pipeline": ("write pipeline", "#7FB2D9"),
    "pg.exec": ("PG busy with one stage", "#00304D"),
    "map.pg.lock": ("object map locked", "#7A5195"),
    "primary.recovery": ("recovery slot held", "#0072B2"),
}

BYTE_WORDS: Final = (
    ("device_read_bytes", "read"),
    ("device_write_bytes", "written"),
    ("private_net_bytes", "private net"),
    ("public_net_bytes", "public net"),
    ("encode_bytes", "coded"),
)


@dataclass(frozen=True)
class TableRow:
    """A line for similar steps."""

    lane: str
    #: Lane of the first step: ``client``, ``primary`` or ``shard 3``.
    first_lane: str
    what: str
    count: int
    start_ns: int
    duration_ns: tuple[int, int]  # Shortest and longest.
    wait_ns: tuple[int, int]  # Shortest and longest.
    counted: dict[str, int]  # Sums of their counters.
    # Parameters, each with its largest share in one of the steps [ns].
    sources: tuple[tuple[str, int], ...]
    after_reply: bool  # True if the first step starts after the reply.


def heading(timeline: Timeline) -> str:
    """Return a one-line title of a timeline."""
    scheme = scheme_label(timeline.scheme)
    size = size_text(timeline.size_bytes)
    release = timeline.generation
    if timeline.method not in ("", "primary"):
        release += f" ({timeline.method})"
    if timeline.op == "repair":
        lost = " and ".join(map(str, timeline.missing))
        return f"{scheme}: repair of shard {lost} of one {size} object, {release}"
    request = f"{size} {timeline.op}"
    if timeline.op == "list":
        # A list has keys of the bucket index, whatever the size of the objects.
        request = timeline.op
    if timeline.offset_bytes:
        request += f" at {size_text(timeline.offset_bytes)}"
    text = f"{scheme}: {request}, {release}"
    if timeline.state != "healthy":
        text += f", {timeline.state}"
    if timeline.missing:
        text += f" (shard {', '.join(map(str, timeline.missing))} down)"
    return text


def shard_words(timeline: Timeline) -> str:
    """Count the shards of a request: ``reads 3 shards, writes 3, metadata alone to 1``.

    If the primary itself has the data, say where it has not: requests of most offsets take longer.
    """
    parts = []
    if timeline.shard_reads == 1:
        parts.append("reads 1 shard")
    elif timeline.shard_reads:
        parts.append(f"reads {timeline.shard_reads} shards")
    if timeline.shard_writes:
        parts.append(f"writes {timeline.shard_writes}")
    if timeline.metadata_reads:
        parts.append(f"object info alone from {timeline.metadata_reads}")
    if timeline.metadata_writes:
        parts.append(f"metadata alone to {timeline.metadata_writes}")
    words = ", ".join(parts)
    if timeline.remote_offset_bytes is not None:
        offset = format_size(timeline.remote_offset_bytes)
        words += f" (the data is at the primary itself; at --offset {offset} it is not)"
    return words


def reply_word(timeline: Timeline) -> str:
    """Return the label of the moment at which a request completes."""
    return "repaired at" if timeline.op == "repair" else "reply at"


def latency_and_shard_words(timeline: Timeline) -> str:
    """Write the latency with its split, and count the shards if the request has any."""
    shards = shard_words(timeline)
    return latency_words(timeline) + (f"; {shards}" if shards else "")


def latency_words(timeline: Timeline) -> str:
    """Write the latency and its split along the critical path."""
    spent = timeline.latency_by_category_ns().items()
    parts = [
        f"{CATEGORIES[name].words} {ns / 1e3:,.0f} µs ({100 * ns / timeline.latency_ns:.0f} %)"
        for name, ns in sorted(spent, key=lambda item: -item[1])
        if ns >= timeline.latency_ns / 200
    ]
    return f"{timeline.latency_ns / 1e3:,.1f} µs: {', '.join(parts)}"


def lane_words(shards: Sequence[int], primary: int) -> str:
    """Name one or more shards, consecutive ones as a range.

    >>> lane_words([1, 2, 3, 5], 0), lane_words([0], 0)
    ('shards 1–3, 5', 'shard 0 (primary)')
    """
    if list(shards) == [primary]:
        return f"shard {primary} (primary)"
    if len(shards) == 1:
        return f"shard {shards[0]}"
    runs: list[list[int]] = []
    for shard in sorted(shards):
        if runs and shard == runs[-1][-1] + 1:
            runs[-1].append(shard)
        else:
            runs.append([shard])
    return "shards " + ", ".join(map(_run_words, runs))


def _run_words(shards: Sequence[int]) -> str:
    if len(shards) == 1:
        return str(shards[0])
    return f"{shards[0]}–{shards[-1]}"


def byte_words(counted: dict[str, int]) -> str:
    """Write the byte counters of a step, such as ``4.25 KiB private net``."""
    return ", ".join(
        f"{_size(counted[name])} {words}"
        for name, words in BYTE_WORDS
        if counted.get(name)
    )


def _size(size_bytes: int) -> str:
    for unit, word in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= 1000 * unit:
            return f"{size_bytes // unit} {word}"
        if size_bytes >= unit:
            return f"{size_bytes / unit:.3g} {word}"
    return f"{size_bytes} B"


def table_rows(timeline: Timeline) -> list[TableRow]:
    """Group similar steps of a timeline into table rows, in order of start."""
    groups: dict[tuple[Any, ...], list[TimelineStep]] = {}
    rounds: dict[tuple[Any, ...], list[tuple[int, ...]]] = {}
    for entry in timeline.steps:
        step = entry.step
        if not (step.duration_ns or step.wait_ns or step.role == "pg.lock"):
            continue
        # The parts of one transfer to a device have the same predecessors, and the pieces of a message have
        # different labels. A step with the same label on the same shard but other predecessors belongs to
        # another round.
        alike = (step.graph, entry.branch, step.label, step.role)
        known = rounds.setdefault(alike, [])
        if step.predecessors not in known:
            known.append(step.predecessors)
        number = known.index(step.predecessors)
        groups.setdefault((*_line_key(entry), number), []).append(entry)
    rows = [_row(timeline, group) for group in groups.values()]
    return sorted(rows, key=lambda row: row.start_ns)


def _line_key(entry: TimelineStep) -> tuple[Any, ...]:
    """Return the key that steps of one line share; it does not distinguish shards or their resources."""
    step = entry.step
    where = entry.lane if entry.branch is None else "shards"
    part = step.role.rpartition("]")[2] or step.role
    label = split_label(step.label)
    return step.graph, where, entry.lane == "primary", label, part


def _row(timeline: Timeline, group: Sequence[TimelineStep]) -> TableRow:
    counted: dict[str, int] = {}
    sources: dict[str, int] = {}
    for entry in group:
        for name, amount in entry.step.counted.items():
            counted[name] = counted.get(name, 0) + amount
        for name, change_ns in entry.shares:
            sources[name] = max(sources.get(name, change_ns), change_ns, key=abs)
    steps = [entry.step for entry in group]
    start_ns = min(step.ready_ns + step.wait_ns for step in steps)
    durations_ns = [step.duration_ns for step in steps]
    waits_ns = [step.wait_ns for step in steps]
    first = min(group, key=lambda entry: entry.step.ready_ns + entry.step.wait_ns)
    label, pieces = split_label(steps[0].label)
    if pieces > 1:
        label += f", {pieces} pieces"
    return TableRow(
        lane=_lane_of_group(timeline, group),
        first_lane=first.lane,
        what=label,
        count=len(steps),
        start_ns=start_ns,
        duration_ns=(min(durations_ns), max(durations_ns)),
        wait_ns=(min(waits_ns), max(waits_ns)),
        counted=counted,
        sources=tuple(sorted(sources.items(), key=lambda item: -abs(item[1]))),
        after_reply=start_ns >= timeline.latency_ns,
    )


def _lane_of_group(timeline: Timeline, group: Sequence[TimelineStep]) -> str:
    shards = sorted({entry.branch for entry in group if entry.branch is not None})
    if not shards:
        return group[0].lane
    lane_names = lane_words(shards, timeline.primary)
    on_primary = all(entry.lane == "primary" for entry in group)
    if on_primary and shards != [timeline.primary]:
        return f"primary, for {lane_names}"
    return lane_names


def drawing(
    timeline: Timeline, *, columns: int = 100, end_ns: int | None = None
) -> list[str]:
    """Draw a timeline in character cells, one line for the client, the primary and each shard.

    Parameters
    ----------
    timeline : Timeline
    columns : int
        Width of the drawing including labels, at least 40.
    end_ns : int, optional
        End of the time axis [ns], so that several drawings share one. Defaults to the timeline's end.

    Returns
    -------
    list of str
        Lines. The glyph of a cell is that of the category with most of its time, see `CATEGORIES`.
    """
    end_ns = end_ns or timeline.end_ns
    lanes = _lanes(timeline)
    margin = max(map(len, lanes)) + 2
    cells = max(columns, 40) - margin

    def place(time_ns: int) -> float:
        return time_ns / end_ns * cells

    lines = []
    for name, steps in lanes.items():
        spent = [dict.fromkeys(CATEGORIES, 0.0) for _ in range(cells)]
        for entry in steps:
            for category, low_ns, high_ns in bars(entry):
                _spend(spent, category, place(low_ns), place(high_ns))
        glyphs = "".join(_glyph(cell) for cell in spent)
        lines.append(f"{name:<{margin}}{glyphs}".rstrip())
    held = [hold for hold in timeline.holds if hold.role == "pg.lock"]
    if held:
        strip = [" "] * cells
        for hold in held:
            first = int(place(hold.start_ns))
            last = min(int(place(hold.end_ns)), cells - 1)
            strip[first : last + 1] = "L" * (last + 1 - first)
        after_primary = list(lanes).index("primary") + 1
        lines.insert(after_primary, f"{'PG lock':<{margin}}{''.join(strip)}".rstrip())
    reply = min(cells - 1, int(place(timeline.latency_ns)))
    moment = f"^ {reply_word(timeline)} {timeline.latency_ns / 1e3:,.0f} µs"
    lines.append(" " * (margin + reply) + moment)
    return lines


def _lanes(timeline: Timeline) -> dict[str, list[TimelineStep]]:
    """Group the steps by line: client, object map, primary, and each shard, or the parts of an S3 request."""
    names: dict[int | str, str] = {name: name for name in timeline.lanes()}
    for shard in range(timeline.width):
        names[shard] = lane_words([shard], timeline.primary)
    lanes: dict[str, list[TimelineStep]] = {name: [] for name in names.values()}
    for entry in timeline.steps:
        lanes[names[entry.host]].append(entry)
    return lanes


def bars(entry: TimelineStep) -> list[tuple[str, int, int]]:
    """Split a step into waiting, service and coding: category, start and end of each [ns]."""
    step = entry.step
    coding_from_ns = step.end_ns - entry.coding_ns
    stretches = [("wait", step.ready_ns, step.start_ns)]
    if entry.category:
        stretches.append((entry.category, step.start_ns, coding_from_ns))
        stretches.append(("coding", coding_from_ns, step.end_ns))
    return [stretch for stretch in stretches if stretch[1] < stretch[2]]


def _spend(
    spent: list[dict[str, float]], category: str, low: float, high: float
) -> None:
    for cell in range(int(low), min(len(spent), int(high) + 1)):
        spent[cell][category] += max(0.0, min(high, cell + 1) - max(low, cell))


def _glyph(cell: dict[str, float]) -> str:
    # Work hides waiting, since some step waits for a busy server nearly all the time.
    work = {name: share for name, share in cell.items() if name != "wait" and share}
    if work:
        return CATEGORIES[max(work, key=lambda name: work[name])].glyph
    if cell["wait"]:
        return CATEGORIES["wait"].glyph
    return " "
