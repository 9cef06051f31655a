"""What encoding and decoding cost in a scenario: its kernel table, and the codes that the table lacks."""

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

    A code that the scenario's table lacks has the costs that ``stripesim kernel --save`` measured on this
    machine, else, of a Reed-Solomon code, interpolated ones.
    """
    table = _named_table(scenario)
    measured = measured_codes(scenario)
    interpolated_tables = {
        name: costs.table for name, costs in interpolated_codes(scenario).items()
    }
    added = [
        cost
        for name, source in (measured | interpolated_tables).items()
        for cost in _costs_of(name, source)
    ]
    if not added:
        return table
    provenance = dict(table.provenance)
    if measured:
        provenance["measured_here"] = [
            {"scheme": name, **source.provenance} for name, source in measured.items()
        ]
    return replace(table, provenance=provenance, costs=(*table.costs, *added))


def measured_codes(scenario: Scenario) -> dict[str, KernelTable]:
    """Return the costs measured on this machine of codes that the scenario's table lacks."""
    measured = {name: costs_measured_here(name) for name in _lacking(scenario)}
    return {name: table for name, table in measured.items() if table is not None}


def interpolated_codes(scenario: Scenario) -> dict[str, Interpolated]:
    """Return the codes that were never timed and whose costs follow from those of timed ones."""
    table = _named_table(scenario)
    measured = measured_codes(scenario)
    unmeasured = [name for name in _lacking(scenario) if name not in measured]
    guesses = {name: interpolated(table, name) for name in unmeasured}
    return {name: guess for name, guess in guesses.items() if guess is not None}


def _named_table(scenario: Scenario) -> KernelTable:
    """Return the table that a scenario names, or the one that ships."""
    name = scenario.cluster.kernel_table
    try:
        return named_table(name) if name else default_table()
    except KernelTableError as error:
        place = scenario.where("cluster", "kernel_table")
        raise KernelTableError(f"{place}: {error}") from None


def _lacking(scenario: Scenario) -> list[str]:
    """List the erasure codes of a scenario that its table has no costs of."""
    known = _named_table(scenario).schemes()
    unknown = [name for name in scenario.schemes if name not in known]
    return [name for name in unknown if parse_scheme(name).kind == "erasure"]


def _costs_of(scheme: str, table: KernelTable) -> Iterable[KernelCost]:
    return (cost for cost in table.costs if cost.scheme == scheme)
