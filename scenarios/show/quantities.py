"""Define every quantity of a result row: here a number becomes a text, a heading or a column."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    get_args,
    get_origin,
    get_type_hints,
)

from stripesim.models.documents import without_numpy
from stripesim.models.problems import AnswerError, Problem, first_problem
from stripesim.scenarios.schema.types import S3_OPS
from stripesim.scenarios.schema.units import number_text
from stripesim.sim.observe.result_row import ResultRow

if TYPE_CHECKING:
    import polars as pl

Rows = Sequence[Mapping[str, Any]]

#: Columns that state what a request costs, in the order of tables and menus.
COSTS: Final = (
    "cpu_ns_per_op",
    "cpu_utilisation",
    "private_net_bytes_per_client_byte",
    "public_net_bytes_per_client_byte",
    "device_read_bytes_per_client_byte",
    "device_write_bytes_per_client_byte",
)


#: Types of values, and what Polars calls them.
_DTYPES: Final[Mapping[type, str]] = {
    str: "String",
    int: "Int64",
    float: "Float64",
    bool: "Boolean",
}


@dataclass(frozen=True)
class Quantity:
    """A quantity of an answer: its key in JSON and files, its meaning, and how it is shown."""

    key: str  # Name in the rows, with the unit.
    kind: type  # Type of its values: str, int, float or bool.
    meaning: str  # Text of the reference.
    words: str = ""  # Name in reports, empty if they do not show it.
    short: str = ""  # Name in narrow tables, empty if it is the same.
    unit: str = ""  # Unit in reports.
    factor: float = 1.0  # From the unit of the column to that of reports.
    better: Literal["less", "more"] = "less"
    ci: tuple[str, str] | None = None  # Columns with the ends of its 95 % interval.

    @property
    def dtype(self) -> str:
        """Name of the type of its column in a data frame."""
        return _DTYPES[self.kind]

    @property
    def heading(self) -> str:
        """Name and unit."""
        return self._with_unit(self.words)

    @property
    def short_heading(self) -> str:
        """Name and unit for a narrow table."""
        return self._with_unit(self.short or self.words)

    def _with_unit(self, name: str) -> str:
        if not self.unit:
            return name
        return f"{name} [{self.unit}]"

    def text(self, row: Mapping[str, Any]) -> str:
        """Write the value of a row in the unit of reports."""
        return number_text(row.get(self.key), self.factor)

    def half_text(self, row: Mapping[str, Any], ci: tuple[str, str] | None) -> str:
        """Write half the width of an interval given by two columns, or nothing without an interval."""
        if ci is None:
            return ""
        low, high = (row.get(end) for end in ci)
        if low is None or high is None:
            return ""
        return number_text((high - low) / 2, self.factor, digits=2, padded=True)

    def padded_text(
        self, row: Mapping[str, Any], ci: tuple[str, str] | None = None
    ) -> str:
        """Write the value with trailing zeros, for a column of numbers, and half of its interval."""
        half = self.half_text(row, ci)
        value = number_text(row.get(self.key), self.factor, padded=True)
        if not half:
            return value
        return f"{value} ±{half}"


#: Columns that identify a row, with their types and meaning.
IDENTITY: Final[Mapping[str, tuple[type, str]]] = {
    "scheme": (str, "redundancy scheme"),
    "op": (str, "`read`, `write`, `mixed` (a read fraction), or `trace`"),
    "pattern": (str, "`seq`, `rand`, or `trace`"),
    "block_size_bytes": (
        int,
        "bytes of one client request; null where a trace decides",
    ),
}


def check_columns(
    rows: pl.DataFrame, columns: Iterable[str], *, key: str, wanted: str
) -> None:
    """Refuse rows without columns that are needed; `key` and `wanted` are for the error."""
    missing = [name for name in columns if name not in rows.columns]
    if missing:
        got = f"no column {', '.join(missing)}"
        raise AnswerError(Problem(key=key, got=got, wanted=wanted))


def _numbers() -> Iterator[tuple[str, tuple[type, str]]]:
    """List the annotated fields of `ResultRow` with their types and meaning."""
    for name, hint in get_type_hints(ResultRow, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            continue
        kind, meaning = get_args(hint)
        # An optional type lists None last.
        yield name, ((get_args(kind) or (kind,))[0], meaning)


def _quantities() -> Iterator[Quantity]:
    """Combine the definition of each column with the way in which reports show it."""
    text = files(__package__).joinpath("quantities.toml").read_text(encoding="utf-8")
    shown = tomllib.loads(text)
    for key, (kind, meaning) in {**IDENTITY, **dict(_numbers())}.items():
        entry = shown.pop(key, {})
        if "ci" in entry:
            entry["ci"] = tuple(entry["ci"])
        yield Quantity(key, kind, meaning, **entry)
    assert not shown, f"quantities.toml: {', '.join(shown)}: not a column of ResultRow"


#: Every column of a result row by its key, in the order of the rows.
QUANTITIES: Final[Mapping[str, Quantity]] = MappingProxyType(
    {quantity.key: quantity for quantity in _quantities()}
)


def has_objects(ops: Iterable[str]) -> bool:
    """Return True if the operations are requests for objects in buckets, as far as their names say."""
    names = {*ops}
    return bool(names) and names <= {*S3_OPS}


def quantity_of(key: str, *, of_objects: bool) -> Quantity:
    """Return a quantity of requests for blocks or for objects: the rate of the latter is no IOPS.

    >>> quantity_of("iops", of_objects=True).heading
    'rate [requests/s]'
    """
    quantity = QUANTITIES[key]
    if of_objects and quantity.unit == "IOPS":
        return replace(quantity, unit="requests/s")
    return quantity


def complete_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return result rows with all columns, and with values of one type in each column.

    Further columns follow those of results, in the order of their first use. Missing values are None.

    Raises
    ------
    AnswerError
        If a value is not of the type of its quantity.
    """
    listed = list(rows)
    names = dict.fromkeys((*QUANTITIES, *(key for row in listed for key in row)))
    columns = [_column(name, [row.get(name) for row in listed]) for name in names]
    return [
        dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)
    ]


