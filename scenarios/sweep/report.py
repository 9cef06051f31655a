"""Write the report of a sweep on one self-contained page: explorer, figure, means, failures."""

from typing import Final

from stripesim.scenarios.figures.results import CaptionedFigure
from stripesim.scenarios.report.explorer import explorer_of
from stripesim.scenarios.report.page.render import Table, figure_blocks, render
from stripesim.scenarios.report.study import pretty
from stripesim.scenarios.report.words import moment_text
from stripesim.scenarios.sweep.plan import SweepPlan
from stripesim.scenarios.sweep.run import NOTE, SweepResult, aggregated_table

# Number of text columns after the keys: scheme, op, pattern, block.
_CELL_COLUMNS = 4

#: More rows in a table make a page slow, and nobody reads them. The explorer has all.
_TABLE_ROWS_MAX: Final = 500


def report_of_sweep(
    plan: SweepPlan, result: SweepResult, figure: CaptionedFigure | None
) -> str:
    """Write the report of a sweep."""
    source = result.provenance
    keys = ", ".join(plan.keys) or "nothing, one point"
    progress = f"{result.rows.height} of {len(plan.tasks)} rows are done"
    if result.stopped is not None:
        progress += f"; stopped: {result.stopped}"
    contents = [("results", "All points"), ("provenance", "Provenance")]
    failed = None
    if result.failed:
        contents.insert(1, ("failed", "Failed"))
        headings = [key for key in result.failed[0] if key != "task"]
        lines = [[str(row.get(key, "–")) for key in headings] for row in result.failed]
        failed = Table(
            "Cells without a result", headings, lines, form="stack", numeric=False
        )
    figures = {}
    if figure is not None:
        contents.insert(0, ("figures", "Figure"))
        figures["sweep"] = figure
    explorer = explorer_of(result.aggregated, plan.keys, result.failed)
    if explorer is not None:
        contents.insert(0, ("explorer", "Explore"))
    columns, rows = aggregated_table(result.aggregated.head(_TABLE_ROWS_MAX), plan.keys)
    text_columns = [*range(len(plan.keys) + _CELL_COLUMNS), len(columns) - 1]
    return render(
        "sweep.html.j2",
        kind="Sweep",
        title=plan.name,
        introduction=plan.scenario.description or f"Swept: {keys}.",
        meta=[
            f"Swept keys: {keys}. {progress}",
            f"stripesim {source['stripesim']} · {moment_text(source['time'])} · seed {source['seed']} · "
            f"replications of each cell: {source['replications']}",
        ],
        warnings=[*result.warnings, *result.falls, *result.refusals],
        inside="All points are within the range that their parameter sets were calibrated or checked on.",
        contents=contents,
        explorer=explorer,
        explorer_heading="Explore",
        figures=figure_blocks(figures),
        results=Table(
            "Means of every point and cell", columns, rows, words=text_columns
        ),
        left_out=result.aggregated.height - len(rows),
        note=NOTE,
        failed=failed,
        provenance=pretty({k: v for k, v in source.items() if k != "configuration"}),
    )
