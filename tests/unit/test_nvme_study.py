"""Study nvme: measured rows, hardware by data sheet, and optional columns of user data."""

import csv
import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from stripesim.calibration.measured.hardware import drive_model, hardware_of
from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import parse_scheme
from stripesim.models.problems import MeasuredError
from stripesim.scenarios.cells.measured import (
    ROUNDS,
    ROUNDS_MIN,
    groups_of,
    models_of,
    part_of,
    predict,
    scenario_of,
)
from stripesim.scenarios.studies.nvme.claims import claims_of
from stripesim.scenarios.studies.nvme.fit import erasure_costs
from stripesim.scenarios.studies.nvme.measured import load
from stripesim.scenarios.studies.nvme.runs import tasks_for
from stripesim.scenarios.studies.registry import study_named
from support.messages import states

ROOT = Path(__file__).resolve().parents[2]
NEW_CLUSTER = """
[new]
nodes = 2
cpu = "AMD EPYC 9354"
cores_per_node = 32
cpu_base_ghz = 3.25
cpu_boost_ghz = 3.8
cpu_architecture = "Zen 4 (2022)"
public_gbit_per_s = 100
clients = "fio on other hosts"
[new.drive]
model = "X"
read_4k_iops = 800000
write_4k_iops = 100000
read_mb_s = 6000
write_mb_s = 4000
read_latency_us = 80
"""


