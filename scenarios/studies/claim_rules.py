"""Compute each claim of a study by the expressions in its ``claims.toml``.

Next to the published numbers of ``claims.csv``, the file holds::

    [expressions]                  # claim → Python expression for its simulated value
    koh2017-041 = 'mean(THROUGHPUT, RS63, "5")'

    [metrics]                      # for all claims whose metric matches, with `claim` and `match`
    "throughput (FUSE|Direct)" = "rate(claim, match[1])"

    [[not_computed]]               # the reason for a missing value, by a pattern of ids
    reason = "a count over a run whose length is not stated"
    claims = "koh2017-085"

    [groups]                       # groups of metrics whose errors are averaged
    latency = ["latency_avg", "latency_max"]

The names in expressions are those of `Study.vocabulary`, and ``value(id)``, another
claim's simulated value. The files ship with the package: expressions are code of the project.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from stripesim.calibration.ledger.verdicts import Claim, Simulated
from stripesim.models.problems import NotComputedError
from stripesim.scenarios.studies.description import shipped_toml
from stripesim.scenarios.studies.lookup import claims_of

Values = dict[str, Simulated]
Reasons = dict[str, str]

NO_RULE: Final = "the study computes no value for this row"
_BUILTINS: Final = {"abs": abs, "float": float, "int": int, "max": max, "min": min}


@dataclass(frozen=True)
class ClaimRules:
    """The rules in a study's ``claims.toml``."""

    expressions: Mapping[str, str]  #: Claim id → expression
    metrics: Mapping[str, str]  #: Pattern of a metric → expression
    not_computed: Mapping[str, str]  #: Claim id → reason
    groups: Mapping[str, str]  #: Metric → group


@cache
def claim_rules(study: str) -> ClaimRules:
    """Read the rules of a study."""
    table = shipped_toml(study, "claims.toml")
    not_computed = {
        claim.id: rule["reason"]
        for rule in table.get("not_computed", ())
        for claim in claims_of(study)
        if re.fullmatch(rule["claims"], claim.id)
    }
    groups = {
        metric: group
        for group, metrics in table.get("groups", {}).items()
        for metric in metrics
    }
    return ClaimRules(
        table.get("expressions", {}), table.get("metrics", {}), not_computed, groups
    )


def simulate_claims(
    study: str, vocabulary: Mapping[str, Any]
) -> tuple[Values, Reasons]:
    """Compute every claim of a study and return values, and reasons for missing ones."""
    values: Values = {}
    reasons: Reasons = {}
    stated = claim_rules(study).not_computed
    by_id = {claim.id: claim for claim in claims_of(study)}

    def value(claim_id: str) -> Simulated:
        return evaluate(study, by_id[claim_id], {**vocabulary, "value": value})

    for claim in by_id.values():
        try:
            values[claim.id] = value(claim.id)
        except NotComputedError as error:
            values[claim.id] = None
            reasons[claim.id] = str(error) or stated.get(claim.id, NO_RULE)
    return values, reasons


def evaluate(study: str, claim: Claim, vocabulary: Mapping[str, Any]) -> Simulated:
    """Evaluate the expression of one claim, or raise a `NotComputedError` without one."""
    rules = claim_rules(study)
    if claim.id in rules.expressions:
        names: Mapping[str, Any] = {**vocabulary, "claim": claim}
        return _run(rules.expressions[claim.id], names)
    for pattern, expression in rules.metrics.items():
        match = re.fullmatch(pattern, claim.metric)
        if match is not None:
            return _run(expression, {**vocabulary, "claim": claim, "match": match})
    raise NotComputedError


def _run(expression: str, names: Mapping[str, Any]) -> Simulated:
    result: Simulated = eval(
        _compiled(expression), {"__builtins__": _BUILTINS, **names}
    )
    return result


@cache
def _compiled(expression: str) -> Any:
    return compile(expression, "claims.toml", "eval")


def public_methods(source: object) -> dict[str, Callable[..., Any]]:
    """Return an object's public methods by name, for expressions to call."""
    return {
        name: getattr(source, name)
        for name in dir(type(source))
        if not name.startswith("_")
    }
