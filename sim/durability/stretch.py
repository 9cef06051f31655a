"""The part of time for which placement groups of a cluster in stretch mode serve no clients."""

from itertools import product

import numpy as np
import numpy.typing as npt

from stripesim.sim.durability.system import Ints, System

#: Shards that a group needs while both sites are up, and while one is away.
_HEALTHY_LEAST = 2
_DEGRADED_LEAST = 1


def stretched_unavailability(system: System, away: float) -> float:
    """Return the part of time and placement groups that serve no clients, 0 to 1.

    Parameters
    ----------
    system
        A system with the site of each drive among its `units`.
    away
        Part of time for which a shard is away by itself.

    Notes
    -----
    A group serves with two shards and one at each site or, while a whole site is down, with one. Shards are
    away independently. A burst adds its rate, times the time that a struck unit is down, times the part of
    groups that the unit stops, which shards that are away by themselves add to.

    References
    ----------
    Ceph v16.2.15, ``src/osd/PeeringState.cc`` (``stretch_set_can_peer``), ``src/mon/OSDMonitor.cc``
    (``trigger_degraded_stretch_mode``).
    """
    sites = system.units["site"][system.layout]
    share = _stopped(sites, np.zeros_like(sites, dtype=np.bool_), away)
    alone = share
    for burst in system.bursts:
        units = system.units.get(burst.unit)
        if not burst.down_s or units is None:
            continue
        count = int(units.max()) + 1
        more = 0.0
        for unit in range(count):
            struck = units[system.layout] == unit
            more += _stopped(sites, struck, away, site_is_down=burst.unit == "site")
        while_down = more / count - alone
        share += min(1.0, burst.rate_per_s * burst.down_s) * while_down
    return min(1.0, share)


def _stopped(
    sites: Ints,
    struck: npt.NDArray[np.bool_],
    away: float,
    *,
    site_is_down: bool = False,
) -> float:
    """Return the mean part of groups that serve no clients while some of their shards are struck."""
    least = _DEGRADED_LEAST if site_is_down else _HEALTHY_LEAST
    stopped = 0.0
    for pattern in product((False, True), repeat=sites.shape[1]):
        probability = np.prod(np.where(pattern, away, 1 - away))
        present = ~struck & ~np.array(pattern)
        serves = present.sum(axis=1) >= least
        if not site_is_down:
            for site in range(int(sites.max()) + 1):
                serves &= (present & (sites == site)).any(axis=1)
        stopped += float(probability) * float(1 - serves.mean())
    return stopped
