"""Sweeps under arbitrary values: splitting, damage on disk, means."""

import json
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stripesim.scenarios.answers.sweep.axes import split_values
from stripesim.scenarios.answers.sweep.stats import aggregate
from stripesim.scenarios.work.store import PartStore

WORDS = st.text("abc019.:_-", min_size=1, max_size=6)
# The output of json.dumps for these values is valid TOML.
QUOTED = st.text(max_size=8).map(json.dumps)
LITERALS = st.text('ab,[]{}" ', max_size=8).map(lambda text: f"'{text}'")
LISTS = st.lists(WORDS.map(json.dumps) | QUOTED | LITERALS, max_size=4).map(
    lambda items: f"[{', '.join(items)}]"
)
VALUES = st.lists(WORDS | QUOTED | LITERALS | LISTS, min_size=1, max_size=5)


@given(VALUES, st.sampled_from([",", ", ", " , "]))
def test_values_joined_are_split_again(values: list[str], comma: str) -> None:
    assert split_values(comma.join(values)) == values


@given(st.text(max_size=30))
def test_any_text_is_split_without_loss_or_refused(text: str) -> None:
    try:
        values = split_values(text)
    except ValueError:
        return
    # Apart from blanks, only the separating commas are missing.
    assert "".join(",".join(values).split()) == "".join(text.split())
    assert all(value == value.strip() for value in values)


ROW: dict[str, Any] = {
    "scheme": "rep:3", "op": "write", "pattern": "rand", "block_size_bytes": 4096, "requests": 7,
    "iops": 1 / 3, "bottleneck": "ssd", "steady": True, "replication": 0,
}  # fmt: skip


@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_never_changes_a_row(position: int, mask: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        with PartStore(Path(folder), resume=False) as store:
            task: Any = SimpleNamespace(task_id="0" * 64, swept={})
            store.add([(task, ROW)])
        (path,) = Path(folder, "parts").glob("*.jsonl.gz")
        content = bytearray(path.read_bytes())
        content[position % len(content)] ^= mask
        path.write_bytes(content)
        with PartStore(Path(folder), resume=True) as store:
            assert store.rows == {}
            assert store.damaged == 1


# The square of a tiny deviation would be 0.
METRICS = st.floats(-1e12, 1e12).map(lambda value: round(value, 6))


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), METRICS),
        min_size=1,
        max_size=20,
    ),
    st.randoms(use_true_random=False),
)
def test_means_do_not_depend_on_the_order_of_replications(
    values: list[tuple[str, float]], chance: Any
) -> None:
    def means(
        rows: list[tuple[str, float]],
    ) -> dict[str, tuple[int, float, float | None]]:
        cell = {"op": "read", "pattern": "seq", "block_size_bytes": 1}
        found = aggregate(
            [{"scheme": scheme, **cell, "iops": value} for scheme, value in rows]
        )
        return {
            row["scheme"]: (row["replications"], row["iops"], row["iops_ci_high"])
            for row in found
        }

    shuffled = list(values)
    chance.shuffle(shuffled)
    first, second = means(values), means(shuffled)
    assert first.keys() == second.keys()
    for scheme, (count, mean, high) in first.items():
        mine = [value for name, value in values if name == scheme]
        # Rounding grows with the values, not with their mean.
        allowed = 1e-12 * max(1.0, *map(abs, mine)) * len(mine)
        assert count == second[scheme][0] == len(mine)
        assert abs(mean - np.mean(mine)) <= allowed
        assert abs(mean - second[scheme][1]) <= allowed
        # Equal values tell nothing about the spread.
        assert (high is None) == (len(set(mine)) == 1)
        assert min(mine) - allowed <= mean <= max(mine) + allowed
