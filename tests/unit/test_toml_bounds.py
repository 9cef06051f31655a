"""Scenarios of hostile size: refused before they are parsed, or read in time linear in their length."""

import time

import pytest

from stripesim.models.problems import ScenarioError
from stripesim.scenarios.schema.keys import (
    BLOCK_SIZES_MAX,
    HOST_GROUPS_MAX,
    SCHEMES_MAX,
)
from stripesim.scenarios.schema.loader import OVERRIDES_MAX, PROBLEMS_MAX
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from stripesim.scenarios.schema.toml_bounds import (
    DEPTH_MAX,
    KEY_PARTS_MAX,
    LINES_MAX,
    TEXT_MAX,
    VALUES_MAX,
    WORD_MAX,
    parse_toml,
)

HEAD = 'schemes = ["rep:3"]\n[workload]\nrequests = 10\n'
#: Processor time that a document within the bounds may take [s]: some tenths, with room for a slow machine.
#: Quadratic parsing would take ten times as long for each document below.
SECONDS_MAX = 3.0


def lines_of_refusal(text, **more):
    """Return the lines of the error that a scenario gives, which must come in time."""
    start_s = time.process_time()
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, label="s.toml", **more)
    assert time.process_time() - start_s < SECONDS_MAX
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "line", "number"),
    [
        (".".join("a" * 50_000) + " = 1", 1, 50_000),
        ("x = 1\n[" + ".".join("a" * 19_000) + "]", 2, 19_000),
        ("x = " + "[" * 150 + "]" * 150, 1, 150),
        ("x = " + "{a=" * 150 + "1" + "}" * 150, 1, 150),
        ("\n\nx = " + "1" * 4000, 3, 4000 + len(" ")),
        ("\nk" + "k" * 4000 + " = 1", 2, 4001 + len(" ")),
        ("#\n" * (LINES_MAX + 1), LINES_MAX, LINES_MAX + 1),
        ("x = [" + "1," * VALUES_MAX + "]", 1, VALUES_MAX + len("=[")),
        (
            "".join(f"k{number} = 1\n" for number in range(VALUES_MAX + 1)),
            1,
            VALUES_MAX + 1,
        ),
        ("#" * (TEXT_MAX + 1), 1, TEXT_MAX + 1),
    ],
)
def test_each_bound_is_refused_with_the_line_and_the_number(text, line, number):
    with pytest.raises(ScenarioError) as caught:
        parse_toml(text, "file")
    (problem,) = caught.value.problems
    assert problem.place == f"file:{line}"
    assert f"{number:,}" in problem.got


def test_strings_and_comments_have_no_structure():
    opaque = ".".join("a" * 50) + "[" * 50 + "=" * 10
    text = f"""# {opaque} " '
a = "{opaque} # ' \\""
b = '{opaque} " \\'
c = \"\"\"
{opaque} "" \\\"\"\"\"\"\"
d = '''{opaque} '' '''
"e.f" = 1.5
"""
    values = parse_toml(text)
    assert list(values) == ["a", "b", "c", "d", "e.f"]
    assert values["b"] == f'{opaque} " \\'


def test_input_at_every_bound_is_read():
    deepest = "x" + ".x" * (KEY_PARTS_MAX - 1) + " = 1\n"
    nested = "y = " + "[" * (DEPTH_MAX - 1) + "]" * (DEPTH_MAX - 1) + "\n"
    longest = "k" * (WORD_MAX - 1) + " = 1\n"
    assert len(parse_toml(deepest + nested + longest)) == 3


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "".join(f"k{number} = 1\n" for number in range(19_000)),
        HEAD + "[repair]\nlost_osds = [" + ",".join(map(str, range(19_000))) + "]",
        HEAD + "ops = [" + '"read",' * 19_000 + "]",
        HEAD + "[faults]\n" + "[[faults.events]]\nosds = [1]\nat_s = 1\n" * 2400,
    ],
    ids=[
        "unknown keys",
        "OSDs that are not there",
        "one operation again and again",
        "one failure again",
    ],
)
def test_many_problems_are_counted_beyond_the_first(text):
    lines = lines_of_refusal(text)
    assert len(lines) <= PROBLEMS_MAX + 1
    assert max(map(len, lines)) < 1000


def test_omitted_problems_are_counted():
    lines = lines_of_refusal(
        HEAD + "".join(f"k{number} = 1\n" for number in range(1060))
    )
    assert lines[0].startswith("s.toml:4: workload.k0: ")
    assert lines[PROBLEMS_MAX - 1].startswith(f"s.toml:{4 + PROBLEMS_MAX - 1}: ")
    assert f"{1060 - PROBLEMS_MAX:,}" in lines[PROBLEMS_MAX]


@pytest.mark.parametrize(
    ("text", "key", "most"),
    [
        (
            HEAD + f"block_sizes_bytes = {list(range(1, 10_000))}",
            "workload.block_sizes_bytes",
            BLOCK_SIZES_MAX,
        ),
        (
            "schemes = [" + '"rep:3",' * 10_000 + "]\n[workload]\nrequests = 1",
            "schemes",
            SCHEMES_MAX,
        ),
        (
            HEAD + "[cluster]\n" + "[[cluster.hosts]]\n" * 5000,
            "cluster.hosts",
            HOST_GROUPS_MAX,
        ),
    ],
)
def test_lists_that_other_keys_multiply_are_bounded(text, key, most):
    (line,) = lines_of_refusal(text)
    assert f": {key}: got " in line
    assert f"{most:,}" in line


def test_many_schemes_on_many_hosts_are_checked_in_time():
    """900 schemes × 4,000 groups of hosts: each rule counts the failure domains once, not for each scheme."""
    schemes = ", ".join(f'"rs:{k},{m}"' for k in range(1, 91) for m in range(1, 11))
    hosts = "[[cluster.hosts]]\nosds = 20\n" * HOST_GROUPS_MAX
    losses = "[repair]\nlost_osds = [0, 20]\n"
    text = f"schemes = [{schemes}]\n{hosts}[workload]\nrequests = 10\n{losses}"
    lines = lines_of_refusal(text)
    # Two hosts are lost: the 90 codes of one parity do not survive that.
    assert f"{90 - PROBLEMS_MAX} " in lines[-1]


def test_a_long_key_or_path_is_cut_in_messages():
    (line,) = lines_of_refusal(f"'{'k' * 900_000}' = 1\n" + HEAD)
    assert len(line) < 500
    (line,) = lines_of_refusal(HEAD + f"[cluster]\ncrush_map = '{'x/' * 400_000}'\n")
    assert len(line) < 500


def test_a_file_is_not_read_beyond_the_bound(tmp_path):
    path = tmp_path / "big.toml"
    path.write_bytes(b"#" * (TEXT_MAX + 1))
    with pytest.raises(ScenarioError, match=f"{TEXT_MAX:,}"):
        load_scenario(path)
    with pytest.raises(ScenarioError, match=f"{TEXT_MAX:,}"):
        load_scenario("/dev/zero")


@pytest.mark.parametrize(
    ("sets", "number"),
    [
        (["workload.requests=5"] * (OVERRIDES_MAX + 1), f"{OVERRIDES_MAX + 1:,}"),
        ([".".join("a" * 50_000) + "=1"], "a.a"),
        (["schemes=[" + '"rep:3",' * 30_000 + "]"], "schemes"),
    ],
)
def test_overrides_are_bounded(sets, number):
    (line,) = lines_of_refusal(HEAD, sets=sets)
    assert line.startswith("--set: ")
    assert number in line
    assert len(line) < 500
