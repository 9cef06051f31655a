"""Plans of sweeps: values, grids and lists, reports of every fault, and task names from content."""

import os
import pickle
import signal
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stripesim.models.placement import map_of_hosts, map_to_text
from stripesim.models.placement.crush.elements import WEIGHT_ONE
from stripesim.models.problems import AnswerError
from stripesim.scenarios.answers.sweep.axes import split_values
from stripesim.scenarios.answers.sweep.plan import (
    SweepPlan,
    plan_sweep,
)
from stripesim.scenarios.answers.sweep.run import run_sweep
from stripesim.scenarios.cells.failures import replayed_failures
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import FILE_KEYS, cells, scenario_schema
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.scenarios.schema.topology import Topology
from stripesim.scenarios.work import attempt as sweep_attempt
from stripesim.scenarios.work import task as sweep_task
from stripesim.scenarios.work.attempt import attempt, run_task
from stripesim.scenarios.work.dask import run_dask
from stripesim.scenarios.work.store import PartStore
from stripesim.scenarios.work.task import (
    SweepTask,
    forget_models,
    make_task,
    source_files,
)
from support.messages import states

TINY = """name = "tiny"
schemes = ["rep:3", "rs:6,3"]
[cluster]
pg_num = 32
failure_domain_erasure = "osd"
[workload]
ops = ["write"]
patterns = ["rand"]
requests = 120
queue_depth = 8
image_bytes = "1GB"
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def faults(path: Path, **options: object) -> list[str]:
    with pytest.raises(AnswerError) as caught:
        plan_sweep(path, **options)  # type: ignore[arg-type]
    return str(caught.value).splitlines()


def test_the_problem_of_a_swept_value_keeps_its_parts(tiny: Path) -> None:
    with pytest.raises(AnswerError) as caught:
        plan_sweep(tiny, over=["workload.queue_depth=1,0"])
    (problem,) = caught.value.problems
    # The option of the axis replaces --set, through which a point gets its values.
    assert (problem.place, problem.key) == ("--over", "workload.queue_depth")


def points(plan: SweepPlan) -> list[dict[str, object]]:
    return [
        dict(task.swept)
        for task in plan.tasks
        if task.cell.scheme == "rep:3" and task.replication == 0
    ]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", ["1"]),
        ("4k,8k , 1MiB", ["4k", "8k", "1MiB"]),
        ('["rep:3"],["rs:6,3"]', ['["rep:3"]', '["rs:6,3"]']),
        ("\"a,b\",'c,d',e", ['"a,b"', "'c,d'", "e"]),
        (r'"a\",b",c', [r'"a\",b"', "c"]),
        (r"'a\',b", [r"'a\'", "b"]),
        ("{a = 1, b = [2, 3]},{}", ["{a = 1, b = [2, 3]}", "{}"]),
        ("it's,its", ["it's", "its"]),
    ],
)
def test_only_commas_outside_brackets_and_quotes_split(
    text: str, values: list[str]
) -> None:
    assert split_values(text) == values


@pytest.mark.parametrize("text", ["", "1,", ",1", "1,,2", "[1,2", '"a,b', "1]", "["])
def test_values_that_are_empty_or_do_not_close_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"that close|between the commas"):
        split_values(text)


def test_several_over_make_a_grid_and_the_last_moves_fastest(tiny: Path) -> None:
    plan = plan_sweep(
        tiny, over=["workload.queue_depth=4,8", "workload.block_sizes_bytes=4k,64KiB"]
    )
    assert plan.keys == ("workload.queue_depth", "workload.block_sizes_bytes")
    assert plan.points == 4
    assert [tuple(point.values()) for point in points(plan)] == [
        (4, 4096),
        (4, 65536),
        (8, 4096),
        (8, 65536),
    ]
    assert [task.cell.scheme for task in plan.tasks[:2]] == ["rep:3", "rs:6,3"]


def test_zipped_keys_move_together_and_cross_with_the_grid(tiny: Path) -> None:
    plan = plan_sweep(
        tiny,
        zipped=["workload.queue_depth=4,8", "cluster.pg_num=16,32"],
        over=["workload.image=pristine,prefilled"],
    )
    found = {
        (p["workload.image"], p["workload.queue_depth"], p["cluster.pg_num"])
        for p in points(plan)
    }
    assert found == {
        (image, depth, groups)
        for image in ("pristine", "prefilled")
        for depth, groups in ((4, 16), (8, 32))
    }


def test_a_list_is_read_from_csv(tiny: Path, tmp_path: Path) -> None:
    listed = tmp_path / "points.csv"
    listed.write_text('workload.queue_depth, schemes\n4, "[""rs:6,3""]"\n\n8, rep:3\n')
    plan = plan_sweep(tiny, points=listed)
    assert [(t.swept["workload.queue_depth"], t.cell.scheme) for t in plan.tasks] == [
        (4, "rs:6,3"),
        (8, "rep:3"),
    ]


def test_faults_of_a_list_come_with_their_lines(tiny: Path, tmp_path: Path) -> None:
    listed = tmp_path / "points.csv"
    listed.write_text("workload.queue_depth,cluster.hosts\n4\n0,4\n")
    said = faults(tiny, points=listed)
    assert any(states(fault, f"{listed}:2: got 1 ... 2") for fault in said)
    # The other points are still read, and their follow-up faults are suppressed.
    listed.write_text("workload.queue_depth,cluster.hosts\n4,4\n0,4\n")
    (fault,) = faults(tiny, points=listed)
    assert states(fault, f"{listed}:3: workload.queue_depth: got 0 ... 1")


def test_all_faults_are_reported_together(tiny: Path) -> None:
    said = faults(
        tiny,
        over=[
            "workload.queue_depth=0,8",
            "cluster.hosts=4,x",
            "foo",
            "workload.requests=1,,2",
        ],
        sets=["workload.image_bytes=0"],
        replications=0,
    )
    assert sorted(line.partition(" got ")[0] for line in said) == [
        '--over: "foo":',
        "--over: cluster.hosts:",
        "--over: workload.queue_depth:",
        "--over: workload.requests:",
        "--replications:",
        "--set: workload.image_bytes:",
    ]
    assert all(", wanted " in line for line in said)


def test_a_fault_of_some_points_names_one(tiny: Path) -> None:
    said = faults(tiny, over=["cluster.hosts=1,4"])
    assert len(said) == 2
    assert all(line.startswith(f"{tiny}:2: schemes: ") for line in said)
    assert all(line.endswith("(at cluster.hosts=1)") for line in said)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"over": ["workload.queue_depth=1", "workload.queue_depth=2"]},
            "got it twice",
        ),
        (
            {"over": ["workload.queue_depth=1", "workload={requests = 2}"]},
            "got workload.queue_depth swept",
        ),
        (
            {"over": ["workload.queue_depth=1"], "sets": ["workload.queue_depth=2"]},
            "got --set",
        ),
        (
            {"over": ["workload.block_sizes_bytes=4k,4096"]},
            "twice",
        ),
        (
            {"over": ['schemes=["rep:3"],["rep:3","rep:2"]']},
            "twice",
        ),
        ({"over": ["schemes=rep:3,rs:6,3"]}, "quote schemes with a comma"),
        (
            {"zipped": ["workload.queue_depth=1,2", "cluster.pg_num=8"]},
            "wanted equally many values for each key",
        ),
        ({"replications": 2, "seed": 2**63 - 1}, "2^63"),
        (
            {"over": ["workload.queue_depth=" + ",".join(map(str, range(1, 400)))] * 3},
            "wanted",
        ),
        ({"points": "nowhere.csv"}, "wanted"),
    ],
)
def test_contradictory_options_are_refused(
    tiny: Path, options: dict[str, object], words: str
) -> None:
    assert any(states(line, words) for line in faults(tiny, **options))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("workload.queue_depth\n8\n8\n", "--list: workload.queue_depth: got ... twice"),
        (
            "workload.queue_depth,cluster.pg_num\n8,\n",
            "{path}:2: got 1 of 2 values, wanted a value in each column",
        ),
    ],
)
def test_a_faulty_list_of_points_is_named(
    tiny: Path, tmp_path: Path, lines: str, said: str
) -> None:
    path = tmp_path / "points.csv"
    path.write_text(lines)
    (fault,) = faults(tiny, points=path)
    assert states(fault, said.format(path=path))


def test_replications_share_seeds_between_points(tiny: Path) -> None:
    plan = plan_sweep(tiny, over=["workload.queue_depth=4,8"], replications=3, seed=7)
    assert {task.scenario.seed - task.replication for task in plan.tasks} == {7}
    assert [task.replication for task in plan.tasks[:4]] == [0, 1, 2, 0]
    assert len({task.task_id for task in plan.tasks}) == len(plan.tasks) == 12


def test_swept_columns_hold_one_type(tiny: Path) -> None:
    plan = plan_sweep(
        tiny,
        over=[
            'schemes=["rep:3"],["rep:2","rs:6,3"]',
            "cluster.public_gbit_per_s=10,2.5",
        ],
    )
    assert {task.swept["schemes"] for task in plan.tasks} == {
        '["rep:3"]',
        '["rep:2", "rs:6,3"]',
    }
    assert {task.swept["cluster.public_gbit_per_s"] for task in plan.tasks} == {
        10.0,
        2.5,
    }


def test_a_sweep_widened_later_keeps_the_names_of_its_tasks(tiny: Path) -> None:
    narrow = plan_sweep(tiny, over=["workload.queue_depth=4"])
    wide = plan_sweep(
        tiny,
        over=["workload.queue_depth=4,8"],
        sets=['schemes=["rep:3","rep:2","rs:6,3"]'],
        replications=2,
    )
    assert {task.task_id for task in narrow.tasks} < {
        task.task_id for task in wide.tasks
    }


@pytest.mark.parametrize(
    "load",
    [
        # More requests in flight than one OSD admits (256 in the release of the scenario).
        {"workload.clients": 20, "workload.queue_depth": 32},
        {"client.threads": 4},
        {"workload.kind": "open", "workload.rate_per_s": 20_000.0},
    ],
)
def test_a_task_has_the_row_of_a_run(load: dict[str, object]) -> None:
    # Given a scenario whose load decides part of the models
    sets = {"schemes": ["rep:3"], "workload.ops": ["read"], "workload.requests": 1500}
    scenario = load_scenario("quickstart", sets={**sets, **load})
    (cell,) = cells(scenario)
    # When its cell is the task of a sweep
    row = run_task(make_task(scenario, cell, replication=0, swept={}))
    # Then the requests complete when those of a run do.
    result = run_cell(scenario, cell, "compiled", unchecked=True)
    assert row["completions_sha256"] == result.sha256


def test_the_name_covers_all_inputs_of_the_row(tiny: Path) -> None:
    def ids(**options: object) -> set[str]:
        return {task.task_id for task in plan_sweep(tiny, **options).tasks}  # type: ignore[arg-type]

    plain = ids()
    assert ids(sets=["description=other", "name=other"]) == plain
    for change in (
        {"seed": 9},
        {"engine": "simpy"},
        {"sets": ["cluster.pg_num=16"]},
        {"sets": ["generation=pacific"]},
    ):
        assert not ids(**change) & plain


TRACE = """# event_id component_id node_id platform_id node_name event_type start stop reason
0 1 a 1 a 1 1000 1010 NULL
1 1 a 1 a 0 1010 {back} NULL
2 1 a 1 a 1 {back} 1090 NULL
3 1 a 1 a 0 1090 1100 NULL
"""
FAULTS = {
    "replay": [
        "faults.replay.trace=t.tab",
        "faults.replay.unit=osd",
        "faults.replay.speed=10",
    ],
    "drawn": ["faults.drawn.trace=t.tab", "faults.drawn.unit=host"],
}
TIMED = [
    "workload.duration_s=2",
    "schemes=['rep:3']",
    "workload.queue_depth=1",
    "workload.image_bytes=16MiB",
]


@pytest.fixture
def here(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny scenario, in the current folder."""
    monkeypatch.chdir(tiny.parent)
    return tiny


