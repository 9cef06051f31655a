"""Judge simulated values against published ones. Only code writes verdicts.

A study ships its claims as ``claims.csv`` and computes a simulated value for each id. `judge` compares the
two. The file fixes roles, comparisons and tolerances. A row whose role or value is doubtful is marked as
disputed, with a reason, in a separate file, and stays in the count.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from numbers import Real
from statistics import median
from typing import Any, ClassVar, Literal

import polars as pl
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from stripesim.calibration.ledger.claims import (
    COUNTED_ROLES,
    ROLES,
    Claim,
    Numbers,
    load_claims,
)
from stripesim.models.documents import Documented
from stripesim.models.problems import MeasuredError, Problem, problems_at

__all__ = [
    "Claim",
    "Entry",
    "Ledger",
    "MeasuredError",
    "Observation",
    "Simulated",
    "judge",
    "load_claims",
]

ClaimVerdict = Literal["right", "wrong", "not-derivable"]
ErrorKind = Literal["relative", "absolute"]

VERDICTS: tuple[ClaimVerdict, ...] = ("right", "wrong", "not-derivable")

SMALL_PUBLISHED = 0.05
"""Published values below this magnitude are compared by difference, because a ratio is meaningless."""
SMALL_TOLERANCE = 0.05
"""Tolerated absolute difference for such a value, in the claim's own unit."""
ROUNDING = 1e-9
"""Slack on tolerances, so that a value exactly at the tolerance does not fail by rounding."""


@dataclass(frozen=True)
class Observation:
    """A finding in the words of the published claim (such as ``"decreasing"``), with the series behind it."""

    says: str
    numbers: tuple[float, ...] = ()


Simulated = float | Sequence[float] | str | bool | Observation | None


@dataclass(frozen=True)
class Entry(Documented):
    """A judged claim. ``error_kind`` states whether ``error`` is relative or absolute."""

    claim: Claim
    simulated: Numbers
    simulated_text: str | None
    error: float | None
    error_kind: ErrorKind | None
    tolerance: float | None
    verdict: ClaimVerdict
    reason: str | None

    in_document: ClassVar = (
        *(
            # The tolerance is the one that was applied.
            (one.name, "tolerance" if one.name == "tolerance" else f"claim.{one.name}")
            for one in fields(Claim)
        ),
        "simulated",
        "simulated_text",
        "error",
        "error_kind",
        "verdict",
        "reason",
    )


def judge(
    claims: Iterable[Claim],
    simulated: Mapping[str, Simulated],
    *,
    reasons: Mapping[str, str] | None = None,
    parameters: Iterable[Mapping[str, Any]] = (),
    groups: Mapping[str, str] | None = None,
) -> Ledger:
    """Compare simulated values with published ones and judge them.

    Parameters
    ----------
    claims
        Claims of a study.
    simulated
        Simulated value by claim id, in the unit of the claim: a number, an array, words (`Observation`, str
        or bool, for orderings and trends) or None. Missing ids count as None.
    reasons
        Reason for each value that is None, by claim id.
    parameters
        Rows with at least ``name``, ``value``, ``unit`` and ``provenance``. A parameter counts as fitted if
        its provenance, or the ``kind`` of its provenance, starts with ``fitted``.
    groups
        Group for averaging errors, by metric.

    Returns
    -------
    Ledger
        All claims with their verdicts.

    Raises
    ------
    MeasuredError
        If a value or parameter is invalid, with one line per problem.

    Notes
    -----
    ``error = simulated / published − 1``. If ``|published| < 0.05``, the error is the difference and the
    tolerance is 0.05. A claim is right if

    - `value`, `extremum`: ``|error| ≤ tolerance``.
    - `at-most`: ``error ≤ tolerance``. The reason of a right claim says if its value exceeds the bound.
    - `range`: a number is inside the range widened by the tolerance (with error 0 inside the range itself).
    For an
      array, the smallest element is compared with the lower end and the largest with the upper end, both
      two-sided, and the larger error counts.
    - `ordering`, `trend`, `text`: the simulated words equal the published ones, ignoring case. True and False
    are
      verdicts in themselves.

    A claim that is compared by `value` and has no published value is not judged: its simulated value is a
    prediction.
    """
    claims = tuple(claims)
    known = {claim.id for claim in claims}
    faults: list[Problem | str] = [
        f"{key}: got a simulated value, wanted none: no such claim"
        for key in simulated
        if key not in known
    ]
    entries = []
    for claim in claims:
        reason = (reasons or {}).get(claim.id)
        try:
            entries.append(_judge_one(claim, simulated.get(claim.id), reason))
        except MeasuredError as fault:
            faults += problems_at(claim.id, fault)
    rows = tuple(dict(parameter) for parameter in parameters)
    for row in rows:
        absent = [
            key for key in ("name", "value", "unit", "provenance") if key not in row
        ]
        if absent:
            faults.append(
                f"parameter {row.get('name', '?')}: got no {', '.join(absent)}"
            )
    if faults:
        raise MeasuredError(*faults)
    return Ledger(entries=tuple(entries), parameters=rows, groups=dict(groups or {}))


