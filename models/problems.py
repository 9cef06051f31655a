"""Every error that a user can cause, in one tree. Each message has a line for each problem.

A class below `ProblemsError` exists where a caller catches it apart from others.

A line reads ``place: key: got …, wanted …``, as far as the parts are known.
"""

import re
from collections.abc import Callable, Iterator, MutableSequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

_ADVICE = re.compile(r"\. Please inspect .*")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem, in parts until it is printed."""

    place: str = ""  #: File and line, or option
    key: str = ""
    got: str = ""
    wanted: str = ""
    detail: str = ""  #: Replaces got and wanted in the message, if not empty

    @property
    def said(self) -> str:
        """The problem without its place and key."""
        return self.detail or f"got {self.got}, wanted {self.wanted}"

    def __str__(self) -> str:
        # An argument of a Python function may have the name of the key.
        place = self.place if self.place != self.key else ""
        return ": ".join(part for part in (place, self.key, self.said) if part)


class ProblemsError(ValueError):
    """An error that keeps its problems in parts, at least one. The message has a line for each."""

    def __init__(self, *problems: Problem | str) -> None:
        super().__init__(*problems)
        self.problems = tuple(
            Problem(detail=problem) if isinstance(problem, str) else problem
            for problem in problems
        )

    @property
    def faults(self) -> list[str]:
        """The problems as text, one line each."""
        return [str(problem) for problem in self.problems]

    def rewrite(self, change: Callable[[str], str]) -> None:
        """Change the texts of all problems, such as the names of options."""
        self.problems = tuple(
            Problem(**{name: change(text) for name, text in vars(problem).items()})
            for problem in self.problems
        )
        if all(isinstance(part, str | Problem) for part in self.args):
            self.args = self.problems

    def __str__(self) -> str:
        return "\n".join(self.faults)


def problems_of(error: BaseException) -> tuple[Problem, ...]:
    """Return the problems of an error, at least one.

    One of another library is a problem without parts: its text as it is, or the name of its class.
    """
    if isinstance(error, ProblemsError):
        return error.problems
    return (Problem(detail=str(error) or type(error).__name__),)


@contextmanager
def noted(problems: MutableSequence[Problem]) -> Iterator[None]:
    """Note the problems of an error instead of raising it, so that a user sees those of later checks too."""
    try:
        yield
    except ValueError as error:
        problems += problems_of(error)


def problems_at(place: str, error: BaseException) -> tuple[Problem, ...]:
    """Return the problems of an error, with a place before their own."""
    return tuple(
        replace(problem, place=": ".join(filter(None, (place, problem.place))))
        for problem in problems_of(error)
    )


def first_problem(error: BaseException | None) -> str:
    """Print the first problem of an error in one line.

    Messages of other libraries are printed to the end of the first line, without the advice of
    liberasurecode to read a system log.
    """
    if error is None:
        return type(error).__name__
    first, *_ = str(problems_of(error)[0]).splitlines()
    return _ADVICE.sub("", first)


def file_reason(error: Exception) -> str:
    """Return the system's reason why a file could not be read or written, without number and path."""
    if isinstance(error, UnicodeDecodeError):
        return "bytes that are not text"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def one_line(error: BaseException) -> str:
    """Print all problems of an error in one line."""
    return " ".join(" ".join(map(str, problems_of(error))).split())


class SchemeError(ProblemsError):
    """An invalid scheme, geometry or request. The message states the value and the valid ones."""


class OwnCodeError(SchemeError):
    """A description that makes no code. The message has the file, the line and what is wrong."""


class KernelError(ProblemsError):
    """Kernels that cannot be built or called, or whose costs cannot be measured, read or found."""


class ParameterSetError(ProblemsError):
    """A missing or invalid parameter set. The message names file and key."""


class StepsError(ProblemsError):
    """A graph with more steps than an engine accepts. Its problem has the graph's name as place."""


class UnavailableError(ProblemsError):
    """More shards are missing than a code can rebuild or a pool tolerates."""


class TraceError(ProblemsError):
    """A trace that cannot be read, or lacks what a fit needs, with one line per problem up to a limit."""


class MeasuredError(ProblemsError):
    """Files about a real cluster that cannot be used: measured or published rows, or a report to import."""


class ScenarioError(ProblemsError):
    """An invalid scenario, with a line ``place: key: got …, wanted …`` for each problem.

    The place is ``file:line`` or, for overrides, ``--set``.
    """


class RefusedError(ProblemsError):
    """Numbers that fail the audit."""

    exit_status = 3  #: Of a command that ends with it


class AnswerError(ProblemsError):
    """A question that cannot be answered, or an answer that cannot be shown or stored."""


class NotComputedError(ProblemsError):
    """A published number for which a study has no value, with the reason if the study states none."""


class WorkError(ProblemsError):
    """Work on other processes that cannot start or end."""