def _column(name: str, values: Iterable[Any]) -> list[Any]:
    """Convert values to the type of their quantity, or numbers to one type if they are no quantity's."""
    plain = list(map(without_numpy, values))
    kinds = {*map(type, plain)}
    if name in QUANTITIES:
        kind = QUANTITIES[name].kind
    else:
        kind = float if kinds >= {int, float} else object
    if kind is float and int in kinds:
        plain = [float(value) if type(value) is int else value for value in plain]
    for value in plain:
        if value is not None and not isinstance(value, kind):
            raise AnswerError(
                Problem(
                    place="result rows",
                    key=name,
                    got=repr(value),
                    wanted=f"a value of type {kind.__name__}",
                )
            )
    return plain


def rows_frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Collect result rows in a data frame, which has all columns of results.

    Raises
    ------
    AnswerError
        If a value is not of the type of its quantity, or a further column has values of several types.
    """
    listed = complete_rows(rows)
    return typed_frame(listed, kinds_of((*QUANTITIES, *(listed[0] if listed else ()))))


def kinds_of(columns: Iterable[str]) -> dict[str, type]:
    """Return the type of each column, `object` if no quantity has it."""
    return {
        name: QUANTITIES[name].kind if name in QUANTITIES else object
        for name in columns
    }


def typed_frame(
    rows: Sequence[Mapping[str, Any]], kinds: Mapping[str, type]
) -> pl.DataFrame:
    """Collect rows in a data frame with the columns `kinds`. Values decide the type of a column of objects.

    Raises
    ------
    AnswerError
        If a column has values of several types.
    """
    # Polars takes as long to load as ten cells of 200 requests take to run.
    import polars as pl

    types = {kind: getattr(pl, name) for kind, name in _DTYPES.items()}
    try:
        return pl.DataFrame(
            [
                pl.Series(name, [row.get(name) for row in rows], types.get(kind))
                for name, kind in kinds.items()
            ]
        )
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise AnswerError(
            Problem(
                place="result rows",
                got=first_problem(error),
                wanted="one type in each column",
            )
        ) from None
