"""Machine code of kernels that comes with the package. This module does not load Numba.

``built/kernels.json`` describes the libraries beside it: the machine that they run on, the processors that
each is for, and for each kernel the types of its arguments and what its code was made from (``origin.py``).
Numba compiles a kernel whose sources differ from that. In the environment, ``STRIPESIM_KERNELS=compile``
compiles all, and ``STRIPESIM_KERNELS=oldest`` takes the library that runs on all processors of the kind.

A kernel takes one argument, a table of 64-bit words: five words and the shape and strides of each array, and
one word for each number, in the order of the arguments. It returns one number.
"""

import ctypes
import json
import operator
import os
import platform
import struct
import sys
import weakref
from array import array
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from stripesim.models.jit.origin import current
from stripesim.models.jit.warning import warn

FOLDER: Final = Path(__file__).resolve().parent / "built"
#: For the oldest processors. Those for newer ones are named by the manifest.
LIBRARY: Final = "kernels.so"
#: The engine alone, for browsers.
WASM: Final = "kernels.wasm"
MANIFEST: Final = "kernels.json"

#: Conversions of the returned number, by the name of Numba's type.
RETURNS: Final[dict[str, Callable[[int], Any]]] = {
    "none": lambda _: None,
    "int64": int,
    "bool": bool,
}

_DOUBLE: Final = struct.Struct("d")


def machine() -> str:
    """Return the kind of machine that code is made for."""
    return f"{sys.platform} {platform.machine()}"


def processor_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Return the features of this processor that Linux lists, or none if it lists none."""
    try:
        with cpuinfo.open(encoding="utf-8") as lines:
            for line in lines:
                name, _, features = line.partition(":")
                if name.strip() == "flags":
                    return frozenset(features.split())
    except OSError:
        # Another system. Each of its processors runs the library for the oldest ones.
        pass
    return frozenset()


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a kernel in the manifest."""
    return f"{function.__module__}.{function.__qualname__}"


def types_of(argument: Any) -> list[str]:
    """Return the type of each array and number in an argument, which may be a tuple."""
    return described(argument)[0]


def described(argument: Any) -> tuple[list[str], list[int]]:
    """Return the types of an argument, and its words in the table of a call."""
    types: list[str] = []
    words: list[int] = []
    _describe(argument, types, words)
    return types, words


def _describe(argument: Any, types: list[str], words: list[int]) -> None:
    """Append the types and the words of an argument, in one pass: walks of durability call kernels often."""
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        types.append(
            _type_of_array(
                argument.ndim, argument.dtype, flags.writeable, flags.c_contiguous
            )
        )
        # `__array_interface__` also describes each field of a record.
        address = argument.ctypes.data
        words += (0, 0, argument.size, argument.itemsize, address)
        words += argument.shape
        words += argument.strides
    elif isinstance(argument, tuple):
        for item in argument:
            _describe(item, types, words)
    else:
        types.append(_type_of_number(argument))
        words.append(_word_of_number(argument))


@cache
def _type_of_array(
    dimensions: int, dtype: np.dtype[Any], writeable: bool, contiguous: bool
) -> str:
    name = str(dtype.descr) if dtype.names else str(dtype)
    access = "" if writeable else " read-only"
    order = "" if contiguous else " with gaps"
    return f"{dimensions} {name}{access}{order}"


def _type_of_number(number: Any) -> str:
    if isinstance(number, np.generic):
        return str(number.dtype)
    return {bool: "bool", int: "int64", float: "float64"}.get(type(number), "?")


def _word_of_number(number: Any) -> int:
    if isinstance(number, float):
        return int.from_bytes(_DOUBLE.pack(number), sys.byteorder, signed=True)
    # As two's complement, also for unsigned numbers.
    return (int(number) + 2**63) % 2**64 - 2**63


class _Known(NamedTuple):
    """Words of a tuple of arrays, which it does not keep alive."""

    arrays: "list[weakref.ref[Any]]"
    words: "array[int]"

    def is_of(self, argument: Any) -> bool:
        """Return True if the argument is a tuple of the same arrays."""
        if not isinstance(argument, tuple) or len(argument) != len(self.arrays):
            return False
        # Without a function in Python for each array: a directed run calls kernels at each event.
        arrays = [reference() for reference in self.arrays]
        return all(map(operator.is_, arrays, argument))


def _is_of_arrays(argument: Any) -> bool:
    return isinstance(argument, tuple) and all(
        isinstance(part, np.ndarray) for part in argument
    )


