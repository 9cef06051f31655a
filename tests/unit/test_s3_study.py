"""Study s3 reads clusters from words, fixes roles by rules, and judges rows by their id."""

from __future__ import annotations

import csv
from dataclasses import asdict, fields, replace

import pytest

from stripesim.models.problems import MeasuredError, NotComputedError
from stripesim.scenarios.studies.description import study_folder
from stripesim.scenarios.studies.registry import study_named
from stripesim.scenarios.studies.s3.claims import claims_of, ledger_for
from stripesim.scenarios.studies.s3.counted import QUANTITIES, load_counts
from stripesim.scenarios.studies.s3.counted_runs import (
    count_request,
    models_for,
    simulate_counts,
)
from stripesim.scenarios.studies.s3.described import read_cluster, read_mix
from stripesim.scenarios.studies.s3.measured import ObjectRow, load
from stripesim.scenarios.studies.s3.runs import (
    LARGEST_BYTES,
    cluster_of,
    models_of,
    scenario_of,
    simulate_rows,
    tasks_for,
)
from support.messages import states

ROWS = {row.id: row for row in load()}


def test_hardware_is_read_from_the_words_of_each_source() -> None:
    nvme = read_cluster(ROWS["rgw-229"].hardware)
    assert (nvme.hosts, nvme.osds_per_host, nvme.gateways) == (10, 6, 20)
    assert (nvme.drive, nvme.pg_num, nvme.buckets) == ("samsung-pm983", 8192, 512)
    assert (nvme.threads_per_host, nvme.cpu_factor) == (128, 1.0)
    assert (nvme.gbit_per_s, nvme.networks) == (100, 1)
    # Four gateways on each of twelve nodes with two sockets of 32 cores.
    dell = read_cluster(ROWS["rgw-083"].hardware)
    assert (dell.hosts, dell.osds_per_host, dell.gateways) == (12, 24, 48)
    assert (dell.threads_per_host, dell.gbit_per_s) == (128, 200)
    disks = read_cluster(ROWS["rgw-001"].hardware)
    assert (disks.osds_per_host, disks.drive) == (24, "hdd-7200-nvme-db")
    assert dict(disks.mix) == {"get": 45, "put": 35, "head": 15, "delete": 5}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("EPYC 7742, 6x PM983 3.84TB", "hosts"),
        ("10 hosts, EPYC 7742", "drives"),
    ],
)
def test_what_a_description_lacks_is_the_reason(text, says) -> None:
    with pytest.raises(NotComputedError, match=says):
        read_cluster(text)
    row = replace(ROWS["rgw-229"], hardware=text)
    (found,) = simulate_rows([row])
    assert found["value"] is None
    assert says in found["reason"]


def test_rows_state_their_load() -> None:
    row = ROWS["rgw-083"]
    assert (row.sizes, row.in_flight, row.tls) == (((32 << 20, 1.0),), 256, True)
    assert row.generation == "squid"
    mixed = ROWS["rgw-001"]
    assert (mixed.is_mixed, mixed.s3_op, mixed.generation) == (True, "get", "quincy")
    assert ROWS["rgw-009"].hosts_stopped == 1


def test_roles_follow_the_rules() -> None:
    roles = {row.id: row.role for row in ROWS.values()}
    calibration = {name for name, role in roles.items() if role == "calibration"}
    fitted = {*(f"rgw-{number}" for number in range(229, 241)), "rgw-087", "rgw-091"}
    assert calibration == fitted
    assert roles["rgw-005"] == "not-derivable"
    assert roles["rgw-090"] == "held-out"


def test_an_object_that_no_graph_holds_becomes_several_requests() -> None:
    row = replace(ROWS["rgw-083"], block="128M", scheme="rs:8,3")
    load_of = scenario_of(row, read_cluster(row.hardware)).workload
    assert load_of.object_sizes_bytes == (LARGEST_BYTES,) == (64 << 20,)
    # Half of the objects are as large as two of the other half.
    row = replace(ROWS["rgw-083"], block="64M-128M")
    load_of = scenario_of(row, read_cluster(row.hardware)).workload
    assert load_of.object_sizes_bytes == (64 << 20,)
    assert load_of.size_shares == pytest.approx((0.5 + 0.5 * 2,))


