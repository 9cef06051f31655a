"""Load codes that their authors describe: from Python files and from installed packages.

Loading a file executes it. `stripesim.models.coding.own_code` says what a description holds.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from stripesim.models.coding.own_classes import class_folder
from stripesim.models.coding.own_code import (
    OwnCode,
    OwnCodeError,
    called,
    raised_at,
    whole_number,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Group of entry points of packages with codes. The name of an entry point is the family of its code.
ENTRY_POINTS: Final = "stripesim.codes"
#: Families that the package defines itself.
RESERVED: Final = frozenset({"none", "rep", "rs", "lrc", "lrc-ceph", "shec", "clay"})

_FILE_BYTES_MAX: Final = 1 << 20
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
        reason = getattr(error, "strerror", None) or error
        raise OwnCodeError(
            f"{path}: got {reason}, wanted a Python file that can be read"
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
        If the description is no code.
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
