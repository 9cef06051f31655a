"""Define the options that several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

Engine = Literal["compiled", "simpy"]


CodeOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--code",
        help="Python file with a code of your own; it is executed. Repeatable. Replaces the scenario's.",
    ),
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask", help="Address or scheduler file of the Dask scheduler to run on."
    ),
]
EngineOption = Annotated[
    Engine, typer.Option(help="compiled is fast, simpy is easier to read and extend.")
]
JsonOption = Annotated[
    str | None,
    typer.Option(
        "--json",
        help="File for one JSON document, or - for stdout, which then holds nothing else.",
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="Folder for tables, figures and provenance."),
]
ReportOption = Annotated[
    bool,
    typer.Option(
        "--report", help="Also write report.html, a self-contained page, to --out."
    ),
]
ScenarioArgument = Annotated[
    str,
    typer.Argument(
        help="TOML file, or the name of a shipped scenario such as quickstart.",
        show_default=False,
    ),
]
SeedOption = Annotated[
    int | None, typer.Option(help="Seed of all random draws. Default: the scenario's.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Override a scenario key: KEY=VALUE (a TOML value; paths start at the current folder). "
        "Repeatable.",
    ),
]


def load_codes(files: list[Path] | None) -> None:
    """Load the files of ``--code``."""
    from stripesim.models.coding import load_code_file

    for file in files or ():
        load_code_file(file)


def with_codes(sets: list[str] | None, files: list[Path] | None) -> Sequence[Any]:
    """Load the files of ``--code`` and return the overrides, which name them to the scenario."""
    if not files:
        return sets or ()
    from stripesim.scenarios.schema.loader import Override

    load_codes(files)
    paths = [str(file.expanduser().absolute()) for file in files]
    return [Override("codes", paths, "--code"), *(sets or ())]


UncheckedOption = Annotated[
    bool,
    typer.Option(
        "--unchecked",
        help="Show, marked, also the numbers that fail the audit; otherwise they end with status 3.",
    ),
]
WidthOption = Annotated[
    str | None,
    typer.Option(
        "--width",
        help="Write figures for a paper, as wide as 3.5in, 8.9cm or 252pt: PDF, SVG, LaTeX captions.",
    ),
]


MetricOption = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="COLUMN",
        help="Column of the rows that the figure shows, such as latency_p99_ns or iops.",
    ),
]


def check_metric(metric: str) -> None:
    """Raise if ``--metric`` names no column that a figure can show."""
    if metric == "throughput_bytes_per_s":
        return
    from stripesim.models.problems import AnswerError
    from stripesim.scenarios.show.figures.panels import quantity_shown
    from stripesim.scenarios.show.quantities import QUANTITIES

    try:
        quantity_shown(metric, QUANTITIES)
    except AnswerError as error:
        raise ValueError(f"--{error}") from None


def width_inch(text: str | None, out: Path | None) -> float | None:
    """Parse the value of ``--width``, which needs a folder for figures."""
    if text is None:
        return None
    if out is None:
        raise ValueError(
            "--width: got no --out, wanted the folder to write figures into"
        )
    from stripesim.scenarios.show.figures.paper import parse_width_inch

    return parse_width_inch(text)
