"""Route requests to the page, its results, jobs, downloads and uploads."""

import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

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
from stripesim.scenarios.planning.equal_hosts import with_equal_hosts
from stripesim.scenarios.report.page.render import templates
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.loader import load_scenario, shipped_scenarios
from stripesim.scenarios.schema.toml_bounds import TEXT_MAX
from stripesim.web.comparison import (
    csv_of_options,
    job_rows,
    number_rows,
    report_of_options,
)
from stripesim.web.guard import FormReader, Guard
from stripesim.web.jobs import Job, JobQueue, QueueFullError
from stripesim.web.state import (
    PlanOption,
    controls,
    invalid_options,
    options_of,
    read_report,
    read_upload,
    toml_of,
)
from stripesim.web.worker import WorkError, call

#: Largest form, scenario, and report (enough for a cluster of several thousand OSDs) [B].
FORM_BYTES_MAX: Final = 1 << 16
UPLOAD_BYTES_MAX: Final = TEXT_MAX
REPORT_BYTES_MAX: Final = 64 << 20
UPLOADS_KEPT: Final = 16
#: Time limits for computing both options without simulation, and for reading an upload [s].
OPTIONS_WALL_S_MAX: Final = 60.0
UPLOAD_WALL_S_MAX: Final = 60.0
_PROBLEM_CHARACTERS_MAX: Final = 2000
_STATIC: Final[Mapping[str, tuple[str, str, str]]] = {
    "page.css": ("stripesim.scenarios.report.page", "page.css", "text/css"),
    "serve.css": ("stripesim.web", "static/serve.css", "text/css"),
    "serve.js": ("stripesim.web", "static/serve.js", "text/javascript"),
    "icon.svg": ("stripesim.web", "static/icon.svg", "image/svg+xml"),
    "htmx.min.js": ("stripesim.web", "static/htmx.min.js", "text/javascript"),
}


class _Upload(NamedTuple):
    """An uploaded scenario, with notes on how it was read and simplified."""

    scenario: Scenario
    notes: list[str]


