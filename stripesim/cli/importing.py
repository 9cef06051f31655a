"""The commands of `stripesim import`, which read existing clusters and measured workloads."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from stripesim.cli import output
from stripesim.cli.options import JsonOption

_STDIN = Path("/dev/stdin")


class ImportGroup(typer.core.TyperGroup):
    """Name the commands where a word is none of them, such as the file in ``stripesim import -``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first word names."""
        known = self.list_commands(ctx)
        if args[0] not in known:
            wanted = f"{', '.join(known[:-1])} or {known[-1]} before it"
            ctx.fail(f"import: got {args[0]}, wanted {wanted}")
        return super().resolve_command(ctx, args)


import_app = typer.Typer(
    cls=ImportGroup,
    help="Read an existing cluster or a measured workload.",
    no_args_is_help=True,
)


@import_app.command("ceph-report")
def ceph_report(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="JSON output of `ceph report`, or of `ceph osd dump` and `ceph osd crush dump` together. "
            "Further files add detail: `osd metadata`, `osd df tree`, `pg dump`, `df detail`, "
            "`osd pool stats`, `status`. - is standard input."
        ),
    ],
    pools: Annotated[
        list[str] | None,
        typer.Option(
            "--pool",
            help="Pool to write a scenario for. Repeatable. Default: the largest.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Scenario file to write. Its CRUSH map goes into the same folder.",
        ),
    ] = None,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Write a scenario for `stripesim plan`, with a [plan] table instead of a CRUSH map.",
        ),
    ] = False,
    grow: Annotated[
        str,
        typer.Option(
            "--grow",
            metavar="hosts=+N",
            help="First add N hosts like those of the pool.",
        ),
    ] = "",
    failures: Annotated[
        bool,
        typer.Option(
            "--failures",
            help="Fail each host and each drive in turn: does it end in backfill_toofull, how long does it "
            "take to heal, and which data has no spare until then? Give the output of `ceph pg dump` too.",
        ),
    ] = False,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Also write a self-contained page next to --out, such as mine-report.html for mine.toml.",
        ),
    ] = False,
    json_to: JsonOption = None,
) -> None:
    """Analyse a Ceph cluster: PGs per OSD, capacity, and a scenario ready to run."""
    path = out or Path("scenario.toml")
    folder = None if out is None else out.parent
    output.check_out(folder, report=report)
    output.check_file("--out", out, "the scenario file to write")
    # Several imports may share a folder, so the page is named after the scenario.
    page = path.with_name(f"{path.stem}-report.html") if report else None
    to = output.destination(folder, json_to, page=page)
    from stripesim.scenarios.answers.cluster import answer_of_cluster
    from stripesim.scenarios.answers.failures.failures import failures_of
    from stripesim.scenarios.clusters.cluster import import_cluster
    from stripesim.scenarios.clusters.scenario import check_written
    from stripesim.scenarios.clusters.summary import describe_cluster

    with output.progress("import", None) as step:
        document, scenarios = describe_cluster(
            import_cluster(list(map(_readable, files))),
            pools or [],
            path=path,
            plan=plan,
            grow=grow,
            failures=partial(failures_of, progress=step) if failures else None,
        )
    output.deliver(answer_of_cluster(document, scenarios), to)
    if out is not None:
        for file, scenario in scenarios.items():
            check_written(scenario, file)


@import_app.command()
def fio(
    file: Annotated[
        Path,
        typer.Argument(
            help="Output of `fio --output-format=json`. - is standard input."
        ),
    ],
    json_to: JsonOption = None,
) -> None:
    """Convert a workload that fio ran, with its measured results."""
    to = output.destination(None, json_to)
    from stripesim.scenarios.answers.workloads import answer_of_workloads
    from stripesim.scenarios.clusters.workload import import_fio

    output.deliver(answer_of_workloads(import_fio(_readable(file))), to)


@import_app.command()
def cbt(
    folder: Annotated[Path, typer.Argument(help="CBT result folder.")],
    json_to: JsonOption = None,
) -> None:
    """Convert the workloads that CBT ran, with the results that fio measured."""
    to = output.destination(None, json_to)
    from stripesim.scenarios.answers.workloads import answer_of_workloads
    from stripesim.scenarios.clusters.workload import import_cbt

    output.deliver(answer_of_workloads(*import_cbt(folder)), to)


def _readable(file: Path) -> Path:
    """Return standard input in place of ``-``."""
    return _STDIN if file == Path("-") else file
