"""Write the report of a sweep on one self-contained page: explorer, figure, means, failures."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.scenarios.answers.sweep.explorer import explorer_of
from stripesim.scenarios.answers.sweep.plan import SweepPlan
from stripesim.scenarios.answers.sweep.table import NOTE, means_table
from stripesim.scenarios.cells.placement import domain_type
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.show.figures.captions import scheme_label
from stripesim.scenarios.show.figures.renderer import CaptionedFigure
from stripesim.scenarios.show.page.provenance import pretty
from stripesim.scenarios.show.page.render import figure_blocks, render
from stripesim.scenarios.show.tables import Table
from stripesim.scenarios.show.words import moment_text

if TYPE_CHECKING:
    from stripesim.scenarios.answers.sweep.answer import SweepResult

#: More rows in a table make a page slow, and nobody reads them. The explorer has all.
_TABLE_ROWS_MAX: Final = 500


def _host_failures(plan: SweepPlan) -> str:
    """Warn of schemes that can lose data with one host, because their failure domain is the OSD."""
    losing = {
        scheme_label(task.cell.scheme)
        for task in plan.tasks
        if loses_data_with_a_host(task.scenario, task.cell.scheme)
    }
    if not losing:
        return ""
    return (
        "The failure domain is the OSD, and a host can hold more shards of an object than "
        f"{', '.join(sorted(losing))} can lose: the failure of one host can lose data."
    )


def loses_data_with_a_host(scenario: Scenario, scheme: str) -> bool:
    """Return True if one host can hold more shards of an object than a scheme can lose."""
    cluster = scenario.cluster
    if scheme == "none" or not isinstance(cluster.hosts, int):
        return False
    if cluster.crush_map is not None:
        return False
    code = parse_scheme(scheme)
    if domain_type(scenario, code) != "osd":
        return False
    return min(code.width, cluster.osds_per_host) > _tolerated(code)


@lru_cache(maxsize=1024)
def _tolerated(code: RedundancyScheme) -> int:
    """Return how many of any shards may be lost, which some codes have to search for."""
    return code.failures_tolerated


def report_of_sweep(
    plan: SweepPlan, result: SweepResult, figure: CaptionedFigure | None
) -> str:
    """Write the report of a sweep."""
    source = result.provenance
    keys = ", ".join(plan.keys) or "nothing, one point"
    progress = f"{len(result.records)} of {len(plan.tasks)} rows are done"
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
    explorer = explorer_of(
        result.aggregated, plan.keys, result.failed, of_objects=plan.is_of_objects
    )
    if explorer is not None:
        contents.insert(0, ("explorer", "Explore"))
    means = means_table(
        result.means[:_TABLE_ROWS_MAX], plan.keys, of_objects=plan.is_of_objects
    )
    about = plan.scenario.introduction or f"Swept: {keys}."
    introduction = " ".join(filter(None, (about, _host_failures(plan))))
    return render(
        "sweep.html.j2",
        kind="Sweep",
        title=plan.scenario.title,
        introduction=introduction,
        meta=[
            f"Swept keys: {keys}. {progress}",
            f"stripesim {source['stripesim']} · {moment_text(source['time'])} · seed {source['seed']} · "
            f"replications of each cell: {source['replications']}",
        ],
        outside=result.outside,
        warnings=[*result.of_rows, *result.falls, *result.refusals],
        inside="All points are within the range that their parameter sets were calibrated or checked on.",
        contents=contents,
        explorer=explorer,
        explorer_heading="Explore",
        figures=figure_blocks(figures),
        results=means,
        left_out=len(result.means) - len(means.rows),
        note=NOTE,
        failed=failed,
        provenance=pretty({k: v for k, v in source.items() if k != "configuration"}),
    )
