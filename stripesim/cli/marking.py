"""The command `mark`, which grades what students hand in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stripesim.cli import options, output


def mark(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Files that Lesson.hand_in or the page of a lesson wrote.",
        ),
    ],
    key: Annotated[
        str, typer.Option(help="Key of the class, with which the files are signed.")
    ] = "",
    json_to: options.JsonOption = None,
) -> None:
    """Grade what students hand in: check signatures, compute the answers for each seed, and count points."""
    to = output.destination(None, json_to)
    from stripesim.notebooks.marking import answer_of_marking

    with output.progress("mark", len(files)) as step:
        answer = answer_of_marking(files, key=key, progress=step)
    output.deliver(answer, to)
