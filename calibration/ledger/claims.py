"""Read the claims of a source from ``claims.csv``."""

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from stripesim.models.problems import MeasuredError, Problem, problems_at

Numbers = float | tuple[float, ...] | None

COLUMNS = (
    "id",
    "paper",
    "locus",
    "metric",
    "scheme",
    "baseline",
    "pattern",
    "op",
    "block_size",
    "value",
    "unit",
    "kind",
    "role",
    "compare",
    "tolerance_percent",
    "note",
)
ROLES = ("given", "calibration", "held-out", "contradicted", "derived", "not-derivable")
COMPARISONS = ("value", "extremum", "at-most", "range", "ordering", "trend", "text")
COUNTED_ROLES = ("calibration", "held-out")

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*(?:-|–|\.\.)\s*({_NUMBER})\s*")


@dataclass(frozen=True)
class Claim:
    """One statement of a source, as given in ``claims.csv``.

    ``published`` is a number, an array (a range or a list), or None for words. ``published_text`` is the
    value as written. ``tolerance`` is a fraction, or None if the file has none. ``disputed`` is the reason
    why this project doubts the row, or None.
    """

    id: str
    paper: str
    locus: str
    metric: str
    scheme: str
    baseline: str
    pattern: str
    op: str
    block_size: str
    published: Numbers
    published_text: str
    unit: str
    kind: str
    role: str
    compare: str
    tolerance: float | None
    note: str
    statement: str
    disputed: str | None = None


def load_claims(
    source: Path | Traversable, *, disputed: Path | Traversable | None = None
) -> tuple[Claim, ...]:
    """Read the claims of a study.

    Parameters
    ----------
    source
        CSV file with the columns `COLUMNS` in any order, and optionally ``statement``.
    disputed
        CSV file with the columns ``id`` and ``reason``. It may be missing.

    Raises
    ------
    MeasuredError
        If a file is invalid, with one line per problem: ``file:line: column: got …, wanted …``.
    """
    faults: list[Problem | str] = []
    rows = _read_table(source, COLUMNS)
    doubts: dict[str, str] = {}
    if disputed is not None and disputed.is_file():
        known = {row["id"] for _, row in rows}
        for line, row in _read_table(disputed, ("id", "reason")):
            if row["id"] not in known or not row["reason"]:
                faults.append(
                    f"{disputed.name}:{line}: got {row}, wanted the id of a claim and a reason"
                )
            doubts[row["id"]] = row["reason"]
    claims: dict[str, Claim] = {}
    for line, row in rows:
        try:
            claim = _parse_claim(row, doubts.get(row["id"]))
        except MeasuredError as fault:
            faults += problems_at(f"{source.name}:{line}", fault)
            continue
        if claim.id in claims:
            faults.append(
                f"{source.name}:{line}: id: got {claim.id} a second time, wanted each id once"
            )
        claims[claim.id] = claim
    if faults:
        raise MeasuredError(*faults)
    return tuple(claims.values())


def _read_table(
    source: Path | Traversable, columns: Sequence[str]
) -> list[tuple[int, dict[str, str]]]:
    try:
        lines = source.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise MeasuredError(f"{source}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise MeasuredError(
            f"{source.name}: byte {error.start}: got bytes that are not UTF-8"
        ) from error
    reader = csv.DictReader(lines)
    absent = [name for name in columns if name not in (reader.fieldnames or ())]
    if absent:
        raise MeasuredError(
            Problem(
                place=f"{source.name}:1",
                got=f"no column {', '.join(absent)}",
                wanted=", ".join(columns),
            )
        )
    table = []
    for row in reader:
        if None in row or None in row.values():
            raise MeasuredError(
                Problem(
                    place=f"{source.name}:{reader.line_num}",
                    got="a row of another length than the header's",
                    wanted=f"{len(reader.fieldnames or ())} fields",
                )
            )
        table.append(
            (reader.line_num, {key: value.strip() for key, value in row.items()})
        )
    return table


def _parse_claim(row: Mapping[str, str], disputed: str | None) -> Claim:
    role = row["role"]
    compare = row["compare"]
    text = row["value"]
    if not row["id"]:
        raise MeasuredError(Problem(key="id", got="nothing", wanted="an id"))
    if role not in ROLES:
        raise MeasuredError(
            Problem(key="role", got=f"{role!r}", wanted=f"one of {', '.join(ROLES)}")
        )
    if compare not in COMPARISONS:
        raise MeasuredError(
            Problem(
                key="compare",
                got=f"{compare!r}",
                wanted=f"one of {', '.join(COMPARISONS)}",
            )
        )
    percent = _to_float(row["tolerance_percent"])
    if percent is None and (row["tolerance_percent"] or role in COUNTED_ROLES):
        raise MeasuredError(
            Problem(
                key="tolerance_percent",
                got=f"{row['tolerance_percent']!r}",
                wanted="a number of percent",
            )
        )
    if percent is not None and percent <= 0:
        raise MeasuredError(
            Problem(key="tolerance_percent", got=str(percent), wanted="more than 0")
        )
    copied = {name for name in COLUMNS if name not in ("value", "tolerance_percent")}
    return Claim(
        published=_parse_published(text, compare),
        published_text=text,
        tolerance=None if percent is None else percent / 100,
        statement=row.get("statement") or _default_statement(row),
        disputed=disputed,
        **{name: row[name] for name in copied},
    )


def _parse_published(text: str, compare: str) -> Numbers:
    if compare in ("ordering", "trend"):
        return None
    if compare == "text":
        parts = [_to_float(part) for part in text.split(",")]
        numbers = tuple(part for part in parts if part is not None)
        if len(numbers) == len(parts):
            return numbers
        return None
    if compare == "range":
        match = _RANGE.fullmatch(text)
        ends = (float(match[1]), float(match[2])) if match else None
        if ends is None or ends[0] > ends[1]:
            raise MeasuredError(
                Problem(
                    key="value",
                    got=f"{text!r}",
                    wanted="a range such as 70-75, the smaller end first",
                )
            )
        return ends
    number = _to_float(text.removeprefix("<") if compare == "at-most" else text)
    if number is None:
        raise MeasuredError(
            Problem(
                key="value",
                got=f"{text!r}",
                wanted=f"a number for the comparison {compare}",
            )
        )
    return number


def _to_float(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if math.isfinite(number):
        return number
    return None


def _default_statement(row: Mapping[str, str]) -> str:
    where = " ".join(
        row[key] for key in ("scheme", "pattern", "op", "block_size") if row[key]
    )
    against = f" against {row['baseline']}" if row["baseline"] else ""
    return f"{row['metric'].replace('_', ' ')}{': ' if where else ''}{where}{against}"
