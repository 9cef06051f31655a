"""Calibration: rows in, factors out; what is refused; what is written is read back."""

import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from stripesim.calibration.measured.rows import mean_latency_bounds_ms
from stripesim.calibration.parameters import sets
from stripesim.models.problems import MeasuredError, RefusedError
from stripesim.scenarios.answers.calibrate import EXAMPLE
from stripesim.scenarios.answers.calibrate.answer import (
    answer_of_calibration,
    document_of,
)
from stripesim.scenarios.answers.calibrate.calibrate import (
    _accept_fitted,
    _judged,
    _simulate_run,
    _WaitingRun,
    calibrate,
    runs_of,
)
from stripesim.scenarios.answers.calibrate.factors import (
    factors_for,
    starts,
    unchanged,
    with_factors,
)
from stripesim.scenarios.answers.calibrate.fio_output import fio_runs
from stripesim.scenarios.answers.calibrate.parameter_file import (
    parameter_text,
    scenario_text,
)
from stripesim.scenarios.answers.calibrate.rows import SimulatedRow, check_rows
from stripesim.scenarios.answers.predict.register import is_calibrated
from stripesim.scenarios.answers.run.execute import parameters_of
from stripesim.scenarios.cells.measured import (
    ROUNDS,
    ROUNDS_MIN,
    ROUNDS_PAST_SATURATION,
    request_count,
    requests_max,
)
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.sim.observe.audit import collecting_refusals

SCENARIO = """
name = "mine"
schemes = ["rep:3", "rs:2,1"]
generation = "reef"
[cluster]
hosts = 3
osds_per_host = 2
pg_num = 64
parameters = "nvme"
drive = "samsung-pm983"
[workload]
image_bytes = "1GiB"
queue_depth = 1
requests = 100
"""


def fio_json(rw="randread", bs="4k", iodepth=1, numjobs=1, iops=3000.0, p99_ns=5e5):
    """Return fio's output for one job, as version 3 writes it."""
    direction = "read" if "read" in rw else "write"
    options = {"rw": rw, "bs": bs, "iodepth": str(iodepth), "numjobs": str(numjobs)}
    measured = {
        "iops": iops,
        "lat_ns": {"mean": iodepth * numjobs / iops * 1e9},
        "clat_ns": {"mean": 1.0, "percentile": {"99.000000": p99_ns}},
    }
    return json.dumps({"jobs": [{"job options": options, direction: measured}]})


def folder(tmp_path, **outputs):
    """Write a folder with a scenario and fio's outputs."""
    (tmp_path / "cluster.toml").write_text(SCENARIO)
    for name, text in outputs.items():
        (tmp_path / f"{name.replace('_', '-')}.json").write_text(text)
    return tmp_path


def test_fio_output_becomes_rows(tmp_path):
    measured = folder(
        tmp_path,
        a=fio_json("randwrite", "16k", iodepth=4, numjobs=8, iops=10_000.0),
        rs_2_1_b=fio_json("read", "4M"),
    )
    replicated, coded = (run.row for run in fio_runs(measured))
    assert (replicated.scheme, replicated.role) == ("rep:3", "calibration")
    assert (replicated.op, replicated.pattern) == ("write", "rand")
    assert (
        replicated.block_bytes,
        replicated.clients,
        replicated.queue_depth,
    ) == (16384, 8, 4)
    # Little's law: 8 * 4 / 10,000 = 3.2 ms.
    assert replicated.measured["latency_mean_ms"] == pytest.approx(3.2)
    assert replicated.measured["latency_p99_ms"] == pytest.approx(0.5)
    assert (coded.scheme, coded.role, coded.block_bytes) == (
        "rs:2,1",
        "held-out",
        4 << 20,
    )


