"""The public Python API: scenarios in, results out.

`__all__` lists the public names. ``import stripesim`` loads none of them; each loads on first use, for
example as ``stripesim.run``. Names that need figures, traces or studies load their module on first use. Two
modules complement this one: `stripesim.teach` draws timelines as text for lessons, and `stripesim.blocks`
exports op graphs and engines for programs that simulate their own system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from importlib import import_module
from inspect import isfunction, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stripesim.arguments import checking_arguments, unknown_arguments
from stripesim.models.coding import RedundancyScheme
from stripesim.models.coding import parse_scheme as _parse_scheme
from stripesim.models.problems import (
    AnswerError,
    MeasuredError,
    OwnCodeError,
    ParameterSetError,
    Problem,
    RefusedError,
    ScenarioError,
    SchemeError,
    TraceError,
    UnavailableError,
    WorkError,
)
from stripesim.scenarios.answers.run.advise import check_advice
from stripesim.scenarios.answers.run.answer import ScenarioResult
from stripesim.scenarios.answers.run.execute import advised, run_scenario
from stripesim.scenarios.cells.build import build_cell, build_pool
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.keys import Cell, cells
from stripesim.scenarios.schema.loader import Overrides, shipped_scenarios
from stripesim.scenarios.schema.scenario import Scenario, as_scenario
from stripesim.scenarios.schema.scenario import load_scenario as _load_scenario
from stripesim.scenarios.schema.scenario import parse_scenario as _parse_scenario
from stripesim.scenarios.schema.units import format_size, parse_size_bytes
from stripesim.scenarios.show.answer import Answer, AnsweredList
from stripesim.sim.ceph.clients.workload import Synthetic, SyntheticStream
from stripesim.sim.ceph.cluster import Cluster
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.run import Run, RunSettings
from stripesim.sim.run import simulate as _simulate

if TYPE_CHECKING:
    from stripesim.calibration.ledger.verdicts import Claim, Ledger
    from stripesim.calibration.trace_fit import TraceFit, fit_trace
    from stripesim.scenarios.answers.explain.draw import draw_timelines
    from stripesim.scenarios.answers.explain.request import explain
    from stripesim.scenarios.answers.explain.text import table_rows
    from stripesim.scenarios.answers.explain.timeline import Timeline
    from stripesim.scenarios.answers.load.figure import draw_load
    from stripesim.scenarios.answers.load.results import LoadCurve, LoadPoint
    from stripesim.scenarios.answers.sweep.answer import SweepResult
    from stripesim.scenarios.answers.sweep.figures import draw_sweep
    from stripesim.scenarios.answers.trace import write_fit
    from stripesim.scenarios.show.figures.rehearsal import draw_rehearsal
    from stripesim.scenarios.show.figures.renderer import CaptionedFigure
    from stripesim.scenarios.show.figures.results import draw_all
    from stripesim.scenarios.show.figures.saving import save_figures
    from stripesim.scenarios.studies.base import StudyResult
    from stripesim.traces import BlockTrace, FailureTrace
    from stripesim.traces import describe as describe_trace
    from stripesim.traces import load as load_trace

__all__ = [
    "Answer",
    "AnswerError",
    "AnsweredList",
    "BlockTrace",
    "CaptionedFigure",
    "Claim",
    "Cluster",
    "FailureTrace",
    "Ledger",
    "LoadCurve",
    "LoadPoint",
    "MeasuredError",
    "OwnCodeError",
    "ParameterSetError",
    "Pool",
    "RedundancyScheme",
    "RefusedError",
    "Run",
    "Scenario",
    "ScenarioError",
    "ScenarioResult",
    "SchemeError",
    "StudyResult",
    "SweepResult",
    "Timeline",
    "TraceError",
    "TraceFit",
    "UnavailableError",
    "WorkError",
    "calibrate",
    "check",
    "claims",
    "cluster",
    "describe_trace",
    "draw_all",
    "draw_load",
    "draw_rehearsal",
    "draw_sweep",
    "draw_timelines",
    "durability",
    "explain",
    "fit_trace",
    "format_size",
    "import_report",
    "load_curves",
    "load_scenario",
    "load_trace",
    "parse_scenario",
    "parse_scheme",
    "parse_size_bytes",
    "plan",
    "pool",
    "predict",
    "rehearse",
    "run",
    "save_figures",
    "score",
    "shipped_scenarios",
    "simulate",
    "studies",
    "study",
    "sweep",
    "table_rows",
    "virtual_machines",
    "workload",
    "write_fit",
]

#: Module of each name that loads on first use. The type checker reads the imports above.
_LATE = {
    "BlockTrace": "stripesim.traces",
    "CaptionedFigure": "stripesim.scenarios.show.figures.renderer",
    "Claim": "stripesim.calibration.ledger.verdicts",
    "FailureTrace": "stripesim.traces",
    "Ledger": "stripesim.calibration.ledger.verdicts",
    "LoadCurve": "stripesim.scenarios.answers.load.results",
    "LoadPoint": "stripesim.scenarios.answers.load.results",
    "StudyResult": "stripesim.scenarios.studies.base",
    "SweepResult": "stripesim.scenarios.answers.sweep.answer",
    "Timeline": "stripesim.scenarios.answers.explain.timeline",
    "TraceFit": "stripesim.calibration.trace_fit",
    "describe_trace": "stripesim.traces",
    "draw_all": "stripesim.scenarios.show.figures.results",
    "draw_load": "stripesim.scenarios.answers.load.figure",
    "draw_rehearsal": "stripesim.scenarios.show.figures.rehearsal",
    "draw_sweep": "stripesim.scenarios.answers.sweep.figures",
    "draw_timelines": "stripesim.scenarios.answers.explain.draw",
    "explain": "stripesim.scenarios.answers.explain.request",
    "fit_trace": "stripesim.calibration.trace_fit",
    "load_trace": "stripesim.traces",
    "save_figures": "stripesim.scenarios.show.figures.saving",
    "table_rows": "stripesim.scenarios.answers.explain.text",
    "write_fit": "stripesim.scenarios.answers.trace",
}
_NAMES_THERE = {"describe_trace": "describe", "load_trace": "load"}


def __getattr__(name: str) -> Any:
    """Load a name of `_LATE` when it is first used."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LATE[name]), _NAMES_THERE.get(name, name))
    if isfunction(value):
        value = checking_arguments(value, name=name)
    globals()[name] = value
    return value


