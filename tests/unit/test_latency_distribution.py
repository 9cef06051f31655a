"""The distribution of latencies of a run: quantiles, JSON and figure."""

import numpy as np
import pytest

from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.scenarios.show.figures.latencies import draw_latencies
from stripesim.sim.observe.window import QUANTILES


@pytest.fixture(scope="module")
def result():
    """Run two schemes for a few hundred requests."""
    sets = {"workload.requests": 400, "workload.ops": ["write"]}
    return run_scenario(load_scenario("quickstart", sets=sets), costs=False)


def test_quantiles_rise_and_agree_with_the_row(result):
    for one, row in zip(result.latencies, result.rows.to_dicts(), strict=True):
        assert one["scheme"] == row["scheme"]
        times_ns = one["latency_ns"]
        assert len(times_ns) == len(one["fractions"]) == len(QUANTILES)
        assert (np.diff(times_ns) >= 0).all()
        # The same requests as those of the row.
        median_ns = times_ns[one["fractions"].index(0.5)]
        p99_ns = times_ns[one["fractions"].index(0.99)]
        assert median_ns == pytest.approx(row["latency_p50_ns"], rel=0.02)
        assert p99_ns == pytest.approx(row["latency_p99_ns"], rel=0.02)


def test_quantiles_are_in_the_json(result):
    assert result.to_json()["latencies"] == result.latencies


def test_the_figure_has_a_line_for_each_scheme_from_all_requests_to_the_slowest(result):
    figures = draw_latencies(result.latencies)
    (stem,) = figures
    assert stem.startswith("latency-rand-write")
    (axes,) = figures[stem].figure.axes
    assert len(axes.lines) == len(result.rows)
    for line, one in zip(axes.lines, result.latencies, strict=True):
        slower = np.asarray(line.get_ydata())
        assert slower[0] == 1
        assert np.asarray(line.get_xdata())[0] == one["latency_ns"][0] / 1e6
