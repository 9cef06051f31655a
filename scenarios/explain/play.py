"""A page that plays requests step by step, for a lecture hall: lanes, queues, the PG lock, bytes so far."""

from collections.abc import Sequence
from typing import Any, Final

from stripesim.scenarios.explain import text
from stripesim.scenarios.explain.layout import (
    TimeAxis,
    bars_of,
    categories,
    merged_bars,
    packed,
    shard_name,
    time_axis,
    time_words,
)
from stripesim.scenarios.explain.timeline import Timeline, TimelineStep
from stripesim.scenarios.report.page.render import render

#: Row of a host for steps that take no time but may wait.
_THREADS: Final = "threads, PG"
#: Height of a row on which so many bars lie beside each other [px].
_ROW_PX, _LEVEL_PX, _ROW_PX_MAX = 18, 7, 46


def play_page(timelines: Sequence[Timeline]) -> str:
    """Write a page, with all that it needs inside, that plays requests step by step on one axis."""
    axis = time_axis(timelines)
    bends_ns = sorted({0, axis.end_ns, *(end for cut in axis.cuts for end in cut)})
    steps = [
        step for number, one in enumerate(timelines) for step in _steps(one, number)
    ]
    return render(
        "play.html.j2",
        kind="One request, step by step",
        title="; ".join(text.heading(timeline) for timeline in timelines),
        introduction="One request alone on the cluster, with mean service times. Pale bars are still to "
        "come, striped ones wait.",
        meta=[],
        requests=[_request(timeline, axis) for timeline in timelines],
        steps=sorted(steps, key=lambda step: (step["time_us"], step["request"])),
        words=categories(timelines),
        ticks=[(_percent(axis, tick * 1000), f"{tick:,}") for tick in axis.ticks_us(6)],
        cuts=[(_percent(axis, low), _percent(axis, high)) for low, high in axis.cuts],
        byte_words=[words for _, words in text.BYTE_WORDS],
        data={
            "axis": [[time_ns / 1e3, _percent(axis, time_ns)] for time_ns in bends_ns],
            "counted": [_counted(timeline) for timeline in timelines],
        },
    )


def _percent(axis: TimeAxis, time_ns: float) -> float:
    """Place a time on the axis [% of its width]."""
    return round(100 * axis.place(time_ns) / axis.width_us, 3)


def _request(timeline: Timeline, axis: TimeAxis) -> dict[str, Any]:
    """What the page shows of one request."""
    lanes = {
        "client": "client",
        "primary": shard_name(timeline, timeline.primary).replace("’s", ","),
    }
    lanes |= {
        f"shard {n}": shard_name(timeline, n)
        for n in range(timeline.width)
        if n != timeline.primary
    }
    hosts = []
    for lane, name in lanes.items():
        entries = [entry for entry in timeline.steps if entry.lane == lane]
        rows = [] if lane != "primary" else _holds(timeline, axis)
        for row in dict.fromkeys(
            (_THREADS, *(shown.row for shown in text.CATEGORIES.values()))
        ):
            mine = [entry for entry in entries if _row_name(entry) == row]
            if any(text.bars(entry) for entry in mine):
                rows.append(_row(row, mine, axis))
        if rows:
            hosts.append({"name": name, "rows": rows})
    return {
        "title": text.heading(timeline),
        "words": f"{text.latency_words(timeline)}; {text.shard_words(timeline)}",
        "reply_us": timeline.latency_ns / 1e3,
        "reply_percent": _percent(axis, timeline.latency_ns),
        "reply": time_words(timeline.latency_ns),
        "hosts": hosts,
    }


def _row_name(entry: TimelineStep) -> str:
    return text.CATEGORIES[entry.category].row if entry.category else _THREADS


def _row(name: str, entries: Sequence[TimelineStep], axis: TimeAxis) -> dict[str, Any]:
    """The bars of one kind of resource of a host, those that overlap beside each other."""
    shown, levels_max = [], 1
    for level, levels, bar in packed(
        merged_bars([bar for entry in entries for bar in bars_of(entry)])
    ):
        levels_max = max(levels_max, levels)
        label = f"{'waits: ' if bar.category == 'wait' else ''}{bar.label}"
        label += f" ×{bar.count}" if bar.count > 1 else ""
        top, height = round(100 * level / levels, 2), round(100 / levels, 2)
        shown.append(
            _bar(
                axis,
                bar.category,
                label,
                bar.low_ns,
                bar.high_ns,
                top,
                height,
                bar.count,
            )
        )
    return {
        "name": name,
        "bars": shown,
        "px": min(_ROW_PX_MAX, _ROW_PX + _LEVEL_PX * (levels_max - 1)),
    }


def _bar(
    axis: TimeAxis,
    category: str,
    label: str,
    low_ns: int,
    high_ns: int,
    top: float = 0,
    height: float = 100,
    count: int = 1,
) -> dict[str, Any]:
    left, right = _percent(axis, low_ns), _percent(axis, high_ns)
    return {
        "category": category,
        "label": label,
        "left": left,
        "width": round(right - left, 3),
        "top": top,
        "height": height,
        "count": count,
        "from_us": low_ns / 1e3,
        "to_us": high_ns / 1e3,
        "takes": time_words(high_ns - low_ns),
    }


def _holds(timeline: Timeline, axis: TimeAxis) -> list[dict[str, Any]]:
    """A row for the lock, the pipeline and the recovery slot that the request holds."""
    rows = []
    for role, (words, _) in text.LOCKS.items():
        held = [
            hold
            for hold in timeline.holds
            if hold.role == role and hold.end_ns > hold.start_ns
        ]
        shown = [_bar(axis, "lock", words, hold.start_ns, hold.end_ns) for hold in held]
        if shown and role != "pg.exec":
            rows.append(
                {"name": words.removesuffix(" held"), "bars": shown, "px": _ROW_PX}
            )
    return rows


def _steps(timeline: Timeline, number: int) -> list[dict[str, Any]]:
    """The lines that are read out, one for steps that are alike."""
    found = []
    for row in text.table_rows(timeline):
        low, high = row.duration_ns
        takes = (
            time_words(high)
            if low == high
            else f"{time_words(low)} to {time_words(high)}"
        )
        facts = [
            f"{row.count} times" if row.count > 1 else "",
            f"takes {takes}" if high else "",
            f"waits up to {time_words(row.wait_ns[1])}" if row.wait_ns[1] else "",
            text.byte_words(row.counted),
            "nobody waits for this" if row.after_reply else "",
        ]
        found.append(
            {
                "request": number,
                "time_us": (row.start_ns + low) / 1e3,
                "what": row.what,
                "lane": row.lane,
                "facts": "; ".join(fact for fact in facts if fact),
            }
        )
    done = "repaired" if timeline.op == "repair" else "the client has its reply"
    found.append(
        {
            "request": number,
            "time_us": timeline.latency_ns / 1e3,
            "what": done,
            "lane": "client",
            "facts": f"after {time_words(timeline.latency_ns)}",
        }
    )
    return found


def _counted(timeline: Timeline) -> list[list[Any]]:
    """When bytes have moved: time [µs], number of the counter, amount."""
    return [
        [entry.step.end_ns / 1e3, number, entry.step.counted[name]]
        for entry in timeline.steps
        for number, (name, _) in enumerate(text.BYTE_WORDS)
        if entry.step.counted.get(name)
    ]
