"""Import of an invented cluster: use, capacity, cores, load and plan, each counted by hand.

The cluster of `support.reports` has 6 hosts in 3 racks, with 4 disks of 4.096 TB each: 98.304 TB raw.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from stripesim.calibration.parameters.sets import ParameterSet
from stripesim.models.coding import parse_scheme
from stripesim.models.generations import generation
from stripesim.models.problems import AnswerError, MeasuredError
from stripesim.scenarios.answers.cluster import answer_of_cluster, sections_of
from stripesim.scenarios.answers.plan.candidates import (
    candidates_of,
    judge_closed_forms,
)
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import osd_domains
from stripesim.scenarios.clusters.capacity import capacity_of, pg_choices
from stripesim.scenarios.clusters.cluster import import_cluster
from stripesim.scenarios.clusters.counted_scenario import plan_of, scenario_without_map
from stripesim.scenarios.clusters.hardware import (
    PARAMETER_SETS,
    _families,
    nearest_parameters,
    processor_of,
)
from stripesim.scenarios.clusters.pool_workload import load_of
from stripesim.scenarios.clusters.scenario import (
    describe_pool,
    scenario_of,
    write_scenario,
)
from stripesim.scenarios.clusters.summary import describe_cluster
from stripesim.scenarios.clusters.usage import mean_object, stored_on, use_by_class
from stripesim.scenarios.forms.capacity import capacity_of as scheme_capacity
from stripesim.scenarios.forms.capacity import drives_of
from stripesim.scenarios.schema.scenario import load_scenario, scenario_from
from stripesim.scenarios.schema.units import bytes_text
from stripesim.web.uploads import read_report
from support.reports import HOSTS, OSD_BYTES, OSDS_PER_HOST, report, write_report

RAW_BYTES = HOSTS * OSDS_PER_HOST * OSD_BYTES
KIB = 1024


@pytest.fixture
def imported(tmp_path):
    """Import a report, changed as `support.reports.report` allows, with further files."""

    def load(*more, **changes):
        paths = [write_report(tmp_path, report(**changes))]
        paths += [
            write_report(tmp_path, document, f"{number}.json")
            for number, document in enumerate(more)
        ]
        return import_cluster(paths)

    return load


# Bytes in use.


def test_the_use_of_a_class_is_its_reported_sum_without_databases(imported):
    database = 100 * 2**30
    used_kib = 30_000_000_000
    cluster = imported(kb_used=used_kib, database_bytes=database)
    use = use_by_class(cluster)["hdd"]
    assert (use.basis, use.used_bytes) == ("class", used_kib * KIB)
    assert use.data_bytes == used_kib * KIB - 24 * database
    (row,) = capacity_of(cluster)["classes"]
    assert row["used_bytes"] == used_kib * KIB
    # Three copies on all OSDs: a client byte takes three.
    assert stored_on(cluster, cluster.pools[0]) == pytest.approx(use.data_bytes / 3)


def test_the_use_of_each_osd_goes_before_that_of_its_class(imported):
    # 1 to 24 million KiB on the OSDs, 300 million in all.
    nodes = [
        {"id": osd, "type": "osd", "kb": OSD_BYTES // KIB, "kb_used": (osd + 1) * 10**6}
        for osd in range(24)
    ]
    cluster = imported({"nodes": nodes}, kb_used=1)
    use = use_by_class(cluster)["hdd"]
    assert (use.basis, use.used_bytes) == ("osds", 300 * 10**6 * KIB)
    # As `ceph osd df`: 24 million of the last OSD's KiB, over a mean of 12.5 million (VAR).
    (row,) = capacity_of(cluster)["classes"]
    assert row["fullest"] == {
        "osd": 23,
        "used_ratio": pytest.approx(24 * 10**6 * KIB / OSD_BYTES),
        "used_over_mean": pytest.approx(24 / 12.5),
    }


def test_a_separate_database_is_no_room_although_osd_df_counts_it(imported, tmp_path):
    # Given OSDs of 4.096 TB with a database of 1.024 TB, half full with data, in the terms of `ceph osd df`.
    database = OSD_BYTES // 4
    used_bytes = database + OSD_BYTES // 2
    nodes = [
        {
            "id": osd,
            "type": "osd",
            "kb": (OSD_BYTES + database) // KIB,
            "kb_used": used_bytes // KIB,
        }
        for osd in range(24)
    ]
    with_df = imported({"nodes": nodes}, database_bytes=database)
    without = imported(database_bytes=database)
    # Then the raw bytes are those of the data devices, as without the file.
    (row,) = capacity_of(with_df)["classes"]
    assert row["raw_bytes"] == RAW_BYTES
    (pool,) = capacity_of(with_df)["pools"]
    (same,) = capacity_of(without)["pools"]
    assert pool["usable_bytes_full"] == same["usable_bytes_full"]
    # The fullest OSD is as full as `ceph osd df` shows: 3 of 5 parts.
    assert row["fullest"]["used_ratio"] == pytest.approx(0.6)
    # The page draws half of the raw bytes as used, because these exclude databases.
    document, _ = describe_cluster(with_df)
    (table,) = sections_of(document, ())[0].tables
    assert table.rows[-1][1].share == pytest.approx(0.5)
    # And the scenario has drives of 4.096 TB, half full.
    scenario = scenario_of(with_df, with_df.pools[0], "m.txt").tables["cluster"]
    assert scenario["drive_bytes"] == "4.096TB"
    assert scenario["used_bytes"] == [OSD_BYTES // 2] * 24


@pytest.mark.parametrize(
    ("stated", "size_bytes", "drive"),
    [
        # Ceph 15 and later say whether the database has a device of its own.
        ("1", 2**36, "hdd-7200-nvme-db"),
        ("0", 2**36, "hdd-7200"),
        # Ceph 14 lists only such a database, and Ceph 13 the shared device, too.
        (None, 2**36, "hdd-7200-nvme-db"),
        (None, OSD_BYTES, "hdd-7200"),
        (None, 0, "hdd-7200"),
    ],
)
def test_a_database_of_its_own_is_known_in_each_release(
    imported, stated, size_bytes, drive
):
    metadata = {"bluefs_db_rotational": "0"}
    if stated is not None:
        metadata["bluefs_dedicated_db"] = stated
    if size_bytes:
        metadata["bluefs_db_size"] = str(size_bytes)
    cluster = imported(version="14.2.21", metadata=metadata)
    own_bytes = size_bytes if drive == "hdd-7200-nvme-db" else 0
    assert {osd.database_bytes for osd in cluster.osds} == {own_bytes}
    described = describe_pool(cluster, cluster.pools[0])
    assert described.cluster["drive"] == drive


def test_the_fullest_osd_is_unknown_without_the_use_of_each(imported):
    (row,) = capacity_of(imported(kb_used=10**6))["classes"]
    assert row["fullest"] is None


def test_without_class_sums_the_total_counts_and_without_any_the_pools(
    imported, tmp_path
):
    document = report(counters={"num_bytes": 2 * 10**12})
    document.pop("osd_sum_by_class")
    cluster = import_cluster(
        [
            write_report(
                tmp_path, {**document, "osd_sum": {"kb": 10**10, "kb_used": 7 * 10**9}}
            )
        ]
    )
    use = use_by_class(cluster)["hdd"]
    assert (use.basis, use.used_bytes) == ("cluster", 7 * 10**9 * KIB)
    cluster = import_cluster([write_report(tmp_path, document)])
    use = use_by_class(cluster)["hdd"]
    assert (use.basis, use.used_bytes) == ("pools", pytest.approx(3 * 2 * 10**12))


def test_the_keys_of_a_pool_are_in_use_on_each_copy(tmp_path):
    document = report(counters={"num_bytes": 10**12, "num_omap_bytes": 2 * 10**11})
    document.pop("osd_sum_by_class")
    cluster = import_cluster([write_report(tmp_path, document)])
    used_bytes = use_by_class(cluster)["hdd"].used_bytes
    # Three copies of 1 TB of data and 0.2 TB of keys.
    assert used_bytes == pytest.approx(3 * (10**12 + 2 * 10**11))


def test_ceph_df_adds_use_and_counters_to_a_dump(imported, tmp_path):
    document = report()
    stats = {
        "stored": 5 * 10**12,
        "rd": 10,
        "rd_bytes": 10 * 8192,
        "wr": 30,
        "wr_bytes": 30 * 65536,
    }
    df = {
        "stats": {},
        "stats_by_class": {
            "hdd": {"total_bytes": 10**14, "total_used_raw_bytes": 16 * 10**12}
        },
        "pools": [{"name": "data", "id": 1, "stats": stats}],
    }
    paths = [
        write_report(tmp_path, document[key], f"{key}.json")
        for key in ("osdmap", "crushmap", "osd_metadata")
    ]
    cluster = import_cluster([*paths, write_report(tmp_path, df, "df.json")])
    assert use_by_class(cluster)["hdd"].used_bytes == pytest.approx(
        16 * 10**12, abs=KIB
    )
    load = load_of(cluster, cluster.pools[0])
    assert (load.read_bytes, load.write_bytes, load.read_fraction) == (
        8192,
        65536,
        0.25,
    )


# Capacity and failure domains.


@pytest.mark.parametrize(
    ("rule", "domain", "domains"),
    [
        ((("chooseleaf_firstn", 0, "host"),), "host", 6),
        ((("choose_firstn", 0, "osd"),), "osd", 24),
        ((("chooseleaf_firstn", 0, "rack"),), "rack", 3),
        ((("choose_firstn", 0, "rack"), ("chooseleaf_firstn", 1, "host")), "rack", 3),
        # Two hosts in each of several racks: shards differ in the host only.
        ((("choose_firstn", 2, "rack"), ("chooseleaf_firstn", 2, "host")), "host", 6),
        ((("choose_firstn", 1, "rack"), ("choose_firstn", 0, "osd")), "osd", 24),
    ],
)
def test_import_and_page_name_the_same_domain_and_the_same_usable_bytes(
    imported, tmp_path, rule, domain, domains
):
    cluster = imported(rule=rule)
    (pool,) = cluster.pools
    (row,) = capacity_of(cluster)["pools"]
    # Three copies on three racks have nowhere to go after the loss of one: two are left.
    copies = 3 if domains > 3 else 2
    safe = RAW_BYTES * (1 - 1 / domains) * 0.85 / copies
    assert (pool.failure_domain, row["failure_domains"]) == (domain, domains)
    in_import = None
    if domains > 3:
        in_import = pytest.approx(safe / row["imbalance_after_loss"])
    assert row["usable_bytes_safe"] == in_import
    page = read_report(json.dumps(report(rule=rule)).encode()).scenario
    assert page.cluster.failure_domain_replicated == domain
    models = build_models(page)
    held = scheme_capacity(page, "rep:3", models, drives_of(page, models))
    assert held.usable_bytes_safe * held.imbalance_after_loss == pytest.approx(safe)
    # A run on the pool's CRUSH map counts the same failure domains, and places as the cluster does.
    write_scenario(scenario_of(cluster, pool, "m.txt"), tmp_path / "s.toml")
    mapped = load_scenario(tmp_path / "s.toml")
    models = build_models(mapped)
    held = scheme_capacity(mapped, "rep:3", models, drives_of(mapped, models))
    assert held.domains == domains
    after_loss = row["imbalance_after_loss"]
    assert held.usable_bytes_safe == pytest.approx(safe / after_loss)


def test_an_out_osd_holds_no_data_and_a_down_osd_returns(tmp_path):
    document = report()
    document["osdmap"]["osds"][0] |= {"in": 0, "weight": 0.0}
    document["osdmap"]["osds"][1] |= {"up": 0}
    cluster = import_cluster([write_report(tmp_path, document)])
    (row,) = capacity_of(cluster)["classes"]
    assert (row["raw_bytes"], row["in_bytes"]) == (RAW_BYTES, RAW_BYTES - OSD_BYTES)
    counted = scenario_from(scenario_without_map(cluster, cluster.pools[0]).tables)
    drive_bytes = counted.cluster.drive_bytes
    assert drive_bytes is not None
    # Equal hosts have 24 OSDs, with the capacity of 23.
    assert counted.cluster.osd_count * drive_bytes == pytest.approx(
        23 * OSD_BYTES, rel=1e-5
    )
    write_scenario(scenario_of(cluster, cluster.pools[0], "m.txt"), tmp_path / "s.toml")
    scenario = load_scenario(tmp_path / "s.toml")
    assert len(osd_domains(scenario, parse_scheme("rep:3"))) == 23


@pytest.mark.parametrize("down", [(1,), (0, 1, 2, 3)])
def test_capacity_counts_osds_that_are_down_as_if_they_were_up(tmp_path, down):
    document = report(counters={"num_bytes": 10**12})
    whole = capacity_of(import_cluster([write_report(tmp_path, document)]))
    for osd in down:
        document["osdmap"]["osds"][osd]["up"] = 0
    cluster = import_cluster([write_report(tmp_path, document)])
    assert capacity_of(cluster) == whole
    assert pg_choices(cluster)[0].present.imbalance == whole["pools"][0]["imbalance"]
    # The cluster's own count of placement groups is that without them.
    assert cluster.counts[down[0]] == (0, 0)


def test_groups_that_find_no_place_after_a_loss_are_counted(tmp_path):
    # Given two shards in each of three hosts, of six hosts, of which three are out.
    rule = [("choose_indep", 3, "host"), ("choose_indep", 2, "osd")]
    document = report(rule=rule)
    for osd in range(12, 24):
        document["osdmap"]["osds"][osd] |= {"in": 0, "weight": 0.0}
    document["osdmap"]["pools"][0] |= {"type": 3, "size": 6}
    # The other three have two OSDs each.
    for osd in (2, 3, 6, 7, 10, 11):
        document["osdmap"]["osds"][osd] |= {"in": 0, "weight": 0.0}
    # A host with a third OSD makes seven domains for six shards: without one of the two others, none heals.
    document["osdmap"]["osds"][11] |= {"in": 1, "weight": 1.0}
    cluster = import_cluster([write_report(tmp_path, document)])
    (row,) = capacity_of(cluster)["pools"]
    assert (row["failure_domains"], row["unplaced_groups"]) == (7, 64)
    document, *rest = describe_cluster(cluster)
    answer = answer_of_cluster(document, *rest)
    assert any("for 64 of 64 placement groups" in str(part) for part in answer.shown)
    assert "for 64 of 64 placement groups" in answer.page()
    # A number of bytes would say that the pool heals.
    assert "cannot heal" in answer.page()
    document["capacity"]["pools"][0]["unplaced_groups"] = 3
    assert "some groups do not heal" in answer_of_cluster(document, *rest).page()


def test_hosts_that_differ_become_equal_hosts_of_the_same_raw_capacity(tmp_path):
    document = report(rule=(("chooseleaf_firstn", 0, "rack"),))
    for row in document["osd_metadata"][:4]:
        row["bluestore_bdev_size"] = str(2 * OSD_BYTES)
    cluster = import_cluster([write_report(tmp_path, document)])
    equal = scenario_from(scenario_without_map(cluster, cluster.pools[0]).tables)
    assert (equal.cluster.hosts, equal.cluster.osds_per_host, equal.cluster.racks) == (
        6,
        4,
        3,
    )
    models = build_models(equal)
    held = scheme_capacity(equal, "rep:3", models, drives_of(equal, models))
    # 4 OSDs of twice the size: 28 instead of 24.
    assert held.raw_bytes == pytest.approx(28 * OSD_BYTES, rel=1e-5)


@pytest.mark.parametrize(
    ("larger", "mean_bytes"),
    [
        # The first OSD of each host, all OSDs of the first host, and one OSD: 30, 28 and 25 in place of 24.
        (range(0, 24, 4), OSD_BYTES * 30 / 24),
        (range(4), OSD_BYTES * 28 / 24),
        ([0], OSD_BYTES * 25 / 24),
    ],
)
def test_a_mean_of_several_drive_sizes_is_called_a_mean(tmp_path, larger, mean_bytes):
    document = report()
    for osd in larger:
        document["osd_metadata"][osd]["bluestore_bdev_size"] = str(2 * OSD_BYTES)
    cluster = import_cluster([write_report(tmp_path, document)])
    notes = plan_of(cluster, cluster.pools[0]).notes
    (note,) = (line for line in notes if bytes_text(mean_bytes) in line)
    assert "mean" in note
    assert bytes_text(OSD_BYTES) in note
    assert bytes_text(2 * OSD_BYTES) in note


@pytest.mark.parametrize(("larger", "is_mixed"), [([0], True), (range(4), False)])
def test_a_host_with_drives_of_several_sizes_says_that_it_has_their_mean(
    tmp_path, larger, is_mixed
):
    document = report()
    for osd in larger:
        document["osd_metadata"][osd]["bluestore_bdev_size"] = str(2 * OSD_BYTES)
    cluster = import_cluster([write_report(tmp_path, document)])
    scenario = scenario_of(cluster, cluster.pools[0], "m.txt")
    origins = [derivation.key for derivation in scenario.derivations]
    assert ("cluster.hosts.drive_bytes" in origins) == is_mixed


# Processors and parameter sets.


@pytest.mark.parametrize(
    ("name", "cores", "threads", "sockets"),
    [
        ("AMD EPYC 7232P 8-Core Processor", 8, 16, 1),
        ("AMD EPYC 7443 24-Core Processor", 24, 48, 2),
        ("AMD EPYC 3201 8-Core Processor", 8, 8, 1),
        ("Intel(R) Xeon(R) Silver 4210R CPU @ 2.40GHz", 10, 20, 2),
        ("Intel(R) Xeon(R) Silver 4210 CPU @ 2.20GHz", 10, 20, 2),
        ("Intel(R) Xeon(R) CPU E5-2660 v2 @ 2.20GHz", 10, 20, 2),
        ("Intel(R) Xeon(R) CPU E5-2660 0 @ 2.20GHz", 8, 16, 2),
        ("INTEL(R) XEON(R) GOLD 6526Y", 16, 32, 2),
        ("Intel(R) Xeon(R) Silver 4416+", 20, 40, 2),
        ("Intel(R) Atom(TM) CPU  C2758  @ 2.40GHz", 8, 8, 1),
    ],
)
def test_cores_come_from_the_name_or_from_the_table(name, cores, threads, sockets):
    found = processor_of(name)
    assert (found.cores, found.threads, found.sockets_max) == (cores, threads, sockets)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Intel Core Processor (Skylake, IBRS)",
        "ARMv8 Processor rev 0 (v8l)",
        "AMD Opteron(tm) Processor 6128",
    ],
)
def test_cores_of_other_processors_are_not_known(name):
    assert processor_of(name) is None


def test_the_table_of_processors_names_its_sources():
    rows = [counts for family in _families() for counts in family["models"].values()]
    assert len(rows) > 100
    assert all(row["threads"] in (row["cores"], 2 * row["cores"], 16) for row in rows)
    assert all(
        "ark.intel.com" in family["source"] or "amd.com" in family["source"]
        for family in _families()
    )


def test_cores_are_in_the_unit_of_the_parameter_set(imported):
    # 8 cores with 16 hardware threads, in one socket.
    by_set = {}
    for version, metadata in (
        (
            "17.2.6",
            {"bluestore_bdev_rotational": "0", "bluestore_bdev_devices": "nvme0n1"},
        ),
        ("13.2.10", {"bluestore_bdev_rotational": "0"}),
    ):
        cluster = imported(version=version, metadata=metadata)
        keys = describe_pool(cluster, cluster.pools[0]).cluster
        by_set[keys["parameters"]] = keys["cores_per_host"]
    assert by_set == {"nvme": 16, "kraken": 8}


def test_unknown_processors_are_listed_as_assumed(imported):
    cluster = imported(metadata={"cpu": "Mystery"})
    (row,) = describe_cluster(cluster)[0]["processors"]
    # Two cores for each of 4 OSDs.
    assert (row["basis"], row["cores"], row["hosts"]) == (
        "assumed",
        2 * OSDS_PER_HOST,
        HOSTS,
    )


def test_hosts_without_metadata_are_assumed_to_be_like_the_others(tmp_path):
    document = report()
    document["osd_metadata"] = document["osd_metadata"][:OSDS_PER_HOST]
    for osd in range(OSDS_PER_HOST, 24):
        document["osd_metadata"].append(
            {"id": osd, "bluestore_bdev_size": str(OSD_BYTES)}
        )
    found = describe_cluster(import_cluster([write_report(tmp_path, document)]))[0]
    assert {(row["basis"], row["cores"], row["hosts"]) for row in found["processors"]} == {
        ("name", 8, 1), ("assumed", 8, 5)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("preset", "release", "name"),
    [
        ("nvme-tlc", 17, "nvme"),
        (
            "nvme-tlc",
            14,
            "nvme",
        ),  # 2 releases from 16, against 3 and a kind of drive from 11
        ("sata-tlc", 17, "nvme"),  # a kind of drive, against 6 releases
        ("sata-tlc", 13, "kraken"),  # 2 releases, against 3 and a kind of drive
        ("hdd-7200", 16, "nvme"),
        ("hdd-7200", 13, "kraken"),
    ],
)
def test_the_parameter_set_is_the_nearest_in_drive_and_release(preset, release, name):
    assert nearest_parameters(preset, release).name == name


def test_the_table_of_parameter_sets_states_their_calibration():
    for choice in PARAMETER_SETS:
        calibrated = ParameterSet(choice.name).table("calibrated")
        releases = [
            generation(name).version for name in calibrated["keys"]["generation"]
        ]
        numbers = [int(re.search(r"v([0-9]+)", version)[1]) for version in releases]
        assert (min(numbers), max(numbers)) == (
            choice.first_release,
            choice.last_release,
        )
        assert "rates" not in " ".join(calibrated.get("notes", []))


def test_values_outside_the_calibrated_range_give_a_warning(imported):
    document, _ = describe_cluster(imported())
    assert {line.partition(":")[0] for line in document["outside_calibrated_range"]} == {
        "cluster.drive", "cluster.public_gbit_per_s", "cluster.private_gbit_per_s"
    }  # fmt: skip
    assert set(document["outside_calibrated_range"]) <= set(document["warnings"])


def test_one_address_for_clients_and_hosts_is_one_network(imported):
    addresses = {
        "front_addr": "[v2:10.0.0.1:6800/2,v1:10.0.0.1:6801/2]",
        "back_addr": "[v2:10.0.0.1:6802/2]",
    }
    cluster = imported(metadata=addresses)
    assert describe_pool(cluster, cluster.pools[0]).cluster["networks"] == 1
    cluster = imported(metadata={**addresses, "back_addr": "[v2:10.1.0.1:6802/2]"})
    assert "networks" not in describe_pool(cluster, cluster.pools[0]).cluster


# Objects.


def test_a_scenario_has_the_keys_of_a_pool_and_its_mean_object(imported):
    # An index: 20,000 objects without data, of 50 KiB of keys each, written 10 KiB at a time.
    keys_bytes = 20_000 * 50 * KIB
    index = {"num_bytes": 0, "num_omap_bytes": keys_bytes, "num_objects": 20_000}
    cluster = imported(counters={**index, "num_write": 10, "num_write_kb": 120})
    scenario = scenario_of(cluster, cluster.pools[0], "m.txt")
    assert scenario.tables["cluster"]["stored_bytes"] == keys_bytes
    # 50 KiB are 4.2 requests of 12 KiB: four, so that no request reaches into a second object.
    assert scenario.tables["cluster"]["object_bytes"] == "48KiB"
    row = capacity_of(cluster)["pools"][0]
    assert row["stored_bytes"] == keys_bytes


def test_the_larger_count_of_keys_is_right(tmp_path):
    # A deep scrub counted 3 MB, of which RocksDB has written 2 MB; and later 5 MB.
    document = report(counters={"num_bytes": 0, "num_omap_bytes": 3 * 10**6})
    paths = [write_report(tmp_path, document), tmp_path / "df.json"]
    for written, counted in ((2, 3), (5, 5)):
        stats = {"stored": written * 10**6, "stored_omap": written * 10**6}
        df = {"stats": {}, "pools": [{"id": 1, "stats": stats}]}
        paths[1].write_text(json.dumps(df))
        assert import_cluster(paths).pools[0].held_bytes == counted * 10**6


@pytest.mark.parametrize("mean_mib", [2, 3, 4, 8])
def test_objects_of_images_have_the_usual_size(imported, mean_mib):
    cluster = imported(
        counters={"num_bytes": 1000 * mean_mib << 20, "num_objects": 1000}
    )
    tables = scenario_of(cluster, cluster.pools[0], "m.txt").tables
    assert "object_bytes" not in tables["cluster"]


def test_a_plan_has_the_mean_object_of_all_pools_on_the_osds(tmp_path):
    # 1,000 objects of 48 KiB, and another pool's 1,000 of 144 KiB on the same OSDs.
    document = report(counters={"num_bytes": 48_000 * KIB, "num_objects": 1000})
    (pool,) = document["osdmap"]["pools"]
    other = {**pool, "pool": 2, "pool_name": "other"}
    document["osdmap"]["pools"].append(other)
    counters = {"num_bytes": 144_000 * KIB, "num_objects": 1000}
    document["pool_stats"].append({"poolid": 2, "stat_sum": counters})
    cluster = import_cluster([write_report(tmp_path, document)])
    tables = scenario_of(cluster, cluster.pools[0], "m.txt").tables
    assert tables["cluster"]["object_bytes"] == "48KiB"
    planned = plan_of(cluster, cluster.pools[0]).tables
    assert planned["cluster"]["object_bytes"] == "96KiB"


@pytest.mark.parametrize(("stored_gb", "is_noted"), [(1, True), (1000, False)])
def test_a_pool_smaller_than_its_image_is_noted(imported, stored_gb, is_noted):
    cluster = imported(counters={"num_bytes": stored_gb * 10**9})
    scenario = scenario_of(cluster, cluster.pools[0], "m.txt")
    assert scenario.tables["workload"]["image_bytes"] == "8GiB"
    assert any("holds 1 GB" in note for note in scenario.notes) == is_noted


def test_objects_smaller_than_a_request_are_noted_as_fewer(imported):
    # A request reaches over one object, so objects of 1 KiB become a quarter as many of 4 KiB.
    counters = {"num_bytes": 1000 * KIB, "num_objects": 1000}
    cluster = imported(counters={**counters, "num_write": 10, "num_write_kb": 40})
    scenario = scenario_of(cluster, cluster.pools[0], "m.txt")
    assert scenario.tables["cluster"]["object_bytes"] == "4KiB"
    assert any("fewer" in note for note in scenario.notes)


def test_ceph_df_counts_the_keys_of_a_pool_once(tmp_path):
    # Ceph's STORED is data and keys: 1 TB and 0.2 TB.
    stored = {"stored": 12 * 10**11, "stored_omap": 2 * 10**11, "objects": 10**6}
    df = {"stats": {}, "pools": [{"id": 1, "stats": stored}]}
    files = [tmp_path / "df.json", tmp_path / "dump.json", tmp_path / "crush.json"]
    document = report()
    contents = [df, document["osdmap"], document["crushmap"]]
    for path, content in zip(files, contents, strict=True):
        path.write_text(json.dumps(content))
    pool = import_cluster(files).pools[0]
    assert (pool.stored_bytes, pool.omap_bytes) == (10**12, 2 * 10**11)
    assert mean_object([pool]) == (10**6, 12 * 10**5)


# Load.


def test_a_scenario_has_the_bytes_of_each_osd_and_a_load_for_a_fault_to_meet(imported):
    used_kib = 12 * 10**9
    cluster = imported(counters={"num_bytes": 2 * 10**12}, kb_used=used_kib)
    tables = scenario_of(cluster, cluster.pools[0], "m.txt").tables
    assert tables["cluster"]["stored_bytes"] == 2 * 10**12
    # The class has 12 × 10⁹ KiB in use: more than 3 × 2 TB, so there are other pools. Rounded for 24 OSDs.
    used_bytes = tables["cluster"]["used_bytes"]
    assert sum(used_bytes) == pytest.approx(used_kib * KIB, abs=24)
    assert min(used_bytes) > 0
    assert "duration_s" in tables["workload"]


@pytest.mark.parametrize(
    ("count", "kib", "size"),
    [
        (1000, 32_700, 32 * 1024),  # 32.7 KiB: 8 pages are nearer than 9
        (1000, 1_180, 1024),  # 1.18 KiB: below a page, whole sectors
        (1000, 5_080, 4096),
        (1000, 3_778_000, 3776 * 1024),
        (1000, 0, 512),
    ],
)
def test_mean_sizes_are_whole_pages_or_sectors(imported, count, kib, size):
    counters = {"num_read": count, "num_read_kb": kib}
    cluster = imported(counters=counters)
    load = load_of(cluster, cluster.pools[0])
    assert (load.read_bytes, load.write_bytes, load.read_fraction) == (size, None, 1.0)
    assert load.tables(2**33)["workload"]["ops"] == ["read"]


def test_a_pool_of_gateways_is_noted_as_one(tmp_path):
    document = report(counters={"num_bytes": 10**12})
    pool = document["osdmap"]["pools"][0]
    for applications, notes in (({"rbd": {}}, 0), ({"rgw": {}}, 1)):
        pool["application_metadata"] = applications
        cluster = import_cluster([write_report(tmp_path, document)])
        scenarios = (
            scenario_of(cluster, cluster.pools[0], "map.txt"),
            scenario_without_map(cluster, cluster.pools[0]),
        )
        for scenario in scenarios:
            assert sum('kind = "s3"' in note for note in scenario.notes) == notes


def test_reads_and_writes_of_different_sizes_are_two_loads(imported, tmp_path):
    # 3,000 reads of 8 KiB and 1,000 writes of 64 KiB: three quarters are reads.
    counters = {
        "num_read": 3000,
        "num_read_kb": 24_000,
        "num_write": 1000,
        "num_write_kb": 64_000,
    }
    cluster = imported(counters=counters)
    write_scenario(scenario_of(cluster, cluster.pools[0], "m.txt"), tmp_path / "s.toml")
    reads, writes = load_scenario(tmp_path / "s.toml").loads
    assert (reads.ops, reads.block_sizes_bytes, reads.queue_depth) == (
        ("read",),
        (8192,),
        24,
    )
    assert (writes.ops, writes.block_sizes_bytes, writes.queue_depth) == (
        ("write",),
        (65536,),
        8,
    )
    counted = scenario_from(
        scenario_without_map(cluster, cluster.pools[0]).tables
    ).workload
    # 88,000 KiB in 4,000 requests are 22 KiB each: 5.5 pages, which round to 6 (to even).
    assert (counted.read_fraction, counted.block_sizes_bytes) == (0.75, (24 * 1024,))


@pytest.mark.parametrize(("size_kib", "duration_s"), [(4, 2), (4096, 7)])
def test_runs_of_large_requests_are_longer(imported, size_kib, duration_s):
    # 32 × 32 requests of 4 MiB: three copies take 30 ms of seeks and 126 ms of transfers at 100 MB/s, and 24
    # disks share them: 6.65 s.
    cluster = imported(counters={"num_write": 100, "num_write_kb": 100 * size_kib})
    tables = scenario_of(cluster, cluster.pools[0], "m.txt").tables
    assert tables["workload"]["duration_s"] == duration_s


def test_without_counters_of_the_pool_those_of_all_pools_count_and_else_4_kib_are_assumed(
    imported, tmp_path
):
    document = report()
    document["pool_sum"] = {"stat_sum": {"num_write": 10, "num_write_kb": 160}}
    cluster = import_cluster([write_report(tmp_path, document)])
    assert load_of(cluster, cluster.pools[0]).write_bytes == 16 * 1024
    cluster = imported()
    load = load_of(cluster, cluster.pools[0])
    assert (load.measured, load.read_bytes, load.write_bytes) == (False, 4096, 4096)
    assert any("assumed" in line for line in map(str, load.derivations))


@pytest.mark.parametrize(
    ("more", "rate"),
    [
        (
            [
                {
                    "pool_name": "data",
                    "pool_id": 1,
                    "client_io_rate": {"read_op_per_sec": 70, "write_op_per_sec": 30},
                }
            ],
            100,
        ),
        ([{"pool_name": "data", "pool_id": 1, "client_io_rate": {}}], None),
        ({"pgmap": {"read_op_per_sec": 5, "write_op_per_sec": 2}}, 7),
        (
            {
                "pg_map": {
                    "pg_stats_delta": {
                        "stat_sum": {"num_read": 50, "num_write": 10},
                        "stamp_delta": "4.0",
                    }
                }
            },
            15,
        ),
    ],
)
def test_measured_rates_come_from_further_files(imported, more, rate):
    cluster = imported(more)
    assert load_of(cluster, cluster.pools[0]).rate_per_s == rate
    assert plan_of(cluster, cluster.pools[0]).tables["plan"].get("rate_per_s") == rate


# The plan.


def test_a_pool_that_cannot_heal_shows_no_bytes_with_a_domain_lost(imported):
    # 64 groups of 3 shards on 3 racks: two racks are left for three shards.
    narrow, _ = describe_cluster(imported(rule=(("chooseleaf_firstn", 0, "rack"),)))
    wide, _ = describe_cluster(imported())
    texts = []
    for document in (narrow, wide):
        (table,) = sections_of(document, ())[1].tables
        (row,) = table.body
        texts.append(row[table.columns.index("usable, one domain lost")].text)
    assert texts[0] == "cannot heal"
    # 98.3 TB less one of six hosts, at 0.85, in three copies, with the fullest OSD at the ratio
    (room,) = wide["capacity"]["pools"]
    assert room["imbalance_after_loss"] > 1
    safe_bytes = RAW_BYTES * 5 / 6 * 0.85 / 3 / room["imbalance_after_loss"]
    assert texts[1] == bytes_text(safe_bytes)
    assert not any(row["heals"] for row in narrow["capacity"]["domains"])


def test_one_copy_cannot_heal(tmp_path):
    document = report()
    document["osdmap"]["pools"][0]["size"] = 1
    cluster = import_cluster([write_report(tmp_path, document, "report.json")])
    capacity = capacity_of(cluster)
    assert capacity["pools"][0]["usable_bytes_safe"] is None
    assert {row["reason"] for row in capacity["domains"]} == {"no other copy"}


def test_a_plan_starts_from_existing_hosts_and_data(imported, tmp_path):
    # 30 TB raw in three copies: 10 TB of client data.
    cluster = imported(kb_used=30 * 10**12 // KIB)
    write_scenario(plan_of(cluster, cluster.pools[0]), tmp_path / "p.toml")
    scenario = load_scenario(tmp_path / "p.toml")
    assert (scenario.cluster.hosts, scenario.cluster.osds_per_host) == (6, 4)
    # 6, 7.5, 9 and 12 hosts, in whole hosts.
    assert scenario.plan.hosts == (6, 8, 9, 12)
    assert scenario.plan.stored_bytes == pytest.approx(10 * 10**12, rel=1e-5)
    assert getattr(scenario.plan, "owned_hosts", 6) == 6
    models = build_models(scenario)
    held = scheme_capacity(scenario, "rep:3", models, drives_of(scenario, models))
    # 5 of 6 hosts at the nearfull ratio in three copies: 23.21 TB if all OSDs were equally full, so that
    # 50 GB a day would last 264 days.
    even = held.usable_bytes_safe * held.imbalance_after_loss
    assert even == pytest.approx(RAW_BYTES * 5 / 6 * 0.85 / 3)
    days = (even - scenario.plan.stored_bytes) / 50e9
    assert days == pytest.approx(264.2, abs=0.1)


def test_a_pool_that_cannot_be_simulated_is_named_by_its_key(tmp_path):
    cluster = import_cluster([write_report(tmp_path, report())])
    # Chunks are multiples of 32 bytes.
    pool = replace(cluster.pools[0], stripe_unit_bytes=5)
    key = re.escape("r.json: osdmap.pools.0: cluster.stripe_unit_bytes: got 5,")
    with pytest.raises(MeasuredError, match=key):
        plan_of(cluster, pool)


def test_a_plan_of_a_balanced_pool_keeps_a_balancer(imported):
    plain = imported()
    moved = replace(plain.osd_map, pg_upmap_items={(1, 0): ((0, 4),)})
    balanced = replace(plain, osd_map=moved)
    tables = [plan_of(one, one.pools[0]).tables["cluster"] for one in (plain, balanced)]
    assert "upmap_max_deviation" not in tables[0]
    # Ceph's default.
    assert tables[1]["upmap_max_deviation"] == 5


def test_a_plan_owns_the_equal_hosts_that_stand_for_the_existing_ones(tmp_path):
    # Given five hosts of four OSDs in three racks: six equal hosts, two in each rack, stand for them.
    document = report(rule=[("chooseleaf_firstn", 0, "rack")])
    for osd in range(20, 24):
        document["osdmap"]["osds"][osd] |= {"in": 0, "weight": 0.0}
    cluster = import_cluster([write_report(tmp_path, document)])
    plan = plan_of(cluster, cluster.pools[0]).tables
    assert plan["cluster"]["hosts"] == 6
    # Then six cost nothing.
    assert plan["plan"]["owned_hosts"] == 6
    assert plan["plan"]["hosts"][0] == 6


@pytest.mark.parametrize(("mode", "is_noted"), [("none", False), ("aggressive", True)])
def test_a_plan_says_that_stored_bytes_are_those_after_compression(
    tmp_path, mode, is_noted
):
    document = report(kb_used=10**9)
    document["osdmap"]["pools"][0]["options"] = {"compression_mode": mode}
    cluster = import_cluster([write_report(tmp_path, document)])
    notes = plan_of(cluster, cluster.pools[0]).notes
    assert any("compression (of data)" in note for note in notes) == is_noted


def test_a_plan_on_a_map_costs_the_hosts_and_drives_of_the_map(tmp_path):
    # Given the map of six hosts with four OSDs each
    cluster = import_cluster([write_report(tmp_path, report())])
    path = tmp_path / "s.toml"
    write_scenario(scenario_of(cluster, cluster.pools[0], "s.crush"), path)
    with path.open("a") as file:
        file.write(
            "[plan]\ncores_per_host = [16, 20]\n"
            "[plan.prices]\nhost = 1000.0\ndrive = 100.0\ncore = 10.0\n"
        )
    scenario = load_scenario(path)
    assert scenario.plan is not None
    costs = []
    for one in candidates_of(scenario, scenario.plan):
        judge_closed_forms(one, scenario, scenario.plan)
        costs.append(one.results["cost"])
    # Hosts have 16 hardware threads, and four more cost 40 for each host.
    drives = 24 * 100
    assert costs == [6 * 1000 + drives, 6 * 1040 + drives]


def test_a_plan_with_racks_has_as_many_hosts_in_each(imported):
    cluster = imported(rule=(("chooseleaf_firstn", 0, "rack"),))
    tables = plan_of(cluster, cluster.pools[0]).tables
    assert tables["cluster"]["racks"] == 3
    # 6, 7.5, 9 and 12, in whole multiples of 3.
    assert tables["plan"]["hosts"] == [6, 9, 12]


def test_import_and_page_hold_the_same_bytes_at_the_ratios_of_the_cluster(imported):
    cluster = imported(full_ratio=0.97, nearfull_ratio=0.93, backfillfull_ratio=0.94)
    # 5 of 6 hosts at the nearfull ratio of the cluster, in three copies.
    by_hand = RAW_BYTES * 5 / 6 * 0.93 / 3
    row = capacity_of(cluster)["pools"][0]
    assert row["usable_bytes_safe"] * row["imbalance_after_loss"] == pytest.approx(
        by_hand
    )
    scenario = scenario_from(scenario_without_map(cluster, cluster.pools[0]).tables)
    models = build_models(scenario)
    held = scheme_capacity(scenario, "rep:3", models, drives_of(scenario, models))
    safe = held.usable_bytes_safe * held.imbalance_after_loss
    assert safe == pytest.approx(by_hand)
    full = held.usable_bytes_full * held.imbalance
    assert full == pytest.approx(RAW_BYTES * 0.97 / 3)
    # A rehearsal refuses backfills as the cluster does.
    assert scenario.cluster.backfillfull_ratio == 0.94


def test_a_full_ratio_below_the_others_acts_where_they_do(imported):
    # OSDService::recalc_full_state takes the maximum of each ratio and the one before it.
    cluster = imported(nearfull_ratio=0.85, backfillfull_ratio=0.92, full_ratio=0.8)
    row = capacity_of(cluster)["pools"][0]
    assert row["usable_bytes_full"] * row["imbalance"] == pytest.approx(
        RAW_BYTES * 0.92 / 3
    )
    scenario = scenario_from(scenario_without_map(cluster, cluster.pools[0]).tables)
    assert scenario.cluster.full_ratio == scenario.cluster.backfillfull_ratio == 0.92


def test_the_other_hosts_take_a_lost_one_up_to_the_nearfull_ratio(imported):
    # Given three quarters of each disk in use
    used_bytes = RAW_BYTES * 3 / 4
    cluster = imported(kb_used=round(used_bytes / 1024), nearfull_ratio=0.8)
    rows = capacity_of(cluster)["domains"]
    assert len(rows) == HOSTS
    # Then five have 5 % of room each: up to 0.8 for a quarter of the lost one, up to 0.95 for all of it.
    others = RAW_BYTES * 5 / 6
    for row in rows:
        others_used = used_bytes - row["held_bytes"]
        assert row["room_bytes"] == pytest.approx(0.8 * others - others_used)
        assert not row["heals"]


def test_plan_and_growth_exclude_each_other(imported):
    with pytest.raises(AnswerError, match="--plan"):
        describe_cluster(imported(), plan=True, grow="hosts=+1")


def test_a_scenario_knows_the_origin_of_each_key(imported):
    counters = {
        "num_read": 3000,
        "num_read_kb": 24_000,
        "num_write": 1000,
        "num_write_kb": 64_000,
    }
    cluster = imported(counters=counters)
    text = scenario_of(cluster, cluster.pools[0], "m.txt").toml()
    keys = {
        line.removeprefix("# ").partition(":")[0]
        for line in text.splitlines()
        if line.startswith("# ")
    }
    assert {
        "cluster.drive",
        "cluster.parameters",
        "cluster.cores_per_host",
        "workload, reads",
    } <= keys
    assert 'drive_bytes = "4.096TB"' in text and str(OSD_BYTES) not in text


def test_the_largest_pool_counts_unless_it_is_the_managers(tmp_path):
    document = report(counters={"num_bytes": 5})
    pool = document["osdmap"]["pools"][0]
    document["osdmap"]["pools"].append({**pool, "pool": 2, "pool_name": ".mgr"})
    document["pool_stats"].append({"poolid": 2, "stat_sum": {"num_bytes": 10**9}})
    found, _ = describe_cluster(
        import_cluster([write_report(tmp_path, document)]), path=Path("s.toml")
    )
    assert found["scenarios"][0]["pool"] == "data"


def test_a_pool_with_too_few_osds_leaves_the_scenario_to_the_next(tmp_path):
    """One of three racks is out: the larger pool has two racks for its three copies."""
    document = report(
        rule=(("chooseleaf_firstn", 0, "rack"),), counters={"num_bytes": 5}
    )
    pool = document["osdmap"]["pools"][0]
    smaller = {**pool, "pool": 2, "pool_name": "pairs", "size": 2}
    document["osdmap"]["pools"].append(smaller)
    for osd in document["osdmap"]["osds"][16:]:
        osd |= {"in": 0, "up": 0, "weight": 0.0}
    found, _ = describe_cluster(
        import_cluster([write_report(tmp_path, document)]), path=Path("s.toml")
    )
    assert found["scenarios"][0]["pool"] == "pairs"
    assert [row["name"] for row in found["capacity"]["pools"]] == ["data", "pairs"]


def test_an_import_begins_with_the_cluster_and_the_room_of_its_pool(imported):
    document, scenarios = describe_cluster(imported())
    (room,) = document["capacity"]["pools"]
    first = answer_of_cluster(document, scenarios).sentence
    raw = bytes_text(RAW_BYTES)
    assert first.startswith(f"24 OSDs on 6 hosts, {raw} raw: pool ")
    assert f" takes {bytes_text(room['more_bytes'])} more" in first


def _drained(document: dict, osds: range) -> dict:
    """Set the CRUSH weight of some OSDs to 0, as ``ceph osd crush reweight`` does."""
    buckets = document["crushmap"]["buckets"]
    weights = {}
    for bucket in buckets:
        for item in bucket["items"]:
            if item["id"] in osds:
                item["weight"] = 0
            item["weight"] = weights.get(item["id"], item["weight"])
        weights[bucket["id"]] = sum(item["weight"] for item in bucket["items"])
    return document


def test_osds_of_weight_0_are_no_room_and_no_failure_domain(tmp_path):
    # Given six hosts of four OSDs, when three hosts weigh nothing.
    document = _drained(report(), range(12, 24))
    imported = import_cluster([write_report(tmp_path, document)])
    (row,) = capacity_of(imported)["pools"]
    # Then three hosts are left for three copies: 12 OSDs, and nothing to heal in.
    assert row["raw_bytes"] == 12 * OSD_BYTES
    assert row["failure_domains"] == 3
    assert row["usable_bytes_safe"] is None
    assert any("osd.12" in line and "weight" in line for line in imported.warnings)
    # And the scenario counts the same.
    _, scenarios = describe_cluster(imported, path=tmp_path / "s.toml")
    for path, scenario in scenarios.items():
        write_scenario(scenario, path)
    loaded = load_scenario(str(tmp_path / "s.toml"))
    models = build_models(loaded)
    held = scheme_capacity(loaded, "rep:3", models, drives_of(loaded, models))
    assert (held.domains, held.spare_domains) == (3, 0)
    assert held.raw_bytes == pytest.approx(row["raw_bytes"], rel=1e-5)
