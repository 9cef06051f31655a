"""One row per method: nines, their interval, assumptions and the paths to loss."""

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from math import comb, expm1, factorial, isinf, log10
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from stripesim.sim.durability import draws
from stripesim.sim.durability.bursts import BurstLoss, loss_of_burst
from stripesim.sim.durability.chain import (
    bytes_given_loss,
    chain_of,
    is_chain_exact,
    levels_of,
)
from stripesim.sim.durability.histories import (
    EFFORT_MAX,
    FEW_EXPOSURES,
    LOSS_OF_EXPOSURE_MAX,
    exposure_losses,
)
from stripesim.sim.durability.losses import losses_of
from stripesim.sim.durability.service import struck_share_beside_failures
from stripesim.sim.durability.splitting import (
    WALK_EVENTS_MAX,
    WALKS,
    Estimate,
    Spread,
    events_of_history,
    split,
)
from stripesim.sim.durability.stretch import stretched_unavailability
from stripesim.sim.durability.system import YEAR_S, Burst, System
from stripesim.sim.observe.progress import OnStep, silent

Method = Literal["markov", "splitting", "burst", "history"]

#: Smallest half-width of a splitting interval as shown [nines]. Further digits have no
#: meaning.
LEAST_HALF_NINES: Final = 0.05

#: Measured error of the chain for placement groups. See docs/durability.md.
APPROXIMATION: Final = (
    "Groups rebuilt in turn are approximated to first order in the failure rate: within 0.13 nines of "
    "splitting on 36 random pools."
)

#: How method history counts rare losses.
INDEPENDENT: Final = (
    "Exposures that lose data are independent of one another: the probability follows from their expected "
    "number."
)

#: Unavailability of a system whose rebuilds take much of the horizon.
LONG_RUN: Final = (
    "Unavailability is that of the long run, and higher than within the horizon, which begins with all "
    "drives: a rebuild takes more than a tenth of it."
)

#: Further failures during a rebuild, among the drives that share its stripes, above which a chain of single
#: rebuilds is more than a tenth off [count].
OVERLAP_MAX: Final = 0.1

METHODS: Final[tuple[Method, ...]] = ("markov", "splitting", "burst", "history")

#: Failures of drives within the horizon above which walks of `splitting`, each a whole history, take too
#: long.
FAILURES_OF_A_WALK: Final = 1000

_ORDINALS: Final = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
)

_WHERE: Final = {
    draws.ELSEWHERE: "elsewhere",
    draws.SAME_RACK: "in the same rack",
    draws.SAME_HOST: "in the same host",
}


def why_not(system: System, method: Method) -> str | None:
    """Explain why a method cannot answer for a system.

    Parameters
    ----------
    system
        The system.
    method
        The method.

    Returns
    -------
    str or None
        The reason, or None if the method can answer.
    """
    if method == "markov":
        return _why_no_chain(system)
    if method == "burst":
        return None if system.bursts else "there are no bursts"
    if method == "history" and system.placement == "declustered":
        return "a declustered pool has no placement groups"
    if method == "splitting" and system.placement == "declustered":
        for burst in system.bursts:
            if burst.unit != "drive":
                return f"a declustered pool has no {burst.unit}s"
    return _why_too_long(
        system, WALK_EVENTS_MAX if method == "splitting" else EFFORT_MAX
    )


def _why_too_long(system: System, events_max: int) -> str | None:
    """Explain why no walk can follow a system until its horizon. None if one can."""
    events = events_of_history(system)
    if events <= events_max:
        return None
    return (
        f"a horizon of {system.horizon_s / YEAR_S:,.4g} years has {events:.2g} failures, repairs and bursts, "
        f"and one walk follows at most {events_max:.2g}"
    )


def _why_no_chain(system: System) -> str | None:
    if not system.lifetime.constant:
        return "drives age, and a chain requires exponential lifetimes"
    if system.spares is not None:
        return "a chain does not track spare drives"
    if bool((system.layout < 0).any()):
        return "CRUSH left placement groups incomplete, and a chain starts from complete ones"
    return None


def applicable(system: System) -> list[Method]:
    """List the methods that can answer for a system.

    Parameters
    ----------
    system
        The system.

    Returns
    -------
    list of str
        Some of `METHODS`.
    """
    return [method for method in METHODS if why_not(system, method) is None]