def _judge_one(claim: Claim, simulated: Simulated, reason: str | None) -> Entry:
    if simulated is None:
        return _without_value(claim, reason)
    numbers, text, holds = _split(simulated)
    if numbers is None and text is None:
        return _without_value(claim, reason)
    if claim.is_blank and numbers is not None:
        return _prediction(claim, numbers, text)
    if claim.compare in ("ordering", "trend", "text"):
        right = _same_words(claim, numbers, text) if holds is None else holds
        verdict, why = _verdict(claim, right, None, None, claim.tolerance)
        return Entry(claim, numbers, text, None, None, claim.tolerance, verdict, why)
    if claim.published is None or numbers is None or holds is not None:
        raise MeasuredError(
            f"got {simulated!r}, wanted a number for the comparison {claim.compare}"
        )
    error, kind = _error(claim, numbers)
    tolerance = claim.tolerance
    if kind == "absolute" and tolerance is not None:
        tolerance = SMALL_TOLERANCE
    size = error if claim.compare == "at-most" else abs(error)
    right = tolerance is not None and size <= tolerance + ROUNDING
    verdict, why = _verdict(claim, right, error, kind, tolerance)
    return Entry(claim, numbers, text, error, kind, tolerance, verdict, why)


def _without_value(claim: Claim, reason: str | None) -> Entry:
    tolerance = claim.tolerance
    reason = reason or "the study computes no value for this row"
    return Entry(claim, None, None, None, None, tolerance, "not-derivable", reason)


def _prediction(claim: Claim, numbers: Numbers, text: str | None) -> Entry:
    """Return the entry of a simulated value that the source has no number for."""
    got = repr(claim.published_text) if claim.published_text else "nothing"
    reason = f"value: got {got}, wanted a number: a prediction, without verdict"
    return Entry(claim, numbers, text, None, None, None, "not-derivable", reason)


def _same_words(claim: Claim, numbers: object, text: str | None) -> bool:
    if text is None:
        return numbers == claim.published
    return text.casefold() == claim.published_text.casefold()


def _verdict(
    claim: Claim,
    right: bool,
    error: float | None,
    kind: ErrorKind | None,
    tolerance: float | None,
) -> tuple[ClaimVerdict, str | None]:
    """Return the verdict on a simulated value, and the reason for it where there is one."""
    if error is not None and tolerance is None:
        why = "no tolerance is given for this row: the error is shown, not judged"
        return "not-derivable", why
    if claim.role == "not-derivable":
        return "not-derivable", "the source does not say enough to derive this row"
    if not right:
        return "wrong", None
    return "right", _exceeded_bound(claim, error, kind, tolerance)


def _exceeded_bound(
    claim: Claim,
    error: float | None,
    kind: ErrorKind | None,
    tolerance: float | None,
) -> str | None:
    """Return a note if a claim on an upper bound is right only within its tolerance, else None."""
    if claim.compare != "at-most" or error is None or error <= ROUNDING:
        return None
    assert tolerance is not None, "a claim without a tolerance is not right"
    slack = f"{100 * tolerance:.0f} %" if kind == "relative" else f"{tolerance:g}"
    return (
        f"above the published bound of {claim.published_text}: right only within the tolerance of {slack} "
        "that was fixed beforehand"
    )


def _split(
    simulated: float | Sequence[float] | str | bool | Observation,
) -> tuple[Numbers, str | None, bool | None]:
    """Return the numbers, words and truth value of a study's result."""
    if isinstance(simulated, bool):
        return None, "holds" if simulated else "does not hold", simulated
    if isinstance(simulated, str):
        return None, simulated, None
    if isinstance(simulated, Observation):
        return (
            tuple(_finite(x) for x in simulated.numbers) or None,
            simulated.says,
            None,
        )
    if isinstance(simulated, Real):
        return _finite(simulated), None, None
    if not isinstance(simulated, Iterable):
        raise MeasuredError(
            f"got {simulated!r}, wanted a number, an array, words or None"
        )
    numbers = tuple(_finite(x) for x in simulated)
    if not numbers:
        raise MeasuredError("got an empty array, wanted numbers or None")
    return numbers, None, None


def _finite(number: Any) -> float:
    if (
        isinstance(number, bool)
        or not isinstance(number, Real)
        or not math.isfinite(float(number))
    ):
        raise MeasuredError(f"got {number!r}, wanted a finite number")
    return float(number)


