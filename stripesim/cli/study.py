"""The commands of `stripesim study`: one per study, with the options it declares."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from stripesim.cli import output
from stripesim.cli.options import (
    EngineOption,
    JsonOption,
    OutOption,
    UncheckedOption,
    WidthOption,
)

if TYPE_CHECKING:
    from stripesim.scenarios.studies.description import Option, StudyDescription


@cache
def _commands() -> dict[str, Any]:
    from stripesim.scenarios.studies.description import study_description
    from stripesim.scenarios.studies.registry import STUDIES

    # Plain help, like that of the other commands.
    app = typer.Typer(rich_markup_mode=None)
    for name in STUDIES:
        app.command(name)(_command(name, study_description(name)))
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


def parse_sets(texts: Sequence[str]) -> dict[str, Any]:
    """Read the values of ``--set``, each ``KEY=VALUE``; a value that is not TOML is text.

    Raises
    ------
    AnswerError
        If one has no value, with a problem for each.
    """
    from stripesim.models.problems import AnswerError, Problem

    problems = [
        Problem(place="--set", got=repr(text), wanted="KEY=VALUE")
        for text in texts
        if "=" not in text
    ]
    if problems:
        raise AnswerError(*problems)
    sets = {}
    for text in texts:
        key, _, value = text.partition("=")
        sets[key.strip()] = _parse_value(value.strip())
    return sets


def _parse_value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    # A line break could smuggle a second key in.
    return parsed["value"] if list(parsed) == ["value"] else text


def _command(name: str, description: StudyDescription) -> Callable[..., None]:
    """Return the function of a study's command; Typer reads the options from its signature."""

    def run(**options: Any) -> None:
        out = options.pop("out")
        to = output.destination(
            out,
            options.pop("json_to"),
            report=out is not None,
            width=options.pop("width"),
        )
        from stripesim.scenarios.answers.predict import register as registers
        from stripesim.scenarios.studies.registry import study_named

        study = study_named(name)
        everything = options.pop("everything")
        unchecked = options.pop("unchecked")
        register = options.get("register")
        if register is not None:
            registers.check_new(register)
        with output.progress(f"study {name}", None) as step:
            result = study.run(
                engine=options.pop("engine"),
                sets=parse_sets(options.pop("sets") or ()),
                ablate=options.pop("ablate") or (),
                jobs=options.pop("jobs"),
                progress=step,
                unchecked=unchecked,
                **options,
            )
        if register is not None:
            registers.write_register(register, study.register(result))
        answer = study.answer(result, everything=everything)
        output.deliver(answer, to, unchecked=unchecked)

    keyword = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, keyword, default=default, annotation=annotation)
            for name, annotation, default in (
                *map(_own, description.options),
                *_shared(description),
            )
        ]
    )
    run.__annotations__ = {}
    summary = description.summary
    run.__doc__ = f"{summary[0].upper()}{summary[1:]}."
    return run


def _own(option: Option) -> tuple[str, Any, Any]:
    from stripesim.scenarios.studies.description import KINDS

    kind: Any = KINDS[option.kind]
    flag = typer.Option(option.flag, help=option.help, show_default=False)
    if kind is bool:
        return option.name, Annotated[bool, flag], False
    if option.several:
        kind = list[kind]
    return option.name, Annotated[kind | None, flag], None


def _shared(description: StudyDescription) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, annotation and default of each option that every study has."""
    override = typer.Option(
        "--set",
        help="Override a parameter, or a key of the study's scenario: KEY=VALUE (a TOML value). Repeatable.",
    )
    yield "sets", Annotated[list[str] | None, override], None
    names = ", ".join(description.ablations) or "none"
    ablate = typer.Option(
        "--ablate",
        help=f"Compare with one mechanism changed: {names}, or all. Repeatable.",
    )
    yield "ablate", Annotated[list[str] | None, ablate], None
    yield "engine", EngineOption, "compiled"
    default = "all cores" if description.all_processors else "1"
    jobs = typer.Option(
        help=f"Worker processes. Default: {default}.",
        show_default=False,
    )
    yield "jobs", Annotated[int | None, jobs], None
    everything = typer.Option("--all", help="Also show claims that do not count.")
    yield "everything", Annotated[bool, everything], False
    yield "unchecked", UncheckedOption, False
    yield "out", OutOption, None
    yield "width", WidthOption, None
    yield "json_to", JsonOption, None