def test_the_size_of_writes_is_theirs_where_reads_have_another(tmp_path):
    # bs = reads, writes. fio counted 1,000 writes of 4,096,000 B in all.
    output = json.loads(fio_json("randwrite", "64k,4k"))
    counts = {"total_ios": 1000, "io_bytes": 4096000, "io_kbytes": 4000}
    output["jobs"][0]["write"] |= counts
    (run,) = fio_runs(folder(tmp_path, a=json.dumps(output)))
    assert run.row.block_bytes == 4096


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("not JSON", ("a.json", "--output-format=json")),
        ('{"jobs": []}', ("a.json", "jobs")),
        (fio_json("randrw"), ("a.json", "rw", "randrw")),
        (fio_json(bs="big"), ("a.json", "bs", "big")),
        (fio_json(iops=0.0001).replace("0.0001", "0"), ("a.json", "read")),
        (
            fio_json().replace('"numjobs": "1"', '"numjobs": "x"'),
            ("a.json", "numjobs", "x"),
        ),
        (fio_json().replace('{"job', '{"error": 5, "job'), ("a.json", "error 5")),
        # One request in flight, by the options. Those at 3000/s of 0.33 ms are one, at 30,000/s ten.
        (fio_json().replace("3000.0", "30000.0"), ("a.json", "10 in flight", "most")),
        # A synchronous ioengine keeps one request in flight, whatever its iodepth.
        (
            fio_json().replace('"iodepth": "1"', '"iodepth": "64"'),
            ("a.json", "1 in flight", "64", "ioengine"),
        ),
        (fio_json().replace("3000.0", "NaN"), ("a.json", "no read requests")),
        (
            fio_json().replace('"iodepth": "1"', '"iodepth": "deep"'),
            ("a.json: iodepth: got deep", "above 0"),
        ),
        (fio_json().replace('"bs":', '"bssplit":'), ("a.json: bssplit: got 4k", "one")),
        # The rate of two jobs that run one after the other is not their sum.
        (
            json.dumps(
                {
                    "jobs": [
                        {**json.loads(fio_json())["jobs"][0], "groupid": group}
                        for group in (0, 1)
                    ]
                }
            ),
            ("a.json: jobs: got 2 jobs in several groups", "stonewall", "same time"),
        ),
        (fio_json(p99_ns=-5.0), ("a.json: jobs.0.read.clat_ns.percentile", "greater")),
    ],
)
def test_unusable_fio_output_is_refused_with_its_file_and_option(tmp_path, text, facts):
    with pytest.raises(MeasuredError) as error:
        fio_runs(folder(tmp_path, a=text))
    for fact in facts:
        assert fact in str(error.value)


def test_fio_output_may_begin_with_a_byte_order_mark_and_is_utf_8(tmp_path):
    measured = folder(tmp_path, a=f"\ufeff{fio_json()}")
    (run,) = fio_runs(measured)
    assert run.row.measured["iops"] == 3000.0
    # PowerShell 5 writes UTF-16.
    (measured / "a.json").write_text(fio_json(), "utf-16")
    with pytest.raises(MeasuredError, match=r"a\.json: got a text that is not UTF-8"):
        fio_runs(measured)


def test_a_file_of_a_scheme_that_the_scenario_lacks_is_refused(tmp_path):
    measured = folder(tmp_path, rs_4_2_randread=fio_json())
    with pytest.raises(MeasuredError, match=r"begins with rs:4,2, wanted one of rep:3"):
        fio_runs(measured)


def test_a_folder_without_clusters_says_what_it_lacks(tmp_path):
    (tmp_path / "times.csv").write_text("id\n")
    with pytest.raises(
        MeasuredError, match=r"clusters\.toml: got No such .*, wanted a"
    ):
        runs_of(tmp_path)


def test_a_folder_without_measurements_or_with_two_scenarios_is_refused(tmp_path):
    with pytest.raises(MeasuredError, match=r"times\.csv"):
        runs_of(tmp_path)
    folder(tmp_path, a=fio_json())
    (tmp_path / "other.toml").write_text(SCENARIO)
    with pytest.raises(MeasuredError, match="2 TOML files"):
        runs_of(tmp_path)


def test_erasure_coding_is_never_fitted_and_something_must_be(tmp_path):
    measured = folder(tmp_path, rs_2_1_a=fio_json())
    rows = [run.row for run in fio_runs(measured)]
    with pytest.raises(MeasuredError, match="no row with the role calibration"):
        check_rows(rows, "folder")


