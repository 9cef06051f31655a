"""The public API: typed names only, scenarios checked as a file is, nothing that never ends."""

import ast
import os
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import stripesim
from stripesim import api, blocks
from stripesim.cli.app import app, app_of
from stripesim.cli.sweep import sweep
from stripesim.models.problems import ProblemsError
from stripesim.notebooks.files import cells_of
from stripesim.scenarios.schema.scenario import ScenarioKeywords

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = {name for name in vars(blocks) if not name.startswith("_")}
NAN = float("nan")
SMALL = {
    "schemes": ["rep:3"],
    "cluster": {"hosts": 4},
    "workload": {
        "requests": 40,
        "ops": ["read"],
        "patterns": ["rand"],
        "block_sizes_bytes": ["4k"],
    },
}


def test_the_names_are_the_same_at_run_time_and_for_type_checkers():
    stub = ast.parse((ROOT / "stripesim" / "__init__.pyi").read_text("utf-8"))
    typed = [(node.module, alias.name) for node in stub.body for alias in node.names]
    assert typed == [("stripesim._version", "__version__"), ("stripesim.api", "*")]
    assert set(dir(stripesim)) == {*api.__all__, "__version__"}
    for name in api.__all__:
        assert getattr(stripesim, name) is getattr(api, name)
    with pytest.raises(AttributeError, match="no attribute 'simulate_all'"):
        stripesim.simulate_all  # noqa: B018


def test_an_import_of_everything_and_help_have_the_public_names():
    names = {}
    exec("from stripesim import *", names)
    assert {*api.__all__, "__version__"} <= set(names)
    functions = pydoc.plaintext.document(stripesim).partition("\nFUNCTIONS\n")[2]
    assert "\n    sweep(" in functions


def test_timelines_as_text_belong_to_lessons():
    from stripesim import teach

    helpers = {"drawing", "heading", "latency_words"}
    assert helpers.isdisjoint(dir(stripesim))
    assert helpers <= set(teach.__all__) <= set(dir(teach))


def test_stable_blocks_are_those_of_the_guide():
    page = (ROOT / "docs" / "howto" / "own-system.md").read_text("utf-8")
    listed = page.partition("## Stable names")[2]
    named = set(re.findall(r"`(\w+)`", listed)) - {"stripesim"}
    assert named == set(blocks.STABLE) <= BLOCKS
    # Strict type checkers find names that a module imports only here.
    assert {*blocks.__all__} == BLOCKS


def test_the_guide_to_a_system_of_ones_own_works():
    page = (ROOT / "docs" / "howto" / "own-system.md").read_text("utf-8")
    program = re.search(r"^```python\n(.*?)^```", page, flags=re.M | re.S)
    # Without its main part, which draws.
    names = {"__name__": "reads"}
    exec(program[1].replace("REQUESTS = 50_000", "REQUESTS = 20_000"), names)
    # Mean time in M/D/1 at load 0.5: 1 + 0.5 / (2 · 0.5) = 1.5 services of 100 µs.
    assert names["exact_ns"](0.5) == 150_000
    assert names["mean_latency_ns"](1, 0.5) == pytest.approx(150_000, rel=0.02)
    # The slowest of four queues takes longer than one.
    assert names["mean_latency_ns"](4, 0.5) > 180_000
    names["REQUESTS"] = 500
    latencies_ns = [
        names["mean_latency_ns"](4, 0.5, engine) for engine in ("compiled", "simpy")
    ]
    assert latencies_ns[0] == latencies_ns[1]


@pytest.mark.parametrize(
    ("words", "may"),
    [
        ("--version", set()),
        ("--help", {"typer"}),
        # Typer imports pydantic for options, and studies keep their numbers in tables.
        ("run --help", {"typer", "pydantic"}),
        ("sweep --help", {"typer", "pydantic"}),
        ("study --help", {"typer", "pydantic", "numpy", "polars", "scipy"}),
    ],
)
def test_help_and_version_import_no_heavy_module(words, may):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "stripesim", *words.split()],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout
    loaded = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in done.stderr.splitlines()
    }
    assert "stripesim" in loaded
    heavy = {
        "typer",
        "pydantic",
        "rich",
        "numpy",
        "polars",
        "scipy",
        "numba",
        "matplotlib",
        "simpy",
        "jinja2",
        "pyeclib",
    }
    assert sorted(loaded & heavy - may) == []


