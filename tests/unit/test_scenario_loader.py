"""Scenarios that ship, overrides, cells, hash and JSON schema."""

import inspect
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pydantic
import pytest

import stripesim
from stripesim.models.documents import json_text
from stripesim.models.problems import ScenarioError
from stripesim.scenarios.schema.keys import Cell, cells, scenario_schema
from stripesim.scenarios.schema.loader import shipped_scenarios
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario

SCENARIOS_DIR = Path(__file__).resolve().parents[2] / "scenarios"
GOOD = 'schemes = ["rep:3", "rs:2,1"]\n[workload]\nrequests = 10\n'


def test_shipped_sets_load_and_are_named_after_their_files() -> None:
    assert {"koh2017", "quickstart", "repair"} <= set(shipped_scenarios())
    for name in shipped_scenarios():
        scenario = load_scenario(name)
        assert scenario.name == name
        assert cells(scenario)
        assert scenario.hash() == load_scenario(SCENARIOS_DIR / f"{name}.toml").hash()


def test_koh2017_is_the_cluster_of_section_iii() -> None:
    scenario = load_scenario("koh2017")
    cluster, workload = scenario.cluster, scenario.workload
    assert (cluster.hosts, cluster.osds_per_host, cluster.pg_num) == (4, 6, 1024)
    assert (cluster.object_bytes, cluster.stripe_unit_bytes) == (4 * 2**20, 4096)
    assert (workload.queue_depth, workload.image, workload.image_bytes) == (
        256,
        "prefilled",
        100 * 10**9,
    )
    assert workload.block_sizes_bytes == tuple(1024 * 2**power for power in range(8))
    assert len(cells(scenario)) == 3 * 2 * 2 * 8


def test_json_schema_in_the_repository_is_the_one_generated() -> None:
    assert (SCENARIOS_DIR / "schema.json").read_text(encoding="utf-8") == json_text(
        scenario_schema(), indent=2
    )


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = scenario_schema()
    jsonschema.Draft202012Validator.check_schema(loaded)
    return loaded


def test_scenarios_that_ship_obey_the_json_schema_and_point_to_it(
    schema: dict[str, Any],
) -> None:
    for name in shipped_scenarios():
        text = (SCENARIOS_DIR / f"{name}.toml").read_text(encoding="utf-8")
        assert text.startswith("#:schema ./schema.json\n")
        jsonschema.validate(tomllib.loads(text), schema)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"schemes": []},
        {"schemes": ["rep:3"], "worklod": {}},
        {"schemes": ["rep:3"], "cluster": {"hosts": 0}},
        {"schemes": ["rep:3"], "cluster": {"object_bytes": "4q"}},
        {"schemes": ["rep:3"], "workload": {"ops": ["erase"]}},
    ],
)
def test_the_json_schema_and_the_loader_refuse_the_same_input(
    schema: dict[str, Any], document: dict[str, Any]
) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


def test_every_key_is_described(schema: dict[str, Any]) -> None:
    tables = [schema, *schema["$defs"].values()]
    for table in tables:
        assert all(len(key["description"]) > 10 for key in table["properties"].values())


def test_overrides_take_toml_values_bare_words_and_single_values_for_lists() -> None:
    scenario = parse_scenario(
        GOOD,
        sets=[
            'schemes=["rs:2,1"]',
            "workload.requests=2000",
            "workload.block_sizes_bytes=64k",
            "workload.patterns=rand",
            "cluster.object_bytes=8MiB",
            "cluster.drive = my-ssd",
            "workload.queue_depth=1",
            "workload.queue_depth=2",
            "repair.lost_osds=0",
        ],
        seed=7,
    )
    assert scenario.schemes == ("rs:2,1",)
    assert scenario.workload.requests == 2000
    assert scenario.workload.block_sizes_bytes == (65536,)
    assert scenario.workload.patterns == ("rand",)
    assert scenario.cluster.object_bytes == 8 * 2**20
    assert scenario.cluster.drive == "my-ssd"
    assert scenario.workload.queue_depth == 2
    assert scenario.repair is not None
    assert scenario.repair.lost_osds == (0,)
    assert scenario.seed == 7


