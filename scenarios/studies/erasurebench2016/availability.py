"""Figure 4: the share of an archive's files that can be read when nodes have been killed."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from stripesim.scenarios.studies.erasurebench2016.codes import StripeCode, survival
from stripesim.sim.systems.kv_proxy.plan import draw_slots, even_owners

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def expected(code: StripeCode, keys_of_files: Ints, *, nodes: int, killed: Sequence[int]) -> Floats:
    """Exact expectation of the share of readable files, at each number of nodes killed.

    A file is readable if all of its rows of keys are decodable. Rows are placed independently of each other,
    so a file of g rows is readable with the g-th power of `codes.survival`. That takes any set of distinct
    nodes for equally likely; the store's slots do nearly so.
    """
    return np.array([(survival(code, nodes, count) ** keys_of_files).mean() for count in killed])


def deaths(code: StripeCode, nodes_of_keys: Ints, order: Ints) -> Ints:
    """Number of kills at which each row of keys becomes unreadable.

    ``nodes_of_keys`` has the node of each key, shape (rows, width); ``order`` says when each node is killed:
    1 for the first.
    """
    when = order[nodes_of_keys]
    by_time = np.argsort(when, axis=1, kind="stable")
    lost = np.bitwise_or.accumulate(1 << by_time, axis=1)
    fatal = ~code.survives[lost]
    # Keys that share a node die together; the first set that is fatal has the same time as the whole.
    first = fatal.argmax(axis=1)
    return np.take_along_axis(np.take_along_axis(when, by_time, axis=1), first[:, None], axis=1)[:, 0]


def simulated(
    code: StripeCode, files_of_keys: Ints, *, nodes: int, killed: Sequence[int], repeats: int, seed: int
) -> Floats:
    """Share of readable files in seeded repetitions of placement and kills, shape (repeats, len(killed)).

    ``files_of_keys`` is the file of each row of keys, ascending from 0 without gaps. Each position of the
    stripe has a run of the store's hash slots of its own, and a key's slot is drawn from its run; slots are
    dealt evenly to the nodes. Kills are uniform and pile up.
    """
    first = np.flatnonzero(np.diff(files_of_keys, prepend=-1))
    owners = even_owners(nodes)
    shares = np.empty((repeats, len(killed)))
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        slots = draw_slots(len(files_of_keys), code.width, rng)
        order = 1 + rng.permutation(nodes)
        files = np.minimum.reduceat(deaths(code, owners[slots], order), first)
        shares[repeat] = [(files > count).mean() for count in killed]
    return shares
