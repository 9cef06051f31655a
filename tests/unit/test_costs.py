"""The cost of requests by step: its parts are the latency, and each comes from what happened."""

from __future__ import annotations

from dataclasses import fields
from io import StringIO

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from stripesim.scenarios.answers.run.cost_table import ROWS_MAX, cost_parts
from stripesim.scenarios.answers.run.costs import SAMPLE_MAX, cell_costs
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.scenarios.show.figures.costs import draw_costs
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.ceph.roles import (
    CLIENT_SUBMIT,
    OUT_TX,
    OUT_WIRE,
    PG_LOCK,
    PRIMARY_CPU,
    SSD,
    shard_role,
)
from stripesim.sim.engine.draws import (
    FACTOR_ONE,
    FACTOR_POINTS,
    draw_key,
    drawn_factor,
    factor_cells,
    retried_state,
    scaled_ns,
)
from stripesim.sim.engine.graph import (
    ACQUIRE,
    DELAY,
    NO_PHASE,
    NO_ROLE,
    SSD_READ,
    TURN,
    USE,
)
from stripesim.sim.engine.graph_builder import GraphBuilder
from stripesim.sim.observe.critical_path import (
    COST_KEYS,
    STEPS,
    PathSplitter,
    cost_key,
    dominant,
)
from support.examples import SLOW

FIXED = np.full((1, FACTOR_POINTS), FACTOR_ONE, dtype=np.int64)


def quickstart(*sets: str):
    return load_scenario(
        "quickstart", sets=["workload.requests=120", "workload.queue_depth=16", *sets]
    )


def rows_of(*sets: str, engine: str = "compiled"):
    # Short runs are refused. Their parts add up all the same.
    return run_scenario(
        quickstart(*sets), engine=engine, unchecked=True
    ).rows.to_dicts()


def parts_ns(row) -> float:
    return sum(row[key] for key in COST_KEYS)


def test_a_path_is_split_by_hand_counted_times():
    graph = GraphBuilder("write")
    submit = graph.use(
        CLIENT_SUBMIT,
        10,
        after=[graph.issue],
        label="client submits",
        phase=Phase.CLIENT,
    )
    lock = graph.acquire(PG_LOCK, after=[submit], label="PG lock", phase=Phase.LOCK)
    encode = graph.use(
        PRIMARY_CPU,
        100,
        after=[lock],
        label="encode",
        phase=Phase.PRIMARY_CPU,
        cpu_ns=100,
        coding_ns=40,
    )
    sent = Phase.DISTRIBUTION
    far = graph.use(
        shard_role(1, OUT_TX), 5, after=[encode], label="sub-write sent", phase=sent
    )
    far = graph.delay(
        shard_role(1, OUT_WIRE), 7, after=[far], label="private wire", phase=sent
    )
    far = graph.use(
        shard_role(1, SSD), 50, after=[far], label="drive write", phase=Phase.DEVICE
    )
    near = graph.use(
        shard_role(0, SSD), 30, after=[encode], label="drive write", phase=Phase.DEVICE
    )
    both = graph.join([far, near], label="all committed")
    template = graph.finish(
        reply=graph.release(PG_LOCK, after=[both], label="PG unlock")
    )
    ends = np.zeros(template.steps, dtype=np.int64)
    # Issued at 1,000 and begun then; the lock is waited for 200, the far device 25.
    for step, end in (
        (0, 1000),
        (submit, 1010),
        (lock, 1210),
        (encode, 1310),
        (near, 1340),
    ):
        ends[step] = end
    ends[[far - 2, far - 1, far, both, template.reply]] = 1315, 1322, 1397, 1397, 1397
    times = PathSplitter(template, FIXED, 0).split(0, 1000, ends.tolist())
    served = dict(zip(STEPS, times.served_ns.tolist(), strict=True))
    waited = dict(zip(STEPS, times.waited_ns.tolist(), strict=True))
    assert {k: v for k, v in served.items() if v} == {
        "client": 10, "primary_cpu": 60, "encode": 40, "distribution": 12, "device": 50,
    }  # fmt: skip
    assert {k: v for k, v in waited.items() if v} == {"lock": 200, "device": 25}
    assert times.latency_ns == 397


