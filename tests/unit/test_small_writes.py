"""States of units that small writes to replicated pools cover in part, write by write."""

import numpy as np
import pytest

from stripesim.models.object_store.store import DEFERRED, IN_MEMORY, STORED
from stripesim.sim.ceph.kinds import ObjectRequests
from stripesim.sim.ceph.kinds.caches import SmallWrites

KIB = 1024


@pytest.fixture
def states(models, change):
    """Write 1 KiB to each of some units in turn, and return the states that the writes find."""

    def find(units, *, batch_count, requests_in_flight):
        store = change(models, store={"deferred_batch_count": batch_count}).store
        first_bytes = store.min_alloc_bytes * np.array(units, dtype=np.int64)
        zeros = np.zeros_like(first_bytes)
        requests = ObjectRequests(
            is_write=zeros == 0,
            objects=zeros,
            groups=zeros,
            offsets_bytes=first_bytes,
            lengths_bytes=zeros + KIB,
            sizes_bytes=zeros + (4 << 20),
        )
        writes = SmallWrites(
            store, requests_in_flight=requests_in_flight, prefilled=True
        )
        heads, _ = writes.states(requests, first_bytes)
        return heads.tolist()

    return find


def test_the_last_write_of_a_batch_empties_it(states):
    # The third write finds unit 0 in the batch and completes it, so the fourth begins another.
    found = states([0, 1, 0, 0, 0], batch_count=3, requests_in_flight=1)
    assert found == [STORED, STORED, DEFERRED, STORED, DEFERRED]


@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_unit_is_in_memory_while_its_write_is_in_flight(states, others):
    # Given batches of one write, so that no unit waits, and some other units between two writes of unit 0
    units = [0, *range(1, 1 + others), 0]
    # Then the first of these writes is in flight at the last if all of them may be.
    for in_flight, state in ((others + 1, STORED), (others + 2, IN_MEMORY)):
        found = states(units, batch_count=1, requests_in_flight=in_flight)
        assert found[-1] == state