def test_starts_change_nothing():
    models = build_models(load_scenario("quickstart"))
    same = with_factors(models, starts(models), "test")
    assert same == models


def test_factors_scale_what_they_name_and_nothing_else():
    models = build_models(load_scenario("quickstart"))
    values = {"processor": 2.0, "drive": 3.0, "network": 50.0, "client": 5.0}
    changed = with_factors(models, values, "test")
    assert changed.cpu.op_prepare_ns == 2 * models.cpu.op_prepare_ns
    assert changed.cpu.message_ns_per_byte == models.cpu.message_ns_per_byte
    assert changed.ssd.write_base_ns == 3 * models.ssd.write_base_ns
    assert changed.public_nic.latency_ns == 50_000
    assert changed.client.submit_ns == 5 * models.client.submit_ns
    assert changed.store == models.store
    assert changed.cpu.provenance["op_prepare_ns"].kind == "fitted"


def test_clusters_with_a_cpu_limit_fit_wake_ups_in_place_of_drives():
    scenario = load_scenario("quickstart", sets=["cluster.cpu_limit_per_osd=2"])
    models = build_models(scenario)
    factors = factors_for(scenario)
    assert {factor.name for factor in factors} == {
        "processor",
        "wake",
        "network",
        "client",
    }
    assert [factor.name for factor in factors_for(load_scenario("quickstart"))] == [
        "processor",
        "drive",
        "network",
        "client",
    ]
    assert with_factors(models, unchanged(models, factors), "test") == models
    changed = with_factors(models, starts(models, factors), "test")
    # The start is what was counted on a real Ceph, in the set pacific.
    assert changed.threads.wake_ns == pytest.approx(38_711)
    assert changed.threads.sync_ns == pytest.approx(608_465)
    # A sync costs as many wake-ups at any other value.
    twice = with_factors(models, {**starts(models, factors), "wake": 77.422}, "test")
    assert twice.threads.sync_ns == pytest.approx(2 * 608_465)
    assert changed.ssd == models.ssd


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    """Calibrate to rates that the simulator itself gives with a processor three times as slow."""
    measured = tmp_path_factory.mktemp("fio")
    folder(
        measured,
        a=fio_json("randwrite", iodepth=64, numjobs=4),
        b=fio_json("randread", iodepth=64, numjobs=4),
    )
    truth = {"processor": 3.0, "drive": 1.0, "client": 1.0}
    for run in fio_runs(measured):
        network = starts(run.models())["network"]
        values = {**truth, "network": network}
        simulated = run.simulate(
            lambda models, values=values: with_factors(models, values, "truth"),
            rounds=ROUNDS,
        )
        row = run.row
        text = fio_json(
            f"rand{row.op}",
            iodepth=64,
            numjobs=4,
            iops=simulated[row.id].metrics["iops"],
        )
        (measured / f"{row.id}.json").write_text(text)
    return calibrate(measured)


def test_the_answer_names_the_part_of_a_cluster_that_steps_simulated(calibrated):
    def shown(calibration):
        return [
            part
            for part in answer_of_calibration(calibration).shown
            if "hosts" in str(part)
        ]

    assert calibrated.step_hosts == 3
    assert not shown(calibrated)
    (line,) = shown(replace(calibrated, step_hosts=2))
    assert "2 of 3 hosts" in line


def test_a_known_factor_is_found_within_its_interval(calibrated):
    processor = calibrated.fitted[0]
    assert processor.name == "processor"
    assert processor.low < 3.0 < processor.high
    assert processor.value == pytest.approx(3.0, rel=0.25)
    assert processor.is_known


def test_rates_after_are_nearer_than_before(calibrated):
    rates = [value for value in calibrated.values if value.metric == "iops"]
    assert all(value.is_within(value.after) for value in rates)
    assert any(not value.is_within(value.before) for value in rates)