def folder(tmp_path, changes, clusters=NEW_CLUSTER):
    """Write a folder with one row, changed, and its hardware."""
    source = files("stripesim.scenarios.studies.nvme") / "data" / "times.csv"
    rows = list(csv.DictReader(source.read_text("utf-8").splitlines()))
    row = {
        **rows[0],
        "cluster": "new",
        "id": "new-001",
        "nodes": "2",
        "role": "held-out",
        **changes,
    }
    with (tmp_path / "times.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    (tmp_path / "clusters.toml").write_text(clusters)
    return tmp_path


def tasks(data):
    rows, clusters = load(data)
    return tasks_for(rows, clusters, "compiled", "clusters.toml")


def test_all_rows_are_claims_with_the_roles_of_the_file():
    rows, _ = load()
    claims = claims_of(rows)
    assert len(rows) == 308
    assert sum(row.role == "calibration" for row in rows) == 36
    assert {claim.id.split(":")[1] for claim in claims} == {
        "iops",
        "mb_s",
        "latency_mean_ms",
        "latency_p99_ms",
    }
    fitted = [row for row in rows if row.role == "calibration"]
    assert {parse_scheme(row.scheme).kind for row in fitted} == {"replicated"}


def test_halves_of_a_mixed_load_share_one_simulation():
    rows, clusters = load()
    halves = tuple(
        row
        for row in rows
        if row.id in ("upstream-mako-6x2-008", "upstream-mako-6x2-009")
    )
    assert halves[0].run_key == halves[1].run_key
    read, write = predict(
        halves, hardware_of(halves[0], clusters, "clusters.toml"), rounds=20
    )
    assert read["iops"] / write["iops"] == pytest.approx(3, rel=0.15)
    assert read["latency_mean_ms"] < write["latency_mean_ms"]


def test_a_new_cluster_enters_by_data_sheet_and_clock(tmp_path):
    rows, clusters = load(
        folder(
            tmp_path, {"queue_depth_total": "", "op_shards": "4", "msgr_threads": "5"}
        )
    )
    row = rows[0]
    assert (
        row.clients,
        row.queue_depth,
        row.op_shards,
        row.messenger_threads,
    ) == (16, 128, 4, 5)
    hardware = hardware_of(row, clusters, "clusters.toml")
    # Clock and architecture alone would give (2.25 * 3.4 / (3.25 * 3.8)) ** 0.5 / 1.35 = 0.58, but newer
    # cores do not make small requests faster.
    assert hardware.cpu_factor == 1.0
    assert hardware.threads_per_node == 64
    assert not hardware.clients_on_osd_hosts
    drive = drive_model(hardware, 1)
    assert drive.channels == 64
    assert drive.write_ns(4096) == pytest.approx(1e9 / 100_000)
    assert drive.read_ns(4096) + 4096 * drive.link_ns_per_byte == pytest.approx(80_000)


def test_pinned_osds_have_the_threads_that_the_source_left_out():
    rows, clusters = load()
    pinned, whole = (
        next(row for row in rows if row.id == f"upstream-mako-5x6-{number}")
        for number in ("002", "041")
    )
    assert (pinned.threads_per_node, whole.threads_per_node) == (24, None)

    threads = [
        scenario_of(row, hardware_of(row, clusters, "")).cluster.cores_per_host
        for row in (pinned, whole)
    ]

    # The post prints a command for 24 threads, which binds OSDs to 0-12 and 64-76.
    assert threads == [26, 128]


def test_no_threads_beyond_those_stated_may_be_written(tmp_path):
    clusters = NEW_CLUSTER.replace("[new]", "[new]\nthreads_beyond_stated = 0")
    rows, tables = load(folder(tmp_path, {}, clusters))
    assert hardware_of(rows[0], tables, "clusters.toml").threads_beyond_stated == 0


@pytest.mark.parametrize(
    ("cpu", "sockets", "factor"),
    [
        ('"2 x Intel Xeon 8168"', "", 1.6),
        ('"Intel Xeon 8168"', "sockets = 2", 1.6),
        ('"Intel Xeon 8168"', "", 1.0),
    ],
)
def test_a_second_socket_slows_small_requests(tmp_path, cpu, sockets, factor):
    clusters = NEW_CLUSTER.replace('"AMD EPYC 9354"', f"{cpu}\n{sockets}")
    rows, tables = load(folder(tmp_path, {}, clusters))
    assert hardware_of(rows[0], tables, "clusters.toml").cpu_factor == factor


@pytest.mark.parametrize(
    ("changes", "clusters", "message"),
    [
        (
            {},
            NEW_CLUSTER.replace("cpu_boost_ghz = 3.8\n", ""),
            "clusters.toml: [new]: cpu: got 'AMD EPYC 9354' ... cpu_base_ghz",
        ),
        (
            {},
            NEW_CLUSTER.replace("read_mb_s = 6000\n", ""),
            "clusters.toml: [new]: drive: got 'X' ... read_mb_s",
        ),
        (
            {"queue_depth_total": "", "clients": ""},
            NEW_CLUSTER,
            "times.csv:2: queue_depth_total: got ''",
        ),
        (
            {
                "clients": "4",
                "queue_depth_total": "",
                "vms": "8",
                "vm_queue_depth": "2",
            },
            NEW_CLUSTER,
            "times.csv:2: clients: got '4', wanted no number beside vms",
        ),
        (
            {"cpu_limit_per_osd": "-1"},
            NEW_CLUSTER,
            "times.csv:2: cpu_limit_per_osd: got '-1', wanted a number above 0",
        ),
        (
            {"cluster": "other"},
            NEW_CLUSTER,
            "times.csv:2: cluster: got 'other'",
        ),
        (
            {"ec_generation": "fast-ec"},
            NEW_CLUSTER,
            "times.csv:2: ec_generation: got 'fast-ec', wanted",
        ),
        (
            {"scheme": "raid"},
            NEW_CLUSTER,
            "times.csv:2: scheme: got 'raid' ... rep:N",
        ),
        (
            {"scheme": "rs:8,3"},
            NEW_CLUSTER,
            "times.csv:2: scheme: got 'rs:8,3' ... 4",
        ),
        (
            {},
            NEW_CLUSTER.replace("cores_per_node = 32", "cores_per_node = -3"),
            "clusters.toml: [new]: cores_per_node: got -3 ... 0",
        ),
        (
            {},
            NEW_CLUSTER.replace("[new]", "[new]\nthreads_beyond_stated = -1"),
            "clusters.toml: [new]: threads_beyond_stated: got -1, wanted ... 0 or more",
        ),
    ],
)
def test_missing_values_are_reported_in_one_line(tmp_path, changes, clusters, message):
    with pytest.raises(MeasuredError) as error:
        tasks(folder(tmp_path, changes, clusters))
    assert states(str(error.value), message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("stated", "given", "message"),
    [
        # 800,000 reads/s of 4,096 B are 3,276.8 MB/s, and 100,000 writes 409.6 MB/s.
        ("read_mb_s = 6000", "read_mb_s = 6.0", "read_mb_s: got 6 ... 3,276.8"),
        ("write_mb_s = 4000", "write_mb_s = 4.0", "write_mb_s: got 4 ... 409.6"),
        # 1,024 in flight at 800,000 reads/s take 1,280 µs each.
        ("us = 80", "us = 80000", "read_latency_us: got 80000 ... at most 1,280"),
        ("base_ghz = 3.25", "base_ghz = 3250", "cpu_base_ghz: got 3250 ... GHz"),
    ],
)
def test_numbers_of_a_data_sheet_in_another_unit_are_refused(
    tmp_path, stated, given, message
):
    assert stated in NEW_CLUSTER
    with pytest.raises(MeasuredError) as error:
        tasks(folder(tmp_path, {}, NEW_CLUSTER.replace(stated, given)))
    assert states(str(error.value), message)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        # 16 in flight at 20,000 requests/s take 0.8 ms each.
        ({"latency_mean_ms": "0.0008"}, "latency_mean_ms: got '0.0008' ... 0.8 ms"),
        ({"latency_mean_ms": "800"}, "latency_mean_ms: got '800' ... 0.8 ms"),
        # 20,000 requests/s of 4,096 B are 81.92 MB/s.
        ({"iops": "81.92", "mb_s": "20000"}, "mb_s: got '20000', wanted ... 0.3355"),
        ({"iops": "81.92", "latency_mean_ms": "0.8"}, "latency_mean_ms: got '0.8'"),
        ({"iops": "-20000"}, "iops: got '-20000', wanted a number above 0"),
        ({"iops": "0"}, "iops: got '0', wanted a number above 0"),
        ({"iops": "20.000,5"}, "iops: got '20.000,5', wanted a number above 0"),
        ({"latency_p99_us": "3000"}, "times.csv:1: got column latency_p99_us ... ms"),
        # A hundredth of the requests takes the p99 or more: 3,000 ms would make the mean 30 ms.
        (
            {"latency_mean_ms": "0.8", "latency_p99_ms": "3000"},
            "latency_p99_ms: got '3000', wanted 0.4 to 80, with a mean of 0.8",
        ),
        ({"latency_mean_ms": "0.8", "latency_p99_ms": "0.003"}, "wanted 0.4 to 80"),
        ({"tolerance_percent": "0"}, "tolerance_percent: got '0' ... above 0"),
        ({"read_fraction": "70"}, "read_fraction: got '70' ... 0 with write"),
        ({"op": "randwrite"}, "op: got 'randwrite', wanted one of read, write, mixed"),
    ],
)
def test_numbers_in_another_unit_are_refused(tmp_path, numbers, message):
    load_of_row = {"op": "write", "block_bytes": "4096", "clients": "4"}
    right = {"iops": "20000", "mb_s": "", "latency_mean_ms": "", "latency_p99_ms": ""}
    row = load_of_row | {"queue_depth_total": "16"} | right

    (accepted,), _ = load(folder(tmp_path, row | {"latency_mean_ms": "0.8"}))
    with pytest.raises(MeasuredError) as error:
        load(folder(tmp_path, row | numbers))

    assert accepted.measured == {"iops": 20_000, "latency_mean_ms": 0.8}
    assert states(str(error.value), message)
    assert "\n" not in str(error.value)


