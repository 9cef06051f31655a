"""From an object's name to its placement group, and from there to the OSDs that are up for it.

See Ceph v16.2.15, src/osd/osd_types.cc (pg_pool_t::hash_key, raw_pg_to_pg, raw_pg_to_pps),
src/include/rados.h (ceph_stable_mod).
"""

import numpy as np
import numpy.typing as npt

from stripesim.models.placement.crush.elements import PlacementError
from stripesim.models.placement.crush.map import CrushMap, Reweights, whole_numbers
from stripesim.models.placement.crush.rjenkins import Word, hash_byte_rows, hash_pair

_INDEX_DIGITS = 16
_PG_NUM_MAX = 1 << 30


def stable_mod(values: Word, count: int) -> Word:
    """Fold hashes (at least 0) into [0, count) so that few values move when count grows.

    Each is taken modulo the power of two at or above count, or modulo half of it where that is too large. So
    all buckets hold equal shares only if count is a power of two.

    >>> [stable_mod(v, 12) for v in (11, 12, 13, 27)]
    [11, 4, 5, 11]
    """
    _check_count("count", count)
    modulus = 1 << (count - 1).bit_length()
    folded = values % modulus
    # A value at or above count has the top bit set.
    return folded - (folded >= count) * (modulus >> 1)


def pgs_of_objects(
    prefix: str, indices: npt.ArrayLike, pg_num: int
) -> npt.NDArray[np.int64]:
    """Return the PGs of an RBD image's data objects (block_name_prefix ``.%016x``) by object number."""
    numbers = whole_numbers("indices", indices)
    if numbers.size > 0 and int(numbers.min()) < 0:
        raise PlacementError(f"indices: got {numbers.min()}, wanted at least 0")
    stem = np.frombuffer(f"{prefix}.".encode(), dtype=np.uint8)
    rows = np.empty((numbers.size, stem.size + _INDEX_DIGITS), dtype=np.uint8)
    rows[:, : stem.size] = stem
    shifts = np.arange(4 * (_INDEX_DIGITS - 1), -1, -4, dtype=np.uint64)
    digits = (numbers.astype(np.uint64)[:, None] >> shifts) & np.uint64(15)
    rows[:, stem.size :] = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)[digits]
    return stable_mod(hash_byte_rows(rows), pg_num)


def placement_seeds(pgs: Word, pool_id: int, pgp_num: int) -> Word:
    """Return the inputs in [0, 2**32) that CRUSH maps for placement groups, by their numbers.

    The pool's id sets PGs of different pools with the same number apart (flag hashpspool, which all pools
    have had by default since Dumpling); `pgp_num` are PGs for placement, normally the pool's pg_num.
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
    """Return the OSDs of every placement group of a pool, while all OSDs are up.

    Rule and reweights are those of `CrushMap.map_many`; `pgp_num` is PGs for placement, by default pg_num.
    The pool's id also picks its choose_args.
    Row p holds the OSDs of PG p, the primary first (shard 0 of an erasure-coded pool); `NONE` where CRUSH
    found none. Upmap exceptions, pg_temp and primary affinity are left to `pg_sets`.
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
        raise PlacementError(
            f"{name}: got {count}, wanted a whole number from 1 to {_PG_NUM_MAX}"
        )
