"""The public face: scenarios in, results out, for a script, a notebook or another program.

`import stripesim` loads nothing of this; a name is fetched at its first use (``stripesim.run``). `__all__` is
the list of public names. Timelines as text, for lessons, are in `stripesim.teach`. Parts of op graphs and
engines, for programs that bring their own system, are in `stripesim.blocks`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from stripesim.calibration.ledger.verdicts import Claim, Ledger
from stripesim.calibration.trace_fit import TraceFit, fit_trace, write_fit
from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.scenarios.cells.build import build_cell, build_pool
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.explain.draw import draw_timelines
from stripesim.scenarios.explain.request import explain
from stripesim.scenarios.explain.text import table_rows
from stripesim.scenarios.explain.timeline import Timeline
from stripesim.scenarios.figures.results import CaptionedFigure, draw_all, save_figures
from stripesim.scenarios.run.execute import ScenarioResult, run_scenario
from stripesim.scenarios.schema.keys import Cell, cells
from stripesim.scenarios.schema.keys import Scenario as _Scenario
from stripesim.scenarios.schema.loader import (
    Overrides,
    ScenarioError,
    load_scenario,
    overridden,
    parse_scenario,
    scenario_from,
    shipped_scenarios,
)
from stripesim.scenarios.schema.units import format_size, parse_size_bytes
from stripesim.scenarios.studies.base import StudyResult
from stripesim.scenarios.studies.registry import STUDIES, study_named
from stripesim.scenarios.sweep.plan import plan_sweep
from stripesim.scenarios.sweep.run import SweepResult, run_sweep
from stripesim.sim.ceph.clients.workload import Synthetic, SyntheticStream
from stripesim.sim.ceph.cluster import Cluster
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.run import RunResult
from stripesim.sim.run import simulate as _simulate
from stripesim.traces import BlockTrace, FailureTrace, describe, load

__all__ = [
    "BlockTrace",
    "CaptionedFigure",
    "Claim",
    "Cluster",
    "FailureTrace",
    "Ledger",
    "Pool",
    "RedundancyScheme",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "ScenarioResult",
    "StudyResult",
    "SweepResult",
    "Timeline",
    "TraceFit",
    "claims",
    "cluster",
    "describe_trace",
    "draw_all",
    "draw_timelines",
    "durability",
    "explain",
    "fit_trace",
    "format_size",
    "import_report",
    "load_scenario",
    "load_trace",
    "parse_scenario",
    "parse_scheme",
    "parse_size_bytes",
    "pool",
    "run",
    "save_figures",
    "shipped_scenarios",
    "simulate",
    "studies",
    "study",
    "sweep",
    "table_rows",
    "workload",
    "write_fit",
]

load_trace = load
describe_trace = describe


class _Checked(type(_Scenario)):  # type: ignore[misc]
    """Makes a call of `Scenario` go through the loader, so that nothing is checked less than in a file."""

    def __call__(cls, **keys: Any) -> _Scenario:
        return scenario_from(keys)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Scenario)


class Scenario(_Scenario, metaclass=_Checked):
    """A question: which cluster, which schemes, which load. Keys are those of a scenario file.

    Raises
    ------
    ScenarioError
        A `ValueError` with one line for each problem: its key, what it got and what it wanted.

    Examples
    --------
    >>> Scenario(schemes=["rep:3"], cluster={"hosts": 4}, workload={"requests": 10}).cluster.hosts
    4
    """


def _loaded(
    scenario: _Scenario | str | Path, sets: Overrides, seed: int | None = None
) -> _Scenario:
    if isinstance(scenario, _Scenario):
        return overridden(scenario, sets, seed=seed)
    return load_scenario(scenario, sets=sets, seed=seed)


def run(
    scenario: _Scenario | str | Path,
    *,
    sets: Overrides = (),
    seed: int | None = None,
    engine: str = "compiled",
    costs: bool = True,
) -> ScenarioResult:
    """Run every cell of a scenario: each scheme under each kind of request.

    Parameters
    ----------
    scenario
        A `Scenario`, the name of one that ships, or the path of a TOML file.
    sets
        Overrides, such as ``{"cluster.hosts": 8}``, or as on the command line, ``["cluster.hosts=8"]``.
    seed
        Seed to use instead of the scenario's.
    engine
        ``compiled`` or ``simpy``; both give the same answer.
    costs
        Whether rows say what the mean latency consists of, step by step; each cell then runs twice.

    Returns
    -------
    ScenarioResult
        ``rows`` is a Polars table with one row per cell.

    Raises
    ------
    ScenarioError
        If the scenario is wrong; all problems at once, one line each.
    """
    return run_scenario(_loaded(scenario, sets, seed), engine=engine, costs=costs)


def sweep(
    scenario: _Scenario | str | Path,
    over: Mapping[str, Sequence[Any]],
    *,
    sets: Overrides = (),
    seed: int | None = None,
    replications: int = 1,
    jobs: int | None = None,
    engine: str = "compiled",
) -> SweepResult:
    """Run a scenario at each point of a grid.

    Parameters
    ----------
    scenario, sets, seed, engine
        As for `run`.
    over
        Key → its values; several keys make a grid, the last one moving fastest.
    replications
        Runs of each cell, each with its own seed [count].
    jobs
        Worker processes [count]; left out: all cores. 1: none, all in this process. A script that uses
        several must guard its main part with ``if __name__ == "__main__":``.

    Raises
    ------
    ValueError
        If the scenario or a point is wrong; all problems at once, one line each.
    """
    plan = plan_sweep(
        scenario,
        over=over,
        sets=sets,
        seed=seed,
        replications=replications,
        engine=engine,
    )
    return run_sweep(plan, jobs=jobs)


def study(
    name: str,
    *,
    sets: Mapping[str, Any] | None = None,
    ablate: Sequence[str] = (),
    engine: str = "compiled",
    jobs: int | None = None,
    out: str | Path | None = None,
    **options: Any,
) -> StudyResult:
    """Reproduce a published study and judge each of its claims.

    Parameters
    ----------
    name
        One of `studies`.
    sets
        Parameters to change, by the names that the ledger lists, such as
        ``{"write.network_efficiency_fraction": 0.9}`` of ``exstorus2019``; if the study has a scenario, also
        its keys.
    ablate
        Names of ablations, or ``all``.
    engine, jobs
        As for `sweep`.
    out
        Folder for the ledger, rows, figures and report; left out: nothing is written.
    **options
        The study's own, such as ``figures=["13"]`` of ``koh2017``.

    Raises
    ------
    ValueError
        If there is no such study, option, parameter or ablation.
    """
    if sets is not None and not isinstance(sets, Mapping):
        raise ValueError(f"sets: got {sets!r}, wanted values by key")
    named = study_named(name)
    result = named.run(engine=engine, sets=sets, ablate=ablate, jobs=jobs, **options)
    if out is not None:
        named.save(result, Path(out))
    return result


def studies() -> list[str]:
    """List the studies that ship."""
    return list(STUDIES)


def claims(study: str) -> tuple[Claim, ...]:
    """Return the claims of a study: what its source states, with role and tolerance."""
    return study_named(study).claims()


def pool(
    scenario: _Scenario | str | Path, scheme: str | None = None, *, sets: Overrides = ()
) -> Pool:
    """Build one scheme's pool on the cluster of a scenario, for programs that drive the simulator.

    Parameters
    ----------
    scenario, sets
        As for `run`.
    scheme
        Such as ``rs:4,2``; left out: the scenario's first.
    """
    loaded = _loaded(scenario, sets)
    code = parse_scheme(scheme or loaded.schemes[0])
    return build_pool(loaded, code, build_models(loaded))


def cluster(
    scenario: _Scenario | str | Path, scheme: str | None = None, *, sets: Overrides = ()
) -> Cluster:
    """Build the cluster of a scenario as one scheme's pool sees it: hosts, OSDs, acting sets, models."""
    return pool(scenario, scheme, sets=sets).cluster


