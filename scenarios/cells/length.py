"""Check that the requests of closed loops bounded by time fit in memory.

A short run gives their rate.
"""

from collections.abc import Callable
from typing import Final

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.schema.budget import requests_of
from stripesim.scenarios.schema.geometry import NumberedScheme, loads_with_keys
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.memory import known_requests, memory_problem
from stripesim.scenarios.schema.scenario import Scenario

# Most requests of the short run, by the bound of the clients, and fewest.
_PILOT_MOST: Final = 20_000
_PILOT_LEAST: Final = 2000
_LONGER: Final = 10


def check_length(
    scenario: Scenario, cell: Cell, issued_until: Callable[[int], int]
) -> None:
    """Refuse a cell whose closed loops would issue more requests than fit in memory.

    Parameters
    ----------
    scenario
        The scenario.
    cell
        The cell.
    issued_until
        Runs the cell for a simulated time [ns] and returns the number of requests issued.

    Raises
    ------
    ValueError
        If the run does not fit; the message names the key to lower.
    """
    duration_s = scenario.duration_s
    most = {
        place: requests_of(scenario, load) for place, load in loads_with_keys(scenario)
    }
    known = known_requests(scenario)
    if duration_s is None or most == known:
        return
    schemes = [NumberedScheme(0, cell.scheme, parse_scheme(cell.scheme))]
    if memory_problem(scenario, schemes, most) is None:
        return
    share = _issued_share(duration_s, sum(most.values()), issued_until)
    expected = {place: max(known[place], share * most[place]) for place in most}
    problem = memory_problem(scenario, schemes, expected)
    if problem is not None:
        raise scenario.problem(
            ".".join(map(str, problem.path)), problem.got, problem.wanted
        )


def _issued_share(
    duration_s: float, most: float, issued_until: Callable[[int], int]
) -> float:
    """Return the requests that a short run issues, as a share of the most that its clients could issue."""
    length_s = min(duration_s, duration_s * _PILOT_MOST / most)
    issued = issued_until(round(length_s * 1e9))
    while issued < _PILOT_LEAST and length_s < duration_s:
        length_s = min(duration_s, length_s * _LONGER)
        issued = issued_until(round(length_s * 1e9))
    return issued / (most * length_s / duration_s)