#: Names of the engines.
Engine = Literal["compiled", "simpy"]

load_scenario = checking_arguments(_load_scenario)
parse_scenario = checking_arguments(_parse_scenario)
parse_scheme = checking_arguments(_parse_scheme)


@checking_arguments
def run(
    scenario: Scenario | str | Path,
    *,
    sets: Overrides = (),
    seed: int | None = None,
    engine: Engine = "compiled",
    costs: bool = True,
    advise: bool = False,
    unchecked: bool = False,
) -> ScenarioResult:
    """Simulate every cell of a scenario: each scheme under each workload pattern.

    Parameters
    ----------
    scenario
        A `Scenario`, the name of a shipped scenario, or the path of a TOML file.
    sets
        Overrides, either as a mapping (``{"cluster.hosts": 8}``) or as on the command line
        (``["cluster.hosts=8"]``).
    seed
        Seed that replaces the scenario's.
    engine
        ``compiled`` or ``simpy``. Both give the same result.
    costs
        Break the mean latency down by step. Each cell then runs twice.
    advise
        Also simulate the gains of doubling each resource (``advice``) and of one more drive, host, network or
        core (``purchases``), as ``stripesim run --advise`` does.
    unchecked
        Keep the numbers of rows that the audit refuses.

    Returns
    -------
    ScenarioResult
        ``rows`` is a Polars table with one row per cell. Where the audit refuses a row, its numbers are null,
        its column ``refused`` states the reason, and ``refusals`` lists it.

    Raises
    ------
    ScenarioError
        If the scenario is invalid. The message lists all problems, one per line.
    ValueError
        If advice is asked for too many cells.
    """
    loaded = as_scenario(scenario, sets=sets, seed=seed)
    if advise:
        check_advice(loaded)
    result = run_scenario(loaded, engine=engine, costs=costs, unchecked=unchecked)
    return advised(result, loaded, engine=engine) if advise else result


