"""Importing a cluster: its placement, its capacity, a scenario that loads, and refused input.

``data/ceph16-report.json`` and ``ceph16-pgs.json`` are what our own Ceph 16.2.15 of eight OSDs printed
(``ceph report`` and ``ceph pg dump pgs_brief``), cut to the keys that count: two classes, replicated and
erasure-coded pools, a reweight, primary affinities, weight sets for one pool and for all others, upmaps, and
groups that act elsewhere while backfill is held back.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stripesim.__main__ import main
from stripesim.models.coding import parse_scheme
from stripesim.models.placement import NONE, PlacedPool, pg_sets
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.problems import MeasuredError
from stripesim.models.qos import mclock_defaults
from stripesim.scenarios.answers.cluster import answer_of_cluster
from stripesim.scenarios.answers.workloads import answer_of_workloads
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import osd_domains, up_sets
from stripesim.scenarios.clusters.capacity import capacity_of
from stripesim.scenarios.clusters.cluster import _scheme, import_cluster
from stripesim.scenarios.clusters.report_schema import ErasureProfile, PoolRow, checked
from stripesim.scenarios.clusters.scenario import (
    chosen_pools,
    scenario_of,
    write_scenario,
)
from stripesim.scenarios.clusters.summary import describe_cluster
from stripesim.scenarios.clusters.workload import import_cbt, import_fio
from stripesim.scenarios.forms.capacity import capacity_of as scheme_capacity
from stripesim.scenarios.forms.capacity import drives_of
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.scenarios.schema.units import bytes_text
from support.messages import states
from support.reports import OSD_BYTES, report, write_report

DATA = Path(__file__).parent / "data"
REPORT = DATA / "ceph16-report.json"
SHARED = next(
    (
        p / "shared/data/cluster-state"
        for p in Path(__file__).resolve().parents
        if (p / "shared/data").is_dir()
    ),
    Path("nowhere"),
)


@pytest.fixture(scope="module")
def cluster():
    return import_cluster([REPORT])


def changed(tmp_path, change):
    document = json.loads(REPORT.read_text())
    change(document)
    path = tmp_path / "r.json"
    path.write_text(json.dumps(document))
    return path


def test_each_group_is_where_the_cluster_has_it(cluster):
    found = {
        row["pgid"]: row
        for row in json.loads((DATA / "ceph16-pgs.json").read_text())["pg_stats"]
    }
    assert len(found) == sum(pool.placed.pg_num for pool in cluster.pools) == 93
    for pool in cluster.osd_map.pools:
        sets = pg_sets(cluster.osd_map, pool)
        for group in range(pool.pg_num):
            row = found[f"{pool.id}.{group:x}"]
            for name in ("up", "acting"):
                assert (
                    getattr(sets, name)[group].tolist()[: len(row[name])] == row[name]
                )
                assert (
                    int(getattr(sets, f"{name}_primary")[group])
                    == row[f"{name}_primary"]
                )


def test_the_report_contains_the_studied_cases(cluster):
    osd_map = cluster.osd_map
    assert osd_map.pg_upmap_items and osd_map.pg_temp
    assert [index for index, _ in osd_map.crush.choose_args] == [-1, 4]
    assert any(
        len(change.weight_sets) == 3 for change in osd_map.crush.choose_args[1][1]
    )
    assert (osd_map.affinities < 65536).sum() == 2 and (
        osd_map.weights < 65536
    ).sum() == 1


def test_the_groups_of_each_osd_are_those_reported(cluster):
    rows = cluster.count_rows()
    assert len(rows) == 8
    for row in rows:
        assert row["acting_pgs"] == row["reported_acting_pgs"]
        assert row["primary_pgs"] == row["reported_primary_pgs"]
    assert not any(line.startswith("num_pg_by_osd") for line in cluster.warnings)


@pytest.mark.parametrize("key", ["pg_upmap_items", "pg_temp"])
def test_without_an_exception_the_groups_differ_and_are_named(tmp_path, key):
    found = import_cluster([changed(tmp_path, lambda d: d["osdmap"].update({key: []}))])
    assert any(
        line.startswith("num_pg_by_osd: ") and " differ: osd." in line
        for line in found.warnings
    )


def test_groups_of_a_dump_that_act_elsewhere_are_named(tmp_path):
    dump = json.loads((DATA / "ceph16-pgs.json").read_text())
    moved = dump["pg_stats"][0]
    moved["acting"] = moved["acting"][::-1]
    dump["pg_stats"].append({**moved, "pgid": "99.0"})
    warnings = import_cluster([REPORT, write_report(tmp_path, dump)]).warnings
    (warning,) = (line for line in warnings if line.startswith("pg_stats: "))
    assert states(warning, f"2 of 94 ... {moved['pgid']} ... 99.0")
    same = import_cluster([REPORT, DATA / "ceph16-pgs.json"])
    assert not any(line.startswith("pg_stats: ") for line in same.warnings)


def test_files_of_two_clusters_are_refused(tmp_path):
    document = json.loads(REPORT.read_text())
    document["osdmap"]["fsid"] = "a"
    paths = [write_report(tmp_path, document, "report.json")]
    status = {"fsid": "a", "pgmap": {}}
    import_cluster([*paths, write_report(tmp_path, status, "own.json")])
    status["fsid"] = "b"
    paths.append(write_report(tmp_path, status, "other.json"))
    with pytest.raises(MeasuredError) as error:
        import_cluster(paths)
    assert states(str(error.value), "other.json: fsid ... 'b' ... 'a'")


def test_a_down_osd_leaves_a_hole_or_makes_room(cluster, tmp_path):
    path = changed(tmp_path, lambda d: d["osdmap"]["osds"][3].update(up=0))
    found = import_cluster([path])
    for pool in found.osd_map.pools:
        acting = found.sets[pool.id].acting
        lost = next(
            o["osd"]
            for o in json.loads(path.read_text())["osdmap"]["osds"]
            if not o["up"]
        )
        assert not (acting == lost).any()
        first_empty = np.where(
            (acting == NONE).any(axis=1),
            np.argmax(acting == NONE, axis=1),
            acting.shape[1],
        )
        filled = (acting != NONE).sum(axis=1)
        # Replicas move up, while shards keep their positions.
        assert (filled == first_empty).all() == (pool.kind == "replicated") or not (
            acting == NONE
        ).any()


def test_parts_make_a_whole(cluster, tmp_path):
    document = json.loads(REPORT.read_text())
    paths = []
    for name, part in (
        ("dump", document["osdmap"]),
        ("crush", document["crushmap"]),
        ("metadata", document["osd_metadata"]),
        ("pgs", json.loads((DATA / "ceph16-pgs.json").read_text())),
    ):
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(part) + "\nreport 3484926453\n")
    found = import_cluster(paths)
    assert found.counts == cluster.counts == found.reported


def test_files_may_repeat_what_a_report_has(cluster, tmp_path):
    metadata = tmp_path / "metadata.json"
    metadata.write_text(json.dumps(json.loads(REPORT.read_text())["osd_metadata"]))
    for files in ([REPORT, metadata], [metadata, REPORT]):
        assert import_cluster(files).osds == cluster.osds


def test_a_list_of_upmaps_is_no_list_of_placement_groups(tmp_path):
    whole = write_report(tmp_path, report())
    upmaps = write_report(
        tmp_path, [{"pgid": "1.3", "mapping": {"from": 1, "to": 4}}], "upmaps.json"
    )
    with pytest.raises(MeasuredError, match=r"upmaps\.json: got "):
        import_cluster([whole, upmaps])


def test_capacity_adds_up(cluster):
    capacity = capacity_of(cluster)
    assert [row["class"] for row in capacity["classes"]] == ["hdd", "ssd"]
    for row in capacity["classes"]:
        assert row["raw_bytes"] == pytest.approx(4 * 3 * 2**30, rel=0.01)
        now, then = row["now"], row["after_upmap"]
        assert now["fullest_over_mean"] >= 1
        assert now["usable_raw_bytes"] + now["stranded_bytes"] == pytest.approx(
            row["full_bytes"]
        )
        assert then["stranded_bytes"] <= now["stranded_bytes"] * 1.02
    pools = {row["name"]: row for row in capacity["pools"]}
    reps = pools["reps"]
    even = reps["raw_bytes"] / 3
    full = reps["usable_bytes_full"] * reps["imbalance"]
    assert full == pytest.approx(even * 0.95)
    assert pools["ec22"]["overhead"] == 2 and pools["ec21"]["overhead"] == 1.5
    # Four equal hosts: one of them gone.
    safe = reps["usable_bytes_safe"] * reps["imbalance_after_loss"]
    assert safe == pytest.approx(even * 0.75 * 0.85)


def test_a_locally_repairable_pool_keeps_the_numbers_of_ceph():
    profile = checked(
        ErasureProfile, {"plugin": "lrc", "k": "4", "m": "2", "l": "3"}, "r.json"
    )
    pool = {
        "pool": 1,
        "type": 3,
        "size": 8,
        "pg_num": 8,
        "crush_rule": 0,
        "stripe_width": 16384,
    }
    row = checked(PoolRow, {**pool, "erasure_code_profile": "p"}, "r.json")
    placed = PlacedPool(
        id=1,
        name="x",
        kind="erasure",
        size=8,
        pg_num=8,
        pgp_num=8,
        rule=0,
        hashpspool=True,
    )
    warnings = []
    # Four data shards, two Reed-Solomon parities, and a local parity for each three of these six.
    found = _scheme(placed, row, profile, "osdmap.pools.0", warnings)
    assert (found, warnings) == (("lrc-ceph:4,2,3", 2.0, 4096), [])
    assert parse_scheme(found[0]).width == 8
    _scheme(replace(placed, size=9), row, profile, "osdmap.pools.0", warnings)
    assert states(warnings[0], "got 8 shards ... 9")


def test_hosts_that_differ_become_groups(cluster, tmp_path):
    first = cluster.osds[0].host
    osds = tuple(
        replace(osd, size_bytes=osd.size_bytes * (1 + (osd.host == first)))
        for osd in cluster.osds
    )
    uneven = replace(cluster, osds=osds)
    (pool,) = chosen_pools(uneven, [])
    write_scenario(scenario_of(uneven, pool, "map.txt"), tmp_path / "s.toml")
    written = load_scenario(tmp_path / "s.toml")
    groups = written.cluster.host_groups
    assert len(groups) > 1 and {group.count for group in groups} >= {1}
    models = build_models(written)
    held = scheme_capacity(written, pool.scheme, models, drives_of(written, models))
    inside = {osd.id for osd in osds} & set(
        osd_domains(written, parse_scheme(pool.scheme))
    )
    assert held.raw_bytes == pytest.approx(
        sum(osd.size_bytes for osd in osds if osd.id in inside)
    )


def test_the_scenario_loads_and_maps_by_the_rule_of_the_pool(cluster, tmp_path):
    from stripesim.scenarios.schema.scenario import load_scenario

    (pool,) = chosen_pools(cluster, ["ec21"])
    found = scenario_of(cluster, pool, "s.crush.txt")
    written = write_scenario(found, tmp_path / "s.toml")
    assert [path.name for path in written] == ["s.toml", "s.crush.txt"]
    scenario = load_scenario(str(tmp_path / "s.toml"))
    assert scenario.schemes == ("rs:2,1",) and scenario.generation == "pacific"
    assert scenario.cluster.crush_rule == "ec21"
    with pytest.raises(MeasuredError, match="--pool: got 'gone'"):
        chosen_pools(cluster, ["gone"])


@pytest.mark.parametrize(
    ("version", "shards", "threads"),
    [("18.2.4", 5, 1), ("18.2.5", None, None), ("19.2.0", 5, 1), ("19.2.1-3", None, None)],
)  # fmt: skip
def test_disks_have_the_operation_queues_of_their_version(
    tmp_path, version, shards, threads
):
    # Given OSDs on disks: one queue of five threads since 18.2.5 and 19.2.1, five of one thread before.
    def on_disks(document):
        document["version"] = version
        for osd in document["osd_metadata"]:
            osd |= {"bluestore_bdev_rotational": "1", "rotational": "1"}

    old = import_cluster([changed(tmp_path, on_disks)])
    (pool,) = chosen_pools(old, ["ec21"])
    write_scenario(scenario_of(old, pool, "s.crush.txt"), tmp_path / "s.toml")
    scenario = load_scenario(tmp_path / "s.toml")
    assert scenario.cluster.op_shards == shards
    assert scenario.cluster.op_threads_per_shard == threads
    counts = build_models(scenario).threads
    assert counts.op_shards_count == (shards or 1)
    assert counts.op_threads_per_shard_count == (threads or 5)


@pytest.mark.parametrize(
    ("version", "generation", "profile"),
    # 17.2.7 has the costs and the default profile of Reef's mClock (pull request 49973 of ceph/ceph).
    [
        ("17.2.6", "quincy", "high_client_ops"),
        ("17.2.7-el9", "reef", "balanced"),
        ("18.2.4", "reef", "balanced"),
    ],
)
def test_late_versions_of_quincy_schedule_as_reef_does(
    tmp_path, version, generation, profile
):
    def on_disks(document):
        document["version"] = version
        for osd in document["osd_metadata"]:
            osd |= {"bluestore_bdev_rotational": "1", "rotational": "1"}

    cluster = import_cluster([changed(tmp_path, on_disks)])
    (pool,) = chosen_pools(cluster, ["ec21"])
    write_scenario(scenario_of(cluster, pool, "s.crush.txt"), tmp_path / "s.toml")
    scenario = load_scenario(tmp_path / "s.toml")
    assert scenario.generation == generation
    assert mclock_defaults(scenario.generation).profile == profile
    # All of them have five operation queues for a disk.
    assert build_models(scenario).threads.op_shards_count == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty file"),
        ("HEALTH_OK", "text that begins 'HEALTH_OK'"),
        ('{"osdmap": {"pools": [', "ends too early"),
        ('{"osdmap": {"pools": ]}', "broken JSON"),
        ('{"a": 1}', "a document with a"),
        ("[1, 2]", "a document with a list"),
        ('{"osdmap": {"pools": [], "osds": []}}', "crushmap: got nothing"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_invalid_reports_are_refused_in_one_line(tmp_path, text, said):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(MeasuredError) as caught:
        import_cluster([path])
    (line,) = str(caught.value).splitlines()
    assert said in line and "r.json" in line


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda d: d["osdmap"].pop("pools"),
            "osdmap.pools: got nothing",
        ),
        (lambda d: d.pop("osdmap"), "osdmap: got nothing"),
        (
            lambda d: d["osdmap"]["pools"][0].update(pg_num="8"),
            'osdmap.pools.0.pg_num: got "8"',
        ),
        (
            lambda d: d["osdmap"]["osds"][0].update(weight=-1),
            "osdmap.osds.0.weight: got -1",
        ),
        (
            lambda d: d["crushmap"]["buckets"][0].update(alg="x"),
            "crushmap.buckets.0.alg: got 'x'",
        ),
        (lambda d: d["crushmap"].pop("rules"), "crushmap.rules: got nothing"),
        (
            lambda d: d["osdmap"]["pg_temp"][0].pop("osds"),
            "osdmap.pg_temp.0.osds: got nothing",
        ),
        (
            lambda d: d["osd_metadata"][0].update(cpu=["x"]),
            'osd_metadata.0.cpu: got ["x"]',
        ),
        (
            lambda d: d["osdmap"]["osds"].append(d["osdmap"]["osds"][0]),
            "osdmap.osds.8.osd: got ",
        ),
    ],
)
def test_broken_parts_are_named_with_their_key(tmp_path, change, said):
    with pytest.raises(ValueError, match=r"r\.json: ") as caught:
        import_cluster([changed(tmp_path, change)])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda d: d["osdmap"]["pools"][1].update(tier_of=4),
            "pool reps: a cache tier of pool 4",
        ),
        (
            lambda d: d["osdmap"]["pools"][1].update(
                options={"compression_mode": "force"}
            ),
            'pool reps: compression_mode "force"',
        ),
        (
            lambda d: d["osdmap"]["pools"][1].update(
                quota_max_bytes=10**12, quota_max_objects=5000
            ),
            "pool reps: quota of 1 TB and 5,000 objects: left out",
        ),
        # RS(2,2) serves clients with three shards by default.
        (
            lambda d: d["osdmap"]["pools"][4].update(min_size=2),
            "ec22 2 (Ceph: 3)",
        ),
        (
            lambda d: d["osdmap"]["erasure_code_profiles"]["ec21"].update(plugin="x"),
            'pool ec21: erasure code plugin "x"',
        ),
        # Layers in place of k, m and l
        (
            lambda d: d["osdmap"]["erasure_code_profiles"]["ec21"].update(plugin="lrc"),
            'pool ec21: erasure code plugin "lrc"',
        ),
        (
            lambda d: d["osdmap"]["pools"][1].update(pg_placement_num=16),
            "pool reps: pgp_num 16, fewer than pg_num 32",
        ),
        (
            lambda d: d["osdmap"]["pools"][1].update(flags_names=""),
            "pool reps: flag hashpspool is missing",
        ),
        (
            lambda d: d["osdmap"].update(stretch_mode={"stretch_mode_enabled": True}),
            "osdmap: stretch mode",
        ),
        (
            lambda d: d["osdmap"].update(full_ratio=0.8),
            "nearfull_ratio 0.85, backfillfull_ratio 0.9, full_ratio 0.8: out of order "
            "(OSD_OUT_OF_ORDER_FULL). OSDs raise each to the one before it, so they act at 0.85, 0.9 and 0.9",
        ),
    ],
)
def test_what_an_import_leaves_out_or_cannot_be_gives_a_warning(
    cluster, tmp_path, change, said
):
    found = import_cluster([changed(tmp_path, change)]).warnings
    assert [line for line in found if said in line]
    assert not [line for line in cluster.warnings if said in line]


FIO = {
    "fio version": "fio-3.33",
    "global options": {"bs": "4k", "iodepth": "16"},
    "jobs": [
        {
            "jobname": "a",
            "job options": {"rw": "randread", "numjobs": "2"},
            "read": {
                "io_bytes": 4096000,
                "io_kbytes": 4000,
                "total_ios": 1000,
                "iops": 500.0,
                "bw_bytes": 2048000,
                "lat_ns": {"mean": 2e6},
                "clat_ns": {"percentile": {"99.000000": 9000000}},
            },
            "write": {"io_bytes": 0, "total_ios": 0, "iops": 0.0},
        }
    ],
}


def test_a_fio_job_is_a_workload_with_its_measurements(tmp_path):
    (tmp_path / "json_output.0").write_text("fio: starting\n" + json.dumps(FIO))
    (row,) = import_fio(tmp_path / "json_output.0")
    assert row["workload"] == {
        "patterns": ["rand"], "block_sizes_bytes": [4096], "queue_depth": 16, "clients": 2, "ops": ["read"]
    }  # fmt: skip
    assert (
        row["measured"]["latency_mean_ns"] == 2e6
        and row["measured"]["latency_p99_ns"] == 9e6
    )
    rows, refused = import_cbt(tmp_path)
    assert (rows[0]["file"], refused) == ("json_output.0", [])
    (tmp_path / "other").write_text("{}")
    with pytest.raises(MeasuredError, match="wanted the JSON that fio writes"):
        import_fio(tmp_path / "other")


def test_sizes_of_fio_2_are_in_kib(tmp_path):
    # fio 2.20 writes 4 KiB × 1000 requests as io_bytes 4000, without io_kbytes.
    text = json.dumps(FIO).replace(
        '"io_bytes": 4096000, "io_kbytes": 4000', '"io_bytes": 4000'
    )
    (tmp_path / "json_output.0").write_text(text)
    (row,) = import_fio(tmp_path / "json_output.0")
    assert row["workload"]["block_sizes_bytes"] == [4096]


def test_a_folder_of_cbt_has_each_output_once(tmp_path):
    """CBT copies the JSON of output.0.host to json_output.0.host, except for what follows a blank line."""
    text = json.dumps(FIO)
    for name in ("json_output.0.a", "output.0.a", "output.1.a", "output.2.a"):
        (tmp_path / name).write_text("Starting 1 process\n" + text)
    (tmp_path / "json_output.2.a").write_text(text[: len(text) // 2])
    rows, refused = import_cbt(tmp_path)
    files = [row["file"] for row in rows]
    assert files == ["json_output.0.a", "output.1.a", "output.2.a"]
    assert len(refused) == 1 and "json_output.2.a" in refused[0]


def test_outputs_of_fio_without_a_result_are_named_and_other_files_are_not(tmp_path):
    text = json.dumps(FIO)
    (tmp_path / "json_output.0").write_text(text)
    (tmp_path / "json_output.1").write_text(
        text.replace('"jobname"', '"error": 5, "jobname"')
    )
    (tmp_path / "output.2").write_text(text[: len(text) // 2])
    (tmp_path / "ceph_settings.json").write_text('{"fsid": "x"}')
    rows, refused = import_cbt(tmp_path)
    assert [row["file"] for row in rows] == ["json_output.0"]
    failed, cut = refused
    assert "json_output.1: jobs: got error 5" in failed and failed.endswith(
        "The file is left out"
    )
    assert "output.2" in cut


def clone_of(iops, latency_ns):
    """Return fio's entry for one of two clones of a job that is limited to 500 requests/s."""
    measured = {"total_ios": 1000, "iops": iops, "lat_ns": {"mean": latency_ns}}
    options = {"rw": "randread", "numjobs": "2", "rate_iops": "500"}
    return {"jobname": "a", "job options": options, "read": measured}


