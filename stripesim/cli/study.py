"""The commands of `stripesim study`: one for each study, with the options that it declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from stripesim.cli.options import EngineOption, JsonOption, OutOption, SetOption
from stripesim.cli.output import console, list_written, progress, write_json
from stripesim.scenarios.studies.base import Option, Study, StudyResult
from stripesim.scenarios.studies.registry import STUDIES

__all__ = ["study_app"]

study_app = typer.Typer(
    help="Reproduce a published study and judge each of its claims.", no_args_is_help=True
)


def _command(study: Study) -> Callable[..., None]:
    """Make the function of a study's command; its signature is what Typer reads the options from."""

    def run(**given: Any) -> None:
        out, json_to, everything = given.pop("out"), given.pop("json_to"), given.pop("everything")
        with progress(f"study {study.name}", None) as step:
            result = study.run(
                engine=given.pop("engine").value,
                sets=given.pop("sets") or (),
                ablate=given.pop("ablate") or (),
                jobs=given.pop("jobs"),
                progress=step,
                **given,
            )
        written = study.save(result, out) if out is not None else []
        if write_json(json_to, result.to_json()):
            return
        _show(result, everything=everything)
        list_written(written)

    keyword = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, keyword, default=default, annotation=annotation)
            for name, annotation, default in (*map(_own, study.options), *_shared(study))
        ]
    )
    run.__annotations__ = {}
    run.__doc__ = f"{study.summary[0].upper()}{study.summary[1:]}."
    return run


def _own(option: Option) -> tuple[str, Any, Any]:
    kind: Any = option.kind
    default = False if kind is bool else None
    wanted = list[kind] | None if option.several else kind if kind is bool else kind | None
    return (
        option.name,
        Annotated[wanted, typer.Option(option.flag, help=option.help, show_default=False)],
        default,
    )


def _shared(study: Study) -> Sequence[tuple[str, Any, Any]]:
    from stripesim.cli.options import Engine

    names = ", ".join(study.ablations) or "none"
    return (
        ("sets", SetOption, None),
        (
            "ablate",
            Annotated[
                list[str] | None,
                typer.Option(
                    "--ablate", help=f"Compare with this mechanism changed; may be repeated, or all: {names}."
                ),
            ],
            None,
        ),
        ("engine", EngineOption, Engine.COMPILED),
        (
            "jobs",
            Annotated[
                int | None,
                typer.Option(
                    help=f"Worker processes; left out: {'all cores' if study.jobs is None else study.jobs}.",
                    show_default=False,
                ),
            ],
            None,
        ),
        (
            "everything",
            Annotated[bool, typer.Option("--all", help="Show the claims that do not count, too.")],
            False,
        ),
        ("out", OutOption, None),
        ("json_to", JsonOption, None),
    )


def _show(result: StudyResult, *, everything: bool) -> None:
    """Print the ledger and what tables the study has beside it."""
    from stripesim.cli.tables import text_table

    terminal = console()
    if result.rows.height:
        result.ledger.print_ledger(terminal, everything=everything)
    for columns, rows in result.terminal_tables():
        terminal.print(text_table(columns, rows))


for _study in STUDIES.values():
    study_app.command(_study.name)(_command(_study))
