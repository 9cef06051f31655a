"""Find the costs of encoding and decoding: the scenario's kernel table, and codes that it lacks."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stripesim.calibration.kernels.store import (
    costs_measured_here,
    default_table,
    named_table,
)
from stripesim.models.coding import OwnCode, RedundancyScheme, parse_scheme
from stripesim.models.kernel.cost import KernelCost, KernelModel
from stripesim.models.kernel.interpolate import Interpolated, interpolated
from stripesim.models.problems import KernelError, SchemeError
from stripesim.scenarios.schema.scenario import Scenario


def kernel_table(scenario: Scenario) -> KernelModel:
    """Return the costs of all codes of a scenario.

    For a code that the table lacks, the costs are those that ``stripesim kernel --save`` measured on this
    machine. Without them the costs of a Reed-Solomon code are interpolated, and a user's own code has those
    of the code that it names.

    Raises
    ------
    KernelError
        If the costs of a user's own code are neither measured nor those of a known code.
    """
    table = _named_table(scenario)
    measured, guessed = _added_codes(scenario.schemes, table)
    sources = measured | {name: guess.table for name, guess in guessed.items()}
    costs = [
        cost for name, source in sources.items() for cost in _costs_of(name, source)
    ]
    borrowed: dict[str, str] = {}
    for name, other in codes_with_borrowed_costs(scenario):
        borrowed[name] = other
        of_other = _costs_of_other(parse_scheme(name), other, table)
        costs += [replace(cost, scheme=name) for cost in of_other]
    if not sources and not borrowed:
        return table
    provenance = dict(table.provenance)
    if borrowed:
        provenance["costs_as"] = borrowed
    if measured:
        provenance["measured_here"] = [
            {"scheme": name, **source.provenance} for name, source in measured.items()
        ]
    return replace(table, provenance=provenance, costs=(*table.costs, *costs))


def interpolated_codes(scenario: Scenario) -> dict[str, Interpolated]:
    """Return the codes whose costs are interpolated from those of timed codes.

    Among them are codes that only lend their costs to a user's own code.
    """
    table = _named_table(scenario)
    lenders = [other for _, other in codes_with_borrowed_costs(scenario)]
    _, guessed = _added_codes((*scenario.schemes, *lenders), table)
    return guessed


def codes_with_borrowed_costs(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield the users' own codes that were never timed, each with the code whose costs it has."""
    for name in _lacking(scenario.schemes, _named_table(scenario)):
        code = parse_scheme(name)
        if isinstance(code, OwnCode) and costs_measured_here(name) is None:
            yield name, _costs_as(code)


def _costs_as(code: OwnCode) -> str:
    if code.costs_as is not None:
        return code.costs_as
    raise KernelError(
        f"{code.place}: costs_as: got nothing, wanted a code such as rs:{code.k},{code.m} whose costs apply, "
        f"or costs that `stripesim kernel --code FILE --scheme {code.name} --save` has measured"
    )


def _costs_of_other(
    code: RedundancyScheme, other: str, table: KernelModel
) -> list[KernelCost]:
    """Return the measured or interpolated costs of the code that a user's own code names."""
    assert isinstance(code, OwnCode)
    where = f"{code.place}: costs_as: got {other!r}"
    try:
        parse_scheme(other)
    except SchemeError as error:
        raise KernelError(f"{where} ({error}), wanted a known code") from None
    measured, guessed = _added_codes([other], table)
    sources = [*measured.values(), *(guess.table for guess in guessed.values())]
    costs = list(_costs_of(other, next(iter(sources), table)))
    if not costs:
        have = ", ".join(table.schemes())
        raise KernelError(f"{where}, wanted one of {have}, or another rs:k,m")
    return costs


def _added_codes(
    names: Iterable[str], table: KernelModel
) -> tuple[dict[str, KernelModel], dict[str, Interpolated]]:
    """Return those codes that a table lacks: measured on this machine, or interpolated."""
    measured: dict[str, KernelModel] = {}
    guessed: dict[str, Interpolated] = {}
    for name in _lacking(names, table):
        own = costs_measured_here(name)
        if own is not None:
            measured[name] = own
            continue
        guess = interpolated(table, name)
        if guess is not None:
            guessed[name] = guess
    return measured, guessed


def _named_table(scenario: Scenario) -> KernelModel:
    """Return the table that a scenario names, or the default one."""
    name = scenario.cluster.kernel_table
    try:
        return named_table(name) if name else default_table()
    except KernelError as error:
        raise KernelError(
            scenario.located("cluster", "kernel_table", detail=str(error))
        ) from None


def _lacking(names: Iterable[str], table: KernelModel) -> list[str]:
    """List the erasure codes that are missing from a table."""
    known = table.schemes()
    unknown = [name for name in names if name not in known]
    return [name for name in unknown if parse_scheme(name).kind == "erasure"]


def _costs_of(scheme: str, table: KernelModel) -> Iterable[KernelCost]:
    return (cost for cost in table.costs if cost.scheme == scheme)
