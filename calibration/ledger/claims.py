"""Read the claims of a source from ``claims.csv``."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from stripesim.calibration.measured.tables import read_rows
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

    @property
    def is_blank(self) -> bool:
        """True if the source states no value for a number, so that a simulated one is a prediction."""
        return self.published is None and self.compare == "value"

    @property
    def published_words(self) -> str:
        """The value with its unit, a dash if the source states none."""
        if self.is_blank and not self.published_text:
            return "–"
        # A count has the unit 1, which nobody writes.
        unit = "" if self.unit == "1" else self.unit
        return f"{self.published_text} {unit}".strip()


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
    problems: list[Problem] = []
    rows = read_rows(source, COLUMNS, problems)
    doubts = {}
    if disputed is not None and disputed.is_file():
        ids = {row.words("id") for row in rows}
        doubts = _doubts(disputed, ids, problems)
    claims: dict[str, Claim] = {}
    for row in rows:
        try:
            claim = _parse_claim(row.cells, doubts.get(row.words("id")))
        except MeasuredError as error:
            problems += problems_at(row.where, error)
            continue
        if claim.id in claims:
            row.refuse("id", "each id once")
        claims[claim.id] = claim
    if problems:
        raise MeasuredError(*problems)
    return tuple(claims.values())


def _doubts(
    source: Path | Traversable, ids: Collection[str], problems: list[Problem]
) -> dict[str, str]:
    """Return the reason for each doubted claim, by its id."""
    rows = read_rows(source, ("id", "reason"), problems)
    for row in rows:
        if row.words("id") not in ids:
            row.refuse("id", "the id of a claim")
        row.text("reason")
    return {row.words("id"): row.words("reason") for row in rows}


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