def test_only_the_named_command_is_built():
    [named] = app_of(["sweep", "--help"]).registered_commands
    assert named.callback is sweep
    assert app_of(["seep"]) is app_of(["--help"]) is app_of([]) is app


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_command_starts_no_threads_for_matrices():
    code = (
        "import os, sys\n"
        "from stripesim.__main__ import main\n"
        "sys.argv[1:] = ['cite', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    import numpy\n"
        "print(len(os.listdir('/proc/self/task')), 'numpy' in sys.modules)"
    )
    environment = {
        k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "1 True"


def test_the_package_alone_loads_nothing():
    words = "import sys, stripesim; print([n for n in sys.modules if n.startswith('stripesim.')])"
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['stripesim._version']"


# What no simulation needs: figures, data frames, statistics, the other engine, other formats.
UNUSED = {
    "matplotlib",
    "polars",
    "simpy",
    "jinja2",
    "pyeclib",
    "sqlite3",
    "zstandard",
} | {f"scipy.{part}" for part in ("linalg", "optimize", "sparse", "special", "stats")}


def loaded_by(statements):
    """Modules that a fresh Python has loaded after the statements."""
    report = "import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"{statements}\n{report}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


def test_the_api_loads_neither_figures_nor_compilers():
    loaded = loaded_by("import stripesim.api")
    assert "numpy" in loaded
    assert sorted(loaded & (UNUSED | {"numba"})) == []


def test_a_run_loads_only_what_it_uses():
    small = "costs=False, sets={'workload.requests': 20, 'schemes': ['rep:3']}"
    statements = f"import stripesim; stripesim.run('quickstart', {small})"
    # The first run may compile, and the compiler loads SciPy.
    loaded_by(statements)
    loaded = loaded_by(statements)
    assert "stripesim.sim.engine.compiled.kernel" in loaded
    assert sorted(loaded & UNUSED) == []


def test_a_command_that_hands_out_tasks_loads_no_engine():
    statements = (
        "from stripesim.scenarios.answers.sweep import run\n"
        "from stripesim.scenarios.answers.sweep.plan import plan_sweep\n"
        "plan_sweep('quickstart')"
    )
    loaded = loaded_by(statements)
    assert "stripesim.scenarios.work.task" in loaded
    assert not loaded & {"stripesim.sim.run", "stripesim.scenarios.cells.build"}


def test_a_sweep_forks_itself_since_it_loads_nothing_with_threads(tmp_path):
    words = ["stripesim", "sweep", "quickstart", "--set", "workload.requests=20"]
    words += [
        "--jobs",
        "2",
        "--out",
        str(tmp_path),
        "--json",
        str(tmp_path / "sweep.json"),
    ]
    statements = (
        "import contextlib, sys\n"
        "from stripesim.__main__ import main\n"
        f"sys.argv = {words}\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(sys.stderr): main()"
    )
    loaded = loaded_by(statements)
    assert "multiprocessing.popen_fork" in loaded
    assert "multiprocessing.popen_forkserver" not in loaded


def test_a_command_searches_no_packages_for_plugins():
    program = (
        "import importlib.metadata, sys\n"
        "def refuse(**_): sys.exit('a search for plugins')\n"
        "importlib.metadata.entry_points = refuse\n"
        "sys.argv = ['stripesim', 'explain', 'write', '--scheme', 'rep:3', '--size', '4k']\n"
        "from stripesim.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_names_that_load_late_are_public_names():
    assert set(api._LATE) <= set(api.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        api.nothing  # noqa: B018


def test_a_scenario_takes_lists_tuples_and_nested_tables():
    scenario = stripesim.Scenario(
        schemes=("rep:3", "rs:4,2"),
        cluster={"hosts": 6},
        workload={"requests": 10, "ops": ["write"]},
    )
    assert isinstance(scenario, stripesim.Scenario)
    assert (scenario.schemes, scenario.cluster.hosts) == (("rep:3", "rs:4,2"), 6)


def test_every_problem_is_listed_with_its_key():
    with pytest.raises(stripesim.ScenarioError) as caught:
        stripesim.Scenario(
            schemes=["rs:9"], cluster={"hostss": 3}, workload={"queue_depth": "many"}
        )
    said = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert all(
        key in said for key in ("schemes", "cluster.hostss", "workload.queue_depth")
    )


@pytest.mark.parametrize(
    ("call", "start"),
    [
        (lambda sets: stripesim.run("quickstart", sets=sets), "sets: cluster.hosts: "),
        (
            lambda sets: stripesim.load_scenario("quickstart", sets=sets),
            "sets: cluster.hosts: ",
        ),
        (
            lambda _: stripesim.Scenario(**SMALL | {"cluster": {"hosts": 0}}),
            "Scenario: cluster.hosts: ",
        ),
        (
            lambda _: stripesim.explain("write", "rep:3", size_bytes=0),
            "size_bytes: got 0",
        ),
        (
            lambda _: stripesim.sweep("quickstart", {"cluster.hosts": [0]}),
            "over: cluster.hosts: got 0",
        ),
        (
            lambda _: stripesim.sweep("quickstart", {"cluster.hosts": 8}),
            "over: cluster.hosts: got 8, wanted a list",
        ),
        (
            lambda _: stripesim.sweep("quickstart", {}, replications=0),
            "replications: got 0",
        ),
    ],
)
@pytest.mark.parametrize("sets", [{"cluster.hosts": 0}, ["cluster.hosts=0"]])
def test_an_error_cites_the_argument_of_the_call(call, start, sets):
    with pytest.raises(ValueError, match=rf"^{re.escape(start)}"):
        call(sets)


class EndlessNothing:
    """A workload whose requests are None."""

    queue_depth = 1

    def take(self, count):
        return None


SOURCE = EndlessNothing()
CELL = ("scheme", "op", "pattern", "block_size_bytes")
#: As of `run`, in place of the means of a sweep.
ROWS_OF_CELL = pl.DataFrame({name: ["x"] for name in (*CELL, "queue_depth")})


def simulated(scenario, **settings):
    pool, workload = stripesim.pool(scenario), stripesim.workload(scenario)
    return stripesim.simulate(pool, workload, **settings)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: stripesim.run(s, costs="no"), "costs: got 'no', wanted True"),
        (lambda s: stripesim.run(s, unchecked="no"), "unchecked: got 'no', wanted"),
        (lambda s: stripesim.run(s, sets=5), "sets: got 5, wanted a list or a mapping"),
        (lambda s: stripesim.run(s, sets={1: 2}), "sets: 1: got unknown key"),
        (
            lambda s: stripesim.load_curves(s, requests=NAN),
            "requests: got nan, wanted a whole number or None",
        ),
        (lambda s: stripesim.load_curves(s, requests=True), "requests: got True"),
        (lambda s: stripesim.load_curves(s, requests=99), "requests: got 99, wanted"),
        (
            lambda s: stripesim.load_curves(s, p99_bounds_s="5ms"),
            "p99_bounds_s: got '5ms', wanted a list",
        ),
        (lambda s: stripesim.load_curves(s, jobs=0), "jobs: got 0, wanted at least 1"),
        (
            lambda s: stripesim.virtual_machines(s, p99_bound_s=1, jobs=-1),
            "jobs: got -1, wanted at least 1",
        ),
        (
            lambda _: stripesim.study("dachary2013", jobs=-1),
            "jobs: got -1, wanted at least 1",
        ),
        (
            lambda _: stripesim.study("dachary2013", ablate="nosuch"),
            "ablate: got 'nosuch'",
        ),
        (
            lambda _: stripesim.plan("plan", engine="x"),
            "engine: got 'x', wanted one of",
        ),
        (lambda _: stripesim.study("dachary2013", engine=None), "engine: got None"),
        (lambda s: stripesim.durability(s, method="x"), "method: got 'x', wanted one"),
        (lambda _: stripesim.import_report(), "files: got none, wanted at least one"),
        (lambda _: stripesim.draw_timelines([]), "timelines: got none, wanted at"),
        (lambda _: stripesim.describe_trace(None), "trace: got None, wanted a "),
        (lambda _: stripesim.draw_all(3), "rows: got 3, wanted a DataFrame"),
        (lambda _: stripesim.claims(3), "study: got 3, wanted one of"),
        (lambda _: stripesim.import_report(3), "files: got 3, wanted text or a path"),
        (lambda _: stripesim.import_report(pools="reps"), "pools: got 'reps', wanted"),
        (lambda _: stripesim.parse_scenario(None), "text: got None, wanted text"),
        (lambda _: stripesim.parse_scheme(None), "text: got None, wanted text"),
        (lambda s: stripesim.workload(s, -1), "cell: got -1, wanted a cell"),
        (
            lambda s: stripesim.workload(s, 1),
            "cell: got 1, wanted a cell, or its index",
        ),
        (lambda _: stripesim.simulate(None, None), "pool: got None, wanted"),
        (
            lambda s: stripesim.simulate(stripesim.pool(s), None),
            "workload: got None, wanted",
        ),
        (lambda s: stripesim.sweep(s, {}, jobs=1.5), "jobs: got 1.5, wanted a whole"),
        (lambda s: stripesim.sweep(s, list=[1]), "list[0]: got 1, wanted values"),
        (lambda s: stripesim.sweep(s, {3: [1]}), "over: 3: got unknown key"),
        (
            lambda s: stripesim.sweep(s, zip={"workload.queue_depth": []}),
            "zip: workload.queue_depth: got []",
        ),
        (lambda _: stripesim.save_figures({}, "x", width_inch=NAN), "width_inch: got"),
        (
            lambda _: stripesim.save_figures({"a": 3}, "x"),
            "figures['a']: got 3, wanted a CaptionedFigure",
        ),
        (
            lambda _: stripesim.save_figures({"../a": 3}, "x"),
            "figures: got '../a', wanted a file name",
        ),
        (
            lambda s: stripesim.run(s, set={}),
            "run: set: got an unknown argument, wanted sets",
        ),
        (
            lambda s: stripesim.simulate(stripesim.pool(s), SOURCE, nosuch=1),
            "simulate: nosuch: got an unknown argument, wanted foreground, ",
        ),
        (lambda _: stripesim.load_trace(file="t"), "load_trace: file: got an unknown"),
        (lambda _: stripesim.studies(x=1), "studies: x: got an unknown argument, wa"),
        (lambda _: stripesim.run(), "run: scenario: got nothing, wanted this"),
        (lambda s: stripesim.run(s, {}), "run: got 2 arguments without a name, want"),
        (lambda s: stripesim.run(s, scenario=s), "run: scenario: got two values, wan"),
        (lambda _: stripesim.import_report("x", pools=[3]), "pools[0]: got 3, wanted"),
        (lambda _: stripesim.draw_load([{}]), "curves[0]: got {}, wanted a LoadCurve"),
        (lambda _: stripesim.draw_rehearsal({}), "document: got a mapping without ch"),
        (
            lambda s: stripesim.simulate(stripesim.pool(s), SOURCE),
            "workload: take: got None, wanted Requests",
        ),
        (lambda s: stripesim.run(s, sets=[5]), "sets: got 5, wanted text such as"),
        (lambda s: stripesim.run(s, sets=[("a.b", 8)]), "sets: got ('a.b', 8), wanted"),
        (
            lambda _: stripesim.draw_all(pl.DataFrame({"op": ["read"]})),
            "rows: got no column scheme, pattern, block_size_bytes, latency_mean_ns, wanted",
        ),
        (
            lambda s: stripesim.draw_sweep(ROWS_OF_CELL, ["queue_depth"]),
            "aggregated: got no column replications, wanted SweepResult.aggregated",
        ),
        (lambda s: simulated(s, until_ns="x"), "until_ns: got 'x', wanted a whole"),
        (lambda s: simulated(s, until_ns=1.5), "until_ns: got 1.5, wanted a whole"),
        (lambda s: simulated(s, timeout_ns=-3), "timeout_ns: got -3, wanted a whole"),
        # It never ended.
        (lambda s: simulated(s, bin_ns=-1), "bin_ns: got -1, wanted a whole number"),
        (lambda s: simulated(s, warm_up=1), "warm_up: got 1, wanted a part of the run"),
        (lambda s: simulated(s, followed=3), "followed: got 3, wanted numbers of req"),
    ],
)
def test_an_argument_of_a_wrong_type_or_value_is_named(call, message):
    scenario = stripesim.Scenario(**SMALL)
    with pytest.raises(ProblemsError, match=rf"^{re.escape(message)}"):
        call(scenario)