@pytest.mark.parametrize("kind", FAULTS)
def test_the_name_covers_the_content_of_a_failure_trace(here: Path, kind: str) -> None:
    trace = here.with_name("t.tab")
    names = []
    for back in (1015, 1019, 1015):
        trace.write_text(TRACE.format(back=back))
        names.append(plan_sweep(here, sets=[*TIMED, *FAULTS[kind]]).tasks[0].task_id)
    assert names[0] == names[2] != names[1]


def test_a_process_reads_a_failure_trace_again_when_it_has_changed(here: Path) -> None:
    trace = here.with_name("t.tab")

    def back_ns(back: int) -> int | None:
        trace.write_text(TRACE.format(back=back))
        (task, *_) = plan_sweep(here, sets=[*TIMED, *FAULTS["replay"]]).tasks
        topology = Topology(np.arange(4, dtype=np.int64), None)
        return replayed_failures(task.scenario, topology)[0].back_ns

    assert [back_ns(1015), back_ns(1018), back_ns(1015)] == [
        1_500_000_000,
        1_800_000_000,
        1_500_000_000,
    ]


def test_a_worker_whose_file_has_other_content_refuses(here: Path) -> None:
    trace = here.with_name("t.tab")
    trace.write_text(TRACE.format(back=1015))
    (task, *_) = plan_sweep(here, sets=[*TIMED, *FAULTS["replay"]]).tasks
    trace.write_text(TRACE.format(back=1019))
    assert "t.tab with other content" in str(attempt(task).reason)


