"""Codes from outside the checkout: files, installed packages, worker processes, and wrong files."""

import hashlib
import importlib
import itertools
import json
import linecache
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import numpy as np
import pytest

import stripesim
from stripesim.models.coding import (
    ReedSolomon,
    class_file,
    load_code_file,
    own_files,
    parse_scheme,
    repair_reads,
)
from stripesim.models.problems import OwnCodeError, SchemeError
from stripesim.scenarios.cells.notes import drive_reads, repair_warning
from stripesim.sim.durability.system import code_of

# k data shards in two halves, each with an XOR parity (shards k + 2 and k + 3), and two global parities.
HALVES = dedent("""\
    import numpy as np

    from stripesim.codes import cauchy_matrix, invert, matrix_product


    class Halves:
        form = "halves:k"
        costs_as = "rs:6,3"

        def __init__(self, k):
            self.k = k
            self.m = 4
            half = k // 2
            self.groups = [{*range(half), k + 2}, {*range(half, k), k + 3}]

        def generator(self):
            matrix = np.zeros((self.k + 4, self.k), dtype=np.uint8)
            matrix[: self.k + 2] = cauchy_matrix(self.k, 2)
            matrix[self.k + 2, : self.k // 2] = 1
            matrix[self.k + 3, self.k // 2 :] = 1
            return matrix

        def repair(self, lost, available):
            for group in self.groups:
                if len(lost) == 1 and lost < group and group - lost <= available:
                    return {shard: [0] for shard in group - lost}
            return None

        def encode(self, data):
            return matrix_product(self.generator()[self.k :], data)

        def decode(self, shards):
            rows = sorted(shards)[: self.k]
            chunks = np.array([shards[shard] for shard in rows])
            return matrix_product(invert(self.generator()[rows]), chunks)
    """)

# Two sub-chunks per chunk: the second parity's first half carries the first data shard's second half.
PIGGYBACK = dedent("""\
    import numpy as np


    class Piggyback:
        form = "piggyback:k"
        costs_as = "rs:4,2"
        sub_chunks = 2

        def __init__(self, k):
            self.k = k
            self.m = 2

        def generator(self):
            from stripesim.codes import cauchy_matrix

            plain = cauchy_matrix(self.k, 2)
            matrix = np.kron(plain, np.eye(2, dtype=np.uint8))
            # Second sub-chunk of the last parity += first sub-chunk of shard 0.
            matrix[2 * self.k + 3, 0] ^= 1
            return matrix

        def repair(self, lost, available):
            if lost != {0} or len(available) < self.k + 1:
                return None
            # Second halves of k shards give b; the last parity's second half then gives a of shard 0.
            return {shard: [1] for shard in range(1, self.k + 2)}
    """)

SCENARIO = dedent("""\
    schemes = ["rs:6,4", "halves:6"]
    codes = ["halves.py"]
    generation = "kraken"

    [cluster]
    hosts = 10
    osds_per_host = 1
    pg_num = 16
    parameters = "kraken"

    [workload]
    ops = ["write"]
    patterns = ["rand"]
    block_sizes_bytes = ["4k"]
    queue_depth = 4
    requests = 40
    """)


@pytest.fixture(autouse=True)
def no_own_codes(monkeypatch):
    """Forget the codes that a test loads."""
    monkeypatch.setattr(own_files, "_families", {})
    monkeypatch.setattr(own_files, "_loaded", {})
    monkeypatch.setattr(own_files, "_noted", [])
    own_files._installed.cache_clear()
    yield
    own_files._installed.cache_clear()


@pytest.fixture
def halves(tmp_path):
    path = tmp_path / "halves.py"
    path.write_text(HALVES, encoding="utf-8")
    return path


@pytest.fixture
def scenario(halves):
    path = halves.with_name("s.toml")
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def repaired(code, shard, *, unavailable=()):
    """Plan the repair of one shard of an object of one stripe with chunks of 4 KiB."""
    return code.plan_repair(
        lost=frozenset({shard}),
        object_size_bytes=4096 * code.k,
        geometry=code.geometry(4096),
        unavailable=frozenset(unavailable),
    )