def test_the_clones_of_a_fio_job_are_one_workload(tmp_path):
    entries = [clone_of(100.0, 1e6), clone_of(300.0, 2e6)]
    (tmp_path / "clones").write_text(json.dumps({"jobs": entries}))
    (row,) = import_fio(tmp_path / "clones")
    assert row["workload"]["clients"] == 2
    # Each clone has its own limit.
    assert row["workload"]["rate_per_s"] == 2 * 500
    assert row["measured"]["iops"] == 100 + 300
    # 100 requests of 1 ms and 300 of 2 ms each second.
    assert row["measured"]["latency_mean_ns"] == 1.75e6


def limited(tmp_path, options, iops, latency_ns, write=None):
    """Return the row of a job of 4 KiB reads, 16 in flight, with further options."""
    read = {"total_ios": 1000, "io_bytes": 4096000, "io_kbytes": 4000, "iops": iops}
    read["lat_ns"] = {"mean": latency_ns}
    options = {"rw": "randread", "iodepth": "16", "bs": "4k", **options}
    job = {"jobname": "a", "job options": options, "read": read, "write": write or {}}
    (tmp_path / "job.json").write_text(json.dumps({"jobs": [job]}))
    return import_fio(tmp_path / "job.json")[0]


def test_a_limit_that_a_job_did_not_reach_leaves_a_closed_loop(tmp_path):
    # 8,000/s of 2 ms keep 16 in flight: the cluster is the limit, not a million per second.
    row = limited(tmp_path, {"rate_iops": "1000000"}, 8000.0, 2e6)
    assert "kind" not in row["workload"] and not row["warnings"]
    row = limited(tmp_path, {"rate_iops": "8000"}, 7990.0, 2e6)
    assert (row["workload"]["kind"], row["workload"]["rate_per_s"]) == ("open", 8000)


