"""Provenance of numbers, which every model requires."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

KINDS = ("measured", "code", "datasheet", "published", "fitted", "given", "assumed")

# The unit is the suffix of the name. The longest match wins.
_UNITS = {
    "_ns_per_byte": "ns/B",
    "_ns_per_stripe": "ns/stripe",
    "_bits_per_s": "bit/s",
    "_bytes_per_s": "B/s",
    "_ns": "ns",
    "_bytes": "B",
    "_days": "d",
    "_fraction": "1",
    "_ratio": "1",
    "_factor": "1",
    "_count": "1",
    "_quantiles": "1",
}


@dataclass(frozen=True)
class Provenance:
    """Origin of a number."""

    #: One of `KINDS`: ``measured`` (state command and CPU), ``code`` (constant of the modelled system: state
    #: file and version), ``datasheet``, ``published`` (source, table), ``fitted`` (rows and objective),
    #: ``given`` (configuration of the modelled cluster) or ``assumed`` (no source found: state the reason for
    #: the value)
    kind: str
    source: str  #: The source, in enough detail to find it
    #: 95 % interval in the unit of the number, for ``fitted`` and ``measured`` only
    confidence_interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(
                f"provenance: got kind {self.kind!r}, wanted one of {', '.join(KINDS)}"
            )
        if not self.source.strip():
            raise ValueError(
                "provenance: got an empty source, wanted the origin of the number"
            )


def unit_of(name: str) -> str:
    """Return the unit encoded in the suffix of a parameter's name, or "1".

    Examples
    --------
    >>> unit_of("read_base_ns"), unit_of("write_ns_per_byte"), unit_of("channels")
    ('ns', 'ns/B', '1')
    """
    for suffix in sorted(_UNITS, key=len, reverse=True):
        if name.endswith(suffix):
            return _UNITS[suffix]
    return "1"


@dataclass(frozen=True, kw_only=True)
class MeasuredModel:
    """Base class of models, whose numbers each have a provenance.

    Raises
    ------
    ValueError
        If a number has no provenance, a provenance belongs to no number of the model, or a number is out of
        range.
    """

    #: Numbers that must be greater than 0. All others must be at least 0.
    positive: ClassVar[tuple[str, ...]] = ()
    provenance: Mapping[str, Provenance]  #: One entry per field that holds a number

    def __post_init__(self) -> None:
        numbers = set(self.number_names())
        stated = set(self.provenance)
        where = type(self).__name__
        if numbers - stated:
            raise ValueError(
                f"{where}: no provenance for {', '.join(sorted(numbers - stated))}"
            )
        if stated - numbers:
            raise ValueError(
                f"{where}: provenance for unknown {', '.join(sorted(stated - numbers))}"
            )
        for name in self.number_names():
            value = getattr(self, name)
            if name in self.positive and not value > 0:
                raise ValueError(
                    f"{where}: {name}: got {value}, wanted a number above 0"
                )
            if isinstance(value, int | float) and not value >= 0:
                raise ValueError(
                    f"{where}: {name}: got {value}, wanted a number of 0 or above"
                )

    def number_names(self) -> list[str]:
        """Return the names of the fields that hold numbers, in order of declaration."""
        return [
            field.name
            for field in dataclasses.fields(self)
            if field.name != "provenance"
            and not isinstance(getattr(self, field.name), (str, bool))
        ]

    def with_numbers(
        self,
        numbers: Mapping[str, Any],
        origin: Provenance | Mapping[str, Provenance],
    ) -> Self:
        """Return the model with other numbers.

        Parameters
        ----------
        numbers
            New value of each number, by its name.
        origin
            Provenance of all of them, or that of each by its name.

        Raises
        ------
        TypeError
            If the model has no such number.
        ValueError
            If a number is out of range.
        """
        if isinstance(origin, Provenance):
            origin = dict.fromkeys(numbers, origin)
        provenance = {**self.provenance, **origin}
        return dataclasses.replace(self, **numbers, provenance=provenance)

    def parameters(self, prefix: str = "") -> Iterator[dict[str, Any]]:
        """Yield one row per number: name, value, unit, provenance, source and 95 % interval."""
        for name in self.number_names():
            origin = self.provenance[name]
            value = getattr(self, name)
            yield {
                "name": f"{prefix}{name}",
                "value": list(value) if isinstance(value, tuple) else value,
                "unit": unit_of(name),
                "provenance": origin.kind,
                "source": origin.source,
                "confidence_interval": list(origin.confidence_interval)
                if origin.confidence_interval
                else None,
            }
