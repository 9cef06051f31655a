"""`stripesim check`: what a file measured, where it lies, and which cause comes closest."""

import json
import math

import pytest

from stripesim.models.problems import MeasuredError
from stripesim.scenarios.answers.check.answer import assumptions_of, sentence_of
from stripesim.scenarios.answers.check.causes import CAUSES, limits_clients
from stripesim.scenarios.answers.check.check import check, distance, read_measurement
from stripesim.scenarios.answers.check.rados_bench import (
    is_rados_bench,
    read_rados_bench,
)
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.observe.limits import resource_name
from support.messages import states

SCENARIO = """
name = "mine"
schemes = ["rep:3"]
[cluster]
hosts = 3
osds_per_host = 1
pg_num = 32
cores_per_host = 16
[workload]
ops = ["write"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
clients = 2
queue_depth = 4
requests = 1000
image_bytes = "1GiB"
"""

WRITE_TEXT = """\
hints = 1
Maintaining 16 concurrent writes of 4194304 bytes to objects of size 4194304 for up to 10 seconds or 0 objects
Object prefix: benchmark_data_host_42
  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
    0       0         0         0         0         0           -           0
    1      16       140       124   495.967       496   0.1263    0.1213
Total time run:         10.5
Total writes made:      1050
Write size:             4194304
Object size:            4194304
Bandwidth (MB/sec):     400
Stddev Bandwidth:       10
Average IOPS:           100
Average Latency(s):     0.16
Max latency(s):         0.31
"""
READ_TEXT = """\
  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)
    0       0         0         0         0         0           -           0
    1      15       255       240   959.7       960   0.0631    0.0621
    2      16       500       484   967.6       976   0.0612    0.0629
Total time run:       2
Total reads made:     500
Read size:            4194304
Object size:          4194304
Bandwidth (MB/sec):   1000
Average IOPS          250
Average Latency(s):   0.064
"""
WRITE_JSON = {
    "concurrent_ios": "8", "object_size": "4194304", "op_size": "65536",
    "datas": [{"sec": "1", "cur_ops": "7"}], "total_time_run": "2.0", "total_writes_made": "400",
    "write_size": "65536", "average_latency": "0.04", "max_latency:": "0.1",
}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    """Write a scenario and return a function that writes a measured file beside it."""
    (tmp_path / "s.toml").write_text(SCENARIO)

    def write(name, text):
        (tmp_path / name).write_text(text)
        return tmp_path / "s.toml", tmp_path / name

    return write


def fio(iops, latency_ms):
    """Return fio's output of two jobs with four writes in flight each."""
    options = {"rw": "randwrite", "bs": "4k", "iodepth": "4", "numjobs": "2"}
    write = {"iops": iops, "lat_ns": {"mean": 1e6 * latency_ms}}
    return json.dumps({"jobs": [{"job options": options, "write": write}]})


def expected():
    """Return the row that the scenario gives."""
    scenario = parse_scenario(SCENARIO)
    (cell,) = cells(scenario)
    return run_cell(scenario, cell, "compiled").row


# --- rados bench ------------------------------------------------------------------------------------------


def test_text_of_a_write_test_states_its_concurrency(tmp_path):
    load = read_rados_bench(tmp_path / "bench.txt", WRITE_TEXT)
    assert (load.op, load.pattern, load.block_bytes) == ("write", "seq", 4 << 20)
    assert (load.clients, load.queue_depth) == (1, 16)
    # 1050 writes in 10.5 s.
    assert load.measured == {"iops": 100, "latency_mean_ms": 160}


def test_text_of_a_read_test_shows_its_concurrency_in_the_samples(tmp_path):
    load = read_rados_bench(tmp_path / "rand.txt", READ_TEXT)
    assert (load.op, load.pattern, load.queue_depth) == ("read", "rand", 16)
    assert load.measured["iops"] == 250


