"""The row of a replay includes the latencies recorded in the trace."""

import json
import sys

import pytest

from stripesim.__main__ import main
from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.answers.run.words import recorded_lines
from stripesim.scenarios.answers.sweep.plan import plan_sweep
from stripesim.scenarios.answers.sweep.run import run_sweep
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.replay import recorded_latency, replay_of
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import parse_scenario
from support.messages import states

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
    scenario = recorded_latency(
        parse_scenario(SCENARIO, label="s.toml", base_dir=tmp_path)
    )
    # MSR gives response times in units of 100 ns.
    assert scenario["recorded_latency_mean_ns"] == pytest.approx(400_000)
    assert scenario["recorded_latency_p50_ns"] == pytest.approx(300_000)


def test_only_the_requests_that_are_replayed_count(tmp_path):
    (tmp_path / "t.csv").write_text(LINES)
    scenario = recorded_latency(
        parse_scenario(SCENARIO + "requests = 2\n", label="s.toml", base_dir=tmp_path)
    )
    assert scenario["recorded_latency_mean_ns"] == pytest.approx(200_000)


def test_a_closed_replay_keeps_the_depth_of_all_clients_together(tmp_path):
    # Two devices, one for each of two clients, which keep two reads in flight together.
    rows = [f"{n},0,4096,false,d{n % 2}\n" for n in range(2000)]
    heading = "issue_ns,offset_bytes,length_bytes,is_write,device\n"
    (tmp_path / "t.csv").write_text(heading + "".join(rows))
    keys = 'replay = "closed"\nqueue_depth = 2\nclients = 2\n'
    scenario = parse_scenario(SCENARIO + keys, base_dir=tmp_path)
    (row,) = run_scenario(scenario).rows.to_dicts()
    in_flight = row["iops"] * row["latency_mean_ns"] / 1e9
    assert in_flight == pytest.approx(2, rel=0.01)


def test_a_trace_longer_than_a_run_may_be_is_refused(tmp_path):
    # The clock jumps by 1.5 × 10⁹ s, from its start to the time since 1970.
    rows = ["0,0,4096,false", f"{15 * 10**17},0,4096,false"]
    heading = "issue_ns,offset_bytes,length_bytes,is_write"
    (tmp_path / "t.csv").write_text("\n".join([heading, *rows]))
    with pytest.raises(ScenarioError, match=r"workload.trace: got .* after 1.5e\+09 s"):
        replay_of(parse_scenario(SCENARIO, base_dir=tmp_path))
    for keys in ("speed = 2\n", "requests = 1\n", 'replay = "closed"\n'):
        replay_of(parse_scenario(SCENARIO + keys, base_dir=tmp_path))


def test_a_closed_replay_has_no_speed(tmp_path):
    (tmp_path / "t.csv").write_text(LINES)
    keys = 'replay = "closed"\nspeed = 2\n'
    with pytest.raises(ScenarioError, match=r"workload.speed: got 2, wanted 1"):
        parse_scenario(SCENARIO + keys, base_dir=tmp_path)


