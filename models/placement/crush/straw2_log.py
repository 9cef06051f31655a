"""Tabulate the fixed-point logarithm of straw2 for all 65,536 hash values.

Straw2 needs log2 in fixed point, and every client and OSD must compute the same bits. The table that Ceph
released is therefore part of the algorithm, including its defects. The second table of that logarithm should
hold floor(2**48 * log2(1 + k / 2**15)). Instead it holds (checked against all 256 entries of the table in
libceph-common of Ceph 16.2.15):

- that value for k = 0 and 1,
- that value plus `USUAL_EXCESS` for the other entries, as if a constant had leaked into the calculation,
- except for the 42 entries in `EXCESS_AT`, which have individual excesses (zero: the entry is correct).

The excess is only 2e-5 of an octave, so its effect on the distribution of data is negligible, but it changes
results.

References
----------
S. Weil, "straw2" (Ceph v0.94 release notes, 2015); Ceph v16.2.15, src/crush/mapper.c (crush_ln) and
src/crush/crush_ln_table.h.
"""

import math
from functools import cache

import numpy as np
import numpy.typing as npt

USUAL_EXCESS = 0x147700000
FIRST_WITH_EXCESS = 2

# Entry:excess
_EXCESSES = """
56:5349423536 127:978272901 134:3588789669 181:4007963589 184:5423282367 188:2201924427
193:3829329171 198:2511158322 199:2670353280 200:3807665765 203:0 207:5045407031 210:4635559696
212:3670382108 216:0 222:0 225:3209098745 227:1514328394 228:2662093655 229:561838844 231:3537203772
233:0 235:4861921003 236:5281046906 237:0 238:0 239:0 240:2650193885 241:4203558265 243:0 244:0
245:0 246:0 247:362109528 248:0 249:0 250:0 251:0 252:0 253:0 254:0 255:0
"""
EXCESS_AT = {
    int(k): int(excess)
    for k, _, excess in (pair.partition(":") for pair in _EXCESSES.split())
}

HASH_VALUES = 1 << 16

#: Heaviest item for which `straw2_rivals` holds, 16.16 fixed point (256 TiB as Ceph weighs drives).
RIVAL_WEIGHT_MAX = 1 << 24
_ONE = 1 << 48
_COARSE_STEPS = 128
_LAST_COARSE_LOG = (
    0xFFFF00000000  # the only entry of its table that deviates from the formula (2**48)
)


def _coarse_reciprocal(k: int) -> int:
    """Return ceil(2**48 / (1 + k/128)) exactly."""
    return -(-_ONE * _COARSE_STEPS // (_COARSE_STEPS + k))


def _coarse_log(k: int) -> int:
    """Return floor(2**48 * log2(1 + k/128)). Tests check that the 53 bits of a double suffice."""
    if k == _COARSE_STEPS:
        return _LAST_COARSE_LOG
    return math.floor(_ONE * math.log2(1 + k / _COARSE_STEPS))


def _fine_log(k: int) -> int:
    """Return floor(2**48 * log2(1 + k/2**15)) with the excess of the released table."""
    usual = USUAL_EXCESS if k >= FIRST_WITH_EXCESS else 0
    return math.floor(_ONE * math.log2(1 + k / (1 << 15))) + EXCESS_AT.get(k, usual)


@cache
def straw2_log_table() -> npt.NDArray[np.float64]:
    """Tabulate 2**44 * log2(u + 1) - 2**48, in CRUSH's arithmetic, for each 16-bit hash u.

    Returns
    -------
    ndarray
        float64 of shape (65536,), read-only. The values are integers in [-2**48, 0), which are exact in a
        double.

    Notes
    -----
    x = u + 1 is shifted into [2**15, 2**16]. Its top eight bits select a reciprocal and a coarse logarithm.
    The low eight bits of x times that reciprocal select the fine logarithm. The sum is truncated to 44
    fractional bits.
    """
    shifted = np.arange(1, HASH_VALUES + 1, dtype=np.int64)
    octave = np.full(HASH_VALUES, 15, dtype=np.int64)
    for _ in range(15):
        small = shifted < 1 << 15
        shifted[small] <<= 1
        octave[small] -= 1
    coarse = (shifted >> 8) - _COARSE_STEPS
    reciprocal = np.array(
        [_coarse_reciprocal(k) for k in range(_COARSE_STEPS + 1)], dtype=np.uint64
    )
    coarse_log = np.array(
        [_coarse_log(k) for k in range(_COARSE_STEPS + 1)], dtype=np.int64
    )
    fine_log = np.array([_fine_log(k) for k in range(256)], dtype=np.int64)
    # The product reaches 2**64 only for x = 2**16, whose reciprocal is 2**47, so it fits into 64 unsigned
    # bits.
    fine = ((shifted.astype(np.uint64) * reciprocal[coarse]) >> np.uint64(48)).astype(
        np.int64
    ) & 0xFF
    log = (octave << 44) + ((coarse_log[coarse] + fine_log[fine]) >> 4)
    table: npt.NDArray[np.float64] = (log - _ONE).astype(np.float64)
    table.setflags(write=False)
    return table


@cache
def straw2_rivals() -> npt.NDArray[np.uint32]:
    """Tabulate, for each hash, the smallest one that may draw as high among items of equal weight.

    Returns
    -------
    ndarray
        uint32 of shape (65536,), read-only.

    Notes
    -----
    A higher hash nearly always has a higher logarithm, but the defects of the table make a few equal or
    reverse their order. A draw is a quotient of the logarithm and the weight. Logarithms that differ by more
    than the weight have different quotients.
    """
    table = straw2_log_table()
    # Highest logarithm of any hash up to each.
    highest = np.maximum.accumulate(table)
    rivals = np.searchsorted(highest, table - RIVAL_WEIGHT_MAX).astype(np.uint32)
    rivals.setflags(write=False)
    return rivals