def test_an_error_keeps_the_options_of_a_command(tmp_path):
    with pytest.raises(stripesim.AnswerError) as caught:
        stripesim.score(tmp_path / "register.json", tmp_path / "measured.csv")
    assert "`stripesim predict --register`" in str(caught.value)


def test_numbers_of_numpy_are_arguments():
    scenario = stripesim.Scenario(**SMALL)
    over = {"workload.queue_depth": np.array([2])}
    swept = stripesim.sweep(scenario, over, replications=np.int64(1), jobs=np.int32(1))
    assert swept.rows["workload.queue_depth"].unique().to_list() == [2]
    same = [
        stripesim.run(scenario, seed=seed, costs=False, unchecked=True)
        for seed in (np.int64(3), 3)
    ]
    assert same[0]["completions_sha256"] == same[1]["completions_sha256"]
    size = np.array([8192])[0]
    (timeline,) = stripesim.explain("write", "rep:3", size, with_parameters=False)
    assert timeline.size_bytes == 8192
    assert stripesim.parse_size_bytes(size) == 8192


def test_a_size_as_text_is_written_exactly():
    assert stripesim.format_size("4k") == "4KiB"


def test_what_a_caller_must_catch_is_exported():
    over = {"cluster.hosts": 8}
    for error, call in (
        (stripesim.SchemeError, lambda: stripesim.parse_scheme("rs:6")),
        (stripesim.AnswerError, lambda: stripesim.sweep("quickstart", over)),
        (stripesim.AnswerError, lambda: stripesim.explain("truncate", "rs:6,3")),
        (stripesim.TraceError, lambda: stripesim.load_trace("nothing.csv")),
        (stripesim.MeasuredError, lambda: stripesim.import_report("nothing.json")),
    ):
        with pytest.raises(error):
            call()


