"""Compiled code is kept where that is possible, and no state of its folder is an error."""

import ast
import gc
import importlib.util
import io
import itertools
import logging
import sys
from pathlib import Path

import numba
import pytest
from numba.core import caching

from stripesim.models import jit
from stripesim.models.jit import compiler, warning

SOURCE = "def twice(x):\n    return 2 * x\n"
_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _quiet_again(monkeypatch):
    monkeypatch.setattr(warning, "_warned", set())
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")


def load(path):
    """Import a file under a new name, as another process would, and compile its function."""
    spec = importlib.util.spec_from_file_location(f"jit_probe_{next(_numbers)}", path)
    module = importlib.util.module_from_spec(spec)
    # Cached code names the module that it was compiled in.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return jit.compiled(module.twice)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "probe.py"
    path.write_text(SOURCE)
    return path


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_only_a_terminal_hears_what_compiles(monkeypatch, tmp_path, stream):
    path = tmp_path / "probe.py"
    path.write_text(SOURCE)
    monkeypatch.setattr(compiler, "_NOTICE_AFTER_S", 0)
    monkeypatch.setattr(sys, "stderr", stream)
    assert load(path)(3) == 6
    assert ("compiling" in stream.getvalue()) == stream.isatty()
    # The second time, the code is in the cache.
    stream.truncate(0)
    assert load(path)(3) == 6
    assert "compiling" not in stream.getvalue()


INNER_SOURCE = """
from stripesim.models import jit
from stripesim.models.jit import compiler, warning

@jit.inner
def one_more(x):
    return x + 1

def twice(x):
    return 2 * one_more(x)
"""


@pytest.mark.parametrize("is_complete", [True, False])
def test_inner_functions_need_no_internals_of_numba(tmp_path, monkeypatch, is_complete):
    path = tmp_path / "probe.py"
    path.write_text(INNER_SOURCE)
    if not is_complete:
        monkeypatch.setattr(compiler, "_optimises_once", lambda: False)
    function = load(path)
    assert function(3) == 8
    # With all internals, which this Numba has, only the function called from Python is optimised.
    (code,) = function.function.__globals__["one_more"].dispatcher.overloads.values()
    assert isinstance(code.library, compiler._CodeForCallers) == is_complete
    again = load(path)
    assert again(3) == 8
    assert sum(again.dispatcher.stats.cache_hits.values()) == 1


def test_the_cache_needs_no_internals_of_numba(source, monkeypatch, caplog):
    monkeypatch.setattr(caching.Cache, "load_overload", caching.Cache._load_overload)
    monkeypatch.delattr(caching.Cache, "_load_overload")
    assert load(source)(4) == 8
    again = load(source)
    assert again(4) == 8
    assert sum(again.dispatcher.stats.cache_hits.values()) == 1
    assert caplog.messages == []


def cache_files(path, suffix):
    return sorted((path.parent / "__pycache__").glob(f"probe.twice*{suffix}"))


def test_compiled_code_is_loaded_by_the_next_process(source):
    first = load(source)
    assert first(4) == 8
    assert sum(first.dispatcher.stats.cache_misses.values()) == 1
    again = load(source)
    assert again(4) == 8
    assert sum(again.dispatcher.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: b"\xff" * len(data),
    ],
)
def test_a_damaged_cache_is_rebuilt_with_one_warning(source, suffix, damage, caplog):
    assert load(source)(4) == 8
    for path in cache_files(source, suffix):
        path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert load(source)(4) == 8
    assert len(caplog.messages) == 1
    assert "compiling again" in caplog.messages[0]
    assert "\n" not in caplog.messages[0]
    sound = load(source)
    assert sound(4) == 8
    assert sum(sound.dispatcher.stats.cache_hits.values()) == 1


def program_of_two():
    """Compile a function that calls an inner one."""

    def added(number):
        return number + 1

    inner_function = jit.inner(added)

    def doubled(number):
        return 2 * inner_function(number)

    return jit.compiled(doubled)


def test_inner_functions_are_optimised_with_their_program():
    compiler._optimises_once.cache_clear()
    assert compiler._optimises_once()


def test_a_compiler_with_other_internals_optimises_one_function_at_a_time(monkeypatch):
    def renamed(_):
        raise AttributeError("no such attribute")

    compiler._optimises_once.cache_clear()
    monkeypatch.setattr(compiler._CodeForCallers, "finalize", renamed)
    try:
        assert not compiler._optimises_once()
        assert program_of_two()(20) == 42
    finally:
        compiler._optimises_once.cache_clear()


@jit.inner
def _incremented(number: int) -> int:
    return number + 1