@checking_arguments
def sweep(
    scenario: Scenario | str | Path,
    over: Mapping[str, Sequence[Any]] | None = None,
    *,
    zip: Mapping[str, Sequence[Any]] | None = None,
    list: str | Path | Sequence[Mapping[str, Any]] = (),
    sets: Overrides = (),
    seed: int | None = None,
    replications: int = 1,
    jobs: int | None = None,
    dask: str | None = None,
    engine: Engine = "compiled",
    out: str | Path | None = None,
    resume: bool = False,
    unchecked: bool = False,
) -> SweepResult:
    """Run a scenario at each point of a grid or list.

    Parameters
    ----------
    scenario, sets, seed, engine
        As for `run`.
    over
        Values to try for each key. Several keys form a grid, with the last key varying fastest.
    zip
        Values of keys that change together, equally many of each. They cross with `over`.
    list
        Points, each with values of the same keys, such as ``frame.to_dicts()`` of a table; or the path of a
        CSV file with a line of keys and one line of values per point. They cross with `over`.
    replications
        Runs of each cell [count], at least 1. Each run has its own seed.
    jobs
        Worker processes [count]. None uses all cores. 1 runs everything in this process.
    dask
        Address of a Dask scheduler to use instead of processes, as for ``stripesim sweep --dask``.
    out
        Folder for rows, which are stored as they finish, means and provenance. None writes no files.
    resume
        Continue the sweep in `out` and keep its rows.
    unchecked
        Keep the numbers of rows that the audit refuses, as for `run`.

    Returns
    -------
    SweepResult
        ``rows`` has one row per point, cell and replication, and ``refused`` counts those whose numbers the
        audit withholds.

    Raises
    ------
    AnswerError
        If the scenario or any point is invalid, or options contradict each other. The message lists all
        problems, one per line.
    WorkError
        If no worker could start.
    """
    from contextlib import ExitStack

    from stripesim.scenarios.answers.sweep.ended import INTERRUPTED
    from stripesim.scenarios.answers.sweep.plan import check_options, plan_sweep
    from stripesim.scenarios.answers.sweep.run import run_sweep
    from stripesim.scenarios.work.store import PartStore

    plan = plan_sweep(
        scenario,
        over=over or {},
        zipped=zip or {},
        points=list,
        sets=sets,
        seed=seed,
        replications=replications,
        engine=engine,
    )
    check_options(out, resume=resume, jobs=jobs, dask=dask)
    with ExitStack() as stack:
        store = None
        if out is not None:
            store = stack.enter_context(PartStore(Path(out), resume=resume))
        result = run_sweep(plan, jobs=jobs, dask=dask, store=store, unchecked=unchecked)
        if not result.records and result.stopped not in (None, INTERRUPTED):
            raise WorkError(Problem(key="sweep", detail=result.stopped))
        if out is not None:
            result.save(out)
    return result