def test_the_typed_constructor_has_every_key():
    fields = stripesim.Scenario.model_fields
    assert ScenarioKeywords.__annotations__.keys() == fields.keys()
    required = {key for key, field in fields.items() if field.is_required()}
    assert ScenarioKeywords.__required_keys__ == required


def test_tables_of_a_scenario_make_another_one():
    first = stripesim.Scenario(**SMALL)
    second = stripesim.Scenario(
        schemes=first.schemes, cluster=first.cluster, workload=first.workload
    )
    assert second == first


def test_results_have_short_representations():
    scenario = stripesim.Scenario(**SMALL)
    result = stripesim.run(scenario)
    # Forty requests are fewer than those in flight, so that the run is longer.
    requests = result.rows["requests"][0]
    assert repr(result) == f"<ScenarioResult: scenario, 1 row, {requests:,} requests>"
    assert "<table>" in result._repr_html_()
    assert "rep:3" in result._repr_html_()
    swept = stripesim.sweep(scenario, {"workload.queue_depth": [1, 4]}, jobs=1)
    assert repr(swept) == "<SweepResult: 2 rows>"
    assert "<table" in swept._repr_html_()
    (timeline,) = timelines = stripesim.explain("write", "rep:3", 4096)
    assert len(repr(timelines)) < 150
    assert "write of 4,096 bytes, rep:3, reef" in repr(timeline)
    assert "<table>" in timeline._repr_html_()
    pool = stripesim.pool(scenario)
    assert repr(pool) == (
        "<Pool: rep:3 on <Cluster: 4 hosts, 24 OSDs, 1,024 placement groups>>"
    )
    simulated = stripesim.simulate(pool, stripesim.workload(scenario))
    # A refused run says why it shows no number.
    assert repr(simulated).startswith("<Run: no numbers: Run length: got 40 requests")
    measured = stripesim.simulate(pool, stripesim.workload(scenario), unchecked=True)
    assert re.fullmatch(r"<Run: [\d,]+ requests/s, mean .* ms>", repr(measured))


