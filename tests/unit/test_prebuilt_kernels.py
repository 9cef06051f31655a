"""Prebuilt kernels give the bits of compiled ones, and are used only for the sources they were made from."""

import ctypes
import json
import os
import re
import struct
import subprocess
import sys
import tarfile
import weakref
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import settings

import stripesim
from stripesim.models import jit
from stripesim.models.jit import CompiledKernel, origin, prebuilt, warning
from stripesim.models.jit.inner_functions import Inner
from stripesim.models.placement.crush.text import parse_map
from stripesim.sim import kernels
from stripesim.sim.durability import bursts, splitting
from stripesim.sim.durability.histories import exposure_losses
from stripesim.sim.durability.system import (
    Burst,
    DriveRepair,
    Lifetime,
    System,
    code_of,
)
from stripesim.sim.engine.compiled.engine import run
from support.random_programs import KINDS

ROOT = Path(__file__).resolve().parents[2]
#: Random programs with a director, enough for each of its actions.
DIRECTED = 40
ALL = kernels.example_calls()
built = pytest.mark.skipif(
    not prebuilt.is_current(kernel.function for kernel in ALL),
    reason="the checkout has no kernels for these sources: make kernels",
)


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setattr(warning, "_warned", set())
    prebuilt._manifest.cache_clear()
    yield
    prebuilt._manifest.cache_clear()


#: A host that fails soon and is out soon, with several requests in flight.
FAULTS = {
    "workload.duration_s": 3.0,
    "workload.queue_depth": 4,
    "workload.image_bytes": "64MiB",
    "faults.events": [{"hosts": [2], "at_s": 0.1, "kind": "process"}],
    "faults.down_out_interval_s": 1.0,
    "faults.recovery_sleep_s": 0.001,
    "schemes": ["rs:4,2"],
}


class Pair(NamedTuple):
    rows: np.ndarray
    share: float


def test_a_call_passes_five_words_and_the_extent_of_an_array_and_one_of_a_number():
    rows = np.zeros((3, 2), dtype=np.int32)
    address = rows.ctypes.data
    _, words = prebuilt.described((Pair(rows, 0.5), np.uint64(2**64 - 1), True))
    # 3 · 2 elements of 4 bytes; a row takes 8 bytes. 0.5 is 2^-1: its exponent is 1022.
    assert words == [0, 0, 6, 4, address, 3, 2, 8, 4, 1022 << 52, -1, 1]
    assert struct.unpack("d", struct.pack("q", words[-3])) == (0.5,)


def test_types_tell_arrays_apart_that_code_reads_in_different_ways():
    whole = np.zeros((4, 4))
    frozen = whole.copy()
    frozen.flags.writeable = False
    arrays = [whole, whole[:, ::2], whole[0], whole.astype(np.float32), frozen]
    types = [prebuilt.types_of(array)[0] for array in arrays]
    assert len(set(types)) == len(arrays)
    assert prebuilt.types_of((1, 1.0, True, np.int64(1))) == [
        "int64", "float64", "bool", "int64"
    ]  # fmt: skip


def test_arguments_of_other_types_are_left_to_numba():
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(lambda _: 7)
    code = prebuilt.Prebuilt(entry, [["1 float64"], ["int64"]], "int64")
    table = code.table((np.zeros(2), 3))
    assert table is not None
    assert code.run(table) == 7
    assert code.table((np.zeros(2, dtype=np.float32), 3)) is None
    assert code.table((np.zeros(2), 3.0)) is None
    assert code.table((np.zeros(2),)) is None


def test_a_table_is_that_of_the_arguments_of_its_own_call():
    code = prebuilt.Prebuilt(None, [["1 float64", "1 float64"]], "none")
    shared, first, second = np.zeros(1), np.zeros(1), np.zeros(1)
    for own in (first, first, second, first):
        table = code.table(((shared, own),))
        assert table is not None
        # An array of one dimension takes seven words, the fifth of them its address.
        assert [table[4], table[11]] == [shared.ctypes.data, own.ctypes.data]