def test_a_code_of_a_file_is_planned_by_its_matrix_and_its_repairs(halves):
    assert load_code_file(halves) == ["halves:k"]

    code = parse_scheme("halves:6")

    assert (code.k, code.m, code.name) == (6, 4, "halves:6")
    # A shard of a half and its XOR parity: 3 reads instead of 6.
    assert [extent.shard for extent in repaired(code, 0).reads] == [1, 2, 8]
    assert [extent.shard for extent in repaired(code, 9).reads] == [3, 4, 5]
    # A global parity is in no half, and neither is a half usable whose parity is away.
    assert len(repaired(code, 6).reads) == 6
    assert [extent.shard for extent in repaired(code, 0, unavailable=[8]).reads] == [
        1, 2, 3, 4, 5, 6,
    ]  # fmt: skip


def test_the_matrix_decides_which_losses_can_be_decoded(halves):
    load_code_file(halves)
    code = parse_scheme("halves:6")
    # Three data shards of a half are three unknowns in three equations: its XOR and both global parities.
    # Without the XOR two equations are left.
    assert code.failures_tolerated == 3
    assert code.can_decode(frozenset({0, 1, 2}))
    assert not code.can_decode(frozenset({0, 1, 2, 8}))
    assert code.can_decode(frozenset({0, 1, 3, 4}))


def test_sub_chunks_are_read_as_runs_of_every_chunk(tmp_path):
    path = tmp_path / "piggyback.py"
    path.write_text(PIGGYBACK, encoding="utf-8")
    load_code_file(path)
    code = parse_scheme("piggyback:4")

    plan = repaired(code, 0)

    # Half a chunk of each of five shards: 2.5 chunks instead of 4.
    assert sum(extent.length_bytes for extent in plan.reads) == 5 * 2048
    assert {extent.offset_bytes for extent in plan.reads} == {2048}
    assert code.failures_tolerated == 2
    # Two stripes: the second chunk of a shard follows the first one.
    two = code.plan_repair(
        lost=frozenset({0}),
        object_size_bytes=2 * 4 * 4096,
        geometry=code.geometry(4096),
    )
    assert {extent.offset_bytes for extent in two.reads} == {2048, 4096 + 2048}
    # No repair of its own for another shard.
    assert sum(extent.length_bytes for extent in repaired(code, 1).reads) == 4 * 4096


def test_an_mds_code_of_a_file_gives_the_row_of_reed_solomon(tmp_path):
    own = dedent("""\
        from stripesim.codes import cauchy_matrix


        class Twin:
            form = "twin:k,m"
            costs_as = "rs:4,2"

            def __init__(self, k, m):
                self.k, self.m = k, m

            def generator(self):
                return cauchy_matrix(self.k, self.m)
        """)
    (tmp_path / "halves.py").write_text(own, encoding="utf-8")
    (tmp_path / "s.toml").write_text(
        SCENARIO.replace('"rs:6,4", "halves:6"', '"rs:4,2", "twin:4,2"'),
        encoding="utf-8",
    )

    rows = stripesim.run(tmp_path / "s.toml", costs=False).rows

    measured = [
        name for name in rows.columns if name not in ("scheme", "engine_wall_s")
    ]
    reed_solomon, twin = rows.select(measured).rows()
    assert twin == reed_solomon


def test_a_scenario_runs_and_names_the_file_in_its_provenance(scenario, halves):
    result = stripesim.run(scenario, costs=False)

    assert result.rows["scheme"].to_list() == ["rs:6,4", "halves:6"]
    # Both write ten chunks for a write of 4 KiB.
    rates = result.rows["device_write_bytes_per_client_byte"].to_list()
    assert rates[0] == pytest.approx(rates[1], rel=0.02)
    made = result.provenance["codes"]
    assert [entry["file"] for entry in made] == ["halves.py"]
    assert any("costs_as" in line for line in result.holes)


def test_workers_load_the_file(scenario):
    # The swept key makes two points of two schemes.
    alone = stripesim.sweep(scenario, {"workload.queue_depth": [1, 2]}, jobs=1)
    shared = stripesim.sweep(scenario, {"workload.queue_depth": [1, 2]}, jobs=2)

    assert shared.rows.height == 4
    assert shared.rows["completions_sha256"].to_list() == (
        alone.rows["completions_sha256"].to_list()
    )