def test_time_lost_before_the_first_step_is_hung():
    graph = GraphBuilder("one")
    submit = graph.use(
        CLIENT_SUBMIT,
        10,
        after=[graph.issue],
        label="client submits",
        phase=Phase.CLIENT,
    )
    template = graph.finish(reply=submit)
    times = PathSplitter(template, FIXED, 0).split(0, 100, [400, 410])
    assert times.waited_ns[STEPS.index("hung")] == 300
    assert (times.served_ns.sum(), times.latency_ns) == (10, 310)


def device_read(**amounts):
    """Return the graph of a read of 100 ns, with the amounts that it counts."""
    graph = GraphBuilder("read")
    read = graph.use(
        PRIMARY_CPU if amounts else shard_role(0, SSD),
        100,
        after=[graph.issue],
        label="read",
        phase=Phase.PRIMARY_CPU if amounts else Phase.DEVICE,
        spread=SSD_READ,
        **amounts,
    )
    return graph.finish(reply=read)


def test_time_that_a_disk_saves_by_sorting_is_not_service():
    # Given a read of 100 ns that takes 70 ns because others wait, after 30 ns in the queue
    splitter = PathSplitter(device_read(), FIXED.repeat(SSD_READ + 1, axis=0), 0)
    times = splitter.split(0, 0, [0, 100], saved_ns=[0, 30])
    device = STEPS.index("device")
    assert (times.served_ns[device], times.waited_ns[device]) == (70, 30)


def test_coding_is_no_longer_than_the_service_that_it_is_part_of():
    # Given a step of 100 ns that codes for 40 ns, and draws a tenth of its mean
    template = device_read(cpu_ns=100, coding_ns=40)
    tenth = FIXED.repeat(SSD_READ + 1, axis=0) // 10
    times = PathSplitter(template, tenth, 0).split(0, 0, [0, 10])
    assert times.served_ns[STEPS.index("encode")] == 10
    assert times.latency_ns == times.served_ns.sum() == 10


def test_a_request_that_is_issued_again_draws_again():
    # Given factors from 0 to 2, so that each draw is another service time
    table = np.linspace(0, 2 * FACTOR_ONE, FACTOR_POINTS).round().astype(np.int64)
    splitter = PathSplitter(device_read(), np.tile(table, (SSD_READ + 1, 1)), 7)
    served = [
        int(splitter.split(0, 0, [0, 1000], retries=retries).served_ns.sum())
        for retries in range(3)
    ]
    cells = factor_cells(table[np.newaxis])[0]
    states = [7, retried_state(7, 1), retried_state(7, 2)]
    drawn = [drawn_factor(cells, state, draw_key(0, 1)) for state in states]
    assert served == [scaled_ns(100, factor) for factor in drawn]
    assert len(set(served)) == 3


def test_a_request_without_a_reply_has_no_path():
    graph = GraphBuilder("one")
    template = graph.finish(
        reply=graph.use(CLIENT_SUBMIT, 10, after=[graph.issue], label="client submits")
    )
    with pytest.raises(ValueError, match="without a reply"):
        PathSplitter(template, FIXED, 0).split(0, 0, [0, -1])


@settings(max_examples=SLOW)
@given(
    scheme=st.sampled_from(["none", "rep:3", "rs:4,2", "lrc:4,3,2", "clay:4,2,5"]),
    generation=st.sampled_from(["kraken", "pacific"]),
    pattern=st.sampled_from(["seq", "rand"]),
    image=st.sampled_from(["pristine", "prefilled"]),
    size=st.sampled_from([1000, 4096, 100_000]),
    queue_depth=st.integers(1, 40),
    completions=st.sampled_from(["each", "newest"]),
)
@pytest.mark.usefixtures("short_runs")
def test_the_parts_add_up_to_the_mean_latency_of_the_requests_followed(
    scheme, generation, pattern, image, size, queue_depth, completions
):
    sets = (
        f'schemes=["{scheme}"]', f'workload.patterns=["{pattern}"]', f"workload.block_sizes_bytes=[{size}]",
        f"generation={generation}", f"workload.image={image}", f"workload.queue_depth={queue_depth}",
        "cluster.hosts=7", "workload.requests=110", "cluster.object_bytes=65536", "cluster.pg_num=16",
        f"workload.completions={completions}",
    )  # fmt: skip
    for row in rows_of(*sets):
        assert parts_ns(row) == pytest.approx(row["cost_latency_mean_ns"], rel=1e-12)
        assert min(row[key] for key in COST_KEYS) >= 0
        # All requests of this short run are followed, so the mean equals that of the row.
        assert row["cost_latency_mean_ns"] == pytest.approx(
            row["latency_mean_ns"], rel=1e-12
        )