@checking_arguments
def study(
    name: str,
    *,
    sets: Mapping[str, Any] | None = None,
    ablate: Sequence[str] | str = (),
    engine: Engine = "compiled",
    jobs: int | None = None,
    out: str | Path | None = None,
    unchecked: bool = False,
    **options: Any,
) -> StudyResult:
    """Reproduce a published study and judge each of its claims.

    Parameters
    ----------
    name
        One of the names that `studies` returns.
    sets
        Parameters to change, by the names in the ledger, such as
        ``{"write.network_efficiency_fraction": 0.9}`` for ``exstorus2019``. Studies that have a scenario also
        accept its keys.
    ablate
        Names of ablations, or one of them, or ``all``.
    engine, jobs
        As for `sweep`.
    out
        Folder for the ledger, rows, figures and report. None writes no files.
    unchecked
        True to judge also numbers that the audit refuses. Their rows have a text in column ``refused``.
    **options
        Options of this study, such as ``figures=["13"]`` for ``koh2017``.

    Returns
    -------
    StudyResult
        The simulated rows and the ledger of judged claims.

    Raises
    ------
    ValueError
        If the study, an option, a parameter or an ablation does not exist.
    """
    if sets is not None and not isinstance(sets, Mapping):
        raise ValueError(f"sets: got {sets!r}, wanted values by key")
    from stripesim.scenarios.studies.registry import study_named

    named = study_named(name)
    result = named.run(
        engine=engine,
        sets=sets,
        ablate=ablate,
        jobs=jobs,
        unchecked=unchecked,
        **options,
    )
    if out is not None:
        named.save(result, Path(out))
    return result


@checking_arguments
def studies() -> list[str]:
    """List the names of the shipped studies."""
    from stripesim.scenarios.studies.registry import STUDIES

    return list(STUDIES)


def claims(study: str) -> tuple[Claim, ...]:
    """Return the claims of a study: published values, each with its role and tolerance.

    Raises
    ------
    ValueError
        If the study does not exist.
    """
    from stripesim.scenarios.studies.registry import study_named

    return study_named(study).claims()


@checking_arguments
def pool(
    scenario: Scenario | str | Path, scheme: str | None = None, *, sets: Overrides = ()
) -> Pool:
    """Build the pool of one scheme on the cluster of a scenario, ready for `simulate`.

    Parameters
    ----------
    scenario, sets
        As for `run`.
    scheme
        Redundancy scheme such as ``rs:4,2``. None uses the first scheme of the scenario.

    Raises
    ------
    ValueError
        If the scenario or the scheme is invalid.
    """
    loaded = as_scenario(scenario, sets=sets)
    code = parse_scheme(scheme or loaded.schemes[0])
    return build_pool(loaded, code, build_models(loaded))


@checking_arguments
def cluster(
    scenario: Scenario | str | Path, scheme: str | None = None, *, sets: Overrides = ()
) -> Cluster:
    """Build the cluster of a scenario as the pool of one scheme sees it: hosts, OSDs, acting sets and models.

    Parameters
    ----------
    scenario, scheme, sets
        As for `pool`.
    """
    return pool(scenario, scheme, sets=sets).cluster


@checking_arguments
def workload(
    scenario: Scenario | str | Path, cell: int | Cell = 0, *, sets: Overrides = ()
) -> Any:
    """Build the workload of one cell of a scenario, ready for `simulate`.

    Parameters
    ----------
    scenario, sets
        As for `run`.
    cell
        The cell itself, or its index among the rows of `run`, from 0.

    Raises
    ------
    AnswerError
        If the scenario has fewer cells.
    """
    loaded = as_scenario(scenario, sets=sets)
    if not isinstance(cell, Cell):
        cell = _cell_at(cell, cells(loaded))
    return build_cell(loaded, cell).workload


def _cell_at(index: int, known: Sequence[Cell]) -> Cell:
    """Return the cell at an index, from 0."""
    is_whole = isinstance(index, int) and not isinstance(index, bool)
    if is_whole and 0 <= index < len(known):
        return known[index]
    last = len(known) - 1
    wanted = f"a cell, or its index among the rows of run: 0 to {last}"
    raise AnswerError(Problem(key="cell", got=repr(index), wanted=wanted))