def test_disks_of_an_early_reef_have_five_operation_queues() -> None:
    row = next(row for row in load() if row.system == "Ceph RGW Reef 18.1.2")
    cluster = scenario_of(row, read_cluster(row.hardware)).cluster
    assert (cluster.op_shards, cluster.op_threads_per_shard) == (5, 1)


def test_a_range_has_sizes_as_its_generator_draws_them() -> None:
    # Without a known generator, 1 KiB to 256 KiB are nine powers of two.
    warped = replace(ROWS["rgw-001"], source="elsewhere")
    row = replace(warped, hardware="8 hosts, 24x 2TB HDD", threads="5 drivers")
    assert [size for size, _ in row.sizes] == [1024 << power for power in range(9)]
    # The author of warp states a mean of 0.179151 of the largest size.
    sizes = warped.sizes
    mean = sum(size * share for size, share in sizes)
    assert mean == pytest.approx(0.179 * (256 << 10), rel=0.01)


@pytest.mark.parametrize("clients", [256, 512, 768, 1024, 100])
def test_exactly_the_stated_requests_are_in_flight_on_all_gateways(clients) -> None:
    row = replace(ROWS["rgw-083"], threads=f"{clients} clients")
    cluster = read_cluster(row.hardware)
    load_of = scenario_of(row, cluster).workload
    assert load_of.clients * load_of.queue_depth == clients
    assert cluster.gateways % load_of.clients == 0


def test_times_of_bytes_follow_the_clock_and_those_of_requests_do_not() -> None:
    row = ROWS["rgw-083"]
    cluster = read_cluster(row.hardware)
    first = ROWS["rgw-229"]
    reference = read_cluster(first.hardware)
    fitted = models_of(scenario_of(first, reference), reference)
    own = models_of(scenario_of(row, cluster), cluster)
    # √(2.25 × 3.4) GHz over √(2.0 × 3.6) GHz and 1.26 times the work per clock.
    by_clock = (2.25 * 3.4 / (2.0 * 3.6)) ** 0.5 / 1.26
    assert own.cpu.frame_ns == pytest.approx(fitted.cpu.frame_ns * by_clock)
    assert own.cpu.op_prepare_ns == pytest.approx(fitted.cpu.op_prepare_ns * 1.6)
    assert own.gateway is not None
    assert fitted.gateway is not None
    # One number for one row, rgw-091.
    half = fitted.gateway.put_ns_per_byte / 2
    assert own.gateway.put_ns_per_byte == pytest.approx(half)


def test_values_and_ratios_are_judged_by_id() -> None:
    rows = [ROWS["rgw-083"], ROWS["rgw-084"], ROWS["rgw-005"]]
    names = [claim.id for claim in claims_of(rows)]
    assert names == ["rgw-083", "rgw-084", "rgw-005", "rgw-084/rgw-083"]
    # 28.4 and 50.0 GiB/s: a ratio of 1.76.
    simulated = [
        {"row_id": "rgw-083", "value": 30.0, "reason": None},
        {"row_id": "rgw-084", "value": 60.0, "reason": None},
    ]
    ledger = ledger_for(rows, simulated, [])
    found = {entry.claim.id: entry for entry in ledger.entries}
    # 5.6 % and 20 % too high, the ratio 2.0 by 13.6 %.
    assert found["rgw-083"].verdict == found["rgw-084"].verdict == "right"
    assert found["rgw-084/rgw-083"].simulated == 2.0
    assert found["rgw-084/rgw-083"].verdict == "right"
    assert found["rgw-005"].verdict == "not-derivable"
    assert "aged" in found["rgw-005"].reason


def test_a_folder_of_further_rows_is_read(tmp_path) -> None:
    with pytest.raises(MeasuredError, match=r"s3\.csv"):
        load(tmp_path)
    (tmp_path / "s3.csv").write_text("id,value\n1,2\n", encoding="utf-8")
    with pytest.raises(MeasuredError, match="got no column system"):
        load(tmp_path)


