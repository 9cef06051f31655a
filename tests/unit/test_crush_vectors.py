"""Mappings, bit for bit, against those crushtool 16.2.15 and a running cluster gave."""

import csv
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from stripesim.models.placement import (
    NONE,
    build_map,
    load_map,
    pg_mappings,
    placement_seeds,
    stable_mod,
)
from stripesim.models.placement.crush.rjenkins import hash_byte_rows

DATA = Path(__file__).resolve().parents[2].parent / "shared/data/ceph16/crush"
needs_data = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"needs the recorded mappings under {DATA}"
)
VECTORS = sorted(path.name for path in DATA.glob("map*.txt.gz"))


def reweights(map_name):
    for line in (DATA / "reweights.txt").read_text().splitlines():
        name, _, options = line.partition(":")
        if name == map_name:
            return {
                int(osd): float(w)
                for osd, w in re.findall(r"--weight (\d+) (\S+)", options)
            }
    raise AssertionError(f"no reweights for map {map_name}")


@needs_data
def test_all_vector_files_are_found():
    assert len(VECTORS) == 26


@needs_data
@pytest.mark.parametrize("name", VECTORS)
def test_mappings_equal_crushtools(name):
    found = re.fullmatch(r"map(.)\.rule(\d+)\.n(\d+)\.(full|rew)\.txt\.gz", name)
    map_name, rule, num_rep, weights = found.groups()
    wanted = {}
    with gzip.open(DATA / name, "rt") as lines:
        for line in lines:
            x, items = re.fullmatch(r"CRUSH rule \d+ x (\d+) \[(.*)\]\n", line).groups()
            wanted[int(x)] = [int(item) for item in items.split(",")]
    assert len(wanted) == 1024
    crush = load_map(DATA / f"{map_name}.txt")
    xs = sorted(wanted)
    shares = reweights(map_name) if weights == "rew" else None
    got = crush.mappings(int(rule), xs, int(num_rep), shares)
    assert dict(zip(xs, got, strict=True)) == wanted


@needs_data
def test_object_names_reach_the_osds_of_the_running_cluster():
    crush = load_map(DATA / "cluster.crush.txt")
    pools = {
        p["pool"]: p["crush_rule"]
        for p in json.loads((DATA / "cluster_osd_dump.json").read_text())["pools"]
    }
    tables = {}
    rows = list(csv.DictReader((DATA / "osdmap_vectors.csv").open()))
    assert len(rows) == 1332
    for row in rows:
        pool, pg_num, pgp_num, size = (
            int(row[key]) for key in ("pool_id", "pg_num", "pgp_num", "size")
        )
        name = "\x1f".join(filter(None, (row["namespace"], row["object"])))
        hashed = int(
            hash_byte_rows(np.frombuffer(name.encode(), dtype=np.uint8)[None, :])[0]
        )
        pg = stable_mod(hashed, pg_num)
        assert f"{pool}.{hashed:x}" == row["raw_pgid"]
        assert f"{pool}.{pg:x}" == row["pgid"]
        if pool not in tables:
            tables[pool] = pg_mappings(
                crush, pools[pool], pool, pg_num, size, pgp_num=pgp_num
            )
        up = tables[pool][pg].tolist()
        assert up == [int(osd) for osd in row["up"].split()]
        assert up[0] == int(row["up_primary"])
        seed = placement_seeds(pg, pool, pgp_num)
        assert crush.map_many(pools[pool], [seed], size)[0].tolist() == up


# What `crushtool -i A.crush --test --rule R --num-rep N --min-x 0 --max-x 3 --show-mappings` (16.2.15)
# printed for the map of 4 hosts × 6 OSDs: more replicas than hosts, and more shards than OSDs.
N = NONE
BEYOND = {
    ("rep", 5): [[0, 23, 6, 17], [5, 13, 10, 20], [1, 22, 13, 6], [19, 4, 13, 10]],
    ("ec", 6): [[0, 18, N, 6, 14, N], [5, 17, 20, 7, N, N], [1, 21, N, 15, N, 11], [19, 4, 13, 10, N, N]],
    ("ec_osd", 26): [
        [0, 23, 18, 6, 11, 4, 16, 19, 7, 21, 17, 8, 22, 15, 20, 10, N, 1, 14, 3, 9, 13, N, 5, 12, 2],
        [5, 13, 2, 10, 3, 7, 12, 4, 20, 6, 8, 9, 23, 1, 21, 11, 18, 15, 19, 16, 14, N, 17, N, 0, 22],
        [1, 22, 21, 13, 19, 6, 14, 7, 5, 15, 8, 9, 10, 20, 12, 17, 11, 4, 2, N, 18, 3, N, 16, 23, 0],
        [19, 4, 13, 10, 7, 6, 22, 23, 15, N, 17, 12, 2, 14, 5, 16, 20, 1, 21, 9, 8, 0, 3, 11, N, 18],
    ],
}  # fmt: skip


@pytest.mark.parametrize(("rule", "num_rep"), BEYOND)
def test_more_wanted_than_there_are(rule, num_rep):
    crush = build_map(hosts=4, osds_per_host=6)
    wanted = BEYOND[rule, num_rep]
    assert crush.mappings(rule, range(4), num_rep) == wanted
    rows, lengths = crush.map_with_lengths(rule, range(4), num_rep)
    assert rows.dtype == np.int32
    assert lengths.tolist() == [len(row) for row in wanted]
    assert rows.tolist() == [row + [NONE] * (num_rep - len(row)) for row in wanted]


@needs_data
def test_the_built_map_is_map_a():
    built, read = build_map(hosts=4, osds_per_host=6), load_map(DATA / "A.txt")
    assert built.devices == read.devices
    assert built.types == read.types
    assert built.buckets == read.buckets
    assert built.tunables == read.tunables
    assert built.rules == read.rules[:4]
