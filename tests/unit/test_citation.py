"""Citations: valid BibTeX of the tool and of what a run used, from a bibliography kept once."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from stripesim._version import __version__
from stripesim.calibration.parameters.sets import names
from stripesim.models.coding.own_files import RESERVED
from stripesim.scenarios.answers import cite as citation
from stripesim.scenarios.answers.cite import bibtex_text, cite_run, cite_tool
from stripesim.scenarios.studies.registry import STUDIES

ROOT = Path(__file__).resolve().parents[2]
DATA = tomllib.loads(
    (ROOT / "scenarios" / "answers" / "references.toml").read_text("utf-8")
)


def parsed(text):
    """Read BibTeX strictly: type, key and fields of each entry; braces must balance within each value."""
    entries = {}
    for kind, key, body in re.findall(r"@(\w+)\{([\w.-]+),\n(.*?)\n\}", text, re.S):
        fields = {}
        for line in body.splitlines():
            name, value = re.fullmatch(r"  (\w+) = \{(.*)\},", line).groups()
            queue_depth = 0
            for mark in re.findall(r"(?<!\\)[{}]", value):
                queue_depth += 1 if mark == "{" else -1
                assert queue_depth >= 0, line
            assert queue_depth == 0, line
            if name not in ("url", "doi", "eprint"):
                assert not re.search(r"(?<!\\)[&%#_]", value), line
            fields[name] = value
        assert key not in entries, key
        entries[key] = (kind, fields)
    # Nothing is left between entries.
    left = re.sub(r"@(\w+)\{([\w.-]+),\n(.*?)\n\}", "", text, flags=re.S)
    assert not left.strip()
    return entries


def written(folder, **changes):
    """Write the provenance of a run into a folder."""
    provenance = {
        "stripesim": "0.1.9",
        "configuration": {
            "schemes": ["rep:3", "clay:4,2,5"],
            "generation": "reef",
            "cluster": {"parameters": "nvme", "drive": "samsung-pm983"},
        },
        **changes,
    }
    folder.mkdir(exist_ok=True)
    (folder / "provenance.json").write_text(json.dumps(provenance), encoding="utf-8")
    return folder


def test_the_tool_alone_agrees_with_the_citation_file():
    (tool,) = cite_tool()
    stated = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f'title: "{tool.fields["title"]}"' in stated
    assert f'name: "{tool.fields["author"]}"' in stated
    assert f"version: {__version__}" in stated
    assert tool.fields["howpublished"] == f"Version {__version__}"
    released = f"{tool.fields['year']}-{int(tool.fields['month']):02d}-"
    assert f"date-released: {released}" in stated


def test_a_post_of_ceph_has_the_address_of_its_path_in_the_data():
    tables = ("nvme/data/times.csv", "s3/data/s3.csv", "cores/data/cores.csv")
    rows = "".join(
        (ROOT / "scenarios/studies" / table).read_text("utf-8") for table in tables
    )
    paths = {
        entry["url"].removeprefix("https://ceph.io/en/").rstrip("/")
        for entry in DATA["entries"].values()
        if entry.get("url", "").startswith("https://ceph.io/")
    }
    assert len(paths) == 16
    # These two have no rows of studies of rates.
    quoted = {
        "news/blog/2022/rocksdb-tuning-deep-dive",
        "news/blog/2022/mclock-vs-wpq-testing-with-background-ops-part1",
    }
    for path in paths - quoted:
        assert f"src/en/{path}" in rows


def test_the_address_of_an_entry_is_an_address_once():
    seen = {}
    for key, entry in DATA["entries"].items():
        address = entry.get("doi") or entry.get("url")
        if address is None:
            continue
        # A DOI has a prefix of the registrant and no server: bibliographies add doi.org.
        pattern = r"10\.\d{4,}/\S+" if "doi" in entry else r"https://[\w.-]+/\S*"
        assert re.fullmatch(pattern, address), key
        assert seen.setdefault(address, key) == key


def test_one_source_has_no_confirmed_address_and_says_so():
    without = {
        key: entry["note"]
        for key, entry in DATA["entries"].items()
        if not {"url", "doi", "eprint"} & entry.keys()
    }
    assert list(without) == ["han2024"]
    assert "No address of the paper is confirmed" in without["han2024"]


def test_a_run_cites_its_own_version_sets_release_and_schemes(tmp_path):
    entries = {entry.key: entry for entry in cite_run(written(tmp_path))}

    assert entries["stripesim"].fields["howpublished"] == "Version 0.1.9"
    assert entries["stripesim-nvme"].role == "parameters"
    # The counts are those of the set that ships today.
    note = entries["stripesim-nvme"].fields["note"]
    assert re.match(
        rf"In version {re.escape(__version__)}: \d+ numbers: .*fitted", note
    )
    assert entries["ceph-reef"].fields["howpublished"].startswith("Source code, v18")
    # Clay's paper, the drive's data sheet, CRUSH, and the host of the fit; no LRC, no study.
    assert {"vajha2018", "pm983", "weil2006", "clyso2024"} <= set(entries)
    assert not {"sathiamoorthy2013", "han2024"} & set(entries)


def test_a_set_of_an_earlier_version_is_cited_as_such(tmp_path):
    # 0.2.0 called the set kraken so, and the drive `ssd`.
    drive = {"channels": None, "read_base_ns": None}
    cluster = {"parameters": "koh2017", "ssd": "intel-730", "drive": drive}
    configuration = {"schemes": ["rep:3"], "cluster": cluster}
    folder = written(tmp_path, stripesim="0.2.0", configuration=configuration)
    entries = {entry.key: entry for entry in cite_run(folder)}
    sets = {key for key, entry in entries.items() if entry.role == "parameters"}
    assert sets == {"stripesim-koh2017", "stripesim-intel-730"}
    fields = entries["stripesim-koh2017"].fields
    assert fields["howpublished"] == "Version 0.2.0"
    assert fields["note"] == f"A set that version {__version__} does not have"


def test_a_sweep_cites_what_it_varied(tmp_path):
    folder = written(tmp_path)
    (folder / "results.csv").write_text(
        'cluster.drive,scheme\nintel-730,"rs:4,2"\nhdd-7200,"lrc:4,3,2"\n',
        encoding="utf-8",
    )
    keys = {entry.key for entry in cite_run(folder)}
    assert {"stripesim-intel-730", "stripesim-hdd-7200", "hc310"} <= keys
    assert "sathiamoorthy2013" in keys


def test_a_study_cites_its_source(tmp_path):
    (tmp_path / "provenance.json").write_text(
        json.dumps({"stripesim": "0.2.0", "study": "exstorus2019"}),
        encoding="utf-8",
    )
    assert {entry.key for entry in cite_run(tmp_path)} == {"stripesim", "kim2019"}


def test_own_sets_and_codes_are_named(tmp_path):
    folder = written(
        tmp_path,
        configuration={"schemes": ["none"], "cluster": {"parameters": "a/my set.toml"}},
        codes=[{"file": "x/halves.py", "sha256": "ab" * 32}],
    )
    entries = {entry.key: entry for entry in cite_run(folder)}
    assert entries["stripesim-my-set"].fields["title"] == "Parameter set my set.toml"
    assert entries["code-halves-abababab"].role == "code"


def test_every_entry_is_valid_and_used():
    every = {key: citation._source(key) for key in DATA["entries"]}
    text = "\n\n".join(entry.bibtex() for entry in every.values())

    entries = parsed(text)

    assert entries.keys() == every.keys()
    assert text.isascii()
    required = {"article": "journal", "inproceedings": "booktitle"}
    for kind, fields in entries.values():
        assert {"author", "title"} <= fields.keys()
        if kind in required:
            assert {required[kind], "year"} <= fields.keys()
    used = {key for keys in DATA["parameters"].values() for key in keys}
    used |= {key for keys in DATA["schemes"].values() for key in keys}
    used |= {key for study in DATA["studies"].values() for key in study["sources"]}
    assert used | set(DATA["placement"]["sources"]) == DATA["entries"].keys()


def test_every_set_scheme_and_study_has_its_sources():
    assert DATA["parameters"].keys() == set(names())
    assert DATA["schemes"].keys() == set(RESERVED)
    assert DATA["studies"].keys() == set(STUDIES)
    for study in DATA["studies"].values():
        assert set(study["parameters"]) <= set(names())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a & b", r"a \& b"),
        ("50 %", r"50 \%"),
        ("a_b #1 $", r"a\_b \#1 \$"),
        ("Zürich", r"Z{\"u}rich"),
        ("Çelik, Åse, Dvořák", r"{\c{C}}elik, {\r{A}}se, Dvo{\v{r}}{\'a}k"),
        ("Groß, Sørensen", r"Gro{\ss}, S{\o}rensen"),
        ("{x}", r"\{x\}"),
        ("1–2", "1--2"),
    ],
)
def test_special_characters_are_escaped(text, wanted):
    assert bibtex_text(text) == wanted


def test_the_command_prints_bibtex_and_json(tmp_path, command):
    folder = written(tmp_path / "run")

    status, out, err = command("cite", folder)
    assert (status, err) == (0, "")
    keys = list(parsed(out))

    status, out, _ = command("cite", folder, "--json", "-")
    document = json.loads(out)
    assert [entry["key"] for entry in document["entries"]] == keys
    assert document["run"] == str(folder)
    assert keys[0] == "stripesim"


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        (None, "", "provenance.json"),
        ("provenance.json", "{", "JSON"),
        ("provenance.json", "[1]", "stripesim"),
        ("provenance.json", '{"other": 1}', "stripesim"),
        ("provenance.json", '{"stripesim": "0.1", "study": "none"}', "study"),
        ("provenance.json", '{"stripesim": "0.1"}', "configuration"),
        (
            "provenance.json",
            '{"stripesim": "0.1", "configuration": {"schemes": 3, "cluster": 4}}',
            "configuration",
        ),
        (
            "provenance.json",
            '{"stripesim": "0.1", "configuration": {}, "codes": 1}',
            "codes",
        ),
        ("load.json", '{"curves": []}', "stripesim"),
    ],
)
def test_a_folder_that_is_no_run_is_refused(tmp_path, command, name, content, named):
    if name is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    status, out, err = command("cite", tmp_path)
    assert (status, out) == (2, "")
    assert str(tmp_path) in err
    assert named in err
    assert "Traceback" not in err


def test_a_missing_folder_is_refused(tmp_path, command):
    status, _, err = command("cite", tmp_path / "nothing")
    assert status == 2
    assert "nothing" in err


@pytest.mark.parametrize(
    ("placement", "detection_s", "used"),
    [
        # Pools of drives with a stated rebuild use neither a cluster nor Ceph: the code alone.
        ("clustered", 600.0, ["stripesim"]),
        ("clustered", None, ["stripesim", "ceph-reef"]),
        ("crush", 600.0, ["stripesim", "stripesim-nvme", "stripesim-samsung-pm983"]),
    ],
)
def test_durability_without_a_cluster_cites_no_parameters_of_one(
    tmp_path, placement, detection_s, used
):
    configuration = {
        "schemes": ["rs:8,2"],
        "generation": "reef",
        "cluster": {"parameters": "nvme", "drive": "samsung-pm983"},
        "durability": {"placement": placement, "detection_s": detection_s},
    }
    folder = written(tmp_path, configuration=configuration, method="all")
    keys = [entry.key for entry in cite_run(folder)]
    assert keys[: len(used)] == used
    assert ("weil2006" in keys) == (placement == "crush")
    assert len(keys) == len(used) or placement == "crush"
