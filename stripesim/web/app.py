"""Route requests to the page, its answers, jobs, downloads and uploads."""

import secrets
import tempfile
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from stripesim._version import __version__
from stripesim.models.problems import WorkError
from stripesim.scenarios.cells.files import content_of
from stripesim.scenarios.forms.equal_hosts import with_equal_hosts
from stripesim.scenarios.schema.loader import shipped_scenarios
from stripesim.scenarios.schema.scenario import Scenario, load_scenario
from stripesim.scenarios.show.files import csv_text
from stripesim.scenarios.show.page.render import templates
from stripesim.web.closed_form_pictures import closed_form_pictures
from stripesim.web.comparison import (
    headline,
    job_rows,
    number_rows,
    option_rows,
    report_of_options,
)
from stripesim.web.controls import SIDES, left_out
from stripesim.web.experiments import Settings, warm_up
from stripesim.web.fields import FormProblems
from stripesim.web.guard import FormReader, Guard
from stripesim.web.jobs import WORKERS, Job, JobBoard, job_id
from stripesim.web.options import PlanOption, option_of, toml_of
from stripesim.web.simulated_pictures import load_curve, simulated_pictures
from stripesim.web.state import LabState
from stripesim.web.uploads import PACKED, Uploads, read_upload, unpacked
from stripesim.web.worker import call

#: Largest form, and report (enough for a cluster of several thousand OSDs) [B].
FORM_BYTES_MAX: Final = 1 << 16
REPORT_BYTES_MAX: Final = 64 << 20
#: Time limits for an option without simulation, and for reading an upload [s]. They include the start of a
#: process, which takes long on a busy machine, and reaching them ends the process.
OPTIONS_WALL_S_MAX: Final = 600.0
UPLOAD_WALL_S_MAX: Final = 300.0
#: Processor time for reading an upload [s]. `option_of` limits that of an option.
UPLOAD_PROCESSOR_S_MAX: Final = 60.0
#: Time limit for starting processes, which no page waits for [s].
WARM_UP_WALL_S_MAX: Final = 1800.0
_OPTIONS_KEPT: Final = 256
_PROBLEM_CHARACTERS_MAX: Final = 2000
#: Longest values that an address holds beside a problem [characters].
_KEPT_CHARACTERS_MAX: Final = 12_000
_TAB_CHARACTERS_MAX: Final = 32
_STATIC: Final[Mapping[str, tuple[str, str, str]]] = {
    "page.css": ("stripesim.scenarios.show.page", "page.css", "text/css"),
    "serve.css": ("stripesim.web", "static/serve.css", "text/css"),
    "serve.js": ("stripesim.web", "static/serve.js", "text/javascript"),
    "icon.svg": ("stripesim.web", "static/icon.svg", "image/svg+xml"),
    "htmx.min.js": ("stripesim.web", "static/htmx.min.js", "text/javascript"),
}


class _Base(NamedTuple):
    """A scenario that the page can start from."""

    name: str
    scenario: Scenario
    notes: list[str]


