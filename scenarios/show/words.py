"""Format quantities for reports."""

import datetime
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.units import number_text, size_text
from stripesim.scenarios.show.figures.captions import (
    in_sentence,
    kind_words,
    scheme_label,
)

#: Deviation from 1 up to which a factor counts as "about the same".
_ALIKE: Final = 0.03


def span(values: Sequence[float | None], factor: float = 1.0) -> str:
    """Write the range of some numbers, or one number if both ends read the same.

    >>> span([0.1, 0.32, None], 1000), span([5.0]), span([])
    ('100 … 320', '5', '–')
    """
    known = [value for value in values if value is not None and not math.isnan(value)]
    if not known:
        return "–"
    low, high = (number_text(end, factor) for end in (min(known), max(known)))
    return low if low == high else f"{low} … {high}"


def times(values: Sequence[float | None], first: Sequence[float | None]) -> str:
    """Write the range of ratios of paired numbers, or nothing without a valid pair.

    >>> times([2.0, 4.5], [1.0, 1.5]), times([0.2069], [1.0]), times([1.0], [0.0])
    ('2× … 3×', '0.21×', '')
    """
    return " … ".join(dict.fromkeys(map(_factor, _ratios(values, first))))


def times_in_prose(
    values: Sequence[float | None], first: Sequence[float | None]
) -> str:
    """Write the range of ratios of paired numbers for use in a sentence.

    >>> times_in_prose([2.0, 4.5], [1.0, 1.5]), times_in_prose([0.98, 1.02], [1.0, 1.0])
    ('2 to 3 times the', 'about the same')
    """
    ratios = _ratios(values, first)
    if not ratios:
        return ""
    if all(abs(ratio - 1) <= _ALIKE for ratio in ratios):
        return "about the same"
    return (
        " to ".join(dict.fromkeys(_factor(end).removesuffix("×") for end in ratios))
        + " times the"
    )


def _ratios(
    values: Sequence[float | None], first: Sequence[float | None]
) -> list[float]:
    """Return the smallest and the largest ratio."""
    ratios = sorted(
        a / b for a, b in zip(values, first, strict=True) if a is not None and b
    )
    return ratios[:1] + ratios[-1:]


def _factor(ratio: float) -> str:
    """Write a factor with two digits, which is enough for a prediction."""
    return f"{ratio:,.0f}×" if ratio >= 10 else f"{float(f'{ratio:.2g}'):g}×"


def moment_text(iso: str) -> str:
    """Write a time in UTC.

    >>> moment_text("2017-10-01T09:05:00+00:00")
    '1 October 2017, 09:05 UTC'
    """
    moment = datetime.datetime.fromisoformat(iso)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def origin_words(source: Mapping[str, Any]) -> str:
    """Write the provenance of a page in one line: version, time, seed, replications, release, parameters."""
    parts = [
        f"stripesim {source['stripesim']}",
        moment_text(source["time"]),
        f"seed {source['seed']}",
    ]
    if "replications" in source:
        parts.append(f"{source['replications']} replications")
    parts += [
        f"Ceph generation {source['generation']}",
        f"parameter set {source['parameters']}",
    ]
    return " · ".join(parts)


def request_words(op: str, pattern: str, sizes: Sequence[int] = ()) -> str:
    """Name a kind of request.

    >>> request_words("write", "rand", [4096]), request_words("trace", "trace")
    ('Random writes, 4 KiB', 'Requests of the trace')
    """
    request_name = kind_words(op, pattern)
    if op == "trace" or not sizes:
        return request_name
    return f"{request_name}, {' to '.join(dict.fromkeys(map(size_text, (min(sizes), max(sizes)))))}"


def row_words(row: Mapping[str, Any]) -> str:
    """Name the kind and size of request of a result row."""
    size = row["block_size_bytes"]
    return request_words(row["op"], row["pattern"], [] if size is None else [size])


def request_kind(cell: Cell) -> str:
    """Name the requests of a cell.

    >>> request_kind(Cell("rep:3", "write", "rand", 4096))
    'Random writes of 4 KiB'
    """
    if cell.op == "trace":
        return request_words(cell.op, cell.pattern)
    if cell.block_size_bytes is None:
        return "All workloads"
    return f"{kind_words(cell.op, cell.pattern)} of {size_text(cell.block_size_bytes)}"


def cell_words(cell: Cell) -> str:
    """Name the scheme and the requests of a cell.

    >>> cell_words(Cell("rs:4,2", "read", "rand", 4096))
    'RS(4,2), random reads of 4 KiB'
    """
    return f"{scheme_label(cell.scheme)}, {in_sentence(request_kind(cell))}"
