"""Predictions: rows with intervals, a file that tells if it was changed, and scores of measured values."""

import json
from collections import defaultdict

import pytest

from stripesim.calibration.ledger.model_errors import COVERAGE, error_band
from stripesim.models.problems import AnswerError, MeasuredError
from stripesim.scenarios.answers.predict.answer import error_note
from stripesim.scenarios.answers.predict.measured_values import read_measured_file
from stripesim.scenarios.answers.predict.register import (
    predict,
    predicted_values,
    read_register,
    register_of,
    sealed,
    write_register,
)
from stripesim.scenarios.answers.predict.register import (
    tested_on_objects as words_on_objects,
)
from stripesim.scenarios.answers.predict.score import score
from stripesim.scenarios.schema.keys import row_name
from stripesim.scenarios.schema.scenario import parse_scenario
from support.messages import states

SCENARIO = """
name = "mine"
schemes = ["rep:3", "rs:2,1"]
[cluster]
hosts = 4
osds_per_host = 1
pg_num = 32
[workload]
ops = ["read"]
patterns = ["rand"]
block_sizes_bytes = ["4k"]
clients = 2
queue_depth = 4
requests = 4000
image_bytes = "1GiB"
"""


@pytest.fixture(scope="module")
def prediction():
    """Predict a small scenario once."""
    return predict(parse_scenario(SCENARIO))


def register(rows=None, **more):
    """Return the document of a register of two rows: 1,000 requests/s in 800 to 1,250."""
    workload = {"kind": "closed", "clients": 2, "queue_depth": 4}
    values = [
        {"quantity": "iops", "predicted": 1000.0, "low": 800.0, "high": 1250.0},
        {"quantity": "latency_p99_ns", "predicted": 4e6, "low": 2e6, "high": 8e6},
    ]
    names = rows or (("rep:3", "below 50 %"), ("rs:2,1", "above 80 %"))
    document = {
        "form": "stripesim-register-1",
        "registered": "2026-11-24T12:00:00+00:00",
        "scenario": "mine",
        "seed": 1,
        "versions": {"stripesim": "1", "python": "3", "machine": "m"},
        "coverage": COVERAGE,
        "configuration": {"workload": workload},
        "rows": [
            {
                "id": f"{scheme} read rand 4KiB",
                "scheme": scheme,
                "op": "read",
                "pattern": "rand",
                "block_size_bytes": 4096,
                "band": band,
                "values": values,
            }
            for scheme, band in names
        ],
    }
    return sealed({**document, **more})


def scored(tmp_path, table, document=None, name="measured.csv"):
    """Score a register by a measured file."""
    file = tmp_path / "register.json"
    write_register(file, document or register())
    measured = tmp_path / name
    measured.write_text(table, encoding="utf-8")
    return score(file, measured)


# --- predict ----------------------------------------------------------------------------------------------


def test_each_row_has_its_numbers_with_intervals_that_hold_them(prediction):
    rows = register_of(prediction)["rows"]
    assert [row["id"] for row in rows] == [
        "rep:3 read rand 4KiB",
        "rs:2,1 read rand 4KiB",
    ]
    for row in rows:
        quantities = [value["quantity"] for value in row["values"]]
        assert {"iops", "latency_mean_ns", "latency_p50_ns", "latency_p99_ns"} <= set(
            quantities
        )
        for value in row["values"]:
            assert 0 < value["low"] < value["predicted"] < value["high"]


def test_an_interval_is_that_of_the_run_times_that_of_held_out_rows(prediction):
    row = prediction.result.rows.row(0, named=True)
    first = prediction.rows[0]
    mean = error_band("mean", first.band, calibrated=False)
    value = first.value("latency_mean_ns")
    assert value.low == pytest.approx(row["latency_ci_low"] * mean.low)
    assert value.high == pytest.approx(row["latency_ci_high"] * mean.high)
    # A percentile has no interval of the run.
    p99 = error_band("p99", first.band, calibrated=False)
    value = first.value("latency_p99_ns")
    assert value.high == pytest.approx(row["latency_p99_ns"] * p99.high)