class _Pages:
    """Request handlers and what they share: uploads, computed options and jobs."""

    def __init__(self, own: Scenario | None, uploads: Uploads, board: JobBoard) -> None:
        self._served: _Base | None = None
        if own is not None:
            self._served = _Base("served", *with_equal_hosts(own))
        self._uploads = uploads
        self._board = board
        self._forms = FormReader()
        self._computing = CapacityLimiter(2)
        self._uploading = CapacityLimiter(1)
        self._computed: OrderedDict[Any, PlanOption] = OrderedDict()

    def _base(self, query: Mapping[str, str]) -> _Base:
        """Return the scenario that a query starts from: uploaded, shipped, or the one given to `serve`."""
        name = query.get("base", "")
        upload = self._uploads.scenarios.get(name)
        if upload is not None and upload.scenario is not None:
            return _Base(name, upload.scenario, upload.notes)
        if name.startswith(PACKED):
            with suppress(ValueError):
                return _Base(name, _unpacked(name), [])
        if name in _bases():
            return _Base(name, _bases()[name], [])
        return self._served or _Base("plan", _bases()["plan"], [])

    def _state(self, query: Mapping[str, str]) -> LabState:
        base = self._base(query)
        if "sets" in query:
            # Without a set that can be read, the field that chooses it is wrong.
            with suppress(ValueError):
                self._uploads.keep_packed(query["sets"])
        own = self._uploads.own_sets(base.scenario)
        state = LabState.read(query, base.name, base.scenario, own)
        return replace(state, sets=self._uploads.packed(state.chosen_sets, base.name))

    async def _options(self, state: LabState) -> dict[str, PlanOption]:
        """Compute both options without simulation, side by side."""
        base = self._base({"base": state.base}).scenario
        options: dict[str, PlanOption] = {}

        async def compute(side: str) -> None:
            options[side] = await self._option(base, state, side)

        async with anyio.create_task_group() as tasks:
            for side in SIDES:
                tasks.start_soon(compute, side)
        return {side: options[side] for side in SIDES}

    async def _option(self, base: Scenario, state: LabState, side: str) -> PlanOption:
        values = state.values[side]
        problems = state.problems(side)
        if problems:
            return PlanOption(values, problems=FormProblems(problems))
        key = (content_of(base), tuple(values.items()))
        option = self._computed.get(key)
        if option is None:
            try:
                option = await call(
                    option_of,
                    base,
                    values,
                    self._uploads.files,
                    limiter=self._computing,
                    wall_s=OPTIONS_WALL_S_MAX,
                )
            except WorkError as error:
                # Not kept, because it may be a matter of time or memory.
                return PlanOption(values, problems=FormProblems(others=(str(error),)))
        if option.is_partial:
            # Not kept, because the next call in a warm process may be complete.
            return option
        self._computed[key] = option
        self._computed.move_to_end(key)
        if len(self._computed) > _OPTIONS_KEPT:
            self._computed.popitem(last=False)
        return option

    async def warm_up(self) -> None:
        """Compute the first page and start the processes, so that pages open and simulate fast."""
        await self._options(self._state({}))
        every = CapacityLimiter(self._computing.total_tokens + WORKERS)

        async def start() -> None:
            # A page that needs the process says what is wrong.
            with suppress(WorkError):
                await call(warm_up, limiter=every, wall_s=WARM_UP_WALL_S_MAX)

        async with anyio.create_task_group() as tasks:
            for _ in range(int(every.total_tokens)):
                tasks.start_soon(start)

    async def page(self, request: Request) -> Response:
        """Show the page with its answers, so that it also works without scripts."""
        query = dict(request.query_params)
        base = self._base(query)
        state = self._state(query)
        options = await self._options(state)
        problem = query.get("problem", "")[:_PROBLEM_CHARACTERS_MAX]
        asked = query.get("base", "")
        if asked not in ("", base.name):
            gone = f'"{asked[:40]}" is no longer available: upload it again.'
            problem = f"{gone} This page starts from {base.scenario.title}."
        return _html(
            "index.html.j2",
            **_answers(state, options),
            version=__version__,
            tab=secrets.token_urlsafe(9),
            bases=self._base_titles(base),
            title=base.scenario.title,
            schemes=dict.fromkeys(
                (*base.scenario.schemes, "rep:3", "rs:4,2", "rs:6,3", "rs:8,3", "lrc:10,6,5")
            ),
            problem=problem,
            notes=[*base.notes, *left_out(base.scenario)],
            curve=load_curve(options),
        )  # fmt: skip

    def _base_titles(self, base: _Base) -> dict[str, str]:
        """Return the titles of the scenarios that the page can start from, by name."""
        titles = {name: name for name in _bases()}
        if self._served is not None:
            titles["served"] = "served"
        for name, upload in self._uploads.scenarios.items():
            if upload.scenario is not None:
                titles[name] = f"{upload.scenario.name} (uploaded)"
        titles.setdefault(base.name, f"{base.scenario.name} (uploaded)")
        return titles

    async def compare(self, request: Request) -> Response:
        """Return answers and field errors while values change, and stop simulating earlier values."""
        asked_s = time.monotonic()
        query = dict(request.query_params)
        state = self._state(query)
        options = await self._options(state)
        self._board.leave(_tab(query), asked_s, unless=_job_of(state, options))
        return _html("compare.html.j2", **_answers(state, options))

    async def simulate(self, request: Request) -> Response:
        """Simulate both options for a tab, instead of what it showed before, and update its address."""
        asked_s = time.monotonic()
        async with self._forms.read(request, FORM_BYTES_MAX) as form:
            query = {key: text for key, text in form.items() if isinstance(text, str)}
        state = self._state(query)
        options = await self._options(state)
        answer = self._simulate(_tab(query), state, options, asked_s)
        current = _query_of(request.headers.get("hx-current-url", ""))
        if self._state(current) != state:
            answer.headers["HX-Push-Url"] = f"/?{state.query}"
        return answer

    async def leave(self, request: Request) -> Response:
        """Note that a tab was closed or loaded again."""
        async with self._forms.read(request, FORM_BYTES_MAX) as form:
            query = {key: text for key, text in form.items() if isinstance(text, str)}
        self._board.close(_tab(query))
        return Response(status_code=204)

    def _simulate(
        self,
        tab: str,
        state: LabState,
        options: Mapping[str, PlanOption],
        asked_s: float,
    ) -> Response:
        valid = _valid(options)
        if not valid:
            self._board.leave(tab, asked_s)
            return _no_job("Nothing is simulated: see the problems above.")
        job = self._board.show(tab, valid, _settings(state), asked_s)
        if job is None:
            problem = "Too many pages are simulating: change a value to try again."
            return _no_job(problem, status=429)
        return _job(job)

    async def job(self, request: Request) -> Response:
        """Show what a job has simulated, or nothing if the page has shown it already."""
        job = self._board.get(request.path_params["job_id"])
        if job is None:
            return _no_job("This simulation is no longer available.")
        if request.query_params.get("seen") == str(job.version):
            return Response(status_code=204)
        return _job(job)

    async def upload(self, request: Request) -> Response:
        """Accept a scenario, a report or a parameter set."""
        async with self._forms.read(request, REPORT_BYTES_MAX) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise HTTPException(
                    400, "got no file, wanted a TOML file or a JSON report"
                )
            content = await file.read()
            try:
                upload = await call(
                    read_upload,
                    content,
                    limiter=self._uploading,
                    wall_s=UPLOAD_WALL_S_MAX,
                    processor_s=UPLOAD_PROCESSOR_S_MAX,
                )
                query = self._uploads.keep(content, upload)
                if upload.scenario is None:
                    # Parameters change the cluster that the page shows.
                    query = {**_shown(request), **query}
            except WorkError as error:
                query = {"problem": str(error)[:_PROBLEM_CHARACTERS_MAX]}
                shown = _shown(request)
                # Requests of the page have its address three times.
                if len(urlencode(shown)) <= _KEPT_CHARACTERS_MAX:
                    query = {**shown, **query}
        return RedirectResponse("/?" + urlencode(query), status_code=303)

    async def download(self, request: Request) -> Response:
        """Send one option as a scenario, both as CSV, or a report to share."""
        query = dict(request.query_params)
        name = request.path_params["what"]
        state = self._state(query)
        options = await self._options(state)
        job = self._board.get(_job_of(state, options))
        if name in ("a.toml", "b.toml"):
            option = options[name[0]]
            if option.scenario is None:
                raise HTTPException(422, "\n".join(option.problem_lines))
            return _file(name, "application/toml", toml_of(option.scenario))
        if name == "compare.csv":
            return _file(name, "text/csv", csv_text(option_rows(options, job)))
        if name == "report.html":
            return _file(name, "text/html", report_of_options(options, job))
        raise HTTPException(404)


