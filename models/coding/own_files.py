"""Load codes that their authors describe: from Python files, classes and installed packages.

A class from a notebook, a script or an imported module is copied into a file that can be executed alone,
together with the imports, functions and values of its module that it uses. So the content of the file is what
the code depends on.

Loading a file executes it. `stripesim.models.coding.own_code` says what a description holds.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import hashlib
import inspect
import linecache
import os
import re
import symtable
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, get_origin

from stripesim.models.coding.own_code import OwnCode, called, raised_at, whole_number
from stripesim.models.documents import write_whole
from stripesim.models.problems import OwnCodeError, file_reason

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Group of entry points of packages with codes. The name of an entry point is the family of its code.
ENTRY_POINTS: Final = "stripesim.codes"
#: Families that the package defines itself.
RESERVED: Final = frozenset({"none", "rep", "rs", "lrc", "lrc-ceph", "shec", "clay"})

_FILE_BYTES_MAX: Final = 1 << 20
#: Types of values that can be written as Python source.
_PLAIN: Final = (int, float, complex, str, bytes, bool, type(None))
#: A module in the text of a type: ``numpy`` in ``numpy.ndarray``
_MODULE: Final = re.compile(r"(?<![\w.])((?:\w+\.)*\w+)\.\w+")
_FORM: Final = re.compile(r"([a-z][a-z0-9-]*):([a-z]\w*(?:,[a-z]\w*)*)")


@dataclass(frozen=True)
class OwnFamily:
    """A class of an author, which makes codes from the numbers of its form."""

    name: str
    form: str
    build: type[Any]
    place: str  #: File, line and class, for messages
    sha256: str  #: Of the file, or of the entry point's value
    path: Path | None = None


#: Families in use, the content of each file that was loaded, and files to load when a family is unknown.
_families: dict[str, OwnFamily] = {}
_loaded: dict[Path, tuple[str, list[OwnFamily]]] = {}
_noted: list[Path] = []


def load_code_file(path: str | Path) -> list[str]:
    """Load the codes of a Python file, once as long as its content stays the same.

    Parameters
    ----------
    path
        File with at least one class that has a ``form``. It is executed.

    Returns
    -------
    list of str
        Forms of its codes.

    Raises
    ------
    OwnCodeError
        If the file cannot be read or executed, or a class lacks something.
    """
    try:
        file = Path(path).expanduser().absolute()
        # A device would be read without end.
        if file.exists() and not file.is_file():
            raise OwnCodeError(f"{path}: got no regular file, wanted a Python file")
        with file.open("rb") as opened:
            source = opened.read(_FILE_BYTES_MAX + 1)
    except (OSError, RuntimeError) as error:
        raise OwnCodeError(
            f"{path}: got {file_reason(error)}, wanted a Python file that can be read"
        ) from None
    if len(source) > _FILE_BYTES_MAX:
        raise OwnCodeError(
            f"{path}: got more than {_FILE_BYTES_MAX:,} bytes, wanted at most that"
        )
    sha256 = hashlib.sha256(source).hexdigest()
    known, families = _loaded.get(file, ("", []))
    if known != sha256:
        families = _families_of(str(path), file, source, sha256)
        for name in [n for n, family in _families.items() if family.path == file]:
            del _families[name]
        _loaded[file] = sha256, families
    # Another version of a class may have replaced these families.
    _families.update({family.name: family for family in families})
    return [family.form for family in families]


def note_code_files(paths: Iterable[Path]) -> None:
    """Note files, to be loaded when a family is unknown. Worker processes do so for a scenario's files."""
    for path in paths:
        file = path.expanduser().absolute()
        if file not in _noted:
            _noted.append(file)


def loaded_code_files() -> list[Path]:
    """List the files that were loaded, for worker processes."""
    return list(_loaded)


def own_forms() -> list[str]:
    """List the forms of the codes in use."""
    return [family.form for family in _families.values()]


def own_family(name: str) -> OwnFamily | None:
    """Return a family of an author, from a file in use or an installed package, or None.

    Raises
    ------
    OwnCodeError
        If a file or package that should have it cannot be used.
    """
    for path in _noted:
        load_code_file(path)
    _noted.clear()
    if name in _families:
        return _families[name]
    if name not in _installed():
        return None
    _families[name] = _installed_family(_installed()[name])
    return _families[name]


@lru_cache(maxsize=256)
def build_own_code(family: OwnFamily, *numbers: int) -> OwnCode:
    """Return the code of a family with these numbers.

    Raises
    ------
    OwnCodeError
        If the description is not a code.
    """
    text = f"{family.name}:{','.join(map(str, numbers))}"
    where = f"{family.place}({', '.join(map(str, numbers))})"
    described = called(family.build, where, *numbers)
    return OwnCode(
        k=whole_number(described, "k", where),
        m=whole_number(described, "m", where),
        text=text,
        place=where,
        sha256=family.sha256,
        described=described,
    )


@cache
def _installed() -> dict[str, EntryPoint]:
    # Most runs name no code of a package, and start sooner without this.
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _installed_family(point: EntryPoint) -> OwnFamily:
    where = f"entry point {point.name} = {point.value}"
    try:
        build = point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise OwnCodeError(f"{where}: got {raised_at(error)}") from error
    sha256 = hashlib.sha256(point.value.encode()).hexdigest()
    family = _family(build, where, sha256, None)
    if family.name != point.name:
        raise OwnCodeError(
            f"{where}: form: got {family.form!r}, wanted the family {point.name}"
        )
    return family


