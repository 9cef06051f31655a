"""Explain one request: run it alone on the reference engine and attribute the time of every step."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from stripesim.models.generations import generations
from stripesim.models.problems import AnswerError, StepsError
from stripesim.scenarios.answers.explain.answer import answer_of_timelines
from stripesim.scenarios.answers.explain.cluster import (
    scenarios_of,
    with_one_request,
    with_one_s3_request,
)
from stripesim.scenarios.answers.explain.plan import (
    PlacedRequest,
    PlacedS3Request,
    RequestQuestion,
    place_request,
    place_s3_request,
)
from stripesim.scenarios.answers.explain.record import record
from stripesim.scenarios.answers.explain.shares import shares_of
from stripesim.scenarios.answers.explain.timeline import (
    Timeline,
    critical_path,
    holds,
    located,
)
from stripesim.scenarios.cells.build import check_schemes
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import kernel_warnings, repair_warnings
from stripesim.scenarios.cells.run import steps_problem
from stripesim.scenarios.schema.loader import Overrides
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.types import S3_OPS
from stripesim.scenarios.schema.units import size_bytes_at
from stripesim.scenarios.show.answer import AnsweredList
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.engine.graph import Template

OPS: Final = ("write", "read", "repair", *S3_OPS)
STATES: Final = ("healthy", "degraded")
IMAGES: Final = ("prefilled", "pristine")


def explain(
    op: str,
    schemes: Sequence[str] | str | None = None,
    size_bytes: int | str = 4096,
    *,
    offset_bytes: int | str = 0,
    generation: Sequence[str] | str | None = None,
    state: str = "healthy",
    image: str = "prefilled",
    lost_shard: int = 1,
    scenario: Scenario | str | Path | None = None,
    sets: Overrides = (),
    stripe_unit_bytes: int | None = None,
    direct_reads: bool = False,
    with_parameters: bool = True,
) -> AnsweredList[Timeline]:
    """Run one request alone, once for each release and scheme, and return all its steps.

    Parameters
    ----------
    op : {"write", "read", "repair", "put", "get", "head", "list", "delete"}
        The last five are S3 requests through a RADOS gateway.
    schemes : sequence of str, or str, optional
        Such as ``["rep:3", "rs:6,3"]``, all on the same cluster. Defaults to the schemes of the scenario,
        or to these two.
    size_bytes : int or str
        Size of the request, of an S3 object, or of the object that a repair rebuilds [B], also as text
        such as ``64k``.
    offset_bytes : int or str
        Offset in the image [B], 0 for a repair.
    generation : str or sequence of str, optional
        Ceph release, or several to compare. Defaults to that of the scenario.
    state : {"healthy", "degraded"}
        With ``degraded``, one shard of the placement group is down.
    image : {"prefilled", "pristine"}
        With ``prefilled``, the whole object exists before the request.
    lost_shard : int
        Index from 0 of the shard that is down (degraded) or rebuilt (repair).
    scenario : Scenario, str or Path, optional
        Scenario that has the cluster. Its load and its faults are ignored. With a table [plan], the
        cluster is the largest that the plan tries. Defaults to a small cluster with one host per shard.
    sets : mapping, or sequence of str
        Overrides of scenario keys, as for `stripesim.run`.
    stripe_unit_bytes : int, optional
        Bytes of one stripe on one shard [B]. Defaults to the value of the scenario.
    direct_reads : bool
        If True, the client reads shards of erasure-coded objects directly, in those releases that offer it.
    with_parameters : bool
        If False, leave out the parameters that set each duration. Finding them takes most of the time.

    Returns
    -------
    list of Timeline
        One timeline per release and scheme, in that order. Its ``answer`` is what ``stripesim explain``
        shows.

    Raises
    ------
    ValueError
        If a scheme, the request or the scenario is invalid.

    Notes
    -----
    Service times are means: device times do not vary, so that each duration follows from its parameters.
    The cluster is otherwise idle. A step can only wait for another step of the same request, as sub-writes
    do for the primary's network and replies for the placement group.

    Examples
    --------
    >>> one, = explain("write", "rep:3", 4096)
    >>> sum(one.latency_by_category_ns().values()) == one.latency_ns
    True
    """
    if isinstance(schemes, str):
        schemes = [schemes]
    if isinstance(generation, str):
        generation = [generation]
    size_bytes = size_bytes_at("--size", size_bytes)
    offset_bytes = size_bytes_at("--offset", offset_bytes)
    question = RequestQuestion(op, size_bytes, offset_bytes, state, image, lost_shard)
    _check(question, schemes, generation or ())
    keys = {
        "schemes": schemes,
        "cluster.stripe_unit_bytes": stripe_unit_bytes,
        "cluster.object_bytes": size_bytes if op == "repair" else None,
    }
    timelines = []
    for of_release in scenarios_of(
        scenario, generation, keys=keys, direct_reads=direct_reads, sets=sets
    ):
        # A bare device has no steps to explain.
        pools = [scheme for scheme in of_release.schemes if scheme != "none"]
        if not pools:
            wanted = "a scheme such as rep:3 or rs:6,3"
            raise of_release.problem("schemes", "none, a bare device", wanted)
        timelines += [
            _timeline(question, of_release, scheme, with_parameters) for scheme in pools
        ]
    return AnsweredList(timelines, partial(answer_of_timelines, timelines))


def _check(
    question: RequestQuestion, schemes: Sequence[str] | None, releases: Sequence[str]
) -> None:
    """Raise `AnswerError` if the question is invalid on any cluster."""
    op = question.op
    _check_choice("explain", op, OPS)
    _check_choice("--state", question.state, STATES)
    _check_choice("--image", question.image, IMAGES)
    for release in releases:
        _check_choice("--generation", release, tuple(generations()))
    if question.size_bytes < 1:
        raise _wrong("--size", question.size_bytes, "1 byte or more")
    if schemes is not None:
        example = "a scheme such as rep:3 or rs:6,3"
        if not schemes:
            raise _wrong("--scheme", "none", example)
        if "none" in schemes:
            raise _wrong("--scheme", "none, a bare device", example)
    if op in S3_OPS:
        _check_plain(question, offset=f"none with {op}", state="neither")
    if op == "repair":
        _check_plain(
            question,
            offset="none: a repair rebuilds a whole object",
            state="neither: one lost shard is rebuilt",
        )


def _check_plain(question: RequestQuestion, *, offset: str, state: str) -> None:
    """Refuse an offset, a state or an image. `offset` and `state` say what is wanted instead."""
    if question.offset_bytes:
        raise _wrong("--offset", question.offset_bytes, offset)
    if question.state != "healthy" or question.image != "prefilled":
        raise _wrong(f"explain {question.op}", "--state or --image", state)


def _check_choice(place: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise _wrong(place, repr(value), f"one of {', '.join(choices)}")


def _wrong(place: str, got: object, wanted: str) -> AnswerError:
    return AnswerError(f"{place}: got {got}, wanted {wanted}")


def _timeline(
    question: RequestQuestion, scenario: Scenario, scheme: str, with_parameters: bool
) -> Timeline:
    """Run the request under one scheme."""
    is_s3 = question.op in S3_OPS
    if is_s3:
        one_request = with_one_s3_request(
            scenario, scheme, question.op, question.size_bytes
        )
    else:
        one_request = with_one_request(
            scenario,
            scheme,
            size_bytes=question.size_bytes,
            image=question.image,
            encodes=question.op != "read" or question.state != "healthy",
        )
    models = build_models(one_request)
    check_schemes(one_request, models)
    place_on_cluster = place_s3_request if is_s3 else place_request
    request = place_on_cluster(question, one_request, models)
    try:
        timeline = _record(request, request.pool.cluster.models, with_parameters)
    except StepsError as error:
        if not is_s3:
            raise steps_problem(scenario, scheme, error) from None
        if question.op == "list":
            raise steps_problem(one_request, scheme, error) from None
        (problem,) = steps_problem(one_request, scheme, error).problems
        raise AnswerError(replace(problem, place="--size", key="")) from None
    return replace(
        timeline,
        generation=scenario.generation,
        kernel_notes=(
            *kernel_warnings(one_request),
            *(repair_warnings(one_request, models) if question.op == "repair" else ()),
        ),
    )


def _record(
    request: PlacedRequest | PlacedS3Request, models: Models, with_parameters: bool
) -> Timeline:
    """Run the request on the reference engine and return its timeline, without the release."""
    question = request.question
    pool = request.pool
    plan = request.plan(models)
    program = plan.program(pool)
    steps, reply_ns, graphs = record(program, request.role_name)

    def templates_with(models: Models) -> list[Template]:
        replanned = request.plan(models, in_rounds=plan.rounds > 1)
        replanned.source.take(1)
        templates = replanned.book.templates
        if max(graphs) >= len(templates):
            raise ValueError("the request divides into other graphs")
        return [templates[graph] for graph in graphs]

    if with_parameters:
        shares, parameters = shares_of(templates_with, models)
    else:
        planned = [plan.book.templates[graph] for graph in graphs]
        shares = [[[] for _ in range(template.steps)] for template in planned]
        parameters = {}
    primary = int(pool.primaries[0])
    placed = located(steps, shares, primary)
    if not request.width:
        # The gateway waits for the parts of an S3 request, where a primary waits for shards.
        placed = [
            replace(step, lane="gateway") if step.lane == "primary" else step
            for step in placed
        ]
    method = {}
    if plan.rounds > 1:
        method = {"method": f"the first of {plan.rounds} rounds"}
    return Timeline(
        scheme=pool.scheme.name,
        op=question.op,  # type: ignore[arg-type]
        state="lost shard" if question.op == "repair" else question.state,
        generation="",
        size_bytes=question.size_bytes,
        offset_bytes=question.offset_bytes,
        width=request.width,
        data_shards=getattr(pool.scheme, "k", 1),
        primary=primary,
        missing=request.missing,
        osds=request.osds,
        latency_ns=reply_ns,
        end_ns=max(step.end_ns for step in steps),
        steps=tuple(placed),
        holds=tuple(holds(steps)),
        path=critical_path(steps, plan.book.templates[graphs[0]].reply),
        parameters=parameters,
        **request.shard_counts() | method,
    )
