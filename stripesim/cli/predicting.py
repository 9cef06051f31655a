"""`stripesim predict` and `score`: state numbers before they are measured, and compare later."""

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
    from stripesim.scenarios.schema.loader import load_scenario

    if register is not None:
        output.check_file("--register", register, "a file")
        registers.check_new(register)
    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    with output.progress(loaded.name, len(cells(loaded))) as step:
        prediction = registers.predict(loaded, engine=engine, progress=step)
    document = prediction.to_json()
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