@pytest.mark.parametrize(
    ("utilisation", "offered_iops", "low_iops", "high_iops"),
    [
        # A full cluster would serve 2,000 / 0.05, far more than arrives even if it is three times slower.
        (0.05, 2000.0, 0.97 * 2000, 2000 / 0.97),
        # It is full at 2,500.
        (0.8, 2000.0, None, 2000 / 0.97),
        # Full already: what arrives is no limit.
        (1.0, 9000.0, None, None),
    ],
)
def test_arrivals_are_served_up_to_the_rate_of_a_full_cluster(
    utilisation, offered_iops, low_iops, high_iops
):
    row = defaultdict(lambda: None, iops=2000.0, offered_iops=offered_iops)
    (value,) = predicted_values(row, utilisation, calibrated=False)
    full = error_band("rate", "above 80 %", calibrated=False)
    capacity_iops = 2000.0 / utilisation
    assert value.low == pytest.approx(low_iops or capacity_iops * full.low)
    assert value.high == pytest.approx(high_iops or capacity_iops * full.high)


def test_only_a_set_without_calibration_is_advised_to_have_one(prediction):
    notes = [error_note(prediction.rows, calibrated=known) for known in (False, True)]
    assert ["A calibration narrows them" in note for note in notes] == [True, False]
    assert ["of calibrated clusters" in note for note in notes] == [False, True]


def test_too_few_rows_promise_no_probability(prediction):
    # Of n rows, the outermost hold a new one with (n - 1) / (n + 1): 80 % takes nine.
    (p99,) = (
        value
        for value in prediction.rows[0].values
        if value.quantity == "latency_p99_ns"
    )
    assert (p99.error.rows - 1) / (p99.error.rows + 1) < COVERAGE
    assert not p99.error.has_coverage
    note = error_note(prediction.rows, calibrated=False)
    texts = note.split("; ")
    few = [text.split(" ")[0] for text in texts if "too few" in text]
    assert few == ["p99"]
    # Calibrated clusters have seventeen.
    of_calibrated = error_band("p99", p99.error.band, calibrated=True)
    assert (of_calibrated.rows - 1) / (of_calibrated.rows + 1) >= COVERAGE
    assert of_calibrated.has_coverage


def test_utilisation_is_that_of_the_busiest_resource_of_the_row(prediction):
    for row in prediction.rows:
        own = [
            use["utilisation"]
            for use in prediction.result.resources
            if use["scheme"] == row.coordinates["scheme"]
        ]
        assert row.utilisation == max(own)


def test_the_register_names_what_the_numbers_depend_on(prediction):
    document = register_of(prediction)
    again = register_of(predict(parse_scenario(SCENARIO)))
    assert document["seed"] == 1
    assert document["configuration"]["cluster"]["hosts"] == 4
    assert document["parameters"] == again["parameters"]
    other = SCENARIO.replace("[workload]", "networks = 1\n[workload]")
    assert other != SCENARIO
    changed = register_of(predict(parse_scenario(other)))
    assert changed["scenario_sha256"] != document["scenario_sha256"]


def test_a_row_of_objects_has_no_pattern_in_its_name():
    row = {"scheme": "rep:3", "op": "read", "pattern": "rand", "block_size_bytes": 4096}
    assert row_name(row) == "rep:3 read rand 4KiB"
    assert row_name(row | {"op": "get"}) == "rep:3 get 4KiB"


def test_a_row_that_the_audit_refuses_predicts_nothing():
    # 100 requests of 8 in flight are too few for a steady rate of a bounded run.
    short = SCENARIO.replace("requests = 4000", "duration_s = 0.0005")
    document = register_of(predict(parse_scenario(short)))
    assert document["refusals"]
    assert document["rows"][0]["values"] == []


# --- the file ---------------------------------------------------------------------------------------------


def test_a_register_is_read_back_and_never_replaced(prediction, tmp_path):
    file = tmp_path / "register.json"
    document = register_of(prediction)
    write_register(file, document)
    assert read_register(file) == document
    with pytest.raises(AnswerError, match="never replaced"):
        write_register(file, document)