def _difference(simulated: float, published: float) -> tuple[float, ErrorKind]:
    if abs(published) < SMALL_PUBLISHED:
        return simulated - published, "absolute"
    return simulated / published - 1, "relative"


def _error(claim: Claim, numbers: float | tuple[float, ...]) -> tuple[float, ErrorKind]:
    published = claim.published
    if isinstance(published, tuple):
        low, high = published
        if isinstance(numbers, tuple):
            ends = (_difference(min(numbers), low), _difference(max(numbers), high))
            return max(ends, key=lambda end: abs(end[0]))
        if low <= numbers <= high:
            return 0.0, "relative"
        return _difference(numbers, low if numbers < low else high)
    if published is None or isinstance(numbers, tuple):
        raise MeasuredError(
            f"got {numbers}, wanted one number for the comparison {claim.compare}"
        )
    return _difference(numbers, published)


@dataclass(frozen=True)
class Ledger(Documented):
    """Judged claims with their summary. Use `judge` to build one."""

    entries: tuple[Entry, ...]
    parameters: tuple[dict[str, Any], ...]
    groups: Mapping[str, str]

    in_document: ClassVar = (("claims", "entries"), "summary", "parameters")

    def __repr__(self) -> str:
        return f"<Ledger: {len(self.entries)} claims>"

    @property
    def fitted_parameters(self) -> tuple[str, ...]:
        """Names of the parameters with provenance fitted."""
        return tuple(
            str(row["name"]) for row in self.parameters if _is_fitted(row["provenance"])
        )

    def summary(self) -> dict[str, Any]:
        """Summarise verdicts, errors and rank correlation.

        Returns
        -------
        dict
            The decisive share is ``right / held_out``, over *all* held-out rows. Mean absolute percentage
            errors, worst row and median cover held-out rows compared by `value`, `extremum` or `range` with a
            relative error, because a percentage is meaningless below an upper bound or near zero.
            ``spearman`` ranks simulated against published values over held-out rows with one number each, and
            is None for fewer than three rows or if either side is constant.
        """
        held_out = [entry for entry in self.entries if entry.claim.role == "held-out"]
        counts: dict[str, dict[str, int]] = {
            role: dict.fromkeys(VERDICTS, 0) for role in ROLES
        }
        for entry in self.entries:
            counts[entry.claim.role][entry.verdict] += 1
        verdicts = Counter(
            e.verdict for e in held_out if e.claim.compare in ("ordering", "trend")
        )
        right = counts["held-out"]["right"]
        rank, ranked = _spearman(held_out)
        return {
            "claims": len(self.entries),
            "held_out": len(held_out),
            "right": right,
            "wrong": counts["held-out"]["wrong"],
            "not_derivable": counts["held-out"]["not-derivable"],
            "share_right": right / len(held_out) if held_out else None,
            "fitted_parameters": len(self.fitted_parameters),
            "counts": counts,
            "orderings_and_trends": {
                verdict: verdicts[verdict] for verdict in VERDICTS
            },
            **self._errors(held_out),
            "spearman": rank,
            "spearman_rows": ranked,
            "disputed": [
                entry.claim.id for entry in self.entries if entry.claim.disputed
            ],
        }

    def _errors(self, held_out: list[Entry]) -> dict[str, Any]:
        """Return mean, median and worst of the relative errors of values, extrema and ranges."""
        measured = [
            (abs(entry.error), entry)
            for entry in held_out
            if entry.error is not None
            and entry.error_kind == "relative"
            and entry.claim.compare in ("value", "extremum", "range")
        ]
        by_group: dict[str, list[float]] = defaultdict(list)
        for size, entry in measured:
            metric = entry.claim.metric
            by_group[self.groups.get(metric, metric)].append(size)
        summary: dict[str, Any] = {
            "mape_percent": None,
            "median_error_percent": None,
            "mape_percent_by_metric": {
                group: {
                    "mape_percent": 100 * sum(sizes) / len(sizes),
                    "rows": len(sizes),
                }
                for group, sizes in sorted(by_group.items())
            },
            "worst": None,
        }
        if not measured:
            return summary
        sizes = sorted(size for size, _ in measured)
        _, worst = max(measured, key=lambda pair: pair[0])
        return summary | {
            "mape_percent": 100 * sum(sizes) / len(sizes),
            "median_error_percent": 100 * median(sizes),
            "worst": {"id": worst.claim.id, "error": worst.error},
        }

    def to_frame(self) -> pl.DataFrame:
        """Return one row per claim. Numbers become lists of one element, arrays longer lists."""
        rows = [entry.to_json() for entry in self.entries]
        for row, key in product(rows, ("published", "simulated")):
            if row[key] is not None and not isinstance(row[key], list):
                row[key] = [row[key]]
        number_lists = {
            "published": pl.List(pl.Float64),
            "simulated": pl.List(pl.Float64),
        }
        return pl.DataFrame(
            rows,
            schema_overrides={
                **number_lists,
                "error": pl.Float64,
                "tolerance": pl.Float64,
            },
            infer_schema_length=None,
        )

    def computed(self) -> Ledger:
        """Return the ledger of the claims that have a simulated value."""
        entries = tuple(e for e in self.entries if e.simulated is not None)
        return replace(self, entries=entries)

    def laid_out(self, *, everything: bool = False) -> Group:
        """Lay out counted rows and the summary for a terminal; `everything` adds rows that do not count."""
        parts: list[RenderableType] = []
        predicted = [entry for entry in self.entries if entry.claim.is_blank]
        if predicted and not everything:
            parts.append(_table("Predicted: no published value", predicted))
        for title, roles in SECTIONS:
            entries = [entry for entry in self.entries if entry.claim.role in roles]
            if entries and (everything or roles[0] in COUNTED_ROLES):
                parts.append(_table(title, entries))
        return Group(*parts, *_summary_lines(self.summary()))


