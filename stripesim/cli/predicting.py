"""`stripesim predict`, `score` and `check`: compare predicted and measured numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stripesim.cli import options, output


def predict(
    scenario: options.ScenarioArgument,
    register: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="New JSON file for the dated prediction, with a hash that `score` checks.",
        ),
    ] = None,
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    engine: options.EngineOption = "compiled",
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    width: options.WidthOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Predict a scenario's numbers with intervals, and register them before they are measured."""
    to = output.destination(out, json_to, width=width)
    from stripesim.scenarios.answers.predict import register as registers
    from stripesim.scenarios.answers.predict.answer import answer_of_prediction
    from stripesim.scenarios.schema.keys import cells
    from stripesim.scenarios.schema.scenario import load_scenario

    if register is not None:
        registers.check_new(register)
    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    with output.progress(loaded.name, len(cells(loaded))) as step:
        prediction = registers.predict(loaded, engine=engine, progress=step)
    document = registers.register_of(prediction)
    if register is not None:
        registers.write_register(register, document)
    file = "" if register is None else str(register)
    output.deliver(answer_of_prediction(prediction, document, file=file), to)


def score(
    register: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="File that `stripesim predict --register` wrote.",
            show_default=False,
        ),
    ],
    measured: Annotated[
        Path,
        typer.Argument(
            help="What was measured: a .csv table, fio's JSON, or a document of `run --json`.",
            show_default=False,
        ),
    ],
    out: options.OutOption = None,
    width: options.WidthOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Compare a registered prediction with what was measured later."""
    to = output.destination(out, json_to, width=width)
    from stripesim.scenarios.answers.predict.answer import answer_of_score
    from stripesim.scenarios.answers.predict.score import score as score_register

    output.deliver(answer_of_score(score_register(register, measured)), to)


def check(
    scenario: options.ScenarioArgument,
    measured: Annotated[
        Path,
        typer.Argument(
            help="fio's JSON, the output of rados bench (text or JSON), or a .csv table of one row.",
            show_default=False,
        ),
    ],
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    engine: options.EngineOption = "compiled",
    seed: options.SeedOption = None,
    out: options.OutOption = None,
    width: options.WidthOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Check if a measured number is what the hardware should give, and simulate what would explain it."""
    to = output.destination(out, json_to, width=width)
    from stripesim.scenarios.answers.check.answer import answer_of_check
    from stripesim.scenarios.answers.check.check import check as check_measured

    with output.progress("check", None) as step:
        checked = check_measured(
            scenario,
            measured,
            sets=options.with_codes(sets, code),
            seed=seed,
            engine=engine,
            progress=step,
        )
    output.deliver(answer_of_check(checked), to)