@pytest.mark.parametrize(
    ("old", "new"),
    [("1250.0", "1260.0"), ("2026-11-24", "2026-11-23"), ('"seed": 1', '"seed": 2')],
)
def test_a_changed_register_is_refused(tmp_path, old, new):
    file = tmp_path / "register.json"
    write_register(file, register())
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(AnswerError) as error:
        read_register(file)
    assert states(str(error.value), "sha256 ... changed")


def test_the_layout_of_a_register_does_not_matter(tmp_path):
    file = tmp_path / "register.json"
    document = register()
    file.write_text(json.dumps(dict(sorted(document.items())), indent=4))
    assert read_register(file) == document


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"form": "other"}'])
def test_another_file_is_no_register(tmp_path, text):
    file = tmp_path / "register.json"
    file.write_text(text)
    with pytest.raises(AnswerError, match="predict --register"):
        read_register(file)


# --- score ------------------------------------------------------------------------------------------------


def test_values_are_compared_with_their_interval_by_band(tmp_path):
    table = (
        "scheme,metric,value,unit\n"
        "rep:3,iops,800,\n"
        "rep:3,p99,5,ms\n"
        '"rs:2,1",iops,2000,\n'
    )
    result = scored(tmp_path, table)
    # 1000 / 800 - 1, 4 / 5 - 1, 1000 / 2000 - 1.
    assert [row.error for row in result.rows] == pytest.approx([0.25, -0.2, -0.5])
    assert [row.inside for row in result.rows] == [True, True, False]
    total = result.total
    assert (total.values, total.inside) == (3, 2)
    assert total.expected_inside == pytest.approx(3 * COVERAGE)
    assert total.median_error_percent == pytest.approx(25)
    lines = {(line.kind, line.band): line.inside for line in result.lines()}
    assert lines == {
        ("rate", "below 50 %"): 1,
        ("rate", "above 80 %"): 0,
        ("p99", "below 50 %"): 1,
    }


def test_repeats_become_their_mean_and_their_noise(tmp_path):
    table = "scheme,iops,repeat\nrep:3,900,1\nrep:3,1100,2\n"
    (row,) = scored(tmp_path, table).rows
    # The standard deviation of 900 and 1100 is 100 √2.
    assert row.measured == 1000
    assert row.noise == pytest.approx(0.1 * 2**0.5)


def test_a_column_for_each_metric_and_an_id_are_a_table_too(tmp_path):
    table = "id,iops,latency_p99_ms\nrep:3 read rand 4KiB,1000,4\n"
    result = scored(tmp_path, table)
    assert [row.error for row in result.rows] == [0, 0]
    assert result.missing == ("rs:2,1 read rand 4KiB",)


def test_the_json_of_a_run_is_compared_row_by_row(tmp_path):
    row = {"scheme": "rs:2,1", "op": "read", "pattern": "rand", "iops": 1000.0}
    document = json.dumps({"rows": [{**row, "block_size_bytes": 4096}]})
    result = scored(tmp_path, document, name="run.json")
    assert [row.id for row in result.rows] == ["rs:2,1 read rand 4KiB"]


def fio(queue_depth="4"):
    """Return fio's output of two jobs of random reads, each with four in flight."""
    options = {"rw": "randread", "bs": "4k", "iodepth": queue_depth, "numjobs": "2"}
    latency = {"mean": 1e6, "percentile": {"50.000000": 9e5, "99.000000": 4e6}}
    read = {
        "iops": 2 * int(queue_depth) * 1000.0,
        "lat_ns": latency,
        "clat_ns": latency,
    }
    return json.dumps({"jobs": [{"job options": options, "read": read}]})