def test_json_quotes_numbers_and_block_and_object_size_may_differ(tmp_path):
    load = read_rados_bench(tmp_path / "bench.json", json.dumps(WRITE_JSON))
    assert (load.block_bytes, load.queue_depth) == (65536, 8)
    assert load.measured == {"iops": 200, "latency_mean_ms": 40}


def test_json_without_a_concurrency_or_samples_follows_littles_law(tmp_path):
    shorter = {
        key: value
        for key, value in WRITE_JSON.items()
        if key not in ("concurrent_ios", "datas")
    }
    # 200 a second × 0.04 s.
    assert read_rados_bench(tmp_path / "b.json", json.dumps(shorter)).queue_depth == 8


def test_each_request_of_rados_bench_is_of_an_object_of_its_own(files):
    """16 writes in flight are in 16 objects, not one after the other in the lock of one group."""
    text = WRITE_TEXT.replace("4194304", "4096")
    scenario = read_measurement(*files("bench.txt", text)).scenario
    assert scenario.cluster.object_bytes == 4096
    small = WRITE_TEXT.replace("4194304", "512")
    scenario = read_measurement(*files("small.txt", small)).scenario
    # A stripe unit is the least: 4 KiB.
    assert scenario.cluster.object_bytes == 4096
    parts = read_measurement(*files("bench.json", json.dumps(WRITE_JSON))).scenario
    assert parts.cluster.object_bytes == 4 << 20
    assert parts.workload.block_sizes_bytes == (65536,)


def test_the_option_show_time_puts_times_before_lines(tmp_path):
    lines = WRITE_TEXT.splitlines()
    timed = [f"2026-11-30T11:25:34.989156+0000 {line}" for line in lines[1:7]]
    text = "\n".join([lines[0], *timed, *lines[7:]])
    assert "+0000 Total time run" in text and is_rados_bench(text)
    assert read_rados_bench(tmp_path / "b.txt", text) == read_rados_bench(
        tmp_path / "b.txt", WRITE_TEXT
    )


def test_an_output_that_was_cut_off_is_refused(tmp_path):
    cut = WRITE_TEXT.partition("Total writes made")[0]
    assert is_rados_bench(cut)
    with pytest.raises(MeasuredError, match="rados bench"):
        read_rados_bench(tmp_path / "b.txt", cut)
    assert not is_rados_bench(fio(1, 1))


# --- the measurement --------------------------------------------------------------------------------------