def test_requests_of_a_load_that_is_not_a_closed_loop_may_be_few(tmp_path):
    blank = {"clients": "", "queue_depth_total": "", "latency_p99_ms": ""}
    limited = {"vms": "8", "vm_queue_depth": "32", "vm_iops_limit": "500"}

    (row,), _ = load(
        folder(tmp_path, blank | limited | {"iops": "4000", "latency_mean_ms": "0.5"})
    )

    assert row.measured == {"iops": 4000, "latency_mean_ms": 0.5}


def test_each_row_has_an_id_of_its_own(tmp_path):
    data = folder(tmp_path, {})
    table = data / "times.csv"
    header, row = table.read_text("utf-8").splitlines()
    table.write_text("\n".join([header, row, row]), "utf-8")

    with pytest.raises(MeasuredError) as error:
        load(data)

    assert states(str(error.value), "times.csv:3: id: got 'new-001', wanted ... line 2")


@pytest.mark.parametrize("text", ["", "\n", "\ufeff"])
def test_an_empty_table_says_so(tmp_path, text):
    data = folder(tmp_path, {})
    (data / "times.csv").write_text(text, "utf-8")

    with pytest.raises(MeasuredError) as error:
        load(data)

    assert states(str(error.value), "times.csv:1: got an empty file, wanted the names")


