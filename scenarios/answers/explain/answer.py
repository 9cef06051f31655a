"""The answer of `stripesim explain`: a drawing, the steps and the sources of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from stripesim.scenarios.answers.explain.text import (
    CATEGORIES,
    byte_words,
    drawing,
    heading,
    latency_and_shard_words,
    reply_word,
    table_rows,
)
from stripesim.scenarios.answers.explain.timeline import Timeline
from stripesim.scenarios.show.answer import Answer
from stripesim.scenarios.show.tables import Table, TerminalPart

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from stripesim.scenarios.answers.explain.text import TableRow
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

#: Parameters listed per step.
_SOURCES_MAX: Final = 3
#: Widest drawing [characters].
_COLUMNS_MAX: Final = 140


def answer_of_timelines(timelines: Sequence[Timeline], *, steps: bool = True) -> Answer:
    """Return the answer of requests that are followed on one time axis.

    Parameters
    ----------
    timelines
        One timeline for each request, all of the same kind.
    steps
        Show the table of steps.
    """
    stem = f"explain-{timelines[0].op}"

    def figures() -> Mapping[str, CaptionedFigure]:
        from stripesim.scenarios.answers.explain.draw import draw_timelines

        return {stem: draw_timelines(timelines)}

    def page() -> str:
        from stripesim.scenarios.answers.explain.play import play_page

        return play_page(timelines)

    return Answer(
        document={"requests": [timeline.to_json() for timeline in timelines]},
        shown=list(_parts(timelines, steps=steps)),
        saved_as=f"{stem}.json",
        figures=figures,
        page=page,
    )


def _parts(
    timelines: Sequence[Timeline], *, steps: bool
) -> Iterator[str | Table | TerminalPart]:
    """Yield the drawing and latency of each timeline, then the tables."""
    end_ns = max(timeline.end_ns for timeline in timelines)
    for timeline in timelines:
        yield TerminalPart(partial(_drawn, timeline, end_ns))
        yield latency_and_shard_words(timeline)
        yield from timeline.kernel_notes
        yield ""
    legend = [f"{shown.glyph} {shown.words}" for shown in CATEGORIES.values()]
    if any(hold.role == "pg.lock" for timeline in timelines for hold in timeline.holds):
        legend.append("L PG lock held")
    yield "   ".join(legend)
    if steps:
        for timeline in timelines:
            yield ""
            yield _steps(timeline)
    yield ""
    yield _sources(timelines)


def _drawn(timeline: Timeline, end_ns: int, terminal: Console) -> Text:
    """Draw a timeline below its heading, as wide as the terminal allows."""
    from rich.text import Text

    columns = min(terminal.width, _COLUMNS_MAX)
    lines = drawing(timeline, columns=columns, end_ns=end_ns)
    title = Text(heading(timeline), style="bold")
    text = Text("\n").join([title, *map(_coloured, lines)])
    # A terminal continues a long last line, whose place says when the request completes.
    text.no_wrap = True
    text.overflow = "ignore"
    return text


def _coloured(line: str) -> Text:
    from rich.text import Text

    styles = {"L": "blue"} | {shown.glyph: shown.style for shown in CATEGORIES.values()}
    text = Text(line)
    label, _, body = line.rpartition("  ")
    if not label or "^" in body:
        return text
    # Every glyph in a label follows a lower-case letter or a space.
    for index, glyph in enumerate(line):
        if index > 18 and glyph in styles:
            text.stylize(styles[glyph], index, index + 1)
    return text


def _steps(timeline: Timeline) -> Table:
    """Return a row for each group of similar steps, with a heading before those after the reply."""
    steps = table_rows(timeline)
    early = [_cells(row) for row in steps if not row.after_reply]
    late = [_cells(row) for row in steps if row.after_reply]
    rows = early
    groups = []
    if late:
        moment = f"{reply_word(timeline)} {timeline.latency_ns / 1e3:,.1f} µs"
        reply_row = ["", f"{moment}; the rest happens after the reply:"]
        groups = [len(early), len(early) + 1]
        rows = [*early, reply_row, *late]
    columns = (
        "lane",
        "what",
        "n",
        "start [µs]",
        "takes [µs]",
        "waits [µs]",
        "bytes, all n",
        "from [ns each]",
    )
    return Table(
        heading(timeline),
        columns,
        rows,
        caption_shown=True,
        words=(1, 6, 7),
        groups=groups,
    )


def _cells(row: TableRow) -> list[str]:
    sources = ", ".join(f"{name} {ns:+,}" for name, ns in row.sources[:_SOURCES_MAX])
    more = len(row.sources) - _SOURCES_MAX
    if more > 0:
        sources += f" and {more} more"
    return [
        row.lane,
        row.what,
        f"{row.count}",
        f"{row.start_ns / 1e3:,.1f}",
        _span(*row.duration_ns),
        _span(*row.wait_ns),
        byte_words(row.counted),
        sources,
    ]


def _span(low_ns: int, high_ns: int) -> str:
    if high_ns == 0:
        return ""
    if low_ns == high_ns:
        return f"{high_ns / 1e3:,.1f}"
    return f"{low_ns / 1e3:,.1f}–{high_ns / 1e3:,.1f}"


def _sources(timelines: Sequence[Timeline]) -> Table:
    """Return the parameters of all timelines, with their values and sources."""
    parameters: dict[str, dict[str, Any]] = {}
    for timeline in timelines:
        parameters |= timeline.parameters
    rows = [
        (name, _value(parameter), parameter["provenance"], parameter["source"])
        for name, parameter in sorted(parameters.items())
    ]
    return Table(
        "Where the numbers come from",
        ("parameter", "value", "provenance", "source"),
        rows,
        caption_shown=True,
        words=(2, 3),
        note="from: how much longer the step takes if the parameter doubles. For a term of a sum, this is "
        "the term itself",
    )


def _value(parameter: dict[str, Any]) -> str:
    """Format the value of a parameter with its unit."""
    value = parameter["value"]
    unit = parameter["unit"]
    if value is None:
        return "table"
    if unit == "1":
        return f"{value:,.6g}"
    return f"{value:,.6g} {unit}"
