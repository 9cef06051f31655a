"""Cores of OSDs: pinned ones and a limit against the utilisation law, and what a limit does to latencies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stripesim.models.problems import ScenarioError
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import Scenario, parse_scenario
from stripesim.sim.run import Run


def one_osd(engine: str = "compiled", queue_depth: int = 64, **cluster: Any) -> Run:
    """Read 4 KiB from one OSD, whose drive takes no time, with cores that slow each other down in no way."""
    scenario = Scenario.model_validate(
        {
            "name": "one OSD",
            "schemes": ("rep:1",),
            "cluster": {
                "hosts": 1,
                "osds_per_host": 1,
                "pg_num": 128,
                "drive_numbers": {"read_base_ns": 1, "read_ns_per_byte": 0},
                **cluster,
            },
            "workload": {
                "ops": ("read",),
                "patterns": ("rand",),
                "queue_depth": queue_depth,
                "requests": 20_000,
            },
            "client": {"place": "own", "unlimited": True},
        }
    )
    models = build_models(scenario)
    threads = replace(models.threads, hand_over_ns=0)
    cpu = replace(models.cpu, paired_slowdown_fraction=0)
    (cell,) = cells(scenario)
    models = replace(models, cpu=cpu, threads=threads)
    return run_cell(scenario, cell, engine, models, unchecked=True)


def test_pinned_cores_bound_the_rate_of_an_osd() -> None:
    for cores in (1, 2):
        row = one_osd(cores_per_osd=cores).row
        # Reads need processors alone: rate = cores / processor time of a read.
        assert row.iops * row.cpu_ns_per_op / 1e9 == pytest.approx(cores, rel=0.03)
        assert row.bottleneck == "osd.cpu"


def test_a_limit_bounds_the_rate_as_cores_do_but_stops_the_osd_for_most_of_a_period() -> (
    None
):
    pinned = one_osd(cores_per_osd=2).row
    limited = one_osd(cpu_limit_per_osd=2.0).row
    assert limited.iops == pytest.approx(pinned.iops, rel=0.1)
    assert limited.bottleneck == "osd.cpu"
    # 64 reads in flight share two cores: each takes 32 times its processor time, about 2 ms.
    assert pinned.latency_p99_ns < 5e6
    # Under the limit, more than two threads run at a time, use up 200 ms early, and then stop.
    assert limited.latency_p99_ns > 20e6
    assert limited.latency_p50_ns < pinned.latency_p50_ns


def test_a_run_that_a_limit_stops_lasts_ten_of_its_periods() -> None:
    # 20,000 reads at 2 cores take 0.6 s.
    limited = one_osd(cpu_limit_per_osd=2.0).row
    assert limited.requests >= 40_000
    assert limited.simulated_s > 0.9
    assert one_osd(cores_per_osd=2).row.simulated_s < 0.7


def test_both_engines_stop_an_osd_at_the_same_nanosecond() -> None:
    rows = [
        one_osd(engine, cpu_limit_per_osd=0.5).row for engine in ("compiled", "simpy")
    ]
    assert rows[0].iops == rows[1].iops
    assert rows[0].latency_p99_ns == rows[1].latency_p99_ns


def test_a_limit_that_is_never_reached_changes_nothing() -> None:
    limited = one_osd(queue_depth=1, cpu_limit_per_osd=2.0).row
    assert limited.latency_mean_ns == one_osd(queue_depth=1).row.latency_mean_ns


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        # 6 OSDs × 22 cores = 132 of 128.
        ("cores_per_osd = 22", "at most 21:"),
        ("cpu_limit_per_osd = 22.5", "at most 21.33"),
        (
            "cores_per_osd = 2\ncpu_limit_per_osd = 4",
            "at most cluster.cores_per_osd (2)",
        ),
    ],
)
def test_contradicting_cores_are_refused(keys: str, said: str) -> None:
    text = f'schemes = ["rep:3"]\n[cluster]\n{keys}\n[workload]\nrequests = 100\n'
    with pytest.raises(ScenarioError, match="per_osd") as caught:
        parse_scenario(text)
    assert said in str(caught.value)


def test_clients_on_the_hosts_keep_a_core() -> None:
    text = 'schemes = ["rep:3"]\n[cluster]\nhosts = 3\nosds_per_host = 4\n'
    text += "cores_per_host = 8\ncores_per_osd = 2\n"
    text += '[workload]\nrequests = 100\n[client]\nplace = "osd-hosts"\n'
    with pytest.raises(ScenarioError, match="at most 1: a host has 8 cores"):
        parse_scenario(text)