def test_an_override_takes_its_alternative_away() -> None:
    timed = parse_scenario(GOOD, sets=["workload.duration_s=2"])
    assert (timed.workload.requests, timed.workload.duration_s) == (None, 2.0)
    mixed = parse_scenario(
        GOOD + 'ops = ["read"]\n', sets=["workload.read_fraction=0.7"]
    )
    assert {cell.op for cell in cells(mixed)} == {"mixed"}


def test_cells_come_in_the_order_of_the_scenario() -> None:
    scenario = parse_scenario(
        GOOD
        + 'ops = ["write", "read"]\npatterns = ["rand"]\nblock_sizes_bytes = ["8k", "4k"]'
    )
    expected = [
        Cell(scheme, op, "rand", size_bytes)
        for scheme in ("rep:3", "rs:2,1")
        for op in ("write", "read")
        for size_bytes in (8192, 4096)
    ]
    assert cells(scenario) == expected


def test_a_trace_next_to_the_scenario_gives_one_cell_per_scheme(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_text("", encoding="utf-8")
    path = tmp_path / "s.toml"
    path.write_text(
        'schemes = ["rep:3"]\nworkload = { kind = "trace", trace = "t.csv" }\n',
        encoding="utf-8",
    )
    scenario = load_scenario(path)
    assert cells(scenario) == [Cell("rep:3", "trace", "trace", None)]
    assert scenario.resolve("t.csv") == tmp_path / "t.csv"
    assert scenario.resolve("/t.csv") == Path("/t.csv")


def test_hash_depends_on_content_only(tmp_path: Path) -> None:
    base = parse_scenario(GOOD)
    (tmp_path / "other.toml").write_text("# a comment\n" + GOOD, encoding="utf-8")
    assert load_scenario(tmp_path / "other.toml").hash() == base.hash()
    # A default written out, a size in another unit and a scheme with blanks around it say the same.
    same = parse_scenario(
        GOOD, sets=["cluster.object_bytes=4096k", 'schemes=[" rep:3", "rs:2,1"]']
    )
    assert same.hash() == base.hash()
    changed = [
        parse_scenario(GOOD, sets=[item]).hash()
        for item in ("seed=2", "cluster.hosts=5", "name=x")
    ]
    assert len({base.hash(), *changed}) == 4


def test_scenarios_are_immutable() -> None:
    scenario = parse_scenario(GOOD)
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        scenario.seed = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    "table", ["[[faults.events]]\nosds = [1]\nat_s = 1.0", "[repair]\nlost_osds = [1]"]
)
def test_a_client_that_waits_for_its_newest_request_is_not_simulated_under_failures(
    table: str,
) -> None:
    text = f'schemes = ["rep:3"]\n[workload]\nrequests = 10\ncompletions = "newest"\n{table}\n'
    with pytest.raises(
        ScenarioError, match=r's\.toml:4: workload\.completions: got "newest" with \['
    ):
        parse_scenario(text, label="s.toml")


def test_an_instance_has_the_defaults_that_its_signature_shows() -> None:
    scenario = stripesim.Scenario(schemes=["rep:3"], workload={"requests": 1})
    shown = inspect.signature(stripesim.Scenario).parameters
    assert shown["generation"].default == scenario.generation == "reef"
    assert shown["cluster"].default == scenario.cluster
    cluster = scenario.cluster
    assert (cluster.parameters, cluster.drive) == ("nvme", "samsung-pm983")
    assert (cluster.cores_per_host, cluster.public_gbit_per_s) == (128, 100.0)


def test_explain_has_the_defaults_of_a_scenario() -> None:
    scenario = stripesim.Scenario(
        schemes=["rs:6,3"],
        cluster={"hosts": 10, "osds_per_host": 1, "pg_num": 64},
        workload={"requests": 1, "queue_depth": 1},
    )
    assert stripesim.explain("write", "rs:6,3") == stripesim.explain(
        "write", "rs:6,3", scenario=scenario
    )


