"""List the settings to rehearse a change with: op queues, mClock profiles and ``osd_max_backfills``."""

from dataclasses import dataclass
from typing import Final

from stripesim.models.generations import generation
from stripesim.models.qos import PROFILES, mclock_defaults
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import FaultsSpec

MCLOCK: Final = "mclock_scheduler"
# mClock of Kraken has no profiles.
_WITHOUT_PROFILES: Final = ("kraken",)
# Factors of osd_max_backfills to try with the cluster's own op queue.
_BACKFILL_FACTORS: Final = (2, 4)


@dataclass(frozen=True)
class Variant:
    """Settings that decide how recovery and clients share an OSD."""

    profile: str  #: mClock profile, or the name of another op queue
    max_backfills_count: int  #: ``osd_max_backfills``
    scenario: Scenario  #: The scenario with these settings
    #: True if the cluster changes to these settings without a restart of its OSDs
    needs_no_restart: bool


def with_own_queue(scenario: Scenario) -> Scenario:
    """Return a scenario that names its op queue and profile. The default is that of the release.

    `run` serves clients and recovery in order of arrival if the scenario names no queue. A cluster that
    exists has one, and it decides what clients notice.
    """
    cluster = scenario.cluster
    queue: str = cluster.op_queue
    if "op_queue" not in cluster.model_fields_set and cluster.mclock_profile is None:
        queue = generation(scenario.generation).op_queue
    profile = cluster.mclock_profile
    if queue == MCLOCK and profile is None:
        profile = mclock_defaults(scenario.generation).profile
    return scenario.with_cluster(op_queue=queue, mclock_profile=profile)


def variants_of(scenario: Scenario, max_backfills_count: int) -> list[Variant]:
    """Return a scenario's own settings first, then each other profile and queue.

    Parameters
    ----------
    scenario
        A scenario as `with_own_queue` returns it.
    max_backfills_count
        Its ``osd_max_backfills``.
    """
    cluster = scenario.cluster
    own = cluster.mclock_profile or cluster.op_queue
    variants = [Variant(own, max_backfills_count, scenario, True)]
    if cluster.op_queue == "fifo":
        # First come, first served is not a queue of Ceph: it has no profile to change.
        return variants
    if scenario.generation not in _WITHOUT_PROFILES:
        # The extremes first, so that equal results show that no profile matters.
        for profile in sorted(PROFILES, key=lambda name: name == "balanced"):
            changed = scenario.with_cluster(op_queue=MCLOCK, mclock_profile=profile)
            is_mclock = cluster.op_queue == MCLOCK
            variants.append(Variant(profile, max_backfills_count, changed, is_mclock))
    changed = scenario.with_cluster(op_queue="wpq", mclock_profile=None)
    is_wpq = cluster.op_queue == "wpq"
    variants.append(Variant("wpq", max_backfills_count, changed, is_wpq))
    return [variants[0], *(each for each in variants[1:] if each.profile != own)]


def more_backfills(own: Variant) -> list[Variant]:
    """Return the own settings with larger ``osd_max_backfills``."""
    variants = []
    for factor in _BACKFILL_FACTORS:
        count = factor * own.max_backfills_count
        scenario = own.scenario
        limits = scenario.faults or FaultsSpec()
        limits = limits.replaced(max_backfills=count)
        scenario = scenario.replaced(faults=limits)
        variants.append(Variant(own.profile, count, scenario, own.needs_no_restart))
    return variants
