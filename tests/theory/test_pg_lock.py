"""Sequential writes share few locks: their number by theory for both kinds of clients."""

import pytest

import stripesim
from stripesim.notebooks.answers.the_pg_lock import NUMBERS, questions
from stripesim.teach import Lesson

KIB = 1024
OBJECT_BYTES = 4096 * KIB


def rate(completions: str, in_flight: int) -> float:
    """Return the rate of sequential 64 KiB writes to RS(6,3) [requests/s]."""
    sets = [
        'schemes=["rs:6,3"]',
        "workload.ops=write",
        "workload.patterns=seq",
        "workload.block_sizes_bytes=64k",
        f"workload.completions={completions}",
        f"workload.queue_depth={in_flight}",
        # So many that two objects hardly ever share one.
        "cluster.pg_num=4096",
        "workload.requests=6000",
    ]
    scenario = stripesim.load_scenario("koh2017", sets=sets)
    (row,) = stripesim.run(scenario, costs=False).rows.to_dicts()
    return float(row["iops"])


def test_locks_at_work_depend_on_when_a_client_issues_its_next_write() -> None:
    # 32 × 64 KiB are half an object, whose writes share one lock.
    one_lock = rate("newest", 32)
    for in_flight in (64, 256):
        filled = in_flight * 64 * KIB / OBJECT_BYTES
        each = rate("each", in_flight) / one_lock
        assert each == pytest.approx(1 + 2 * filled, rel=0.12)
        newest = rate("newest", in_flight) / one_lock
        assert newest == pytest.approx(max(1, filled), rel=0.2)


@pytest.mark.parametrize("answer", [11.5, 12.4])
def test_objects_filled_and_objects_touched_are_both_right(answer: float) -> None:
    numbers = {**NUMBERS, "depth": (184,), "size_kib": (256,)}
    lesson = Lesson("The PG lock", 1, numbers, questions)
    # 184 × 0.25 / 4, and 1 + 183 × 0.25 / 4 for a window that begins anywhere.
    assert lesson["groups at work"].check(answer) == "right"