def test_a_limit_in_bytes_is_one_of_requests(tmp_path):
    # fio's unit is 1024: 1 MiB/s of 4 KiB are 256 requests per second.
    row = limited(tmp_path, {"rate": "1m"}, 256.0, 1e6)
    assert (row["workload"]["kind"], row["workload"]["rate_per_s"]) == ("open", 256)


def test_a_job_that_does_not_keep_its_depth_gives_a_warning(tmp_path):
    # A synchronous engine: 1,000/s of 1 ms are one request in flight, of 16.
    row = limited(tmp_path, {"ioengine": "psync"}, 1000.0, 1e6)
    (warning,) = row["warnings"]
    assert " 1 requests were in flight" in warning and "keeps 16" in warning
    assert answer_of_workloads([row]).document["warnings"] == [warning]


def test_reads_that_verify_writes_are_no_part_of_the_load(tmp_path):
    write = {"total_ios": 1000, "iops": 4000.0, "lat_ns": {"mean": 4e6}}
    options = {"rw": "randwrite", "verify": "crc32c"}
    row = limited(tmp_path, options, 9000.0, 1e6, write)
    assert row["op"] == "write" and row["workload"]["ops"] == ["write"]
    assert "read_fraction" not in row["workload"]


def test_a_fio_job_with_requests_at_no_rate_is_refused(tmp_path):
    measured = {"total_ios": 1, "iops": 0.0}
    job = {"job options": {"rw": "randrw"}, "read": measured, "write": measured}
    (tmp_path / "still").write_text(json.dumps({"jobs": [job]}))
    with pytest.raises(MeasuredError, match="still: jobs: got no read requests"):
        import_fio(tmp_path / "still")