def test_rows_of_a_sweep_are_not_drawn_over_each_other():
    found = stripesim.sweep(
        stripesim.Scenario(**SMALL), {"workload.queue_depth": [1, 4]}, jobs=1
    )
    with pytest.raises(ValueError, match=r"up to 2 rows of a cell.*draw_sweep"):
        stripesim.draw_all(found.rows)
    assert stripesim.draw_all(found.rows.head(1))
    assert stripesim.draw_sweep(found.aggregated, ["workload.queue_depth"])


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        (0.8, r"shape \(\)"),
        ([1.0] * 3, r"shape \(3,\)"),
        ([-1.0] * blocks.FACTOR_POINTS, "below 0"),
        ([float("nan")] * blocks.FACTOR_POINTS, "not finite"),
    ],
)
def test_a_factor_table_needs_a_factor_for_each_point(factors, message):
    with pytest.raises(ValueError, match=message):
        blocks.factor_table(factors)


def test_rules_that_span_several_keys_are_checked_too():
    with pytest.raises(stripesim.ScenarioError, match="rs:10,4"):
        stripesim.Scenario(
            schemes=["rs:10,4"], cluster={"hosts": 4}, workload={"requests": 10}
        )


def test_a_scenario_runs_with_overrides_as_a_mapping():
    scenario = stripesim.Scenario(**SMALL)
    sets = {"workload.queue_depth": 1}
    assert stripesim.run(scenario, sets=sets).rows["requests"].to_list() == [40]
    sets |= {"workload.ops": ["write"], "workload.requests": 50}
    row = stripesim.run(scenario, sets=sets).rows.to_dicts()[0]
    assert (row["op"], row["requests"]) == ("write", 50)


