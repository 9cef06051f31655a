"""`stripesim explain`: follow one request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stripesim.cli.options import (
    CodeOption,
    JsonOption,
    OutOption,
    SetOption,
    size_bytes,
    with_codes,
)
from stripesim.cli.output import (
    check_file,
    check_out,
    console,
    list_written,
    table,
    write_json,
)

if TYPE_CHECKING:
    from rich.table import Table

    from stripesim.scenarios.answers.explain.timeline import Timeline

#: Parameters listed per step.
_SOURCES_MAX = 3


def explain(
    op: Annotated[
        Literal["write", "read", "repair"],
        typer.Argument(help="Kind of request."),
    ],
    schemes: Annotated[
        list[str] | None,
        typer.Option(
            "--scheme",
            help="Scheme such as rep:3 or rs:6,3. Repeat to compare on one time axis. Default: the "
            "scenario's schemes, else these two.",
        ),
    ] = None,
    size: Annotated[
        str,
        typer.Option(
            help="Size of the request, or of the object to repair, such as 4k."
        ),
    ] = "4k",
    offset: Annotated[
        str, typer.Option(help="Offset of the request in the image.")
    ] = "0",
    generation: Annotated[
        list[str] | None,
        typer.Option(
            help="Ceph release such as squid or tentacle. Repeat to compare on one time axis."
        ),
    ] = None,
    stripe_unit: Annotated[
        str | None,
        typer.Option(help="Stripe unit (bytes of a stripe on one shard), such as 16k."),
    ] = None,
    direct_reads: Annotated[
        bool,
        typer.Option(
            "--direct-reads",
            help="The client reads shards directly (generation umbrella).",
        ),
    ] = False,
    state: Annotated[
        str, typer.Option(help="healthy, or degraded (one shard is down).")
    ] = "healthy",
    image: Annotated[
        str, typer.Option(help="prefilled (objects exist) or pristine (they do not).")
    ] = "prefilled",
    lost_shard: Annotated[
        int, typer.Option(help="Shard that is down or being rebuilt, from 0.")
    ] = 1,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Scenario whose cluster to use (of a plan, its largest). Default: one host per shard."
        ),
    ] = None,
    sets: SetOption = None,
    code: CodeOption = None,
    steps: Annotated[bool, typer.Option(help="Print the table of steps.")] = True,
    page: Annotated[
        Path | None,
        typer.Option(
            "--html",
            help="Write a page that plays the request step by step, for teaching.",
        ),
    ] = None,
    out: OutOption = None,
    json_to: JsonOption = None,
) -> None:
    """Follow one request: the time, bytes and locks of each step, and the source of each number."""
    check_out(out)
    check_file("--html", page, "the file to write the page to")
    from stripesim.scenarios.answers.explain.request import explain as timelines_of

    timelines = timelines_of(
        op,
        schemes,
        size_bytes("--size", size),
        offset_bytes=size_bytes("--offset", offset),
        generation=generation or None,
        state=state,
        image=image,
        lost_shard=lost_shard,
        scenario=scenario,
        sets=with_codes(sets, code),
        direct_reads=direct_reads,
        stripe_unit_bytes=None
        if stripe_unit is None
        else size_bytes("--stripe-unit", stripe_unit),
    )
    document = {"requests": [timeline.to_json() for timeline in timelines]}
    written: list[Path] = []
    if out is not None:
        written += _write(out, op, timelines, document)
    if page is not None:
        from stripesim.scenarios.answers.explain.play import play_page
        from stripesim.scenarios.show.files import write_files

        written += write_files(page.parent, {page.name: play_page(timelines).encode()})
    if not write_json(json_to, document):
        _print(timelines, steps=steps)
        list_written(written)


def _write(
    out: Path, op: str, timelines: Sequence[Timeline], document: dict[str, Any]
) -> list[Path]:
    """Write the figure (SVG, PNG), its caption and the steps (JSON)."""
    from stripesim.scenarios.answers.explain.draw import draw_timelines
    from stripesim.scenarios.show.figures.results import save_figures
    from stripesim.scenarios.show.files import write_files

    written = write_files(
        out, {f"explain-{op}.json": (json.dumps(document, indent=1) + "\n").encode()}
    )
    return written + save_figures({f"explain-{op}": draw_timelines(timelines)}, out)


def _print(timelines: Sequence[Timeline], *, steps: bool) -> None:
    """Print the drawing, latency and step table of each timeline."""
    from rich.text import Text

    from stripesim.scenarios.answers.explain.text import (
        CATEGORIES,
        drawing,
        heading,
        latency_words,
        shard_words,
    )

    screen = console()
    end_ns = max(timeline.end_ns for timeline in timelines)
    for timeline in timelines:
        screen.print(Text(heading(timeline), style="bold"))
        for line in drawing(timeline, columns=min(screen.width, 140), end_ns=end_ns):
            screen.print(_coloured(line), soft_wrap=True)
        screen.print(
            f"{latency_words(timeline)}; {shard_words(timeline)}", highlight=False
        )
        for note in timeline.kernel_notes:
            screen.print(note, highlight=False)
        screen.print()
    legend = "   ".join(f"{shown.glyph} {shown.words}" for shown in CATEGORIES.values())
    screen.print(f"{legend}   L PG lock held", highlight=False)
    if steps:
        for timeline in timelines:
            screen.print()
            screen.print(_steps(timeline))
    screen.print()
    screen.print(_sources(timelines))


def _coloured(line: str) -> Any:
    from rich.text import Text

    from stripesim.scenarios.answers.explain.text import CATEGORIES

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


def _span(low_ns: int, high_ns: int) -> str:
    if high_ns == 0:
        return ""
    if low_ns == high_ns:
        return f"{high_ns / 1e3:,.1f}"
    return f"{low_ns / 1e3:,.1f}–{high_ns / 1e3:,.1f}"


def _steps(timeline: Timeline) -> Table:
    from stripesim.scenarios.answers.explain.text import (
        byte_words,
        heading,
        reply_word,
        table_rows,
    )

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
    shown = table(columns, numbers=range(2, 6), title=heading(timeline))
    for column in shown.columns[2:6]:
        column.no_wrap = True
    replied = False
    for row in table_rows(timeline):
        if row.after_reply and not replied:
            moment = f"{reply_word(timeline)} {timeline.latency_ns / 1e3:,.1f} µs"
            shown.add_section()
            shown.add_row("", f"{moment}; the rest happens after the reply:")
            shown.add_section()
            replied = True
        sources = ", ".join(
            f"{name} {ns:+,}" for name, ns in row.sources[:_SOURCES_MAX]
        )
        more = len(row.sources) - _SOURCES_MAX
        if more > 0:
            sources += f" and {more} more"
        shown.add_row(
            row.lane,
            row.what,
            f"{row.count}",
            f"{row.start_ns / 1e3:,.1f}",
            _span(*row.duration_ns),
            _span(*row.wait_ns),
            byte_words(row.counted),
            sources,
        )
    return shown


def _sources(timelines: Sequence[Timeline]) -> Table:
    parameters: dict[str, dict[str, Any]] = {}
    for timeline in timelines:
        parameters |= timeline.parameters
    rows = [
        (name, _value(parameter), parameter["provenance"], parameter["source"])
        for name, parameter in sorted(parameters.items())
    ]
    return table(
        ("parameter", "value", "provenance", "source"),
        rows,
        numbers=[1],
        title="Where the numbers come from",
        caption="from: how much longer the step takes if the parameter doubles. For a term of a sum, this is "
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
