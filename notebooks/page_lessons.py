"""Lessons that run in a page, from a disk too: the compiled engine, and the questions as data.

A lesson is a file of ``pages/``: the numbers that a seed draws, the runs, recorded data (`page_data`), and
the questions, whose answers are `expressions`. Python plans each run that a seed can ask for
(`page_programs`) and stores it in the page, which simulates it. To grade what a page hands in, Python
simulates the same runs: same seed, same nanoseconds.
"""

import json
import math
import re
import tomllib
from collections import ChainMap
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from stripesim._version import __version__
from stripesim.notebooks.expressions import filled, value_of
from stripesim.notebooks.page_data import (
    TracePart,
    report_facts,
    trace_rows,
)
from stripesim.notebooks.page_programs import (
    SEED,
    Gaps,
    queue,
    rebuild,
    reported,
    shared_osd,
)
from stripesim.notebooks.teach import Given, Lesson, Question, Questions
from stripesim.scenarios.answers.engine_page.page import (
    Arrays,
    program_of,
    stored_program,
    with_engine,
)
from stripesim.sim.engine.compiled.engine import run as run_compiled
from stripesim.sim.engine.draws import seed_state
from stripesim.sim.engine.program import EngineRun, Program

FOLDER: Final = Path(__file__).resolve().parent / "pages"
#: Requests of a queue.
QUEUE_REQUESTS: Final = 20_000
#: How many others a request may meet in the system, at most, for `Measured.met`.
MET_MAX: Final = 6
#: Kind of resource that is a drive.
DRIVE: Final = "ssd"

_NUMBER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class PlannedRun:
    """A run of a lesson: a scenario, a rebuild, a queue or a shared OSD, and its load."""

    #: Requests in flight, or requests per second, as an expression
    in_flight: str = ""
    rate_per_s: str = ""
    #: A shipped scenario, or the pool of a report of ``data/``
    scenario: str = ""
    report: str = ""
    pool: str = ""
    #: Keys of the scenario, with drawn numbers as ``{name}``
    sets: Mapping[str, Any] | None = None
    #: Arguments of the functions of `page_programs` with these names, likewise
    rebuild: Mapping[str, Any] | None = None
    queue: Mapping[str, Any] | None = None
    shared_osd: Mapping[str, Any] | None = None
    #: Arrivals of the queue: at random, or as in the lesson's part of a trace
    arrivals: Literal["poisson", "trace"] = "poisson"
    requests: int = 1000

    @property
    def varied(self) -> list[str]:
        """Return the drawn numbers that change the program, in the order of their names."""
        varying = [self.sets, self.rebuild, self.queue, self.shared_osd, self.pool]
        return sorted(set(_NUMBER.findall(json.dumps(varying))))

    def program(self, numbers: Mapping[str, Any]) -> Program:
        """Return the program for drawn numbers, which the page has without its load."""
        if self.shared_osd is not None:
            in_flight = value_of(self.in_flight, numbers)
            return shared_osd(_put(self.shared_osd, numbers), in_flight)
        if self.queue is not None:
            rate_per_s = float(value_of(self.rate_per_s, numbers))
            return queue(_put(self.queue, numbers), self._gaps(numbers), rate_per_s)
        sets = {**_put(self.sets, numbers), "workload.requests": self.requests}
        sets["workload.queue_depth"] = value_of(self.in_flight, numbers)
        if self.rebuild is not None:
            return rebuild(self.scenario, sets, _put(self.rebuild, numbers))
        if self.report:
            return reported(self.report, _put(self.pool, numbers), sets)
        return program_of(sets, SEED, scenario=self.scenario)

    def measured(self, numbers: Mapping[str, Any]) -> "Measured":
        """Simulate the run for drawn numbers, once for all seeds that draw the same for it."""
        loads = [
            value_of(one, numbers) for one in (self.in_flight, self.rate_per_s) if one
        ]
        varied_numbers = [numbers[name] for name in self.varied]
        gaps = self._gaps(numbers).tobytes() if self.arrivals == "trace" else b""
        key = (json.dumps([vars(self), varied_numbers, loads]), gaps)
        if key not in _MEASURED:
            _MEASURED[key] = Measured.of(self.program(numbers))
        return _MEASURED[key]

    def _gaps(self, numbers: Mapping[str, Any]) -> Gaps:
        """Return the times between arrivals. The page has a trace's own, so its program has any."""
        if self.arrivals == "trace" and "part" in numbers:
            return np.array(numbers["part"].gaps)
        return _poisson_gaps()


@dataclass(frozen=True)
class Measured:
    """Numbers of a run, by name in expressions. ``lesson.js`` computes the same.

    With a second stream in the background, the run counts until the first of both has ended.
    """

    rate: float  #: Completed requests per second
    mean_ms: float  #: Mean latency
    p99_ms: float  #: 99th percentile of the latency
    #: Part of the requests that meet at least so many others in the system, from 0 to `MET_MAX`
    met: list[float]
    busiest_drive: float  #: Part of the run in which the busiest drive works
    mean_drive: float  #: Mean part of the run in which drives work that work at all
    other_rate: float = 0.0  #: Completed requests of the second stream per second
    other_end_s: float = 0.0  #: End of the second stream

    @classmethod
    def of(cls, program: Program) -> "Measured":
        """Simulate a program."""
        result = run_compiled(program)
        streams = result.streams[: len(program.streams)]
        first = streams[0]
        issued_ns = first.issued_ns
        completed_ns = first.completed_ns
        span_ns = completed_ns.max() - issued_ns.min()
        second_stream = {}
        if len(streams) > 1:
            second_ns = streams[1].completed_ns
            span_ns = min(completed_ns.max(), second_ns.max())
            second_stream = {
                "other_rate": float((second_ns <= span_ns).sum() / span_ns * 1e9),
                "other_end_s": float(second_ns.max()) / 1e9,
            }
            counts = completed_ns <= span_ns
            issued_ns = issued_ns[counts]
            completed_ns = completed_ns[counts]
        latencies_ns = np.sort(completed_ns - issued_ns)
        count = len(latencies_ns)
        return cls(
            rate=float(count / span_ns * 1e9),
            mean_ms=float(latencies_ns.mean()) / 1e6,
            p99_ms=float(latencies_ns[math.ceil(0.99 * count) - 1]) / 1e6,
            met=_met(issued_ns, completed_ns),
            **_busy_drives(program, result),
            **second_stream,
        )


