"""Find the costs of encoding and decoding: the scenario's kernel table, and codes that it lacks."""

from collections.abc import Iterable
from dataclasses import replace

from stripesim.calibration.kernels.store import (
    costs_measured_here,
    default_table,
    named_table,
)
from stripesim.models.coding import parse_scheme
from stripesim.models.kernel.cost import KernelCost, KernelTable, KernelTableError
from stripesim.models.kernel.interpolate import Interpolated, interpolated
from stripesim.scenarios.schema.keys import Scenario


def kernel_table(scenario: Scenario) -> KernelTable:
    """Return the costs of all codes of a scenario.

    For a code that the table lacks, the costs are those that ``stripesim kernel --save`` measured on this
    machine. Without them the costs of a Reed-Solomon code are interpolated.
    """
    table = _named_table(scenario)
    measured, guessed = _added_codes(scenario, table)
    sources = measured | {name: guess.table for name, guess in guessed.items()}
    if not sources:
        return table
    costs = [
        cost for name, source in sources.items() for cost in _costs_of(name, source)
    ]
    provenance = dict(table.provenance)
    if measured:
        provenance["measured_here"] = [
            {"scheme": name, **source.provenance} for name, source in measured.items()
        ]
    return replace(table, provenance=provenance, costs=(*table.costs, *costs))


def interpolated_codes(scenario: Scenario) -> dict[str, Interpolated]:
    """Return the codes whose costs are interpolated from those of timed codes."""
    _, guessed = _added_codes(scenario, _named_table(scenario))
    return guessed


def _added_codes(
    scenario: Scenario, table: KernelTable
) -> tuple[dict[str, KernelTable], dict[str, Interpolated]]:
    """Return the codes that a table lacks: those measured on this machine and those interpolated."""
    measured: dict[str, KernelTable] = {}
    guessed: dict[str, Interpolated] = {}
    for name in _lacking(scenario, table):
        own = costs_measured_here(name)
        if own is not None:
            measured[name] = own
            continue
        guess = interpolated(table, name)
        if guess is not None:
            guessed[name] = guess
    return measured, guessed


def _named_table(scenario: Scenario) -> KernelTable:
    """Return the table that a scenario names, or the default one."""
    name = scenario.cluster.kernel_table
    try:
        return named_table(name) if name else default_table()
    except KernelTableError as error:
        place = scenario.where("cluster", "kernel_table")
        raise KernelTableError(f"{place}: {error}") from None


def _lacking(scenario: Scenario, table: KernelTable) -> list[str]:
    """List the erasure codes of a scenario that are missing from a table."""
    known = table.schemes()
    unknown = [name for name in scenario.schemes if name not in known]
    return [name for name in unknown if parse_scheme(name).kind == "erasure"]


def _costs_of(scheme: str, table: KernelTable) -> Iterable[KernelCost]:
    return (cost for cost in table.costs if cost.scheme == scheme)
