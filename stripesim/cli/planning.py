"""The planning commands: `plan`, `durability`, `rehearse` and the local web page of `serve`."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from stripesim.cli import options, output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stripesim.scenarios.answers.load.results import LoadCurve
    from stripesim.scenarios.schema.keys import Scenario


def plan(
    scenario: Annotated[str, typer.Argument(help="TOML file with a [plan] table.")],
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    seed: options.SeedOption = None,
    engine: options.EngineOption = "compiled",
    unchecked: options.UncheckedOption = False,
    out: options.OutOption = None,
    report: options.ReportOption = False,
    json_to: options.JsonOption = None,
) -> None:
    """Recommend a cluster to buy, listing the candidates and the goals that each one misses."""
    to = output.destination(out, json_to, report=report)
    from stripesim.scenarios.answers.plan.answer import answer_of_plan
    from stripesim.scenarios.answers.plan.plan import make_plan
    from stripesim.scenarios.schema.loader import load_scenario

    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    with output.progress(loaded.name, None) as step:
        document = make_plan(loaded, engine=engine, progress=step, unchecked=unchecked)
    answer = answer_of_plan(
        loaded, document, load_curves=lambda: _curves_of(loaded, document, engine)
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
            min=10,
            help="Walks that each of 20 batches starts at every level (splitting). With history, 20 times as "
            "many side walks run at least.",
        ),
    ] = 1000,
    dask: options.DaskOption = None,
    unchecked: options.UncheckedOption = False,
    out: options.OutOption = None,
    json_to: options.JsonOption = None,
) -> None:
    """Estimate the probability of any data loss within a horizon (in nines), and its likely path."""
    from stripesim.scenarios.answers.durability import answer
    from stripesim.scenarios.schema.loader import load_scenario

    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    spread: Any = None
    if dask is not None:
        from stripesim.scenarios.work.dask import map_dask

        spread = partial(map_dask, dask)
    with output.progress(loaded.name, None) as step:
        document = answer(
            loaded,
            method,
            walks=walks,
            spread=spread,
            progress=step,
            unchecked=unchecked,
        )
    written = [] if out is None else _write_nines(out, document)
    output.warn_refused(document["refusals"], unchecked=unchecked)
    status = output.audited_status(document["refusals"], unchecked=unchecked)
    if output.write_json(json_to, document):
        raise typer.Exit(status)
    rows = document["rows"]
    output.console().print(
        output.table_of([_cells(row) for row in rows], numbers=range(2, 10))
    )
    for line in (line for row in rows for line in _lines(row)):
        print(line)
    for line in document["skipped"]:
        print(f"left out: {line}")
    for scheme, choice in document["recommended"].items():
        print(
            f"recommended for {scheme}: {choice['method']}, because {choice['reason']}"
        )
    output.list_written(written)
    raise typer.Exit(status)


def _write_nines(out: Path, document: Mapping[str, Any]) -> list[Path]:
    from stripesim.scenarios.show.figures.faults import draw_nines
    from stripesim.scenarios.show.figures.results import save_figures
    from stripesim.scenarios.show.files import write_results
    from stripesim.scenarios.show.quantities import rows_frame

    rows = document["rows"]
    flat = [
        {key: value for key, value in row.items() if not isinstance(value, list)}
        for row in rows
    ]
    extra = {"durability.json": json.dumps(document, indent=1)}
    written = write_results(out, rows_frame(flat), document["provenance"], extra)
    return written + save_figures({"nines": draw_nines(rows)}, out)


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    def number(value: float | None, form: str = ".3g") -> str:
        return "–" if value is None else f"{value:{form}}"

    interval = f"{number(row['nines_low'], '.3f')} … {number(row['nines_high'], '.3f')}"
    if row["refused"] is not None:
        interval = f"refused: {row['refused'].partition(':')[0]}"
    elif row["nines_low"] == row["nines_high"]:
        interval = "exact" if row["exact"] else "approximation"
    return {
        "scheme": row["scheme"],
        "method": row["method"],
        "nines": number(row["nines"], ".3f"),
        "95 % interval": interval,
        "P(any loss)": number(row["loss_probability"]),
        "MTTDL [h]": number(row["mttdl_hours"]),
        "lost [B/year]": number(row["bytes_lost_per_year"]),
        "unavailable": number(row["unavailability"]),
        "walks": f"{row['trajectories']:,}",
        "time [s]": f"{row['wall_s']:.2f}",
    }


def _lines(row: Mapping[str, Any]) -> list[str]:
    """Describe how data is lost, and list the assumptions."""
    where = f"{row['scheme']} {row['method']}"
    path = []
    if row["dominant_path"] is not None:
        path = [f"{where}: {row['dominant_path']}"]
    if row["nines"] is None and row["nines_low"] is not None:
        least = row["nines_low"]
        path = [
            f"{where}: no loss seen: less than {10**-least:.1e} within the horizon, {least:.1f} nines or more"
        ]
    bursts = [
        f"{where}: burst {burst['name']} ({_struck(burst)}, {burst['per_year']:g} a year) "
        f"loses data with probability {burst['loss_probability']:.4g}"
        for burst in row["bursts"]
    ]
    return [*path, *bursts, f"{where}: assumes: {' '.join(row['assumptions'])}"]


def _struck(burst: Mapping[str, Any]) -> str:
    plural = "" if burst["units"] == 1 else "s"
    return f"{burst['units']} {burst['unit']}{plural}"


def rehearse(
    scenario: Annotated[
        str, typer.Argument(help="A TOML file with planned changes, [[changes]].")
    ],
    sets: options.SetOption = None,
    code: options.CodeOption = None,
    seed: options.SeedOption = None,
    engine: options.EngineOption = "compiled",
    out: options.OutOption = None,
    report: options.ReportOption = False,
    json_to: options.JsonOption = None,
) -> None:
    """Predict what planned changes move, their duration, the fill of OSDs, and the effect on clients."""
    report_folder = output.check_out(out, report=report)
    from stripesim.scenarios.answers.rehearse.rehearse import rehearse as answer
    from stripesim.scenarios.answers.rehearse.tables import (
        table_of_changes,
        table_of_settings,
    )
    from stripesim.scenarios.schema.loader import load_scenario

    loaded = load_scenario(scenario, sets=options.with_codes(sets, code), seed=seed)
    with output.progress(loaded.name, None) as step:
        document = answer(loaded, engine=engine, progress=step)
    written = [] if out is None else _write_rehearsal(out, document)
    if report_folder is not None:
        from stripesim.scenarios.answers.rehearse.page import report_of_rehearsal

        page = report_of_rehearsal(loaded.name, loaded.description, document)
        written += output.write_page(report_folder, page)
    if output.write_json(json_to, document):
        return
    for line in document["warnings"]:
        print(f"warning: {line}", file=sys.stderr)
    terminal = output.console()
    rows = table_of_changes(document)
    terminal.print(output.table_of(rows, numbers=range(1, 10)))
    terminal.print(output.table_of(table_of_settings(document), numbers=range(2, 9)))
    weighed = document["trade_off"]
    if weighed is not None:
        print(f"{weighed['sentence']}.")
        print(f"rule: {weighed['rule']}")
        for line in weighed["commands"]:
            print(f"  {line}")
    output.list_written(written)


def _write_rehearsal(out: Path, document: Mapping[str, Any]) -> list[Path]:
    from stripesim.scenarios.show.figures.rehearsal import draw_rehearsal
    from stripesim.scenarios.show.figures.results import save_figures
    from stripesim.scenarios.show.files import write_files

    files = {"rehearsal.json": json.dumps(document, indent=1).encode()}
    return write_files(out, files) + save_figures(draw_rehearsal(document), out)


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
    from stripesim.scenarios.schema.loader import load_scenario

    loaded = None if scenario is None else load_scenario(scenario, sets=sets or ())
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
