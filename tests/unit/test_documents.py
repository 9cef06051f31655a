"""Documents of objects, and values as text."""

import json
import math
import tomllib
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pytest

from stripesim.models.documents import (
    Documented,
    canonical_json,
    document_in,
    json_lines,
    toml_text,
)


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


@dataclass(frozen=True)
class Spread(Documented):
    name: str
    cells: dict[str, Span]

    in_document: ClassVar = ("name", "**cells")


def test_the_entries_of_a_mapping_are_entries_of_the_document():
    document = {"name": "x", "a": {"low": 1.0, "high": 2.0}}
    assert Spread("x", {"a": Span(1.0, 2.0)}).to_json() == document


def test_equal_values_have_equal_texts_for_a_digest():
    text = '{"a":[1,2.5],"b":"µ"}'
    assert canonical_json({"b": "µ", "a": np.array([1, 2.5])}) == text.replace(
        "1,", "1.0,"
    )
    assert canonical_json({"a": [1, 2.5], "b": "µ"}) == text
    assert canonical_json({"b": 1, "a": 2}, is_sorted=False) == '{"b":1,"a":2}'


@pytest.mark.parametrize("head", [{}, {"name": "x", "of": {"a": 1}}])
@pytest.mark.parametrize("items", [[], [1], [[1, [2]], {"a": None}]])
def test_a_list_with_one_item_a_line_is_one_document(head, items):
    text = "".join(json_lines(head, "items", items))
    assert json.loads(text) == {**head, "items": items}
    indented = [line for line in text.splitlines() if line.startswith("  ")]
    assert len(indented) == len(items) + len(head.get("of", {}))


def test_a_number_that_is_not_finite_has_no_place_in_a_list():
    with pytest.raises(ValueError, match="JSON"):
        "".join(json_lines({}, "items", [math.inf]))


def test_messages_before_a_document_are_skipped():
    assert document_in('fio: note\n{"jobs": []}') == {"jobs": []}
    with pytest.raises(ValueError, match="no JSON object"):
        document_in(
            '# TYPE ceph_osd_op_w counter\nceph_osd_op_w{ceph_daemon="osd.0"} 12\n'
        )


def test_toml_text_is_read_back_without_none_and_empty_lists():
    values = {
        "name": 'a"µ',
        "none": None,
        "empty": [],
        "table": {"x": [1, 2.5], "y": True},
    }
    read = {"name": 'a"µ', "table": {"x": [1, 2.5], "y": True}}
    assert tomllib.loads(toml_text(values)) == read
