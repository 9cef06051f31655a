"""Write the Ceph commands that make planned changes."""

from collections.abc import Mapping, Sequence
from typing import Final

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.answers.rehearse.variants import MCLOCK
from stripesim.scenarios.cells.changes import drained_hosts, sets_norebalance
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import (
    CRUSH_TYPES,
    domain_type,
    grown_map_of,
    osd_hosts,
)
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.tables import ChangeSpec

#: Stripe unit of a pool whose profile states none (osd_pool_erasure_code_stripe_unit) [B].
_STRIPE_UNIT_BYTES: Final = 4096
#: Family of codes → plugin, unless it is Ceph's default, and names of the numbers.
_PLUGINS: Final[Mapping[str, tuple[Sequence[str], str]]] = {
    "rs": ((), "km"),
    "clay": (("plugin=clay",), "kmd"),
    "shec": (("plugin=shec",), "kmc"),
    "lrc-ceph": (("plugin=lrc",), "kml"),
}


def commands_of(scenario: Scenario, index: int) -> list[str]:
    """Return the commands of a change, in order.

    Parameters
    ----------
    scenario
        The scenario.
    index
        Number of the change.

    Notes
    -----
    Names of hosts and devices that the scenario cannot know are capital words to replace.
    """
    change = scenario.changes[index]
    if change.kind == "restart":
        return _restart(scenario, change)
    if change.kind == "scheme":
        return _copy(scenario, change)
    commands = _moving(scenario, index)
    if not sets_norebalance(change):
        return commands
    return ["ceph osd set norebalance", *commands, "ceph osd unset norebalance"]


def _moving(scenario: Scenario, index: int) -> list[str]:
    """Return the commands of a change that moves data within the pool."""
    change = scenario.changes[index]
    osds = change.osds or ()
    if change.kind in ("out", "in"):
        return [f"ceph osd {change.kind} {' '.join(map(str, osds))}"]
    if change.kind == "weight":
        return [f"ceph osd crush reweight osd.{osd} {change.weight:g}" for osd in osds]
    if change.kind == "remove":
        return _drain(scenario, index)
    return _add(scenario, index)


def profile_commands(
    scenario: Scenario, profile: str, max_backfills: int | None
) -> list[str]:
    """Return the commands that change a cluster's settings while it runs.

    Parameters
    ----------
    scenario
        The scenario with the cluster's own settings.
    profile
        mClock profile, or name of the own op queue.
    max_backfills
        ``osd_max_backfills`` [count]. None: as it is.
    """
    commands = []
    is_mclock = scenario.cluster.op_queue == MCLOCK
    if is_mclock and profile != scenario.cluster.mclock_profile:
        commands.append(f"ceph config set osd osd_mclock_profile {profile}")
    if max_backfills is not None:
        if is_mclock:
            # mClock ignores the option otherwise (since 17.2.6).
            commands.append(
                "ceph config set osd osd_mclock_override_recovery_settings true"
            )
        commands.append(f"ceph config set osd osd_max_backfills {max_backfills}")
    return commands


def _drain(scenario: Scenario, index: int) -> list[str]:
    drained = drained_hosts(scenario, index)
    hosts = osd_hosts(scenario).tolist()
    return [
        f"ceph osd crush reweight osd.{osd} 0"
        for osd, host in enumerate(hosts)
        if host in drained
    ]


def _add(scenario: Scenario, index: int) -> list[str]:
    commands = []
    for number, osds in enumerate(grown_map_of(scenario).new_osds[index]):
        host = f"HOST{number}"
        commands.append(f"ceph orch host add {host} ADDRESS{number}")
        commands += [
            f"ceph orch daemon add osd {host}:DEVICE{device}  # osd.{osd}"
            for device, osd in enumerate(osds)
        ]
    weight = scenario.changes[index].weight
    if weight is None:
        return commands
    option = "osd_crush_initial_weight"
    return [
        f"ceph config set osd {option} {weight:g}",
        *commands,
        f"ceph config rm osd {option}",
    ]


def _restart(scenario: Scenario, change: ChangeSpec) -> list[str]:
    """Return the commands for one host after another. The cluster is clean again before the next."""
    steps = [
        "ceph osd ok-to-stop $(ceph osd ls-tree HOST)",
        "systemctl stop ceph.target && reboot  # on HOST",
        "ceph -s  # wait until all PGs are active+clean, then the next HOST",
    ]
    if not change.noout:
        return steps
    return ["ceph osd set noout", *steps, "ceph osd unset noout"]


def _copy(scenario: Scenario, change: ChangeSpec) -> list[str]:
    """Return the commands that create the new pool of a copy."""
    assert change.scheme is not None, "checked by change_rules"
    code = parse_scheme(change.scheme)
    domain = domain_type(scenario, code) if change.crush_rule is None else ""
    bucket = CRUSH_TYPES.get(domain, domain)
    rule = "" if change.crush_rule is None else f" {change.crush_rule}"
    pg_num = scenario.cluster.pg_num
    if code.kind == "replicated":
        commands = []
        if bucket not in ("", "host"):
            rule = " NEW-RULE"
            commands.append(
                f"ceph osd crush rule create-replicated NEW-RULE default {bucket}"
            )
        return [
            *commands,
            f"ceph osd pool create NEW {pg_num} {pg_num} replicated{rule}",
            f"ceph osd pool set NEW size {code.width}",
        ]
    profile = _profile_keys(change.scheme)
    if profile is None:
        return [f"# Ceph has no plugin for {change.scheme}, so no command creates NEW"]
    is_optimised = build_models(scenario).ec.optimised
    unit_bytes = scenario.cluster.stripe_unit_bytes
    # Releases with optimised pools may have another default.
    if is_optimised or unit_bytes != _STRIPE_UNIT_BYTES:
        profile += f" stripe_unit={unit_bytes}"
    if bucket not in ("", "host"):
        profile += f" crush-failure-domain={bucket}"
    commands = [
        f"ceph osd erasure-code-profile set NEW-PROFILE {profile}",
        f"ceph osd pool create NEW {pg_num} {pg_num} erasure NEW-PROFILE{rule}",
        "ceph osd pool set NEW allow_ec_overwrites true",
    ]
    if is_optimised:
        commands.append("ceph osd pool set NEW allow_ec_optimizations true")
    return commands


def _profile_keys(scheme: str) -> str | None:
    """Return the keys of an erasure code profile, or None if no plugin has the code.

    >>> _profile_keys("rs:4,2"), _profile_keys("clay:4,2,5")
    ('k=4 m=2', 'plugin=clay k=4 m=2 d=5')
    """
    family, _, numbers = scheme.partition(":")
    if family not in _PLUGINS:
        return None
    plugin, names = _PLUGINS[family]
    keys = [f"{name}={number}" for name, number in zip(names, numbers.split(","), strict=True)]  # fmt: skip
    return " ".join([*plugin, *keys])
