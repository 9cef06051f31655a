"""Encode, lose and decode any data under any tolerated loss, with the library and with an oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripesim.calibration.kernels.codec import Codec, available_backends, payload
from stripesim.models.coding.galois import cauchy_matrix, invert, matrix_product

SHAPES = st.tuples(st.integers(1, 10), st.integers(1, 4))


@pytest.mark.skipif(
    "isa_l_rs_cauchy" not in available_backends(),
    reason="pyeclib with isa_l_rs_cauchy is not installed",
)
@given(SHAPES, st.binary(min_size=1, max_size=3000), st.data())
def test_library_decodes_after_any_bearable_loss(
    shape: tuple[int, int], data: bytes, draw: st.DataObject
) -> None:
    k, m = shape
    codec = Codec("isa_l_rs_cauchy", k=k, m=m)
    fragments = codec.encode(data)
    lost = draw.draw(st.sets(st.integers(0, k + m - 1), max_size=m))
    assert (
        codec.decode([f for index, f in enumerate(fragments) if index not in lost])
        == data
    )
    shards = np.stack(
        [np.frombuffer(body, dtype=np.uint8) for body in map(payload, fragments)]
    )
    assert np.array_equal(matrix_product(cauchy_matrix(k, m), shards[:k]), shards)


@given(SHAPES, st.integers(1, 50), st.integers(0, 2**32 - 1), st.data())
def test_oracle_decodes_after_any_bearable_loss(
    shape: tuple[int, int], chunk: int, seed: int, draw: st.DataObject
) -> None:
    k, m = shape
    generator = cauchy_matrix(k, m)
    data = np.random.default_rng(seed).integers(0, 256, (k, chunk), dtype=np.uint8)
    shards = matrix_product(generator, data)
    lost = draw.draw(st.sets(st.integers(0, k + m - 1), max_size=m))
    left = [index for index in range(k + m) if index not in lost][:k]
    assert np.array_equal(matrix_product(invert(generator[left]), shards[left]), data)