def unsuited(system: System, method: Method) -> str | None:
    """Explain why a method that can answer is not the one to use for a system of this size.

    Parameters
    ----------
    system
        The system.
    method
        The method.

    Returns
    -------
    str or None
        The reason, or None if the method suits the system.
    """
    if system.placement == "declustered":
        return None
    failures = system.failures
    is_large = failures > FAILURES_OF_A_WALK
    if method == "splitting" and is_large:
        return f"each walk has {failures:,.0f} failures, and method history follows few"
    if method == "splitting" and system.bursts:
        return (
            "method history aims bursts at the placement groups that they could destroy"
        )
    if method == "history" and not is_large and not system.bursts:
        return f"splitting suits {failures:,.0f} failures within the horizon"
    return None


def chain_doubt(system: System) -> str | None:
    """Explain why the chain is more than a tenth off. None if it is not.

    Parameters
    ----------
    system
        The system, whose drives do not age.

    Returns
    -------
    str or None
        The reason.

    Notes
    -----
    A pool of a clustered placement has an exact chain if rebuild times are exponential. Other chains follow
    one rebuild, and the failures that come during it. A second rebuild that is still under way afterwards
    does not exist for them.
    """
    if system.placement == "clustered":
        return _doubt_about_fixed_times(system)
    partners = system.code.width - 1
    if system.placement == "declustered":
        partners = system.drives - 1
    overlap = partners * system.lifetime.rate_per_s * system.rebuild_s
    if overlap <= OVERLAP_MAX:
        return None
    return (
        f"{overlap:.2g} drives that share its stripes fail during a rebuild, and the chain holds to a tenth "
        f"up to {OVERLAP_MAX:g}"
    )


def _doubt_about_fixed_times(system: System) -> str | None:
    """Explain why the chain of a pool does not hold for fixed rebuild times. None if it does.

    To first order, a pool loses data if m further drives fail before the first one is rebuilt. One at a time,
    they do so with (λT)^m / m! in a fixed time T, but with (λT)^m in an exponential time of that mean. The
    factor cancels if drives are rebuilt side by side: any of several exponential times may end first, and a
    shared pace slows the first drive down. Detection shares no pace.
    """
    repair = system.repair
    later = system.code.tolerated - 1
    if not repair.fixed or later < 1:
        return None
    if repair.policy == "serial":
        often = factorial(system.code.tolerated)
        return (
            "rebuild times are fixed, and with exponential ones of drives in turn a pool loses data "
            f"{often:,} times as often"
        )
    detection_share = repair.detection_s / system.rebuild_s
    if repair.policy == "shared" and later * detection_share > OVERLAP_MAX:
        return f"detection takes {100 * detection_share:.0f} % of a fixed rebuild time, and shares no pace"
    return None


class Recommendation(NamedTuple):
    """The method to use for a system, and the reason."""

    method: Method
    reason: str


def recommended_method(system: System) -> Recommendation:
    """Choose the method to use: the chain if it covers all threats, otherwise simulation.

    Parameters
    ----------
    system
        The system.

    Returns
    -------
    Recommendation
        The method and the reason.

    Raises
    ------
    ValueError
        If no method can answer.
    """
    methods = applicable(system)
    doubt = chain_doubt(system) if "markov" in methods else None
    if "markov" in methods and not system.bursts and doubt is None:
        reason = "the chain takes milliseconds and is within 0.2 nines of splitting"
        if is_chain_exact(system):
            reason = "the chain is exact here"
        return Recommendation("markov", reason)
    reason = "only simulation covers bursts together with single failures"
    reason = why_not(system, "markov") or doubt or reason
    for method in ("splitting", "history"):
        if method not in methods or unsuited(system, method) is not None:
            continue
        return Recommendation(method, reason)
    if not methods:
        raise ValueError(
            f"durability: {system.code.name}: {why_not(system, 'splitting')}"
        )
    return Recommendation(methods[0], "no other method can answer")