def test_a_sweep_of_a_scenario_gives_a_row_per_point():
    scenario = stripesim.Scenario(**SMALL)
    found = stripesim.sweep(
        scenario,
        {"workload.queue_depth": [1, 4]},
        sets={"workload.ops": ["read"]},
        jobs=1,
    )
    assert found.rows["workload.queue_depth"].unique().sort().to_list() == [1, 4]
    assert not found.failed


@pytest.mark.usefixtures("two_replications")
def test_a_load_curve_goes_from_a_tenth_of_saturation_to_past_it():
    scenario = stripesim.Scenario(**SMALL)
    curves = stripesim.load_curves(
        scenario, p99_bounds_s=[1e-9], requests=100, jobs=1, seed=7
    )
    (curve,) = curves
    assert isinstance(curve, stripesim.LoadCurve)
    first, *_, last = curve.points
    assert isinstance(first, stripesim.LoadPoint)
    saturation = curve.saturation_iops.mean
    assert first.offered_iops < 0.2 * saturation
    assert last.offered_iops > saturation
    # No request takes less than a nanosecond.
    assert [within.iops for within in curve.within] == [None]
    assert set(stripesim.draw_load(curves)) == {"load"}


def test_the_parts_of_a_scenario_drive_the_simulator():
    scenario = stripesim.Scenario(**SMALL)
    pool, load = stripesim.pool(scenario), stripesim.workload(scenario)
    assert stripesim.cluster(scenario).hosts == pool.cluster.hosts == 4
    assert stripesim.simulate(pool, load).row.requests == 40


