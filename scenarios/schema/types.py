"""Define the types of a scenario's values: sizes, schemes, bounded numbers and tables."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from stripesim.models.coding import parse_scheme
from stripesim.models.coding.geometry import CHUNK_ALIGN_BYTES
from stripesim.models.problems import OwnCodeError, ProblemsError, SchemeError
from stripesim.scenarios.schema.units import (
    SIZE_BYTES_MAX,
    SIZE_PATTERN,
    parse_size_bytes,
)

_SIZE_WANTED: Final = 'a size of 1 byte or more: a whole number of bytes, or text such as "4k", "4MiB", "1GB"'
_BYTES_WANTED: Final = (
    'a number of bytes above 0, or text such as "500GB", "20TiB", "2PB"'
)

#: Maximum of seeds and identifiers: a signed 64-bit integer, which TOML guarantees to support.
INT_MAX: Final = 2**63 - 1


def _size(value: object) -> object:
    try:
        size_bytes = parse_size_bytes(value)  # type: ignore[arg-type]
    except ProblemsError:
        size_bytes = 0
    if size_bytes < 1:
        raise PydanticCustomError("wanted", "{wanted}", {"wanted": _SIZE_WANTED})
    return size_bytes


_READ_POLICY = re.compile(r"^(needed|local|fastest:k|speculative:[1-9][0-9]{0,2})$")


def _read_policy(value: object) -> object:
    if isinstance(value, str) and not _READ_POLICY.match(value):
        wanted = '"needed", "local", "fastest:k", or "speculative:1" with any number of extra reads'
        raise PydanticCustomError("wanted", "{wanted}", {"wanted": wanted})
    return value


def _scheme(value: object) -> object:
    if isinstance(value, str):
        try:
            # The canonical name, so that a scheme has only one spelling.
            return parse_scheme(value).name
        except OwnCodeError as error:
            wanted = f"a code that can be built ({error})"
            raise PydanticCustomError(
                "wanted", "{wanted}", {"wanted": wanted}
            ) from error
        except SchemeError as error:
            # The caller adds the location and the value.
            wanted = error.problems[0].wanted
            raise PydanticCustomError(
                "wanted", "{wanted}", {"wanted": wanted}
            ) from error
    return value


def _or_text(**number: Any) -> WithJsonSchema:
    """Return the JSON schema of a size: a bounded number, or text with a unit."""
    return WithJsonSchema(
        {"anyOf": [number, {"type": "string", "pattern": SIZE_PATTERN}]}
    )


SizeBytes = Annotated[
    int,
    BeforeValidator(_size),
    _or_text(type="integer", minimum=1, maximum=SIZE_BYTES_MAX),
]


def _stripe_unit(value: object) -> object:
    """Convert text with a unit to bytes, and reject a size that Ceph's codes would pad."""
    unit_bytes = _size(value)
    if isinstance(unit_bytes, int) and unit_bytes % CHUNK_ALIGN_BYTES:
        wanted = f"a multiple of {CHUNK_ALIGN_BYTES} B, to which Ceph aligns chunks"
        raise PydanticCustomError("wanted", "{wanted}", {"wanted": wanted})
    return unit_bytes


StripeUnitBytes = Annotated[
    int,
    BeforeValidator(_stripe_unit),
    _or_text(
        type="integer",
        minimum=CHUNK_ALIGN_BYTES,
        maximum=SIZE_BYTES_MAX,
        multipleOf=CHUNK_ALIGN_BYTES,
    ),
]


def _bytes(value: object) -> object:
    """Convert text with a unit to bytes. Numbers stay unchanged."""
    if isinstance(value, str):
        try:
            return float(parse_size_bytes(value))
        except ProblemsError as error:
            raise PydanticCustomError(
                "wanted", "{wanted}", {"wanted": _BYTES_WANTED}
            ) from error
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
#: Number of shards that reads ask for.
ReadPolicy = Annotated[
    str,
    BeforeValidator(_read_policy),
    WithJsonSchema({"type": "string", "pattern": _READ_POLICY.pattern}),
]
SchemeText = Annotated[str, BeforeValidator(_scheme)]
PositiveInt = Annotated[int, Field(ge=1, le=INT_MAX)]
PositiveFloat = Annotated[float, Field(gt=0)]
#: Number of things that take memory [count].
Count = Annotated[int, Field(ge=1, le=10_000_000)]
#: Longest time of a run [s]. Clocks count nanoseconds in 63 bits, of which 10⁹ s (32 years) use a ninth.
RUN_S_MAX: Final = 1e9
#: A time [s].
TimeS = Annotated[float, Field(ge=0, le=RUN_S_MAX)]
#: A nonzero time [s]: at least one tick of the clock.
SpanS = Annotated[float, Field(ge=1e-9, le=RUN_S_MAX)]
#: Interval of events that repeat throughout a run [s].
IntervalS = Annotated[float, Field(ge=1e-3, le=RUN_S_MAX)]
#: Network rate [10⁹ bit/s], from a megabit to a petabit.
GbitPerS = Annotated[float, Field(ge=1e-3, le=1e6)]
OsdId = Annotated[int, Field(ge=0, le=INT_MAX)]
#: Round-trip time between two sites [ms], at most once around the Earth and back ten times.
RttMs = Annotated[float, Field(ge=0, le=10_000)]
FailureDomain = Literal["osd", "host", "rack", "site"]
# The names in models/generations/generations.toml. A test compares the two.
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
BlockOp = Literal["read", "write"]
S3Op = Literal["put", "get", "head", "list", "delete"]
#: Operations on whole objects, which have no pattern.
S3_OPS: Final[tuple[S3Op, ...]] = get_args(S3Op)
Op = Literal[BlockOp, S3Op]
Pattern = Literal["seq", "rand"]


class ScenarioTable(BaseModel):
    """A table of a scenario: immutable, and it rejects unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
    )

    def replaced(self, **values: Any) -> Self:
        """Return a copy with some keys replaced by valid values, which are not checked again."""
        return self.model_copy(update=values)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Add the meanings of the keys to the JSON schema."""
        schema = handler(core_schema)
        keys = handler.resolve_ref_schema(schema)["properties"]
        for key, meaning in meanings(cls).items():
            keys[key]["description"] = meaning
        return schema


@cache
def meanings(table: type[BaseModel]) -> dict[str, str]:
    """Return the meaning of each key of a table: the docstring below the key.

    Pydantic also reads these docstrings, but at each start of the program.
    """
    inherited: dict[str, str] = {}
    for base in table.__bases__:
        if issubclass(base, ScenarioTable):  # Not Pydantic's own class.
            inherited |= meanings(base)
    module = ast.parse(inspect.getsource(sys.modules[table.__module__]))
    definition = next(
        node
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == table.__name__
    )
    return inherited | dict(_documented_keys(definition.body))


def _documented_keys(statements: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for key, text in pairwise(statements):
        if not isinstance(key, ast.AnnAssign) or not isinstance(key.target, ast.Name):
            continue
        if not isinstance(text, ast.Expr) or not isinstance(text.value, ast.Constant):
            continue
        if isinstance(text.value.value, str):
            yield key.target.id, inspect.cleandoc(text.value.value)