def test_a_kernel_keeps_no_array_alive():
    code = prebuilt.Prebuilt(None, [["1 float64"]], "none")
    rows = np.zeros(1)
    assert code.table(((rows,),)) is not None
    alive = weakref.ref(rows)
    del rows
    assert alive() is None


def _one_more(number):
    return number + STEP


STEP = 1


def _twice(number):
    return 2 * _one_more(number)


def test_code_depends_on_files_and_constants_of_all_functions_it_calls(monkeypatch):
    # This module is not part of the package, so take it for one.
    monkeypatch.setattr(origin, "_PACKAGE", __name__.partition(".")[0])
    inner_function = Inner(_one_more, {})
    monkeypatch.setitem(_twice.__globals__, "_one_more", inner_function)
    monkeypatch.setattr(origin, "_digest", lambda module: f"file of {module}")
    before = origin.origin_of(_twice)
    assert before[f"{__name__}:STEP"] == "int 1"
    assert before[__name__] == f"file of {__name__}"
    monkeypatch.setitem(_twice.__globals__, "STEP", 2)
    after = origin.origin_of(_twice)
    assert {name for name in before if before[name] != after[name]} == {
        f"{__name__}:STEP"
    }


def _stored(tmp_path, monkeypatch, **changes):
    """Write the manifest of one kernel whose library is missing."""
    function = next(iter(ALL)).function
    described = {
        "entry": "x", "types": [], "returns": "int64", "origin": origin.origin_of(function)
    }  # fmt: skip
    described |= changes.pop("kernel", {})
    manifest = {
        "machine": prebuilt.machine(),
        "libraries": [{"file": prebuilt.LIBRARY, "features": []}],
        "kernels": {prebuilt.name_of(function): described},
    }
    (tmp_path / prebuilt.MANIFEST).write_text(json.dumps(manifest | changes))
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path)
    prebuilt._library.cache_clear()
    return function


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kernel": {"origin": {"stripesim.sim.run": "0"}}}, "another stripesim.sim.run"),
        ({"kernel": {"origin": {"stripesim.sim.run:_GONE": "0"}}}, "another stripesim.sim.run:_GONE"),
        ({"kernel": {"origin": {"stripesim.gone": "0"}}}, "another stripesim.gone"),
        ({"machine": "plan9 vax"}, "got code for plan9 vax"),
        ({}, "kernels.so"),
    ],
    ids=["source", "constant", "file", "machine", "library"],
)  # fmt: skip
def test_code_of_another_state_or_machine_is_refused_in_one_line(
    tmp_path, monkeypatch, caplog, changes, told
):
    function = _stored(tmp_path, monkeypatch, **changes)
    assert prebuilt.prebuilt_of(function) is None
    assert prebuilt.prebuilt_of(function) is None
    (line,) = caplog.messages
    assert told in line
    assert "\n" not in line
    prebuilt._library.cache_clear()


@pytest.mark.parametrize("text", ['{"machine"', '{"machine": "any", "kernels": {}}'])
def test_damaged_or_older_descriptions_are_refused_in_one_line(
    tmp_path, monkeypatch, caplog, text
):
    (tmp_path / prebuilt.MANIFEST).write_text(text)
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path)
    assert prebuilt.prebuilt_of(_twice) is None
    assert len(caplog.messages) == 1


def test_a_package_without_prebuilt_code_says_nothing(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path)
    assert prebuilt.prebuilt_of(_twice) is None
    assert caplog.messages == []


CPUINFO = """\
processor\t: 0
model name\t: A processor
flags\t\t: fpu sse2 avx2 bmi2
processor\t: 1
flags\t\t: fpu
"""