@pytest.mark.usefixtures("quick_rebuilds")
@pytest.mark.parametrize("duration_s", ["1e-9", "1e-6"])
@pytest.mark.parametrize("options", [[], ["--out", "out", "--report"], ["--json", "-"]])
def test_a_replay_too_short_for_any_request_is_reported_without_latencies(
    tmp_path, capsys, monkeypatch, duration_s, options
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(LINES)
    (tmp_path / "s.toml").write_text(SCENARIO)
    command = [
        "stripesim",
        "run",
        "s.toml",
        "--set",
        f"workload.duration_s={duration_s}",
        *options,
    ]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    out = capsys.readouterr().out
    assert not ended.value.code
    assert "recorded →" not in out
    if "--json" in options:
        (row,) = json.loads(out)["rows"]
        assert row["requests"] == 0
        assert row["latency_mean_ns"] is None


def test_recorded_and_simulated_latencies_are_side_by_side():
    names = ("mean", "p50", "p95", "p99")
    row = {
        f"{kind}latency_{name}_ns": 2e6 for name in names for kind in ("", "recorded_")
    }
    (line,) = recorded_lines([{"scheme": "rep:3", **row}])
    pairs = ", ".join(f"{name} 2.00 → 2.00" for name in names)
    assert states(line, f"rep:3: ... [ms] ... {pairs}")


@pytest.mark.parametrize(
    ("lines", "keys", "warns"),
    [
        # fio's version 2 has no times.
        ("fio version 2 iolog\n/d read 0 4096\n/d write 4096 4096\n", "", True),
        ("fio version 2 iolog\n/d read 0 4096\n/d write 4096 4096\n", "closed", False),
        ("fio version 2 iolog\n/d read 0 4096\n", "", False),
        ("fio version 3 iolog\n0 /d read 0 4096\n9 /d write 0 4096\n", "", False),
    ],
)
def test_a_trace_without_times_is_better_replayed_closed(tmp_path, lines, keys, warns):
    (tmp_path / "t.csv").write_text(lines)
    text = SCENARIO + (f'replay = "{keys}"\nqueue_depth = 1\n' if keys else "")
    scenario = parse_scenario(text, label="s.toml", base_dir=tmp_path)
    result = run_scenario(scenario, costs=False)
    warnings = [line for line in result.warnings if "arrive at once" in line]
    assert len(warnings) == warns
    for line in warnings:
        assert states(line, 's.toml:5: workload.trace: all 2 requests ... "closed"')


def test_a_sweep_warns_of_the_part_of_a_trace_that_it_replays(tmp_path):
    # Given a trace of three requests without times, of which two are replayed
    reads = "".join(f"/d read {4096 * number} 4096\n" for number in range(3))
    (tmp_path / "t.csv").write_text("fio version 2 iolog\n" + reads)
    text = SCENARIO + "requests = 2\n"
    scenario = parse_scenario(text, label="s.toml", base_dir=tmp_path)
    # Then a sweep warns as a run does.
    (line,) = [
        line
        for line in run_sweep(plan_sweep(scenario), jobs=1).warnings
        if "arrive at once" in line
    ]
    assert line in run_scenario(scenario, costs=False).warnings
    assert states(line, "all 2 requests arrive at once")


@pytest.mark.parametrize("speed", ["1e3", "1e9"])
def test_a_replay_that_ends_before_any_reply_has_the_rate_until_its_last_one(
    tmp_path, speed
):
    # Three requests within 2 ms, which a speed of 1,000 turns into 2 µs.
    (tmp_path / "t.csv").write_text(LINES)
    text = SCENARIO + f"speed = {speed}\n"
    scenario = parse_scenario(text, label="s.toml", base_dir=tmp_path)
    (row,) = run_scenario(scenario, costs=False).rows.to_dicts()
    assert row["requests"] == 3
    assert row["iops"] == pytest.approx(3 / row["window_end_s"])
    # OSDs work on after the last reply.
    assert row["latency_max_ns"] / 1e9 <= row["window_end_s"] < row["simulated_s"]
    assert row["throughput_bytes_per_s"] == pytest.approx(4096 * row["iops"])


def test_an_image_holds_the_trace(tmp_path):
    (tmp_path / "t.csv").write_text(LINES)

    def replayed(keys: str):
        text = SCENARIO + keys
        return replay_of(parse_scenario(text, label="s.toml", base_dir=tmp_path))

    # The second request ends at 8192 + 4096 bytes.
    assert replayed("").image_bytes == 12288
    assert replayed('image_bytes = "1GiB"').image_bytes == 1 << 30
    with pytest.raises(ValueError, match="image_bytes") as caught:
        replayed('image_bytes = "8k"')
    assert states(
        str(caught.value), "s.toml:6: workload.image_bytes: got 8KiB ... 12,288"
    )


def test_a_failure_rebuilds_the_images_of_a_trace(tmp_path):
    """Two devices of 64 MiB have 16 objects of 4 MiB each."""
    second = LINES.replace("host,0", "host,1")
    (tmp_path / "t.csv").write_text(LINES + second)
    text = (
        SCENARIO.replace("rep:3", "rs:2,2")
        + """image_bytes = "64MiB"
[cluster]
hosts = 5
osds_per_host = 1
pg_num = 8
[faults]
down_out_interval_s = 5
[[faults.events]]
osds = [0]
at_s = 0
"""
    )
    scenario = parse_scenario(text, label="s.toml", base_dir=tmp_path)
    plan = build_cell(scenario, cells(scenario)[0]).faults
    assert (plan.images_count, plan.image_objects) == (2, 16)
