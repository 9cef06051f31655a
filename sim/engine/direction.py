"""A director as either engine asks it: its answers are checked, its time counts as planning."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Protocol

from stripesim.sim.engine.checks import check_actions, check_moment
from stripesim.sim.engine.program import Action, Director, Program, Report


class Planning(Protocol):
    """A run that keeps apart how long planning took."""

    planning_s: float


@contextmanager
def planning(run: Planning) -> Iterator[None]:
    """Count what is done inside as planning."""
    start_s = perf_counter()
    yield
    run.planning_s += perf_counter() - start_s


class Consulted:
    """A director whose answers are checked."""

    def __init__(self, director: Director, program: Program, run: Planning) -> None:
        self._director = director
        self._program = program
        self._run = run

    def next_ns(self, now_ns: int) -> int | None:
        """Ask when it wants to act next [ns]; None: never of its own accord."""
        with planning(self._run):
            next_ns = self._director.next_ns()
        check_moment(now_ns, next_ns)
        return next_ns

    def act(self, now_ns: int, reports: tuple[Report, ...]) -> tuple[Action, ...]:
        """Ask what happens now."""
        with planning(self._run):
            actions = tuple(self._director.act(now_ns, reports))
        check_actions(self._program, actions)
        return actions
