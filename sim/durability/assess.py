"""The rows that a user sees: nines by each method, their interval, what they rest on, how data is lost."""

import time
from collections.abc import Callable, Iterable
from math import comb, expm1, isinf, log1p, log10, prod
from typing import Any, Final, Literal, NamedTuple

from stripesim.sim.durability import draws
from stripesim.sim.durability.bursts import loss_of_burst
from stripesim.sim.durability.chain import chain_of
from stripesim.sim.durability.splitting import WALKS, Batch, Estimate, split
from stripesim.sim.durability.system import YEAR_S, System, group_bytes

Method = Literal["markov", "splitting", "burst"]
Spread = Callable[[Callable[[int], Batch], Iterable[int]], Iterable[Batch]]

#: Intervals of splitting are not shown narrower than this to either side [nines]: no more digits are meant.
LEAST_HALF_NINES: Final = 0.05

#: The chain's error for placement groups, as measured; see docs/durability.md.
APPROXIMATION: Final = (
    "An approximation, to first order in the failure rate, of groups that are rebuilt in turn: within 0.12 "
    "nines of splitting on 31 random pools, within 0.2 on 5 with exponential repair times."
)

METHODS: Final[tuple[Method, ...]] = ("markov", "splitting", "burst")


def why_not(system: System, method: Method) -> str | None:
    """Say why a method cannot answer for a system, or None."""
    if method == "markov" and not system.lifetime.constant:
        return "drives age, and a chain has no memory: it needs exponential lifetimes"
    if method == "markov" and system.spares is not None:
        return "a chain keeps no account of spare drives"
    if method == "markov" and bool((system.layout < 0).any()):
        return (
            "CRUSH left placement groups incomplete, and a chain begins with whole ones"
        )
    if method == "burst" and not system.bursts:
        return "there are no bursts"
    if method == "splitting" and system.bursts and system.placement == "declustered":
        odd = [burst.unit for burst in system.bursts if burst.unit != "drive"]
        return f"a declustered pool has no {odd[0]}s" if odd else None
    return None


def applicable(system: System) -> list[Method]:
    """List the methods that can answer for a system."""
    return [method for method in METHODS if why_not(system, method) is None]


class Recommendation(NamedTuple):
    """The method whose answer to use for a system, and why."""

    method: Method
    reason: str


def recommended_method(system: System) -> Recommendation:
    """Choose the method whose answer to use: the chain where it counts all that is asked, else simulation.

    Raises
    ------
    ValueError
        If no method can answer.
    """
    methods = applicable(system)
    if "markov" in methods and not system.bursts:
        if chain_of(system).exact:
            return Recommendation("markov", "the chain is exact here")
        return Recommendation(
            "markov",
            "the chain takes milliseconds and is within 0.2 nines of splitting",
        )
    if "splitting" in methods:
        reason = (
            why_not(system, "markov")
            or "only simulation counts bursts beside single failures"
        )
        return Recommendation("splitting", reason)
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
) -> dict[str, Any]:
    """Answer a question about durability by one method.

    `seed`, `walks`, `spread` are as for `stripesim.sim.durability.splitting.split`.

    The row's ``nines``, ``nines_low`` and ``nines_high`` are −log10 of the probability of any loss within the
    horizon and its 95 % interval: a point where the method is exact, no interval (None) where the method is
    an approximation, and None throughout where no loss was seen at all.
    """
    begun = time.perf_counter()
    row = (
        {"markov": _markov, "burst": _burst}[method](system)
        if method != "splitting"
        else _splitting(split(system, seed=seed, walks=walks, spread=spread), system)
    )
    head = {"scheme": system.code.name, "method": method}
    unavailable = unavailability(system)
    tail = {"wall_s": time.perf_counter() - begun, "unavailability": unavailable}
    return {**head, **row, **tail, "assumptions": assumptions(system, method)}


def _nines(probability: float) -> float | None:
    return None if probability <= 0 else abs(-log10(probability))


def _row(
    system: System, probability: float, lost_bytes: float, **more: Any
) -> dict[str, Any]:
    """The columns that every method has; MTTDL from a constant rate unless given."""
    rate = -log1p(-probability) / system.horizon_s if probability < 1 else None
    nines = _nines(probability)
    return {
        "nines": nines,
        "nines_low": nines,
        "nines_high": nines,
        "loss_probability": probability,
        "mttdl_hours": 1 / rate / 3600 if rate else None,
        "bytes_lost_per_year": None if rate is None else rate * YEAR_S * lost_bytes,
        "trajectories": 0,
        "events": 0,
        "exact": True,
        "dominant_path": None,
        "paths": [],
        "bursts": [],
        **more,
    }