def test_other_words_for_hosts_gateways_and_loads() -> None:
    apart = read_cluster(
        "6 OSD nodes (Pentium, 96 vCPU, 8x 4TB NVMe), 4 RGW nodes, 2x 25GbE"
    )
    assert (apart.hosts, apart.osds_per_host, apart.gateways) == (6, 8, 4)
    assert (apart.gateways_apart, apart.threads_per_host) == (True, 96)
    assert (apart.gbit_per_s, apart.cpu_source) == (50, "not stated")
    row = replace(
        ROWS["rgw-083"],
        threads="12 hosts x 64 threads",
        state="healthy, 4 nodes, no SSL",
    )
    assert (row.in_flight, row.tls, row.hosts) == (768, False, 4)
    # Four of twelve hosts have 16 of 48 gateways.
    assert cluster_of(row).gateways == 16


def counted(name):
    return next(row for row in load_counts() if row.id == name)


def test_counters_of_replication_and_of_one_pool_are_calibration() -> None:
    roles = {(row.scheme, row.pool): row.role for row in load_counts()}
    assert roles == {
        ("rep:3", "replicated"): "calibration",
        ("rs:6,3", "optimised"): "calibration",
        ("rs:6,3", "classic"): "held-out",
        ("rs:4,2", "optimised"): "held-out",
    }


def test_counters_below_the_noise_make_no_claim() -> None:
    row = counted("rgw20-rep3-get-4096")
    # It writes nothing, and sends nothing between OSDs.
    assert {claim.metric for claim in row.claims()} == {
        "operations",
        "device_read",
        "osd_net",
    }


def test_a_put_to_a_classic_pool_is_predicted_within_the_tolerance() -> None:
    # Nine shards of one unit of 4 KiB. Six transactions of the index, nine of the head, nine roll-forwards.
    row = counted("rgw20-ec63c-put-4096")
    counts = count_request(row)
    assert counts["device_data_write"] == 9 * 4096 == row.counted["device_data_write"]
    assert counts["transactions"] == 6 + 9 + 9 == row.counted["transactions"]
    assert counts["operations"] == 3 == row.counted["operations"]
    assert counts["device_write"] == pytest.approx(
        row.counted["device_write"], rel=0.05
    )


def test_only_possible_primaries_of_an_optimised_pool_store_attributes() -> None:
    row = counted("rgw20-ec42f-put-4096")
    models = models_for(row)
    without = replace(models, gateway=replace(models.gateway, attributes_bytes=0))
    logged = [
        count_request(row, own)["device_write"] - 4096 * 3 for own in (models, without)
    ]
    # Shard 0 and two parities of six.
    assert logged[0] - logged[1] == 3 * models.gateway.attributes_bytes


