"""The commands of `stripesim study`: one per study, with the options it declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from stripesim.cli.options import EngineOption, JsonOption, OutOption, SetOption
from stripesim.cli.output import console, list_written, progress, table, write_json

if TYPE_CHECKING:
    from stripesim.scenarios.studies.base import Option, Study, StudyResult


@cache
def _commands() -> dict[str, Any]:
    from stripesim.scenarios.studies.registry import STUDIES

    # Plain help, like that of the other commands.
    app = typer.Typer(rich_markup_mode=None)
    for study in STUDIES.values():
        app.command(study.name)(_command(study))
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return commands


class _Studies(typer.core.TyperGroup):
    """Load the studies only when their commands are needed, which keeps the main help fast."""

    @property  # type: ignore[override]
    def commands(self) -> dict[str, Any]:
        return _commands()

    @commands.setter
    def commands(self, _: Any) -> None:
        """Ignore assignments by Typer, because the studies are the commands."""


study_app = typer.Typer(
    cls=_Studies,
    help="Reproduce a published study and judge each of its claims.",
    no_args_is_help=True,
)


def _command(study: Study) -> Callable[..., None]:
    """Build the function of a study's command. Typer reads the options from its signature."""

    def run(**given: Any) -> None:
        out = given.pop("out")
        json_to = given.pop("json_to")
        everything = given.pop("everything")
        with progress(f"study {study.name}", None) as step:
            result = study.run(
                engine=given.pop("engine"),
                sets=given.pop("sets") or (),
                ablate=given.pop("ablate") or (),
                jobs=given.pop("jobs"),
                progress=step,
                **given,
            )
        written = []
        if out is not None:
            written = study.save(result, out)
        if not write_json(json_to, result.to_json()):
            _show(result, everything=everything)
            list_written(written)

    keyword = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, keyword, default=default, annotation=annotation)
            for name, annotation, default in (
                *map(_own, study.options),
                *_shared(study),
            )
        ]
    )
    run.__annotations__ = {}
    run.__doc__ = f"{study.summary[0].upper()}{study.summary[1:]}."
    return run


def _own(option: Option) -> tuple[str, Any, Any]:
    kind: Any = option.kind
    flag = typer.Option(option.flag, help=option.help, show_default=False)
    if kind is bool:
        return option.name, Annotated[bool, flag], False
    if option.several:
        kind = list[kind]
    return option.name, Annotated[kind | None, flag], None


def _shared(study: Study) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, annotation and default of each option that every study has."""
    yield "sets", SetOption, None
    names = ", ".join(study.ablations) or "none"
    ablate = typer.Option(
        "--ablate",
        help=f"Compare with one mechanism changed: {names}, or all. Repeatable.",
    )
    yield "ablate", Annotated[list[str] | None, ablate], None
    yield "engine", EngineOption, "compiled"
    jobs = typer.Option(
        help=f"Worker processes. Default: {study.jobs or 'all cores'}.",
        show_default=False,
    )
    yield "jobs", Annotated[int | None, jobs], None
    everything = typer.Option("--all", help="Also show claims that do not count.")
    yield "everything", Annotated[bool, everything], False
    yield "out", OutOption, None
    yield "json_to", JsonOption, None


def _show(result: StudyResult, *, everything: bool) -> None:
    """Print the ledger and any further tables of the study."""
    terminal = console()
    if result.rows.height:
        result.ledger.print_ledger(terminal, everything=everything)
    for columns, rows in result.terminal_tables():
        terminal.print(table(columns, rows))