def _families_of(shown: str, file: Path, source: bytes, sha256: str) -> list[OwnFamily]:
    """Execute a file and return the families that it defines."""
    try:
        tree = ast.parse(source, str(file))
        code = compile(tree, str(file), "exec")
    except SyntaxError as error:
        raise OwnCodeError(
            f"{shown}:{error.lineno or 1}: got a syntax error ({error.msg}), wanted Python"
        ) from None
    except ValueError as error:
        raise OwnCodeError(f"{shown}: got {error}, wanted Python") from None
    module = ModuleType(f"stripesim_own_code_{sha256[:16]}")
    module.__file__ = str(file)
    # Dataclasses look their module up.
    sys.modules[module.__name__] = module
    try:
        exec(code, module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[module.__name__]
        raise OwnCodeError(
            f"{shown}: got {raised_at(error)}, wanted a file that can be imported"
        ) from error
    lines = {
        node.name: node.lineno for node in tree.body if isinstance(node, ast.ClassDef)
    }
    families = [
        _family(value, f"{shown}:{lines[name]}: {name}", sha256, file)
        for name, value in vars(module).items()
        if name in lines and hasattr(value, "form")
    ]
    if not families:
        raise OwnCodeError(
            f'{shown}: got no class with a form, wanted one such as form = "halves:k"'
        )
    for family in families:
        _check_free(family)
    return families


def _family(build: type[Any], place: str, sha256: str, path: Path | None) -> OwnFamily:
    form = getattr(build, "form", None)
    match = _FORM.fullmatch(form) if isinstance(form, str) else None
    if match is None:
        raise OwnCodeError(
            f'{place}: form: got {form!r}, wanted text such as "halves:k"'
        )
    if not callable(getattr(build, "generator", None)):
        raise OwnCodeError(
            f"{place}: got no method generator(), wanted one that returns the generator matrix"
        )
    return OwnFamily(match[1], match[0], build, place, sha256, path)


def _is_of_class(family: OwnFamily) -> bool:
    return family.path is not None and family.path.parent == class_folder()


def _check_free(family: OwnFamily) -> None:
    where = f"{family.place}: form: got the family {family.name!r}"
    if family.name in RESERVED:
        raise OwnCodeError(f"{where}, which stripesim defines, wanted another one")
    before = _families.get(family.name)
    if before is None or before.path == family.path:
        return
    # A class that was defined again, in a notebook for example, replaces the earlier one.
    if _is_of_class(before) and _is_of_class(family):
        return
    raise OwnCodeError(f"{where} of {before.place} as well, wanted another one")


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
    parts = _Copied(described.__module__).parts_of(described)
    if _globals_of(described).get("annotations") is __future__.annotations:
        parts.insert(0, "from __future__ import annotations")
    source = "\n".join(parts)
    sha256 = hashlib.sha256(source.encode()).hexdigest()
    path = class_folder() / f"{described.__name__}-{sha256[:16]}.py"
    if not path.is_file() or path.read_text("utf-8") != source:
        write_whole(path, source)
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
    """Source of a class and of what it uses of its module, each name once."""

    def __init__(self, module: str) -> None:
        self._module = module
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
        own_name = getattr(value, "__name__", None)
        if module != self._module and _is_importable(module, own_name, value):
            return [f"from {module} import {own_name} as {name}"]
        if inspect.isclass(value) or inspect.isfunction(value):
            parts = self.parts_of(value)
            return parts if own_name == name else [*parts, f"{name} = {own_name}"]
        if _is_plain(value):
            return [f"{name} = {value!r}"]
        if _is_alias(value):
            modules = sorted({found[1] for found in _MODULE.finditer(repr(value))})
            return [*(f"import {module}" for module in modules), f"{name} = {value!r}"]
        if self._module != "__main__":
            return [f"from {self._module} import {name}"]
        raise OwnCodeError(
            f"class {thing.__name__}: got {name}, a {type(value).__name__}, wanted only modules, classes, "
            "functions, types and plain values, or a file of codes"
        )


def _is_importable(module: Any, name: Any, value: Any) -> bool:
    if not isinstance(module, str) or not isinstance(name, str):
        return False
    return getattr(sys.modules.get(module), name, None) is value


def _is_alias(value: Any) -> bool:
    """Return True for a type such as ``npt.NDArray[np.uint8]``, if its text names only importable parts."""
    text = repr(value)
    return get_origin(value) is not None and "__main__" not in text and "~" not in text


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
    """Return the global names that source reads, in order, without those of Python itself."""
    nodes = ast.walk(ast.parse(source))
    read = [node.id for node in nodes if isinstance(node, ast.Name)]
    global_names = set(_global_names(symtable.symtable(source, "<code>", "exec")))
    return [
        name
        for name in dict.fromkeys(read)
        if name in global_names and not hasattr(builtins, name)
    ]


def _global_names(scope: symtable.SymbolTable) -> Iterator[str]:
    """Yield the names that a scope, or one within it, takes from outside."""
    for symbol in scope.get_symbols():
        if symbol.is_global():
            yield symbol.get_name()
    for inner in scope.get_children():
        yield from _global_names(inner)
