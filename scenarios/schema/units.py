"""Read and write sizes in bytes, and write numbers and durations for people.

Binary and decimal units differ by up to 10 % for terabytes, so each suffix has exactly one meaning:

=================  ==============
suffix             factor
=================  ==============
none, ``B``        1
``k``, ``K``       1024
``KiB``            1024
``M``, ``MiB``     1024²
``G``, ``GiB``     1024³
``T``, ``TiB``     1024⁴
``kB``, ``KB``     1000
``MB``             1000²
``GB``             1000³
``TB``             1000⁴
``P``, ``PiB``     1024⁵
``PB``             1000⁵
=================  ==============

A single letter is binary, as in fio, Ceph and dd. Longer suffixes follow IEC 80000-13, except that ``KB`` is
read as ``kB``.
"""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral
from typing import Final

from stripesim.models.problems import AnswerError, ProblemsError

#: Largest size accepted [bytes]: offsets are signed 64-bit integers in the engines.
SIZE_BYTES_MAX: Final = 2**63 - 1

#: Pattern of a size in text form. It is valid ECMA-262, too, because the JSON schema contains it.
SIZE_PATTERN: Final = r"^[0-9]+(\.[0-9]+)? ?([kKMGTP](iB|B)?|B)?$"

_POWERS: Final = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_FACTOR_BYTES: Final = {
    "": 1,
    "B": 1,
    **{letter: 1024**power for letter, power in _POWERS.items()},
    **{f"{letter}iB": 1024**power for letter, power in _POWERS.items()},
    **{f"{letter}B": 1000**power for letter, power in _POWERS.items()},
}
_SIZE = re.compile(
    r"(?P<number>[0-9]{1,30}(?:\.[0-9]{1,30})?) ?(?P<suffix>[A-Za-z]*)", re.ASCII
)
_WRITTEN_SUFFIXES: Final = (
    "PiB",
    "PB",
    "TiB",
    "TB",
    "GiB",
    "GB",
    "MiB",
    "MB",
    "KiB",
    "kB",
)


def parse_size_bytes(value: int | str) -> int:
    """Read a size given as a number of bytes or as text with a unit.

    Parameters
    ----------
    value
        Bytes as an integer, or text such as ``4k``, ``4KiB``, ``1.5 MiB``, ``100GB``.

    Returns
    -------
    int
        Size [bytes], 0 … 2⁶³ − 1.

    Raises
    ------
    ProblemsError
        If the value is neither, is negative or too large, or is not a whole number of bytes.

    Notes
    -----
    ``k`` and ``KiB`` are 1024 bytes, ``kB`` and ``KB`` are 1000; see the table at the top of this module.

    Examples
    --------
    >>> parse_size_bytes("4k"), parse_size_bytes("4KiB"), parse_size_bytes("1MB"), parse_size_bytes(512)
    (4096, 4096, 1000000, 512)
    """
    # NumPy's whole numbers too, which notebooks have.
    given: object = value
    if isinstance(given, bool) or not isinstance(given, Integral | str):
        raise ProblemsError(
            f'got {value!r}, wanted a whole number of bytes or text such as "4k", "4MiB", "1GB"'
        )
    if isinstance(given, Integral):
        size = Fraction(int(given))
    else:
        match = _SIZE.fullmatch(given.strip())
        if match is None or match["suffix"] not in _FACTOR_BYTES:
            raise ProblemsError(
                f'got {value!r}, wanted a number with one of the units B, k, KiB, kB, M, MiB, MB, G, … ("4k")'
            )
        size = Fraction(match["number"]) * _FACTOR_BYTES[match["suffix"]]
    if size.denominator != 1:
        raise ProblemsError(f"got {value!r}, wanted a whole number of bytes")
    if not 0 <= size <= SIZE_BYTES_MAX:
        raise ProblemsError(f"got {value!r}, wanted 0 to 2^63 - 1 bytes")
    return int(size)


def format_size(size_bytes: int) -> str:
    """Write a size exactly, in the unit that needs the fewest digits.

    Parameters
    ----------
    size_bytes
        Size [bytes], 0 … 2⁶³ − 1.

    Returns
    -------
    str
        Text that `parse_size_bytes` reads back to the same number.

    Raises
    ------
    ProblemsError
        If the size is negative or too large.

    Examples
    --------
    >>> format_size(4096), format_size(4 * 1024**2), format_size(100 * 10**9), format_size(4097)
    ('4KiB', '4MiB', '100GB', '4097B')
    """
    size_bytes = parse_size_bytes(size_bytes)
    written = [
        f"{size_bytes // _FACTOR_BYTES[suffix]}{suffix}"
        for suffix in _WRITTEN_SUFFIXES
        if size_bytes and size_bytes % _FACTOR_BYTES[suffix] == 0
    ]
    # Within a family, a larger unit never needs more digits.
    return min(
        written, key=lambda text: len(text.rstrip("iBkKMGTP")), default=f"{size_bytes}B"
    )


def size_bytes_at(place: str, value: int | str) -> int:
    """Read a size as `parse_size_bytes` does, and name the place of a wrong one.

    Raises
    ------
    AnswerError
        If the value is not a size.
    """
    try:
        return parse_size_bytes(value)
    except ProblemsError as error:
        raise AnswerError(f"{place}: {error}") from None