@checking_arguments
def simulate(
    pool: Pool, workload: Any, *, unchecked: bool = False, **options: Any
) -> Run:
    """Simulate one workload, or a list of workloads, on a pool.

    Parameters
    ----------
    pool
        As `pool` returns it.
    workload
        As `workload` returns it, or a list of such workloads that run at the same time.
    unchecked
        Keep the numbers of rows that the audit refuses. Otherwise they are None, and ``refused`` of the row
        states the reason.
    **options
        Keyword arguments of `stripesim.sim.run.simulate`.

    Raises
    ------
    ValueError
        If a workload never ends: it has no number of requests, and ``until_ns`` is not set.
    """
    _check_options_of_simulate(options)
    loads = workload if isinstance(workload, list | tuple) else [workload]
    for load in loads or [None]:
        if not hasattr(load, "queue_depth"):
            wanted = "what stripesim.workload returns, or a list of such workloads"
            raise AnswerError(Problem(key="workload", got=repr(load), wanted=wanted))
    if options.get("until_ns") is None and any(map(_is_endless, loads)):
        raise ValueError(
            "simulate: got a workload without an end, wanted a number of requests, or until_ns"
        )
    result = _simulate(pool, workload, **options)
    return result if unchecked else result.withheld()


def _check_options_of_simulate(options: Mapping[str, Any]) -> None:
    """Refuse options that neither `stripesim.sim.run.simulate` nor its settings have."""
    parameters = signature(_simulate).parameters.values()
    known = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    known += [field.name for field in fields(RunSettings)]
    problems = unknown_arguments("simulate", options, known)
    if problems:
        raise AnswerError(*problems)


def _is_endless(load: Any) -> bool:
    """Return True if a workload has no number of requests to end after."""
    if isinstance(load, SyntheticStream):
        load = load.workload
    return isinstance(load, Synthetic) and load.requests is None


@checking_arguments
def durability(
    scenario: Scenario | str | Path,
    *,
    method: Literal["markov", "splitting", "burst", "history", "all"] = "all",
    sets: Overrides = (),
    seed: int | None = None,
    walks: int = 1000,
) -> AnsweredList[dict[str, Any]]:
    """Estimate the durability of each scheme of a scenario that has a ``[durability]`` table.

    Parameters
    ----------
    scenario, sets, seed
        As for `run`.
    method
        ``markov`` is a Markov chain, exact except for placement groups on CRUSH, where it is an
        approximation. ``splitting`` is rare-event simulation, and ``burst`` the combinatorics of simultaneous
        failures. ``history`` is rare-event simulation of large clusters against single failures.
        ``all`` uses every method that suits the size.
    walks
        Random walks that each of 20 batches starts at every level of ``splitting`` [count], at least 10. With
        ``history``, 20 times as many side walks run at least.

    Returns
    -------
    list of dict
        One row per scheme and method: ``nines`` with its 95 % interval ``nines_low`` to ``nines_high`` (None
        for an approximation), ``exact``, ``loss_probability`` within the horizon, ``mttdl_hours``,
        ``dominant_path``, ``assumptions`` and more. Its ``answer`` is what ``stripesim durability`` shows.

    Raises
    ------
    ValueError
        If the scenario has no ``[durability]`` table, or the method does not apply to a scheme.
    """
    from stripesim.scenarios.answers.durability.answer import answer_of_durability
    from stripesim.scenarios.answers.durability.durability import estimate_durability

    document = estimate_durability(
        as_scenario(scenario, sets=sets, seed=seed), method, walks=walks
    )
    return AnsweredList(document["rows"], partial(answer_of_durability, document))


@checking_arguments
def import_report(
    *files: str | Path, pools: Sequence[str] = (), failures: bool = False
) -> Answer:
    """Describe an existing Ceph cluster: its pools, OSDs, placement groups and capacity.

    Parameters
    ----------
    *files
        JSON output of ``ceph report``, or of several commands that ``stripesim import ceph-report --help``
        lists.
    pools
        Pools to write scenarios for. By default, the largest pool.
    failures
        True to fail each host and each drive in turn. Give the output of ``ceph pg dump`` too, so that each
        placement group counts with its own bytes.

    Returns
    -------
    Answer
        A mapping with ``pools``, ``osds``, ``pgs_by_osd``, ``capacity``, ``scenario`` and ``warnings``, and
        with ``failures`` and ``before_failure`` if failures are asked for.

    Raises
    ------
    ValueError
        If a file cannot be read or contains none of these documents.
    """
    if not files:
        wanted = "at least one, such as the output of ceph report"
        raise AnswerError(Problem(key="files", got="none", wanted=wanted))
    from stripesim.scenarios.answers.cluster import answer_of_cluster
    from stripesim.scenarios.answers.failures.failures import failures_of
    from stripesim.scenarios.clusters.cluster import import_cluster
    from stripesim.scenarios.clusters.summary import describe_cluster

    cluster = import_cluster([Path(file) for file in files])
    failure_answer = failures_of if failures else None
    return answer_of_cluster(*describe_cluster(cluster, pools, failures=failure_answer))


