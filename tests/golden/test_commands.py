"""The JSON fields and the files of every command, which other programs rely on.

``commands.json`` holds them. After an intended change, write it anew and read the difference::

    STRIPESIM_WRITE_COMMANDS=1 pytest tests/golden/test_commands.py
"""

import json
import os
import re
from pathlib import Path

import pytest

from support.commands import QUESTIONS, questions

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).with_name("commands.json")

pytestmark = pytest.mark.usefixtures("quick_rebuilds", "quick_figures")


def fields(value, name=""):
    """Yield the path of each field of a document, with the JSON type of its value; lists are ``[]``."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from fields(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        if not value:
            yield f"{name}[]"
        for inner in value:
            yield from fields(inner, f"{name}[]")
    else:
        yield f"{name}: {TYPES[type(value)]}"


TYPES = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "text",
    type(None): "null",
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_json_fields_and_files_are_those_recorded(name, command, tmp_path):
    # given
    question = questions(tmp_path)[name]
    out = tmp_path / "out"
    words = list(question.words)
    if question.has_out:
        words += ["--out", str(out)]
    if question.has_report:
        words.append("--report")
    # when
    status, printed, _ = command(*words, "--json", "-")
    # then
    assert status == 0
    document = json.loads(printed)
    answer = {
        "fields": sorted(set(fields(document))),
        "files": sorted(path.name for path in out.glob("*") if path.is_file()),
    }
    recorded = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    if os.environ.get("STRIPESIM_WRITE_COMMANDS"):
        recorded[name] = answer
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")
        pytest.skip(f"wrote {RECORDED.name}")
    assert answer == recorded[name]


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_reference_names_the_fields_of_each_document(name):
    reference = (ROOT / "docs" / "reference" / "json.md").read_text()
    fields_of_name = json.loads(RECORDED.read_text())[name]["fields"]
    keys = {re.match(r"\w+", field)[0] for field in fields_of_name}
    # Statistics of a trace are listed in part.
    if name == "trace-info":
        keys = {"format", "requests", "read_ratio", "bytes_mean", "duration_s"}
    assert [key for key in sorted(keys) if f"`{key}`" not in reference] == []