@jit.inner
def _doubled(number: int) -> int:
    return 2 * _incremented(number)


@pytest.mark.parametrize("called", [_incremented, _doubled], ids=["one", "nested"])
def test_other_functions_of_numba_cannot_call_inner_functions(called) -> None:
    @numba.njit
    def plain(number: int) -> int:
        return called(number)

    with pytest.raises(TypeError, match=f"{called.__name__}.* numba.njit"):
        plain(20)


@pytest.mark.parametrize("called", [_incremented, _doubled], ids=["one", "nested"])
def test_python_cannot_call_inner_functions(called) -> None:
    with pytest.raises(TypeError, match=f"{called.__name__}.* Python"):
        called(20)


def test_compiled_functions_call_inner_functions() -> None:
    def called(number: int) -> int:
        return _doubled(number)

    program = jit.compiled(called)
    assert program(20) == 42
    # The overload that this compiled has no entry point for Python either.
    with pytest.raises(TypeError, match="a call from Python"):
        _doubled(20)


@jit.inner
def _is_even(number: int) -> bool:
    if number == 0:
        return True
    return _is_odd(number - 1)


def _is_odd(number: int) -> bool:
    if number == 0:
        return False
    return _is_even(number - 1)


def test_inner_functions_that_call_each_other_are_refused_at_decoration():
    # Numba would link a program without one of them, and the process would end at the missing symbol.
    with pytest.raises(
        TypeError, match="_is_odd: got a call of _is_even, which calls it back"
    ):
        jit.inner(_is_odd)


def test_inner_functions_in_a_function_that_call_each_other_are_refused():
    @jit.inner
    def first(number):
        return second(number - 1)

    with pytest.raises(TypeError, match=r"second: got a call of .*first"):

        @jit.inner
        def second(number):
            return first(number) if number else 0


@jit.inner
def _factorial(number: int) -> int:
    return number * _factorial(number - 1) if number else 1


def _of_factorial(number):
    return _factorial(number)


def test_an_inner_function_may_call_itself():
    assert jit.compiled(_of_factorial)(5) == 120


def test_compiling_leaves_the_collector_as_it_was():
    assert gc.isenabled()
    assert program_of_two()(20) == 42
    assert gc.isenabled()


def test_a_full_disk_costs_a_warning(source, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_index", full)
    with caplog.at_level(logging.WARNING):
        function = load(source)
        assert function(4) == 8
        assert function(1.5) == 3.0
    assert len(caplog.messages) == 1
    assert "No space left on device; not cached" in caplog.messages[0]


@pytest.fixture
def _read_only(monkeypatch):
    # Tests may run as root, who ignores folder modes. So leave Numba the one locator that
    # needs a folder to be named.
    classes = caching.CompileResultCacheImpl._locator_classes
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", classes[:1])


@pytest.mark.usefixtures("_read_only")
def test_a_read_only_installation_keeps_code_in_a_temporary_folder(
    source, monkeypatch, tmp_path, caplog
):
    monkeypatch.setattr(compiler.tempfile, "gettempdir", lambda: str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert load(source)(4) == 8
    (folder,) = tmp_path.glob("stripesim-numba-*")
    assert list(folder.rglob("*.nbc"))
    assert folder.stat().st_mode & 0o077 == 0
    assert len(caplog.messages) == 1
    assert str(folder) in caplog.messages[0]
    again = load(source)
    assert again(4) == 8
    assert sum(again.dispatcher.stats.cache_hits.values()) == 1


@pytest.mark.usefixtures("_read_only")
def test_a_temporary_folder_that_others_may_write_to_is_not_used(
    source, monkeypatch, tmp_path, caplog
):
    monkeypatch.setattr(compiler.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(compiler.getpass, "getuser", lambda: "x")
    (tmp_path / "stripesim-numba-x").mkdir()
    (tmp_path / "stripesim-numba-x").chmod(0o777)
    with caplog.at_level(logging.WARNING):
        assert load(source)(4) == 8
    assert caplog.messages == [
        "warning: compiled code: got no writable folder; each process compiles again"
    ]


def test_compiled_code_is_kept_by_one_function_alone():
    """Numba's own `cache=True` ends in a traceback on read-only installations and damaged caches."""
    root = Path(jit.__file__).resolve().parents[2]
    folders = ("models", "traces", "sim", "calibration", "scenarios", "stripesim")
    sources = [path for folder in folders for path in (root / folder).rglob("*.py")]
    assert len(sources) > 300
    kept = [
        f"{path.relative_to(root)}:{call.lineno}"
        for path in sources
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("jit")
        for keyword in call.keywords
        if keyword.arg == "cache"
    ]
    assert kept == []