@pytest.mark.parametrize(
    ("kind", "file", "key"),
    [
        ("fio", DATA / "randread-fio.json", "workload"),
        ("ceph-report", REPORT, "capacity"),
    ],
)
def test_a_dash_reads_standard_input(kind, file, key):
    command = [sys.executable, "-m", "stripesim", "import", kind, "-", "--json", "-"]
    with file.open() as output:
        done = subprocess.run(
            command, stdin=output, capture_output=True, check=True, text=True
        )
    assert f'"{key}"' in done.stdout


@pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"needs the recorded outputs under {SHARED}"
)
def test_a_report_of_a_cluster_of_others():
    found = import_cluster(
        [SHARED / "canonical-hotsos/storage__ceph-mon__ceph_mon__ceph_report"]
    )
    assert found.counts == found.reported and found.version == "15.2.14"


def test_the_page_has_every_number_of_the_document_and_its_assumptions(
    cluster, tmp_path
):
    document, scenarios = describe_cluster(cluster)
    document["warnings"].append("<script>alert(1)</script>")
    page = answer_of_cluster(document, scenarios).page()
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "http" not in page.replace("http-equiv", "")
    capacity = document["capacity"]
    for row in capacity["classes"]:
        for size in (
            row["raw_bytes"],
            row["now"]["stranded_bytes"],
            row["after_upmap"]["stranded_bytes"],
        ):
            assert bytes_text(size) in page
        assert (
            f"osd.{row['now']['fullest_osd']} fills {row['now']['fullest_over_mean']:.2f} ×"
            in page
        )
    for pool, room in zip(document["pools"], capacity["pools"], strict=True):
        assert all(
            text in page
            for text in (pool["name"], bytes_text(room["usable_bytes_safe"]))
        )
    assert page.count(">heals<") == sum(row["heals"] for row in capacity["domains"])
    assert all(row["domain"] in page for row in capacity["domains"])
    for words in (
        "nearfull",
        "full ratio",
        "assumed",
        "from the fullest to the emptiest OSDs",
        "8 of 8",
    ):
        assert words in page