@checking_arguments
def rehearse(
    scenario: Scenario | str | Path,
    *,
    sets: Overrides = (),
    seed: int | None = None,
    engine: Engine = "compiled",
    unchecked: bool = False,
) -> Answer:
    """Rehearse the planned changes of a scenario: movement, duration, fill and the effect on clients.

    Parameters
    ----------
    scenario
        A `Scenario` with ``changes``, the name of a shipped scenario, or the path of a TOML file.
    sets, seed, engine
        As for `run`.
    unchecked
        True to show numbers that the audit refuses, listed as ``refusals``.

    Returns
    -------
    Answer
        A mapping with ``changes``, ``trade_off``, ``timeline``, ``warnings``, ``refusals`` and
        ``provenance``, as ``stripesim rehearse --json`` prints them. `draw_rehearsal` draws it.

    Raises
    ------
    ValueError
        If the scenario has no changes, several schemes, or a change that cannot be rehearsed.
    """
    from stripesim.scenarios.answers.rehearse.answer import answer_of_rehearsal
    from stripesim.scenarios.answers.rehearse.rehearse import rehearse as _rehearse

    loaded = as_scenario(scenario, sets=sets, seed=seed)
    document = _rehearse(loaded, engine=engine, unchecked=unchecked)
    return answer_of_rehearsal(loaded, document)


@checking_arguments
def plan(
    scenario: Scenario | str | Path,
    *,
    sets: Overrides = (),
    seed: int | None = None,
    engine: Engine = "compiled",
    unchecked: bool = False,
) -> Answer:
    """Recommend a cluster to buy, and list the candidates with the requirements that each one misses.

    Parameters
    ----------
    scenario
        A `Scenario` with ``plan``, the name of a shipped scenario, or the path of a TOML file.
    sets, seed, engine
        As for `run`.
    unchecked
        Keep the numbers of candidates that the audit refuses.

    Returns
    -------
    Answer
        A mapping with ``recommended`` (None if no candidate meets all requirements), ``reasons``,
        ``candidates``, ``placement``, ``purchases``, ``assumptions``, ``warnings`` and ``provenance``, as
        ``stripesim plan --json`` prints them. Its attribute ``rows`` is a table with one row per candidate.

    Raises
    ------
    ScenarioError
        If the scenario is invalid, or has no ``plan``.
    """
    from stripesim.scenarios.answers.plan.answer import answer_of_plan
    from stripesim.scenarios.answers.plan.curves import curves_of_plan
    from stripesim.scenarios.answers.plan.plan import make_plan

    loaded = as_scenario(scenario, sets=sets, seed=seed)
    made = make_plan(loaded, engine=engine, unchecked=unchecked)
    load_curves = partial(curves_of_plan, loaded, made.document, engine=engine)
    return answer_of_plan(loaded, made, load_curves=load_curves)