def test_the_json_of_fio_is_compared_with_the_scheme_of_its_file_name(tmp_path):
    result = scored(tmp_path, fio(), name="rs-2-1-randread.json")
    assert {row.id for row in result.rows} == {"rs:2,1 read rand 4KiB"}
    assert {row.quantity for row in result.rows} == {"iops", "latency_p99_ns"}


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("rs-6-3-randread", "rs:6,3"), ("lrc-ceph-4-2-3-randread", "lrc-ceph:4,2,3")],
)
def test_the_json_of_fio_with_another_scheme_in_its_name_is_refused(
    tmp_path, name, scheme
):
    with pytest.raises(MeasuredError) as error:
        scored(tmp_path, fio(), name=f"{name}.json")
    assert states(str(error.value), f"{name}.json: got ... {scheme}, wanted one of")


def test_fio_under_another_load_than_predicted_is_refused(tmp_path):
    with pytest.raises(MeasuredError) as error:
        scored(tmp_path, fio(queue_depth="32"), name="rep-3.json")
    assert states(str(error.value), "iodepth: got 2, 32, wanted 2, 4")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("scheme,iops\nrep:2,1000\n", "measured.csv:2 ... rep:2 ... rep:3"),
        ("op,iops\nread,1000\n", "measured.csv:2 ... 2 rows apart"),
        ("scheme,iops\nrep:3,1000\nrep:3,1100\n", "measured.csv:3 ... repeat"),
        ("scheme,iops\nrep:3,0\n", "measured.csv:2: iops: got '0' ... above 0"),
        ("scheme,iops\nrep:3,fast\n", "measured.csv:2: iops: got 'fast' ... above 0"),
        ("scheme,speed\nrep:3,9\n", "measured.csv:2 ... iops"),
        ("scheme,metric,value\nrep:3,p99,4\n", "measured.csv:2: unit ... ms"),
        ("iops\n1000\n", "measured.csv:2: id"),
        ("scheme,latency_p95_ms\nrep:3,1\n", "no value of a predicted row"),
        # 2 clients keep 4 in flight each: 8 at 1,000 requests/s take 8 ms each.
        (
            "scheme,iops,latency_mean_ms\nrep:3,1000,8000\n",
            "measured.csv:2: mean: got 8000 ms, wanted 4 to 9.6 ms",
        ),
        # A hundredth of the requests takes the p99 or more, so that it is at most 100 means.
        (
            "scheme,latency_mean_ms,latency_p99_ms\nrep:3,8,9000\n",
            "measured.csv:2: p99: got 9000 ms, wanted 4 to 800 ms",
        ),
        # 1,000 requests/s of 4,096 B.
        (
            "scheme,iops,mb_s\nrep:3,1000,4096\n",
            "measured.csv:2: throughput: got 4096 MB/s, wanted about 4.096 MB/s",
        ),
    ],
)
def test_values_that_cannot_be_compared_name_their_line(tmp_path, table, message):
    with pytest.raises(MeasuredError) as error:
        scored(tmp_path, table)
    assert states(str(error.value), message)
    # One wrong cell is one problem.
    assert len(error.value.problems) == 1


@pytest.mark.parametrize(
    "column", ["p99 [ms]", "latency_p99 (ms)", "p99", "Latency_P99_ms", "latency_ms"]
)
def test_a_column_that_would_be_left_out_is_refused(tmp_path, column):
    with pytest.raises(MeasuredError) as error:
        scored(tmp_path, f"scheme,iops,{column}\nrep:3,1000,4\n")
    assert states(str(error.value), f"measured.csv:1: ... {column} ... latency_p99_ms")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("scheme;iops\nrep:3;1000\n", "measured.csv:1: ... semicolons ... commas"),
        ("scheme\tiops\nrep:3\t1000\n", "measured.csv:1: ... tabs ... commas"),
        ("scheme,iops,iops\nrep:3,1000,9\n", "measured.csv:1: ... 2 columns iops"),
        ("\nscheme,iops\nrep:3,1000\n", "measured.csv:1: ... empty"),
    ],
)
def test_a_first_line_without_the_names_of_columns_is_refused(tmp_path, table, message):
    with pytest.raises(MeasuredError) as error:
        scored(tmp_path, table)
    assert states(str(error.value), message)
    assert len(error.value.problems) == 1


