"""Define every quantity of a result row: here a number becomes a text, a heading or a column."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    get_args,
    get_origin,
    get_type_hints,
)

import polars as pl

from stripesim.models.problems import AnswerError, first_problem
from stripesim.scenarios.schema.checks import S3_OPS
from stripesim.scenarios.schema.units import format_size, number_text
from stripesim.sim.observe.result_row import ResultRow

#: Columns that state what a request costs, in the order of tables and menus.
COSTS: Final = (
    "cpu_ns_per_op",
    "cpu_utilisation",
    "private_net_bytes_per_client_byte",
    "public_net_bytes_per_client_byte",
    "device_read_bytes_per_client_byte",
    "device_write_bytes_per_client_byte",
)


@dataclass(frozen=True)
class Quantity:
    """A quantity of an answer: its key in JSON and files, its meaning, and how it is shown."""

    key: str  # Name in the rows, with the unit.
    dtype: type[pl.DataType]
    meaning: str  # Text of the reference.
    words: str = ""  # Name in reports, empty if they do not show it.
    short: str = ""  # Name in narrow tables, empty if it is the same.
    unit: str = ""  # Unit in reports.
    factor: float = 1.0  # From the unit of the column to that of reports.
    better: Literal["less", "more"] = "less"
    ci: tuple[str, str] | None = None  # Columns with the ends of its 95 % interval.

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
IDENTITY: Final[Mapping[str, tuple[type[pl.DataType], str]]] = {
    "scheme": (pl.String, "redundancy scheme"),
    "op": (pl.String, "`read`, `write`, `mixed` (a read fraction), or `trace`"),
    "pattern": (pl.String, "`seq`, `rand`, or `trace`"),
    "block_size_bytes": (
        pl.Int64,
        "bytes of one client request; null where a trace decides",
    ),
}


def name_of(coordinates: Mapping[str, Any]) -> str:
    """Return the name of a row, such as ``rep:3 write rand 4KiB`` or ``rep:3 put 4MiB``.

    Coordinates that are None are left out.
    """
    parts = {key: one for key, one in coordinates.items() if one is not None}
    if parts.get("op") in S3_OPS:
        # Objects have no pattern.
        parts.pop("pattern", None)
    if "block_size_bytes" in parts:
        parts["block_size_bytes"] = format_size(parts["block_size_bytes"])
    return " ".join(dict.fromkeys(map(str, parts.values())))


_DTYPES: Final[Mapping[type, type[pl.DataType]]] = {
    str: pl.String,
    int: pl.Int64,
    float: pl.Float64,
    bool: pl.Boolean,
}


def _numbers() -> Iterator[tuple[str, tuple[type[pl.DataType], str]]]:
    """List the annotated fields of `ResultRow` with their types and meaning."""
    for name, hint in get_type_hints(ResultRow, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            continue
        kind, meaning = get_args(hint)
        # An optional type lists None last.
        yield name, (_DTYPES[(get_args(kind) or (kind,))[0]], meaning)


def _quantities() -> Iterator[Quantity]:
    """Combine the definition of each column with the way in which reports show it."""
    text = files(__package__).joinpath("quantities.toml").read_text(encoding="utf-8")
    shown = tomllib.loads(text)
    for key, (dtype, meaning) in {**IDENTITY, **dict(_numbers())}.items():
        entry = shown.pop(key, {})
        if "ci" in entry:
            entry["ci"] = tuple(entry["ci"])
        yield Quantity(key, dtype, meaning, **entry)
    assert not shown, f"quantities.toml: {', '.join(shown)}: not a column of ResultRow"


#: Every column of a result row by its key, in the order of the rows.
QUANTITIES: Final[Mapping[str, Quantity]] = MappingProxyType(
    {quantity.key: quantity for quantity in _quantities()}
)

#: Types of the columns of a result row.
RESULT_SCHEMA: Final[Mapping[str, type[pl.DataType]]] = MappingProxyType(
    {quantity.key: quantity.dtype for quantity in QUANTITIES.values()}
)


def rows_frame(rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Collect result rows in a data frame."""
    listed = list(rows)
    names = dict.fromkeys((*RESULT_SCHEMA, *(key for row in listed for key in row)))
    columns = {name: [row.get(name) for row in listed] for name in names}
    try:
        return pl.DataFrame(
            [
                pl.Series(name, of, RESULT_SCHEMA.get(name))
                for name, of in columns.items()
            ]
        )
    except (TypeError, pl.exceptions.PolarsError) as error:
        wanted = "wanted the types of RESULT_SCHEMA"
        raise AnswerError(
            f"result rows: got {first_problem(error)}, {wanted}"
        ) from None