def test_a_workload_without_an_end_is_refused():
    from dataclasses import replace

    scenario = stripesim.Scenario(**SMALL)
    endless = replace(stripesim.workload(scenario).workload, requests=None).start()
    with pytest.raises(ValueError, match="workload"):
        stripesim.simulate(stripesim.pool(scenario), endless)


def test_claims_of_a_study_are_those_of_its_source():
    assert {"koh2017", "ceph16"} <= set(stripesim.studies())
    assert sum(claim.role == "held-out" for claim in stripesim.claims("koh2017")) == 63
    assert len(stripesim.claims("ceph16")) > 500
    with pytest.raises(ValueError, match="study: got 'none'"):
        stripesim.claims("none")


def test_lessons_use_the_public_names_only():
    public = set(dir(stripesim))
    for path in sorted(
        [*(ROOT / "notebooks").glob("*.md"), *(ROOT / "notebooks/answers").glob("*.py")]
    ):
        text = path.read_text("utf-8")
        if path.suffix == ".md":
            text = "\n".join(
                source for kind, source in cells_of(text) if kind == "code"
            )
        assert set(
            re.findall(r"^(?:from|import) (stripesim[\w.]*)", text, re.MULTILINE)
        ) <= {
            "stripesim",
            "stripesim.teach",
            "stripesim.notebooks.teach",
        }, path.name
        assert (
            set(re.findall(r"\bstripesim\.(\w+)", text)) - {"teach", "notebooks"}
            <= public
        ), path.name
        assert set(re.findall(r"\bblocks\.(\w+)", text)) <= BLOCKS, path.name


PROGRAMS = sorted(
    path
    for folder in ("benchmarks", "docs", "docs/generate")
    for path in (ROOT / folder).glob("*.py")
    # Sphinx's own settings import nothing.
    if path.name != "conf.py"
)


_ERRORS = "stripesim.calibration.ledger.model_errors"
_PREDICT = "stripesim.scenarios.answers.predict"
_FIGURES = "stripesim.scenarios.show.figures"
# Further names, for the programs that draw the demo's headline and record errors of predictions.
PARTS_OF_PROGRAMS = {
    "demo.py": {
        "stripesim.scenarios.schema.units": {"number_text"},
        f"{_FIGURES}.captions": {"scheme_label"},
        f"{_FIGURES}.renderer": {"CaptionedFigure", "drawn"},
        f"{_FIGURES}.screen": {"screen_files"},
        f"{_FIGURES}.specification": {
            "AxisSpec",
            "FigureSpec",
            "LayerSpec",
            "PanelSpec",
            "series_style",
        },
    },
    "trust.py": {
        _ERRORS: {"ALL_BANDS", "error_bands"},
        f"{_PREDICT}.register": {"read_register"},
        f"{_PREDICT}.score": {"score"},
    },
    "record.py": {
        "stripesim.calibration.ledger": {"duration_errors", "model_errors"},
        "stripesim.calibration.ledger.duration_errors": {
            "DurationError",
            "coverage",
            "duration_errors_text",
        },
        _ERRORS: {
            "KIND_OF_METRIC",
            "KINDS",
            "OBJECTS_STUDY",
            "STUDY",
            "HeldOutError",
            "errors_text",
        },
        "stripesim.scenarios.answers.calibrate.rows": {"table_runs"},
        f"{_PREDICT}.register": {"rows_of"},
        f"{_PREDICT}.score": {"score"},
        "stripesim.scenarios.cells.measured": {"predict"},
        "stripesim.scenarios.studies.base": {"StudyResult"},
        "stripesim.scenarios.studies.nvme.measured": {"load"},
        "stripesim.scenarios.studies.s3.measured": {"load"},
    },
}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_benchmarks_and_documentation_use_the_public_names_only(path):
    """The one exception: the reference of the command line is written from the application itself."""
    public = {
        "stripesim": {*dir(stripesim), "api", "teach"},
        "stripesim.blocks": BLOCKS,
        "stripesim.cli.app": {"app"} if path.name == "commands.py" else set(),
        "stripesim.scenarios.answers.calibrate": {"EXAMPLE"},
        "stripesim.sim.observe.audit": {"CHECKS", "Check"},
        "stripesim.notebooks.page_lessons": {"page_lessons", "write_pages"},
        "stripesim.scenarios.answers.engine_page.page": {"engine_page"},
        "stripesim.scenarios.answers.explain.play": {"Prediction", "play_page"},
        "stripesim.scenarios.answers.sweep.explorer": {
            "METRICS",
            "explorer_of",
            "explorer_page",
        },
        "stripesim.scenarios.answers.calibrate.calibrate": {"calibrate"},
        "stripesim.scenarios.answers.calibrate.answer": {"document_of"},
        **PARTS_OF_PROGRAMS.get(path.name, {}),
    }
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            assert not [
                alias.name
                for alias in node.names
                if alias.name.startswith("stripesim.")
            ]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "stripesim"
        ):
            assert {alias.name for alias in node.names} <= public.get(
                node.module, set()
            ), node.module
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "stripesim":
            assert node.attr in public["stripesim"]


