"""Restart hosts one after another: degraded objects, duration and clients, from one simulated restart.

`hosts` counts what the restart of each host affects, and `short_restart` simulates one of them.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from stripesim.calibration.ledger.duration_errors import duration_interval
from stripesim.scenarios.answers.rehearse.client_effect import (
    NO_CLIENTS,
    WeightedRequests,
    clients_between,
    clients_during,
    described,
    requests_during,
)
from stripesim.scenarios.answers.rehearse.pool_copy import DURATIONS
from stripesim.scenarios.answers.rehearse.restarts.hosts import (
    ClusterThen,
    RestartedHosts,
    moved_when_out,
    restarted_hosts,
)
from stripesim.scenarios.answers.rehearse.restarts.moments import ShortRestart
from stripesim.scenarios.answers.rehearse.restarts.short_restart import simulate_short
from stripesim.scenarios.answers.rehearse.samples import Sample
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.sim.ceph.failures.groups import State
from stripesim.sim.ceph.failures.results.recovery_results import MOVED_COUNTERS
from stripesim.sim.ceph.pool import Pool

#: Downtime of a host that restarts, unless the scenario states it [s]: an assumption.
DOWNTIME_S: Final = 300.0
# What a rehearsed restart rests on.
_ASSUMPTIONS: Final = (
    "Hosts restart one at a time, each once all placement groups are clean. Daemons stop in order, so peers "
    "know at once.",
    "The host with most shards is simulated, down for some seconds while clients write to a part of the "
    "objects. Others take as long in proportion to their shards.",
    "An object that clients wrote meanwhile is recovered whole. Ceph since Octopus sends only the changed "
    "parts of a replicated object that recovers by the log, so it is faster where writes are few and small.",
    "The interval takes downtimes as stated, and the time after them as uncertain as the timed changes of "
    "study changes, which move data. No restart was timed.",
)
# Further assumptions with clients of gateways.
_OF_GATEWAYS: Final = (
    "The gateways of a host stop with it, and are not drained before. Requests to them wait for "
    "{failover_s:g} s, until three checks of a load balancer have failed. Then their clients use the next "
    "gateway, and the old one as soon as it is back.",
    "Each PUT stores a new object. Clients update the index shards that they use again and again, so a "
    "longer downtime has more objects to recover, but hardly more shards of the index.",
)


def restart_assumptions(scenario: Scenario) -> list[str]:
    """List the assumptions of a rehearsed restart."""
    gateway = build_models(scenario).gateway
    if gateway is None:
        return list(_ASSUMPTIONS)
    failover_s = gateway.failover_ns / 1e9
    return [
        *_ASSUMPTIONS,
        *(words.format(failover_s=failover_s) for words in _OF_GATEWAYS),
    ]


def rehearse_restart(
    scenario: Scenario, index: int = 0, *, engine: str
) -> tuple[dict[str, Any], list[str]]:
    """Describe a rolling restart, on the cluster as it is after the changes before it.

    Parameters
    ----------
    scenario
        The scenario.
    index
        Number of the change, whose kind is restart.
    engine
        Name of the engine.

    Returns
    -------
    row
        The change, in the form of all others, with ``hosts``, ``degraded_objects``, ``inactive_pgs`` and the
        clients' numbers while the host is down and while objects recover.
    warnings
        What an operator must know first.

    Notes
    -----
    The host is down for :math:`sT` instead of :math:`T`, and logs hold a share :math:`s` of their entries.
    Clients write to a share :math:`q` of the objects. If they write each object less than a few times
    meanwhile, :math:`q = s`, so that the share of objects written stays the same. If they write all of them
    anyway, :math:`q` may be larger. Recovery in :math:`m` simulated seconds takes :math:`m / q` in the
    whole. A host with another number of shards takes proportionally longer.
    """
    change = scenario.changes[index]
    _check_workload(scenario)
    downtime_s = change.downtime_s or DOWNTIME_S
    cluster = ClusterThen.before(scenario, index)
    restarted = restarted_hosts(scenario, index, cluster)
    busiest = restarted.busiest
    if not restarted.shards_counts[busiest]:
        got = "hosts without shards of the pool"
        wanted = "a host that holds some by then"
        raise scenario.problem(f"changes.{index}.hosts", got, wanted)
    restart = simulate_short(cluster, restarted, downtime_s, engine)
    rows = _host_rows(restarted, busiest, restart, downtime_s)
    moved, out_warnings = moved_when_out(cluster, change, restarted, downtime_s)
    durations: dict[str, float | None] = dict.fromkeys(DURATIONS)
    if not out_warnings:
        durations = _durations_s(rows, downtime_s)
    # Restarts of the busiest host that recover as much as those of all hosts.
    restarts_count = sum(restarted.shards_counts) / restarted.shards_counts[busiest]
    row: dict[str, Any] = {
        "kind": change.kind,
        **moved,
        "bytes_moved": round(restarts_count * restart.whole("rebuilt_bytes")),
        **_recovery_bytes(restart, restarts_count),
        **durations,
        "peak_used_ratio": None,
        "full_ratio_reached": None,
        "fullest_osd": None,
        "downtime_s": downtime_s,
        "noout": change.noout,
        "hosts": rows,
        "degraded_objects": sum(row["degraded_objects"] for row in rows),
        "inactive_pgs": max(restarted.inactive_counts),
        "profiles": [
            {
                "profile": scenario.cluster.mclock_profile or scenario.cluster.op_queue,
                **durations,
                **_clients(scenario, restart, downtime_s, rows[busiest]["duration_s"]),
            }
        ],
    }
    warnings = [
        *out_warnings,
        *_gateway_warnings(cluster.pool, restarted, downtime_s),
        *_warnings(restarted, restart, downtime_s),
    ]
    return row, [f"change {index} (restart): {line}" for line in warnings]


def _check_workload(scenario: Scenario) -> None:
    """Refuse loads that a restart does not simulate."""
    if scenario.workload.kind == "trace":
        wanted = "closed, open or s3, with changes of kind restart"
        raise scenario.problem("workload.kind", scenario.workload.kind, wanted)


def _recovery_bytes(restart: ShortRestart, restarts_count: float) -> dict[str, int]:
    """Return the bytes that a number of equal restarts read, write and send to recover [B].

    Peering moves the same bytes after any downtime.
    """
    peering = restart.recovery_parts["peering"]
    moved = {
        counter: round(restarts_count * (restart.whole(counter) + peering[counter]))
        for counter in MOVED_COUNTERS
    }
    return {**moved, "between_hosts_bytes": moved["private_net_bytes"]}


def _host_rows(
    restarted: RestartedHosts, busiest: int, restart: ShortRestart, downtime_s: float
) -> list[dict[str, Any]]:
    """Return the effects of the restart of each host, in proportion to its shards."""
    fixed_s = restart.clean_s - restart.back_s - restart.moving_s
    moving_s = restart.moving_s / restart.recovered_share
    rows = []
    for number, host in enumerate(restarted.hosts):
        share = restarted.shards_counts[number] / max(
            1, restarted.shards_counts[busiest]
        )
        duration_s = downtime_s + fixed_s + share * moving_s
        rows.append(
            {
                "host": host,
                "pgs": restarted.groups_counts[number],
                "inactive_pgs": restarted.inactive_counts[number],
                "degraded_objects": round(share * restart.objects_count),
                "duration_s": duration_s if math.isfinite(duration_s) else None,
            }
        )
    return rows


def _durations_s(
    rows: Sequence[Mapping[str, Any]], downtime_s: float
) -> dict[str, float | None]:
    """Return the duration of all restarts, and its interval [s]. Stated downtimes have no error."""
    if any(row["duration_s"] is None for row in rows):
        return dict.fromkeys(DURATIONS)
    duration_s = sum(row["duration_s"] for row in rows)
    down_s = len(rows) * downtime_s
    low_s, high_s = duration_interval(duration_s - down_s)
    ends = (duration_s, down_s + low_s, down_s + high_s)
    return dict(zip(DURATIONS, ends, strict=True))


def _clients(
    scenario: Scenario,
    restart: ShortRestart,
    downtime_s: float,
    duration_s: float | None,
) -> dict[str, Any]:
    """Return the clients' numbers before, during and after the restart of one host.

    `duration_s` is that of downtime and recovery together, None if the cluster does not become clean. As in
    all rehearsals, requests that wait for peering count once. Requests with the host down represent the rest
    of the downtime, requests while objects recover the rest of the recovery.
    """
    names = ("before", "down", "recovering", "after")
    if duration_s is None:
        return {**NO_CLIENTS, **{name: dict(NO_CLIENTS) for name in names}}
    sample = _sample(scenario, restart)
    phases = ((0, downtime_s), (1, duration_s - downtime_s))
    requests = [requests_during(sample, *phase)[0] for phase in phases]
    during = dict(NO_CLIENTS)
    known = [each for each in requests if each is not None]
    if known:
        together = WeightedRequests(
            np.concatenate([each.latencies_ns for each in known]),
            np.concatenate([each.completed_s for each in known]),
            np.concatenate([each.weights for each in known]),
        )
        during = described(together, duration_s)
    end_s = sample.end_ns / 1e9
    return {
        **during,
        "before": clients_between(sample, 0.0, restart.stop_s),
        "down": clients_during(sample, *phases[0]),
        "recovering": clients_during(sample, *phases[1]),
        "after": clients_between(sample, restart.clean_s, end_s),
    }


def _sample(scenario: Scenario, restart: ShortRestart) -> Sample:
    """Return a restart as two changes: the host stops, and returns."""
    result = restart.result
    assert result.timeline is not None
    assert result.blocked is not None
    moments = (
        (restart.stop_s, restart.back_s, restart.peered_s, restart.back_s),
        (restart.back_s, restart.clean_s, restart.first_s, restart.last_s),
    )
    rows = [
        {
            "at_s": at_s,
            "clean_s": clean_s,
            "backfills": {"pg": [0], "start_s": [start_s], "end_s": [end_s]},
        }
        for at_s, clean_s, start_s, end_s in moments
    ]
    return Sample(
        group_objects_count=0,
        objects_ratio=1 / restart.recovered_share,
        rows=rows,
        fill=None,
        history={},
        pg_states=result.timeline["pg_states"],
        recovery=result.timeline["recovery"],
        requested=result.requested,
        blocked=result.blocked,
        end_ns=result.engine_run.end_ns,
        alone_ns=0,
        has_load=True,
        in_flight_count=scenario.in_flight_count,
    )


def _gateway_warnings(
    pool: Pool, restarted: RestartedHosts, downtime_s: float
) -> list[str]:
    """Warn of a host that has all gateways."""
    gateways = pool.cluster.gateways
    if gateways is None or max(restarted.gateways_counts) < gateways.count:
        return []
    host = restarted.hosts[int(np.argmax(restarted.gateways_counts))]
    return [
        f"while host {host} is down, no gateway serves clients for {downtime_s:g} s: put one on another host "
        "(cluster.gateways.count)"
    ]


def _warnings(
    restarted: RestartedHosts, restart: ShortRestart, downtime_s: float
) -> list[str]:
    """Return warnings for the operator before the restart."""
    warnings = []
    worst = int(np.argmax(restarted.inactive_counts))
    if restarted.inactive_counts[worst]:
        warnings.append(
            f"while host {restarted.hosts[worst]} is down, {restarted.inactive_counts[worst]} placement "
            f"groups have fewer than min_size members and serve no clients for {downtime_s:g} s"
        )
    if not math.isfinite(restart.clean_s):
        warnings.append("the cluster does not become clean")
    assert restart.result.timeline is not None
    if any(restart.result.timeline["pg_states"].get(State.BACKFILLING, ())):
        warnings.append(
            "clients write more meanwhile than the logs of placement groups hold, so the host "
            "comes back by backfill: a shorter downtime recovers by the log"
        )
    return warnings