def test_an_edited_file_replaces_its_codes(halves):
    load_code_file(halves)
    assert parse_scheme("halves:6").m == 4
    halves.write_text(HALVES.replace("halves:k", "parts:k"), encoding="utf-8")

    load_code_file(halves)

    assert parse_scheme("parts:6").m == 4
    with pytest.raises(SchemeError):
        parse_scheme("halves:6")


def test_an_installed_package_offers_its_codes(halves, monkeypatch):
    # What pip writes for a package that states the entry point.
    installed = halves.parent / "mine-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n", encoding="utf-8"
    )
    (installed / "entry_points.txt").write_text(
        "[stripesim.codes]\nhalves = halves:Halves\nwrong = halves:Nothing\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(halves.parent)
    monkeypatch.delitem(sys.modules, "halves", raising=False)

    assert parse_scheme("halves:4").width == 8
    with pytest.raises(OwnCodeError, match=r"wrong = halves:Nothing.*AttributeError"):
        parse_scheme("wrong:4")


def test_the_kernel_is_timed_and_checked_against_the_matrix(halves):
    from stripesim.calibration.kernels.measure import measure

    load_code_file(halves)

    rows = measure(["halves:6"], [6 * 64], rounds=1, sample_s=0)

    # The first six of the remaining shards decode up to two losses; three need another choice of shards.
    verified = {(row["op"], row["erasures"]): row["verified"] for row in rows}
    assert verified[("encode", 0)]
    assert verified[("decode", 2)]


MATRIX = "def generator(self): return np.ones((self.k + self.m, self.k), dtype=int)"


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ("def f(:\n", ":1:", "syntax error"),
        ("a = 1\nb = a / 0\n", "line 2", "ZeroDivisionError"),
        ("import nothing_of_this_name\n", "line 1", "ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "line 1", "SystemExit"),
        ("class Stop(BaseException): pass\nraise Stop\n", "line 2", "Stop"),
        ("a = 1\n", "", "form"),
        ("class A:\n    form = 'A'\n", ":1:", "form"),
        ("class A:\n    form = 'a:k'\n", ":1:", "generator"),
        ("class A:\n    form = 'rs:k'\n    generator = print\n", ":1:", "rs"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path, text, line, named):
    path = tmp_path / "wrong.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OwnCodeError) as refused:
        load_code_file(path)
    assert "wrong.py" in str(refused.value)
    assert line in str(refused.value)
    assert named in str(refused.value)


@pytest.mark.parametrize("name", ["/dev/zero", ".", "nothing.py", "~nobody-/x.py"])
def test_a_path_that_is_no_file_is_refused(name):
    with pytest.raises(OwnCodeError) as refused:
        load_code_file(name)
    assert name in str(refused.value)


def test_a_huge_file_is_refused(tmp_path):
    path = tmp_path / "huge.py"
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(OwnCodeError, match="1,048,576 bytes"):
        load_code_file(path)


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("self.m = 4", "pass", "m"),
        ("self.m = 4", "self.m = 2.5", "m"),
        ("self.m = 4", "self.m = 3", "generator"),
        ("return matrix\n", "return None\n", "generator"),
        ("return matrix\n", "return [[1], [1, 2]]\n", "generator"),
        ("return matrix\n", "return matrix[::-1]\n", "identity"),
        ("return matrix\n", "return matrix * 1.5\n", "whole numbers"),
        ("return matrix\n", "return matrix.astype(int) * 256\n", "to 255"),
        ("return matrix\n", "return self.nothing\n", "AttributeError"),
        ("return matrix\n", "raise SystemExit(0)\n", "SystemExit"),
        ("return matrix\n", "raise GeneratorExit\n", "GeneratorExit"),
        ("{shard: [0] for", "{shard: (exit() for _ in '0') for", "SystemExit"),
        ('costs_as = "rs:6,3"', "sub_chunks = 0", "sub_chunks"),
        ("{shard: [0] for", "{shard: [1] for", "sub-chunks"),
        ("{shard: [0] for shard in group - lost}", "{99: [0]}", "99"),
        ("{shard: [0] for shard in group - lost}", "[1, 2]", "repair"),
        # Two of the three shards do not determine the lost one.
        ("in group - lost}", "in sorted(group - lost)[:2]}", "unknown"),
    ],
)
def test_a_description_that_makes_no_code_is_refused(halves, before, after, named):
    assert before in HALVES
    halves.write_text(HALVES.replace(before, after, 1), encoding="utf-8")
    load_code_file(halves)
    with pytest.raises(OwnCodeError) as refused:
        parse_scheme("halves:6")
    assert "halves.py:6: Halves(6)" in str(refused.value)
    assert named in str(refused.value)


