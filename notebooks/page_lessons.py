"""Lessons that run in a page, from a disk too: the compiled engine, and the questions as data.

A lesson is a file of ``pages/``: the numbers that a seed draws, the runs, and the questions, whose answers
are `expressions`. Python plans each run that a seed can ask for and stores it in the page, which simulates
it. To grade what a page hands in, Python simulates the same runs: same seed, same nanoseconds.
"""

import json
import math
import re
import tomllib
from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

from stripesim._version import __version__
from stripesim.notebooks.expressions import filled, value_of
from stripesim.notebooks.teach import Given, Lesson, Question, Questions
from stripesim.scenarios.answers.engine_page.page import (
    Arrays,
    program_of,
    stored_program,
    with_engine,
)
from stripesim.sim.engine.compiled.engine import run as run_compiled
from stripesim.sim.engine.distributions import exponential, service_times
from stripesim.sim.engine.draws import seed_state
from stripesim.sim.engine.graph import GraphBuilder
from stripesim.sim.engine.program import FIFO, Program, RequestChunk, Resources

FOLDER: Final = Path(__file__).resolve().parent / "pages"
#: Seed of all runs. The student's seed draws codes, sizes and loads.
SEED: Final = 1
#: Mean service time of a queue [ns], and its requests.
SERVICE_NS: Final = 10_000
QUEUE_REQUESTS: Final = 20_000

_NUMBER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class PlannedRun:
    """A run of a lesson: a scenario or a queue, and its load."""

    #: Requests in flight, or requests per second, as an expression
    in_flight: str = ""
    rate_per_s: str = ""
    scenario: str = ""
    #: Keys of the scenario, with drawn numbers as ``{name}``
    sets: Mapping[str, Any] | None = None
    #: Arguments of `queue`, likewise
    queue: Mapping[str, Any] | None = None
    requests: int = 1000

    @property
    def varied(self) -> list[str]:
        """Return the drawn numbers that change the program, in the order of their names."""
        given = json.dumps([self.sets, self.queue])
        return sorted(set(_NUMBER.findall(given)))

    def program(self, numbers: Mapping[str, Any]) -> Program:
        """Return the program for drawn numbers, which the page has without its load."""
        if self.queue is not None:
            return queue(_put(self.queue, numbers), self._rate_per_s(numbers))
        sets = {**_put(self.sets, numbers), "workload.requests": self.requests}
        sets["workload.queue_depth"] = value_of(self.in_flight, numbers)
        return program_of(sets, SEED, scenario=self.scenario)

    def _rate_per_s(self, numbers: Mapping[str, Any]) -> float:
        return float(value_of(self.rate_per_s, numbers))


@dataclass(frozen=True)
class Measured:
    """What expressions say about a run, over all of its requests."""

    rate: float  #: Completed requests per second
    mean_ms: float  #: Mean latency
    p99_ms: float  #: 99th percentile of the latency

    @classmethod
    def of(cls, program: Program) -> "Measured":
        """Simulate a program. ``charts.js`` computes the same."""
        stream = run_compiled(program).streams[0]
        latencies_ns = np.sort(stream.completed_ns - stream.issued_ns)
        count = len(latencies_ns)
        span_ns = stream.completed_ns.max() - stream.issued_ns.min()
        return cls(
            rate=float(count / span_ns * 1e9),
            mean_ms=float(latencies_ns.mean()) / 1e6,
            p99_ms=float(latencies_ns[math.ceil(0.99 * count) - 1]) / 1e6,
        )


class PageLesson:
    """A lesson of ``pages/``.

    Parameters
    ----------
    name
        Name of its file without the extension, which is that of the notebook too.
    """

    def __init__(self, name: str) -> None:
        given = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
        self.name = name
        self.title: str = given["title"]
        self.number: int = given["number"]
        self.introduction: str = given["introduction"]
        #: Options of each number that a seed draws
        self.numbers = {name: _options(one) for name, one in given["numbers"].items()}
        common = given.get("common", {})
        self.runs = {
            name: PlannedRun(**_merged(common, one))
            for name, one in given["runs"].items()
        }
        self.questions: list[dict[str, Any]] = given["questions"]

    def open(self, seed: int | str) -> Lesson:
        """Return the lesson for a seed, with answers that simulate when they are needed."""
        return Lesson(self.title, seed, self.numbers, self._questions, name=self.name)

    def _questions(self, drawn: Given) -> Questions:
        names = _Names(self.runs, vars(drawn))
        for one in self.questions:
            yield _question(one, names)

    def page(self) -> str:
        """Return the page."""
        arrays = Arrays()
        runs = {name: self._stored(run, arrays) for name, run in self.runs.items()}
        data = {
            "lesson": self.name,
            "title": self.title,
            "number": self.number,
            "introduction": self.introduction.strip().split("\n\n"),
            "numbers": {name: list(options) for name, options in self.numbers.items()},
            "runs": runs,
            "questions": self.questions,
            "stripesim": __version__,
            "state": str(seed_state(SEED)),
            "gaps": [],
            "arrays": arrays.stored,
        }
        if any(run.queue is not None for run in self.runs.values()):
            data["gaps"] = _gaps().tolist()
        return with_engine(FOLDER / "lesson.html", data)

    def _stored(self, run: PlannedRun, arrays: Arrays) -> dict[str, Any]:
        """Return a run with its program for each combination of the numbers that change it."""
        programs = {}
        first = {name: options[0] for name, options in self.numbers.items()}
        for values in product(*(self.numbers[name] for name in run.varied)):
            numbers = {**first, **dict(zip(run.varied, values, strict=True))}
            stored = stored_program(arrays, run.program(numbers))
            programs["|".join(map(str, values))] = stored._asdict()
        return {
            "in_flight": run.in_flight,
            "rate_per_s": run.rate_per_s,
            "varied": run.varied,
            "programs": programs,
        }