def test_blanks_around_names_of_columns_do_not_matter(tmp_path):
    result = scored(tmp_path, "scheme, iops, note\nrep:3, 1000, on Monday\n")
    assert [row.measured for row in result.rows] == [1000]


def test_units_become_those_of_the_quantity(tmp_path):
    file = tmp_path / "m.csv"
    file.write_text(
        "scheme,metric,value,unit\nrep:3,p50,2,us\nrep:3,throughput,3,MB/s\n"
    )
    values = read_measured_file(file, ["rep:3"]).values
    assert [(one.quantity, one.value) for one in values] == [
        ("latency_p50_ns", 2000.0),
        ("throughput_bytes_per_s", 3e6),
    ]


@pytest.mark.parametrize(
    ("stated", "bytes_per_s"),
    [("400,KiB/s", 400 * 1024), ("2,Gbit/s", 250e6), ("7,kB/s", 7000), ("3,", 3)],
)
def test_units_of_throughput_are_those_of_fio_and_of_networks(
    tmp_path, stated, bytes_per_s
):
    file = tmp_path / "m.csv"
    file.write_text(f"scheme,metric,value,unit\nrep:3,throughput,{stated}\n")
    (value,) = read_measured_file(file, ["rep:3"]).values
    assert value.value == bytes_per_s


def test_megabits_are_not_megabytes(tmp_path):
    file = tmp_path / "m.csv"
    file.write_text("scheme,metric,value,unit\nrep:3,throughput,800,Mb/s\n")
    with pytest.raises(MeasuredError, match="Mb/s"):
        read_measured_file(file, ["rep:3"])


# --- commands ---------------------------------------------------------------------------------------------


def test_predict_and_score_on_the_command_line(command, tmp_path):
    (tmp_path / "s.toml").write_text(SCENARIO)
    file, out = tmp_path / "register.json", tmp_path / "out"
    words = ("predict", str(tmp_path / "s.toml"), "--register", str(file))
    status, printed, _ = command(*words, "--json", "-", "--out", str(out))
    assert status == 0
    assert json.loads(printed) == json.loads(file.read_text())
    assert (out / "prediction.svg").exists()
    # The same name again.
    status, _, said = command(*words)
    assert (status, "never replaced" in said) == (2, True)
    # A measurement that agrees with the prediction to the digit.
    row = json.loads(printed)["rows"][0]
    rate = row["values"][0]["predicted"]
    measured = tmp_path / "m.csv"
    measured.write_text(f"id,iops\n{row['id']},{rate!r}\n")
    status, printed, _ = command(
        "score", str(file), str(measured), "--json", "-", "--out", str(out)
    )
    assert status == 0
    assert json.loads(printed)["summary"]["inside"] == 1
    assert (out / "score.svg").exists()


def test_intervals_of_objects_say_how_far_they_are_tested():
    asked = parse_scenario(
        'schemes = ["rep:3"]\n[workload]\nkind = "s3"\nops = ["get"]\nrequests = 2000\n'
        'object_sizes_bytes = ["64k"]\nobjects = 1000\n'
    )
    prediction = predict(asked)
    said = words_on_objects()
    assert "latencies of objects are not tested" in said
    assert said in prediction.warnings
    assert said in register_of(prediction)["warnings"]


@pytest.mark.parametrize(("rate_per_s", "warns"), [(500, False), (60_000, True)])
def test_arrivals_that_a_slower_cluster_cannot_serve_give_a_warning(rate_per_s, warns):
    # Of 24 OSDs at 60,000/s the busiest resource is two thirds full: at a third of the speed it overflows.
    asked = parse_scenario(
        f'schemes = ["rep:3"]\n[workload]\nkind = "open"\nrate_per_s = {rate_per_s}\nops = ["write"]\n'
        "patterns = ['rand']\nrequests = 20000\n"
    )
    prediction = predict(asked)
    found = [line for line in prediction.warnings if "cannot keep up" in line]
    assert len(found) == warns
    assert register_of(prediction)["warnings"] == prediction.warnings
