"""Map object names to placement groups, and placement groups to OSDs while all OSDs are up.

References
----------
Ceph v16.2.15, src/osd/osd_types.cc (pg_pool_t::hash_key, raw_pg_to_pg, raw_pg_to_pps), src/include/rados.h
(ceph_stable_mod).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.map import CrushMap, Reweights, whole_numbers
from stripesim.models.placement.crush.rjenkins import Word, hash_byte_rows, hash_pair
from stripesim.models.problems import ProblemsError

_INDEX_DIGITS = 16
# Both hexadecimal digits of each byte, as one number of two bytes each.
_HEX_DIGITS = np.frombuffer(bytes(range(256)).hex().encode(), dtype=np.uint16)
# Names to hash at a time [count]. Each takes some hundred bytes meanwhile.
_NAMES = 1 << 14
_PG_NUM_MAX = 1 << 30


def stable_mod(values: Word, count: int) -> Word:
    """Fold hashes into [0, count) such that few values move when count grows.

    Each hash is taken modulo the power of two at or above `count`, or modulo half of it if the result is too
    large. All bins therefore have equal shares only if `count` is a power of two.

    Parameters
    ----------
    values
        Hashes, at least 0: an int or an array of int64.
    count
        Number of bins, 1 to 2**30.

    Raises
    ------
    ProblemsError
        If `count` is out of range.

    Examples
    --------
    >>> [stable_mod(v, 12) for v in (11, 12, 13, 27)]
    [11, 4, 5, 11]
    """
    _check_count("count", count)
    modulus = 1 << (count - 1).bit_length()
    folded = values % modulus
    # A value at or above `count` has the top bit set.
    return folded - (folded >= count) * (modulus >> 1)


def pgs_of_objects(
    prefix: str, indices: npt.ArrayLike, pg_num: int
) -> npt.NDArray[np.int64]:
    """Return the placement groups of an RBD image's data objects.

    Parameters
    ----------
    prefix
        The image's block_name_prefix. Objects are named ``prefix.%016x``.
    indices
        Object numbers, whole numbers of shape (n,), at least 0.
    pg_num
        Placement groups of the pool, 1 to 2**30.

    Returns
    -------
    ndarray
        Placement groups, int64 of shape (n,).

    Raises
    ------
    ProblemsError
        If an argument is out of range.
    """
    numbers = whole_numbers("indices", indices)
    if numbers.size > 0 and int(numbers.min()) < 0:
        raise ProblemsError(f"indices: got {numbers.min()}, wanted at least 0")
    parts = [
        stable_mod(_hashes_of_names(prefix, numbers[first : first + _NAMES]), pg_num)
        for first in range(0, numbers.size, _NAMES)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _hashes_of_names(prefix: str, numbers: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the hashes of the names of objects."""
    stem = np.frombuffer(f"{prefix}.".encode(), dtype=np.uint8)
    rows = np.empty((numbers.size, stem.size + _INDEX_DIGITS), dtype=np.uint8)
    rows[:, : stem.size] = stem
    index_bytes = numbers.astype(">u8").view(np.uint8).reshape(-1, _INDEX_DIGITS // 2)
    rows[:, stem.size :] = _HEX_DIGITS.take(index_bytes).view(np.uint8)
    return hash_byte_rows(rows)


def placement_seeds(pgs: Word, pool_id: int, pgp_num: int) -> Word:
    """Return the CRUSH inputs of placement groups.

    Parameters
    ----------
    pgs
        Placement groups: an int or an array of int64.
    pool_id
        Id of the pool. It separates equally numbered PGs of different pools (flag hashpspool, the default for
        all pools since Dumpling).
    pgp_num
        Placement groups for placement, normally equal to pg_num.

    Returns
    -------
    int or ndarray
        Inputs in [0, 2**32).
    """
    folded = stable_mod(pgs, pgp_num)
    return hash_pair(folded, folded * 0 + (pool_id & 0xFFFFFFFF))


def pg_mappings(
    crush: CrushMap,
    rule: int | str,
    pool_id: int,
    pg_num: int,
    width: int,
    reweights: Reweights = None,
    *,
    pgp_num: int | None = None,
) -> npt.NDArray[np.int32]:
    """Return the OSDs of every placement group of a pool while all OSDs are up.

    Parameters
    ----------
    crush
        CRUSH map of the cluster.
    rule, reweights
        As for `CrushMap.map_many`.
    pool_id
        Id of the pool. It also selects the pool's choose_args.
    pg_num
        Placement groups of the pool, 1 to 2**30.
    width
        OSDs per placement group: copies, or k + m.
    pgp_num
        Placement groups for placement. None means `pg_num`.

    Returns
    -------
    ndarray
        OSD ids, int32 of shape (pg_num, width). Row p belongs to PG p, with the primary first (shard 0 of an
        erasure-coded pool). `NONE` marks a slot that CRUSH could not fill.

    Raises
    ------
    ProblemsError
        If an argument is out of range.

    Notes
    -----
    Upmap exceptions, pg_temp and primary affinity are left to `pg_sets`.
    """
    _check_count("pg_num", pg_num)
    seeds = placement_seeds(
        np.arange(pg_num, dtype=np.int64),
        pool_id,
        pg_num if pgp_num is None else pgp_num,
    )
    return crush.map_many(rule, seeds, width, reweights, pool=pool_id)


def _check_count(name: str, count: int) -> None:
    if not 1 <= count <= _PG_NUM_MAX:
        raise ProblemsError(
            f"{name}: got {count}, wanted a whole number from 1 to {_PG_NUM_MAX}"
        )