def test_programs_are_read():
    assert {"bench_engine.py", "textbook.py", "stage.py", "record.py"} <= {
        path.name for path in PROGRAMS
    }


def test_an_argument_with_the_name_of_its_key_is_named_once():
    with pytest.raises(stripesim.ScenarioError) as caught:
        stripesim.run("quickstart", seed=-1)
    assert str(caught.value).startswith("seed: got -1")


def test_purchases_are_simulated_from_python():
    result = stripesim.run(stripesim.Scenario(**SMALL), advise=True)
    assert {"OSDs", "CPU cores"} <= {gain["words"] for gain in result.advice}
    assert {step["resource"] for step in result.purchases} > {"hosts"}
    many = stripesim.Scenario(**SMALL | {"workload": MANY_CELLS})
    with pytest.raises(ValueError, match=r"^advise: got 32 cells"):
        stripesim.run(many, advise=True)


MANY_CELLS = {
    "requests": 1,
    "ops": ["read", "write"],
    "patterns": ["rand", "seq"],
    "block_sizes_bytes": ["4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k"],
}


def test_keys_alone_are_no_scenario():
    with pytest.raises(stripesim.ScenarioError, match=r"^scenario: got dict"):
        stripesim.run(SMALL)


def test_virtual_machines_are_counted_from_python():
    scenario = stripesim.Scenario(**SMALL)
    answer = stripesim.virtual_machines(scenario, p99_bound_s=1e-6, jobs=1)
    (found,) = answer["vms"]
    assert (found["vms"], found["p99_bound_ns"]) == (0, 1e3)
    assert "not even 1 virtual machine" in answer.sentence
    with pytest.raises(ValueError, match=r"^p99: got 60 min"):
        stripesim.virtual_machines(scenario, p99_bound_s=3600.0, jobs=1)


def test_measurements_that_cannot_be_used_are_named_from_python(tmp_path):
    with pytest.raises(stripesim.MeasuredError, match=re.escape(str(tmp_path))):
        stripesim.calibrate(tmp_path)


def test_a_workload_serves_one_run():
    # Given a pool and a workload that a run has used
    sets = ["workload.requests=20", 'schemes=["rep:3"]', "workload.ops=write"]
    pool = stripesim.pool("quickstart", sets=sets)
    used = stripesim.workload("quickstart", sets=sets)
    stripesim.simulate(pool, used)

    # Then another run with it would begin in the middle.
    with pytest.raises(ValueError, match="has taken 20 requests, wanted a new one"):
        stripesim.simulate(pool, used)