def test_the_load_of_a_file_replaces_the_scenarios(files):
    measurement = read_measurement(*files("bench.txt", WRITE_TEXT))
    workload = measurement.scenario.workload
    assert (workload.clients, workload.queue_depth) == (1, 16)
    assert measurement.cell.block_size_bytes == 4 << 20
    assert measurement.values == {"iops": 100, "latency_mean_ns": 160e6}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m.csv:1: got an empty file, wanted the names of columns"),
        ("scheme,iops\n", "m.csv: got no value ... iops"),
        (
            "scheme,metric,value,unit\nrep:3,p95,3,ms\n",
            "m.csv: got latency_p95_ns ... iops",
        ),
    ],
)
def test_a_table_without_a_value_that_decides_is_refused(files, text, message):
    with pytest.raises(MeasuredError) as error:
        read_measurement(*files("m.csv", text))
    assert states(str(error.value), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # A hundredth of the requests takes the p99 or more: at most 100 times the mean.
        (
            "scheme,latency_mean_ms,latency_p99_ms\nrep:3,0.5,900\n",
            "m.csv:2: p99: got 900 ms, wanted 0.25 to 50 ms",
        ),
        # 1,000 requests/s of 4,096 B.
        (
            "scheme,iops,mb_s\nrep:3,1000,1000\n",
            "m.csv:2: throughput: got 1000 MB/s, wanted about 4.096 MB/s",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(files, text, message):
    with pytest.raises(MeasuredError) as error:
        read_measurement(*files("m.csv", text))
    assert states(str(error.value), message)


def test_a_table_is_of_one_row_of_the_scenario(files):
    measurement = read_measurement(
        *files("m.csv", "scheme,iops\nrep:3,900\nrep:3,1100\n")
    )
    assert measurement.values == {"iops": 1000}
    assert measurement.scenario.workload.queue_depth == 4
    with pytest.raises(MeasuredError) as error:
        read_measurement(*files("m.csv", "scheme,op,iops\nrep:3,read,900\n"))
    assert states(
        str(error.value),
        "m.csv: got values of rep:3 read ... of one row ... of rep:3 write rand 4KiB",
    )


def test_a_run_of_other_rows_is_refused_by_its_rows(files):
    rows = [{"scheme": scheme, "op": "write", "iops": 900} for scheme in ("a", "b")]
    with pytest.raises(MeasuredError, match="got values of a write; b write, wanted"):
        read_measurement(*files("run.json", json.dumps({"rows": rows})))


# --- the answer -------------------------------------------------------------------------------------------


def test_the_expected_number_is_expected(files):
    row = expected()
    result = check(*files("m.csv", f"scheme,iops\nrep:3,{row.iops!r}\n"))
    assert result.verdict == "as expected"
    assert result.leading.where == "inside"
    assert result.leading.predicted.predicted == pytest.approx(row.iops)


def test_the_sentence_names_a_tail_that_is_not_as_expected(files):
    # Given the expected rate, and a p99 of a second where the simulation has milliseconds
    row = expected()
    text = f"scheme,iops,latency_p99_ms\nrep:3,{row.iops!r},{{p99_ms}}\n"
    slow = check(*files("m.csv", text.format(p99_ms=1000)))
    assert slow.verdict == "as expected"
    assert "p99 is above its expected range" in sentence_of(slow)
    usual = check(*files("m.csv", text.format(p99_ms=row.latency_p99_ns / 1e6)))
    assert "p99" not in sentence_of(usual)


def test_the_clients_of_a_measurement_are_never_assumed_to_be_unlimited(files):
    # Given a scenario that states no clients: one thread limits the load, as in a run.
    text = SCENARIO.replace("clients = 2\n", "")
    path = files("m.csv", "scheme,iops\nrep:3,30000\n")[1]
    subject = parse_scenario(text, sets=["workload.queue_depth=64"])
    lines = assumptions_of(check(subject, path))
    assert any("1 client with 64 in flight" in line for line in lines)
    assert not any("do not limit the rate" in line for line in lines)


def test_arrivals_at_a_rate_are_assumed_as_such(files):
    sets = ['workload.kind="open"', "workload.rate_per_s=2000"]
    result = check(*files("m.csv", "scheme,iops\nrep:3,2000\n"), sets=sets)
    (load,) = [line for line in assumptions_of(result) if line.startswith("the load")]
    assert "2 clients with 2,000 arrivals/s in all" in load
    # Any cluster that keeps up serves that rate.
    assert any("only a latency" in line for line in assumptions_of(result))


@pytest.mark.parametrize(
    ("iops", "factor", "decides", "verdict"),
    [
        (2000, 10, "latency_mean_ns", "slower"),
        (2000, 1, "latency_mean_ns", "as expected"),
        # The measured cluster does not keep up.
        (500, 10, "iops", "slower"),
    ],
)
def test_the_latency_decides_where_arrivals_are_served(
    files, iops, factor, decides, verdict
):
    sets = ['workload.kind="open"', "workload.rate_per_s=2000"]
    expected_row = check(*files("m.csv", "scheme,iops\nrep:3,2000\n"), sets=sets).row
    mean_ns = expected_row["latency_mean_ns"]
    text = f"scheme,iops,latency_mean_ns\nrep:3,{iops},{factor * mean_ns!r}\n"
    result = check(*files("m.csv", text), sets=sets)
    assert (result.leading.quantity, result.verdict) == (decides, verdict)
    assert not any("only a latency" in line for line in assumptions_of(result))


def test_a_number_that_is_too_high_has_causes_that_are_faster(files):
    row = expected()
    result = check(*files("m.csv", f"scheme,iops\nrep:3,{8 * row.iops!r}\n"))
    assert result.verdict == "faster"
    words = {one.cause: one.words for one in result.explanations}
    assert "processor is faster" in words["processor"]
    assert "network is faster" in words["network rate"]
    assert "more requests are in flight" in words["in flight"]


@pytest.mark.parametrize(("depth", "is_slow"), [(4, False), (64, True)])
def test_the_length_of_a_saturated_run_is_an_assumption(files, depth, is_slow):
    sets = [f"workload.queue_depth={depth}", f"workload.requests={80 * depth}"]
    result = check(*files("m.csv", "scheme,iops\nrep:3,30000\n"), sets=sets)
    lines = [line for line in assumptions_of(result) if "settles slowly" in line]
    assert len(lines) == is_slow
    assert (result.slow_class is not None) == is_slow
    if is_slow:
        assert f"the busiest {resource_name(result.slow_class)} settles" in lines[0]


@pytest.mark.parametrize("factor", [8.0, 2.5])
def test_a_number_from_fewer_cores_is_explained_by_fewer_cores(files, factor):
    # given: what the cluster would do with 2 or 6 of its 16 cores
    scenario = parse_scenario(SCENARIO).with_cluster(cores_per_host=round(16 / factor))
    (cell,) = cells(scenario)
    row = run_cell(scenario, cell, "compiled").row
    table = (
        "scheme,iops,latency_mean_ns,latency_p99_ns\n"
        f"rep:3,{row.iops},{row.latency_mean_ns},{row.latency_p99_ns}\n"
    )
    # when
    result = check(*files("m.csv", table))
    # then
    cores = next(one for one in result.explanations if one.cause == "cores")
    best = result.explanations[0]
    assert best.distance <= cores.distance
    assert cores.distance < math.log(1.1)


@pytest.mark.parametrize(
    ("stated", "factor", "key", "expected"),
    [
        ({}, 4.0, "cores_per_host", 4),
        ({"cores_per_osd": 8}, 4.0, "cores_per_osd", 2),
        # One of the 16 cores of a host stays for other processes.
        ({"cores_per_osd": 8}, 0.5, "cores_per_osd", 15),
        ({"cpu_limit_per_osd": 3.0}, 2.0, "cpu_limit_per_osd", 1.5),
        ({"cpu_limit_per_osd": 3.0}, 0.5, "cpu_limit_per_osd", 6.0),
        # No limit exceeds the cores that an OSD is pinned to.
        (
            {"cores_per_osd": 4, "cpu_limit_per_osd": 3.0},
            0.5,
            "cpu_limit_per_osd",
            4.0,
        ),
    ],
)
def test_cores_vary_by_the_key_that_the_scenario_states(stated, factor, key, expected):
    scenario = parse_scenario(SCENARIO).with_cluster(**stated)
    cores = next(cause for cause in CAUSES if cause.name == "cores")
    changed, models = cores.change(scenario, factor)
    given = {"cores_per_host": 16, **stated, key: expected}
    assert {name: getattr(changed.cluster, name) for name in given} == given
    assert models.cpu.cores_per_host == changed.cluster.cores_per_host
    before = {"cores_per_host": 16, **stated}[key]
    assert cores.value(scenario, factor).startswith(
        f"{expected:g} instead of {before:g} cores"
    )


def test_causes_are_sorted_by_how_close_they_come(files):
    result = check(*files("rep-3.json", fio(1000.0, 8.0)))
    distances = [one.distance for one in result.explanations]
    assert distances == sorted(distances)
    assert result.verdict == "slower"
    assert len({one.cause for one in result.explanations}) >= 5


def test_requests_in_flight_are_no_cause_if_the_measurement_kept_them(files):
    # 80,000/s of 0.1 ms are the 8 that the file states (Little's law), so no other number was in flight.
    scenario, measured = files("fio.json", fio(80_000, 0.1))
    assert read_measurement(scenario, measured).keeps_depth
    names = {one.cause for one in check(scenario, measured).explanations}
    assert "in flight" not in names and "processor" in names
    # A rate alone does not say.
    table = "scheme,metric,value\nrep:3,iops,80000\n"
    assert not read_measurement(*files("m.csv", table)).keeps_depth


def test_a_number_above_the_expected_one_gets_causes_that_make_it_faster(files):
    row = expected()
    result = check(*files("m.csv", f"scheme,iops\nrep:3,{2 * row.iops}\n"))
    for one in result.explanations:
        assert one.strength < 1
    assert max(one.values["iops"] for one in result.explanations) > row.iops


def test_the_distance_is_the_largest_of_the_compared_quantities():
    measured = {"iops": 100.0, "latency_p99_ns": 10.0, "latency_p50_ns": 1.0}
    simulated = {"iops": 200.0, "latency_p99_ns": 5.0, "latency_p50_ns": 100.0}
    assert distance(simulated, measured) == pytest.approx(math.log(2))


def test_every_cause_of_strength_one_changes_nothing():
    scenario = parse_scenario(SCENARIO)
    models = build_models(scenario)
    for cause in CAUSES:
        if cause.name == "scheduler":
            # It adds a queue that limits clients.
            continue
        changed, built = cause.change(scenario, 1.0)
        assert changed == scenario
        assert values_of(built) == values_of(models), cause.name


def values_of(models):
    """Return the value of every parameter, by name."""
    return {
        parameter["name"]: parameter["value"]
        for name, model in models.described().items()
        for parameter in model.parameters(f"{name}.")
    }


def test_mclock_limits_lone_clients_in_quincy_alone():
    # Client limits of profile balanced: 1.0 in v17.2, none since v18.
    for generation, is_limited in (("quincy", True), ("reef", False), ("squid", False)):
        text = f'generation = "{generation}"\n' + SCENARIO
        assert limits_clients(parse_scenario(text)) is is_limited


def test_a_low_capacity_of_mclock_limits_the_rate_as_its_arithmetic_says():
    scenario = parse_scenario('generation = "quincy"\n' + SCENARIO)
    scheduler = next(cause for cause in CAUSES if cause.name == "scheduler")
    changed, models = scheduler.change(scenario, 64.0)
    (cell,) = cells(changed)
    row = run_cell(changed, cell, "compiled", models).row
    # 21,500 / 64 = 336 IOPS of each of three OSDs, for one primary's item a write.
    assert row.iops < 1.1 * 3 * 21_500 / 64


def test_check_on_the_command_line(command, files, tmp_path):
    scenario, measured = files("rep-3.json", fio(1000.0, 8.0))
    out = tmp_path / "out"
    status, printed, _ = command(
        "check", str(scenario), str(measured), "--json", "-", "--out", str(out)
    )
    assert status == 0
    document = json.loads(printed)
    assert document["verdict"] == "slower"
    assert {"cause", "value", "values", "distance", "explains"} <= set(
        document["causes"][0]
    )
    assert (out / "check.svg").exists()
    (tmp_path / "bad.json").write_text("[]")
    status, _, said = command("check", str(scenario), str(tmp_path / "bad.json"))
    assert (status, "bad.json" in said) == (2, True)


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("", "got an empty file"),
        ("fio: no such file", "got no JSON object"),
        ('{"total_time_run": ', "got Expecting value"),
    ],
)
def test_a_file_without_a_document_is_refused_in_words(files, text, got):
    with pytest.raises(MeasuredError, match=f"measured.json: {got}"):
        read_measurement(*files("measured.json", text))