def test_the_name_covers_the_content_of_a_map(tiny: Path) -> None:
    path = tiny.with_name("m.txt")
    plan = plan_sweep(tiny)
    path.write_text("a")
    scenario = plan.scenario.model_copy(
        update={
            "cluster": plan.scenario.cluster.model_copy(update={"crush_map": str(path)})
        }
    )
    cell = cells(scenario)[0]
    first = make_task(scenario, cell, swept={}).task_id
    path.write_text("b")
    assert make_task(scenario, cell, swept={}).task_id != first


def test_every_key_that_names_a_file_is_known_to_do_so() -> None:
    """A key whose file were not hashed would give stale rows."""
    schema = scenario_schema()
    named = {
        name
        for table in (schema, *schema["$defs"].values())
        for name, key in table["properties"].items()
        if "relative to the scenario file" in key.get("description", "")
    }
    assert named == FILE_KEYS


def test_a_row_is_a_pure_function_of_its_task(tiny: Path) -> None:
    (task, *_) = plan_sweep(tiny, over=["workload.queue_depth=4,8"]).tasks
    first = run_task(task)
    again = run_task(pickle.loads(pickle.dumps(task)))
    assert first.pop("engine_wall_s") > 0
    again.pop("engine_wall_s")
    assert first == again
    assert {type(value) for value in first.values()} <= {
        str,
        int,
        float,
        bool,
        type(None),
    }