#: Runs that lessons of this process have simulated: a class asks for the same ones again and again.
_MEASURED: Final[dict[tuple[str, bytes], Measured]] = {}


def _busy_drives(program: Program, result: EngineRun) -> dict[str, float]:
    """Return the part of the run in which the busiest drive works, and the mean of those that work."""
    resources = program.resources
    shares = np.zeros(1)
    if DRIVE in resources.kind_names:
        of_drives = resources.kind_indices == resources.kind_names.index(DRIVE)
        is_used = of_drives & (result.busy_ns > 0)
        lasting_ns = resources.capacities[is_used] * result.end_ns
        if is_used.any():
            shares = result.busy_ns[is_used] / lasting_ns
    return {
        "busiest_drive": float(shares.max()),
        "mean_drive": float(shares.mean()),
    }


def _met(issued_ns: npt.NDArray[Any], completed_ns: npt.NDArray[Any]) -> list[float]:
    """Return the part of the requests that find at least 0, 1, … others in the system."""
    issued_ns = np.sort(issued_ns)
    gone = np.searchsorted(np.sort(completed_ns), issued_ns, side="right")
    in_system = np.arange(len(issued_ns)) - gone
    return [float((in_system >= least).mean()) for least in range(MET_MAX + 1)]


class PageLesson:
    """A lesson of ``pages/``.

    Parameters
    ----------
    name
        Name of its file without the extension, which is that of the notebook too.
    """

    def __init__(self, name: str) -> None:
        document = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
        self.name = name
        self.title: str = document["title"]
        self.number: int = document["number"]
        self.introduction: str = document["introduction"]
        #: Options of each number that a seed draws
        self.numbers = {
            name: _options(one) for name, one in document["numbers"].items()
        }
        common = document.get("common", {})
        self.runs = {
            name: PlannedRun(**_merged(common, one))
            for name, one in document["runs"].items()
        }
        self.questions: list[dict[str, Any]] = document["questions"]
        #: Files of ``data/``, whose contents expressions call ``part`` and ``report``
        self.trace: str = document.get("trace", "")
        self.report: str = document.get("report", "")

    def open(self, seed: int | str) -> Lesson:
        """Return the lesson for a seed, with answers that simulate when they are needed."""
        return Lesson(self.title, seed, self.numbers, self._questions, name=self.name)

    def _questions(self, drawn: Given) -> Questions:
        names = self.names(drawn)
        for one in self.questions:
            yield _question(one, names)

    def names(self, drawn: Given) -> MutableMapping[str, Any]:
        """Return the values of names in expressions: drawn numbers, recorded data, and runs."""
        names = _Names(self.runs, vars(drawn))
        if self.trace:
            rows = trace_rows(self.trace)
            names["part"] = TracePart(rows[drawn.start : drawn.start + drawn.count])
        if self.report:
            names["report"] = report_facts(self.report)
        return names

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
            "trace": trace_rows(self.trace) if self.trace else [],
            "report": report_facts(self.report) if self.report else None,
            "met_max": MET_MAX,
            "arrays": arrays.stored,
        }
        if any(run.queue is not None for run in self.runs.values()):
            data["gaps"] = _poisson_gaps().tolist()
        return with_engine(FOLDER / "lesson.html", data)

    def _stored(self, run: PlannedRun, arrays: Arrays) -> dict[str, Any]:
        """Return a run with its program for each combination of the numbers that change it."""
        programs = {}
        first = {name: options[0] for name, options in self.numbers.items()}
        for values in product(*(self.numbers[name] for name in run.varied)):
            numbers = {**first, **dict(zip(run.varied, values, strict=True))}
            program = run.program(numbers)
            kinds = program.resources.kind_names
            programs["|".join(map(str, values))] = {
                **stored_program(arrays, program)._asdict(),
                "streams": len(program.streams),
                "drive": kinds.index(DRIVE) if DRIVE in kinds else None,
            }
        return {
            "in_flight": run.in_flight,
            "rate_per_s": run.rate_per_s,
            "arrivals": run.arrivals,
            "varied": run.varied,
            "programs": programs,
        }


def page_lessons() -> list[PageLesson]:
    """Return the lessons in the order of their numbers."""
    lessons = [PageLesson(path.stem) for path in FOLDER.glob("*.toml")]
    return sorted(lessons, key=lambda lesson: lesson.number)


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
    if "queue" in own or "shared_osd" in own:
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
    """Names in expressions, with runs, which are simulated when they are first needed."""

    def __init__(
        self, runs: Mapping[str, PlannedRun], numbers: Mapping[str, Any]
    ) -> None:
        super().__init__(numbers)
        self._runs = runs

    def __missing__(self, name: str) -> Any:
        if name not in self._runs:
            # A name of a function.
            raise KeyError(name)
        self[name] = self._runs[name].measured(self)
        return self[name]


@cache
def _poisson_gaps() -> Gaps:
    """Return times between arrivals at random, in units of their mean."""
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
        number = _NUMBER.fullmatch(value)
        return numbers[number[1]] if number else value.format_map(numbers)
    return value