def _query_of(address: str) -> dict[str, str]:
    """Return the query of an address, which is empty if the address is malformed."""
    try:
        query = urlsplit(address).query
    except ValueError:
        return {}
    return dict(parse_qsl(query, keep_blank_values=True))


def _shown(request: Request) -> dict[str, str]:
    """Return the values of the page that sent a form, without an earlier problem."""
    shown = _query_of(request.headers.get("referer", ""))
    shown.pop("problem", None)
    return shown


def _valid(options: Mapping[str, PlanOption]) -> dict[str, PlanOption]:
    return {
        side: option for side, option in options.items() if option.scenario is not None
    }


def _settings(state: LabState) -> Settings:
    values = state.values["a"]
    return Settings(
        failure=values["failure"],
        added_hosts=int(float(values["added_hosts"])),
        stored_bytes=float(values["stored_tb"]) * 1e12,
    )


def _job_of(state: LabState, options: Mapping[str, PlanOption]) -> str:
    """Return the id of the job of a state, or "" if both options are invalid."""
    valid = _valid(options)
    return job_id(valid, _settings(state)) if valid else ""


def _tab(query: Mapping[str, str]) -> str:
    return query.get("tab", "")[:_TAB_CHARACTERS_MAX]


def _answers(state: LabState, options: Mapping[str, PlanOption]) -> dict[str, Any]:
    """Return what the templates show of both options without simulation."""
    return {
        "state": state,
        "groups": state.groups,
        "options": options,
        "headline": headline(options),
        "rows": number_rows(options),
        "pictures": closed_form_pictures(options),
    }


