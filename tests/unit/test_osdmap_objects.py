"""Map object names to placement groups, one by one and in bulk, with the guarantees of stable_mod."""

import numpy as np
import pytest

from stripesim.models.placement import (
    build_map,
    pg_mappings,
    pgs_of_objects,
    placement_seeds,
    stable_mod,
)
from stripesim.models.placement.crush.rjenkins import hash_byte_rows, hash_pair
from stripesim.models.problems import ProblemsError


def object_hash(name: str) -> int:
    """Hash of one name, by the function for many names of one length."""
    return int(hash_byte_rows(np.frombuffer(name.encode(), dtype=np.uint8)[None, :])[0])


def test_many_objects_together_map_like_single_ones():
    indices = [0, 1, 9, 10, 255, 2**31, 2**63 - 1]
    for prefix in ("rbd_data.1", "rbd_data.5e23b8f4a1c2", "rbd_data.3.fa", ""):
        for pg_num in (1, 12, 32, 1000):
            one_by_one = [
                stable_mod(object_hash(f"{prefix}.{i:016x}"), pg_num) for i in indices
            ]
            assert pgs_of_objects(prefix, indices, pg_num).tolist() == one_by_one


def test_every_length_of_name_is_hashed_whole():
    names = ["x" * n for n in range(40)]
    assert len({object_hash(name) for name in names}) == 40
    for name in names[1:]:
        for position in range(len(name)):
            changed = f"{name[:position]}y{name[position + 1 :]}"
            assert object_hash(changed) != object_hash(name)


def test_the_compiled_hash_is_the_readable_one():
    # The reweight test and straw2 use the kernel's hash indirectly. This test calls it directly.
    from stripesim.models import jit
    from stripesim.models.placement.crush import draw

    @jit.compiled
    def compiled(a, b, pairs):
        for i in range(a.size):
            pairs[i] = draw._hash2(a[i], b[i])

    words = np.random.default_rng(7).integers(0, 2**32, size=(2, 500), dtype=np.uint32)
    words[:, :2] = [[0, 2**32 - 1]] * 2
    pairs = np.empty(500, np.uint32)
    compiled(*words, pairs)
    a, b = words.astype(np.int64)
    assert pairs.tolist() == hash_pair(a, b).tolist()
    assert [hash_pair(*(int(v) for v in column)) for column in words.T[:20]] == pairs[
        :20
    ].tolist()


def test_stable_mod_moves_only_the_necessary_objects_when_pgs_split():
    for count in range(1, 70):
        for value in range(300):
            before, after = stable_mod(value, count), stable_mod(value, count + 1)
            assert 0 <= before < count
            assert after in (before, count)


def test_seeds_together_map_like_single_ones():
    pgs = np.arange(100)
    wanted = [placement_seeds(int(pg), 3, 64) for pg in pgs]
    assert placement_seeds(pgs, 3, 64).tolist() == wanted


def test_each_pg_is_mapped_with_a_separate_seed():
    crush = build_map(hosts=4, osds_per_host=6)
    table = pg_mappings(crush, "ec_osd", 2, 16, 9)
    assert table.shape == (16, 9)
    assert (
        table[5].tolist() == crush.mappings("ec_osd", [placement_seeds(5, 2, 16)], 9)[0]
    )


def test_bad_questions_are_refused():
    crush = build_map(hosts=4, osds_per_host=6)
    with pytest.raises(ProblemsError, match="pg_num: got 0"):
        pg_mappings(crush, "rep", 1, 0, 3)
    with pytest.raises(ProblemsError, match="indices: got -1"):
        pgs_of_objects("rbd_data.1", [-1], 8)
    with pytest.raises(ProblemsError, match=r"indices: got .*float64"):
        pgs_of_objects("rbd_data.1", [0.5], 8)
