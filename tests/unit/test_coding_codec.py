"""pyeclib for real: every erasure decoded and rebuilt, parity compared with the oracle byte by byte."""

import builtins
import itertools
import random
from typing import Any

import numpy as np
import pytest

from stripesim.calibration.kernels.codec import (
    BACKENDS,
    HEADER_BYTES,
    Codec,
    available_backends,
    library_versions,
    payload,
)
from stripesim.models.coding.galois import (
    cauchy_matrix,
    matrix_product,
    vandermonde_matrix,
)
from stripesim.models.problems import KernelError

pytestmark = pytest.mark.skipif(
    not available_backends(), reason="pyeclib is not installed on this machine"
)

ORACLES = {"isa_l_rs_vand": vandermonde_matrix, "isa_l_rs_cauchy": cauchy_matrix}


def codec_or_skip(backend: str, k: int, m: int) -> Codec:
    if backend not in available_backends():
        pytest.skip(f"{backend} cannot be loaded on this machine")
    return Codec(backend, k=k, m=m)


@pytest.mark.parametrize(
    ("k", "m", "size"), [(6, 3, 24576), (6, 3, 1000), (10, 4, 40961), (4, 2, 1)]
)
@pytest.mark.parametrize("backend", list(ORACLES))
def test_parity_equals_the_oracle(backend: str, k: int, m: int, size: int) -> None:
    codec = codec_or_skip(backend, k, m)
    fragments = codec.encode(random.Random(size).randbytes(size))
    shards = np.stack(
        [np.frombuffer(body, dtype=np.uint8) for body in map(payload, fragments)]
    )
    assert np.array_equal(matrix_product(ORACLES[backend](k, m), shards[:k]), shards)


@pytest.mark.parametrize(("k", "m", "size"), [(6, 3, 24576), (10, 4, 4099)])
@pytest.mark.parametrize(
    "backend", [b for b in BACKENDS if not b.startswith("flat_xor")]
)
def test_every_erasure_of_up_to_m_fragments(
    backend: str, k: int, m: int, size: int
) -> None:
    codec = codec_or_skip(backend, k, m)
    data = random.Random(7).randbytes(size)
    fragments = codec.encode(data)
    assert len(fragments) == k + m
    assert b"".join(map(payload, fragments[:k]))[:size] == data
    for erasures in range(m + 1):
        for lost in itertools.combinations(range(k + m), erasures):
            left = [
                fragment
                for index, fragment in enumerate(fragments)
                if index not in lost
            ]
            assert codec.decode(left) == data, lost
            for index in lost[:1]:
                assert payload(codec.reconstruct(left, index)) == payload(
                    fragments[index]
                ), lost


@pytest.mark.parametrize(
    ("backend", "erasures_max"), [("flat_xor_hd_3", 2), ("flat_xor_hd_4", 3)]
)
def test_flat_xor_bears_its_distance_less_one(backend: str, erasures_max: int) -> None:
    codec = codec_or_skip(backend, 10, 5)
    data = random.Random(8).randbytes(10240)
    fragments = codec.encode(data)
    for lost in itertools.combinations(range(15), erasures_max):
        left = [
            fragment for index, fragment in enumerate(fragments) if index not in lost
        ]
        assert codec.decode(left) == data, lost


def test_fragments_carry_an_80_byte_header_and_ceil_sized_chunks() -> None:
    codec = codec_or_skip("isa_l_rs_cauchy", 6, 3)
    for size, chunk in ((1, 1), (6, 1), (100, 17), (24576, 4096), (24577, 4097)):
        assert {len(fragment) for fragment in codec.encode(b"x" * size)} == {
            HEADER_BYTES + chunk
        }
    with pytest.raises(KernelError, match=r"got 79 bytes.*80\b"):
        payload(b"x" * 79)


@pytest.mark.parametrize(
    ("backend", "k", "m", "wanted"),
    [
        ("nonesuch", 6, 3, "backend: got 'nonesuch'.*isa_l_rs_vand"),
        ("isa_l_rs_vand", 10, 5, r"wanted.* 4\b"),
        ("isa_l_rs_vand", 22, 4, r"wanted.* 21\b"),
        ("isa_l_rs_cauchy", 30, 3, r"wanted.* 32\b"),
        ("isa_l_rs_cauchy", 0, 3, "got k = 0"),
        ("flat_xor_hd_3", 6, 3, "flat_xor_hd_3"),
    ],
)
def test_bad_backends_and_shapes_give_one_clear_line(
    backend: str, k: int, m: int, wanted: str
) -> None:
    with pytest.raises(KernelError, match=wanted) as caught:
        Codec(backend, k=k, m=m)
    assert "\n" not in str(caught.value)


def test_too_few_or_foreign_fragments_are_an_error() -> None:
    codec = codec_or_skip("isa_l_rs_cauchy", 6, 3)
    fragments = codec.encode(b"y" * 600)
    with pytest.raises(KernelError, match=r"5 fragments \(k = 6\)"):
        codec.decode(fragments[:5])
    with pytest.raises(KernelError, match="decode"):
        codec.decode([b"z" * len(fragments[0])] * 6)
    with pytest.raises(KernelError, match=r"index: got 9.*0.*8\b"):
        codec.reconstruct(fragments, 9)
    with pytest.raises(KernelError, match="got"):
        codec.encode(b"")


def test_without_pyeclib_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_pyeclib(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "pyeclib":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pyeclib)
    assert available_backends() == ()
    assert library_versions() == {}
    for backend in ("isa_l_rs_vand", "null"):
        with pytest.raises(KernelError, match="pyeclib"):
            Codec(backend, k=6, m=3)