def test_a_reply_that_the_client_sees_late_is_waiting_for_the_client():
    late, soon = (
        rows_of(
            "workload.patterns=['rand']",
            "workload.ops=['read']",
            f"workload.completions={found}",
        )[0]
        for found in ("newest", "each")
    )
    assert parts_ns(late) == pytest.approx(late["cost_latency_mean_ns"], rel=1e-12)
    assert late["cost_client_wait_ns"] > 1.2 * soon["cost_client_wait_ns"]


@pytest.mark.usefixtures("short_runs")
def test_both_engines_report_the_same_costs():
    one, other = rows_of(), rows_of(engine="simpy")
    for ours, theirs in zip(one, other, strict=True):
        assert [ours[key] for key in COST_KEYS] == [theirs[key] for key in COST_KEYS]


def test_a_long_run_is_sampled_and_the_sample_is_like_the_run():
    (row,) = rows_of(
        'schemes=["rep:3"]', 'workload.ops=["write"]', "workload.requests=4000"
    )
    assert row["cost_requests"] == SAMPLE_MAX
    assert row["cost_latency_mean_ns"] == pytest.approx(
        row["latency_mean_ns"], rel=0.05
    )


def test_following_requests_does_not_change_a_run():
    result = quickstart()
    with_costs, without = run_scenario(result), run_scenario(result, costs=False)
    assert with_costs.completions_sha256 == without.completions_sha256
    assert not set(COST_KEYS) & set(without.rows.columns)


def test_a_single_request_waits_only_for_its_own_steps():
    for row in rows_of("workload.queue_depth=1"):
        assert row["cost_client_wait_ns"] + row["cost_public_net_wait_ns"] == 0


def test_only_codes_encode_and_only_partial_stripes_are_read_back():
    values = {(row["scheme"], row["op"]): row for row in rows_of()}
    assert values["rep:3", "write"]["cost_encode_ns"] == 0
    assert values["rs:4,2", "write"]["cost_encode_ns"] > 0
    assert values["rs:4,2", "read"]["cost_encode_ns"] == 0
    assert values["rs:4,2", "write"]["cost_read_back_ns"] > 0
    assert values["rs:4,2", "read"]["cost_distribution_ns"] == 0
    (whole,) = rows_of(
        'schemes=["rs:4,2"]', 'workload.ops=["write"]', "workload.block_sizes_bytes=[16384]",
    )  # fmt: skip
    assert whole["cost_read_back_ns"] == 0


class SlowKernel(Models):
    def encode_ns(self, scheme: str, data_bytes: float) -> float:
        return 2 * super().encode_ns(scheme, data_bytes)


def test_a_slower_kernel_shows_in_encoding_and_in_no_other_service():
    sets = ['schemes=["rs:4,2"]', 'workload.ops=["write"]', "workload.queue_depth=1"]
    result = quickstart(*sets, "cluster.encode_buffers=false")
    models = build_models(result)
    slow = SlowKernel(**{one.name: getattr(models, one.name) for one in fields(models)})
    (cell,) = cells(result)
    rows = [
        cell_costs(result, cell, run_cell(result, cell, "compiled", m), "compiled", m)
        for m in (models, slow)
    ]
    assert rows[1]["cost_encode_ns"] == pytest.approx(
        2 * rows[0]["cost_encode_ns"], rel=0.01
    )
    for key in COST_KEYS:
        if key not in ("cost_encode_ns", "cost_log_wait_ns"):
            assert rows[1][key] == pytest.approx(rows[0][key], rel=0.05, abs=200), key


def test_a_cell_without_completions_has_no_costs():
    sets = [
        "workload.duration_s=0.0001",
        'schemes=["rs:4,2"]',
        'workload.ops=["write"]',
    ]
    scenario = load_scenario("quickstart", sets=sets)
    rows = run_scenario(scenario).rows.to_dicts()
    assert rows[0]["requests"] == 0
    assert rows[0].get("cost_requests") is None
    assert dominant(rows[0]) is None


