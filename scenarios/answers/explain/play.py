"""Write a page for teaching that plays requests step by step: lanes, queues, the PG lock, bytes moved."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stripesim.scenarios.answers.explain import text
from stripesim.scenarios.answers.explain.layout import (
    Bar,
    TimeAxis,
    bars_of,
    categories,
    merged_bars,
    packed,
    shard_name,
    time_axis,
    time_words,
)
from stripesim.scenarios.answers.explain.timeline import (
    OBJECT_MAP,
    Timeline,
    TimelineStep,
)
from stripesim.scenarios.show.page.render import render

#: Row for steps that take no time but may wait.
_THREADS: Final = "threads, PG"
#: Height of a row with one level of bars, of each further level, and of the tallest row [px].
_ROW_PX: Final = 18
_LEVEL_PX: Final = 7
_ROW_PX_MAX: Final = 46


@dataclass(frozen=True)
class Prediction:
    """A question that the page asks before it shows the picture."""

    question: str
    unit: str
    answer: float  #: As simulated, in that unit
    why: str


def play_page(
    timelines: Sequence[Timeline], prediction: Prediction | None = None
) -> str:
    """Write a self-contained page that plays requests step by step on one time axis.

    With a prediction, the page first asks for a number, and then shows the answer and the picture.
    """
    axis = time_axis(timelines)
    bends_ns = sorted({0, axis.end_ns, *(end for cut in axis.cuts for end in cut)})
    steps = [
        step for number, one in enumerate(timelines) for step in _steps(one, number)
    ]
    return render(
        "play.html.j2",
        kind="One request, step by step",
        title="; ".join(text.heading(timeline) for timeline in timelines),
        introduction="One request alone on the cluster, with mean service times. Pale bars have not "
        "started yet, striped bars are waiting.",
        meta=[],
        prediction=prediction,
        requests=[_request(timeline, axis) for timeline in timelines],
        steps=sorted(steps, key=lambda step: (step["time_us"], step["request"])),
        words=categories(timelines),
        ticks=[(_percent(axis, tick * 1000), f"{tick:,}") for tick in axis.ticks_us(6)],
        cuts=[(_percent(axis, low), _percent(axis, high)) for low, high in axis.cuts],
        byte_words=[words for _, words in text.BYTE_WORDS],
        data={
            "axis": [[time_ns / 1e3, _percent(axis, time_ns)] for time_ns in bends_ns],
            "counted": [_counted(timeline) for timeline in timelines],
            "answer": None if prediction is None else prediction.answer,
        },
    )


def _percent(axis: TimeAxis, time_ns: float) -> float:
    """Return the position of a time on the axis [% of its width]."""
    return round(100 * axis.place(time_ns) / axis.width_us, 3)


def _request(timeline: Timeline, axis: TimeAxis) -> dict[str, Any]:
    """Return the template data of one request."""
    names = _host_names(timeline)
    hosts = []
    for lane, name in names.items():
        rows = _rows(timeline, lane, axis)
        if rows:
            hosts.append({"lane": lane, "name": name, "rows": rows})
    return {
        "title": text.heading(timeline),
        "words": text.latency_and_shard_words(timeline),
        "reply_us": timeline.latency_ns / 1e3,
        "reply_percent": _percent(axis, timeline.latency_ns),
        "reply": time_words(timeline.latency_ns),
        "hosts": hosts,
    }


def _host_names(timeline: Timeline) -> dict[str, str]:
    """Return the name of each lane: client, primary and shards, or the parts of an S3 request."""
    names = {lane: lane for lane in timeline.lanes()}
    if OBJECT_MAP in names:
        names[OBJECT_MAP] = "OSDs of the object map"
    for shard in range(timeline.width):
        if shard == timeline.primary:
            names["primary"] = shard_name(timeline, shard).replace("’s", ",")
        else:
            names[f"shard {shard}"] = shard_name(timeline, shard)
    return names


def _rows(timeline: Timeline, lane: str, axis: TimeAxis) -> list[dict[str, Any]]:
    """Return the rows of a host: its locks, its threads, and each kind of resource."""
    rows = _holds(timeline, axis) if lane == "primary" else []
    kinds = dict.fromkeys((_THREADS, *(look.row for look in text.CATEGORIES.values())))
    for kind in kinds:
        entries = [
            entry
            for entry in timeline.steps
            if entry.lane == lane and _row_name(entry) == kind
        ]
        bars = [bar for entry in entries for bar in bars_of(entry)]
        if bars:
            rows.append(_row(kind, bars, axis))
    return rows


def _row_name(entry: TimelineStep) -> str:
    if not entry.category:
        return _THREADS
    return text.CATEGORIES[entry.category].row


def _row(name: str, bars: Sequence[Bar], axis: TimeAxis) -> dict[str, Any]:
    """Return the row of one kind of resource, with overlapping bars stacked."""
    drawn = []
    levels_max = 1
    for level, levels, bar in packed(merged_bars(bars)):
        levels_max = max(levels_max, levels)
        extent = {
            "top": round(100 * level / levels, 2),
            "height": round(100 / levels, 2),
        }
        drawn.append(_bar(axis, bar) | extent)
    height_px = _ROW_PX + _LEVEL_PX * (levels_max - 1)
    return {"name": name, "bars": drawn, "px": min(_ROW_PX_MAX, height_px)}


def _bar(axis: TimeAxis, bar: Bar) -> dict[str, Any]:
    label = bar.label
    if bar.category == "wait":
        label = f"waits: {label}"
    if bar.count > 1:
        label += f" ×{bar.count}"
    left = _percent(axis, bar.low_ns)
    return {
        "category": bar.category,
        "label": label,
        "left": left,
        "width": round(_percent(axis, bar.high_ns) - left, 3),
        "top": 0,
        "height": 100,
        "count": bar.count,
        "from_us": bar.low_ns / 1e3,
        "to_us": bar.high_ns / 1e3,
        "takes": time_words(bar.high_ns - bar.low_ns),
    }


def _holds(timeline: Timeline, axis: TimeAxis) -> list[dict[str, Any]]:
    """Return one row for each lock, pipeline and recovery slot that the request holds."""
    rows = []
    for role, (words, _) in text.LOCKS.items():
        if role == "pg.exec":
            continue
        bars = [
            _bar(axis, Bar("lock", words, hold.start_ns, hold.end_ns))
            for hold in timeline.holds
            if hold.role == role and hold.end_ns > hold.start_ns
        ]
        if bars:
            name = words.removesuffix(" held")
            rows.append({"name": name, "bars": bars, "px": _ROW_PX})
    return rows


def _steps(timeline: Timeline, number: int) -> list[dict[str, Any]]:
    """Return the lines of the step list, one for similar steps."""
    lines = [
        {
            "request": number,
            "time_us": (row.start_ns + row.duration_ns[0]) / 1e3,
            "what": row.what,
            "lane": row.lane,
            "first_lane": row.first_lane,
            "facts": "; ".join(_facts(row)),
        }
        for row in text.table_rows(timeline)
    ]
    done = "repaired" if timeline.op == "repair" else "the client has its reply"
    lines.append(
        {
            "request": number,
            "time_us": timeline.latency_ns / 1e3,
            "what": done,
            "lane": "client",
            "first_lane": "client",
            "facts": f"after {time_words(timeline.latency_ns)}",
        }
    )
    return lines


def _facts(row: text.TableRow) -> Iterator[str]:
    low_ns, high_ns = row.duration_ns
    if row.count > 1:
        yield f"{row.count} times"
    if high_ns > low_ns:
        yield f"takes {time_words(low_ns)} to {time_words(high_ns)}"
    elif high_ns:
        yield f"takes {time_words(high_ns)}"
    if row.wait_ns[1]:
        yield f"waits up to {time_words(row.wait_ns[1])}"
    moved = text.byte_words(row.counted)
    if moved:
        yield moved
    if row.after_reply:
        yield "after the reply"


def _counted(timeline: Timeline) -> list[list[Any]]:
    """List every transfer of bytes: completion time [µs], index of the counter, amount."""
    return [
        [entry.step.end_ns / 1e3, number, entry.step.counted[name]]
        for entry in timeline.steps
        for number, (name, _) in enumerate(text.BYTE_WORDS)
        if entry.step.counted.get(name)
    ]
