"""Write the class of a code into a file, for scenarios and worker processes.

A scenario names files of codes. A class from a notebook or script has none of its own that could be executed
alone, so its source is copied into one, together with the imports, functions and values that it uses.
"""

import ast
import builtins
import hashlib
import inspect
import linecache
import os
import secrets
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from stripesim.models.coding.own_code import OwnCodeError

#: Types of values that can be written as Python source.
_PLAIN: Final = (int, float, complex, str, bytes, bool, type(None))


def class_file(described: type) -> Path:
    """Write the source of a class that describes a code into a file named by its content.

    Parameters
    ----------
    described
        Class with a ``form``, as `stripesim.models.coding.own_code.CodeDescription` states.

    Returns
    -------
    Path
        The file. Equal sources have the same file.

    Raises
    ------
    OwnCodeError
        If the source is not available, or uses a value that cannot be written as source.
    """
    if not hasattr(described, "form"):
        raise OwnCodeError(
            f'class {described.__name__}: got no form, wanted one such as "halves:k"'
        )
    source = "\n".join(_Copied().parts_of(described))
    sha256 = hashlib.sha256(source.encode()).hexdigest()
    path = class_folder() / f"{described.__name__}-{sha256[:16]}.py"
    if not path.is_file() or path.read_text("utf-8") != source:
        # Another process may write the same file.
        draft = path.with_suffix(f".{secrets.token_hex(4)}")
        draft.write_text(source, encoding="utf-8")
        draft.replace(path)
    return path


@cache
def class_folder() -> Path:
    """Return the folder of these files, ``$XDG_CACHE_HOME/stripesim/codes``, or else a temporary one."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "stripesim" / "codes"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="stripesim-codes-"))


class _Copied:
    """Source of a class and of what it uses, each name once."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._files: list[str] = []

    def parts_of(self, thing: Any) -> list[str]:
        """Return the source of a class or function, after the parts that it uses."""
        self._names.add(thing.__name__)
        source = _source_of(thing, self._files)
        self._files += [file for file, _ in _places_of(thing)]
        known = _globals_of(thing)
        parts = []
        for name in _names_in(source):
            if name in known and name not in self._names:
                self._names.add(name)
                parts += self._part(thing, name, known[name])
        return [*parts, source]

    def _part(self, thing: Any, name: str, value: Any) -> list[str]:
        if isinstance(value, ModuleType):
            return [f"import {value.__name__} as {name}"]
        module = getattr(value, "__module__", None)
        there = getattr(value, "__name__", None)
        if module != "__main__" and _is_importable(module, there, value):
            return [f"from {module} import {there} as {name}"]
        if thing.__module__ != "__main__":
            return [f"from {thing.__module__} import {name}"]
        if inspect.isclass(value) or inspect.isfunction(value):
            parts = self.parts_of(value)
            return parts if there == name else [*parts, f"{name} = {there}"]
        if _is_plain(value):
            return [f"{name} = {value!r}"]
        raise OwnCodeError(
            f"class {thing.__name__}: got {name}, a {type(value).__name__}, wanted only modules, classes, "
            "functions and plain values, or a file of codes"
        )


def _is_importable(module: Any, name: Any, value: Any) -> bool:
    if not isinstance(module, str) or not isinstance(name, str):
        return False
    return getattr(sys.modules.get(module), name, None) is value


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return type(value) is dict and _is_plain([*value, *value.values()])
    if isinstance(value, list | tuple | set | frozenset):
        return type(value).__module__ == "builtins" and all(map(_is_plain, value))
    return type(value) in _PLAIN


def _source_of(thing: Any, files: Iterable[str]) -> str:
    """Return the source of a class or function, also from a notebook's cell.

    A class without methods names no file. It is searched in those of the code that uses it.
    """
    for file, line in (*_places_of(thing), *((file, None) for file in files)):
        lines = linecache.getlines(file)
        node = _definition(lines, thing.__name__, line)
        if node is not None:
            start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            text = "".join(lines[start - 1 : node.end_lineno])
            return textwrap.dedent(text).rstrip() + "\n"
    raise OwnCodeError(
        f"class {thing.__name__}: got no source, wanted a class from a file or a notebook's cell, or a "
        "file of codes"
    )


def _definition(
    lines: list[str], name: str, line: int | None
) -> ast.ClassDef | ast.FunctionDef | None:
    """Return the definition of a name that spans a line, or the first one, or None."""
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        # A cell may have commands of the notebook, and a file may have changed.
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name != name:
            continue
        start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        assert node.end_lineno is not None
        if line is None or start <= line <= node.end_lineno:
            return node
    return None


def _places_of(thing: Any) -> Iterator[tuple[str, int]]:
    """Yield the file and the first line of a function, or of each method of a class."""
    members = [thing] if inspect.isfunction(thing) else vars(thing).values()
    for member in members:
        function = inspect.unwrap(getattr(member, "__func__", member))
        if inspect.isfunction(function):
            yield function.__code__.co_filename, function.__code__.co_firstlineno


def _globals_of(thing: Any) -> Mapping[str, Any]:
    return vars(sys.modules[thing.__module__])


def _names_in(source: str) -> list[str]:
    """Return the names that source reads, in order, without those of Python itself."""
    nodes = ast.walk(ast.parse(source))
    read = [node.id for node in nodes if isinstance(node, ast.Name)]
    return [name for name in dict.fromkeys(read) if not hasattr(builtins, name)]
