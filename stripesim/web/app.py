"""The addresses of the page: it, its results, jobs, downloads and uploads."""

import csv
import hashlib
import io
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from stripesim._version import __version__
from stripesim.scenarios.report.page.render import Table, render, templates
from stripesim.scenarios.schema.keys import Scenario
from stripesim.scenarios.schema.loader import load_scenario, shipped_scenarios
from stripesim.scenarios.schema.units import number_text
from stripesim.sim.observe.intervals import student_interval
from stripesim.web.jobs import Job, JobQueue, QueueFullError
from stripesim.web.state import (
    SIDES,
    Option,
    controls,
    difference,
    option_of,
    read_report,
    read_upload,
    toml_of,
)

#: Of what is typed, of a scenario, and of a report of a cluster of some thousand OSDs [bytes].
FORM_BYTES_MAX: Final = 1 << 16
UPLOAD_BYTES_MAX: Final = 1 << 20
REPORT_BYTES_MAX: Final = 64 << 20
UPLOADS_KEPT: Final = 16
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_STATIC: Final[Mapping[str, tuple[str, str, str]]] = {
    "page.css": ("stripesim.scenarios.report.page", "page.css", "text/css"),
    "serve.css": ("stripesim.web", "static/serve.css", "text/css"),
    "icon.svg": ("stripesim.web", "static/icon.svg", "image/svg+xml"),
    "htmx.min.js": ("stripesim.web", "static/htmx.min.js", "text/javascript"),
}

Next = Callable[[Request], Awaitable[Response]]


class _Guard(BaseHTTPMiddleware):
    """Refuse what other sites' pages send, and add the headers that every answer has."""

    async def dispatch(self, request: Request, call_next: Next) -> Response:
        origin = request.headers.get("origin")
        if request.method != "GET" and origin and urlsplit(origin).netloc != request.headers.get("host"):
            return PlainTextResponse("from another site", status_code=403, headers=_HEADERS)
        answer = await call_next(request)
        answer.headers.update(_HEADERS)
        return answer