@pytest.mark.parametrize(
    "common",
    [
        {},
        # With 16 requests of each client, more are in flight than one OSD admits.
        {"workload.clients": 20, "schemes": ["rep:3"]},
        {"workload.image": "pristine", "workload.requests": 20},
        {"degraded.missing_osds": [3]},
    ],
)
def test_tasks_that_share_op_graphs_have_the_rows_of_tasks_that_build_them(
    tiny: Path, common: dict[str, object]
) -> None:
    # Given tasks that differ in their load alone
    over = {"workload.queue_depth": [8, 16, 4]}
    replications = 1 if common else 2
    plan = plan_sweep(tiny, over=over, sets=common, replications=replications)
    # When they run one after another
    sweep_attempt._graphs.cache_clear()
    shared = [row_without_wall_time(task) for task in plan.tasks]
    # Then later ones find the graphs of earlier ones
    assert sweep_attempt._graphs.cache_info().hits >= len(plan.tasks) // 3
    # and have the rows of tasks that find none.
    for task, row in zip(plan.tasks, shared, strict=True):
        sweep_attempt._graphs.cache_clear()
        assert row_without_wall_time(task) == row


def test_tasks_on_other_networks_share_no_op_graphs(tiny: Path) -> None:
    plan = plan_sweep(tiny, over={"cluster.private_gbit_per_s": [10, 25]})
    sweep_attempt._graphs.cache_clear()
    for task in plan.tasks:
        run_task(task)
    assert sweep_attempt._graphs.cache_info().hits == 0


