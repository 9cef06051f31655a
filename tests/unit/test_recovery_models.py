"""The autoscaler's rule, the cache that metadata is looked for in, the store with a journal."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.object_store.metadata_cache import (
    BlueStoreCacheModel,
    MetadataLookup,
)
from stripesim.models.object_store.store import FileStoreModel
from stripesim.models.placement.pg_autoscale import (
    nearest_power_of_two,
    pg_autoscale_model,
)
from stripesim.models.provenance import Provenance
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cells
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.sim.run import simulate

CACHE = {
    "cache_bytes": 1000,
    "kv_fraction": 0.5,
    "meta_fraction": 0.25,
    "data_fraction": 0.25,
    "onode_bytes": 10,
    "extent_bytes_per_data_byte": 0.0,
    "kv_bytes_per_data_byte": 0.0,
    "kv_onode_bytes": 10,
    "kv_block_bytes": 4096,
}


def cache(*, autotune=False, **numbers):
    values = {**CACHE, **numbers}
    return BlueStoreCacheModel(
        **values,
        autotune=autotune,
        provenance=dict.fromkeys(values, Provenance("assumed", "a test")),
    )


@pytest.mark.parametrize(
    ("objects", "missed"),
    [
        (25, 0.0),  # 250 bytes: the metadata share holds all
        (50, 0.0),  # 500 bytes: half is missed there, and found among the blocks
        (100, 0.75 * 0.5),
        (1000, 0.975 * 0.95),
    ],
)
def test_metadata_is_looked_for_in_its_share_and_then_among_the_blocks(objects, missed):
    assert cache().miss_fraction(objects, 1 << 20) == pytest.approx(missed)


def test_a_share_for_data_spares_no_look_up():
    scarce = cache(kv_fraction=0.2, meta_fraction=0.2, data_fraction=0.6).miss_fraction(
        100, 0
    )
    assert scarce > cache(
        kv_fraction=0.7, meta_fraction=0.2, data_fraction=0.1
    ).miss_fraction(100, 0)


@given(
    objects=st.integers(1, 10_000),
    cache_bytes=st.integers(1, 100_000),
    onode=st.integers(1, 100),
    kv=st.integers(1, 100),
    meta=st.floats(0, 1),
)
def test_autotune_never_misses_more_than_any_fixed_split(
    objects, cache_bytes, onode, kv, meta
):
    values = {
        "cache_bytes": cache_bytes,
        "onode_bytes": onode,
        "kv_onode_bytes": kv,
        "meta_fraction": meta,
        "kv_fraction": 1 - meta,
        "data_fraction": 0.0,
    }
    tuned = cache(autotune=True, **values).miss_fraction(objects, 0)
    assert 0 <= tuned <= 1
    assert tuned <= cache(**values).miss_fraction(objects, 0) + 1e-9


def test_a_look_up_reads_whole_blocks():
    assert cache().lookup_bytes(0) == 4096
    assert cache(kv_bytes_per_data_byte=0.001).lookup_bytes(8 << 20) == 3 * 4096


def test_shares_above_one_are_refused():
    with pytest.raises(ValueError, match=r"got 1\.1 in sum.*1\b"):
        cache(kv_fraction=0.6)


def repair(*sets):
    return load_scenario(
        "repair",
        sets=(
            'schemes=["rs:6,3"]',
            'workload.image_bytes="256MiB"',
            "workload.requests=1",
            *sets,
        ),
    )


def repaired(scenario, **models):
    ((_, result),) = run_cells(
        scenario, "compiled", replace(build_models(scenario), **models)
    )
    return result.row.as_dict()


def test_a_look_up_that_misses_is_a_read_of_each_source():
    result = repair()
    found = repaired(result)
    missed = repaired(result, lookup=MetadataLookup(1.0, 8192))
    lost = found["repair_lost_bytes"]
    objects = found["repair_objects"]
    per_lost = "repair_device_read_bytes_per_lost_byte"
    # An object of 4 MiB is one round from six sources.
    assert (missed[per_lost] - found[per_lost]) * lost == pytest.approx(
        objects * 6 * 8192
    )
    # Look-ups of 64 MiB keep the links busy: six for each object, spread over all OSDs.
    link_ns_per_byte = build_models(result).ssd.link_ns_per_byte
    look_ups_per_osd = objects * 6 / result.cluster.osd_count
    busy_s = look_ups_per_osd * (64 << 20) * link_ns_per_byte / 1e9
    slow = repaired(result, lookup=MetadataLookup(1.0, 64 << 20))
    assert slow["repair_s"] > busy_s > 2 * found["repair_s"]
    assert repaired(result, lookup=MetadataLookup(0.0, 8192)) | {
        "engine_wall_s": 0
    } == found | {"engine_wall_s": 0}


def test_a_journal_doubles_the_writes_of_a_repair():
    # Given no new map before files are written: a map ends the interval of PGs that have recovered, which
    # cuts off the file writes that follow their last commits.
    scenario = repair('generation="pacific"', 'cluster.parameters="pacific"')
    models = build_models(scenario)
    per_lost_byte = []
    for store in (models.store, FileStoreModel.of(models.store)):
        inputs = build_cell(scenario, cells(scenario)[0], replace(models, store=store))
        late_maps = inputs.faults.model.given(propose_min_wait_ns=10**9)
        result = simulate(
            inputs.pool, inputs.workload, faults=replace(inputs.faults, model=late_maps)
        )
        row = result.row.as_dict()
        assert row["repair_s"] < 1
        per_lost_byte.append(row["repair_device_write_bytes_per_lost_byte"])
    # Then everything is written once more. A shard has 171 chunks of 4 KiB, which are whole blocks of a file.
    once, twice = per_lost_byte
    assert twice - once == pytest.approx(1)


def test_disks_take_the_limits_of_their_class():
    fast, slow = (
        repaired(repair('generation="pacific"', f'cluster.drive="{name}"'))["repair_s"]
        for name in ("intel-730-raid0", "hdd-7200")
    )
    assert slow > 5 * fast


@pytest.mark.parametrize(
    ("fraction", "osds", "width", "wanted"),
    [(1.0, 90, 12, 512), (1.0, 100, 3, 4096), (0.0, 90, 12, 32), (0.5, 60, 9, 256)],
)
def test_the_autoscaler_wants_the_nearest_power_of_two(fraction, osds, width, wanted):
    # 750, 3333, 0 and 333 before rounding.
    assert (
        pg_autoscale_model().wanted(raw_used_fraction=fraction, osds=osds, width=width)
        == wanted
    )


def test_a_pool_moves_only_past_the_threshold():
    model = pg_autoscale_model()
    assert [model.scaled(pg_num, 32) for pg_num in (1, 10, 11, 32, 96, 97, 256)] == [
        32,
        32,
        11,
        32,
        96,
        32,
        32,
    ]


@given(st.floats(0, 1e9))
def test_a_power_of_two_within_a_factor_of_one_and_a_half(number):
    power = nearest_power_of_two(number)
    assert power & (power - 1) == 0
    assert number < 1 or 2 / 3 <= power / number <= 4 / 3 + 1e-12


@pytest.mark.parametrize(("fraction", "osds"), [(1.1, 1), (-0.1, 1), (0.5, 0)])
def test_the_autoscaler_refuses_impossible_values(fraction, osds):
    with pytest.raises(ValueError, match="pg autoscale"):
        pg_autoscale_model().wanted(raw_used_fraction=fraction, osds=osds, width=3)