def assess(
    system: System,
    method: Method,
    *,
    seed: int = 1,
    walks: int = WALKS,
    spread: Spread | None = None,
    progress: OnStep = silent,
) -> dict[str, Any]:
    """Estimate the probability of data loss by one method.

    Parameters
    ----------
    system
        Scheme, drives, repair and bursts.
    method
        One of those that `applicable` lists.
    seed, walks, spread
        As for `stripesim.sim.durability.splitting.split` and
        `stripesim.sim.durability.histories.exposure_losses`. Other methods ignore them.
    progress
        Called with the effort so far, by methods splitting and history.

    Returns
    -------
    dict
        The row. Its ``nines``, ``nines_low`` and ``nines_high`` are −log10 of the probability of any loss
        within the horizon and its 95 % interval. The interval is a point if the method is exact, and None
        if the method is an approximation. All three are None if no loss was seen. ``bytes_lost_per_year``
        follows the definition of `stripesim.sim.durability.losses`, whose `inconsistency` checks a row. It is
        None, with the reason among ``assumptions``, if the method cannot know it.
    """
    begun = time.perf_counter()
    row = _estimated(
        system, method, seed=seed, walks=walks, spread=spread, progress=progress
    )
    stated = _with_exposures(assumptions(system, method), row)
    without_clients = unavailability(system)
    if without_clients is None:
        stated.append(f"Unavailability is not given: {_why_no_unavailability(system)}.")
    unknown = _why_no_bytes(system, method, row)
    if unknown is not None:
        row |= {"bytes_lost_given_loss": None, "bytes_lost_per_year": None}
        stated.append(f"Bytes lost are not given: {unknown}.")
    return {
        "scheme": system.code.name,
        "method": method,
        **row,
        "horizon_s": system.horizon_s,
        "client_bytes": system.client_bytes,
        "wall_s": time.perf_counter() - begun,
        "unavailability": without_clients,
        "assumptions": stated,
    }


def _estimated(
    system: System,
    method: Method,
    *,
    seed: int,
    walks: int,
    spread: Spread | None,
    progress: OnStep,
) -> dict[str, Any]:
    """Return what a method computes, with ``loss_of_exposure`` and ``exposures`` if it knows them."""
    if method == "markov":
        return _markov(system)
    if method == "burst":
        return _burst(system)
    simulated = exposure_losses if method == "history" else split
    estimate = simulated(
        system, seed=seed, walks=walks, spread=spread, progress=progress
    )
    return _simulated(estimate, system)


def _with_exposures(usual: Sequence[str], row: dict[str, Any]) -> list[str]:
    """Return the assumptions with those on exposures, whose numbers leave the row."""
    stated = list(usual)
    loss_of_exposure = row.pop("loss_of_exposure", 0.0)
    exposures = row.pop("exposures", None)
    if exposures is None and INDEPENDENT in stated:
        often = "Histories often lose data"
        if loss_of_exposure > LOSS_OF_EXPOSURE_MAX:
            often = f"An exposure loses data with probability {loss_of_exposure:.2g}"
        stated[stated.index(INDEPENDENT)] = (
            f"{often}, so whole histories are followed to their first loss and counted."
        )
    if exposures is not None and exposures < FEW_EXPOSURES:
        seen = "1 exposure" if exposures == 1 else f"{exposures} exposures"
        stated.append(
            f"Histories saw {seen} by single failures, too few for an interval of their losses. "
            "More walks see more."
        )
    return stated


def _why_no_bytes(system: System, method: Method, row: Mapping[str, Any]) -> str | None:
    """Explain why a method does not know the bytes lost per year. None if it does."""
    if system.sector_errors and method != "burst":
        return "a latent sector error loses a stripe and a failed drive whole groups, and losses count both"
    if row["loss_probability"] and row["bytes_lost_per_year"] is None:
        return "losses are so frequent that this method does not count all of them"
    return None


def _why_no_unavailability(system: System) -> str | None:
    """Explain why the unavailability of a system is not known. None if it is."""
    if not system.lifetime.constant:
        return "drives age"
    if system.spares is not None:
        return "drives wait for spares, which neither the chain nor the binomial counts"
    return None