@checking_arguments
def load_curves(
    scenario: Scenario | str | Path,
    *,
    sets: Overrides = (),
    seed: int | None = None,
    p99_bounds_s: Sequence[float] = (),
    requests: int | None = None,
    jobs: int | None = None,
    engine: Engine = "compiled",
    unchecked: bool = False,
) -> AnsweredList[LoadCurve]:
    """Simulate latency over throughput, from a tenth of saturation to past it.

    Parameters
    ----------
    scenario, sets, seed, engine
        As for `run`. Queue depth, rate and length of the scenario, which it still states, are replaced:
        arrivals are Poisson at each rate.
    p99_bounds_s
        Bounds of the 99th percentile [s] to find the highest rate for. That of ``[plan]`` is added.
    requests
        Requests of each run [count]. Each point has 5 runs. Default: 6,000 to 20,000, by the number of OSDs,
        and 2,000 with kind s3.
    jobs
        Worker processes [count], as for `sweep`.
    unchecked
        Keep the numbers of points that the audit refuses. Otherwise they are in ``refused_points``.

    Returns
    -------
    list of LoadCurve
        One for each scheme and kind of request. `draw_load` draws them. Its ``answer`` is what
        ``stripesim load`` shows.

    Raises
    ------
    ValueError
        If the scenario has no steady load (traces, faults, changes, repairs), too many cells, or a scheme
        does not fit on the cluster. The message names the key. Also if the audit refuses the saturation.
    """
    from stripesim.scenarios.answers.load.answer import answer_of_load
    from stripesim.scenarios.answers.load.curve_builder import CurveSettings
    from stripesim.scenarios.answers.load.curves import load_curves as _load_curves

    loaded = as_scenario(scenario, sets=sets, seed=seed)
    settings = CurveSettings(
        engine=engine,
        p99_bounds_s=p99_bounds_s,
        requests=requests,
        unchecked=unchecked,
    )
    curves = _load_curves(loaded, settings, jobs=jobs)
    return AnsweredList(curves, partial(answer_of_load, loaded, curves, settings))


@checking_arguments
def virtual_machines(
    scenario: Scenario | str | Path,
    *,
    p99_bound_s: float,
    sets: Overrides = (),
    seed: int | None = None,
    jobs: int | None = None,
    engine: Engine = "compiled",
) -> Answer:
    """Count the virtual machines that a cluster serves within a latency.

    Parameters
    ----------
    scenario, sets, seed, engine
        As for `run`. `workload.vms` is replaced. A scenario that describes no virtual machine gets one that
        the answer states.
    p99_bound_s
        Bound of the 99th percentile of latency [s].
    jobs
        Worker processes [count], as for `sweep`.

    Returns
    -------
    Answer
        A mapping with ``vms`` (for each kind of request the number with its 95 % interval, what limits it,
        and the simulated ``points``), ``sentences``, ``assumptions``, ``warnings`` and ``provenance``, as
        ``stripesim load --vms --json`` prints them.

    Raises
    ------
    ValueError
        If the scenario has no steady load for blocks, or a scheme does not fit on the cluster.
    AnswerError
        If runs would be too long for the bound.
    """
    from stripesim.scenarios.answers.load.vm_answer import answer_of_vms
    from stripesim.scenarios.answers.load.vms import REPLICATIONS, vms_within

    loaded = as_scenario(scenario, sets=sets, seed=seed)
    within = vms_within(loaded, p99_bound_s=p99_bound_s, engine=engine, jobs=jobs)
    return answer_of_vms(loaded, within, engine=engine, replications=REPLICATIONS)


@checking_arguments
def calibrate(
    measured: str | Path, *, jobs: int | None = None, unchecked: bool = False
) -> Answer:
    """Fit a parameter set to a few measurements of your own cluster.

    Parameters
    ----------
    measured
        A folder with ``times.csv`` and ``clusters.toml``, or with fio's JSON outputs and the scenario of the
        cluster.
    jobs
        Worker processes [count], as for `sweep`.
    unchecked
        True to fit to rows, and to keep simulated values of rows, that the audit refuses.

    Returns
    -------
    Answer
        A mapping with the ``fitted`` factors and their intervals, the ``rows`` of measured and simulated
        values, and their errors, as ``stripesim calibrate --json`` prints them. ``save`` writes the set, too.

    Raises
    ------
    MeasuredError, ScenarioError
        If the measurements cannot be used. The message lists all problems, one per line.
    RefusedError
        If the audit refuses the run of a row that the factors are fitted to.
    """
    from stripesim.scenarios.answers.calibrate.answer import answer_of_calibration
    from stripesim.scenarios.answers.calibrate.calibrate import calibrate as fit

    return answer_of_calibration(fit(Path(measured), jobs=jobs, unchecked=unchecked))