def test_the_features_of_a_processor_are_those_that_linux_lists(tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    assert prebuilt.processor_features(cpuinfo) == frozenset()
    cpuinfo.write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    assert prebuilt.processor_features(cpuinfo) == frozenset()
    cpuinfo.write_text(CPUINFO)
    assert prebuilt.processor_features(cpuinfo) == {"fpu", "sse2", "avx2", "bmi2"}


@pytest.mark.parametrize(
    ("features", "file"),
    [
        ({"sse2", "avx2", "bmi2"}, "newer.so"),
        ({"sse2", "avx2"}, "kernels.so"),
        (set(), "kernels.so"),
    ],
)
def test_a_processor_takes_the_newest_library_whose_features_it_has(
    tmp_path, monkeypatch, features, file
):
    libraries = [
        {"file": "newer.so", "features": ["avx2", "bmi2"]},
        {"file": "kernels.so", "features": []},
    ]
    _stored(tmp_path, monkeypatch, libraries=libraries)
    assert prebuilt.library_for(frozenset(features)) == file


@built
def test_the_environment_chooses_the_library_for_the_oldest_processors(monkeypatch):
    loaded = []
    monkeypatch.setattr(ctypes, "CDLL", loaded.append)
    for value in ("", "oldest"):
        monkeypatch.setenv("STRIPESIM_KERNELS", value)
        prebuilt._library.cache_clear()
        prebuilt._library()
    prebuilt._library.cache_clear()
    newest = prebuilt.library_for(prebuilt.processor_features())
    expected = [prebuilt.FOLDER / newest, prebuilt.FOLDER / prebuilt.LIBRARY]
    assert loaded == list(map(str, expected))


@built
def test_commands_run_without_numba():
    statements = (
        "import sys\n"
        "sys.modules['numba'] = sys.modules['llvmlite'] = None\n"
        "import stripesim\n"
        "few = {'workload.requests': 20, 'schemes': ['rep:3']}\n"
        "stripesim.run('quickstart', costs=False, sets=few)\n"
        f"stripesim.run('faults', costs=False, sets={FAULTS})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", statements], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


def _copy(argument):
    """Copy arrays in arguments. Code is made for arrays that it may write to, or not."""
    if isinstance(argument, np.ndarray):
        array = argument.copy()
        array.flags.writeable = argument.flags.writeable
        return array
    if not isinstance(argument, tuple):
        return argument
    parts = map(_copy, argument)
    return type(argument)(*parts) if hasattr(argument, "_fields") else tuple(parts)


def _bytes(argument):
    if isinstance(argument, tuple):
        return [part for item in argument for part in _bytes(item)]
    return [np.asarray(argument).tobytes()]


def _run_all(monkeypatch, other_code, pg_num):
    """Run prebuilt and other code at each call of a kernel, and compare what they return and write.

    `other_code` is called with a kernel and its arguments. Each kernel has to be called, so `pg_num` is one
    that no other test places.
    """
    calls = dict.fromkeys((prebuilt.name_of(kernel.function) for kernel in ALL), 0)

    def both(self, *arguments):
        code = self.prebuilt
        table = code and code.table(arguments)
        assert table is not None, self.function.__qualname__
        copies = _copy(arguments)
        result = code.run(table)
        assert other_code(self, copies) == result
        assert _bytes(copies) == _bytes(arguments), self.function.__qualname__
        calls[prebuilt.name_of(self.function)] += 1
        return result

    monkeypatch.setattr(CompiledKernel, "__call__", both)
    _call_all(pg_num)
    assert [name for name, count in calls.items() if count == 0] == []


def _call_all(pg_num):
    few = {
        "workload.requests": 200,
        "schemes": ["rs:4,2"],
        "cluster.pg_num": pg_num,
    }
    stripesim.run("quickstart", costs=False, sets=few)
    stripesim.run("faults", costs=False, sets=FAULTS)
    for seed in range(DIRECTED):
        run(KINDS["directed"](Random(seed)))
    parse_map(kernels._MSR_MAP).mappings("msr", range(5), 1)
    groups = np.array([[0, 1, 2], [3, 4, 5], [0, 3, 1]], dtype=np.int32)
    burst = Burst(name="two", rate_per_s=1e-7, unit="drive", units=2, lost_fraction=0.5)
    system = System(
        code=code_of("rep:3"), placement="crush", drives=6, drive_bytes=1e12,
        lifetime=Lifetime.exponential(0.5), repair=DriveRepair(1e7), bursts=(burst,),
        groups=groups, units={"drive": np.arange(6, dtype=np.int32)},
    )  # fmt: skip
    splitting.split(system, seed=1, batches=2, walks=20)
    exposure_losses(system, seed=1)
    bursts.loss_of_burst(system, burst)
    sure = Burst(name="three", rate_per_s=1e-7, unit="drive", units=3)
    bursts.loss_of_burst(system, sure)
    pool = System(
        code=system.code, placement="declustered", drives=20, drive_bytes=1e12,
        lifetime=system.lifetime, repair=system.repair,
    )  # fmt: skip
    splitting.split(pool, seed=1, batches=2, walks=20)


@built
@pytest.mark.slow
@pytest.mark.skipif(
    settings.get_current_profile_name() != "thorough",
    reason="compiles each kernel again: make verify",
)
def test_prebuilt_code_changes_the_same_bytes_as_numbas(monkeypatch):
    _run_all(monkeypatch, lambda kernel, arguments: kernel.dispatcher(*arguments), 71)


@built
def test_code_for_newer_processors_changes_the_same_bytes_as_that_for_the_oldest(
    monkeypatch,
):
    file = prebuilt.library_for(prebuilt.processor_features())
    if file == prebuilt.LIBRARY:
        pytest.skip("this processor runs the library for the oldest ones")
    oldest = ctypes.CDLL(str(prebuilt.FOLDER / prebuilt.LIBRARY))
    manifest = prebuilt._manifest()

    def oldest_code(kernel, arguments):
        described = manifest["kernels"][prebuilt.name_of(kernel.function)]
        entry = getattr(oldest, described["entry"])
        entry.restype = ctypes.c_int64
        entry.argtypes = [ctypes.c_void_p]
        code = prebuilt.Prebuilt(entry, described["types"], described["returns"])
        return code.run(code.table(arguments))

    _run_all(monkeypatch, oldest_code, 73)


def test_the_environment_chooses_numba(monkeypatch):
    monkeypatch.setenv("STRIPESIM_KERNELS", "compile")
    assert not prebuilt.is_current(kernel.function for kernel in ALL)
    assert jit.is_disabled() == (os.environ.get("NUMBA_DISABLE_JIT", "0") == "1")


def test_kernels_of_a_wheel_are_built_with_the_packages_that_pip_installed(
    monkeypatch, tmp_path
):
    # Given a module in the environment that pip makes for a build, which it names in PYTHONPATH
    monkeypatch.syspath_prepend(str(ROOT))
    backend = pytest.importorskip("build_backend")
    (tmp_path / "only_in_the_build.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    # When Python starts as for a build, then it finds the module and the checkout.
    done = subprocess.run(
        [sys.executable, "-c", "import only_in_the_build, stripesim.sim"],
        cwd=tmp_path,
        env=backend.build_environment(),
        check=False,
    )
    assert done.returncode == 0


def test_kernels_are_built_with_the_packages_that_a_wheel_asks_for(monkeypatch):
    # Given only the packages that pip installs for the build
    monkeypatch.syspath_prepend(str(ROOT))
    backend = pytest.importorskip("build_backend")
    wanted = [
        re.split("[>=<]", line)[0] for line in backend.get_requires_for_build_wheel()
    ]
    script = """
import importlib.metadata as metadata, sys
wanted = {*sys.argv[1:], "llvmlite"}
for name, packages in metadata.packages_distributions().items():
    if not name.startswith("_") and name != "stripesim" and wanted.isdisjoint(packages):
        sys.modules[name] = None
import stripesim.models.jit.build
from stripesim.sim import kernels
assert len(kernels.example_calls()) > 10
"""
    done = subprocess.run(
        [sys.executable, "-c", script, *wanted],
        capture_output=True,
        cwd=ROOT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@built
def test_a_source_distribution_has_no_machine_code(tmp_path):
    # Given a checkout with the kernels of this platform
    assert list((ROOT / "models" / "jit" / "built").glob("kernels.*"))
    script = "import build_backend, sys; build_backend.build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", script, tmp_path],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    # Then its source distribution has the sources alone.
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    assert any(name.endswith("sim/kernels.py") for name in names)
    assert not any("/built/kernels." in name for name in names)
