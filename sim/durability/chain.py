"""Markov chains of data loss: the probability of absorption within a horizon, and the mean time to it.

No formula subtracts, so probabilities of 1e-30 keep their leading digits.
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb, expm1, inf, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from stripesim.sim.durability.probability import any_of
from stripesim.sim.durability.system import Code, Floats, System
from stripesim.sim.durability.turns import Levels, turn_levels


@dataclass(frozen=True)
class Chain:
    """A Markov chain that ends in data loss, for one pool or for the consequences of one drive's failure.

    Attributes
    ----------
    rates
        Rates from each state to each other [1/s], shape (states, states + 1), as an array or a
        sparse matrix. The last column is data loss, and the diagonal is unused.
    missing
        Shards missing in the worst stripe, shape (states,).
    copies
        Number of independent chains. The loss of any of them counts.
    exact
        True if the chain is the model itself, False if it approximates the model.
    """

    rates: Any
    missing: npt.NDArray[np.int64]
    copies: float = 1.0
    exact: bool = True

    def loss_probability(self, horizon_s: float) -> float:
        """Return the probability that any copy ends within a time.

        Parameters
        ----------
        horizon_s
            The time [s].
        """
        return any_of(absorption(self.rates, horizon_s), self.copies)

    @property
    def mttdl_s(self) -> float:
        """Mean time to the first loss among all copies [s]."""
        return mean_absorption(self.rates) / self.copies

    def share_of_time(self, missing_allowed: int) -> float:
        """Return the part of the time before loss with too few shards.

        Parameters
        ----------
        missing_allowed
            Shards that a stripe of one copy may miss.

        Returns
        -------
        float
            Part of the time with more missing shards, 0 to 1.
        """
        below = (self.missing > missing_allowed).astype(float)
        return mean_absorption(self.rates, below) / mean_absorption(self.rates)


class _Steps(NamedTuple):
    """The steps of uniformisation."""

    rate_per_s: float
    losses: Floats  # Conditional probability of loss at each step
    left: Floats  # Probability of survival before the first step and after each
    shape: Floats  # The final distribution among the states


@dataclass(frozen=True)
class PatternChain(Chain):
    """A chain with a state for each decodable pattern of losses, the first without any.

    Notes
    -----
    It is solved by uniformisation, step by step. Once the distribution among the states is
    stationary, each step reduces the probability of survival by the same factor, and the remainder
    of the sum over Poisson-distributed steps has a closed form.
    """

    @cached_property
    def _steps(self) -> _Steps:
        exits = np.asarray(self.rates.sum(axis=1)).ravel()
        q = 2 * float(exits.max())
        jump = (self.rates[:, :-1] / q + scipy.sparse.diags(1 - exits / q)).T.tocsr()
        lethal = self.rates[:, -1].toarray().ravel() / q
        shape = np.zeros(len(exits))
        shape[0] = 1.0
        left = [1.0]
        losses = []
        for step in range(200_000):
            losses.append(float(lethal @ shape))
            after = jump @ shape
            change = float(np.abs(after / after.sum() - shape).max())
            shape = after / after.sum()
            left.append(left[-1] * (1 - losses[-1]))
            settled = losses[-1] > 0
            if settled and step % 8 == 0 and change < 1e-15:
                recent = losses[-8:]
                if max(recent) - min(recent) <= 1e-11 * losses[-1]:
                    break
        return _Steps(q, np.array(losses), np.array(left), shape)

    def loss_probability(self, horizon_s: float) -> float:
        """Return the probability that any copy ends within a time.

        Parameters
        ----------
        horizon_s
            The time [s].
        """
        rate_per_s, losses, left, _ = self._steps
        mean = rate_per_s * horizon_s
        gone = np.append(0.0, np.cumsum(losses * left[:-1]))
        spread = 12 * np.sqrt(mean) + 40
        steps = np.arange(max(0.0, np.floor(mean - spread)), np.ceil(mean + spread))
        last = len(losses)
        beyond = gone[-1] - left[-1] * np.expm1(
            np.maximum(steps - last, 0) * np.log1p(-losses[-1])
        )
        known = gone[np.minimum(steps, last).astype(np.int64)]
        lost = np.where(steps <= last, known, beyond)
        return any_of(float(scipy.stats.poisson.pmf(steps, mean) @ lost), self.copies)

    @property
    def mttdl_s(self) -> float:
        """Mean time to the first loss among all copies [s]."""
        rate_per_s, losses, left, _ = self._steps
        steps = float(left[:-1].sum()) + float(left[-1]) / float(losses[-1])
        return steps / rate_per_s / self.copies

    def share_of_time(self, missing_allowed: int) -> float:
        """Return the part of the time before loss with too few shards.

        Parameters
        ----------
        missing_allowed
            Shards that a stripe of one copy may miss.

        Returns
        -------
        float
            Part of the time with more missing shards, 0 to 1.
        """
        return float(np.sum(self._steps.shape[self.missing > missing_allowed]))


def absorption(rates: Floats, horizon_s: float) -> float:
    """Return the probability of absorption within a time, from state 0.

    Parameters
    ----------
    rates
        Rates as in `Chain` [1/s], shape (states, states + 1).
    horizon_s
        The time [s].

    Returns
    -------
    float
        The probability, with a relative error below 1e-6.

    Notes
    -----
    Uniformisation over a step so short that the chain hardly moves, exp(Qh) = sum of Poisson(qh; j) U^j with
    U = I + Q/q, is followed by repeated squaring. q is twice the largest exit rate, so every element of U is
    a sum of positive terms. Relative errors double with each squaring.

    References
    ----------
    Jensen: Markoff chains as an aid in the study of Markoff processes, 1953.
    Moler and Van Loan: Nineteen dubious ways to compute the exponential of a matrix, 2003, method 3.
    """
    size = len(rates)
    full = np.zeros((size + 1, size + 1))
    full[:size] = rates
    np.fill_diagonal(full, 0.0)
    exits = full.sum(axis=1)
    q = 2 * float(exits.max())
    if q * horizon_s == 0:
        return 0.0
    doublings = max(0, int(np.ceil(np.log2(q * horizon_s))))
    step = q * horizon_s / 2**doublings
    jump = full / q
    np.fill_diagonal(jump, 1 - exits / q)
    term = np.eye(size + 1) * np.exp(-step)
    total = term.copy()
    for order in range(1, 200):
        term = term @ jump * (step / order)
        total += term
        # Distant entries fill in only after as many jumps as there are states between them.
        if order > size + 2 and bool((term <= 1e-18 * total).all()):
            break
    for _ in range(doublings):
        total = total @ total
        total /= total.sum(axis=1, keepdims=True)
    return min(1.0, float(total[0, -1]))


def mean_absorption(rates: Floats, reward: Floats | None = None) -> float:
    """Return the mean reward before absorption, from state 0.

    Parameters
    ----------
    rates
        Rates as in `Chain` [1/s], shape (states, states + 1).
    reward
        Reward per second in each state, shape (states,). By default 1, which yields the mean time [s].

    Returns
    -------
    float
        The mean reward, infinite if absorption is impossible.

    Notes
    -----
    States are eliminated one by one, without subtraction.

    References
    ----------
    Grassmann, Taksar, Heyman: Regenerative analysis and steady state distributions for Markov chains,
    Operations Research 33(5), 1985.
    """
    remaining = np.array(rates, dtype=float)
    np.fill_diagonal(remaining[:, :-1], 0.0)
    if reward is None:
        reward = np.ones(len(remaining))
    rewards = np.array(reward, dtype=float)
    for last in range(len(remaining) - 1, 0, -1):
        onward = np.append(remaining[last, :last], remaining[last, -1])
        through = remaining[:last, last] / onward.sum()
        remaining[:last, :last] += np.outer(through, onward[:-1])
        remaining[:last, -1] += through * onward[-1]
        rewards[:last] += through * rewards[last]
        np.fill_diagonal(remaining[:, :-1], 0.0)
    loss = float(remaining[0, -1])
    if loss == 0:
        return inf
    return float(rewards[0]) / loss


def birth_death(up: list[float], down: list[float], lethal: list[float]) -> Floats:
    """Return the rates of a chain whose state is the number of missing shards.

    Parameters
    ----------
    up
        Rate from state i to i + 1 [1/s]. The last one leads to loss.
    down
        Rate from state i + 1 to i [1/s], one entry fewer.
    lethal
        Part of each `up` that ends in loss directly, 0 to 1.

    Returns
    -------
    ndarray of float64
        Rates as in `Chain`, shape (states, states + 1).
    """
    last = len(up) - 1
    rates = np.zeros((last + 1, last + 2))
    rates[last, -1] = up[last]
    for i in range(last):
        rates[i, i + 1] = up[i] * (1 - lethal[i])
        rates[i, -1] += up[i] * lethal[i]
        rates[i + 1, i] = down[i]
    return rates


def is_chain_exact(system: System) -> bool:
    """Return True if `chain_of` is exact."""
    return system.placement != "crush"


def chain_of(system: System, levels: Levels | None = None) -> Chain:
    """Return the chain of a system whose drives do not age.

    Parameters
    ----------
    system
        The system.
    levels
        What `levels_of` returns for it, if that is known.

    Returns
    -------
    Chain
        The chain. It ignores bursts.

    Raises
    ------
    ValueError
        If drives age.

    Notes
    -----
    Clustered: a pool of n drives, each failing at rate λ. A drive is rebuilt at rate
    μ = 1 / (detection + transfer), each drive on its own ("parallel") or one at a time ("serial").
    Sharing one pace gives the same rate. The chain is exact for exponential times. Codes whose patterns
    matter have a state per pattern (`PatternChain`).

    Declustered: the state is the number of shards that the worst stripes miss. Any further failure hits
    such a stripe, and the worst stripes are rebuilt first (`levels_of`).

    CRUSH: a chain per drive of the failures that follow its own failure, with the mean times and rates of
    groups that are rebuilt in turn (`turn_levels`). An approximation.
    """
    if not system.lifetime.constant:
        raise ValueError("lifetime: got drives that age, wanted exponential lifetimes")
    if system.placement == "clustered":
        return _pool_chain(system)
    levels = levels or levels_of(system)
    up = [count * system.lifetime.rate_per_s for count in levels.reach]
    down = [1 / time_s for time_s in levels.times_s]
    rates = birth_death(up, down, levels.lethal)
    missing = np.arange(len(up))
    if system.placement == "declustered":
        return Chain(rates, missing)
    rates[0, 1:] /= system.drives
    return Chain(rates, missing, system.drives, exact=is_chain_exact(system))


def bytes_given_loss(system: System, levels: Levels | None = None) -> float:
    """Return the client bytes that a loss through independent failures destroys, on average [B].

    Parameters
    ----------
    system
        The system.
    levels
        What `levels_of` returns for it, if that is known.

    Returns
    -------
    float
        The client data of a pool, of the placement groups that the last failure meets at the last level, or
        of the stripes on all drives that have failed.
    """
    if system.placement == "clustered":
        return system.client_bytes_per_group
    if system.placement == "crush":
        levels = levels or levels_of(system)
        return levels.lost_groups * system.client_bytes_per_group
    code = system.code
    shared = prod(
        (code.width - j) / (system.drives - j) for j in range(1, code.tolerated + 1)
    )
    expected = code.k * system.drive_bytes * shared
    if system.stripes is None:
        return expected
    # Given that the drives share any stripe, they share at least one.
    stripe_bytes = system.client_bytes / system.stripes
    return expected / -expm1(-expected / stripe_bytes)


def _pool_chain(system: System) -> Chain:
    code = system.code
    rate = system.lifetime.rate_per_s
    mean_s = system.rebuild_s
    parallel = system.repair.policy == "parallel"
    if code.distances is not None:
        return _pattern_chain(code, rate, 1 / mean_s, system.pools, parallel=parallel)
    states = range(code.tolerated + 1)
    up = [(code.width - missing) * rate for missing in states]
    down = [(missing if parallel else 1) / mean_s for missing in states[1:]]
    lethal = _sector_losses(system, [1.0] * len(states))
    return Chain(birth_death(up, down, lethal), np.array(states), system.pools)


def levels_of(system: System) -> Levels:
    """Return the duration of each level of exposure, and the failures that lead to the next.

    Parameters
    ----------
    system
        The system.

    Returns
    -------
    Levels
        Durations and transitions.

    Notes
    -----
    Declustered: i overlapping failures share a fraction prod((n - j) / (N - j), j = 1 … i - 1) of a drive's
    stripes. One shard of each is rebuilt with the bandwidth of N - i survivors, and each rebuilt byte costs
    `repair_reads` bytes read and one written.
    """
    if system.placement == "crush":
        return turn_levels(system)
    if system.placement == "declustered":
        return _stripe_levels(system)
    levels = range(1, system.code.tolerated + 1)
    times_s = [system.rebuild_s] * len(levels)
    reach = [float(system.code.width - level) for level in levels]
    lethal = _sector_losses(system, [1.0] * (len(levels) + 1))
    return Levels(times_s, [float(system.drives), *reach], lethal)


def _stripe_levels(system: System) -> Levels:
    code = system.code
    repair = system.repair
    total = system.drives
    n = code.width
    times_s: list[float] = []
    reach = [float(total)]
    volumes = [1.0]
    for level in range(1, code.tolerated + 1):
        share = prod((n - j) / (total - j) for j in range(1, level))
        pace = repair.bytes_per_s * (total - level) / (code.repair_reads + 1)
        times_s.append(repair.detection_s + share * system.drive_bytes / pace)
        volumes.append(share)
        survivors = float(total - level)
        if system.stripes is not None:
            exposed = (
                system.stripes
                * comb(total - level, n - level)
                / comb(total, n)
                * (n - level)
            )
            survivors *= -expm1(-exposed / survivors)
        reach.append(survivors)
    return Levels(times_s, reach, _sector_losses(system, volumes))


def _sector_losses(system: System, volumes: list[float]) -> list[float]:
    """Return the probability, by level, that the next failure exposes a latent error and is lethal.

    `volumes` are the parts of a drive's bytes that each level exposes.
    """
    code = system.code
    chances = [0.0] * len(volumes)
    if system.sector_errors and code.tolerated:
        read = volumes[code.tolerated] * (code.width - code.tolerated)
        chances[code.tolerated - 1] = -expm1(-system.sector_errors * read)
    return chances


def _pattern_chain(
    code: Code, fail: float, mend: float, copies: float, *, parallel: bool
) -> PatternChain:
    """Return the chain of all decodable patterns of losses. Serial repair picks any missing shard."""
    assert code.distances is not None
    masks = np.flatnonzero(code.distances > 0).astype(np.int64)
    size = len(masks)
    index = np.full(1 << code.width, size, dtype=np.int64)
    index[masks] = np.arange(size)
    flips = masks[:, None] ^ (1 << np.arange(code.width))[None, :]
    missing = np.bitwise_count(masks).astype(np.int64)
    mending = mend * np.ones(size) if parallel else mend / np.maximum(missing, 1)
    rates = np.where(flips > masks[:, None], fail, mending[:, None])
    rows = np.repeat(np.arange(size), code.width)
    entries = (rates.ravel(), (rows, index[flips].ravel()))
    table = scipy.sparse.coo_matrix(entries, shape=(size, size + 1)).tocsr()
    return PatternChain(table, missing, copies)