def row_without_wall_time(task: SweepTask) -> dict[str, object]:
    row = run_task(task)
    del row["engine_wall_s"]
    return row


@pytest.mark.usefixtures("interruptible")
def test_a_row_that_is_stored_during_an_interrupt_is_in_the_result(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a Ctrl-C right after the first row is on disk
    write = PartStore._write

    def write_and_interrupt(store: PartStore, *arguments: Any) -> None:
        write(store, *arguments)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(PartStore, "_write", write_and_interrupt)
    plan = plan_sweep(tiny, over={"workload.queue_depth": [2, 4]})
    with PartStore(tmp_path / "out", resume=False) as store:
        result = run_sweep(plan, jobs=1, store=store)
    # Then the sweep stops, and the result has as many rows as the store.
    assert result.stopped == "interrupted"
    assert result.rows.height == len(store.rows) > 0


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_engines_give_the_same_row(tiny: Path, engine: str) -> None:
    (reference, *_), (task, *_) = (
        plan_sweep(tiny).tasks,
        plan_sweep(tiny, engine=engine).tasks,
    )
    want, got = run_task(reference), run_task(task)
    for row in (want, got):
        row.pop("engine_wall_s")
    assert got == want


def test_a_worker_with_other_source_or_numbers_refuses(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task, *_) = plan_sweep(tiny).tasks
    monkeypatch.setattr(sweep_task, "_models_sha256", lru_cache(lambda *_: "other"))
    assert "other parameter sets" in str(attempt(task).reason)
    monkeypatch.setattr(sweep_task, "code_sha256", lambda: "other")
    outcome = attempt(task)
    assert outcome.row is None
    assert "another stripesim" in str(outcome.reason)


def test_the_fingerprint_of_the_source_covers_every_module_a_task_loads(
    tiny: Path,
) -> None:
    program = """
import pickle, sys
from stripesim.scenarios.work.attempt import run_task
from stripesim.scenarios.work.task import source_files
for task in pickle.loads(sys.stdin.buffer.read()):
    run_task(task)
covered = {str(path) for path in source_files().values()}
from pathlib import Path
for name, module in sorted(sys.modules.items()):
    if name.startswith("stripesim.") and str(Path(module.__file__).resolve()) not in covered:
        print(name)
"""
    tasks = [
        plan_sweep(tiny, engine=engine).tasks[0] for engine in ("compiled", "simpy")
    ]
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(tasks),
        capture_output=True,
        check=True,
    )
    left = [
        name
        for name in done.stdout.decode().split()
        if not name.startswith("stripesim.calibration")
    ]
    # These packages hold one docstring each. The name includes the version separately.
    assert set(left) == {
        "stripesim._version",
        "stripesim.scenarios",
        "stripesim.scenarios.forms",
        "stripesim.scenarios.work",
    }


def test_a_sweep_warns_of_each_point_outside_the_calibrated_range_once():
    from stripesim.scenarios.answers.sweep.run import run_sweep

    plan = plan_sweep(
        "quickstart",
        over=["workload.queue_depth=256,512"],
        sets=["workload.requests=20", 'schemes=["rep:3"]', 'workload.ops=["read"]'],
        replications=2,
    )
    result = run_sweep(plan, jobs=1)
    assert [line.partition(";")[0] for line in result.warnings] == [
        "workload.queue_depth: got 256",
        "workload.queue_depth: got 512",
    ]
    assert result.to_json()["warnings"][:2] == result.warnings


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"over": ["plan.hosts=4,6"]},
            "--over: plan.hosts: got a key of [plan]",
        ),
        (
            {"over": ["durability.afr=0.01,0.02"]},
            "--over: durability.afr: got a key of [durability]",
        ),
        (
            {"over": ["seed=1,2"]},
            "--over: seed: got a swept seed, wanted --replications N",
        ),
        ({"replications": 1_000_000}, "wanted at most 200,000"),
        (
            {
                "over": ["workload.queue_depth=1,2"],
                "sets": ['"workload".queue_depth=3'],
            },
            "got --set workload.queue_depth too",
        ),
    ],
)
def test_sweeps_that_cannot_be_meant_are_refused_before_they_are_planned(
    tiny: Path, options: dict[str, object], words: str
) -> None:
    (line,) = faults(tiny, **options)
    assert states(line, words)