def _is_fitted(provenance: object) -> bool:
    if isinstance(provenance, Mapping):
        kind = provenance.get("kind", "")
    else:
        kind = provenance
    return isinstance(kind, str) and re.match(r"fitted\b", kind) is not None


def _spearman(entries: Iterable[Entry]) -> tuple[float | None, int]:
    pairs = [(e.claim.published, e.simulated) for e in entries]
    pairs = [
        pair for pair in pairs if all(isinstance(number, float) for number in pair)
    ]
    if len(pairs) < 3 or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
        return None, len(pairs)
    from scipy.stats import spearmanr

    return float(spearmanr(*zip(*pairs, strict=True)).statistic), len(pairs)


SECTIONS = (
    ("Held out: what counts", ("held-out",)),
    ("Calibration: seen by the fits", ("calibration",)),
    ("Shown, not counted", ("contradicted", "derived", "not-derivable", "given")),
)


def _summary_lines(summary: Mapping[str, Any]) -> list[str]:
    if summary["share_right"] is None:
        share = ""
    else:
        share = f" ({100 * summary['share_right']:.0f} %)"
    lines = [
        f"[bold]{summary['right']} of {summary['held_out']} held-out claims right{share}[/bold], "
        f"{summary['wrong']} wrong, {summary['not_derivable']} not derivable; "
        f"{summary['fitted_parameters']} fitted parameters"
    ]
    if summary["worst"] is not None:
        lines.append(
            f"mean absolute error {summary['mape_percent']:.0f} %, median "
            f"{summary['median_error_percent']:.0f} %; worst row {summary['worst']['id']} "
            f"({100 * summary['worst']['error']:+.0f} %)"
        )
    for group, row in summary["mape_percent_by_metric"].items():
        lines.append(
            f"  {escape(group)}: {row['mape_percent']:.0f} % over {row['rows']} rows"
        )
    if summary["spearman"] is not None:
        lines.append(
            f"rank correlation {summary['spearman']:.2f} over {summary['spearman_rows']} rows"
        )
    return lines


def _table(title: str, entries: Iterable[Entry]) -> Table:
    table = Table(title=title, title_justify="left", show_lines=False)
    columns: dict[str, dict[str, Any]] = {
        "claim": {"no_wrap": True},
        "where": {},
        "statement": {"ratio": 1},
    }
    columns |= {
        name: {"justify": "right"} for name in ("published", "simulated", "error")
    }
    for name, layout in (columns | {"verdict": {"no_wrap": True}}).items():
        table.add_column(name, **layout)
    colours = {"right": "green", "wrong": "red", "not-derivable": "yellow"}
    for entry in entries:
        claim = entry.claim
        notes = [
            text
            for text in (entry.reason, claim.disputed and f"disputed: {claim.disputed}")
            if text
        ]
        statement = escape(claim.statement) + "".join(
            f"\n[dim]{escape(note)}[/dim]" for note in notes
        )
        simulated = entry.simulated_text or _show(entry.simulated)
        percent = entry.error_kind == "relative"
        if entry.error is None:
            error = ""
        elif percent:
            error = f"{100 * entry.error:+.0f} %"
        else:
            error = f"{entry.error:+.3g}"
        table.add_row(
            claim.id,
            escape(claim.locus),
            statement,
            escape(claim.published_words),
            escape(simulated),
            error,
            f"[{colours[entry.verdict]}]{entry.verdict}[/]",
        )
    return table


def _show(numbers: Numbers) -> str:
    if numbers is None:
        return "—"
    parts = numbers if isinstance(numbers, tuple) else (numbers,)
    return " … ".join(f"{part:.4g}" for part in parts)