def test_a_page_is_written_next_to_the_scenario(tmp_path, monkeypatch, capsys):
    asked = ["stripesim", "import", "ceph-report", str(REPORT), "--report"]
    monkeypatch.setattr("sys.argv", asked)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert states(capsys.readouterr().err, "--report: got ... --out")
    monkeypatch.setattr("sys.argv", [*asked, "--out", str(tmp_path / "mine.toml")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert {path.name for path in tmp_path.iterdir()} == {
        "mine.toml",
        "mine.crush.txt",
        "mine-report.html",
    }


def test_a_scenario_places_a_pool_where_the_cluster_has_it(cluster, tmp_path):
    """Its number, reweights, weight sets and upmaps count. The first copy is that of the primary."""
    assert (cluster.osd_map.affinities < WEIGHT_ONE).sum() == 2
    for pool in cluster.pools:
        path = tmp_path / f"{pool.placed.name}.toml"
        write_scenario(scenario_of(cluster, pool, f"{path.stem}.crush"), path)
        scenario = load_scenario(str(path))
        scheme = parse_scheme(scenario.schemes[0])
        wanted = pg_sets(cluster.osd_map, pool.placed).up
        assert up_sets(scenario, scheme).tolist() == wanted.tolist()


def test_a_scenario_has_whole_upmaps_as_pairs(tmp_path):
    document = report()
    imported = import_cluster([write_report(tmp_path, document)])
    (pool,) = imported.pools
    rows = pg_sets(imported.osd_map, pool.placed).up.tolist()
    # Given group 5 on OSDs of three other hosts, and group 6 on its own in reverse order.
    others = [
        host * 4 for host in range(6) if host not in {osd // 4 for osd in rows[5]}
    ]
    document["osdmap"] |= {
        "pg_upmap": [
            {"pgid": "1.5", "osds": others},
            {"pgid": "1.6", "osds": rows[6][::-1]},
        ],
        "pg_upmap_primaries": [{"pgid": "1.7", "primary_osd": rows[7][2]}],
    }
    imported = import_cluster([write_report(tmp_path, document)])
    (pool,) = imported.pools
    written = scenario_of(imported, pool, "data.crush")
    write_scenario(written, tmp_path / "data.toml")
    scenario = load_scenario(str(tmp_path / "data.toml"))
    # Then group 5 is where the cluster has it, and notes count the groups whose order differs.
    assert up_sets(scenario, parse_scheme("rep:3"))[5].tolist() == others
    upmap, primaries = written.notes
    assert upmap.startswith("pg_upmap: 1 placement group ")
    assert primaries.startswith("pg_upmap_primaries: 1 placement group ")


def test_a_scenario_places_a_pool_as_the_cluster_does_with_osds_that_are_out(tmp_path):
    document = report()
    # One OSD is out, one no longer exists, and one takes half of its groups.
    document["osdmap"]["osds"][5] |= {"in": 0, "weight": 0.0}
    document["osdmap"]["osds"][6]["weight"] = 0.5
    del document["osdmap"]["osds"][9]
    imported = import_cluster([write_report(tmp_path, document)])
    (pool,) = imported.pools
    path = tmp_path / "data.toml"
    write_scenario(scenario_of(imported, pool, "data.crush"), path)
    scenario = load_scenario(str(path))
    scheme = parse_scheme("rep:3")
    wanted = pg_sets(imported.osd_map, pool.placed).up
    assert up_sets(scenario, scheme).tolist() == wanted.tolist()
    # 24 OSDs without those two.
    models = build_models(scenario)
    capacity = scheme_capacity(scenario, "rep:3", models, drives_of(scenario, models))
    assert capacity.osds == 22
    assert capacity.raw_bytes == pytest.approx(22 * OSD_BYTES)
