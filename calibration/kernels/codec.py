"""Wrap pyeclib: encode, decode and reconstruct with real codes.

pyeclib prepends an 80-byte header to every fragment, which `payload` removes. Its C extension holds the
interpreter's lock, so threads do not help.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

from stripesim.models.kernel.cost import Op
from stripesim.models.problems import KernelError, first_problem

#: Size of liberasurecode's header in front of every fragment [B].
HEADER_BYTES: Final = 80

#: Backends that solve the plain (k, m) problem.
BACKENDS: Final = (
    "isa_l_rs_vand",
    "isa_l_rs_cauchy",
    "isa_l_rs_vand_inv",
    "liberasurecode_rs_vand",
    "jerasure_rs_vand",
    "jerasure_rs_cauchy",
    "flat_xor_hd_3",
    "flat_xor_hd_4",
)

#: The backend that only copies. Its time is the cost of allocation, headers and memory moves.
NULL_BACKEND: Final = "null"

_SHARDS_MAX: Final = 32
# Largest k with m = 4 such that ISA-L's Vandermonde form can decode every erasure of m shards, found by
# inverting every submatrix (tests/unit/test_coding_galois.py). m up to 3 needs no limit here.
_VAND_PARITY_MAX: Final = 4
_VAND_DATA_MAX_AT_PARITY_MAX: Final = 21


def library_versions() -> dict[str, str]:
    """Return the versions of ``pyeclib`` and its ``liberasurecode``, or an empty dict without pyeclib."""
    try:
        ec_iface, _ = _pyeclib("version")
    except KernelError:
        return {}
    # Imported by name, because pyeclib_c has no types for a strict type checker.
    packed = import_module("pyeclib_c").get_liberasurecode_version()
    return {
        "pyeclib": str(ec_iface.__version__),
        "liberasurecode": f"{packed >> 16}.{packed >> 8 & 0xFF}.{packed & 0xFF}",
    }


def available_backends() -> tuple[str, ...]:
    """Return the members of `BACKENDS` that this machine can load, none without pyeclib."""
    try:
        ec_iface, _ = _pyeclib("backends")
    except KernelError:
        return ()
    return tuple(
        backend for backend in BACKENDS if ec_iface.check_backend_available(backend)
    )


@dataclass(frozen=True)
class KernelCall:
    """A call to time. `check` returns True if its result is correct."""

    op: Op
    erasures: int
    call: Callable[[], Any]
    check: Callable[[Any], bool]


class Codec:
    """An erasure code of pyeclib.

    Parameters
    ----------
    backend
        One of `BACKENDS`, or ``null``, which copies but computes nothing.
    k, m
        Data and parity fragments, at most 32 in total.
    driver
        A pyeclib driver to use instead of one for this backend.

    Raises
    ------
    KernelError
        If pyeclib is missing, the backend is unknown or not installed, or the shape is not supported.
        ``isa_l_rs_vand`` is rejected with more than 4 parities, and with 4 for more than 21 data fragments,
        because its matrix then has singular submatrices. Debian's libjerasure2 is found only through a link
        named ``libJerasure-pyeclib.so.2``.
    """

    def __init__(self, backend: str, *, k: int, m: int, driver: Any = None) -> None:
        if driver is None and backend not in (*BACKENDS, NULL_BACKEND):
            raise KernelError(
                f"codec: backend: got {backend!r}, wanted one of {', '.join(BACKENDS)}"
            )
        if k < 1 or m < 1 or k + m > _SHARDS_MAX:
            raise KernelError(
                f"codec: {backend}: got k = {k}, m = {m}, "
                f"wanted both at least 1 and k + m at most {_SHARDS_MAX} (pyeclib's limit)"
            )
        if backend == "isa_l_rs_vand" and (
            m > _VAND_PARITY_MAX
            or (m == _VAND_PARITY_MAX and k > _VAND_DATA_MAX_AT_PARITY_MAX)
        ):
            raise KernelError(
                f"codec: isa_l_rs_vand: got k = {k}, m = {m}, wanted m at most {_VAND_PARITY_MAX} and, "
                f"with m = {_VAND_PARITY_MAX}, k at most {_VAND_DATA_MAX_AT_PARITY_MAX} "
                "(some erasures cannot be decoded beyond; use isa_l_rs_cauchy)"
            )
        self.backend = backend
        self.k = k
        self.m = m
        if driver is None:
            refused = f"got k = {k}, m = {m}, a shape this backend does not offer"
            null = backend == NULL_BACKEND
            if null:
                driver = _null_driver(k, m)
            else:
                driver = pyeclib_driver(backend, refused, k=k, m=m)
        self._driver: Any = driver

    def encode(self, data: bytes) -> list[bytes]:
        """Encode data into k + m fragments with headers, data first.

        Raises
        ------
        KernelError
            If the data is empty or the library fails.
        """
        if not data:
            raise KernelError(
                f"codec: {self.backend}: encode: got no data, wanted at least one byte"
            )
        fragments: list[bytes] = self._call("encode", self._driver.encode, data)
        return fragments

    def decode(self, fragments: Sequence[bytes]) -> bytes:
        """Decode data, as given to `encode`, from a sufficient set of fragments.

        Raises
        ------
        KernelError
            If the fragments do not suffice.
        """
        data: bytes = self._call("decode", self._driver.decode, list(fragments))
        return data

    def reconstruct(self, fragments: Sequence[bytes], index: int) -> bytes:
        """Rebuild the fragment `index`, 0 to k + m - 1, with its header from a sufficient set of others.

        Raises
        ------
        KernelError
            If the index is out of range or the fragments do not suffice.
        """
        if not 0 <= index < self.k + self.m:
            raise KernelError(
                f"codec: {self.backend}: index: got {index}, wanted 0 to {self.k + self.m - 1}"
            )
        rebuilt: list[bytes] = self._call(
            "reconstruct", self._driver.reconstruct, list(fragments), [index]
        )
        return rebuilt[0]

    @property
    def erasures_max(self) -> int:
        """Number of arbitrary erasures tolerated: d - 1 for flat XOR codes of distance d."""
        prefix, _, distance = self.backend.rpartition("_")
        if prefix == "flat_xor_hd":
            return int(distance) - 1
        return self.m

    def holds(self, fragments: list[bytes], data: bytes) -> bool:
        """Return True if the data survives the number of losses that the code guarantees."""
        return self.decode(fragments[self.erasures_max :]) == data

    def calls(self, data: bytes) -> list[KernelCall]:
        """List the calls to time: encode, decode without leading fragments, reconstruct the first."""
        fragments = self.encode(data)

        def holds_data(encoded: list[bytes]) -> bool:
            return b"".join(map(payload, encoded[: self.k]))[: len(data)] == data

        def decode(left: list[bytes]) -> Callable[[], bytes]:
            return lambda: self.decode(left)

        return [
            KernelCall("encode", 0, lambda: self.encode(data), holds_data),
            *(
                KernelCall(
                    "decode",
                    lost,
                    decode(fragments[lost:]),
                    lambda decoded: bool(decoded == data),
                )
                for lost in range(self.erasures_max + 1)
            ),
            KernelCall(
                "reconstruct",
                1,
                lambda: self.reconstruct(fragments[1:], 0),
                lambda rebuilt: payload(rebuilt) == payload(fragments[0]),
            ),
        ]

    def copies(self, data: bytes) -> list[KernelCall]:
        """List the same calls of the null code, which computes nothing. Its results are not data."""
        return Codec(NULL_BACKEND, k=self.k, m=self.m).calls(data)

    def _call(self, op: str, function: Callable[..., Any], *args: Any) -> Any:
        from pyeclib.ec_iface import ECDriverError

        try:
            return function(*args)
        except ECDriverError as error:
            if op == "encode":
                fragments = ""
            else:
                fragments = f" of {len(args[0])} fragments (k = {self.k})"
            raise KernelError(
                f"codec: {self.backend}: {op}{fragments} failed: {first_problem(error)}"
            ) from None


def payload(fragment: bytes) -> bytes:
    """Return a fragment without its header, or raise `KernelError` if it is too short."""
    if len(fragment) < HEADER_BYTES:
        raise KernelError(
            f"codec: fragment: got {len(fragment)} bytes, wanted at least {HEADER_BYTES}"
        )
    return fragment[HEADER_BYTES:]


def _pyeclib(backend: str) -> tuple[Any, Any]:
    """Return pyeclib's interface and the module with its driver class."""
    try:
        from pyeclib import core, ec_iface
    except ImportError:
        raise KernelError(
            f"codec: {backend}: pyeclib is not installed; "
            "install pyeclib 1.8 or newer, or use a shipped kernel table"
        ) from None
    return ec_iface, core


def pyeclib_driver(backend: str, refused: str, **shape: int) -> Any:
    """Return a pyeclib driver, or raise `KernelError` with the missing part or the unsupported shape."""
    ec_iface, _ = _pyeclib(backend)
    if backend not in ec_iface.VALID_EC_TYPES or not ec_iface.check_backend_available(
        backend
    ):
        raise KernelError(
            f"codec: backend: got {backend!r}, which this machine cannot load, "
            f"wanted one of {', '.join(available_backends())}"
        )
    try:
        with warnings.catch_warnings():
            # pyeclib warns that it may drop jerasure, but the user requested it.
            warnings.simplefilter("ignore", FutureWarning)
            return ec_iface.ECDriver(ec_type=backend, **shape)
    except (ec_iface.ECDriverError, TypeError):
        raise KernelError(f"codec: {backend}: {refused}") from None


def _null_driver(k: int, m: int) -> Any:
    """Return the library's null code through pyeclib's own driver class, so that it makes the same copies."""
    driver = _pyeclib(NULL_BACKEND)[1].ECPyECLibDriver
    # pyeclib has no name for the null backend, which is number 0 in liberasurecode.
    return driver(k=k, m=m, hd=m, ec_type=SimpleNamespace(value=0))
