"""`stripesim explain`: follow one request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from stripesim.cli import output
from stripesim.cli.options import (
    CodeOption,
    JsonOption,
    OutOption,
    SetOption,
    WidthOption,
    with_codes,
)


def explain(
    op: Annotated[
        Literal["write", "read", "repair", "put", "get", "head", "list", "delete"],
        typer.Argument(
            help="Kind of request. put to delete are S3 requests through a gateway."
        ),
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
    width: WidthOption = None,
    json_to: JsonOption = None,
) -> None:
    """Follow one request: the time, bytes and locks of each step, and the source of each number."""
    output.check_file("--html", page, "the file to write the page to")
    to = output.destination(out, json_to, page=page, width=width)
    from stripesim.scenarios.answers.explain.answer import answer_of_timelines
    from stripesim.scenarios.answers.explain.request import explain as timelines_of
    from stripesim.scenarios.schema.units import size_bytes_at

    timelines = timelines_of(
        op,
        schemes,
        size,
        offset_bytes=offset,
        generation=generation or None,
        state=state,
        image=image,
        lost_shard=lost_shard,
        scenario=scenario,
        sets=with_codes(sets, code),
        direct_reads=direct_reads,
        stripe_unit_bytes=None
        if stripe_unit is None
        else size_bytes_at("--stripe-unit", stripe_unit),
    )
    output.deliver(answer_of_timelines(timelines, steps=steps), to)
