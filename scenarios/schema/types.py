"""The types of a scenario's values: sizes, schemes, numbers in their ranges, tables."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from stripesim.scenarios.schema.units import (
    SIZE_BYTES_MAX,
    SIZE_PATTERN,
    SizeError,
    parse_size_bytes,
)

_SIZE_WANTED: Final = 'a size of 1 byte or more: a whole number of bytes, or text such as "4k", "4MiB", "1GB"'

#: Seeds and identifiers fit a signed 64-bit integer, which is also what TOML promises to carry.
INT_MAX: Final = 2**63 - 1


def _size(value: object) -> object:
    try:
        size_bytes = parse_size_bytes(value)  # type: ignore[arg-type]
    except SizeError:
        size_bytes = 0
    if size_bytes < 1:
        raise PydanticCustomError("wanted", "{wanted}", {"wanted": _SIZE_WANTED})
    return size_bytes


def _scheme(value: object) -> object:
    # The schemes live in models; importing them here, at need, keeps reading this module cheap.
    from stripesim.models.coding import SchemeError, parse_scheme

    if isinstance(value, str):
        try:
            # The canonical name, so that one scheme cannot appear under two spellings.
            return parse_scheme(value).name
        except SchemeError as error:
            # The message ends with what was wanted; got and place are said by whoever reports the fault.
            wanted = str(error).rpartition("wanted ")[2]
            raise PydanticCustomError(
                "wanted", "{wanted}", {"wanted": wanted}
            ) from error
    return value


def _or_text(**number: Any) -> WithJsonSchema:
    """Describe a size: a number in its range, or text with a unit."""
    return WithJsonSchema(
        {"anyOf": [number, {"type": "string", "pattern": SIZE_PATTERN}]}
    )


SizeBytes = Annotated[
    int,
    BeforeValidator(_size),
    _or_text(type="integer", minimum=1, maximum=SIZE_BYTES_MAX),
]


def _bytes(value: object) -> object:
    """Read sizes as text; numbers stay as they are."""
    if isinstance(value, str):
        try:
            return float(parse_size_bytes(value))
        except SizeError:
            return value
    return (
        float(value)
        if isinstance(value, int) and not isinstance(value, bool)
        else value
    )


Bytes = Annotated[
    float,
    BeforeValidator(_bytes),
    Field(gt=0, le=1e24),
    _or_text(type="number", exclusiveMinimum=0, maximum=1e24),
]
Share = Annotated[float, Field(ge=0, le=1)]
SchemeText = Annotated[str, BeforeValidator(_scheme)]
PositiveInt = Annotated[int, Field(ge=1, le=INT_MAX)]
PositiveFloat = Annotated[float, Field(gt=0)]
#: How many there are of something that takes memory [count].
Count = Annotated[int, Field(ge=1, le=10_000_000)]
#: Clocks count nanoseconds in 63 bits, so that 10⁹ s, about 32 years, leave room.
TimeS = Annotated[float, Field(ge=0, le=1e9)]
#: A time that cannot be zero: at least one tick of the clock.
SpanS = Annotated[float, Field(ge=1e-9, le=1e9)]
#: Time between events that go on for a whole run.
IntervalS = Annotated[float, Field(ge=1e-3, le=1e9)]
#: Rate of a network [10⁹ bit/s]: from a megabit to a petabit.
GbitPerS = Annotated[float, Field(ge=1e-3, le=1e6)]
OsdId = Annotated[int, Field(ge=0, le=INT_MAX)]
FailureDomain = Literal["osd", "host", "rack"]
# The names in models/generations/generations.toml; a test keeps the two in step.
GenerationName = Literal[
    "kraken",
    "pacific",
    "quincy",
    "reef",
    "reef-partial-read",
    "squid",
    "tentacle",
    "umbrella",
]
Op = Literal["read", "write"]
Pattern = Literal["seq", "rand"]


class Table(BaseModel):
    """A table of a scenario: immutable, and no key may be misspelt."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )
