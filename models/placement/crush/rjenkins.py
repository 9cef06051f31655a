"""Robert Jenkins' mixing hash of 1996 in the two forms that Ceph uses: of integers and of strings.

The same implementation serves Python integers and int64 arrays. A mask keeps every value below 2**32, so that
intermediate values fit into 63 bits. `draw` has the compiled version for CRUSH's inner loop.

References
----------
R. J. Jenkins, "Hash Functions", Dr. Dobb's Journal, September 1997 (evahash; public domain). Ceph v16.2.15,
src/crush/hash.c and src/common/ceph_hash.cc, for seeds and the order of rounds.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_MASK = 0xFFFFFFFF
HASH_SEED = 1315423911
PAD_X = 231232
PAD_Y = 1232
_GOLDEN_RATIO = 0x9E3779B9
_BLOCK_BYTES = 12

Word = TypeVar("Word", int, npt.NDArray[np.int64])


def _mix(a: Word, b: Word, c: Word) -> tuple[Word, Word, Word]:
    """Mix one round over three 32-bit words, each in [0, 2**32)."""
    for right_a, left_b, right_c in ((13, 8, 13), (12, 16, 5), (3, 10, 15)):
        a = ((a - b - c) & _MASK) ^ (c >> right_a)
        b = ((b - c - a) & _MASK) ^ ((a << left_b) & _MASK)
        c = ((c - a - b) & _MASK) ^ (b >> right_c)
    return a, b, c


def hash_pair(a: Word, b: Word) -> Word:
    """Hash two 32-bit words, in [0, 2**32), into one. Arrays of int64 broadcast."""
    h = a ^ b ^ HASH_SEED
    x: Word = a * 0 + PAD_X
    y: Word = a * 0 + PAD_Y
    a, b, h = _mix(a, b, h)
    x, a, h = _mix(x, a, h)
    b, y, h = _mix(b, y, h)
    return h


def hash_byte_rows(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Hash byte strings of equal length, as Ceph hashes object names in UTF-8.

    Parameters
    ----------
    rows
        Byte strings, uint8 of shape (n, length_bytes).

    Returns
    -------
    ndarray
        Hashes in [0, 2**32), int64 of shape (n,).

    Examples
    --------
    >>> hex(hash_byte_rows(np.frombuffer(b"a", dtype=np.uint8)[None, :])[0])
    '0x29eec818'
    """
    count, length_bytes = rows.shape
    blocks = length_bytes // _BLOCK_BYTES + 1
    padded = np.zeros((count, blocks * _BLOCK_BYTES), dtype=np.uint8)
    # The lowest byte of the last word is reserved for the length, so what would be there starts behind it.
    last = padded.shape[1] - 4
    padded[:, : min(last, length_bytes)] = rows[:, :last]
    padded[:, last + 1 : length_bytes + 1] = rows[:, last:]
    words = padded.view("<u4").astype(np.int64).T
    words[-1] += length_bytes
    a = b = np.full(count, _GOLDEN_RATIO, dtype=np.int64)
    c = np.zeros_like(a)
    for first, second, third in words.reshape(blocks, 3, count):
        a, b, c = _mix((a + first) & _MASK, (b + second) & _MASK, (c + third) & _MASK)
    return c