class Prebuilt:
    """The code of one kernel.

    Parameters
    ----------
    entry
        The function of the library.
    types
        Types of its arguments, from `types_of`, one list for each.
    returns
        A key of `RETURNS`.
    """

    def __init__(self, entry: Any, types: list[list[str]], returns: str) -> None:
        self._entry = entry
        self._types = types
        self._returned = RETURNS[returns]
        # The last argument that was a tuple of arrays. The engine passes the same many times.
        self._last: _Known | None = None

    def table(self, arguments: tuple[Any, ...]) -> "array[int] | None":
        """Return the table of a call, or None if the kernel was not made for such arguments."""
        if len(arguments) != len(self._types):
            return None
        # Other threads may replace it.
        last = self._last
        words = array("q")
        for argument, types in zip(arguments, self._types, strict=True):
            if last is not None and last.is_of(argument):
                words.extend(last.words)
                continue
            own_types, numbers = described(argument)
            if own_types != types:
                return None
            new = array("q", numbers)
            words.extend(new)
            if _is_of_arrays(argument):
                self._last = _Known([weakref.ref(part) for part in argument], new)
        return words

    def run(self, table: "array[int]") -> Any:
        """Run the kernel, which releases Python's lock."""
        return self._returned(self._entry(table.buffer_info()[0]))


def prebuilt_of(function: Callable[..., Any]) -> Prebuilt | None:
    """Return the code of a kernel, or None if the package has none for these sources and this machine."""
    manifest = _manifest()
    described = manifest["kernels"].get(name_of(function))
    if described is None:
        return None
    changed = _changed(described["origin"])
    if changed:
        warn(f"prebuilt kernels: got another {changed} than they were made from; "
             "compiling (in a checkout, make kernels builds them again)")  # fmt: skip
        return None
    library = _library()
    if library is None:
        return None
    entry = getattr(library, described["entry"])
    entry.restype = ctypes.c_int64
    entry.argtypes = [ctypes.c_void_p]
    return Prebuilt(entry, described["types"], described["returns"])


def has_library() -> bool:
    """Return True if the package has prebuilt code of any state."""
    return (FOLDER / LIBRARY).exists()


def has_code() -> bool:
    """Return True if the package has prebuilt code for this machine."""
    return bool(_manifest()["kernels"]) and has_library()


def is_current(functions: Iterable[Callable[..., Any]]) -> bool:
    """Return True if the package has code of these kernels for these sources and this machine."""
    manifest = _manifest()
    if not has_library():
        return False
    for function in functions:
        described = manifest["kernels"].get(name_of(function))
        if described is None or _changed(described["origin"]):
            return False
    return all((FOLDER / library["file"]).exists() for library in manifest["libraries"])


@cache
def _manifest() -> Any:
    nothing: dict[str, Any] = {"libraries": [], "kernels": {}}
    if os.environ.get("STRIPESIM_KERNELS") == "compile":
        return nothing
    try:
        manifest = json.loads((FOLDER / MANIFEST).read_text("utf-8"))
    except FileNotFoundError:
        return nothing
    except (OSError, ValueError) as error:
        warn(f"prebuilt kernels: {FOLDER / MANIFEST}: {error}; compiling")
        return nothing
    if "libraries" not in manifest:
        warn("prebuilt kernels: got those of an older version; compiling")
        return nothing
    if manifest["machine"] != machine():
        warn(
            f"prebuilt kernels: got code for {manifest['machine']}, wanted {machine()}; compiling"
        )
        return nothing
    return manifest


def library_for(features: frozenset[str]) -> str:
    """Return the file of the first library whose processors have no more than these features.

    The last library of a manifest is for all processors.
    """
    return next(
        str(library["file"])
        for library in _manifest()["libraries"]
        if features.issuperset(library["features"])
    )


@cache
def _library() -> ctypes.CDLL | None:
    takes_oldest = os.environ.get("STRIPESIM_KERNELS") == "oldest"
    features = frozenset[str]() if takes_oldest else processor_features()
    try:
        return ctypes.CDLL(str(FOLDER / library_for(features)))
    except OSError as error:
        warn(f"prebuilt kernels: {error}; compiling")
        return None


def _changed(origin: dict[str, str]) -> str | None:
    """Return the first difference from the state that a kernel was made from, or None."""
    for name, value in origin.items():
        try:
            if current(name) != value:
                return name
        except (LookupError, OSError):
            return name
    return None