def _lost_bytes(system: System) -> float:
    """Client data that a loss destroys [B]: of a pool, of stripes on tolerated + 1 drives, of one group."""
    code = system.code
    if system.placement != "declustered":
        return code.k * group_bytes(system)
    shared = prod(
        (code.width - j) / (system.drives - j) for j in range(1, code.tolerated + 1)
    )
    return code.k * system.drive_bytes * shared


def _markov(system: System) -> dict[str, Any]:
    chain = chain_of(system)
    probability = chain.loss_probability(system.horizon_s)
    mttdl_s = chain.mttdl_s
    # An approximation's error is no matter of chance.
    interval = {} if chain.exact else {"nines_low": None, "nines_high": None}
    return _row(
        system,
        probability,
        _lost_bytes(system),
        exact=chain.exact,
        mttdl_hours=None if isinf(mttdl_s) else mttdl_s / 3600,
        dominant_path=f"all losses: {_together(system)}",
        **interval,
    )


def _splitting(found: Estimate, system: System) -> dict[str, Any]:
    paths = [
        {"path": path_words(path, system), "share": share}
        for path, share in found.paths[:8]
    ]
    middle, low, high = found.nines
    return _row(
        system,
        found.probability,
        found.lost_bytes,
        exact=False,
        nines_low=min(low, max(0.0, middle - LEAST_HALF_NINES)),
        nines_high=None if isinf(high) else max(high, middle + LEAST_HALF_NINES),
        trajectories=found.walks,
        events=found.events,
        paths=paths,
        dominant_path=f"{paths[0]['share']:.0%} of losses: {paths[0]['path']}"
        if paths
        else None,
    )


def _burst(system: System) -> dict[str, Any]:
    rate, low_rate, high_rate = 0.0, 0.0, 0.0
    found: list[dict[str, Any]] = []
    exact = True
    for burst in system.bursts:
        lost, low, high, below = loss_of_burst(system, burst)
        rate, low_rate, high_rate = (
            total + burst.rate_per_s * share
            for total, share in ((rate, lost), (low_rate, low), (high_rate, high))
        )
        exact = exact and low == high
        found.append(
            {
                "name": burst.name,
                "unit": burst.unit,
                "units": burst.units,
                "per_year": burst.rate_per_s * YEAR_S,
                "loss_probability": lost,
                "low": low,
                "high": high,
                "unavailable_share": below,
            }
        )
    worst = max(found, key=lambda one: one["per_year"] * one["loss_probability"])
    ends = [-expm1(-total * system.horizon_s) for total in (rate, low_rate, high_rate)]
    share = (
        worst["per_year"] * worst["loss_probability"] / (rate * YEAR_S) if rate else 0.0
    )
    return _row(
        system,
        ends[0],
        _lost_bytes(system),
        exact=exact,
        nines_low=_nines(ends[2]),
        nines_high=_nines(ends[1]),
        bursts=found,
        dominant_path=f"{share:.0%} of losses: burst {worst['name']} of {worst['units']} {worst['unit']}s"
        if rate
        else None,
    )


def unavailability(system: System) -> float | None:
    """Share of time and of placement groups with fewer shards than clients need (``min_size``).

    From independent failures: the chain's share for pools of a clustered placement, elsewhere binomial, each
    shard away for the detection and half the rebuild. From bursts: their rate, the time that struck units are
    down and the mean share of groups hit beyond `missing_allowed`. Data that is lost counts as available.
    """
    allowed, code = system.missing_allowed, system.code
    if not system.lifetime.constant:
        share = None
    elif system.placement == "clustered":
        share = chain_of(system).share_of_time(allowed)
    else:
        away_s = system.repair.detection_s + system.transfer_s / 2
        away = away_s / (away_s + 1 / system.lifetime.rate_per_s)
        share = sum(
            comb(code.width, i) * away**i * (1 - away) ** (code.width - i)
            for i in range(allowed + 1, code.width + 1)
        )
    if share is None:
        return None
    for burst in system.bursts:
        if burst.down_s:
            below = loss_of_burst(system, burst)[3]
            share += min(1.0, burst.rate_per_s * burst.down_s) * below
    return min(1.0, share)