def test_optimised_pools_refuse_own_codes(scenario):
    with pytest.raises(ValueError, match="whole stripes"):
        stripesim.run(scenario, sets=["generation=tentacle", "schemes=halves:6"])


def test_a_code_without_costs_is_refused(scenario, halves):
    halves.write_text(HALVES.replace("costs_as", "unused"), encoding="utf-8")
    with pytest.raises(ValueError, match="costs_as"):
        stripesim.run(scenario)


@pytest.mark.parametrize(("lender", "guessed"), [("rs:6,3", 0), ("rs:9,2", 1)])
def test_borrowed_costs_that_are_interpolated_say_how_well(
    scenario, halves, lender, guessed
):
    # Nobody timed RS(9,2).
    text = HALVES.replace('costs_as = "rs:6,3"', f'costs_as = "{lender}"')
    halves.write_text(text, encoding="utf-8")
    warnings = stripesim.run(scenario, costs=False).holes
    assert any(f"those of {lender} cost (costs_as)" in line for line in warnings)
    of_lender = [line for line in warnings if line.startswith(f"{lender}: ")]
    assert len(of_lender) == guessed
    assert all("is interpolated from" in line for line in of_lender)


@pytest.fixture
def command(command, monkeypatch, tmp_path):
    """Call the command line in the folder of the file."""
    monkeypatch.chdir(tmp_path)
    return command


def test_commands_accept_the_file(halves, command):
    options = ("--code", "halves.py", "--scheme", "halves:6", "--json", "-")
    status, out, err = command("explain", "repair", *options)
    assert status == 0, err
    assert [request["scheme"] for request in json.loads(out)["requests"]] == [
        "halves:6"
    ]


def test_a_scenario_with_a_wrong_file_ends_with_its_lines(scenario, halves, command):
    halves.write_text("def f(:\n", encoding="utf-8")
    status, out, err = command("run", "s.toml")
    assert (status, out) == (2, "")
    assert "Traceback" not in err
    assert any(
        line.startswith("s.toml:2: codes") and "halves.py:1:" in line
        for line in err.splitlines()
    )


@pytest.mark.parametrize("place", ["generator", "repair"])
def test_a_code_that_exits_ends_with_its_line_and_status_2(
    scenario, halves, command, place
):
    before = {"generator": "return matrix\n", "repair": "return {shard: [0]"}[place]
    exits = f"import sys; sys.exit(0); {before}"
    assert before in HALVES
    halves.write_text(HALVES.replace(before, exits, 1), encoding="utf-8")
    status, out, err = command("run", "s.toml")
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert "halves.py:6: Halves(6)" in line
    assert "SystemExit" in line