def page_lessons() -> list[PageLesson]:
    """Return the lessons in the order of their numbers."""
    found = [PageLesson(path.stem) for path in FOLDER.glob("*.toml")]
    return sorted(found, key=lambda lesson: lesson.number)


def write_pages(folder: Path) -> list[Path]:
    """Write the page of each lesson into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for lesson in page_lessons():
        path = folder / f"lesson-{lesson.name}.html"
        path.write_text(lesson.page(), encoding="utf-8")
        written.append(path)
    return written


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run has in common with the others, and what is its own."""
    if "queue" in own:
        return dict(own)
    return {**common, **own, "sets": {**common["sets"], **own.get("sets", {})}}


def _question(one: Mapping[str, Any], names: MutableMapping[str, Any]) -> Question:
    return Question(
        one["name"],
        filled(one["text"], names),
        lambda: value_of(one["answer"], names),
        unit=one.get("unit", ""),
        tolerance=one["tolerance"],
        hint=filled(one["hint"], names),
        why=lambda answer: filled(one["why"], ChainMap({"answer": answer}, names)),
    )


class _Names(dict[str, Any]):
    """Names in expressions: drawn numbers, and runs, which are simulated when they are first needed."""

    def __init__(
        self, runs: Mapping[str, PlannedRun], numbers: Mapping[str, Any]
    ) -> None:
        super().__init__(numbers)
        self._runs = runs

    def __missing__(self, name: str) -> Any:
        if name not in self._runs:
            # A name of a function.
            raise KeyError(name)
        self[name] = Measured.of(self._runs[name].program(self))
        return self[name]


def queue(of: Mapping[str, Any], rate_per_s: float) -> Program:
    """Return a queue as a program: Poisson arrivals, one queue for all servers.

    Parameters
    ----------
    of
        ``servers``, 1 if missing. ``branches``: each request is served in so many queues at once and waits
        for the slowest. ``fixed``: true if each service takes 10 µs, otherwise exponential with that mean.
    rate_per_s
        Requests per second.
    """
    branches = int(of.get("branches", 1))
    graph = GraphBuilder("queue")
    spread = 0 if of.get("fixed") else 1
    served = [
        graph.use(role, SERVICE_NS, after=[graph.issue], label="serve", spread=spread)
        for role in range(branches)
    ]
    names = tuple(f"queue {number}" for number in range(branches))
    servers = np.full(branches, int(of.get("servers", 1)))
    times_ns = np.rint(np.cumsum(_gaps() * (1e9 / rate_per_s))).astype(np.int64)
    return Program(
        resources=Resources(
            names, names, servers, np.full(branches, FIFO)
        ),
        book=_Book([graph.finish(reply=graph.join(served))], branches),
        streams=[_Arrivals(times_ns)],
        seed=SEED,
        factor_tables=service_times(exponential()),
    )  # fmt: skip


class _Book:
    """One template on one row of resources."""

    def __init__(self, templates: list[Any], branches: int) -> None:
        self.templates = templates
        self.bindings = np.arange(branches)[None, :]


class _Arrivals:
    """An open stream of requests on one template."""

    queue_depth = 0

    def __init__(self, times_ns: np.ndarray[Any, Any]) -> None:
        self._left_ns = times_ns

    def take(self, count: int) -> Any:
        """Return the next requests."""
        times_ns = self._left_ns[:count]
        self._left_ns = self._left_ns[count:]
        zeros = np.zeros(len(times_ns), dtype=np.int64)
        return RequestChunk(zeros, zeros, zeros, times_ns)


def _gaps() -> np.ndarray[Any, Any]:
    """Return the times between arrivals in units of their mean."""
    # Seven digits make the page smaller, and the same numbers are used here.
    gaps = np.random.default_rng(SEED).standard_exponential(QUEUE_REQUESTS)
    return np.round(gaps, 6)


def _options(given: Any) -> Sequence[Any]:
    """Return the options of a number: a list, or a range from ``low`` to ``high``."""
    if isinstance(given, list):
        return given
    step = given.get("step", 1)
    return range(given["low"], given["high"] + 1, step)


def _put(value: Any, numbers: Mapping[str, Any]) -> Any:
    """Put drawn numbers into a value."""
    if isinstance(value, dict):
        return {key: _put(one, numbers) for key, one in value.items()}
    if isinstance(value, list):
        return [_put(one, numbers) for one in value]
    if isinstance(value, str):
        whole = _NUMBER.fullmatch(value)
        return numbers[whole[1]] if whole else value.format_map(numbers)
    return value
