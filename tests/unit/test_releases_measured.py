"""The study of releases: its reader, its roles, and the rules that its rows need."""

from pathlib import Path

import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.problems import MeasuredError
from stripesim.scenarios.studies.ceph16.cluster import acting_sets
from stripesim.scenarios.studies.registry import study_named
from stripesim.scenarios.studies.releases.claims import calibration_runs, claims_of
from stripesim.scenarios.studies.releases.machine import models_of, pool_of
from stripesim.scenarios.studies.releases.measured import (
    Pooled,
    fio_requests,
    load,
    prefill,
)
from stripesim.scenarios.studies.releases.runs import metrics_of, predict
from stripesim.sim.ceph.cluster import NO_OSD
from support.messages import states

KIB = 1 << 10
MIB = 1 << 20
COLUMNS = (
    "run_id,scheme,k,m,op,pattern,bs,qd,ops,image_mb,N_dev_rd_per_client_byte,"
    "N_dev_wr_per_client_byte,N_dev_data_wr_per_client_byte,N_cl_net_per_client_byte"
)
ROW = "t20-ec83f-write-rand-4096-q1,ec83f,8,3,write,rand,4096,1,40,384,1,40,4,20"


def folder_with(tmp_path: Path, *rows: str, columns: str = COLUMNS) -> Path:
    (tmp_path / "runs.csv").write_text("\n".join([columns, *rows]) + "\n")
    return tmp_path


def test_a_name_tells_the_release_and_the_kind_of_pool(tmp_path):
    classic = ROW.replace("ec83f", "ec83c").replace("t20", "t18")
    own = ROW.replace("t20-ec83f-write", "mine")
    runs = load(folder_with(tmp_path, ROW, classic, own)).runs
    found = [
        (one.pooled.version, one.pooled.is_optimised, one.run.coded.stripe_unit_bytes)
        for one in runs
    ]
    assert found == [
        ("20.2.4", True, 16384),
        ("18.2.7", False, 4096),
        ("20.2.4", True, 16384),
    ]
    assert runs[0].run.coded.name == "rs:8,3"


def test_a_write_goes_to_a_written_image_unless_the_row_says_fresh(tmp_path):
    fresh = ROW.replace("q1,", "q2,")
    rows = (f"{ROW},", f"{fresh},fresh")
    first, second = load(folder_with(tmp_path, *rows, columns=f"{COLUMNS},image")).runs
    assert not first.is_fresh and second.is_fresh
    # 384 MiB in writes of 4 MiB came before.
    assert first.earlier is not None and len(first.earlier) == 96
    assert second.earlier is None


def test_primaries_of_a_cold_image_have_seen_nothing(tmp_path):
    rows = (f"{ROW},", f"{ROW.replace('q1,', 'q1b,')},cold")
    _, cold = load(folder_with(tmp_path, *rows, columns=f"{COLUMNS},image")).runs
    assert not cold.is_fresh
    assert cold.earlier is None
    # A delta reads the written page and the same of three parities.
    assert metrics_of(predict(cold))["device_read"] == pytest.approx(4, rel=0.05)


def test_a_row_follows_the_writes_of_earlier_rows_on_its_image(tmp_path):
    read = ROW.replace("-write-", "-read-").replace(",write,", ",read,")
    deeper = ROW.replace("q1,", "q16,").replace(",4096,1,", ",4096,16,")
    runs = load(folder_with(tmp_path, ROW, read, deeper)).runs
    # The 96 writes of the prefill, then the 40 of the first row. Reads leave nothing.
    assert [len(one.earlier) for one in runs] == [96, 136, 136]


def test_fio_visits_the_same_places_with_all_block_sizes():
    small, large = (
        fio_requests(
            pattern="rand",
            is_write=True,
            block_bytes=block_bytes,
            image_bytes=384 * MIB,
            count=100,
            seed=42,
        )
        for block_bytes in (4096, 65536)
    )
    # The first place of the recorded log, and the same rounded down to 64 KiB.
    assert small.offsets_bytes[0] == 393_400_320
    assert large.offsets_bytes[0] == 393_400_320 // 65536 * 65536
    close = abs(small.offsets_bytes - large.offsets_bytes) < 2 * 65536
    assert close.all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((",8,3,", ",0,3,"), "runs.csv:2: k: ... '0' ... at least 1"),
        ((",write,", ",erase,"), "runs.csv:2: op: ... 'erase' ... write"),
        (("t20-", "t13-"), "runs.csv:2: run_id: ... 14, 16, 18, 20"),
        (("t20-", "t18-"), "runs.csv:2: scheme: ... 'ec83f' ... classic"),
        ((",40,384,", ",,384,"), "runs.csv:2: ops: ... '' ... at least 1"),
    ],
)
def test_a_wrong_cell_is_refused_with_its_line(tmp_path, change, message):
    with pytest.raises(MeasuredError) as caught:
        load(folder_with(tmp_path, ROW.replace(*change)))
    assert states(str(caught.value), message)


def test_a_folder_without_rows_is_refused(tmp_path):
    with pytest.raises(MeasuredError) as caught:
        load(str(tmp_path / "none"))
    assert states(str(caught.value), "--data ... runs.csv")