@pytest.fixture
def cells(tmp_path, monkeypatch):
    """Execute cells as a notebook does: in one module, with sources that no file has."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    own_files.class_folder.cache_clear()
    notebook = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", notebook)
    numbers = itertools.count()

    def run_cell(cell):
        name = f"<cell {next(numbers)} of {tmp_path}>"
        linecache.cache[name] = (len(cell), None, cell.splitlines(True), name)
        exec(compile(cell, name, "exec"), vars(notebook))
        return notebook

    yield run_cell
    own_files.class_folder.cache_clear()


#: The imports of HALVES are in one cell, a function and a value in another, the class in a third.
IMPORTS, CLASS = HALVES.split("\n\n\n", 1)
CLASS = CLASS.replace("self.m = 4", "self.m = total(PARITIES)")
HELPERS = "PARITIES = (2, 2)\ndef total(parts):\n    return sum(parts)\n"

SMALL = {
    "cluster": {"hosts": 10, "osds_per_host": 1, "pg_num": 16},
    "workload": {"requests": 10, "ops": ["write"], "patterns": ["rand"]},
}


def test_a_class_of_a_notebook_is_a_code(cells):
    cells(IMPORTS)
    cells(HELPERS)
    described = cells(CLASS).Halves
    scenario = stripesim.Scenario(schemes=["halves:6"], codes=[described], **SMALL)
    again = stripesim.Scenario(schemes=["halves:6"], codes=[described], **SMALL)
    assert scenario.hash() == again.hash()
    (path,) = scenario.codes
    assert path == str(class_file(described))
    (record,) = stripesim.run(scenario).provenance["codes"]
    assert record["sha256"] == hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_a_class_of_a_notebook_may_name_its_types_in_another_cell(cells):
    cells(IMPORTS)
    cells(HELPERS)
    cells(
        "import numpy.typing as npt\n"
        "Bytes = npt.NDArray[np.uint8]\nReads = dict[int, list[int]] | None"
    )
    typed = CLASS.replace("def generator(self):", "def generator(self) -> Bytes:")
    typed = typed.replace("lost, available):", "lost, available) -> Reads:")
    assert "Bytes" in typed
    assert "Reads" in typed
    scenario = stripesim.Scenario(
        schemes=["halves:6"], codes=[cells(typed).Halves], **SMALL
    )
    (timeline,) = stripesim.explain("repair", scenario=scenario)
    assert timeline.shard_reads == 3


def test_variables_of_a_class_are_not_those_of_the_notebook(cells):
    # Given a class, and afterwards variables of the notebook with the names of its own
    cells(IMPORTS)
    cells(HELPERS)
    described = cells(CLASS).Halves
    before = class_file(described)
    cells("matrix = object()\nhalf = 3\nshard = 4\nPARITIES = (2, 1, 1)")
    # When it is copied again, then only the value that it reads has changed.
    text = class_file(described).read_text()
    assert text == before.read_text().replace("(2, 2)", "(2, 1, 1)")


@pytest.mark.slow
def test_worker_processes_get_the_class_of_a_notebook(cells):
    cells(IMPORTS)
    cells(HELPERS)
    scenario = stripesim.Scenario(
        schemes=["halves:6"], codes=[cells(CLASS).Halves], **SMALL
    )
    found = stripesim.sweep(scenario, {"workload.queue_depth": [1, 4]}, jobs=2)
    assert (found.rows.height, found.failed) == (2, [])


def test_the_file_of_an_imported_class_holds_what_it_uses_of_its_module(
    tmp_path, monkeypatch
):
    # Given a module in the current folder, with a class that uses a function and a type of the module
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    own_files.class_folder.cache_clear()
    helper = dedent("""\
        from __future__ import annotations

        from typing import TYPE_CHECKING

        import numpy.typing as npt

        if TYPE_CHECKING:
            from collections.abc import Mapping

        Bytes = npt.NDArray[np.uint8]
        PARITIES = {"all": 4}


        def total(parities: Mapping[str, int]) -> int:
            return parities["all"]
        """)
    start, rest = helper.split("import numpy.typing", 1)
    typed = CLASS.replace("def generator(self):", "def generator(self) -> Bytes:")
    module = f"{start}{IMPORTS}\nimport numpy.typing{rest}\n\n{typed}"
    (tmp_path / "module_of_halves.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    described = importlib.import_module("module_of_halves").Halves
    # When its file is executed where the module is not importable
    path = class_file(described)
    monkeypatch.delitem(sys.modules, "module_of_halves")
    sys.path.remove(str(tmp_path))
    # Then nothing is lacking, and the content of the file changes with the function.
    assert load_code_file(path) == ["halves:k"]
    assert "def total" in path.read_text()
    own_files.class_folder.cache_clear()


def test_a_class_that_is_defined_again_replaces_the_earlier_one(cells):
    cells(IMPORTS)
    cells(HELPERS)
    first = stripesim.Scenario(
        schemes=["halves:6"], codes=[cells(CLASS).Halves], **SMALL
    )
    # Without `repair`, a repair reads six whole shards, no longer the three of a group.
    changed = CLASS.replace("def repair", "def unused")
    second = stripesim.Scenario(
        schemes=["halves:6"], codes=[cells(changed).Halves], **SMALL
    )
    assert first.hash() != second.hash()
    for scenario, shards in ((first, 3), (second, 6), (first, 3)):
        (timeline,) = stripesim.explain("repair", scenario=scenario)
        assert timeline.shard_reads == shards


def test_a_class_whose_values_cannot_be_written_is_refused(cells):
    cells(IMPORTS)
    cells("def total(parts): return 4\nPARITIES = object()")
    with pytest.raises(stripesim.ScenarioError, match=r"codes: .*PARITIES, a object"):
        stripesim.Scenario(schemes=["halves:6"], codes=[cells(CLASS).Halves], **SMALL)


def test_a_class_without_source_is_refused(cells):
    made = type("Halves", (), {"form": "halves:k", "__module__": "__main__"})
    with pytest.raises(stripesim.ScenarioError, match=r"Halves: got no source"):
        stripesim.Scenario(schemes=["halves:6"], codes=[made], **SMALL)


def test_uploads_may_not_name_files_of_codes(tmp_path):
    uploads = pytest.importorskip("stripesim.web.uploads")
    marker = tmp_path / "ran"
    (tmp_path / "x.py").write_text(f"open({str(marker)!r}, 'w')", encoding="utf-8")
    with pytest.raises(ValueError, match="codes"):
        uploads.read_scenario(
            f'schemes = ["rep:3"]\ncodes = [{str(tmp_path / "x.py")!r}]\n'
        )
    assert not marker.exists()


def test_the_families_of_the_package_are_reserved():
    from stripesim.models.coding.parse import _FAMILIES

    assert set(_FAMILIES) | {"none"} == own_files.RESERVED


def test_rank_agrees_with_the_matrices_of_reed_solomon():
    from stripesim.codes import cauchy_matrix, rank

    matrix = cauchy_matrix(6, 3)
    assert rank(matrix[[0, 2, 6, 7, 8]]) == 5
    assert rank(np.repeat(matrix[:3], 2, axis=0)) == 3
    assert ReedSolomon(6, 3).failures_tolerated == 3


def test_an_author_learns_that_a_repair_reads_more_than_reed_solomon(tmp_path):
    # Given a piggybacked RS(4,2): halves of five shards rebuild the first one, and four shards any other
    path = tmp_path / "piggyback.py"
    path.write_text(PIGGYBACK, encoding="utf-8")
    load_code_file(str(path))
    code = parse_scheme("piggyback:4")
    # Then a repair asks for (5 × ½ + 5 × 4) / 6 bytes for each lost one,
    asked = repair_reads(code, code.geometry(4096))
    assert asked == pytest.approx((2.5 + 5 * 4) / 6)
    # and drives with blocks of 4 KiB read whole chunks instead of halves, (5 + 5 × 4) / 6.
    assert drive_reads(code, 4096, 4096) == pytest.approx((5 + 5 * 4) / 6)
    assert "piggyback:4" in repair_warning(code, 4096, 4096)
    assert "= 8,192" in repair_warning(code, 4096, 4096)
    # Halves of a larger chunk are whole blocks.
    assert repair_warning(code, 8192, 4096) is None


@pytest.mark.parametrize("scheme", ["rep:3", "rs:6,3", "lrc:10,6,5", "halves:6"])
def test_codes_of_whole_shards_are_not_warned_of(scheme, halves):
    load_code_file(str(halves))
    assert repair_warning(parse_scheme(scheme), 4096, 4096) is None


def test_the_warning_is_where_a_repair_is_explained_and_run():
    repair, write = (
        stripesim.explain(op, ["clay:4,2,5"], 1 << 20) for op in ("repair", "write")
    )
    assert any("Reed-Solomon" in note for note in repair[0].kernel_notes)
    assert not any("Reed-Solomon" in note for note in write[0].kernel_notes)


def test_durability_uses_the_matrix_of_a_class_that_is_defined_again(cells):
    cells(IMPORTS)
    cells(HELPERS)
    tolerated = []
    # A parity that equals another protects nothing more.
    same = CLASS.replace(
        "matrix[self.k + 2, :",
        "matrix[self.k + 1] = matrix[self.k]\n        matrix[self.k + 2, :",
    )
    for text in (CLASS, same, CLASS):
        stripesim.Scenario(schemes=["halves:6"], codes=[cells(text).Halves], **SMALL)
        tolerated.append(code_of("halves:6").tolerated)
    assert tolerated[0] == tolerated[2] != tolerated[1]
