"""What `stripesim explain` prints and writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from stripesim.scenarios.explain.request import Timeline

_STYLES = {
    "o": "yellow", "=": "cyan", "#": "green", "E": "bold magenta", "S": "red", "~": "dim", ".": "dim",
    "L": "blue",
}  # fmt: skip


def extent(size: str, offset: str) -> tuple[int, int]:
    """Read ``--size`` and ``--offset`` [B].

    Raises
    ------
    ValueError
        If one is no size.
    """
    from stripesim.scenarios.schema.units import parse_size_bytes

    found = []
    for option, text in (("--size", size), ("--offset", offset)):
        try:
            found.append(0 if option == "--offset" and text.strip() == "0" else parse_size_bytes(text))
        except ValueError as error:
            raise ValueError(f"{option}: {error}") from None
    return found[0], found[1]


def size(option: str, text: str | None) -> int | None:
    """Read an option that is a size [B]; None where it is left out.

    Raises
    ------
    ValueError
        If it is no size.
    """
    from stripesim.scenarios.schema.units import parse_size_bytes

    try:
        return None if text is None else parse_size_bytes(text)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None


def document(timelines: Sequence[Timeline]) -> dict[str, Any]:
    """Return what ``--json`` writes."""
    return {"requests": [timeline.to_json() for timeline in timelines]}


def print_timelines(timelines: Sequence[Timeline], console: Console, *, steps: bool = True) -> None:
    """Print drawing, latency and table of steps of each timeline."""
    from rich.text import Text

    from stripesim.scenarios.explain.text import GLYPHS, WORDS, drawing, heading, latency_words, shard_words

    end_ns = max(timeline.end_ns for timeline in timelines)
    for timeline in timelines:
        console.print(Text(heading(timeline), style="bold"))
        for line in drawing(timeline, columns=min(console.width, 140), end_ns=end_ns):
            console.print(_coloured(line), soft_wrap=True)
        console.print(f"{latency_words(timeline)}; {shard_words(timeline)}", highlight=False)
        if timeline.kernel_stand_in:
            console.print(
                f"{timeline.scheme} was never timed: coding costs are those of {timeline.kernel_stand_in}; "
                f"`stripesim kernel --scheme {timeline.scheme} --save` measures them",
                highlight=False,
            )
        console.print()
    legend = "   ".join(f"{glyph} {WORDS[name]}" for name, glyph in GLYPHS.items())
    console.print(f"{legend}   L PG lock held", highlight=False)
    if steps:
        for timeline in timelines:
            console.print()
            console.print(_table(timeline))
    console.print()
    console.print(_sources(timelines))


def _coloured(line: str) -> Any:
    from rich.text import Text

    text = Text(line)
    head, _, body = line.rpartition("  ")
    if "^" in body or not head:
        return text
    for index in range(len(line)):
        # Labels stand left of the drawing and have a lower case letter or a space before every glyph.
        if index > 18 and line[index] in _STYLES:
            text.stylize(_STYLES[line[index]], index, index + 1)
    return text


def _span(low: int, high: int) -> str:
    if high == 0:
        return ""
    return f"{high / 1e3:,.1f}" if low == high else f"{low / 1e3:,.1f}–{high / 1e3:,.1f}"


def _table(timeline: Timeline) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from stripesim.scenarios.explain.text import byte_words, heading, reply_word, table_rows

    table = Table(title=heading(timeline), title_justify="left", pad_edge=False, box=SIMPLE_HEAD)
    for title in ("lane", "what"):
        table.add_column(title)
    for title in ("n", "start [µs]", "takes [µs]", "waits [µs]"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("bytes, all n")
    table.add_column("from [ns each]")
    replied = False
    for row in table_rows(timeline):
        if row.after_reply and not replied:
            table.add_section()
            table.add_row(
                "",
                f"{reply_word(timeline)} {timeline.latency_ns / 1e3:,.1f} µs; nobody waits for the rest:",
            )
            table.add_section()
            replied = True
        sources = ", ".join(f"{name} {ns:+,}" for name, ns in row.sources[:3])
        more = f" and {len(row.sources) - 3} more" if len(row.sources) > 3 else ""
        table.add_row(
            row.lane, row.what, f"{row.count}", f"{row.start_ns / 1e3:,.1f}", _span(*row.duration_ns),
            _span(*row.wait_ns), byte_words(row.counted), sources + more,
        )  # fmt: skip
    return table


def _sources(timelines: Sequence[Timeline]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        title="Where the numbers come from",
        title_justify="left",
        caption="from: how much longer the step takes if the parameter is doubled; "
        "for a term of a sum that is the term",
        caption_justify="left",
        pad_edge=False,
        box=SIMPLE_HEAD,
    )
    for title in ("parameter", "value", "provenance", "source"):
        table.add_column(title, justify="right" if title == "value" else "left")
    found = {name: parameter for timeline in timelines for name, parameter in timeline.parameters.items()}
    for name, parameter in sorted(found.items()):
        unit = "" if parameter["unit"] == "1" else parameter["unit"]
        value = "table" if parameter["value"] is None else f"{parameter['value']:,.6g} {unit}".rstrip()
        table.add_row(name, value, parameter["provenance"], parameter["source"])
    return table


def write_timelines(timelines: Sequence[Timeline], out: Path) -> list[Path]:
    """Write the figure (SVG, PNG), its caption and the steps (JSON) into a folder."""
    from stripesim.scenarios.explain.draw import draw_timelines
    from stripesim.scenarios.figures.results import save_figures
    from stripesim.scenarios.run.results import write_files

    op = timelines[0].op
    text = json.dumps(document(timelines), indent=1) + "\n"
    written = write_files(out, {f"explain-{op}.json": text.encode()})
    return written + save_figures({f"explain-{op}": draw_timelines(timelines)}, out)