def unavailability(system: System) -> float | None:
    """Compute the part of time and placement groups with fewer shards than clients need (``min_size``).

    Parameters
    ----------
    system
        The system.

    Returns
    -------
    float or None
        The part, 0 to 1, or None if drives age or wait for spares.

    Notes
    -----
    Independent failures contribute the chain's part for pools of a clustered placement. If j drives must be
    away for clients to wait, and drives are rebuilt one at a time, the last j - 1 of them fail within what is
    left of the first rebuild. To first order in the failure rate, they are away together for
    :math:`T^j / j!` of a fixed time T, and for :math:`T^j` of an exponential one. Side by side, the
    distribution of the time does not matter.

    Elsewhere the part is binomial, with each shard away for the detection and its part of the rebuild. This
    is too high if groups nearest to loss are rebuilt first. Bursts contribute their rate, times the time that
    struck units are down, times the mean part of groups that miss more than `missing_allowed`: shards on
    struck units and, if a burst strikes a single one, shards that are away by themselves. All parts are those
    of the long run, which is more than a horizon that begins with all drives has if repairs last for much of
    it. Lost data counts as available. Stretch mode has rules of its own (`stretched_unavailability`).
    """
    if _why_no_unavailability(system) is not None:
        return None
    allowed = system.missing_allowed
    away_s = system.repair.detection_s + system.shard_transfer_s
    away = away_s / (away_s + 1 / system.lifetime.rate_per_s)
    if system.is_stretched:
        return stretched_unavailability(system, away)
    if system.placement == "clustered":
        away = 0.0
        share = chain_of(system).share_of_time(allowed)
        if system.repair.fixed and system.repair.policy == "serial":
            share /= factorial(max(0, allowed) + 1)
    else:
        share = _more_away(system.code.width, allowed, away)
    for burst in system.bursts:
        if burst.down_s:
            while_down = _unavailable_by(system, burst, away)
            share += min(1.0, burst.rate_per_s * burst.down_s) * while_down
    return min(1.0, share)


def _more_away(shards: int, allowed: int, away: float) -> float:
    """Return the probability that more than the allowed number of shards are away."""
    return sum(
        comb(shards, i) * away**i * (1 - away) ** (shards - i)
        for i in range(max(0, allowed + 1), shards + 1)
    )


def _unavailable_by(system: System, burst: Burst, away: float) -> float:
    """Return the part of groups that serve no clients because units are down.

    `away` is the part of time for which a shard is away by itself.
    """
    units = system.units.get(burst.unit)
    if burst.units != 1 or units is None:
        return loss_of_burst(system, burst).unavailable
    if system.code.distances is not None:
        return struck_share_beside_failures(system, units, away)
    members = system.layout
    present = (members >= 0) & (members < system.drives)
    of_shards = np.where(present, units[np.where(present, members, 0)], -1)
    width = system.code.width
    allowed = system.missing_allowed
    # For each shard, the shards of its group on the same unit.
    together = (of_shards[:, :, None] == of_shards[:, None, :]).sum(axis=2)
    together[of_shards < 0] = 0
    alone = _more_away(width, allowed, away)
    share = 0.0
    for hit in range(1, width + 1):
        hit_units = float((together == hit).sum()) / hit / len(members)
        probability = hit_units / (int(units.max()) + 1)
        share += probability * (_more_away(width - hit, allowed - hit, away) - alone)
    return share


def path_text(path: tuple[int, ...], system: System) -> str:
    """Describe the causes of a loss, level by level.

    Parameters
    ----------
    path
        Cause of each level, from 1, as in `draws`.
    system
        The system.

    Returns
    -------
    str
        The description.
    """
    if set(path) == {draws.ELSEWHERE}:
        return _overlap_text(system)
    parts: list[str] = []
    for cause, levels in groupby(range(len(path)), key=path.__getitem__):
        shards = [_ordinal(level) for level in levels]
        if cause >= draws.AS_ONE:
            which = f"{shards[0]} shard"
            if len(shards) > 1:
                which = f"{shards[0]} to {shards[-1]} shard"
            parts.append(f"burst {system.bursts[cause - draws.AS_ONE].name} ({which})")
        elif cause == draws.SECTOR:
            parts.append("a latent sector error found by the rebuild")
        else:
            # The first failure needs no words.
            parts += [
                f"{shard} drive {_WHERE[cause]} during rebuild"
                for shard in shards
                if cause != draws.ELSEWHERE or shard != _ORDINALS[0]
            ]
    return ", then ".join(parts)


def _ordinal(level: int) -> str:
    return _ORDINALS[level] if level < len(_ORDINALS) else f"{level + 1}th"