def test_a_folder_may_have_counters_alone(tmp_path) -> None:
    header, first = (
        (study_folder("s3") / "data" / "rgw.csv").read_text().split("\n")[:2]
    )
    (tmp_path / "rgw.csv").write_text(f"{header}\n{first}\n")
    assert load(tmp_path) == ()
    (row,) = load_counts(tmp_path)
    assert row.id == "rgw20-rep3-put-4096"
    # A count is written without its unit 1: three writes for a PUT, and 8.7 kB between gateway and OSDs.
    words = {claim.id.split(":")[1]: claim.published_words for claim in row.claims()}
    assert words["operations"] == "3"
    assert words["osd_net"] == "8726 B"
    (tmp_path / "rgw.csv").write_text(f"{header}\n{first.replace('put', 'patch')}\n")
    with pytest.raises(MeasuredError, match=r"rgw\.csv:2: op"):
        load_counts(tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"release": "12.2.1"}, "rgw.csv:2: release: got '12.2.1' ... 14, 16, 18, 20"),
        ({"release": "tentacle"}, "release: got 'tentacle' ... such as 20.2.4"),
        ({"scheme": "3 copies"}, "scheme: got '3 copies' ... rep:N"),
        ({"scheme": "rs:14,4", "pool": "classic"}, "scheme: got 'rs:14,4' ... 16"),
        ({"scheme": "rs:4,2"}, "pool: got 'replicated' ... with a code"),
        ({"pool": "classic"}, "pool: got 'classic' ... replicated with copies"),
        (
            {"release": "18.2.7", "scheme": "rs:4,2", "pool": "optimised"},
            "pool: got 'optimised', wanted classic ... with 20",
        ),
        (
            dict.fromkeys(QUANTITIES, ""),
            "rgw.csv:2: operations: got '', wanted a number in one of operations",
        ),
    ],
)
def test_counters_of_other_clusters_are_refused_by_column(tmp_path, change, says):
    shipped = (study_folder("s3") / "data" / "rgw.csv").read_text()
    row = next(csv.DictReader(shipped.splitlines())) | change
    with (tmp_path / "rgw.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    with pytest.raises(MeasuredError) as error:
        load_counts(tmp_path)
    assert states(str(error.value), says)


def test_counters_that_no_number_was_taken_from_are_held_out() -> None:
    shipped = next(row for row in load_counts() if row.scheme == "rep:3")
    assert shipped.role == "calibration"
    assert replace(shipped, id="mine").role == "held-out"


def test_counters_have_ids_of_their_own(tmp_path) -> None:
    header, first = (
        (study_folder("s3") / "data" / "rgw.csv").read_text().split("\n")[:2]
    )
    (tmp_path / "rgw.csv").write_text(f"{header}\n{first}\n{first}\n")
    with pytest.raises(MeasuredError, match=r"rgw\.csv:3: id: .*each id once"):
        load_counts(tmp_path)


def test_a_counted_request_that_no_graph_holds_says_why() -> None:
    row = next(row for row in load_counts() if row.op == "put")
    (found, *_) = simulate_counts(replace(row, size=1 << 30))
    assert found["value"] is None
    assert "16384" in found["reason"]


def unusual(**columns: str) -> ObjectRow:
    """Return a row of a small cluster with some columns replaced."""
    values = {
        "id": "x-1",
        "system": "Ceph RGW Squid 19.2.0",
        "source": "",
        "hardware": "6 hosts, 10x 3.84TB NVMe, 2x 100GbE",
        "scheme": "rs:8,3",
        "op": "GET",
        "block": "64K",
        "threads": "16 clients",
        "state": "new",
        "metric": "throughput",
        "value": "100",
        "unit": "MB/s",
        "how": "",
        "note": "",
    }
    return ObjectRow(**(values | columns))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"op": ""}, "the operation ''"),
        ({"op": "COPY"}, "the operation 'COPY'"),
        ({"block": ""}, "the size ''"),
        ({"block": "0 B"}, "the size '0 B'"),
        ({"block": "256K-1K objects"}, "the size '256K-1K objects'"),
        ({"threads": "0 clients"}, "0 requests in flight"),
        ({"threads": "1,000,000 threads"}, "1,000,000 requests in flight"),
        ({"hardware": ""}, "the number of hosts is not stated"),
        ({"hardware": "5 hosts"}, "number and kind of drives"),
        ({"op": "PUT in hybrid"}, "the mix of operations is not stated"),
        ({"state": "6 of 6 nodes down"}, "cluster.hosts: got 0"),
    ],
)
def test_a_row_that_cannot_be_simulated_gets_a_reason_and_no_traceback(columns, reason):
    row = unusual(**columns)
    # Neither the list of simulations nor that of claims fails for it.
    (call,) = tasks_for([row], "compiled")
    assert call.words == row.id
    assert len(claims_of([row])) == 1
    (result,) = simulate_rows([row])
    assert result["value"] is None
    assert reason in result["reason"]


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("45r/35w/15stat/5del", {"get": 45, "put": 35, "head": 15, "delete": 5}),
        ("70 % GET, 30 % PUT", {"get": 70, "put": 30}),
        ("80% reads 20% writes", {"get": 80, "put": 20}),
        ("80% full", {}),
    ],
)
def test_the_mix_of_a_load_is_read_from_words(text, shares):
    assert dict(read_mix(text)) == shares


@pytest.mark.parametrize(
    ("words", "gbit_per_s", "networks"),
    [
        ("2.5GbE", 2.5, 1),
        ("10 Gigabit Ethernet", 10, 1),
        ("10GBASE-T", 10, 1),
        ("25Gbe", 25, 1),
        ("40Gb InfiniBand", 40, 1),
        ("2x100G LACP", 200, 1),
        ("dual 25GbE", 50, 1),
        # Memory and drives are no network.
        ("256 GB DDR4", 100, 2),
        ("128Gb RAM, 2x25G", 50, 1),
        ("6x 100G NVMe", 100, 2),
    ],
)
def test_networks_are_read_from_the_words_that_sources_use(words, gbit_per_s, networks):
    cluster = read_cluster(f"4 nodes, 12x 4TB HDD, {words}")
    assert (cluster.gbit_per_s, cluster.networks) == (gbit_per_s, networks)