def _together(system: System) -> str:
    count = system.code.tolerated + 1
    where = {
        "clustered": " of one pool",
        "declustered": "",
        "crush": " of one placement group",
    }
    return (
        f"{count} drives{where[system.placement]} fail within one another's repair"
        if count > 1
        else ("the first drive that fails")
    )


def path_words(path: tuple[int, ...], system: System) -> str:
    """Say what led to loss, level by level."""
    if set(path) == {draws.ELSEWHERE}:
        return _together(system)
    ordinals = (
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
    )
    parts: list[str] = []
    for number, cause in enumerate(path):
        which = ordinals[number] if number < len(ordinals) else f"{number + 1}th"
        if cause >= draws.AS_ONE:
            words = f"burst {system.bursts[cause - draws.AS_ONE].name}"
            if parts and parts[-1].startswith(words):
                parts[-1] = f"{words} (shards {which} and before)"
                continue
            parts.append(words)
        elif cause == draws.SECTOR:
            parts.append("a latent sector error met by the rebuild")
        elif cause == draws.SAME_HOST:
            parts.append(f"{which} drive in the same host during rebuild")
        elif cause == draws.SAME_RACK:
            parts.append(f"{which} drive in the same rack during rebuild")
        elif number:
            parts.append(f"{which} drive elsewhere during rebuild")
    return ", then ".join(dict.fromkeys(parts))


def assumptions(system: System, method: Method) -> list[str]:
    """Say in words what an answer rests on."""
    code, repair = system.code, system.repair
    said = []
    if method == "burst":
        said.append(
            "The cluster is whole when a burst strikes; independent failures are left out."
        )
    elif system.lifetime.constant:
        rate = system.lifetime.rate_per_s * YEAR_S
        said.append(
            f"Drives fail independently, at any age alike, {rate:.4g} times a year."
        )
    else:
        said.append(
            f"Drives fail independently with a hazard that depends on age; all are "
            f"{system.age_s / YEAR_S:.3g} years old at the start, replaced ones are new."
        )
    if system.placement == "clustered":
        said.append(
            f"{system.pools} pools of {code.width} drives lose data independently of one another."
        )
        left = system.drives - system.pools * code.width
        if left:
            said.append(
                f"{left} of {system.drives} drives fill no pool and hold nothing."
            )
    elif system.placement == "declustered":
        said.append(
            "Stripes lie on any drives; "
            + (
                f"there are {system.stripes:.4g}"
                if system.stripes
                else "every set of drives has some"
            )
            + "; survivors share each rebuild, stripes nearest to loss first"
            + (
                ", and what is rebuilt is safe."
                if repair.progress
                else "; a failure exposes its whole share, whatever had been rebuilt."
            )
        )
    else:
        said.append(
            f"{len(system.layout)} placement groups as CRUSH maps them; a rebuilt shard counts as back in "
            "its place."
        )
    if method != "burst":
        how = {
            "parallel": "each failed drive at its own pace",
            "serial": "one drive at a time in a pool",
            "shared": "failed drives share one pace",
        }[repair.policy]
        # A chain of whole drives has no other times.
        memoryless = method == "markov" and system.placement != "crush"
        times = "exponential" if memoryless or not repair.fixed else "fixed"
        if system.placement != "declustered":
            said.append(f"Repair: {how}; times are {times}.")
        said.append(
            f"A drive is rebuilt in {(repair.detection_s + system.transfer_s) / 3600:.4g} h, "
            f"{repair.detection_s:.4g} s of it detection; spare space is there at once."
            if system.spares is None
            else f"{system.spares} spares, each free again {system.replacement_s / 3600:.4g} h after its use."
        )
    if method == "markov" and system.bursts:
        said.append("Bursts are left out: see the other methods.")
    if method == "markov" and system.placement == "crush":
        said.append(APPROXIMATION)
    if method == "splitting":
        said.append(
            "The interval is statistical, and shown no narrower than ± 0.05 nines; it does not cover what "
            "the model leaves out."
        )
    if system.sector_errors and method != "burst":
        said.append(
            f"A drive has {system.sector_errors:.3g} latent sector errors on average; one in what the last "
            "rebuild reads is loss."
        )
    if code.tolerated < code.width - code.k and code.distances is None:
        said.append(
            f"More than {code.tolerated} missing shards count as loss, though some such sets decode."
        )
    return said
