"""The table of Ceph releases: complete, with provenance, and the only place that knows their names."""

import re
from pathlib import Path
from typing import get_args

import pytest

from stripesim.models.generations import generation, generations
from stripesim.scenarios.schema.types import GenerationName

ROOT = Path(__file__).resolve().parents[2]


def test_scenarios_may_name_any_backend_of_the_table():
    assert list(get_args(GenerationName)) == list(generations())


@pytest.mark.parametrize("name", list(generations()))
@pytest.mark.parametrize("device", ["ssd", "hdd"])
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
    assert generation("pacific").op_threads("ssd").shards_count == 8
    assert generation("pacific").op_threads("hdd").shards_count == 5
    assert generation("pacific").recovery("hdd").recovery_sleep_ns == 100_000_000
    assert generation("quincy").recovery("hdd").recovery_sleep_ns == 0


def test_erasure_coding_changes_with_tentacle():
    classic = ["kraken", "pacific", "quincy", "reef", "squid"]
    assert all(generation(name).ec == generation("kraken").ec for name in classic)
    assert generation("reef-partial-read").ec.reads == "chunks"
    assert generation("tentacle").ec.tie == "reconstruct"
    assert generation("umbrella").ec.tie == "delta"


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