def test_rows_that_no_factor_explains_are_warned_of(calibrated):
    assert calibrated.unexplained() == []
    assert document_of(calibrated)["warnings"] == []
    # Given a fitted rate that is still three times the measured one, and a factor at the end of its range
    (first, *others) = calibrated.values
    assert first.left_out is not None
    wrong = replace(first, after=3 * first.measured)
    (processor, *further) = calibrated.fitted
    found = replace(
        calibrated,
        values=(wrong, *others),
        fitted=(replace(processor, is_at_end=True), *further),
    )
    # Then both are named
    answer = answer_of_calibration(found)
    (line,) = answer.warnings
    assert first.id in line
    assert "at the end of its range" in str(answer.shown[0])
    assert not any(factor.is_at_end for factor in calibrated.fitted)


def test_the_contract_of_the_json(calibrated):
    document = document_of(calibrated)
    assert set(document["fitted"][0]) == {"name", "value", "low", "high", "unit"}
    wanted = {"id", "role", "published", "before", "after", "refused"}
    assert set(document["rows"][0]) == wanted | {
        "utilisation",
        "left_out",
        "slow_class",
    }
    assert {"kind", "band", "basis", "median_error_percent"} <= set(
        document["errors"][0]
    )
    gains = document["further"][0]["gains"]
    assert all(0 < one["spread_after"] <= one["spread_before"] for one in gains)
    assert document["rows"][0]["id"] == "a:iops"
    assert set(document["summary"]) == {
        "held_out",
        "within_25_percent_before",
        "within_25_percent_after",
    }
    assert len(document["fitted"]) <= 4


REFUSED = "Run length: got 8 requests, wanted 80"


def refuse_run(simulated):
    return {row: one._replace(refused=REFUSED) for row, one in simulated.items()}


def test_values_of_a_refused_run_are_withheld_or_marked(calibrated):
    # Given rows of which the audit refuses one after the fit
    one, other = (
        replace(calibrated.rows[0], id=name, role="held-out", measured={"iops": 100.0})
        for name in ("one", "other")
    )
    fine = {
        name: SimulatedRow({"iops": 90.0}, refused=None) for name in ("one", "other")
    }
    after = fine | refuse_run({"one": fine["one"]})
    checked, unchecked = (
        replace(
            calibrated,
            values=tuple(
                _judged([one, other], fine, after, {}, unchecked=is_unchecked)
            ),
        )
        for is_unchecked in (False, True)
    )
    # Then it has no numbers, or has them marked, and the command names it.
    assert [value.after for value in checked.values] == [None, 90.0]
    assert [value.after for value in unchecked.values] == [90.0, 90.0]
    assert checked.count_within(after=True) == 1
    for result in (checked, unchecked):
        assert result.refusals == [f"one: {REFUSED}"]
        row = answer_of_calibration(result)["rows"][0]
        assert (row["id"], row["refused"]) == ("one:iops", REFUSED)


def test_a_refused_run_before_the_fit_has_no_value_even_unchecked(calibrated):
    # Given a row that the shipped set cannot serve, and the fitted one can
    row = replace(calibrated.rows[0], role="held-out", measured={"iops": 100.0})
    after = {row.id: SimulatedRow({"iops": 90.0}, refused=None)}
    before = refuse_run({row.id: SimulatedRow({"iops": 1.0}, refused=None)})
    # When its values are shown all the same
    values = tuple(_judged([row], before, after, {}, unchecked=True))
    answer = answer_of_calibration(replace(calibrated, values=values))
    # Then the one before, of a queue that grew, is not, nor in the error or the figure.
    (stated,) = answer["rows"]
    assert (stated["before"], stated["after"]) == (None, 90.0)
    (error,) = answer["errors"]
    assert error["median_error_percent_before"] is None
    assert error["median_error_percent"] == pytest.approx(10)
    assert "refused" in str(answer.shown[1])
    answer.figures()


def test_a_held_out_row_may_have_nothing_but_a_percentile(calibrated):
    # Given a row that no factor could be fitted to, because only its p99 was measured
    row = replace(
        calibrated.rows[0], id="p99", role="held-out", measured={"latency_p99_ms": 8.0}
    )
    simulated = {"p99": SimulatedRow({"latency_p99_ms": 6.0}, refused=None)}
    # When it is judged
    (value,) = _judged([row], simulated, simulated, {"a": 0.5}, unchecked=False)
    # Then it is compared, and no row of the fit
    assert (value.measured, value.after, value.left_out) == (8.0, 6.0, None)