def assumptions(system: System, method: Method) -> list[str]:
    """List the assumptions of an answer.

    Parameters
    ----------
    system
        The system.
    method
        The method.

    Returns
    -------
    list of str
        One sentence per assumption.
    """
    burst_only = method == "burst"
    lines = [_failure_assumption(system, burst_only=burst_only)]
    lines += _placement_assumptions(system)
    if not burst_only:
        lines += _repair_assumptions(system, method)
    if method == "markov" and system.bursts:
        lines.append("Bursts are excluded. See the other methods.")
    if method == "markov" and system.placement == "crush":
        lines.append(APPROXIMATION)
    doubt = chain_doubt(system) if method == "markov" else None
    if doubt is not None:
        lines.append(f"Outside the range of the chain: {doubt}. See the other methods.")
    if method == "history":
        lines.append(INDEPENDENT)
    if method in ("splitting", "history"):
        lines.append(
            "The interval is statistical and shown at least ± 0.05 nines wide. It does not cover the "
            "simplifications of the model."
        )
    if system.sector_errors and not burst_only:
        lines.append(
            f"A drive has {system.sector_errors:.3g} latent sector errors on average. One in the data that "
            "the last rebuild reads is a loss."
        )
    if _settles_late(system):
        lines.append(LONG_RUN)
    code = system.code
    if code.tolerated < code.width - code.k and code.distances is None:
        lines.append(
            f"More than {code.tolerated} missing shards count as loss, although some of these sets decode."
        )
    return lines


def _settles_late(system: System) -> bool:
    """Return True if unavailability is known and takes much of the horizon to reach that of the long run."""
    is_known = _why_no_unavailability(system) is None
    return is_known and system.rebuild_s > system.horizon_s / 10


def _failure_assumption(system: System, *, burst_only: bool) -> str:
    if burst_only:
        return "The cluster is complete when a burst strikes. Independent failures are excluded."
    if system.lifetime.constant:
        rate = system.lifetime.rate_per_s * YEAR_S
        return f"Drives fail independently, {rate:.4g} times per year at any age."
    return (
        f"Drives fail independently, with a hazard that depends on age. All are "
        f"{system.age_s / YEAR_S:.3g} years old at the start, and replacements are new."
    )


def _placement_assumptions(system: System) -> list[str]:
    if system.placement == "crush":
        return [
            f"{len(system.layout)} placement groups as CRUSH maps them. A rebuilt shard counts as back on "
            "its drive."
        ]
    if system.placement == "declustered":
        stripes = "every set of drives has stripes"
        if system.stripes:
            stripes = f"there are {system.stripes:.4g}"
        progress = ". A failure exposes all stripes on its drive, even rebuilt ones."
        if system.repair.progress:
            progress = ", and rebuilt stripes are safe."
        return [
            f"Stripes are on any drives, and {stripes}. Survivors share each rebuild, stripes nearest to "
            f"loss first{progress}"
        ]
    drives = f"{system.code.width} drives"
    if system.code.width == 1:
        drives = "one drive"
    lines = [f"{system.pools} pools of {drives} lose data independently."]
    if system.pools == 1:
        lines = [f"One pool of {drives}."]
    unused = system.drives - system.pools * system.code.width
    if unused:
        lines.append(
            f"{unused} of {system.drives} drives fill no pool, and hold nothing."
        )
    return lines


def _repair_assumptions(system: System, method: Method) -> list[str]:
    repair = system.repair
    lines = []
    if system.placement != "declustered":
        policy = {
            "parallel": "each failed drive at its own pace",
            "serial": "one drive at a time in a pool",
            "shared": "failed drives share one pace",
        }[repair.policy]
        # The chain of a pool's drives has exponential times only.
        memoryless = method == "markov" and system.placement != "crush"
        times = "exponential" if memoryless or not repair.fixed else "fixed"
        lines.append(f"Repair: {policy}, with {times} times.")
    if system.spares is None:
        lines.append(
            f"A drive is rebuilt in {system.rebuild_s / 3600:.4g} h, including {repair.detection_s:.4g} s of "
            "detection. Spare space is always available."
        )
    elif system.spares == 0:
        lines.append("There are no spares: no failed drive is ever rebuilt.")
    else:
        lines.append(
            f"{system.spares} spares, each available again {system.replacement_s / 3600:.4g} h after its use."
        )
    return lines


def _markov(system: System) -> dict[str, Any]:
    levels = levels_of(system)
    chain = chain_of(system, levels)
    probability = chain.loss_probability(system.horizon_s)
    mttdl_s = chain.mttdl_s
    losses = losses_of(probability)
    if losses is None:
        losses = system.horizon_s / mttdl_s
    row = _row(system, probability, losses, bytes_given_loss(system, levels))
    exact = chain.exact and chain_doubt(system) is None
    row |= {
        "exact": exact,
        "mttdl_hours": None if isinf(mttdl_s) else mttdl_s / 3600,
        "dominant_path": f"all losses: {_chain_text(system)}",
    }
    if not exact:
        # The error of an approximation is not statistical.
        row |= {"nines_low": None, "nines_high": None}
    return row


