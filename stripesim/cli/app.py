"""Assemble the command line. Each command imports heavy modules only when it runs."""

from collections.abc import Sequence
from copy import copy
from typing import Annotated

import typer

from stripesim._version import __version__
from stripesim.cli.calibrate import calibrate
from stripesim.cli.crush import CrushCommand, crush
from stripesim.cli.explain import explain
from stripesim.cli.importing import import_app
from stripesim.cli.kernel import kernel
from stripesim.cli.load import load
from stripesim.cli.marking import mark
from stripesim.cli.planning import durability, plan, rehearse, serve
from stripesim.cli.predicting import check, predict, score
from stripesim.cli.run import cite, run
from stripesim.cli.study import study_app
from stripesim.cli.sweep import sweep
from stripesim.cli.trace import trace_app

app = typer.Typer(
    name="stripesim",
    help="Simulate a replicated or erasure-coded storage cluster, calibrated against measurements.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Rich help with boxes and colours would double the start-up time.
    rich_markup_mode=None,
    context_settings={"max_content_width": 120},
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.")
    ] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit


for command in (
    run,
    sweep,
    load,
    explain,
    kernel,
    predict,
    score,
    check,
    calibrate,
    durability,
    plan,
    rehearse,
    serve,
    cite,
    mark,
):
    app.command()(command)
app.command(cls=CrushCommand)(crush)
app.add_typer(study_app, name="study")
app.add_typer(trace_app, name="trace")
app.add_typer(import_app, name="import")


def app_of(words: Sequence[str]) -> typer.Typer:
    """Return the command line for these words. With the name of a command, Typer builds no others."""
    named = [
        command
        for command in app.registered_commands
        if command.callback is not None
        and [command.callback.__name__] == list(words[:1])
    ]
    if not named:
        return app
    narrowed = copy(app)
    narrowed.registered_commands = named
    narrowed.registered_groups = []
    return narrowed