@pytest.mark.parametrize(
    ("total", "clients", "found"),
    [
        ("24", "16", (12, 2)),
        ("64", "16", (16, 4)),
        ("7", "4", (4, 2)),
        ("3", "8", (3, 1)),
    ],
)
def test_clients_share_the_stated_queue_depth(tmp_path, total, clients, found):
    row = load(folder(tmp_path, {"queue_depth_total": total, "clients": clients}))[0][0]
    assert (row.clients, row.queue_depth) == found


def test_rows_may_state_virtual_machines_and_cpu_limits(tmp_path):
    blank = {"clients": "", "queue_depth_total": ""}
    changes = {**blank, "vms": "8", "vm_queue_depth": "32", "cpu_limit_per_osd": "4"}
    clusters = NEW_CLUSTER.replace("nodes = 2", "nodes = 2\ncpu_limit_per_osd = 2")
    rows, tables = load(folder(tmp_path, changes, clusters))
    (row,) = rows
    assert (row.clients, row.queue_depth) == (8, 32)
    scenario = scenario_of(row, hardware_of(row, tables, "clusters.toml"))
    assert scenario.cluster.cpu_limit_per_osd == 4
    assert (scenario.workload.clients, scenario.workload.queue_depth) == (8, 32)
    # Without a number of its own, a row has its cluster's. 8 machines of 500 requests a second arrive in 3 s.
    changes = {**blank, "vms": "8", "vm_iops_limit": "500"}
    (row,), tables = load(folder(tmp_path, changes, clusters))
    scenario = scenario_of(row, hardware_of(row, tables, "clusters.toml"))
    assert scenario.cluster.cpu_limit_per_osd == 2
    assert scenario.workload.rate_per_s == 4000
    assert scenario.workload.requests == 12_000


