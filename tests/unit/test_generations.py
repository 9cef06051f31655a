"""The table of Ceph releases: complete, with provenance, and the only place that knows their names."""

import re
from pathlib import Path
from typing import get_args

import pytest

from stripesim.models.generations import generation, generations
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.scenarios.schema.types import GenerationName

ROOT = Path(__file__).resolve().parents[2]


def test_scenarios_may_name_any_backend_of_the_table():
    assert list(get_args(GenerationName)) == list(generations())


@pytest.mark.parametrize("name", list(generations()))
@pytest.mark.parametrize("device", ["ssd", "hdd", "hybrid"])
def test_every_number_has_a_source(name, device):
    release = generation(name)
    rows = [
        *release.recovery(device).parameters(),
        *release.op_threads(device).parameters(),
    ]
    assert all(row["value"] is not None and len(row["source"]) > 10 for row in rows)


def test_a_number_taken_over_from_another_release_is_an_assumption():
    origin = generation("reef").recovery().provenance["heartbeat_grace_ns"]
    assert origin.kind == "assumed"
    assert origin.source == "as in pacific: Ceph v16.2.15: osd_heartbeat_grace"


def test_devices_differ_where_the_release_does():
    # Ceph v16.2.15: osd_op_num_shards_ssd 8 × 2, _hdd 5 × 1, osd_recovery_sleep_hdd 0.1 s, 0 under mClock.
    # v18.2.5 and v19.2.1: _hdd 1 × 5.
    assert generation("pacific").op_threads("ssd").shards_count == 8
    assert generation("pacific").op_threads("hdd").shards_count == 5
    for name in ("reef", "squid", "tentacle"):
        threads = generation(name).op_threads("hdd")
        assert (threads.shards_count, threads.threads_per_shard_count) == (1, 5)
        assert generation(name).op_threads("ssd").shards_count == 8
    assert generation("pacific").recovery("hdd").recovery_sleep_ns == 100_000_000
    assert generation("quincy").recovery("hdd").recovery_sleep_ns == 0


def test_erasure_coding_changes_with_tentacle():
    classic = ["kraken", "pacific", "quincy", "reef", "squid"]
    assert all(generation(name).ec == generation("kraken").ec for name in classic)
    assert generation("reef-partial-read").ec.reads == "chunks"
    assert generation("tentacle").ec.tie == "reconstruct"
    assert generation("umbrella").ec.tie == "delta"


def models_under(name, **cluster):
    sets = {f"cluster.{key}": value for key, value in cluster.items()}
    sets |= {"workload.requests": 1, "cluster.hosts": 6}
    text = f'schemes = ["rs:4,2"]\ngeneration = "{name}"'
    return build_models(parse_scenario(text, sets=sets))


def test_a_sync_of_the_log_writes_what_the_release_counts():
    # One block of the log's end, and up to 18 one of the file system that holds the log.
    blocks = {"kraken": 0, "pacific": 2, "reef": 2, "tentacle": 1, "umbrella": 1}
    for name, count in blocks.items():
        assert models_under(name).store.sync_log_bytes == count * 4096


def test_a_parameter_set_that_states_a_sync_keeps_it():
    models = models_under("tentacle", parameters="pacific")
    assert models.store.sync_log_bytes == 8192


def test_primaries_keep_pages_in_optimised_pools_alone():
    cache = models_under("tentacle").extent_cache
    assert cache.bytes_per_op_shard == 10 << 20
    classic = models_under("tentacle", ec_optimizations=False)
    assert classic.extent_cache is None
    assert (classic.ec.writes, classic.ec.reads) == ("stripes", "columns")


def test_an_unknown_release_is_rejected_with_those_there_are():
    with pytest.raises(ValueError, match=r"^generation: got 'krakn'"):
        generation("krakn")


def test_no_code_asks_for_a_class_or_a_set_of_a_release():
    pattern = re.compile(
        r"isinstance\([^)]*Pacific|parameters == \"|parameters\) == \""
    )
    for folder in ("models", "sim", "calibration", "scenarios", "stripesim"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not pattern.search(path.read_text("utf-8")), path
