"""Documents: objects as JSON values, and values as the text of JSON and TOML.

Each use of a text has one function: a file (`json_text`), a digest (`canonical_json`), one line
(`json_line`), a list that may not fit in memory (`json_lines`), a TOML file (`toml_text`). Scripts of HTML
pages get their data from Jinja, which escapes it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np


class Documented:
    """A dataclass with a document for JSON, by default all of its fields.

    A subclass states what its document holds in `in_document`, in order. An entry is the name of an
    attribute, or a pair of a key and a path such as ``iops.mean``. A path that meets None has the value None.
    A method is called without arguments. ``*`` stands for all fields, ``**name`` for the entries of a
    mapping.
    """

    in_document: ClassVar[Sequence[str | tuple[str, str]]] = ("*",)

    def to_json(self) -> dict[str, Any]:
        """Return the document as JSON values."""
        document: dict[str, Any] = {}
        for entry in self.in_document:
            if entry == "*":
                document |= _fields_of(self)
                continue
            if isinstance(entry, str) and entry.startswith("**"):
                document |= json_value(_at(self, entry.removeprefix("**")))
                continue
            key, path = (entry, entry) if isinstance(entry, str) else entry
            document[key] = json_value(_at(self, path))
        return document


# Most values of a document are of these types.
_PLAIN_TYPES: Final = frozenset({str, int, float, bool, type(None)})


def json_value(value: Any) -> Any:
    """Return a value with all objects in it as JSON values, dataclasses and named tuples by field."""
    if type(value) in _PLAIN_TYPES:
        return value
    if isinstance(value, Documented):
        return value.to_json()
    if is_dataclass(value):
        return _fields_of(value)
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: json_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple | ValuesView):
        return [json_value(one) for one in value]
    return value


def without_numpy(value: Any) -> Any:
    """Return a number or an array of NumPy as a number or lists of Python, and any other value as it is."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _fields_of(value: Any) -> dict[str, Any]:
    return {one.name: json_value(getattr(value, one.name)) for one in fields(value)}


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if value is None:
            return None
        value = getattr(value, name)
    return value() if callable(value) else value


# --- text -------------------------------------------------------------------------------------------------


def json_text(
    document: object, *, indent: int | None = 1, is_ascii: bool = False
) -> str:
    """Write a document as JSON that ends in a newline. NumPy values and paths become JSON values.

    Parameters
    ----------
    document
        The document.
    indent
        Spaces of each level. None writes one line.
    is_ascii
        True to escape all other characters, for a terminal that may not show them.

    Raises
    ------
    TypeError
        If a value has no form in JSON.
    ValueError
        If a number is not finite.
    """
    text = json.dumps(
        document,
        indent=indent,
        ensure_ascii=is_ascii,
        allow_nan=False,
        default=_plain,
    )
    return text + "\n"


def json_lines(
    head: Mapping[str, Any], key: str, items: Iterable[object]
) -> Iterator[str]:
    """Yield the text of a document whose last entry is a list with one item a line.

    Lines keep a long list readable and its diffs small. A list that does not fit in memory can be written.
    """
    opened = json_text(head, is_ascii=True).strip().removesuffix("}").rstrip()
    separator = "," if head else ""
    yield f'{opened}{separator}\n "{key}": ['
    separator = "\n  "
    for item in items:
        yield separator + json_text(item, indent=None, is_ascii=True).strip()
        separator = ",\n  "
    yield "\n ]\n}\n"


def json_line(value: object) -> str:
    """Write a value as JSON in one line of ASCII, for this program to read again. Numbers may be infinite."""
    return json.dumps(value, default=_plain)


def canonical_json(
    value: object, *, is_sorted: bool = True, is_ascii: bool = False
) -> str:
    """Write a value as JSON for a digest: equal values have equal texts.

    Parameters
    ----------
    value
        The value.
    is_sorted
        False if the order of keys counts.
    is_ascii
        True to escape all other characters.
    """
    return json.dumps(
        value,
        sort_keys=is_sorted,
        separators=(",", ":"),
        ensure_ascii=is_ascii,
        default=_plain,
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file that other processes may read or write meanwhile: they see all of a text or nothing.

    An interruption leaves the file as it was. Errors are those of the system (`OSError`).
    """
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def document_in(output: str) -> Any:
    """Return the JSON document in the output of a program, which may print lines of messages before it.

    Raises
    ------
    ValueError
        If there is no JSON document.
    RecursionError
        If it is nested too deeply.
    """
    begins = re.search(r"^[ \t]*{", output, re.MULTILINE)
    if begins is None:
        raise ValueError("no JSON object" if output.strip() else "an empty file")
    return json.loads(output[begins.start() :])


def toml_value(value: Any) -> str:
    """Write a value as inline TOML, without None.

    >>> toml_value({"hosts": 8, "drive": "nvme-tlc", "ratios": [0.5, None]})
    '{"hosts" = 8, "drive" = "nvme-tlc", "ratios" = [0.5]}'
    """
    if isinstance(value, Mapping):
        parts = (
            f"{toml_value(str(key))} = {toml_value(one)}"
            for key, one in value.items()
            if one is not None
        )
        return f"{{{', '.join(parts)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(part) for part in value if part is not None)}]"
    # TOML and JSON write strings, numbers and truth values in the same way.
    return json.dumps(value, ensure_ascii=False, default=_plain)


def toml_text(values: Mapping[str, Any]) -> str:
    """Write a TOML document, plain keys first, without None and empty lists."""
    shown = {key: value for key, value in values.items() if value not in (None, [])}
    tables = {key: value for key, value in shown.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in shown.items() if key not in tables}
    lines = toml_lines(plain)
    for name, table in tables.items():
        lines += ["", f"[{name}]", *toml_lines(table)]
    return "\n".join(lines) + "\n"


def toml_lines(entries: Mapping[str, Any]) -> list[str]:
    """Return a line for each key of a TOML table, without None and empty lists."""
    return [
        f"{key} = {toml_value(value)}"
        for key, value in entries.items()
        if value not in (None, [])
    ]


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    plain = without_numpy(value)
    if plain is value:
        raise TypeError(f"a {type(value).__name__}")
    return plain
