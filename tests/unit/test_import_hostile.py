"""Reports that were not printed by Ceph: an import succeeds, or names the file and the key that is wrong.

The written scenario loads, and it contains no control characters.
"""

import copy
import json
import math
import random
import re
from pathlib import Path

import pytest

from stripesim.__main__ import main
from stripesim.models.placement import load_map
from stripesim.models.problems import MeasuredError
from stripesim.scenarios.answers.cluster import answer_of_cluster
from stripesim.scenarios.cells.build import check_schemes
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.clusters.cluster import import_cluster
from stripesim.scenarios.clusters.scenario import write_scenario
from stripesim.scenarios.clusters.summary import describe_cluster
from stripesim.scenarios.schema.scenario import load_scenario
from support.reports import report, write_report

REPORT = Path(__file__).parent / "data" / "ceph16-report.json"
#: A line break, a tag, terminal sequences, and a character that reverses text.
HOSTILE = "x\nseed = 7\n#<script>\x1b[2J\x07\u202e"
VALUES = [
    None, True, "", "x", HOSTILE, "a b", "~", "\ud800", "9" * 30, "z" * 100_000, "NaN", "1",
    0, -1, 1, 3, 256, 65_536, 2**31 - 1, 2**63, 10**400, -(2**63), 0.5, -0.5, 1e308, math.nan, math.inf,
    [], {}, [[]], [None], ["x"], [[[[1]]]], {"a": 1}, {"": {}},
]  # fmt: skip


