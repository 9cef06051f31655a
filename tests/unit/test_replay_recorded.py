"""A replay's row carries what the trace itself recorded."""

import pytest

from stripesim.scenarios.run.replay import recorded_latency
from stripesim.scenarios.schema.loader import parse_scenario

LINES = """128166372003061629,host,0,Read,0,4096,1000
128166372003071629,host,0,Write,8192,4096,3000
128166372003081629,host,0,Read,4096,4096,8000
"""
SCENARIO = """
schemes = ["rep:3"]
[workload]
kind = "trace"
trace = "t.csv"
"""


def test_the_recorded_latency_is_that_of_the_trace(tmp_path):
    (tmp_path / "t.csv").write_text(LINES)
    scenario = recorded_latency(parse_scenario(SCENARIO, label="s.toml", base_dir=tmp_path))
    # MSR gives response times in units of 100 ns.
    assert scenario["recorded_latency_mean_ns"] == pytest.approx(400_000)
    assert scenario["recorded_latency_p50_ns"] == pytest.approx(300_000)


def test_only_the_requests_that_are_replayed_count(tmp_path):
    (tmp_path / "t.csv").write_text(LINES)
    scenario = recorded_latency(
        parse_scenario(SCENARIO + "requests = 2\n", label="s.toml", base_dir=tmp_path)
    )
    assert scenario["recorded_latency_mean_ns"] == pytest.approx(200_000)