def test_numbers_may_have_commas_between_thousands():
    cluster = read_cluster("84 hosts, 1,008 OSDs, HDD, 4,096 PGs, 1,000 buckets")
    assert (cluster.hosts, cluster.osds_per_host) == (84, 12)
    assert (cluster.pg_num, cluster.buckets) == (4096, 1000)
    assert read_cluster("4 nodes, 12x 4TB HDD, pg_num=512").pg_num == 512
    # 12 OSDs on each of 4 hosts would have more groups than 128. How many depends on the code.
    assert read_cluster("4 nodes, 12x 4TB HDD, 128 PGs per OSD").pg_num is None


def test_drives_of_the_database_are_not_those_of_data():
    for words in (
        "12 OSDs per node; HDD; block.db on 2x 3.2TB NVMe",
        "12x 4TB HDD, DB on 14x 1TB NVMe",
        "12 OSDs each, HDD, WAL and DB on 2x 1TB NVMe",
    ):
        cluster = read_cluster(f"4 nodes, {words}")
        assert (cluster.osds_per_host, cluster.drive) == (12, "hdd-7200-nvme-db")


def test_gateways_apart_are_known_by_their_machines():
    for words in ("8 RGWs on separate hosts", "4 gateways on their own machines"):
        assert read_cluster(f"4 nodes, 12x 4TB HDD, {words}").gateways_apart
    assert not read_cluster("4 nodes, 12x 4TB HDD, 4 RGWs").gateways_apart


def test_disks_are_known_by_their_speed():
    for words in ("12x 4TB 7.2k SATA", "12x 4TB 7200 rpm"):
        assert read_cluster(f"4 nodes, {words}").drive == "hdd-7200"
    assert (
        read_cluster("4 nodes, 12x 4TB 7200 rpm + NVMe DB").drive == "hdd-7200-nvme-db"
    )


def test_nothing_is_a_multiple_of_a_row_of_zero():
    rows = [unusual(value="0"), unusual(id="x-2", scheme="rs:4,2")]
    assert [claim.id for claim in claims_of(rows)] == ["x-1", "x-2"]


def test_a_source_that_states_its_sizes_has_those_in_place_of_a_range():
    row = ROWS["rgw-001"]
    assert row.block == "1K-256K objects"
    kib = [size >> 10 for size, _ in row.sizes]
    assert kib == [1, 4, 8, 64, 256]
    assert [share for _, share in row.sizes] == [0.2] * 5


@pytest.mark.parametrize(
    ("words", "drive"),
    [
        ("24x 2TB HDD", "hdd-7200"),
        ("24x 2TB", "nvme-tlc"),
        ("12x 8TB SATA", "hdd-7200"),
        ("12x 8TB SAS, DB on NVMe", "hdd-7200-nvme-db"),
        ("12x 8TB SATA HDD, 2x 960GB SATA SSD (DB)", "hdd-7200-nvme-db"),
        ("2x 1.6TB NVMe (WAL/DB), 12x 10TB", "hdd-7200-nvme-db"),
        ("60 OSDs, 12TB HDD", "hdd-7200"),
        ("8x 1.92TB SATA SSD", "sata-tlc"),
        ("8x 1.6TB SAS SSD", "sata-tlc"),
        ("8x 3.84TB NVMe SSD", "nvme-tlc"),
        ("8x 3.84TB U.2", "nvme-tlc"),
        ("8x 15TB QLC NVMe", "nvme-qlc"),
        ("10 NVMe drives each", "nvme-tlc"),
    ],
)
def test_the_kind_of_drive_is_that_of_the_words_beside_its_size(words, drive):
    assert read_cluster(f"4 nodes, {words}").drive == drive


@pytest.mark.parametrize(
    ("words", "osds"),
    [
        ("2x 1.6TB NVMe (WAL/DB), 12x 10TB HDD", 12),
        ("2x Xeon Gold 6338, 512GB, 10x 4TB NVMe", 10),
        ("2x 480GB SSD boot, 8x 7.68TB NVMe", 8),
        ("40 OSDs, NVMe", 10),
        ("10 OSDs/node, NVMe", 10),
        ("6 HDDs each", 6),
    ],
)
def test_drives_for_other_purposes_are_no_osds(words, osds):
    assert read_cluster(f"4 nodes, {words}").osds_per_host == osds