def test_an_old_name_still_works_and_is_warned_of() -> None:
    text = (
        'schemes = ["rep:3"]\n[workload]\nrequests = 1\n[cluster]\nssd = "hdd-7200"\n'
    )
    table = "[cluster.drive]\nchannels = 2\n"

    with pytest.warns(FutureWarning) as caught:
        scenario = parse_scenario(text + table, label="s.toml", sets=["plan.ssd=a"])

    assert scenario.cluster.drive == "hdd-7200"
    assert scenario.cluster.drive_numbers.channels == 2
    assert scenario.plan is not None
    assert scenario.plan.drive == ("a",)
    places = [str(warning.message).split(": renamed to ") for warning in caught]
    assert [(place, new.split(";")[0]) for place, new in places] == [
        ("s.toml:6: cluster.drive", "cluster.drive_numbers"),
        ("s.toml:5: cluster.ssd", "cluster.drive"),
        ("--set: plan.ssd", "plan.drive"),
    ]
    assert scenario.where("cluster", "drive") == "s.toml:5: cluster.drive"


def test_an_override_replaces_a_key_under_its_old_name() -> None:
    text = (
        'schemes = ["rep:3"]\n[workload]\nrequests = 1\n[cluster]\ndrive = "hdd-7200"\n'
    )
    with pytest.warns(FutureWarning):
        scenario = parse_scenario(
            text, sets=["cluster.ssd=nvme-tlc", "cluster.drive.channels=2"]
        )
    assert scenario.cluster.drive == "nvme-tlc"
    assert scenario.cluster.drive_numbers.channels == 2


def test_an_old_and_a_new_name_together_are_refused() -> None:
    text = 'schemes = ["rep:3"]\n[workload]\nrequests = 1\n[cluster]\ndrive = "a"\nssd = "a"\n'
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, label="s.toml")
    assert caught.value.faults[0].startswith("s.toml:6: cluster.ssd: got both ")
    assert len(caught.value.faults) == 1


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            "full_ratio = 0.85",
            r"cluster.full_ratio: got 0.85, wanted at least cluster.backfillfull_ratio \(0.9\)",
        ),
        (
            "nearfull_ratio = 0.92",
            r"cluster.backfillfull_ratio: got 0.9, wanted at least cluster.nearfull_ratio \(0.92\)",
        ),
    ],
)
def test_fill_ratios_that_osds_would_raise_are_refused(keys: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        parse_scenario(GOOD + f"[cluster]\n{keys}\n")
    in_order = "nearfull_ratio = 0.7\nbackfillfull_ratio = 0.8\nfull_ratio = 0.85"
    parse_scenario(GOOD + f"[cluster]\n{in_order}\n")


def test_a_path_of_an_override_starts_at_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a scenario in another folder than its parameters
    (tmp_path / "here").mkdir()
    (tmp_path / "scenario.toml").write_text(GOOD)
    shipped = SCENARIOS_DIR.parent / "calibration" / "parameters" / "nvme.toml"
    (tmp_path / "here" / "own.toml").write_text(shipped.read_text())
    monkeypatch.chdir(tmp_path / "here")
    # When the command line or Python names the file
    for sets in (["cluster.parameters=./own.toml"], {"cluster.parameters": "own.toml"}):
        loaded = load_scenario("../scenario.toml", sets=sets)
        # Then it is found.
        found = loaded.resolve(loaded.cluster.parameters)
        assert found == tmp_path / "here" / "own.toml"
    for missing in (["cluster.parameters=no.toml"], {"cluster.parameters": "no.toml"}):
        with pytest.raises(
            ScenarioError, match=r"no.toml \(no such file.*current folder"
        ):
            load_scenario("../scenario.toml", sets=missing)
    # A scenario of this folder keeps the path as written.
    (tmp_path / "here" / "scenario.toml").write_text(GOOD)
    beside = load_scenario("scenario.toml", sets=["cluster.parameters=./own.toml"])
    assert beside.cluster.parameters == "./own.toml"