class _Pages:
    """Request handlers and their shared state: uploaded scenarios and jobs."""

    def __init__(self, own: Scenario | None, jobs: JobQueue) -> None:
        self._own = None
        self._own_notes: list[str] = []
        if own is not None:
            self._own, self._own_notes = with_equal_hosts(own)
        self._jobs = jobs
        self._uploads: OrderedDict[str, _Upload] = OrderedDict()
        self._forms = FormReader()
        self._computing = CapacityLimiter(2)
        self._uploading = CapacityLimiter(1)

    def _base(self, query: Mapping[str, str]) -> tuple[str, Scenario]:
        """Return the scenario that a query starts from: uploaded, shipped, or the one given to `serve`."""
        name = query.get("base", "")
        if name in self._uploads:
            return name, self._uploads[name].scenario
        if name in _bases():
            return name, _bases()[name]
        if self._own is not None:
            return "served", self._own
        return "plan", _bases()["plan"]

    def _notes(self, name: str) -> list[str]:
        """Return the simplifications made in the scenario that a query starts from."""
        if name in self._uploads:
            return self._uploads[name].notes
        return self._own_notes if name == "served" else []

    async def _options(self, query: Mapping[str, str]) -> dict[str, PlanOption]:
        _, base = self._base(query)
        try:
            return await call(
                options_of,
                base,
                dict(query),
                limiter=self._computing,
                wall_s=OPTIONS_WALL_S_MAX,
            )
        except WorkError as error:
            return invalid_options(base, query, str(error))

    async def page(self, request: Request) -> Response:
        """Show the page with its results, so that it also works without scripts."""
        query = dict(request.query_params)
        name, base = self._base(query)
        options = await self._options(query)
        served = [] if self._own is None else ["served"]
        problem = query.get("problem", "")[:_PROBLEM_CHARACTERS_MAX]
        asked = query.get("base", "")
        if asked not in ("", name):
            problem = f'"{asked[:40]}" is no longer available: upload it again. This page starts from {name}.'
        return _html(
            "index.html.j2",
            version=__version__,
            bases=[*_bases(), *served, *self._uploads],
            base=name,
            title=base.name,
            controls=controls(base),
            options=options,
            rows=number_rows(options),
            query=_query(name, options),
            schemes=dict.fromkeys(
                (*base.schemes, "rep:3", "rs:4,2", "rs:6,3", "rs:8,3", "lrc:10,6,5")
            ),
            problem=problem,
            notes=self._notes(name),
        )

    async def compare(self, request: Request) -> Response:
        """Return results and field errors while values are typed, and update the address of the page."""
        query = dict(request.query_params)
        options = await self._options(query)
        name, base = self._base(query)
        address = _query(name, options)
        answer = _html(
            "compare.html.j2",
            rows=number_rows(options),
            query=address,
            options=options,
            controls=controls(base),
        )
        answer.headers["HX-Push-Url"] = f"/?{address}"
        return answer

    async def simulate(self, request: Request) -> Response:
        """Queue a simulation of both options."""
        async with self._forms.read(request, FORM_BYTES_MAX) as form:
            query = {key: text for key, text in form.items() if isinstance(text, str)}
        options = await self._options(query)
        scenarios = {
            side: option.scenario
            for side, option in options.items()
            if option.scenario is not None
        }
        notes = tuple(
            f"Option {side.upper()} is invalid and was not simulated: see its fields."
            for side in options
            if side not in scenarios
        )
        if not scenarios:
            return _job(None, " ".join(notes), status=422)
        try:
            return _job(self._jobs.submit(scenarios, notes))
        except QueueFullError:
            return _job(
                None,
                "Too many simulations are waiting: try again when one has finished.",
                status=429,
            )

    async def job(self, request: Request) -> Response:
        """Show the finished rows of a job."""
        job = self._jobs.get(request.path_params["job_id"])
        return _job(
            job,
            "This simulation is no longer available." if job is None else job.problem,
        )

    async def upload(self, request: Request) -> Response:
        """Accept a scenario or a report, and keep it only in memory."""
        async with self._forms.read(request, REPORT_BYTES_MAX) as form:
            file = form.get("file")
            if not isinstance(file, UploadFile):
                raise HTTPException(
                    400, "got no file, wanted a TOML scenario or a JSON report"
                )
            try:
                key = await self._keep(file)
            except WorkError as error:
                problem = str(error)[:_PROBLEM_CHARACTERS_MAX]
                return RedirectResponse(
                    "/?" + urlencode({"problem": problem}), status_code=303
                )
        return RedirectResponse("/?" + urlencode({"base": key}), status_code=303)

    async def _keep(self, file: UploadFile) -> str:
        """Read an uploaded file and return the key that it is kept under."""
        content = await file.read()
        is_report = content.lstrip()[:1] == b"{"
        if len(content) > UPLOAD_BYTES_MAX and not is_report:
            raise HTTPException(413, f"got more than {UPLOAD_BYTES_MAX:,} bytes")
        read = read_report if is_report else _read_scenario
        scenario, notes = await call(
            read, content, limiter=self._uploading, wall_s=UPLOAD_WALL_S_MAX
        )
        key = "upload-" + hashlib.sha256(content).hexdigest()[:12]
        self._uploads[key] = _Upload(scenario, notes)
        while len(self._uploads) > UPLOADS_KEPT:
            self._uploads.popitem(last=False)
        return key

    async def download(self, request: Request) -> Response:
        """Send one option as a scenario, both as CSV, or a report to share."""
        query = dict(request.query_params)
        name = request.path_params["what"]
        options = await self._options(query)
        job = self._jobs.get(query.get("job", ""))
        if name in ("a.toml", "b.toml"):
            option = options[name[0]]
            if option.scenario is None:
                raise HTTPException(422, "\n".join(option.problem_lines))
            return _file(name, "application/toml", toml_of(option.scenario))
        if name == "compare.csv":
            return _file(name, "text/csv", csv_of_options(options, job))
        if name == "report.html":
            return _file(name, "text/html", report_of_options(options, job))
        raise HTTPException(404)


def _read_scenario(content: bytes) -> tuple[Scenario, list[str]]:
    return with_equal_hosts(read_upload(content.decode("utf-8-sig")))


def _job(job: Job | None, problem: str = "", status: int = 200) -> Response:
    rows = [] if job is None else job_rows(job)
    return _html("job.html.j2", status=status, job=job, rows=rows, problem=problem)


@cache
def _bases() -> dict[str, Scenario]:
    """Return the shipped scenarios that refer to no files."""
    loaded = {name: load_scenario(name) for name in shipped_scenarios()}
    return {name: base for name, base in loaded.items() if not base.files()}


def _query(base: str, options: Mapping[str, PlanOption]) -> str:
    """Encode the state of the page as a query string."""
    pairs = {"base": base}
    for control in controls():
        for side, option in options.items():
            pairs[control.key(side)] = option.values[control.name]
    return urlencode(pairs)


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


def create_app(
    scenario: Scenario | None = None, *, jobs: JobQueue | None = None
) -> Starlette:
    """Build the application.

    Parameters
    ----------
    scenario
        Scenario that the page starts from. None uses the shipped scenario `plan`.
    jobs
        Queue of simulations. None uses a queue with default limits.

    Returns
    -------
    Starlette
        The application. Its lifespan runs the jobs and cancels them at the end.
    """
    queue = jobs or JobQueue()
    pages = _Pages(scenario, queue)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(queue.run)
            yield
            tasks.cancel_scope.cancel()

    return Starlette(
        routes=[
            Route("/", pages.page),
            Route("/compare", pages.compare),
            Route("/simulate", pages.simulate, methods=["POST"]),
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
