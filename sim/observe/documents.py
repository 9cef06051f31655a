"""Documents: objects as JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, ValuesView
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar


class Documented:
    """A dataclass with a document for JSON, by default all of its fields.

    A subclass states what its document holds in `in_document`, in order. An entry is the name of an
    attribute, or a pair of a key and a path such as ``iops.mean``. A path that meets None has the value None.
    A method is called without arguments. ``*`` stands for all fields.
    """

    in_document: ClassVar[Sequence[str | tuple[str, str]]] = ("*",)

    def to_json(self) -> dict[str, Any]:
        """Return the document as JSON values."""
        document: dict[str, Any] = {}
        for entry in self.in_document:
            if entry == "*":
                document |= _fields_of(self)
                continue
            key, path = (entry, entry) if isinstance(entry, str) else entry
            document[key] = json_value(_at(self, path))
        return document


def json_value(value: Any) -> Any:
    """Return a value with all objects in it as JSON values, dataclasses and named tuples by field."""
    if isinstance(value, Documented):
        return value.to_json()
    if is_dataclass(value):
        return _fields_of(value)
    if hasattr(value, "_asdict"):
        return json_value(value._asdict())
    if isinstance(value, Mapping):
        return {key: json_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple | ValuesView):
        return [json_value(one) for one in value]
    return value


def _fields_of(value: Any) -> dict[str, Any]:
    return {one.name: json_value(getattr(value, one.name)) for one in fields(value)}


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if value is None:
            return None
        value = getattr(value, name)
    return value() if callable(value) else value
