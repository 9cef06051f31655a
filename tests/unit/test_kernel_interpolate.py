"""Costs of a Reed-Solomon code that was never timed come from those that were, and say how well."""

import pytest

from stripesim.calibration.kernels.store import default_table
from stripesim.models.kernel.interpolate import interpolated
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import kernel_warnings
from stripesim.scenarios.schema.scenario import parse_scenario
from support.messages import states


@pytest.mark.parametrize("scheme", ["rs:5,2", "rs:20,4", "rs:4,3"])
def test_any_code_has_a_cost_near_its_neighbours(scheme):
    table = default_table()
    found = interpolated(table, scheme)
    timed = [
        table.cost(scheme=name, op="encode").duration_ns(65536)
        for name in table.schemes()
        if name.startswith("rs:")
    ]
    encode_ns = found.table.cost(scheme=scheme, op="encode").duration_ns(65536)
    assert 0.5 * min(timed) < encode_ns < 2 * max(timed)
    assert found.table.decode_ns(65536, scheme=scheme, erasures=1) > 0
    # The median of leaving each timed code out; the worst is the code of one parity, which is a plain XOR.
    assert found.error_median < 0.1 < found.error_max


def test_timed_codes_and_other_kinds_are_not_interpolated():
    assert interpolated(default_table(), "rs:6,3") is None
    assert interpolated(default_table(), "clay:5,2,6") is None


def test_a_scenario_with_such_a_code_runs_and_is_warned_of():
    scenario = parse_scenario(
        'schemes = ["rs:5,2"]\n[cluster]\nhosts = 8\nosds_per_host = 1\n[workload]\nrequests = 1\n'
    )
    assert build_models(scenario).encode_ns("rs:5,2", 20480) > 0
    (line,) = kernel_warnings(scenario)
    assert states(line, "rs:5,2: ... 16")