@pytest.mark.parametrize(
    ("words", "gbit_per_s"),
    [("2x 25GbE", 50), ("100 Gbit/s", 100), ("25Gbps", 25), ("10 Gb Ethernet", 10)],
)
def test_networks_are_read_in_other_words(words, gbit_per_s):
    cluster = read_cluster(f"4 nodes, 8x 4TB NVMe, {words}")
    assert (cluster.gbit_per_s, cluster.networks) == (gbit_per_s, 1)


@pytest.mark.parametrize(
    ("words", "threads"),
    [("32 cores", 64), ("2x 16-core CPU", 64), ("96 vCPU", 96), ("", 128)],
)
def test_cores_of_an_unknown_processor_are_read(words, threads):
    text = f"4 nodes, {words}, 8x 4TB NVMe"
    assert read_cluster(text).threads_per_host == threads


@pytest.mark.parametrize(
    ("threads", "in_flight"),
    [
        ("64 clients * 16 threads", 1024),
        ("4 hosts, 64 threads each", 256),
        ("8 clients, QD 16", 128),
        ("128 threads/client, 4 clients", 512),
        ("16 threads per client, 4 clients", 64),
        ("2.5k threads", 2500),
        ("12,800 threads", 12_800),
        ("64", 64),
    ],
)
def test_loads_are_read_in_other_words(threads, in_flight):
    assert unusual(threads=threads).in_flight == in_flight


@pytest.mark.parametrize(
    ("block", "kib"),
    [
        ("4 KiB", [4]),
        ("0.5M", [512]),
        ("4K,64K,1M", [4, 64, 1024]),
        ("4 KB to 16 KB", [4, 8, 16]),
    ],
)
def test_sizes_are_read_in_other_words(block, kib):
    assert [size >> 10 for size, _ in unusual(block=block).sizes] == kib


@pytest.mark.parametrize(
    ("op", "stated", "mix"),
    [
        ("multipart PUT", "put", {}),
        ("List objects", "list", {}),
        ("GET, 70/30 mixed", "get", {"get": 70, "put": 30}),
        ("mixed 70r/30w", "all", {"get": 70, "put": 30}),
        ("70% GET 30% PUT", "get", {"get": 70, "put": 30}),
    ],
)
def test_a_mix_states_one_operation_or_all(op, stated, mix):
    row = unusual(op=op)
    assert row.s3_op == stated
    assert row.is_mixed == bool(mix)
    assert dict(cluster_of(row).mix) == mix


@pytest.mark.parametrize(
    ("state", "scheme", "reason"),
    [
        ("degraded", "rs:2,2", "how many hosts are down is not stated"),
        ("recovering", "rs:2,2", "the amount of data"),
        ("2 OSDs down", "rs:2,2", "only whole hosts"),
        ("degraded, 1 node down", "rs:4,2", "6 shards on 6 hosts, and 5 are up"),
        ("degraded, 1 node down", "rs:2,2", None),
        ("healthy, 1 of 6 hosts stopped", "rs:2,2", None),
    ],
)
def test_states_of_which_no_run_knows_are_a_reason(state, scheme, reason):
    (result,) = simulate_rows([unusual(state=state, scheme=scheme)])
    if reason is None:
        assert result["value"] > 0
    else:
        assert result["value"] is None
        assert reason in result["reason"]


def test_rows_of_one_run_state_numbers_in_other_units():
    units = [
        ("throughput", "MB/s"),
        ("throughput", "Gb/s"),
        ("rate", "reqs/s"),
        ("rate", "k IOPS"),
        ("throughput per node", "MB/s"),
        ("RGW CPU", "vCPU"),
        ("CPU per RGW", "%"),
        ("mean latency", "ms"),
        ("p50", "ms"),
        ("median latency", "us"),
    ]
    rows = [
        unusual(id=f"x-{number}", metric=metric, unit=unit)
        for number, (metric, unit) in enumerate(units)
    ]
    values = [row["value"] for row in simulate_rows(rows)]
    mb, gbit, rate, thousands, per_node, cores, percent, mean, p50, median = values
    assert gbit == pytest.approx(mb / 125)
    assert rate == pytest.approx(mb * 1e6 / 65536)
    assert thousands == pytest.approx(rate / 1000)
    # Six nodes with a gateway each.
    assert per_node == pytest.approx(mb / 6)
    assert percent == pytest.approx(100 * cores / 6)
    # 16 requests in flight.
    assert mean == pytest.approx(16e3 / rate, rel=0.05)
    assert median == pytest.approx(1000 * p50)


