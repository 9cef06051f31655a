"""The planning commands: `plan`, `durability`, `rehearse` and the local web page of `serve`."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from stripesim.cli import options, output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stripesim.scenarios.answers.load.results import LoadCurve
    from stripesim.scenarios.schema.scenario import Scenario


def plan(
    scenario: Annotated[str, typer.Argument(help="TOML file with a [plan] table.")],
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    seed: options.SeedOption = None,
    engine: options.EngineOption = "compiled",
    unchecked: options.UncheckedOption = False,
    out: options.OutOption = None,
    report: options.ReportOption = False,
    width: options.WidthOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Recommend a cluster to buy, listing the candidates and the goals that each one misses."""
    to = output.destination(out, json_to, report=report, width=width)
    from stripesim.scenarios.answers.plan.answer import answer_of_plan
    from stripesim.scenarios.answers.plan.plan import make_plan
    from stripesim.scenarios.schema.scenario import load_scenario

    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    with output.progress(loaded.name, None) as step:
        made = make_plan(
            loaded,
            engine=engine,
            progress=step,
            on_known=step.show,
            unchecked=unchecked,
        )
    answer = answer_of_plan(
        loaded, made, load_curves=lambda: _curves_of(loaded, made.document, engine)
    )
    output.deliver(answer, to, unchecked=unchecked)


def _curves_of(
    loaded: Scenario, document: Mapping[str, Any], engine: str
) -> list[LoadCurve]:
    """Simulate the load curves of the report. The answer of the plan stands without them."""
    from stripesim.scenarios.answers.plan.curves import curves_of_plan

    try:
        with output.progress(loaded.name, None) as step:
            return curves_of_plan(loaded, document, engine=engine, progress=step)
    except ValueError as error:
        print(f"no load curves: {error}", file=sys.stderr)
        return []


def durability(
    scenario: Annotated[
        str, typer.Argument(help="TOML file with a [durability] table.")
    ],
    method: Annotated[
        Literal["markov", "splitting", "burst", "history", "all"],
        typer.Option(
            help="markov is a chain, exact except on CRUSH, where it is approximate. splitting is rare-event "
            "simulation, burst the combinatorics of simultaneous failures. history is rare-event simulation "
            "of large clusters, up to a million OSDs."
        ),
    ] = "all",
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    seed: options.SeedOption = None,
    walks: Annotated[
        int,
        typer.Option(
            help="Walks that each of 20 batches starts at every level (splitting). With history, 20 times as "
            "many side walks run at least.",
        ),
    ] = 1000,
    dask: options.DaskOption = None,
    unchecked: options.UncheckedOption = False,
    out: options.OutOption = None,
    width: options.WidthOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Estimate the probability of any data loss within a horizon (in nines), and its likely path."""
    to = output.destination(out, json_to, width=width)
    from stripesim.scenarios.answers.durability.answer import answer_of_durability
    from stripesim.scenarios.answers.durability.durability import estimate_durability
    from stripesim.scenarios.schema.scenario import load_scenario

    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    spread: Any = None
    if dask is not None:
        from stripesim.scenarios.work.dask import map_dask

        spread = partial(map_dask, dask)
    with output.progress(loaded.name, None) as step:
        document = estimate_durability(
            loaded,
            method,
            walks=walks,
            spread=spread,
            progress=step,
            unchecked=unchecked,
        )
    output.deliver(answer_of_durability(document), to, unchecked=unchecked)


def rehearse(
    scenario: Annotated[
        str, typer.Argument(help="A TOML file with planned changes, [[changes]].")
    ],
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    seed: options.SeedOption = None,
    engine: options.EngineOption = "compiled",
    unchecked: options.UncheckedOption = False,
    out: options.OutOption = None,
    report: options.ReportOption = False,
    width: options.WidthOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Predict what planned changes move, their duration, the fill of OSDs, and the effect on clients."""
    to = output.destination(out, json_to, report=report, width=width)
    from stripesim.scenarios.answers.rehearse.answer import answer_of_rehearsal
    from stripesim.scenarios.answers.rehearse.rehearse import (
        rehearse as rehearse_changes,
    )
    from stripesim.scenarios.schema.scenario import load_scenario

    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    with output.progress(loaded.name, None) as step:
        document = rehearse_changes(
            loaded, engine=engine, progress=step, unchecked=unchecked
        )
    output.deliver(answer_of_rehearsal(loaded, document), to, unchecked=unchecked)


#: Scenario that `serve` starts from without another.
_SERVED: Final = "plan"
#: Largest number of browser connections that `serve` accepts.
_CONNECTIONS_MAX: Final = 100


def serve(
    scenario: Annotated[
        str | None,
        typer.Argument(
            help="Scenario to start from: a TOML file or a shipped name. Default: plan."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")
    ] = 8323,
    sets: options.SetOption = None,
) -> None:
    """Serve a local web page that compares two options as you type (needs the web extra)."""
    try:
        import uvicorn

        from stripesim.web.app import create_app
    except ModuleNotFoundError as error:
        raise ValueError(
            f"serve: got no {error.name}, wanted the extra web: pip install 'stripesim[web]'"
        ) from None
    from stripesim.scenarios.schema.scenario import load_scenario

    loaded = None
    if scenario is not None or sets:
        loaded = load_scenario(scenario or _SERVED, sets=sets or ())
    _check_port(port)
    print(f"http://127.0.0.1:{port}/  (Ctrl+C to stop)", file=sys.stderr)
    uvicorn.run(
        create_app(loaded),
        host="127.0.0.1",
        port=port,
        log_level="warning",
        limit_concurrency=_CONNECTIONS_MAX,
        # Abandon work in progress one second after a signal.
        timeout_graceful_shutdown=1,
    )


def _check_port(port: int) -> None:
    """Raise a `ValueError` if this machine does not give a port, before the address is shown."""
    import socket

    with socket.socket() as probe:
        # As the server does, which may follow one that has just ended.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ValueError(
                f"--port: got {port} ({error.strerror}), wanted a free port"
            ) from None