@pytest.mark.parametrize(
    "text",
    [
        'workload.queue_depth\n"4\n8\n16\n',
        'workload.queue_depth\n"' + "4" * 140_000 + '"\n',
    ],
)
def test_a_list_that_is_not_csv_is_refused_with_its_line(
    tiny: Path, tmp_path: Path, text: str
) -> None:
    listed = tmp_path / "points.csv"
    listed.write_text(text)
    line = faults(tiny, points=listed)[0]
    assert line.startswith(f"{listed}:")
    assert "wanted" in line


def test_an_invalid_scheduler_file_is_refused_immediately(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    path = tmp_path / "scheduler.json"
    path.write_text('{"address": 3}')
    with pytest.raises(AnswerError, match="got a file"):
        list(run_dask([], str(path)))


def test_values_make_the_same_tasks_as_their_texts(tiny: Path) -> None:
    texts = plan_sweep(
        tiny,
        over=["workload.queue_depth=4,8", 'workload.block_sizes_bytes=4k,["8k","16k"]'],
        sets=["seed=3"],
    )
    values = plan_sweep(
        load_scenario(tiny),
        over={
            "workload.queue_depth": [4, 8],
            "workload.block_sizes_bytes": ["4k", ["8k", "16k"]],
        },
        sets={"seed": 3},
    )
    # Two depths, and one size and two sizes: 2 × (1 + 2) cells of each scheme, op and pattern.
    assert len(values.tasks) % 6 == 0
    assert [task.task_id for task in values.tasks] == [t.task_id for t in texts.tasks]


@pytest.mark.parametrize(
    ("over", "fault"),
    [
        ({"workload.queue_depth": []}, "--over: workload.queue_depth: got"),
        ({"workload.queue_depth": "16"}, "wanted"),
        ({"workload.queue_depth": [4, "x"]}, "--over: workload.queue_depth: got"),
        ({"workload": [1], "workload.queue_depth": [4]}, "swept too"),
    ],
)
def test_wrong_values_are_refused_by_their_key(
    tiny: Path, over: dict[str, list[object]], fault: str
) -> None:
    with pytest.raises(ValueError, match=fault):
        plan_sweep(tiny, over=over)


def test_workers_do_not_wait_until_polars_has_loaded():
    # It takes as long as ten small cells, and only the tables at the end need it.
    program = (
        "import sys\n"
        "import stripesim.scenarios.answers.sweep.plan\n"
        "import stripesim.scenarios.answers.sweep.run\n"
        "sys.exit('polars' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_process_that_sweeps_a_map_again_finds_its_new_sites(tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'schemes = ["rep:3"]\n[cluster]\ncrush_map = "map.txt"\ncrush_rule = "rep"\npg_num = 32\n'
        'site_rtt_ms = 2.0\n[workload]\nops = ["write"]\nrequests = 200\nclients = 2\nqueue_depth = 4\n'
    )
    for sites in (2, 3):
        names = [f"site{host * sites // 6}" for host in range(6)]
        crush = map_of_hosts([(WEIGHT_ONE,) * 2] * 6, None, names)
        (tmp_path / "map.txt").write_text(map_to_text(crush))
        (asked, *_) = plan_sweep(scenario).tasks
        alone = run_cell(asked.scenario, asked.cell, "compiled", unchecked=True)
        assert run_task(asked)["completions_sha256"] == alone.sha256


def test_the_name_covers_constants_of_recovery_that_a_set_may_have(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = plan_sweep(tiny).tasks[0].task_id
    forget_models()
    stated = SimpleNamespace(table=lambda name: {"max_backfills_count": {"value": 7}})
    monkeypatch.setattr(sweep_task, "device_set", lambda scenario: stated)
    assert plan_sweep(tiny).tasks[0].task_id != plain
    forget_models()


def test_the_name_covers_the_table_of_releases() -> None:
    assert "models/generations/generations.toml" in source_files()