def test_factors_are_not_fitted_to_a_refused_run(calibrated):
    fitted = [row for row in calibrated.rows if row.role == "calibration"]
    refused = {row.id: SimulatedRow({}, REFUSED) for row in fitted}
    with pytest.raises(RefusedError, match=fitted[0].id):
        _accept_fitted(fitted, refused)
    with collecting_refusals():
        _accept_fitted(fitted, refused)


def test_all_refused_rows_are_named_with_what_can_be_done(calibrated):
    # Given several rows to fit to, of which two runs are refused
    first, second, *_ = [row for row in calibrated.rows if row.role == "calibration"]
    accepted = replace(first, id="accepted")
    simulated = {row.id: SimulatedRow({}, REFUSED) for row in (first, second)}
    simulated["accepted"] = SimulatedRow({}, refused=None)
    # When they are checked before the fit
    with pytest.raises(RefusedError) as refused:
        _accept_fitted([first, accepted, second], simulated)
    # Then each has a line, and the last one names what the user can change.
    lines = str(refused.value).split("\n")
    assert [line.split()[0] for line in lines[:-1]] == [first.id, second.id]
    assert "held-out" in lines[-1]


def test_loads_measured_already_are_not_proposed(calibrated):
    loads = [run.load for run in calibrated.further]
    assert not any("4 KiB rand, 8 × 64" in load for load in loads)
    uncertainties = [run.uncertainty for run in calibrated.further]
    assert uncertainties == sorted(uncertainties, reverse=True)


def test_the_written_set_gives_the_fitted_models(calibrated, tmp_path):
    (tmp_path / "parameters.toml").write_text(parameter_text(calibrated), "utf-8")
    (tmp_path / "scenario.toml").write_text(scenario_text(calibrated), "utf-8")
    written = tomllib.loads((tmp_path / "scenario.toml").read_text("utf-8"))
    assert written["cluster"]["parameters"] == "./parameters.toml"
    # The capacity of the drive is kept, for plans.
    tables = tomllib.loads((tmp_path / "parameters.toml").read_text("utf-8"))
    assert tables["capacity"]["drive_bytes"]["value"] == 3.84e12
    models = build_models(load_scenario(tmp_path / "scenario.toml"))
    after = calibrated.after
    assert models.cpu.op_prepare_ns == pytest.approx(after.cpu.op_prepare_ns, rel=1e-5)
    assert models.ssd.read_base_ns == pytest.approx(after.ssd.read_base_ns, rel=1e-5)
    assert models.public_nic.latency_ns == pytest.approx(
        after.public_nic.latency_ns, rel=1e-5
    )
    assert models.client.submit_ns == pytest.approx(after.client.submit_ns, rel=1e-5)


def test_only_a_set_that_a_calibration_wrote_is_calibrated(calibrated, tmp_path):
    # Given the set of a calibration, and a copy of one that ships, as users make it
    shipped = Path(sets.__file__).with_name("nvme.toml").read_text("utf-8")
    texts = {"fitted": parameter_text(calibrated), "copied": shipped}
    found = {}
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text, "utf-8")
        own = SCENARIO.replace('"nvme"', f'"./{name}.toml"')
        (tmp_path / "s.toml").write_text(own, "utf-8")
        models = build_models(load_scenario(tmp_path / "s.toml"))
        found[name] = is_calibrated(parameters_of(models))
    # Then predictions with the copy have the wide intervals of clusters that no fit has seen.
    assert found == {"fitted": True, "copied": False}


def test_parts_of_one_cluster_are_calibrated_together(tmp_path):
    # Given rows on four and on three hosts of the same hardware
    for path in EXAMPLE.iterdir():
        shutil.copy(path, tmp_path)
    text = (tmp_path / "times.csv").read_text("utf-8")
    part = text.replace("005,vitalif-4x6,4", "005,vitalif-4x6-part,3")
    assert part != text
    (tmp_path / "times.csv").write_text(part, "utf-8")
    # Then they are read as rows of one cluster.
    assert sum(len(run.rows) for run in runs_of(tmp_path)) == 10