def test_columns_that_are_not_stated_may_be_absent(tmp_path):
    data = folder(tmp_path, {"op": "read", "clients": "4"})
    rows = list(csv.DictReader((data / "times.csv").read_text().splitlines()))
    kept = "id cluster nodes drives_per_node ceph_version ec_generation scheme op pattern block_bytes"
    kept += " clients iops role"
    with (data / "times.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, kept.split(), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    (task,) = tasks(data)
    (row,) = task.arguments[0]
    assert (row.queue_depth, row.stripe_unit_bytes, row.tolerance) == (
        128,
        4096,
        0.25,
    )


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(MeasuredError, match="wanted"):
        load(tmp_path / "none")
    shutil.rmtree(tmp_path)


def test_groups_are_those_of_the_autoscaler_where_they_are_not_stated():
    row = next(
        row
        for row in load()[0]
        if row.cluster == "ibm-fastec-1x8" and row.scheme == "rs:6,2"
    )
    assert row.pg_num is None
    assert groups_of(row) == 128
    # 15 × 100 / 8 = 187.5, nearer to 128 than to 256.
    assert groups_of(replace(row, nodes=15, osds_per_node=1)) == 128
    # 1 × 100 / 8 = 12.5, below the least number.
    assert groups_of(replace(row, nodes=1, osds_per_node=1)) == 32


def test_a_slower_processor_is_slower_by_stage_and_frame_but_not_by_byte():
    rows, clusters = load()
    wired, alone = (
        next(row for row in rows if row.cluster == name)
        for name in ("upstream-mako-5x6", "ibm-fastec-1x8")
    )
    models = []
    for row in (wired, alone):
        hardware = hardware_of(row, clusters, "")
        models.append(models_of(scenario_of(row, hardware), row, hardware))
    factor = models[1].cpu.frame_ns / models[0].cpu.frame_ns
    assert models[1].cpu.op_prepare_ns == pytest.approx(
        factor * models[0].cpu.op_prepare_ns
    )
    assert models[1].cpu.message_ns_per_byte == models[0].cpu.message_ns_per_byte
    # One host alone has the loopback's frames of 64 KiB.
    assert [one.private_nic.frames(4 << 20) for one in models] == [2897, 65]


def test_more_placement_groups_give_more_reads():
    rows, clusters = load()
    few, many = (
        next(row for row in rows if row.id == f"upstream-mako-10x6-{number}")
        for number in ("001", "005")
    )
    # As short as a step of a fit: with 64 groups, queues take far longer to get steady than to differ.
    rates = [
        predict([row], hardware_of(row, clusters, ""), rounds=ROUNDS_MIN)[0]["iops"]
        for row in (few, many)
    ]
    assert rates[1] > 3 * rates[0]


def test_the_study_is_listed_with_its_parameters():
    names = {row["name"] for row in study_named("nvme").parameters()}
    assert {
        "cpu.after_reply_ns",
        "cpu.paired_slowdown_fraction",
        "drive.write_rate_fraction",
    } <= names


def test_costs_of_erasure_codes_follow_from_the_set_pacific():
    # `python -m stripesim.scenarios.studies.nvme.fit erasure` carries them over. A tenth: what the intervals
    # of pacific's own numbers leave open.
    shipped = ParameterSet("nvme").table("cpu")
    found = [
        shipped[name]["value"] for name in ("ec_transaction_ns", "ec_copy_ns_per_byte")
    ]
    assert found == pytest.approx(erasure_costs(), rel=0.1)


def test_a_step_of_a_fit_is_no_longer_than_its_rounds(tmp_path):
    # Given 16 loops of 128 reads on two drives, nearly all of which wait at one of them: the audit asks that
    # it completes as many as wait there, and a step of a fit only for eight rounds.
    row = load(folder(tmp_path, {"clients": "16", "queue_depth_total": "2048"}))[0][0]
    hardware = hardware_of(row, load(tmp_path)[1], "")

    step, longer = (
        predict([row], hardware, rounds=rounds)[0] for rounds in (ROUNDS_MIN, 9)
    )

    assert step["requests"] <= 8 * 2048 < longer["requests"]
    assert step["iops"] == pytest.approx(longer["iops"], rel=0.1)


def test_some_hosts_represent_many_at_the_same_load_per_host(tmp_path):
    many = {
        "nodes": "64",
        "clients": "512",
        "queue_depth_total": "65536",
        "pg_num": "32768",
        "latency_p99_ms": "10",
    }
    row = load(folder(tmp_path, {**many, "scheme": "rs:6,2"}))[0][0]
    part = part_of(row)
    assert (part.nodes, part.clients, part.queue_depth, part.pg_num) == (
        16,
        128,
        128,
        8192,
    )
    # Replicas and small loads are simulated whole.
    for less in ({"scheme": "rep:3"}, {"clients": "64", "queue_depth_total": "512"}):
        assert part_of(load(folder(tmp_path, {**many, **less}))[0][0]).nodes == 64
    # A part has the rate of the whole, so it is enough for a row that states no tail.
    row = load(folder(tmp_path, {**many, "scheme": "rep:3", "latency_p99_ms": ""}))
    assert part_of(row[0][0]).nodes == 16
    # A step of a fit is a short run, and 4 hosts are enough for it, or as many as the code is wide.
    row = load(folder(tmp_path, {**many, "scheme": "rep:3"}))[0][0]
    assert part_of(row, rounds=ROUNDS_MIN).nodes == 4
    assert part_of(row, rounds=ROUNDS).nodes == 64
    row = load(folder(tmp_path, {**many, "scheme": "rs:6,2"}))[0][0]
    assert part_of(row, rounds=ROUNDS_MIN).nodes == 8
    # So is a cluster that no part of 16 hosts represents.
    row = load(folder(tmp_path, {**many, "scheme": "rep:3", "nodes": "30"}))[0][0]
    assert part_of(row, rounds=ROUNDS_MIN).nodes == 30


def test_the_measurements_that_the_documentation_shows_are_read(tmp_path):
    page = (ROOT / "docs/nvme.md").read_text("utf-8")
    for language, first, name in (
        ("toml", "[mine]", "clusters.toml"),
        ("text", "id,cluster", "times.csv"),
    ):
        _, _, rest = page.partition(f"```{language}\n{first}")
        (tmp_path / name).write_text(first + rest.partition("```")[0], "utf-8")

    rows, clusters = load(tmp_path)

    assert [row.scheme for row in rows] == ["rep:3", "rep:3", "rs:2,2"]
    hardware = hardware_of(rows[0], clusters, "clusters.toml")
    assert (hardware.threads_per_node, hardware.networks) == (64, 1)
    # Little's law: 512 in flight of 8.5 ms are 60,000 requests/s.
    assert rows[1].measured["iops"] == pytest.approx(512 / 8.5e-3, rel=0.01)
