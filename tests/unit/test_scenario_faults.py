"""All faults of a scenario are reported together, each in one line with its location."""

import pickle
from pathlib import Path

import pytest

from stripesim.models.problems import ScenarioError
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from support.messages import states

GOOD = 'schemes = ["rep:3"]\n[workload]\nrequests = 10\n'


def faults(
    text: str, *, sets: list[str] | None = None, seed: int | None = None
) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, label="s.toml", sets=sets or [], seed=seed)
    return caught.value.faults


def test_all_faults_are_reported_together_with_their_lines() -> None:
    text = """generation = "krakn"
schemes = ["rep:3",
  "rs:x"]
[cluster]
hosts = 4.0
osd_per_host = 3
[workload]
block_sizes_bytes = [
  "4k",
  "4q",
]
patterns = ["zig"]
"""
    said = faults(text, sets=["workload.queue_depth=0"])
    places = [line.split(" got ")[0] for line in said]
    assert places == [
        "s.toml:1: generation:",
        "s.toml:3: schemes:",
        "s.toml:5: cluster.hosts:",
        "s.toml:6: cluster.osd_per_host:",
        "s.toml:7: workload.requests:",
        "s.toml:10: workload.block_sizes_bytes:",
        "s.toml:12: workload.patterns:",
        "--set: workload.queue_depth:",
    ]
    assert all(", wanted " in line for line in said)
    assert states(said[0], 'got "krakn" ... "kraken" ... "pacific"')
    assert states(said[3], '"osd_per_host" ... "osds_per_host"')


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("hosts = 0", "a number of at least 1"),
        ("hosts = true", "a whole number"),
        ('hosts = "4"', "a whole number"),
        ("hosts = 1979-05-27", "a whole number"),
        (f"hosts = 0x{'f' * 900}", "a whole number"),
        ("public_gbit_per_s = 0", "a number of at least 0.001"),
        ("public_gbit_per_s = nan", "a finite number"),
        ("public_gbit_per_s = inf", "a finite number"),
        ("drive = 3", "text in quotes"),
        ('drive = ""', "text that is not empty"),
        ("drive = 1979-05-27", "text in quotes"),
        ('failure_domain_erasure = "rak"', '"osd", "host", "rack" or "site"'),
        ('object_bytes = "0k"', "a size of 1 byte or more"),
        ('stored_bytes = "20 tera"', 'or text such as "500GB"'),
        ("stripe_unit_bytes = '8MiB'", "at most cluster.object_bytes (4MiB)"),
        ("stripe_unit_bytes = 1000", "a multiple of 32 B, to which Ceph aligns"),
        ("racks = 3", "a divisor of cluster.hosts (4)"),
        ('failure_domain_replicated = "rack"', "cluster.racks, too"),
        ('crush_rule = "r"', "cluster.crush_map, too"),
        ('crush_map = "gone.txt"', "an existing file"),
        ("queue_depth = 4", '"workload.queue_depth"'),
    ],
)
def test_cluster_faults(line: str, wanted: str) -> None:
    (said,) = faults(GOOD + "[cluster]\n" + line)
    assert said.startswith(f"s.toml:5: cluster.{line.split(maxsplit=1)[0]}: got ")
    assert states(said.partition(", wanted ")[2], wanted)
    assert "\n" not in said
    assert len(said) < 250


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("", "workload.requests: got ... requests ... duration_s"),
        (
            "requests = 1\nduration_s = 1",
            "workload.duration_s: got ... requests ... duration_s",
        ),
        (
            "requests = 1\nops = ['read']\nread_fraction = 0.5",
            "workload.read_fraction: got both ops",
        ),
        ("requests = 1\nread_fraction = 1.5", "workload.read_fraction: got 1.5"),
        ("requests = 1\nkind = 'open'", "workload.rate_per_s: got nothing"),
        (
            "requests = 1\nrate_per_s = 5.0",
            "workload.rate_per_s: got 5.0",
        ),
        ("kind = 'trace'", "workload.trace: got nothing"),
        (
            "kind = 'trace'\ntrace = 'gone.csv'",
            "workload.trace: got gone.csv (no such file)",
        ),
        (f"kind = 'trace'\ntrace = '~{'x' * 5000}'", "(no such file)"),
        (
            "requests = 1\nspeed = 2.0",
            "workload.speed: got 2.0",
        ),
        (
            "requests = 1\nimage_bytes = '1k'",
            "workload.block_sizes_bytes: got 4KiB",
        ),
        ("requests = 1\nops = ['read', 'read']", "workload.ops: got read twice"),
        (
            "requests = 1\nblock_sizes_bytes = [4096, '4k']",
            "workload.block_sizes_bytes: got 4096 twice",
        ),
        (
            "requests = 1\npatterns = []",
            "workload.patterns: got []",
        ),
    ],
)
def test_workload_faults(workload: str, said: str) -> None:
    (line,) = faults(f'schemes = ["rep:3"]\n[workload]\n{workload}\n')
    assert states(line, said)


def test_schemes_wider_than_the_cluster_are_refused_with_a_remedy() -> None:
    text = 'schemes = [\n"rep:3",\n"rs:6,3",\n]\nworkload.requests = 1\n'
    (line,) = faults(text)
    assert states(
        line, "s.toml:3: schemes: got rs:6,3 ... 9 ... 4 ... failure_domain_erasure"
    )
    parse_scenario(text, sets=["cluster.failure_domain_erasure=osd"])
    parse_scenario(text, sets=["cluster.hosts=9"])
    # If even single OSDs are too few, this remedy is not offered.
    (said,) = faults(text, sets=["cluster.osds_per_host=2"])
    assert "failure_domain_erasure" not in said


