"""Files named by a scenario are identified by their content."""

import os
import time

import pytest

from stripesim.scenarios.cells.files import (
    cached_by_content,
    content_of,
    file_sha256,
)
from stripesim.scenarios.schema.scenario import load_scenario


@pytest.fixture
def reads():
    return []


@pytest.fixture
def read(reads):
    @cached_by_content(maxsize=2)
    def read(path, form):
        reads.append(path)
        with open(path) as file:
            return f"{form}: {file.read()}"

    return read


def test_a_file_is_read_once_and_again_when_it_has_changed(tmp_path, read, reads):
    path = str(tmp_path / "a")
    for content in ("one", "two", "six"):
        with open(path, "w") as file:
            file.write(content)
        assert read(path, "x") == read(path, "x") == f"x: {content}"
    assert len(reads) == 3


def test_a_missing_file_is_left_to_the_function(read):
    with pytest.raises(FileNotFoundError):
        read("/none", "x")


def test_a_file_long_unchanged_is_hashed_once(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("one")
    later = time.time_ns() + 10**11
    monkeypatch.setattr("stripesim.scenarios.cells.files.time.time_ns", lambda: later)
    first = file_sha256(path)
    monkeypatch.setattr(
        "stripesim.scenarios.cells.files._hash", lambda path: "hashed again"
    )
    assert file_sha256(path) == first
    # Times of the same second are distinguished by the inode's own.
    before = os.stat(path)
    path.write_text("two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file_sha256(path) == "hashed again"


def test_a_scenario_is_known_by_the_content_of_its_files(tmp_path):
    # Given two CRUSH maps under one name, one after the other.
    contents = []
    for text in ("first", "second", "second"):
        (tmp_path / "map.txt").write_text(text)
        (tmp_path / "s.toml").write_text(
            'schemes = ["rep:3"]\n[cluster]\ncrush_map = "map.txt"\n[workload]\nrequests = 1\n'
        )
        contents.append(content_of(load_scenario(tmp_path / "s.toml")))
    assert contents[0] != contents[1] == contents[2]