def paths_of(value, at=()):
    """List the key paths of a document."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [(*at, key) for key, _ in items] + [
        path for key, part in items for path in paths_of(part, (*at, key))
    ]


def mutated(document, paths, seed):
    """Delete, repeat, scale or replace one to three values of a document."""
    draw = random.Random(seed)
    changed = copy.deepcopy(document)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        *above, last = draw.choice(paths)
        holder = changed
        try:
            for key in above:
                holder = holder[key]
            value = holder[last]
        except (KeyError, IndexError, TypeError):
            # An earlier change took the place away.
            continue
        kind = draw.random()
        if kind < 0.2:
            del holder[last]
        elif kind < 0.25 and isinstance(holder, list):
            holder.append(copy.deepcopy(value))
        elif kind < 0.35 and type(value) in (int, float):
            holder[last] = draw.choice((value * 1000, -value, value + 1, 0))
        else:
            holder[last] = copy.deepcopy(draw.choice(VALUES))
    return changed


@pytest.fixture(scope="module")
def original():
    """Return our own report, and the key paths in it."""
    document = json.loads(REPORT.read_text())
    return document, paths_of(document)


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_a_mutated_report_is_imported_or_refused_with_file_and_key(
    original, tmp_path, first
):
    document, paths = original
    outcomes = {"imported": 0, "refused": 0}
    for seed in range(first, first + 100):
        path = write_report(tmp_path, mutated(document, paths, seed))
        try:
            found, scenarios = describe_cluster(
                import_cluster([path]), path=tmp_path / "s.toml", plan=seed % 3 == 0
            )
        except MeasuredError as refusal:
            outcomes["refused"] += 1
            for line in str(refusal).splitlines():
                assert re.search(
                    r"r\.json: [a-z_]+.*: (got|and) |r\.json: and ", line
                ), (seed, line)
                assert line.isprintable(), seed
            continue
        outcomes["imported"] += 1
        assert json.dumps(found, allow_nan=False).isascii(), seed
        for file, scenario in scenarios.items():
            for written in write_scenario(scenario, file):
                assert all(
                    line.isprintable()
                    for line in written.read_text().expandtabs().split("\n")
                ), seed
    assert min(outcomes.values()) > 10


@pytest.fixture
def hostile(tmp_path):
    """Write a report with hostile text wherever a user or a device chooses it."""
    document = report(
        metadata={"cpu": HOSTILE, "device_ids": f"sda={HOSTILE}_1"},
        version=f"17.2.6{HOSTILE}",
    )
    document["osdmap"]["pools"][0] |= {
        "pool_name": HOSTILE,
        "application_metadata": {HOSTILE: {}},
    }
    crush = document["crushmap"]
    crush["rules"][0]["rule_name"] = "a rule\nstep emit"
    for bucket in crush["buckets"]:
        bucket["name"] = f"{bucket['name']} <script>\u202e"
    for device in crush["devices"]:
        device |= {"name": "same name", "class": "h d\nd"}
    crush["types"][2]["name"] = "rule"
    return write_report(tmp_path, document)


def test_hostile_text_is_escaped_in_files_and_they_run(hostile, tmp_path):
    found, scenarios = describe_cluster(
        import_cluster([hostile]), path=tmp_path / "s.toml"
    )
    (scenario,) = scenarios.values()
    write_scenario(scenario, tmp_path / "s.toml")
    text = (tmp_path / "s.toml").read_text()
    assert not re.search(r"^seed", text, re.MULTILINE) and "seed = 7" in text
    assert all(line.isprintable() for line in text.split("\n"))
    loaded = load_scenario(tmp_path / "s.toml")
    assert loaded.seed == 1
    check_schemes(loaded, build_models(loaded))
    crush = load_map(tmp_path / "s.crush.txt")
    assert len({device.name for device in crush.devices}) == 24
    assert {device.device_class for device in crush.devices} == {"h_d_nd"}
    assert any(line.startswith("crushmap: ") for line in found["warnings"])


def test_renamed_maps_place_as_before(hostile, tmp_path):
    plain = import_cluster([write_report(tmp_path, report(), "plain.json")])
    renamed = import_cluster([hostile])
    assert (plain.sets[1].acting == renamed.sets[1].acting).all()


def test_hostile_text_is_escaped_on_the_page_and_on_the_terminal(
    hostile, tmp_path, monkeypatch, capsys
):
    page = answer_of_cluster(*describe_cluster(import_cluster([hostile]))).page()
    assert "<script" not in page and "&lt;script&gt;" in page
    assert not re.search("[\x07\x1b\u202e]", page)
    monkeypatch.setattr(
        "sys.argv", ["stripesim", "import", "ceph-report", str(hostile)]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    out, err = capsys.readouterr()
    assert all(line.isprintable() for line in (out + err).split("\n"))


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (
            lambda d: d["osdmap"].update(erasure_code_profiles=[1]),
            "osdmap.erasure_code_profiles",
        ),
        (
            lambda d: d["osdmap"].update(erasure_code_profiles={"p": 1}),
            "osdmap.erasure_code_profiles.p",
        ),
        (
            lambda d: d["osdmap"]["pools"][0].update(erasure_code_profile=[]),
            "osdmap.pools.0.erasure_code_profile",
        ),
        (
            lambda d: d["osdmap"]["pools"][0].update(application_metadata=[]),
            "osdmap.pools.0.application_metadata",
        ),
        (lambda d: d["osdmap"]["pools"][0].update(type=[1]), "osdmap.pools.0.type"),
        (lambda d: d["osdmap"].update(full_ratio="NaN"), "osdmap.full_ratio"),
        (
            lambda d: d["osdmap"].update(nearfull_ratio=math.nan),
            "osdmap.nearfull_ratio",
        ),
        (lambda d: d["osd_metadata"][0].update(id=[0]), "osd_metadata.0.id"),
        (lambda d: d["pool_stats"][0].update(stat_sum=7), "pool_stats.0.stat_sum"),
        (
            lambda d: d.update(num_pg_by_osd=[{"osd": 0, "num_acting_pg": "x"}]),
            "num_pg_by_osd.0.num_acting_pg",
        ),
        (lambda d: d.update(num_pg_by_state=["active"]), "num_pg_by_state.0"),
        (
            lambda d: d["osdmap"].update(
                pg_upmap_items=[
                    {"pgid": "1.0", "mappings": [{"from": 0, "to": math.inf}]}
                ]
            ),
            "osdmap.pg_upmap_items.0.mappings.0.to",
        ),
        (lambda d: d["crushmap"]["rules"][0].update(type={}), "crushmap.rules.0.type"),
        (
            lambda d: d["crushmap"].update(
                choose_args={"-1": [{"bucket_id": -1, "weight_set": 5}]}
            ),
            "crushmap.choose_args.-1.0.weight_set",
        ),
        (
            lambda d: d["crushmap"]["devices"][0].update({"class": ["hdd"]}),
            "crushmap.devices.0.class",
        ),
        (
            lambda d: d["crushmap"]["buckets"][0].update(type_id=99),
            "crushmap.buckets.0.type_id",
        ),
        (
            lambda d: d["crushmap"]["buckets"][0]["items"][0].update(weight=2**30),
            "crushmap.buckets.0.items.0.weight",
        ),
        (
            lambda d: d["osdmap"]["pools"][0].update(crush_rule=7),
            "osdmap.pools.0.crush_rule",
        ),
        (
            lambda d: d["osdmap"]["pools"][0].update(size=200),
            "osdmap.pools.0.crush_rule",
        ),
        (
            lambda d: d["osdmap"]["pools"][0].update(pg_num=10**400),
            "osdmap.pools.0.pg_num",
        ),
    ],
)
def test_each_wrong_type_is_named_with_its_key(tmp_path, change, key):
    document = report()
    change(document)
    with pytest.raises(
        MeasuredError,
        match=rf"^{re.escape(str(tmp_path))}/r\.json: {re.escape(key)}: got ",
    ):
        describe_cluster(import_cluster([write_report(tmp_path, document)]))


def test_numbers_of_thousands_of_digits_are_refused(tmp_path):
    path = tmp_path / "r.json"
    path.write_text('{"osdmap": {"epoch": ' + "9" * 5000 + "}}")
    with pytest.raises(MeasuredError, match=r"r\.json: got "):
        import_cluster([path])


def test_pools_whose_names_are_paths_are_written_to_the_same_folder(tmp_path):
    document = report()
    pool = document["osdmap"]["pools"][0]
    document["osdmap"]["pools"] = [
        {**pool, "pool": n, "pool_name": name}
        for n, name in ((1, "../a/b"), (2, "..//a/b"))
    ]
    cluster = import_cluster([write_report(tmp_path, document)])
    _, scenarios = describe_cluster(
        cluster, ["../a/b", "..//a/b"], path=tmp_path / "s.toml"
    )
    assert len(scenarios) == 2 and {path.parent for path in scenarios} == {tmp_path}
