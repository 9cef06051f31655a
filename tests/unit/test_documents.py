"""Documents of objects."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from stripesim.sim.observe.documents import Documented


class Span(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True)
class Plain(Documented):
    spans: tuple[Span, ...]
    names: dict[str, Span]


@dataclass(frozen=True)
class Chosen(Documented):
    span: Span | None
    plain: Plain
    hidden: int = 1

    in_document: ClassVar = ("doubled", ("low", "span.low"), ("of_plain", "plain"))

    def doubled(self) -> int:
        return 2 * self.hidden


def test_a_document_has_all_fields_by_name():
    span = {"low": 1.0, "high": 2.0}
    plain = Plain((Span(1.0, 2.0),), {"a": Span(1.0, 2.0)})
    assert plain.to_json() == {"spans": [span], "names": {"a": span}}


def test_a_document_has_the_fields_that_its_class_states():
    plain = Plain((), {})
    document = {"doubled": 2, "low": 1.0, "of_plain": {"spans": [], "names": {}}}
    assert Chosen(Span(1.0, 2.0), plain).to_json() == document
    assert list(document) == list(Chosen(Span(1.0, 2.0), plain).to_json())
    # What is not known has no parts.
    assert Chosen(None, plain).to_json()["low"] is None