def _simulated(estimate: Estimate, system: System) -> dict[str, Any]:
    row = _row(system, estimate.probability, estimate.losses, estimate.lost_bytes)
    nines, low, high = estimate.nines
    paths = [
        {"path": path_text(path, system), "share": share}
        for path, share in estimate.paths[:8]
    ]
    row |= {
        "exact": False,
        "nines_low": min(low, max(0.0, nines - LEAST_HALF_NINES)),
        "nines_high": None if isinf(high) else max(high, nines + LEAST_HALF_NINES),
        "trajectories": estimate.walks,
        "events": estimate.events,
        "paths": paths,
        "loss_of_exposure": estimate.loss_of_exposure,
        "exposures": estimate.exposures,
    }
    if estimate.paths:
        path, share = estimate.paths[0]
        words = path_text(path, system)
        row["dominant_path"] = f"{100 * share:.0f} % of losses: {words}"
    return row


def _burst(system: System) -> dict[str, Any]:
    burst_losses = [(burst, loss_of_burst(system, burst)) for burst in system.bursts]

    def sum_of(quantity: Callable[[BurstLoss], float]) -> float:
        """Sum a quantity of a strike over the strikes within the horizon."""
        return sum(
            burst.rate_per_s * system.horizon_s * quantity(loss)
            for burst, loss in burst_losses
        )

    losses = sum_of(lambda loss: loss.probability)
    lost_bytes = system.client_bytes * sum_of(lambda loss: loss.lost)
    row = _row(system, -expm1(-losses), losses, lost_bytes / losses if losses else 0.0)
    bursts = [_burst_row(burst, loss) for burst, loss in burst_losses]
    row |= {
        "exact": all(loss.low == loss.high for _, loss in burst_losses),
        "nines_low": _nines(-expm1(-sum_of(lambda loss: loss.high))),
        "nines_high": _nines(-expm1(-sum_of(lambda loss: loss.low))),
        "bursts": bursts,
    }
    if losses:
        worst = max(bursts, key=lambda row: row["per_year"] * row["loss_probability"])
        per_year = losses / system.horizon_s * YEAR_S
        share = worst["per_year"] * worst["loss_probability"] / per_year
        row["dominant_path"] = f"{100 * share:.0f} % of losses: burst {worst['name']}"
    return row


def _burst_row(burst: Burst, loss: BurstLoss) -> dict[str, Any]:
    return {
        "name": burst.name,
        "unit": burst.unit,
        "units": burst.units,
        "per_year": burst.rate_per_s * YEAR_S,
        "loss_probability": loss.probability,
        "low": loss.low,
        "high": loss.high,
        "lost_share": loss.lost,
        "unavailable_share": loss.unavailable,
    }


def _row(
    system: System, probability: float, losses: float | None, bytes_per_loss: float
) -> dict[str, Any]:
    """Return the columns common to all methods, for an exact probability and losses at a constant rate.

    `losses` is the expected number of losses within the horizon, or None if it is not known.
    """
    nines = _nines(probability)
    row: dict[str, Any] = {
        "nines": nines,
        "nines_low": nines,
        "nines_high": nines,
        "loss_probability": probability,
        "mttdl_hours": None,
        "bytes_lost_given_loss": bytes_per_loss if probability else None,
        "bytes_lost_per_year": None,
        "trajectories": 0,
        "events": 0,
        "exact": True,
        "dominant_path": None,
        "paths": [],
        "bursts": [],
    }
    if losses is not None:
        years = system.horizon_s / YEAR_S
        row["bytes_lost_per_year"] = losses / years * bytes_per_loss
        if losses:
            row["mttdl_hours"] = system.horizon_s / losses / 3600
    return row


def _nines(probability: float) -> float | None:
    if probability <= 0:
        return None
    return abs(-log10(probability))


def _chain_text(system: System) -> str:
    """Describe the losses that a chain counts."""
    if system.sector_errors and system.code.tolerated:
        return (
            f"{_overlap_text(system)}, or the last rebuild finds a latent sector error"
        )
    return _overlap_text(system)


def _overlap_text(system: System) -> str:
    """Describe a loss through independent failures only."""
    if system.code.tolerated == 0:
        return "the first drive that fails"
    of_what = {
        "clustered": " of one pool",
        "declustered": "",
        "crush": " of one placement group",
    }[system.placement]
    return (
        f"{system.code.tolerated + 1} drives{of_what} fail during one another's repair"
    )
