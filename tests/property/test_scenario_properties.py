"""Sizes survive writing and reading, and every key of a TOML document is located on its line."""

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.models.problems import ProblemsError, ScenarioError
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.scenarios.schema.toml import KeyPath, locate_keys
from stripesim.scenarios.schema.units import format_size, parse_size_bytes

ROUND_SIZES = st.builds(
    lambda number, base, power: number * base**power,
    st.integers(0, 999),
    st.sampled_from([1000, 1024]),
    st.integers(0, 4),
)
SIZES = st.integers(0, 2**63 - 1) | ROUND_SIZES


@given(SIZES)
def test_a_size_written_is_read_back(size_bytes: int) -> None:
    assert parse_size_bytes(format_size(size_bytes)) == size_bytes


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_size_error(text: str) -> None:
    refused = None
    try:
        assert 0 <= parse_size_bytes(text) < 2**63
    except ProblemsError as error:
        refused = str(error)
    assert refused is None or repr(text) in refused


KEYS = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,5}", fullmatch=True),
    st.sampled_from(['"a.b"', "'c]'", '"d \\" = #"', '""', '"\\u0041"']),
)
SPACE = st.sampled_from(["", " ", "\t"])
SCALARS = st.sampled_from(
    ["1", "-2.5e3", "true", "1979-05-27 07:32:00", '"a # ] } , b"', "'C:\\'", '"\\"\\\\"', '""', '"""a"""',
     '"""\n[x]\ny = 1\n"""',
     '"""two "" quotes"""""', "'''\n\"\"\"\n'''''", '"""\\\n  z = 2"""', '"""\\""""', "''''q'''"]
)  # fmt: skip
GAP = st.sampled_from(["", " ", "\n", " # ] }\n  ", "\n\n"])


@st.composite
def arrays(draw: st.DrawFn, items: st.SearchStrategy[str]) -> str:
    parts = [draw(GAP) + item + draw(GAP) for item in draw(st.lists(items, max_size=3))]
    return (
        "["
        + ",".join(parts)
        + (draw(st.sampled_from([",", ""])) if parts else "")
        + draw(GAP)
        + "]"
    )


@st.composite
def inline_tables(draw: st.DrawFn, items: st.SearchStrategy[str]) -> str:
    pairs = [
        f"{draw(SPACE)}{draw(KEYS)} ={draw(SPACE)}{item} "
        for item in draw(st.lists(items, max_size=3))
    ]
    return "{" + ",".join(pairs) + "}"


VALUES = st.recursive(
    SCALARS, lambda items: arrays(items) | inline_tables(items), max_leaves=6
)
DOTTED = st.lists(KEYS, min_size=1, max_size=3).map(" . ".join)
LINES = st.one_of(
    st.builds(
        lambda key, space, value: f"{key}{space}={space}{value}", DOTTED, SPACE, VALUES
    ),
    DOTTED.map(lambda key: f"[ {key} ] # [x]"),
    DOTTED.map(lambda key: f"[[{key}]]"),
    st.sampled_from(["", "# a = 1", "   "]),
)


def paths(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from paths(item, (*path, key))


@given(st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_every_key_of_a_document_is_located(lines: list[str], newline: str) -> None:
    # Lines that do not go together with those before them are left out, so most examples are long.
    kept: list[str] = []
    for line in lines:
        try:
            tomllib.loads("\n".join([*kept, line]))
        except tomllib.TOMLDecodeError:
            continue
        kept.append(line)
    text = newline.join("\n".join(kept).split("\n"))
    document = tomllib.loads(text)
    located = locate_keys(text)
    assert set(paths(document)) - {()} == set(located)
    # A top-level key is first written on its line, so the document up to the line before does not have it.
    rows = text.replace("\r\n", "\n").split("\n")
    for path, line in located.items():
        assert 1 <= line <= len(rows)
        if len(path) == 1:
            before = "\n".join(rows[: line - 1])
            assert path[0] not in tomllib.loads(before)


@given(st.text(max_size=60))
def test_any_text_is_a_scenario_or_a_scenario_error(text: str) -> None:
    with pytest.raises(ScenarioError, match="wanted"):
        parse_scenario(text)


@given(st.text(max_size=30))
def test_any_override_is_applied_or_refused(item: str) -> None:
    faults = []
    try:
        parse_scenario('schemes = ["rep:3"]\nworkload.requests = 1\n', sets=[item])
    except ScenarioError as error:
        faults = error.faults
    assert all(line.startswith("--set: ") and ", wanted " in line for line in faults)