def test_a_table_of_several_clusters_is_refused(tmp_path):
    from importlib.resources import files

    data = Path(str(files("stripesim.scenarios.studies.nvme") / "data"))
    for name in ("times.csv", "clusters.toml"):
        shutil.copy(data / name, tmp_path)
    with pytest.raises(MeasuredError, match="wanted rows of one cluster"):
        runs_of(tmp_path)


class RecordedRun:
    """A run of one row that records its rounds."""

    def __init__(self, row, utilisation):
        self.rows = (row,)
        self.row = SimulatedRow({"iops": 1.0}, None, utilisation)
        self.rounds = []

    def simulate(self, change, *, rounds):
        self.rounds.append(rounds)
        return {"row": self.row}


@pytest.mark.parametrize(
    ("utilisation", "queue_depth", "asked", "simulated"),
    [
        (0.79, 64, ROUNDS, [ROUNDS]),
        (0.81, 64, ROUNDS, [ROUNDS, ROUNDS_PAST_SATURATION]),
        # 300 rounds of 8 * 416 = 3,328 in flight are 998,400 requests, and of 8 * 417 more than a million.
        (0.81, 416, ROUNDS, [ROUNDS, ROUNDS_PAST_SATURATION]),
        (0.81, 417, ROUNDS, [ROUNDS]),
        # Only the ratios of steps of a fit count.
        (0.81, 64, ROUNDS_MIN, [ROUNDS_MIN]),
    ],
)
def test_runs_near_saturation_are_long_enough_for_their_percentiles(
    calibrated, utilisation, queue_depth, asked, simulated
):
    row = replace(calibrated.rows[0], clients=8, queue_depth=queue_depth)
    run = RecordedRun(row, utilisation)

    _simulate_run(_WaitingRun(0, run, {}, "test", asked))

    assert run.rounds == simulated


def test_runs_past_saturation_have_up_to_a_million_requests(tmp_path):
    # Given 512 and 4,096 in flight
    measured = folder(
        tmp_path,
        deep=fio_json(iodepth=64, numjobs=64, iops=1e5),
        near=fio_json(iodepth=64, numjobs=8, iops=1e5),
    )
    deep, near = (run.row for run in fio_runs(measured))

    def count(row, rounds):
        in_flight = row.clients * row.queue_depth
        return request_count(in_flight, rounds, requests_max(rounds))

    # Then 40 rounds are 20,480 and 163,840 requests. Of 1,000 rounds, 512,000 are as many, and of 4.1 million
    # one million are left.
    assert [count(near, 40), count(deep, 40)] == [20_480, 163_840]
    assert [count(near, 1_000), count(deep, 1_000)] == [512_000, 1_000_000]
    # A code of 12 shards has a quarter of them, since a request of it is four times the work.
    assert requests_max(1_000, width=12) == 250_000


def test_percentiles_of_runs_that_are_too_short_are_named(calibrated):
    # Given a row whose run ends before the queue of its busiest thread is steady
    measured = {"iops": 100.0, "latency_p99_ms": 8.0}
    row = replace(calibrated.rows[0], id="deep", role="held-out", measured=measured)
    simulated = SimulatedRow(measured, None, 1.0, slow_class="kv")
    # When it is judged
    values = _judged(
        [row], {"deep": simulated}, {"deep": simulated}, {}, unchecked=False
    )
    answer = answer_of_calibration(replace(calibrated, values=tuple(values)))
    # Then a warning names its percentile, and not its rate
    (line,) = answer.warnings
    assert line.startswith("deep:latency_p99_ms: most requests wait for the busiest kv")
    assert [row["slow_class"] for row in answer["rows"]] == [None, "kv"]


def test_a_closed_loop_bounds_the_mean_latency_at_its_rate() -> None:
    # 64 in flight at 8,000 requests/s take 64 / 8,000 s = 8 ms each, of which 0.5 to 1.2 times agree.
    assert mean_latency_bounds_ms(8000.0, 64) == pytest.approx((4.0, 9.6))
    # Of reads beside writes, any number of the 64 may be.
    assert mean_latency_bounds_ms(8000.0, 64, is_part=True) == pytest.approx((0.0, 9.6))