def test_rows_of_other_folders_are_held_out_even_under_a_name_that_a_fit_has_seen(
    tmp_path,
):
    run_id = calibration_runs()[0]
    row = f"{run_id},rep3,1,2,overwrite,rand,4096,16,512,384,0,6,3,3"
    claims = claims_of(load(folder_with(tmp_path, row)))
    assert {claim.id for claim in claims} == {
        f"{run_id}:{metric}"
        for metric in (
            "device_read",
            "device_data_write",
            "device_write",
            "private_net",
        )
    }
    assert {claim.role for claim in claims} == {"held-out"}


def test_shipped_calibration_is_replication_and_rs63_alone():
    claims = claims_of(load())
    seen = {
        claim.id.rpartition(":")[0] for claim in claims if claim.role == "calibration"
    }
    assert seen == set(calibration_runs())
    assert {run_id.split("-")[1] for run_id in seen} == {"rep3", "ec63f", "ec63c"}
    assert len({claim.id for claim in claims}) == len(claims)


@pytest.mark.parametrize("width", range(3, 17))
def test_crush_places_every_width_on_the_sixteen_osds(width):
    acting = acting_sets(parse_scheme(f"rs:2,{width - 2}"), pool_id=9, pg_num=32)
    assert acting.shape == (32, width)
    assert (acting != NO_OSD).all()
    assert all(len(set(row)) == width for row in acting.tolist())


def test_a_row_of_ones_own_is_drawn(tmp_path):
    result = study_named("releases").run(data=str(folder_with(tmp_path, ROW)))
    assert list(result.figures()) == ["measured-simulated"]


@pytest.mark.parametrize(
    ("k", "m", "length_bytes", "offset_bytes", "wanted"),
    [
        # One chunk and its parities.
        (8, 3, 4 * KIB, 16 * KIB, (1, 3)),
        (10, 4, 16 * KIB, 16 * KIB, (4, 4 * 4)),
        # Four chunks in one stripe of eight; two in each of two stripes of ten.
        (8, 3, 64 * KIB, 64 * KIB, (16, 3 * 4)),
        (10, 4, 64 * KIB, 8 * 16 * KIB, (16, 4 * 2 * 4)),
        # 64 chunks are eight whole stripes of eight. From chunk 128 on, they are in stripes 12 to 19 of ten.
        (8, 3, MIB, MIB, (256, 3 * 8 * 4)),
        (10, 4, MIB, 2 * MIB, (256, 4 * 8 * 4)),
    ],
)
def test_pages_of_a_wide_code_by_hand(
    tmp_path, k, m, length_bytes, offset_bytes, wanted
):
    """Pages of 4 KiB that a write puts on data shards, and on all parities."""
    row = ROW.replace("ec83f,8,3", f"ec{k}{m}f,{k},{m}")
    (one,) = load(folder_with(tmp_path, row)).runs
    context = pool_of(one.pooled, one.run.coded).contexts[0]
    plan = context.plan_write(
        offset_bytes=offset_bytes,
        length_bytes=length_bytes,
        object_size_bytes=4 * MIB,
    )
    pages = [0, 0]
    for extent in plan.writes:
        pages[extent.shard >= k] += extent.length_bytes // (4 * KIB)
    assert tuple(pages) == wanted


def test_a_hinted_write_gives_every_shard_a_transaction(tmp_path):
    (one,) = load(folder_with(tmp_path, ROW)).runs
    context = pool_of(one.pooled, one.run.coded).contexts[0]
    plan = context.plan_write(
        offset_bytes=16384, length_bytes=4096, object_size_bytes=4 * MIB
    )
    # 4 KiB on shard 1 and the three parities; the other seven data shards only log.
    assert {extent.shard for extent in plan.writes} == {1, 8, 9, 10}
    assert plan.metadata_shards == (0, 2, 3, 4, 5, 6, 7)


def test_the_second_pass_over_the_same_places_reads_nothing(tmp_path):
    again = ROW.replace("q1,", "q1b,")
    first, second = load(folder_with(tmp_path, ROW, again)).runs
    reads = [metrics_of(predict(one))["device_read"] for one in (first, second)]
    # The first reads the pages that its prefill has pushed out. Its own stay in the primaries' cache.
    assert reads[0] > 0.5
    assert reads[1] == 0


def test_a_run_of_reads_writes_the_header_of_its_image_twice(tmp_path):
    row = "t20-rep3-read-rand-4096-q1,rep3,1,2,read,rand,4096,1,40,384,1,0,0,0"
    (one,) = load(folder_with(tmp_path, row)).runs
    store = models_of(one.pooled, parse_scheme("rep:3")).store
    # Watch and unwatch on three members, each with a sync of its own, over 40 reads.
    log_bytes = 2 * 3 * (store.metadata_bytes + store.sync_log_bytes)
    assert metrics_of(predict(one))["device_write"] == pytest.approx(
        log_bytes / (40 * 4096)
    )


def test_the_log_of_20_writes_one_block_a_sync_less():
    scheme = parse_scheme("rep:3")
    stores = {
        major: models_of(Pooled(f"{major}.2", is_optimised=False), scheme).store
        for major in ("14", "16", "18", "20")
    }
    syncs_bytes = {major: store.sync_log_bytes for major, store in stores.items()}
    assert syncs_bytes == {"14": 8192, "16": 8192, "18": 8192, "20": 4096}


def test_a_prefill_covers_the_image_once():
    writes = prefill(10 * MIB)
    assert writes.offsets_bytes.tolist() == [0, 4 * MIB, 8 * MIB]
    assert writes.lengths_bytes.sum() == 10 * MIB
