"""One request explained: times are the engine's, bytes the planner's, sources those of the models."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stripesim.cli.app import app
from stripesim.models.problems import AnswerError
from stripesim.scenarios.answers.explain import shares as shares_module
from stripesim.scenarios.answers.explain.record import record
from stripesim.scenarios.answers.explain.request import explain
from stripesim.scenarios.answers.explain.text import heading
from stripesim.scenarios.answers.explain.timeline import (
    CATEGORIES,
    Timeline,
    TimelineStep,
)
from stripesim.scenarios.cells.build import build_cell
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.schema.keys import Cell
from stripesim.scenarios.schema.loader import shipped_scenarios
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from stripesim.sim.ceph.clients.workload import Synthetic
from stripesim.sim.engine import graph as graphs
from stripesim.sim.engine.graph import COUNTERS
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.engine.program import FIFO, Program, RequestChunk, Resources
from stripesim.sim.run import simulate
from support.examples import SLOW
from support.koh_cluster import KOH_CLUSTER, KOH_KEYS

SCENARIO = f"""
generation = "kraken"
schemes = ["rep:3", "rs:4,2"]
[cluster]
{KOH_KEYS}
hosts = 7
osds_per_host = 1
pg_num = 64
[workload]
requests = 1
queue_depth = 1
"""


def one(op: str, scheme: str, size_bytes: int = 4096, **more: object) -> Timeline:
    """Explain a request on the hardware of Koh et al., unless a scenario or release is given.

    Without the parameters of its steps, which take most of the time, unless a test asks for them.
    """
    more.setdefault("with_parameters", False)
    if "scenario" not in more:
        own: Any = more.get("sets", {})
        more["sets"] = {**KOH_CLUSTER, **own}
        if "generation" in more:
            del more["sets"]["generation"]  # type: ignore[attr-defined]
    (timeline,) = explain(op, scheme, size_bytes, **more)  # type: ignore[arg-type]
    return timeline


def labelled(timeline: Timeline, label: str) -> list[TimelineStep]:
    found = [step for step in timeline.steps if step.step.label == label]
    assert found, f"no step {label!r}"
    return found


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize("op", ["write", "read"])
@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_latency_and_bytes_are_those_of_a_whole_run(
    engine: str, op: str, scheme: str
) -> None:
    scenario = parse_scenario(SCENARIO)
    built = build_models(scenario)
    flat = (1.0,) * 256
    models = replace(
        built, ssd=replace(built.ssd, read_quantiles=flat, write_quantiles=flat)
    )
    setting = build_cell(scenario, Cell(scheme, op, "seq", 8192), models)  # type: ignore[arg-type]
    workload = Synthetic(
        pattern="seq", block_bytes=8192, image_bytes=1 << 30, read_fraction=float(op == "read"), requests=1,
        queue_depth=1,
    )  # fmt: skip
    result = simulate(setting.pool, workload.start(), engine=engine)
    row = result.row.as_dict()
    timeline = one(op, scheme, 8192, sets={"cluster.hosts": 7})
    assert row["latency_mean_ns"] == timeline.latency_ns
    totals = timeline.totals()
    for counter in (
        "device_read_bytes",
        "device_write_bytes",
        "private_net_bytes",
        "public_net_bytes",
    ):
        assert row[f"{counter}_per_client_byte"] * 8192 == pytest.approx(
            totals.get(counter, 0)
        )
    # Steps account their own work. What waking threads takes, the run counts.
    resources = setting.pool.cluster.resources
    woken_ns = int((result.engine_run.sleeps * resources.wake_ns).sum())
    assert woken_ns > 0
    assert row["cpu_ns_per_op"] == totals["cpu_ns"] + woken_ns


@settings(max_examples=SLOW)
@given(
    op=st.sampled_from(["write", "read"]),
    scheme=st.sampled_from(["rep:2", "rep:3", "rs:4,2"]),
    size_bytes=st.integers(1, 200_000),
    offset_bytes=st.integers(0, 3 << 20),
    state=st.sampled_from(["healthy", "degraded"]),
    image=st.sampled_from(["prefilled", "pristine"]),
    generation=st.sampled_from(["kraken", "pacific"]),
)
def test_a_timeline_is_consistent(
    op: str,
    scheme: str,
    size_bytes: int,
    offset_bytes: int,
    state: str,
    image: str,
    generation: str,
) -> None:
    timeline = one(
        op,
        scheme,
        size_bytes,
        offset_bytes=offset_bytes,
        state=state,
        image=image,
        generation=generation,
        with_parameters=True,
    )
    spent = timeline.latency_by_category_ns()
    assert list(spent) == list(CATEGORIES)
    assert min(spent.values()) >= 0
    assert sum(spent.values()) == timeline.latency_ns
    ends = {
        (found.step.graph, found.step.index): found.step.end_ns
        for found in timeline.steps
    }
    for found in timeline.steps:
        step = found.step
        assert 0 <= step.ready_ns <= step.start_ns <= step.end_ns <= timeline.end_ns
        assert 0 <= found.coding_ns <= step.duration_ns
        assert all(
            ends.get((step.graph, i), 0) <= step.ready_ns for i in step.predecessors
        )
        # Each duration has a source, unless it is a fraction of a nanosecond.
        assert found.shares or step.duration_ns <= 1, step
        assert all(share.parameter in timeline.parameters for share in found.shares)
    for index, after in zip(timeline.path, timeline.path[1:], strict=False):
        assert timeline.steps[index].step.end_ns == timeline.steps[after].step.ready_ns
    for hold in timeline.holds:
        assert hold.start_ns <= hold.end_ns
    assert (
        json.loads(json.dumps(timeline.to_json()))["latency_ns"] == timeline.latency_ns
    )


def test_a_read_of_a_copy_by_hand() -> None:
    timeline = one("read", "rep:3")
    models = build_models(parse_scenario(SCENARIO))
    cpu, nic, messages = models.cpu, models.public_nic, models.messages
    request, reply = messages.request_header_bytes, messages.reply_bytes + 4096
    # Five threads sleep: the messenger of the request, a worker, the one that collects what the device has
    # done, the reader that it wakes, the messenger of the reply.
    woken_ns = 5 * models.threads.wake_ns
    wanted = (
        models.client.submit_ns + 2 * nic.latency_ns
        + 2 * nic.serialise_ns(request) + 2 * nic.serialise_ns(reply)
        + cpu.message_ns(request) + cpu.message_ns(reply)
        + cpu.op_prepare_ns + cpu.store_read_ns + models.ssd.read_ns(4096)
        + woken_ns
    )  # fmt: skip
    # Each of eleven steps is rounded to a nanosecond.
    assert timeline.latency_ns == pytest.approx(wanted, abs=11)
    assert timeline.latency_by_category_ns()["wait"] == woken_ns


def test_the_terms_of_a_step_add_up_to_it() -> None:
    timeline = one("write", "rs:6,3", with_parameters=True)
    models = build_models(parse_scenario(SCENARIO))
    (found,) = labelled(timeline, "encode and send")
    shares = {share.parameter: share.change_ns for share in found.shares}
    buffers = {"encode_buffers.shard_ns", "encode_buffers.output_ns_per_byte"}
    assert shares.keys() == {"cpu.sub_write_send_ns", "kernel", *buffers}
    assert shares["cpu.sub_write_send_ns"] == round(8 * models.cpu.sub_write_send_ns)
    coding_ns = shares["kernel"] + sum(shares[name] for name in buffers)
    assert (
        found.coding_ns
        == coding_ns
        == pytest.approx(models.encode_ns("rs:6,3", 24576), abs=2)
    )
    assert sum(shares.values()) == pytest.approx(found.step.duration_ns, abs=2)
    (sent,) = labelled(timeline, "request sent")
    rate = next(
        share
        for share in sent.shares
        if share.parameter == "public_nic.rate_bits_per_s"
    )
    assert rate.change_ns == pytest.approx(-sent.step.duration_ns / 2, abs=1)
    assert timeline.parameters["kernel"]["provenance"] == "measured"
    assert timeline.parameters["public_nic.rate_bits_per_s"]["provenance"] == "given"


def test_the_kernel_has_no_part_of_the_copies_around_it() -> None:
    (timeline,) = explain("write", "rs:6,3", 4096)
    (encoding,) = labelled(timeline, "encode and send")
    shares = {share.parameter: share.change_ns for share in encoding.shares}
    per_byte_ns = timeline.parameters["cpu.ec_copy_ns_per_byte"]["value"]
    # One stripe of six chunks of 4 KiB.
    copies_ns = per_byte_ns * 6 * 4096
    assert copies_ns > 10_000
    assert shares["cpu.ec_copy_ns_per_byte"] == pytest.approx(copies_ns, abs=1)
    # One nanosecond of rounding for each term.
    assert sum(shares.values()) == pytest.approx(encoding.step.duration_ns, abs=3)


def test_a_time_whose_doubling_changes_the_steps_has_its_share() -> None:
    timeline = one("write", "rs:10,4", sets={"cluster.hosts": 14}, with_parameters=True)
    models = build_models(parse_scenario(SCENARIO))
    (encoding,) = labelled(timeline, "encode and send")
    shares = {share.parameter: share.change_ns for share in encoding.shares}
    # Thirteen sub-writes. Twice as long, the stage would exceed the scheduler's slice, which is a step more.
    assert shares["cpu.sub_write_send_ns"] == round(13 * models.cpu.sub_write_send_ns)
    assert sum(shares.values()) == pytest.approx(encoding.step.duration_ns, abs=2)


def test_lanes_and_branches() -> None:
    timeline = one("write", "rs:4,2", sets={"cluster.hosts": 7})
    assert {found.lane for found in labelled(timeline, "client submits")} == {"client"}
    sent = labelled(timeline, "sub-write sent")
    assert sorted(found.branch for found in sent if found.branch is not None) == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert {found.lane for found in sent} == {"primary"}
    noted = [
        found
        for found in labelled(timeline, "sub-write reply")
        if found.step.duration_ns
    ]
    assert {found.lane for found in noted} == {"primary"}
    assert sorted(found.branch for found in noted if found.branch is not None) == [
        1,
        2,
        3,
        4,
        5,
    ]
    (coded,) = labelled(timeline, "encode and send")
    assert (coded.lane, coded.branch) == ("primary", None)


def test_a_lock_spans_the_commit_or_the_dispatch() -> None:
    held = {}
    for scope in ("commit", "dispatch", "none"):
        timeline = one("write", "rep:3", sets={"cluster.pg_lock_scope": scope})
        held[scope] = sum(
            hold.end_ns - hold.start_ns
            for hold in timeline.holds
            if hold.role == "pg.lock"
        )
    assert held["commit"] > held["dispatch"] > held["none"] == 0


def test_a_write_in_a_pipeline_is_explained_from_entry_to_exit() -> None:
    timeline = one("write", "rs:4,2", generation="pacific")
    entered = [step.step.end_ns for step in timeline.steps if step.step.word == "enter"]
    left = [step.step.end_ns for step in timeline.steps if step.step.word == "leave"]
    found = [
        (hold.start_ns, hold.end_ns)
        for hold in timeline.holds
        if hold.role == "pg.pipeline"
    ]
    assert found == list(zip(entered, left, strict=True)) != []


@pytest.mark.parametrize(
    ("op", "label", "counter"),
    [
        ("write", "drive write", "device_write_bytes"),
        ("read", "drive read", "device_read_bytes"),
    ],
)
def test_write_buffer_and_link_of_a_drive_are_time_of_the_drive(
    op: str, label: str, counter: str
) -> None:
    # Given a drive with a write buffer and a link to its host
    timeline = one(op, "rep:3", sets={"cluster.drive": "samsung-pm983"})
    of_drive = [step for step in timeline.steps if ".ssd" in step.step.role]
    # Then its work is not processor time, and most of it is on the critical path.
    assert {step.category for step in of_drive if step.step.word == "use"} == {"ssd"}
    (slowest, *_) = sorted(
        (step.step.duration_ns for step in labelled(timeline, label)), reverse=True
    )
    assert timeline.totals()[counter] > 0
    assert timeline.latency_by_category_ns()["ssd"] >= slowest


def test_degraded_reads_decode_and_ask_another_shard() -> None:
    healthy, hurt = one("read", "rs:4,2"), one("read", "rs:4,2", state="degraded")
    assert healthy.latency_by_category_ns()["coding"] == 0
    assert hurt.latency_by_category_ns()["coding"] > 0
    assert hurt.missing == (1,)
    assert hurt.osds[1] == -1
    asked = {found.branch for found in labelled(hurt, "drive read")}
    assert asked == {0, 2, 3, 4}
    assert one("read", "rs:4,2", state="degraded", lost_shard=0).primary == 1


def test_a_repair_reads_k_shards_and_writes_one() -> None:
    size = 6 * 4096 * 10
    timeline = one("repair", "rs:6,3", size, lost_shard=4)
    # No client takes part.
    assert timeline.lanes() == ["primary"]
    totals = timeline.totals()
    assert totals["device_read_bytes"] == size
    assert {found.branch for found in labelled(timeline, "drive write")} == {4}
    assert (
        sum(
            found.step.counted["device_write_bytes"]
            for found in labelled(timeline, "drive write")
        )
        == size // 6
    )
    assert timeline.missing == (4,)
    assert labelled(timeline, "decode and push")[0].coding_ns > 0


@pytest.mark.parametrize("lost_shard", [0, 1, 2])
def test_each_replica_is_rebuilt_from_one_other(lost_shard: int) -> None:
    totals = one("repair", "rep:3", 4096, lost_shard=lost_shard).totals()
    # One replica of 4 KiB is read, and one is written beside its log.
    assert totals["device_read_bytes"] == 4096
    assert totals["device_write_bytes"] - totals["device_log_bytes"] == 4096


@pytest.mark.parametrize(("op", "state"), [("repair", "healthy"), ("read", "degraded")])
def test_one_copy_cannot_lose_its_shard(op: str, state: str) -> None:
    # No spare host brings the data back, so the scheme is at fault.
    with pytest.raises(AnswerError, match="--scheme: got rep:1"):
        one(op, "rep:1", state=state)


def test_of_a_large_object_the_first_round_of_its_repair_is_explained() -> None:
    timeline = one("repair", "rs:6,3", 384 << 20, stripe_unit_bytes=4096)
    # 8 MiB a round, in whole stripes of 24 KiB.
    stripes = -(-(8 << 20) // 24576)
    rounds = -(-(384 << 20) // (stripes * 24576))
    assert heading(timeline).endswith(
        f"of one 384 MiB object, kraken (the first of {rounds} rounds)"
    )
    assert timeline.totals()["device_read_bytes"] == stripes * 24576


def test_a_scenario_that_ships_can_be_the_cluster() -> None:
    small = one("write", "rs:6,3")
    koh = one("write", "rs:6,3", scenario="koh2017")
    # Nine shards on four hosts: some share the primary's host and cross no wire.
    assert koh.totals()["private_net_bytes"] < small.totals()["private_net_bytes"]
    assert one(
        "write", "rs:6,3", scenario="koh2017", sets=["cluster.private_gbit_per_s=1.0"]
    ).latency_ns > (koh.latency_ns)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"op": "erase"}, "erase"),
        ({"schemes": []}, "--scheme: got none"),
        ({"schemes": "none"}, "none"),
        ({"schemes": "rs:6"}, "rs:k,m"),
        ({"size_bytes": 0}, r"--size: got 0.*1\b"),
        ({"size_bytes": (4 << 20) + 1}, "object"),
        ({"offset_bytes": -1}, "--offset: got -1"),
        ({"offset_bytes": (4 << 20) - 1, "size_bytes": 2}, "object"),
        ({"state": "sick"}, "sick"),
        ({"state": "degraded", "lost_shard": 3}, "0.*2.*rep:3"),
        ({"image": "new"}, "--image"),
        ({"generation": "luminous"}, "generation"),
        ({"op": "repair", "offset_bytes": 1}, "object"),
        ({"op": "repair", "state": "degraded"}, "wanted"),
        ({"scenario": "nowhere"}, "nowhere"),
        ({"state": "degraded", "schemes": "rep:1"}, "rep:1|wanted"),
    ],
)
def test_impossible_explanations_are_refused(
    asked: dict[str, object], message: str
) -> None:
    full = {"op": "write", "schemes": "rep:3", "size_bytes": 4096, **asked}
    with pytest.raises(ValueError, match=message):
        explain(full.pop("op"), full.pop("schemes"), full.pop("size_bytes"), **full)  # type: ignore[arg-type]
    assert issubclass(AnswerError, ValueError)


FILES = "a page and files"
#: Options of the command, each with a value that needs something of the cluster.
OPTIONS = {
    "": [],
    "schemes": ["--scheme", "rep:2", "--scheme", "rs:2,1"],
    "too wide": ["--scheme", "rs:60,4"],
    "wider than an operation": ["--scheme", "rs:254,1"],
    "size": ["--size", "16k"],
    "offset": ["--offset", "1GiB"],
    "generations": ["--generation", "squid", "--generation", "tentacle"],
    "stripe unit": ["--stripe-unit", "16k"],
    "direct reads": ["--direct-reads"],
    "degraded": ["--state", "degraded"],
    "pristine": ["--image", "pristine"],
    "lost shard": ["--lost-shard", "7"],
    "clients": ["--set", "workload.clients=2"],
    "clients on hosts": ["--set", "client.place=osd-hosts"],
    "disks": ["--set", "cluster.drive=hdd-7200"],
    "a bare device": ["--set", "schemes=none"],
    FILES: ["--html", "page.html", "--out", ".", "--no-steps"],
}


#: Files look alike whatever the scenario, and drawing them takes a second.
COMBINATIONS = [
    (scenario, option)
    for scenario in (None, *shipped_scenarios())
    for option in OPTIONS
    if option != FILES or scenario in (None, "koh2017")
]


@pytest.mark.usefixtures("quick_figures")
@pytest.mark.parametrize(("scenario", "option"), COMBINATIONS)
def test_every_scenario_is_explained_or_refused_by_key_under_any_option(
    scenario: str | None,
    option: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    # Finding the parameters of each step takes most of the time and does not affect this test.
    monkeypatch.setattr(shares_module, "_doubled", lambda models: ())
    # Each kind of request meets each option with some scenario.
    combination = list(OPTIONS).index(option) + len(scenario or "")
    op = ("write", "read", "repair")[combination % 3]
    given = [] if scenario is None else ["--scenario", scenario]
    try:
        app(
            ["explain", op, *given, *OPTIONS[option], "--json", "-"],
            standalone_mode=False,
        )
    except ValueError as refusal:
        # One line for each problem, with its option or key, its value and the expected form.
        for line in str(refusal).splitlines():
            assert re.match(r"\S.*: got .+, wanted .+", line), line
        return
    timelines = json.loads(capsys.readouterr().out)["requests"]
    assert timelines
    for timeline in timelines:
        assert (
            sum(timeline["latency_by_category_ns"].values()) == timeline["latency_ns"]
        )


@pytest.mark.parametrize("scenario", sorted({*shipped_scenarios()} - {"durability"}))
def test_the_schemes_of_a_scenario_are_explained_on_its_cluster(scenario: str) -> None:
    timelines = explain("write", scenario=scenario, with_parameters=False)
    assert [one.scheme for one in timelines] == list(load_scenario(scenario).schemes)


def test_the_number_of_clients_does_not_affect_a_single_request() -> None:
    alone, among = (
        one(
            "write",
            "rep:3",
            scenario="quickstart",
            sets={"workload.clients": clients},
            with_parameters=True,
        )
        for clients in (1, 2)
    )
    assert among == alone


def test_of_a_plan_the_largest_cluster_that_it_tries_is_taken() -> None:
    # The file has no number of hosts. Its plan tries up to ten hosts with up to eight OSDs.
    (timeline,) = explain("write", "rs:6,2", scenario="plan")
    assert len(set(timeline.osds)) == 8
    with pytest.raises(ValueError, match=r"cluster.hosts: got 6 hosts.*rs:6,2"):
        explain("write", "rs:6,2", scenario="plan", sets={"cluster.hosts": 6})


def test_a_size_may_be_text() -> None:
    as_text = explain(
        "write", "rep:3", "64k", offset_bytes="4KiB", with_parameters=False
    )
    as_number = explain(
        "write", "rep:3", 65536, offset_bytes=4096, with_parameters=False
    )
    assert as_text[0].steps == as_number[0].steps
    for wrong in ("many", 4096.0, -1):
        with pytest.raises(ValueError, match=f"--size: got .?{wrong}.?, wanted"):
            explain("write", "rep:3", wrong)


def test_a_scheme_too_wide_for_the_cluster_is_refused_by_its_option() -> None:
    with pytest.raises(
        ValueError, match=r"^--scheme: schemes: got rs:6,3 \(9 shards\)"
    ):
        explain("write", "rs:6,3", scenario="quickstart")


def test_a_scheme_with_too_many_steps_is_refused_by_its_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graphs, "STEPS_MAX", 1000)
    with pytest.raises(
        ValueError, match=r"^--scheme: schemes: got rs:60,4, which takes"
    ):
        explain("write", "rs:60,4", sets=KOH_CLUSTER)


def test_an_object_with_too_many_steps_is_refused_by_its_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # An object is put in parts of 4 MiB, each of which takes some steps: 25 parts take more than 100.
    monkeypatch.setattr(graphs, "STEPS_MAX", 100)
    with pytest.raises(
        ValueError, match=r"^--size: got 100MiB with rs:4,2, .*wanted smaller objects"
    ) as refused:
        explain("put", "rs:4,2", size_bytes=100 << 20)
    assert "workload.multipart_threshold_bytes" in str(refused.value)


def test_a_scenario_object_is_a_cluster_too() -> None:
    named = explain("read", scenario="quickstart", sets=["cluster.hosts=6"])
    loaded = load_scenario("quickstart")
    assert explain("read", scenario=loaded, sets={"cluster.hosts": 6}) == named


class _Requests:
    """A stream with a given number of requests."""

    queue_depth = 1

    def __init__(self, count: int) -> None:
        self.left = count

    def take(self, count: int) -> RequestChunk:
        zeros = np.zeros(min(count, self.left), dtype=np.int64)
        self.left -= len(zeros)
        return RequestChunk(zeros, zeros, zeros)


class _Book:
    def __init__(self) -> None:
        graph = GraphBuilder("two pieces at one server")
        pieces = [
            graph.use(0, 100, after=[0], label="piece", cpu_ns=100) for _ in range(2)
        ]
        self.templates = [graph.finish(reply=graph.join(pieces))]
        self.bindings = np.zeros((1, 1), dtype=np.int64)


def program(requests: int) -> Program:
    server = Resources(("server",), ("server",), np.array([1]), np.array([FIFO]))
    return Program(resources=server, book=_Book(), streams=[_Requests(requests)])


def test_the_recording_separates_waits_and_service() -> None:
    steps, reply_ns, graphs = record(program(1))
    assert (reply_ns, graphs) == (200, [0])
    pieces = [step for step in steps if step.label == "piece"]
    assert [(step.ready_ns, step.start_ns, step.end_ns) for step in pieces] == [
        (0, 0, 100),
        (0, 100, 200),
    ]
    assert [step.wait_ns for step in pieces] == [0, 100]
    assert [step.counted for step in pieces] == [{"cpu_ns": 100}] * 2
    assert "cpu_ns" in COUNTERS


@pytest.mark.parametrize("requests", [0, 2])
def test_only_one_request_is_recorded(requests: int) -> None:
    with pytest.raises(AnswerError, match=f"got {requests} requests, wanted one"):
        record(program(requests))


@pytest.mark.parametrize(
    ("given", "option"),
    [({"generation": "mimic"}, "--generation: "), ({"image": "full"}, "--image: ")],
)
def test_a_wrong_value_is_reported_by_the_option_that_it_came_from(given, option):
    with pytest.raises(ValueError, match=f"^{option}got"):
        explain("write", "rep:3", 4096, **given)


def test_a_wrong_value_that_the_user_set_is_reported_as_set():
    with pytest.raises(ValueError, match=r"^--set: generation: got"):
        explain("write", "rep:3", 4096, sets=["generation=mimic"])


def test_times_do_not_depend_on_finding_parameters():
    # Given one write, explained with and without the parameters behind its durations
    (full,) = explain("write", "rs:4,2", 4096)
    (quick,) = explain("write", "rs:4,2", 4096, with_parameters=False)
    # Then the steps take the same time, and only one of them names parameters.
    assert quick.latency_by_category_ns() == full.latency_by_category_ns()
    assert [entry.step for entry in quick.steps] == [entry.step for entry in full.steps]
    assert full.parameters
    assert not quick.parameters


@pytest.mark.parametrize(
    ("op", "words"), [("read", "reads 1 shard"), ("write", "reads 3 shards, writes 3")]
)
def test_a_request_for_data_of_the_primary_names_an_offset_of_another_osd(
    command, op, words
):
    own, other, whole = (
        explain(op, "rs:4,2", 4096, offset_bytes=offset, generation=release)[0]
        for offset, release in ((0, "tentacle"), (4096, "tentacle"), (0, "squid"))
    )
    # A stripe has 4 KiB on each of four shards, and Squid moves all of them.
    assert own.remote_offset_bytes == 4096
    assert other.remote_offset_bytes is None
    assert whole.remote_offset_bytes is None
    assert own.totals()["messages"] < other.totals()["messages"]
    assert own.latency_ns < other.latency_ns
    asked = f"explain {op} --scheme rs:4,2 --generation tentacle --no-steps"
    status, out, _ = command(*asked.split())
    assert status == 0
    said = f"{words} (the data is at the primary itself; at --offset 4KiB it is not)"
    assert said in " ".join(out.split())


@pytest.mark.parametrize("op", ["read", "write"])
def test_a_small_object_has_no_data_at_another_osd(op):
    sets = {"cluster.object_bytes": 4096}
    (only,) = explain(op, "rs:4,2", 4096, generation="tentacle", sets=sets)
    assert only.remote_offset_bytes is None


def test_a_read_that_decodes_is_not_one_of_the_primary_s_own_data():
    (read,) = explain("read", "rs:2,1", 8192, state="degraded", generation="tentacle")
    assert read.shard_reads == 2
    assert read.remote_offset_bytes is None
