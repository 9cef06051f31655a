"""The sync of the log that recovery waits for: stated, counted for a drive, or the drive's own."""

from dataclasses import replace

import pytest

from stripesim.models.problems import ProblemsError
from stripesim.scenarios.answers.rehearse.rehearse import rehearse
from stripesim.scenarios.cells.failures import limits_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.ceph.paths import repair_path
from stripesim.sim.ceph.paths.context import PathContext

TEXT = """
schemes = ["rep:3"]
generation = "tentacle"
[cluster]
hosts = 5
osds_per_host = 1
pg_num = 8
stored_bytes = "1GiB"
[workload]
ops = ["read"]
patterns = ["rand"]
image_bytes = "4MiB"
requests = 1
"""
OUT = """
[[changes]]
kind = "out"
osds = [1]
"""
STATED = TEXT.replace("[workload]", "recovery_sync_ms = 20\n[workload]")


def sync_ns(text):
    return limits_of(parse_scenario(text)).recovery_sync_ns


def syncs_of(template):
    """Return the demands of all syncs of a graph [ns]."""
    return {
        int(demand_ns)
        for label, demand_ns in zip(template.labels, template.demands_ns, strict=True)
        if label == "kv sync"
    }


def test_a_push_waits_for_the_stated_sync(models, make_context):
    context: PathContext = make_context(models, "rs:4,2")
    stated = replace(context, recovery_sync_ns=7_000_000)
    template = repair_path(stated, lost=[5], sizes_bytes=[4 << 20])
    assert syncs_of(template) == {7_000_000}


def test_a_push_waits_for_write_and_flush_without_a_statement(models, make_context):
    template = repair_path(
        make_context(models, "rs:4,2"), lost=[5], sizes_bytes=[4 << 20]
    )
    own_ns = models.ssd.sync_ns(models.store.metadata_bytes)
    assert syncs_of(template) == {round(own_ns)}


@pytest.mark.parametrize(
    ("drive", "text", "wanted_ns"),
    [
        ("nvme-tlc", TEXT, 0),
        ("pacific", TEXT, 7_930_000),
        ("nvme-tlc", STATED, 20_000_000),
        ("pacific", STATED, 20_000_000),
    ],
)
def test_the_scenario_comes_before_what_was_counted_for_the_drive(
    drive, text, wanted_ns
):
    named = text.replace("[workload]", f'drive = "{drive}"\n[workload]')
    assert sync_ns(named) == wanted_ns


def test_a_drive_of_ones_own_can_state_what_was_counted(tmp_path):
    shipped = build_models(parse_scenario(TEXT)).ssd
    lines = [
        f'[ssd.{name}]\nvalue = {value}\nprovenance = "given"\nsource = "test"'
        for name, value in ((n, getattr(shipped, n)) for n in shipped.number_names())
        if not isinstance(value, tuple)
    ]
    lines += [
        f'[ssd.{name}]\nlognormal_sigma = 0\nprovenance = "given"\nsource = "test"'
        for name in ("read_quantiles", "write_quantiles")
    ]
    counted = '[recovery.{}]\nvalue = 3000000\nprovenance = "measured"\nsource = "test"'
    file = tmp_path / "own.toml"
    text = TEXT.replace("[workload]", f'drive = "{file}"\n[workload]')
    file.write_text("\n".join([*lines, counted.format("recovery_sync_ns")]))
    assert sync_ns(text) == 3_000_000
    file.write_text("\n".join([*lines, counted.format("flush_ns")]))
    with pytest.raises(ProblemsError, match=r"\[recovery\].*flush_ns"):
        sync_ns(text)


def test_a_rebuild_of_a_plan_keeps_the_stated_sync():
    lost = parse_scenario(STATED)
    rebuilt = lost.without_osd(0, lost.workload)
    assert limits_of(rebuilt).recovery_sync_ns == 20_000_000


def test_a_change_takes_a_sync_longer_for_each_object_in_turn():
    moves = {}
    for name, text in (("own", TEXT), ("stated", STATED)):
        document = rehearse(parse_scenario(text + OUT))
        (change,) = document["changes"]
        moves[name] = change["movement_s"]
        assert sum("sync" in line for line in document["assumptions"]) == 1
    assert "cluster.recovery_sync_ms" in document["assumptions"][0]
    # A PG of 32 objects recovers them a few at a time: osd_recovery_max_active is 10, so there are at least
    # four turns of one sync of 20 ms each.
    assert moves["stated"] - moves["own"] > 4 * 0.02