@pytest.mark.parametrize(
    ("metric", "unit", "reason"),
    [
        ("TTFB latency", "ms", "first byte"),
        ("max latency", "ms", "'max latency'"),
        ("p99.99 latency", "ms", "99.99 %"),
        ("throughput per client", "MB/s", "no rule"),
        ("time to recover", "h", "no rule"),
        ("rate", "k", "no rule"),
    ],
)
def test_numbers_that_no_run_states_are_a_reason(metric, unit, reason):
    (result,) = simulate_rows([unusual(metric=metric, unit=unit)])
    assert result["value"] is None
    assert reason in result["reason"]


@pytest.mark.parametrize("value", ["", "n/a", "-5", "nan"])
def test_a_row_without_a_value_is_a_prediction_and_the_others_are_judged(
    tmp_path, value
):
    # Given three rows of one run, the second without a value.
    rows = [
        unusual(id="x-1", value="1,000"),
        unusual(id="x-2", value=value),
        unusual(id="x-3", value="900", threads="8 clients"),
    ]
    table = tmp_path / "s3.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(ObjectRow)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    loaded = load(tmp_path)
    assert [row.published for row in loaded] == [1000.0, None, 900.0]
    # When all are judged
    simulated = [{"row_id": row.id, "value": 950.0, "reason": None} for row in loaded]
    ledger = ledger_for(loaded, simulated, [])
    # Then the second has its value and no verdict, and does not count.
    entries = {entry.claim.id: entry for entry in ledger.entries}
    assert entries["x-1"].verdict == entries["x-3"].verdict == "right"
    assert entries["x-2"].simulated == 950.0
    assert entries["x-2"].verdict == "not-derivable"
    assert (repr(value) if value else "nothing") in entries["x-2"].reason
    assert entries["x-3/x-1"].simulated == 1.0
    assert ledger.summary()["held_out"] == 3


def test_ids_are_unique(tmp_path):
    columns = [field.name for field in fields(ObjectRow)]
    line = ",".join("x" for _ in columns)
    (tmp_path / "s3.csv").write_text("\n".join([",".join(columns), line, line]))
    with pytest.raises(MeasuredError, match=r"s3\.csv:3: id: got 'x'"):
        load(tmp_path)


def test_runs_of_many_clients_cut_objects_into_smaller_ones():
    big = unusual(
        block="256M", threads="4000 threads", hardware="100 hosts, 24x 4TB NVMe"
    )
    load_of = scenario_of(big, read_cluster(big.hardware)).workload
    # 4,000 x 8 rounds x 11 shards x 16 chunks are more than 4 million, and 8 chunks are not.
    assert load_of.object_sizes_bytes == (32 << 20,)
    assert load_of.requests == 4000 * 8
    few = replace(big, threads="64 threads")
    load_of = scenario_of(few, read_cluster(few.hardware)).workload
    assert load_of.object_sizes_bytes == (LARGEST_BYTES,)


def test_figures_show_each_counter_and_not_their_means(tmp_path) -> None:
    # Given the counters of two requests: one in a replicated pool, and one that says twice its operations
    header, first = (
        (study_folder("s3") / "data" / "rgw.csv").read_text().split("\n")[:2]
    )
    second = first.replace("rgw20-rep3", "other").replace(",200,3.0,", ",200,6.0,")
    (tmp_path / "rgw.csv").write_text(f"{header}\n{first}\n{second}\n")
    # When the study draws them
    study = study_named("s3")
    result = study.run(data=tmp_path)
    figures = study.figures(result)
    # Then both ratios of operations are points: 3 / 3 and 3 / 6.
    assert set(figures) == {"counters"}
    heights = [
        height
        for axes in figures["counters"][0].axes
        for line in axes.lines
        for height in line.get_ydata()
    ]
    assert {1.0, 0.5} <= set(heights)