@checking_arguments
def predict(
    scenario: Scenario | str | Path,
    *,
    register: str | Path | None = None,
    sets: Overrides = (),
    seed: int | None = None,
    engine: Engine = "compiled",
) -> Answer:
    """Predict a scenario's numbers with intervals, and register them before they are measured.

    Parameters
    ----------
    scenario, sets, seed, engine
        As for `run`.
    register
        New file for the dated prediction with its hash. None writes no file.

    Returns
    -------
    Answer
        A mapping of the register: ``rows``, each with the ``values`` ``predicted``, ``low`` and ``high`` of
        its quantities [unit of the quantity], ``coverage``, ``errors``, ``registered``, ``sha256`` and what
        the numbers depend on. Its attribute ``rows`` is the table of the simulated rows.

    Raises
    ------
    ScenarioError
        If the scenario is invalid.
    AnswerError
        If the register exists or cannot be written.
    """
    from stripesim.scenarios.answers.predict import register as registers
    from stripesim.scenarios.answers.predict.answer import answer_of_prediction

    file = None if register is None else Path(register)
    if file is not None:
        registers.check_new(file)
    prediction = registers.predict(
        as_scenario(scenario, sets=sets, seed=seed), engine=engine
    )
    document = registers.register_of(prediction)
    if file is not None:
        registers.write_register(file, document)
    return answer_of_prediction(prediction, document, file=str(register or ""))


@checking_arguments
def score(register: str | Path, measured: str | Path) -> Answer:
    """Compare a registered prediction with what was measured later.

    Parameters
    ----------
    register
        File that `predict` wrote.
    measured
        File of what was measured: a ``.csv`` table, fio's JSON, or the document of ``stripesim run --json``.

    Returns
    -------
    Answer
        A mapping with ``register``, ``coverage``, ``rows``, ``summary``, ``bands`` and ``missing``. Its
        attribute ``rows`` is a table with one row per measured value: ``predicted``, ``low``, ``high``,
        ``measured``, ``noise``, ``inside`` and ``error``.

    Raises
    ------
    AnswerError
        If the register cannot be read or was changed.
    MeasuredError
        If the measured values cannot be read, or fit no predicted row.
    """
    from stripesim.scenarios.answers.predict.answer import answer_of_score
    from stripesim.scenarios.answers.predict.score import score as score_register

    return answer_of_score(score_register(Path(register), Path(measured)))


@checking_arguments
def check(
    scenario: Scenario | str | Path,
    measured: str | Path,
    *,
    sets: Overrides = (),
    seed: int | None = None,
    engine: Engine = "compiled",
) -> Answer:
    """Check if a measured number is what the hardware should give, and simulate what would explain it.

    Parameters
    ----------
    scenario, sets, seed, engine
        As for `run`. The load of fio and rados bench replaces the scenario's.
    measured
        File of what was measured: fio's JSON, the output of ``rados bench`` as text or JSON, or a ``.csv``
        table of one row.

    Returns
    -------
    Answer
        A mapping with ``sentence``, ``verdict`` (``as expected``, ``slower`` or ``faster``), ``values`` with
        their intervals, ``causes`` with the closest first, and ``assumptions``. Its attribute ``rows`` is the
        simulated row.

    Raises
    ------
    ScenarioError
        If the scenario is invalid.
    MeasuredError
        If the measured values cannot be used.
    RefusedError
        If the audit refuses the simulation of the load.
    """
    from stripesim.scenarios.answers.check.answer import answer_of_check
    from stripesim.scenarios.answers.check.check import check as check_measured

    checked = check_measured(
        scenario, Path(measured), sets=sets, seed=seed, engine=engine
    )
    return answer_of_check(checked)
