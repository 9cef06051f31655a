"""Every row passes the audit, or is refused by the name of a check that short runs may fail.

The seeds draw scenarios of all schemes, releases, kinds of load and failures (`support/random_scenarios.py`).
``STRIPESIM_AUDIT_SEEDS=10000`` draws more, and ``STRIPESIM_AUDIT_SEED=17`` runs that one alone.
"""

from __future__ import annotations

import os
import re

import pytest

from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import load_rows_of, row_of, run_cells
from stripesim.sim.observe.audit import BOUND, LITTLE, RUN_LENGTH
from support.random_scenarios import random_scenario

SEEDS = int(os.environ.get("STRIPESIM_AUDIT_SEEDS", "300"))
ONE_SEED = os.environ.get("STRIPESIM_AUDIT_SEED")
PARTS = 10

# A short run may fail these, and serve more than the busiest resource sustains while a queue grows there.
# Everything else is a defect of the simulator, however short the run.
FAILED_BY_SHORT_RUNS = (RUN_LENGTH.name, LITTLE.name)
ABOVE_BOUND = re.compile(rf"{BOUND.name}: .*\(the bound of ")
# Completions per request in flight from which a run is not short: its edges are less than the tolerance.
ROUNDS_LONG = 40
# Unless single requests are slow. Rate × mean latency × window sums the latencies of requests that complete
# in the window. Requests that began before it add at most the longest latency for each in flight, and those
# that are left at its end lack as much at most. So a deviation of 5 % needs a latency of a twentieth of it.
EDGE_MAX = 0.05


# Right rows that checks refused once, by seed.
RIGHT = {
    1521: "steps that apply a write follow the reply of a request, and the end of the run",
    4994: "reads of copies that the reply does not need follow it, and the end of the run",
    5989: "deferred writes reach the disks after the last reply",
    6998: "one of two loops ends within the window of both",
    8884: "clients with objects on idle OSDs issue more requests than others",
}


def audited(seed):
    """Return the rows of a seed, each with the refusal of the audit."""
    scenario = random_scenario(seed)
    models = build_models(scenario)
    rows = []
    for cell, result in run_cells(scenario, "compiled", models, unchecked=True):
        rows += load_rows_of(scenario, cell, result)
        rows.append(row_of(scenario, cell, result))
    return rows


def edge_of(numbers):
    """Return the longest latency as a part of the window."""
    window_s = numbers.window_end_s - numbers.window_start_s
    return numbers.latency_max_ns / 1e9 / window_s


@pytest.mark.parametrize("part", range(1 if ONE_SEED else PARTS))
def test_a_row_passes_or_is_refused_by_name(part):
    seeds = [int(ONE_SEED)] if ONE_SEED else range(part, SEEDS, PARTS)
    for seed in seeds:
        for row in audited(seed):
            numbers = row.numbers
            shown = row.as_dict()
            if numbers.refused is None:
                assert row.refusal() is None
                assert shown["iops"] == numbers.iops
                continue
            where = f"STRIPESIM_AUDIT_SEED={seed}: {row.refusal()}"
            is_above_bound = ABOVE_BOUND.match(numbers.refused)
            assert is_above_bound or numbers.refused.startswith(FAILED_BY_SHORT_RUNS), (
                where
            )
            assert shown["iops"] is None, where
            assert shown["latency_mean_ns"] is None, where
            assert shown["refused"] == numbers.refused
            assert numbers.iops is not None
            assert row.as_dict(unchecked=True)["iops"] == numbers.iops
            in_flight = numbers.iops * (numbers.latency_mean_ns or 0.0) / 1e9
            is_short = numbers.requests < ROUNDS_LONG * max(1.0, in_flight)
            assert is_short or edge_of(numbers) > EDGE_MAX, where


@pytest.mark.parametrize("seed", RIGHT, ids=RIGHT.get)
def test_a_right_row_is_not_refused(seed):
    assert [row.refusal() for row in audited(seed) if row.refusal()] == []