def workload(
    scenario: _Scenario | str | Path, cell: int | Cell = 0, *, sets: Overrides = ()
) -> Any:
    """Build the requests of one cell of a scenario.

    Parameters
    ----------
    scenario, sets
        As for `run`.
    cell
        Which of its cells: a number from 0, in the order in which `run` gives rows.
    """
    loaded = _loaded(scenario, sets)
    if isinstance(cell, int):
        cell = cells(loaded)[cell]
    return build_cell(loaded, cell).workload


def simulate(pool: Pool, workload: Any, **options: Any) -> RunResult:
    """Simulate a workload on a pool; options as of `stripesim.sim.run.simulate`.

    Raises
    ------
    ValueError
        If the workload has no end: neither a number of requests, nor ``until_ns``.
    """
    every = workload if isinstance(workload, list | tuple) else [workload]
    asked = [
        load.workload if isinstance(load, SyntheticStream) else load for load in every
    ]
    endless = any(
        isinstance(load, Synthetic) and load.requests is None for load in asked
    )
    if endless and options.get("until_ns") is None:
        raise ValueError(
            "simulate: got a workload without an end, wanted a number of requests, or until_ns"
        )
    return _simulate(pool, workload, **options)


def durability(
    scenario: _Scenario | str | Path,
    *,
    method: Literal["markov", "splitting", "burst", "all"] = "all",
    sets: Overrides = (),
    seed: int | None = None,
    walks: int = 1000,
) -> list[dict[str, Any]]:
    """Compute how many nines each scheme of a scenario with a table `[durability]` has.

    Parameters
    ----------
    scenario, sets, seed
        As for `run`.
    method
        ``markov``: a Markov chain, exact but for placement groups of CRUSH, where it is an approximation;
        ``splitting``: simulation of rare events; ``burst``: combinatorics of failures that strike together;
        ``all``: those that can answer.
    walks
        Walks that each of 20 batches begins at every level [count].

    Returns
    -------
    list of dict
        One row per scheme and method: ``nines`` with ``nines_low`` and ``nines_high`` (95 % interval, None
        for an approximation), ``exact``, ``loss_probability`` within the horizon, ``mttdl_hours``,
        ``dominant_path``, ``assumptions`` and more.

    Raises
    ------
    ValueError
        If the scenario has no such table, or the method cannot answer for a scheme.
    """
    from stripesim.scenarios.planning.durability import answer

    rows: list[dict[str, Any]] = answer(
        _loaded(scenario, sets, seed), method, walks=walks
    )["rows"]
    return rows


def import_report(*files: str | Path, pools: Sequence[str] = ()) -> dict[str, Any]:
    """Read a Ceph cluster that exists: its pools, OSDs, placement groups and capacity.

    Parameters
    ----------
    *files
        JSON of ``ceph report``, or of several commands; see ``stripesim import ceph-report --help``.
    pools
        Pools to make scenarios of; none: the largest.

    Returns
    -------
    dict
        ``pools``, ``osds``, ``pgs_by_osd``, ``capacity``, ``scenario`` and ``warnings``.

    Raises
    ------
    ValueError
        If a file cannot be read or holds none of these documents.
    """
    from stripesim.scenarios.importing.cluster import import_cluster
    from stripesim.scenarios.importing.summary import answer

    return answer(import_cluster([Path(file) for file in files]), pools)[0]