def number_text(
    value: float | None, factor: float = 1.0, *, digits: int = 3, padded: bool = False
) -> str:
    """Write a number with three significant digits and no exponent, or a dash for None and NaN.

    >>> number_text(0.012345), number_text(36.84e6, 1e-6), number_text(1234.4), number_text(None)
    ('0.0123', '36.8', '1,234', '–')
    >>> number_text(5), number_text(5, padded=True), number_text(0.1234, digits=2)
    ('5', '5.00', '0.12')
    """
    if value is None or not math.isfinite(value):
        return "–"
    scaled = value * factor
    if abs(scaled) >= 10**digits:
        return f"{scaled:,.0f}"
    rounded = float(f"{scaled:.{digits}g}")
    if rounded == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:,.{decimals}f}"
    return text if padded or "." not in text else text.rstrip("0").rstrip(".")


def counted_text(count: int, noun: str) -> str:
    """Write a number of things.

    >>> counted_text(1, "host"), counted_text(1200, "host")
    ('1 host', '1,200 hosts')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def first_text(texts: Sequence[str], most: int, *, separator: str = ", ") -> str:
    """List the first texts, and count the others.

    >>> first_text(["osd.3", "osd.5", "osd.7"], 2)
    'osd.3, osd.5 and 1 more'
    """
    listed = separator.join(texts[:most])
    left_out = len(texts) - most
    return f"{listed} and {left_out} more" if left_out > 0 else listed


#: Smallest half of an interval to write, as a part of its value: half of the last of three digits.
_WRITTEN_HALF: Final = 0.0005


def interval_half_text(
    low: float | None, value: float | None, high: float | None, factor: float = 1.0
) -> str:
    """Write ``±`` and half of an interval, or nothing if there is none or the digits of the value hide it.

    >>> interval_half_text(2.4221, 2.43, 2.4379), interval_half_text(3.5899986, 3.59, 3.5900014)
    ('± 0.0079', '')
    """
    if low is None or value is None or high is None:
        return ""
    half = (high - low) / 2
    if half < _WRITTEN_HALF * abs(value):
        return ""
    return f"± {number_text(half, factor, digits=2)}"


def rate_text(value: float | None) -> str:
    """Write a rate, in millions if it is that large.

    >>> rate_text(1_304_000), rate_text(41_000), rate_text(None)
    ('1.3 M', '41,000', '–')
    """
    if value is None or value < 1e6:
        return number_text(value)
    return f"{number_text(value, 1e-6)} M"


_BYTES: Final = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
_SECONDS: Final = ((365.25 * 86400, "years"), (86400, "days"), (3600, "h"), (60, "min"))


def bytes_text(value: float | None) -> str:
    """Write bytes in decimal units.

    >>> bytes_text(14_563_555_555_555), bytes_text(512), bytes_text(None)
    ('14.6 TB', '512 B', '–')
    """
    if value is None:
        return "–"
    scaled = (
        f"{number_text(value / size)} {unit}" for size, unit in _BYTES if value >= size
    )
    return next(scaled, f"{value:.0f} B")


def duration_text(seconds: float | None) -> str:
    """Write a duration in a suitable unit.

    >>> duration_text(440), duration_text(1.5), duration_text(7 * 86400), duration_text(0.00085)
    ('7.33 min', '1.5 s', '7 days', '850 µs')
    """
    if seconds is None:
        return "–"
    if 0 < seconds < 1e-3:
        return f"{number_text(seconds, 1e6)} µs"
    if 1e-3 <= seconds < 0.1:
        return f"{number_text(seconds, 1e3)} ms"
    size, unit = duration_unit(seconds)
    return f"{number_text(seconds / size)} {unit}"


def duration_unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a duration is written, a second or longer: its seconds and its name.

    >>> duration_unit(440), duration_unit(1.5)
    ((60, 'min'), (1.0, 's'))
    """
    units = (one for one in _SECONDS if seconds >= 2 * one[0])
    return next(units, (1.0, "s"))


#: Unit of a written duration → seconds.
_SPANS_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
_SPAN: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([a-zµ]+)")
#: Longest duration that a text may state [s].
_SPAN_MAX_S: Final = 1e9


def parse_span_s(text: str) -> float:
    """Convert a duration such as ``5ms`` to seconds.

    Parameters
    ----------
    text
        A number above 0 and a unit: ns, us, ms or s.

    Raises
    ------
    ValueError
        With the text and the form that was wanted.

    Examples
    --------
    >>> parse_span_s("5ms"), parse_span_s("0.5 s")
    (0.005, 0.5)
    """
    wanted = "a number above 0 and a unit, such as 5ms, 250us or 1.5s"
    match = _SPAN.fullmatch(text.strip())
    if match is None or match[2] not in _SPANS_S:
        raise ValueError(f"got {text[:40]!r}, wanted {wanted}")
    seconds = float(match[1]) * _SPANS_S[match[2]]
    if not 0 < seconds <= _SPAN_MAX_S:
        raise ValueError(f"got {text[:40]!r}, wanted {wanted}")
    return seconds


def size_text(size_bytes: int) -> str:
    """Write a size with a space before the unit, rounded if the exact size has more than five digits.

    >>> size_text(4096), size_text(12_000_134_430_720)
    ('4 KiB', '12 TB')
    """
    text = format_size(size_bytes)
    unit = text.lstrip("0123456789.")
    number = text.removesuffix(unit)
    if len(number) > 5:
        return bytes_text(size_bytes)
    return f"{number} {unit}"