def test_open_loops_and_repairs_have_costs_too():
    rows = rows_of(
        "workload.kind=open", "workload.rate_per_s=2000", 'workload.ops=["write"]'
    )
    scenario = load_scenario(
        "repair", sets=["workload.requests=300", "workload.image_bytes=1GiB"]
    )
    for row in [*rows, *run_scenario(scenario).rows.to_dicts()]:
        assert parts_ns(row) == pytest.approx(row["cost_latency_mean_ns"], rel=1e-12)


def test_only_attempts_interrupted_by_faults_hang():
    sets = ['schemes=["rs:4,2"]', "workload.duration_s=60", "cluster.pg_num=16"]
    slow = [
        "workload.kind=open",
        "workload.rate_per_s=8",
        "workload.image_bytes=256MiB",
    ]
    scenario = load_scenario("faults", sets=[*sets, *slow])
    rows = run_scenario(scenario, engine="simpy").rows.to_dicts()
    for row in rows:
        assert parts_ns(row) == pytest.approx(row["cost_latency_mean_ns"], rel=1e-12)
    assert any(row["cost_hung_wait_ns"] > 0 for row in rows)
    assert all(row["cost_pause_ns"] == 0 for row in rows)
    assert "hung" in shown(rows) and "pause\n" not in shown(rows)
    assert all(row["cost_hung_wait_ns"] == 0 for row in rows_of())


@pytest.mark.parametrize("generation", ["kraken", "pacific"])
def test_every_step_that_can_take_time_has_its_phase(generation):
    scenario = quickstart(f"generation={generation}")
    for cell in cells(scenario):
        for template in run_cell(scenario, cell, "compiled").book.templates:
            for step, word in enumerate(template.words.tolist()):
                phase = template.phases[step]
                assert (phase != NO_PHASE) == (word in (USE, DELAY, ACQUIRE, TURN)), (
                    template.labels[step]
                )
                # A pause, or one thread of an OSD that hands work over to another.
                waits = phase == Phase.PAUSE or template.labels[step].startswith(
                    "hand over"
                )
                assert waits == (
                    phase != NO_PHASE and template.roles[step] == NO_ROLE
                ), template.labels[step]


def shown(rows) -> str:
    console = Console(width=100, file=StringIO(), color_system=None)
    for part in cost_parts(rows):
        console.print(part.lay_out(console))
    return console.file.getvalue()


def test_the_table_fits_a_hundred_columns_and_marks_the_largest_part():
    rows = rows_of()
    text = shown(rows)
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
    assert text.count("*") == len(rows) + 1
    for row in rows:
        key = f"cost_{dominant(row)}_ns"
        assert row[key] == max(row[name] for name in COST_KEYS)
        assert f"{100 * row[key] / row['cost_latency_mean_ns']:.0f}*" in text


def test_of_a_large_grid_one_size_is_shown():
    rows = [
        row | {"block_size_bytes": size}
        for row in rows_of()
        for size in range(1024, 9 * 1024, 1024)
    ]
    text = shown(rows)
    assert "4KiB" in text and "8KiB" not in text.split("waiting")[0]
    assert "4 KiB of 8 sizes" in text
    assert "8KiB" in shown(rows[:ROWS_MAX])


def test_rows_without_costs_are_not_shown():
    assert shown([{"scheme": "rep:3"}]) == ""
    assert draw_costs(pl.DataFrame({"scheme": ["rep:3"]})) == {}


def test_the_figure_stacks_every_part_of_every_cell():
    rows = run_scenario(quickstart('workload.block_sizes_bytes=["4k","64k"]')).rows
    figures = draw_costs(rows)
    assert sorted(figures) == ["costs-rand-read", "costs-rand-write"]
    figure, caption = figures["costs-rand-write"]
    here = rows.filter(pl.col("op") == "write").to_dicts()
    latency, share = figure.axes
    assert sum(bar.get_height() for bar in latency.patches) == pytest.approx(
        sum(row["cost_latency_mean_ns"] for row in here) * 1e-6
    )
    assert sum(bar.get_height() for bar in share.patches) == pytest.approx(
        100 * len(here)
    )
    assert "RS(4,2)" in caption
    assert sum(cost_key("device") in row for row in here) == 4