def _job(job: Job) -> Response:
    return _html(
        "job.html.j2",
        job=job,
        curve=load_curve(job.options, job),
        rows=job_rows(job),
        pictures=simulated_pictures(job),
    )


def _no_job(problem: str, status: int = 200) -> Response:
    return _html("job.html.j2", status=status, job=None, problem=problem)


@lru_cache(maxsize=16)
def _unpacked(name: str) -> Scenario:
    return unpacked(name)


@cache
def _bases() -> dict[str, Scenario]:
    """Return the shipped scenarios that refer to no files."""
    loaded = {name: load_scenario(name) for name in shipped_scenarios()}
    return {name: base for name, base in loaded.items() if not base.files()}


def _html(template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    page = templates("stripesim.web", "pages").get_template(template)
    return HTMLResponse(page.render(**context), status_code=status)


def _file(name: str, kind: str, text: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="stripesim-{name}"'}
    return Response(text, media_type=kind, headers=headers)


async def _static(request: Request) -> Response:
    asset = _STATIC.get(request.path_params["name"])
    if asset is None:
        raise HTTPException(404)
    package, path, kind = asset
    return Response(
        (files(package) / path).read_text(encoding="utf-8"), media_type=kind
    )


def create_app(scenario: Scenario | None = None) -> Starlette:
    """Build the application.

    Parameters
    ----------
    scenario
        Scenario that the page starts from. None uses the shipped scenario `plan`.

    Returns
    -------
    Starlette
        The application. Its lifespan runs the jobs and cancels them at the end.
    """
    # Removed at the end of the process: uploaded parameter sets, and reports of running jobs.
    folder = tempfile.TemporaryDirectory(prefix="stripesim-serve-")
    board = JobBoard(Path(folder.name))
    pages = _Pages(scenario, Uploads(Path(folder.name)), board)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(board.run)
            tasks.start_soon(pages.warm_up)
            yield
            tasks.cancel_scope.cancel()
        folder.cleanup()

    return Starlette(
        routes=[
            Route("/", pages.page),
            Route("/compare", pages.compare),
            Route("/simulate", pages.simulate, methods=["POST"]),
            Route("/leave", pages.leave, methods=["POST"]),
            Route("/job/{job_id}", pages.job),
            Route("/upload", pages.upload, methods=["POST"]),
            Route("/download/{what}", pages.download),
            Route("/static/{name}", _static),
        ],
        # Reject other host names, which a foreign site may have pointed at this machine (DNS rebinding).
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"]),
            Middleware(Guard),
        ],
        lifespan=lifespan,
    )