def test_one_bare_device_fits_any_cluster() -> None:
    parse_scenario(
        GOOD, sets=["schemes=none", "cluster.hosts=1", "cluster.osds_per_host=1"]
    )


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["repair.lost_osds=[24]"], "got 24 ... 0 ... 23"),
        (["repair.lost_osds=[-1]"], "got -1 ... 0"),
        (["repair.lost_osds=[0, 6, 12]"], "3 hosts ... 2"),
        (
            ["repair.lost_osds=[0, 1, 2, 3, 4, 5]", "cluster.hosts=3"],
            "2 hosts",
        ),
        (
            ["repair.lost_osds=[3]", "degraded.missing_osds=[3]"],
            "got 3, which is also in repair.lost_osds",
        ),
        (["degraded.missing_osds=[3, 3]"], "got 3 twice"),
        (
            ["repair.max_backfills=1"],
            "repair.lost_osds: got nothing",
        ),
    ],
)
def test_lost_osds_must_exist_and_leave_the_data_whole(
    sets: list[str], said: str
) -> None:
    (line,) = faults(GOOD, sets=sets)
    assert states(line, said)


def test_losing_all_osds_of_one_host_is_one_failure() -> None:
    scenario = parse_scenario(GOOD, sets=["repair.lost_osds=[0, 1, 2, 3, 4, 5]"])
    assert scenario.repair is not None
    assert scenario.repair.lost_osds == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("text", "line", "written"),
    [
        ("a = 1\nb ==\n", 2, "b =="),
        ("a = 1\na = 2", 2, "a = 2"),
        ("x", 1, "x"),
        ("\n\nv = [1,\n", 3, "v = [1,"),
    ],
)
def test_syntax_errors_have_their_line(text: str, line: int, written: str) -> None:
    (said,) = faults(text)
    assert said.startswith(f's.toml:{line}: syntax: got "{written}" (')


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a = " + "1" * 5000])
def test_limits_of_the_parser_give_no_traceback(text: str) -> None:
    (said,) = faults(text)
    assert said.startswith("s.toml:1: syntax: got ")


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("nonsense", '--set: "nonsense": got no "="'),
        ("a b=1", '--set: "a b=1": got "a b" for a key'),
        ("=1", 'got "" for a key'),
        ("seed=1\nname=2", "--set: seed: got "),
        ("seed\nx=2", "for a key"),
        ("seed=", '--set: seed: got "", wanted a TOML value'),
        ("schemes=[1", '--set: schemes: got "[1", wanted a TOML value'),
        ("seed.x=1", "--set: seed.x: got a key inside seed, wanted seed alone"),
        ("schemes=[1]", "--set: schemes: got 1, wanted text in quotes"),
        (
            "workload.requests=many",
            '--set: workload.requests: got "many"',
        ),
        (
            "cluster.generation=reef",
            '--set: cluster.generation: ... wanted "generation" outside all tables, not in [cluster]',
        ),
        (
            "cluster.image_bytes=1",
            '--set: cluster.image_bytes: ... wanted "workload.image_bytes"',
        ),
        (
            "cluster.failure_domain=osd",
            '"failure_domain_replicated" or "failure_domain_erasure"',
        ),
        (
            "cluster.host=3",
            '--set: cluster.host: got unknown key "host" ... "hosts"',
        ),
        ("workload.op=1", 'got unknown key "op", wanted "ops"'),
        (
            "workload.object_bytes=1",
            'wanted "object_sizes_bytes" or "cluster.object_bytes"',
        ),
        (
            "faults.events=[{osds=[1], at_s=5.0, qqqq=2.0}]",
            '--set: faults.events.qqqq: got unknown key "qqqq" ... at_s ... return_s',
        ),
        (
            "plan.prices.drives.nvme-qlc.per_tb=22",
            'nvme-qlc.per_tb: got unknown key "per_tb", wanted "drive_per_tb"',
        ),
        (
            "plan.prices.drives.nvme-qlc.qqqq=22",
            "wanted one of drive, drive_per_tb, drive_watts",
        ),
        ("zzz=3", "wanted"),
    ],
)
def test_override_faults(item: str, said: str) -> None:
    (line,) = faults("seed = 3\n" + GOOD, sets=[item])
    assert states(line, said)


def test_a_bad_seed_is_reported_at_its_option() -> None:
    (line,) = faults(GOOD, seed=-1)
    assert states(line, "--seed: seed: got -1 ... 0")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'name = "x"\ndescription = "\xe9"\n')
    cases = {
        str(latin): f"{latin}:2: got ... UTF-8",
        str(tmp_path): f"{tmp_path}: got ",
        str(tmp_path / "gone.toml"): "got no such file",
        "koh2071": '"koh2017"',
        "": "got no scenario",
        "x\0y": "got no scenario",
        "a" * 5000: "got no scenario",
    }
    for name, said in cases.items():
        with pytest.raises(ScenarioError) as caught:
            load_scenario(name)
        assert states(str(caught.value), said)
        assert len(caught.value.faults) == 1


def test_errors_can_be_rebuilt() -> None:
    error = ScenarioError("a", "b")
    assert pickle.loads(pickle.dumps(error)).faults == ["a", "b"]


def test_an_error_keeps_the_parts_of_its_problems() -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(
            'schemes = ["rep:3"]\n[workload]\nrequests = 0\n', label="s.toml"
        )
    (problem,) = caught.value.problems
    assert (problem.place, problem.key) == ("s.toml:3", "workload.requests")
    assert (problem.got, problem.wanted) == ("0", "a number of at least 1")
    assert str(caught.value) == f"s.toml:3: workload.requests: {problem.said}"
    assert pickle.loads(pickle.dumps(caught.value)).problems == (problem,)