class _Pages:
    """The answers, with what they share: scenarios that were uploaded, and jobs."""

    def __init__(self, own: Scenario | None, jobs: JobQueue) -> None:
        self._own = own
        self._jobs = jobs
        self._uploads: OrderedDict[str, Scenario] = OrderedDict()
        self._notes: dict[str, list[str]] = {}

    def _asked(self, query: Mapping[str, str]) -> tuple[str, Scenario]:
        """Return the scenario that an address starts from: shipped, uploaded, or the one that was served."""
        name, known = query.get("base", ""), {**self._uploads, **_bases()}
        if name in known:
            return name, known[name]
        return ("served", self._own) if self._own is not None else ("plan", _bases()["plan"])

    async def _options(self, query: Mapping[str, str]) -> dict[str, Option]:
        _, base = self._asked(query)
        return await run_in_threadpool(lambda: {side: option_of(base, query, side) for side in SIDES})

    async def page(self, request: Request) -> Response:
        """The whole page, with results: it works without script too."""
        query = dict(request.query_params)
        name, base = self._asked(query)
        options = await self._options(query)
        return _html(
            "index.html.j2",
            version=__version__,
            bases=[*_bases(), *(["served"] if self._own is not None else []), *self._uploads],
            base=name,
            title=base.name,
            controls=controls(),
            options=options,
            results=_results(options, _query(name, options)),
            schemes=dict.fromkeys((*base.schemes, "rep:3", "rs:4,2", "rs:6,3", "rs:8,3", "lrc:10,6,5")),
            problem=query.get("problem", ""),
            notes=self._notes.get(name, []),
        )

    async def compare(self, request: Request) -> Response:
        """The results alone, as somebody types; the address of the page follows."""
        query = dict(request.query_params)
        options = await self._options(query)
        address = _query(self._asked(query)[0], options)
        answer = _html("results.html.j2", **_results(options, address))
        answer.headers["HX-Push-Url"] = f"/?{address}"
        return answer

    async def simulate(self, request: Request) -> Response:
        """Ask for a simulation of both options."""
        form = await _form(request, FORM_BYTES_MAX)
        if form is None:
            return _refused(f"got more than {FORM_BYTES_MAX:,} bytes", 413)
        options = await self._options({key: text for key, text in form.items() if isinstance(text, str)})
        texts = {side: toml_of(one.scenario) for side, one in options.items() if one.scenario is not None}
        if not texts:
            return _job(None, "Nothing to simulate: see above.", status=422)
        try:
            return _job(self._jobs.submit(texts))
        except QueueFullError:
            return _job(None, "As many simulations wait as may: try again when one is done.", status=429)

    async def job(self, request: Request) -> Response:
        """What a job has found so far."""
        job = self._jobs.get(request.path_params["job_id"])
        return _job(job, "This simulation is not kept any more." if job is None else job.problem)

    async def upload(self, request: Request) -> Response:
        """Take a scenario that somebody uploads; it is kept in memory alone."""
        form = await _form(request, REPORT_BYTES_MAX)
        if form is None:
            return _refused(f"got more than {REPORT_BYTES_MAX:,} bytes", 413)
        given = form.get("file")
        if not isinstance(given, UploadFile):
            return _refused("got no file, wanted a scenario in TOML", 400)
        content = await given.read()
        notes: list[str] = []
        is_report = content.lstrip()[:1] == b"{"
        if len(content) > UPLOAD_BYTES_MAX and not is_report:
            return _refused(f"got more than {UPLOAD_BYTES_MAX:,} bytes", 413)
        try:
            if is_report:
                scenario, notes = await run_in_threadpool(read_report, content)
            else:
                scenario = await run_in_threadpool(read_upload, content.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            return RedirectResponse("/?" + urlencode({"problem": str(error)[:2000]}), status_code=303)
        key = "upload-" + hashlib.sha256(content).hexdigest()[:12]
        self._uploads[key], self._notes[key] = scenario, notes
        while len(self._uploads) > UPLOADS_KEPT:
            self._notes.pop(self._uploads.popitem(last=False)[0], None)
        return RedirectResponse("/?" + urlencode({"base": key}), status_code=303)

    async def download(self, request: Request) -> Response:
        """One option as a scenario, both as CSV, or a page to forward."""
        query, what = dict(request.query_params), request.path_params["what"]
        options = await self._options(query)
        job = self._jobs.get(query.get("job", ""))
        if what in ("a.toml", "b.toml"):
            chosen = options[what[0]]
            if chosen.scenario is None:
                return _refused("\n".join(chosen.problems), 422)
            return _file(what, "application/toml", toml_of(chosen.scenario))
        if what == "compare.csv":
            return _file(what, "text/csv", _csv(options, job))
        if what == "report.html":
            return _file(what, "text/html", _report(options, job))
        return _refused("not found", 404)


async def _form(request: Request, most_bytes: int) -> FormData | None:
    """Read a form of bounded size, whatever length it claims; None where it is larger."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most_bytes:
            return None

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": bytes(body), "more_body": False}

    return await Request(request.scope, receive).form(max_files=1, max_fields=100)


def _refused(text: str, status: int) -> Response:
    return PlainTextResponse(text, status_code=status)


def _job(job: Job | None, problem: str = "", status: int = 200) -> Response:
    rows = [] if job is None else _summary(job)
    return _html("job.html.j2", status=status, job=job, rows=rows, problem=problem)


@cache
def _bases() -> dict[str, Scenario]:
    """The scenarios that ship and name no file."""
    return {name: base for name in shipped_scenarios() if not (base := load_scenario(name)).files()}


def _query(base: str, options: Mapping[str, Option]) -> str:
    """Write the state of the page as the query of an address."""
    pairs = [("base", base)]
    for control in controls():
        if control.both:
            pairs.append((control.name, options["a"].values[control.name]))
        else:
            pairs += [(f"{side}.{control.name}", one.values[control.name]) for side, one in options.items()]
    return urlencode(pairs)


def _results(options: Mapping[str, Option], query: str) -> dict[str, Any]:
    """Line the numbers of both options up, with their difference."""
    by_side = [{number.key: number for number in one.numbers} for one in options.values()]
    rows = []
    for key in dict.fromkeys(key for numbers in by_side for key in numbers):
        pair = [numbers.get(key) for numbers in by_side]
        some = next(number for number in pair if number is not None)
        first, second = (None if number is None else number.value for number in pair)
        against = difference(first, second)
        if key == "nines" and first is not None and second is not None:
            # A logarithm: its difference says more than its share.
            against = f"{second - first:+.1f}"
        rows.append({"label": some.label, "pair": pair, "difference": against, "some": some})
    return {"rows": rows, "options": options, "query": query}


def _summary(job: Job) -> list[dict[str, str]]:
    """Mean and 95 % interval over the seeds that are done, for each option."""
    found = []
    for side in job.options:
        mine = [row for row in job.rows if row["side"] == side]
        line = {"side": side.upper(), "runs": str(len(mine))}
        for key, factor in (("iops", 1.0), ("latency_mean_ns", 1e-6), ("latency_p99_ns", 1e-6)):
            values = [row[key] for row in mine]
            line[key] = number_text(values[0], factor) if values else "…"
            if len(values) > 1:
                mean, low, high = student_interval(values)
                assert low is not None and high is not None, "two values or more have an interval"
                half = number_text((high - low) / 2, factor, digits=2)
                line[key] = f"{number_text(mean, factor)} ± {half}"
        saturated = any(row["saturated"] for row in mine)
        line["limit"] = ", ".join(dict.fromkeys(str(row["bottleneck"]) for row in mine)) or "…"
        verdict = "saturated: does not serve the rate" if saturated else "serves the rate"
        found.append(line | {"verdict": verdict if mine else "…"})
    return found


def _lines(options: Mapping[str, Option], job: Job | None) -> list[list[str]]:
    """All numbers as rows of text: what, A, B, difference, why."""
    lines = []
    for row in _results(options, "")["rows"]:
        shown = ["–" if number is None else number.text for number in row["pair"]]
        some = row["some"]
        lines.append([row["label"], *shown, row["difference"], f"{some.why}; {some.source}; {some.range}"])
    summary = {line["side"]: line for line in _summary(job)} if job else {}
    for key, label in (("iops", "served [1/s]"), ("latency_p99_ns", "p99 [ms]"), ("limit", "near its limit")):
        pair = [summary[side][key] if side in summary else "–" for side in "AB"]
        lines += [[f"simulated: {label}", *pair, "", "mean ± 95 % over seeds"]] if summary else []
    return lines


def _csv(options: Mapping[str, Option], job: Job | None) -> str:
    def plain(text: str) -> str:
        # A spreadsheet would take what was typed for a formula.
        return "'" + text if text[:1] in ("=", "+", "-", "@") else text

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["number", "A", "B", "difference", "why"])
    for control in controls():
        given = (plain(one.values[control.name]) for one in options.values())
        writer.writerow([control.name, *given, "", "the form"])
    writer.writerows(_lines(options, job))
    return text.getvalue()


def _report(options: Mapping[str, Option], job: Job | None) -> str:
    both, columns = options.values(), ["number", "A", "B", "B against A", "why"]
    asked = [[control.label, *(one.values[control.name] for one in both)] for control in controls()]
    said = (line for one in both for line in (*one.problems, *one.warnings))
    return render(
        "compare.html.j2",
        kind="Two options compared",
        title=" or ".join(one.values["scheme"] for one in both),
        introduction="Capacity, bounds and durability by closed forms; rates where they were simulated.",
        meta=[f"stripesim {__version__}"],
        numbers=Table("Numbers", columns, _lines(options, job), numeric=False, form="stack"),
        asked=Table("What was asked", ["control", "A", "B"], asked),
        warnings=list(dict.fromkeys(said)),
    )


def _html(template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    return HTMLResponse(
        templates("stripesim.web", "pages").get_template(template).render(**context), status_code=status
    )


def _file(name: str, kind: str, text: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="stripesim-{name}"'}
    return Response(text, media_type=kind, headers=headers)


async def _static(request: Request) -> Response:
    found = _STATIC.get(request.path_params["name"])
    if found is None:
        return _refused("not found", 404)
    package, path, kind = found
    return Response((files(package) / path).read_text(encoding="utf-8"), media_type=kind)


def create_app(scenario: Scenario | None = None, *, jobs: JobQueue | None = None) -> Starlette:
    """Build the application."""
    pages = _Pages(scenario, jobs or JobQueue())
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
        # A name that another site points at this machine is not one of ours.
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"]),
            Middleware(_Guard),
        ],
    )
