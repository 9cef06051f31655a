"""The timeline of a run under faults as a figure: groups by state, what clients feel, what recovery moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes

from stripesim.scenarios.figures.results import CaptionedFigure, new_figure, styled

# From well to ill, in colours of Okabe and Ito; hatches separate what grey print does not.
_BANDS: Final[Sequence[tuple[str, tuple[str, ...], str, str]]] = (
    ("clean", ("active+clean",), "#DDDDDD", ""),
    ("member dead, unnoticed", ("stale",), "#000000", ""),
    ("peering, or waiting for leases to end", ("peering", "active+wait"), "#F0E442", "////"),
    ("degraded", ("active+degraded",), "#56B4E9", ""),
    ("waiting to recover", ("active+recovery_wait", "active+backfill_wait"), "#E69F00", ".."),
    ("recovering", ("active+recovering", "active+backfilling"), "#009E73", ""),
    ("out of reach", ("inactive", "incomplete"), "#D55E00", "xx"),
)
_EVENT_WORDS: Final = {"failed": "fails", "down": "down", "out": "out", "returned": "back", "clean": "clean"}


def timeline_names(timelines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the figure of each timeline."""
    names = []
    for timeline in timelines:
        parts = [
            str(timeline[key]) for key in ("scheme", "op", "pattern", "block_size_bytes") if timeline.get(key)
        ]
        names.append("timeline-" + "-".join(parts).replace(":", "").replace(",", "-"))
    return names


def draw_timelines(timelines: Sequence[Mapping[str, Any]]) -> dict[str, CaptionedFigure]:
    """Draw every timeline of a scenario."""
    return {
        name: draw_timeline(timeline)
        for name, timeline in zip(timeline_names(timelines), timelines, strict=True)
    }


def draw_timeline(timeline: Mapping[str, Any]) -> CaptionedFigure:
    """Draw one timeline of `stripesim.sim.ceph.failures.report.describe_faults`.

    Panels over one axis of time: (a) placement groups by state, (b) latency of clients' requests, p50 and p99
    of each bin, (c) their rate, (d) bytes that recovery rebuilds, reads and sends.
    """
    with styled():
        figure = new_figure((11.5, 10.0))
        panels = figure.subplots(4, 1, sharex=True, height_ratios=[1.5, 1, 0.8, 1])
        states, latency, rate, recovery = panels
        end_s = _end_s(timeline)
        _draw_states(states, timeline, end_s)
        _draw_foreground(latency, rate, timeline["foreground"])
        _draw_recovery(recovery, timeline["recovery"])
        for axes in panels:
            _mark_events(axes, timeline, words=axes is states)
            axes.set_xlim(0, end_s)
            axes.margins(x=0)
        recovery.set_xlabel("time [s]")
    return CaptionedFigure(figure, _caption(timeline))


def _end_s(timeline: Mapping[str, Any]) -> float:
    return max(1e-9, float(timeline["end_s"]))


def _draw_states(axes: Axes, timeline: Mapping[str, Any], end_s: float) -> None:
    table = timeline["pg_states"]
    times = np.array([*table["time_s"], end_s])
    rows, labels, colours, hatches = [], [], [], []
    for label, states, colour, hatch in _BANDS:
        counts = np.sum([np.array(table[state]) for state in states], axis=0)
        if counts.any():
            rows.append(np.append(counts, counts[-1]))
            labels.append(label)
            colours.append(colour)
            hatches.append(hatch)
    # Ill states at the bottom, where they are seen however few they are.
    drawn = axes.stackplot(
        times, rows[::-1], labels=labels[::-1], colors=colours[::-1], step="post", linewidth=0
    )
    for band, hatch in zip(drawn, hatches[::-1], strict=True):
        band.set_hatch(hatch)
        band.set_edgecolor("#444444")
    axes.set_ylim(0, max(1, sum(row[0] for row in rows)))
    axes.set_ylabel("PGs")
    axes.set_title("(a) placement groups by state", pad=24)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), reverse=True, fontsize=11)


def _draw_foreground(latency: Axes, rate: Axes, series: Mapping[str, Any]) -> None:
    times = np.array(series["time_s"])
    for key, colour, style, label in (
        ("latency_p50_ns", "#0072B2", "-", "p50"),
        ("latency_p99_ns", "#D55E00", "--", "p99"),
    ):
        values = np.array([np.nan if value is None else value / 1e6 for value in series[key]])
        latency.step(times, values, where="post", color=colour, linestyle=style, label=label, linewidth=1.8)
    latency.set_yscale("log")
    latency.set_ylabel("latency [ms]")
    latency.set_title("(b) latency of the requests that complete")
    latency.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=11)
    rate.step(times, series["iops"], where="post", color="#0072B2", linewidth=1.8)
    rate.set_ylim(bottom=0)
    rate.set_ylabel("requests/s")
    rate.set_title("(c) requests completed")


def _draw_recovery(axes: Axes, series: Mapping[str, Any]) -> None:
    times = np.array(series["time_s"])
    for key, colour, style, label in (
        ("device_read_bytes_per_s", "#0072B2", "--", "read"),
        ("private_net_bytes_per_s", "#E69F00", ":", "sent"),
        ("rebuilt_bytes_per_s", "#009E73", "-", "rebuilt"),
    ):
        values = np.array(series[key]) / 1e6
        axes.step(times, values, where="post", color=colour, linestyle=style, label=label, linewidth=1.8)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("MB/s")
    axes.set_title("(d) what recovery moves")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=11)


def _moments(timeline: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Return the first moment of each kind of event; kinds that fall together share a word."""
    found: dict[str, float] = {}
    for event in timeline["events"]:
        if event["what"] in _EVENT_WORDS:
            if event["what"] == "clean":
                found["clean"] = event["time_s"]
            else:
                found.setdefault(event["what"], event["time_s"])
    return sorted((time_s, _EVENT_WORDS[what]) for what, time_s in found.items())


def _mark_events(axes: Axes, timeline: Mapping[str, Any], *, words: bool) -> None:
    last_s, span_s = -1e9, _end_s(timeline)
    for time_s, word in _moments(timeline):
        axes.axvline(time_s, color="#444444", linewidth=0.9, linestyle=(0, (4, 3)))
        if words:
            # Words that would touch are set one line higher.
            lift = 15 if time_s - last_s < 0.05 * span_s else 3
            axes.annotate(
                word, (time_s, 1), (0, lift), xycoords=("data", "axes fraction"), textcoords="offset points",
                ha="center", fontsize=11, annotation_clip=False,
            )  # fmt: skip
            last_s = time_s if lift == 3 else -1e9


def _caption(timeline: Mapping[str, Any]) -> str:
    moments = ", ".join(f"{word} at {time_s:.1f} s" for time_s, word in _moments(timeline))
    return (
        f"{timeline['scheme']} under faults: {moments}. Placement groups by state; requests of clients by "
        "the second in which they complete (a request that waited shows its whole wait); bytes that recovery "
        "rebuilds, reads from devices and sends between hosts."
    )
