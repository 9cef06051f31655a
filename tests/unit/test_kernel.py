"""Kernel costs: evaluation, tables, JSON, errors."""

import math
from pathlib import Path
from typing import Any

import pytest

from stripesim.models.kernel.cost import AffineKnee, KernelCost, KernelModel
from stripesim.models.kernel.documents import (
    load_table,
    merge_tables,
    parse_table,
    table_to_json,
)
from stripesim.models.problems import KernelError

PROVENANCE = {
    "basis": "measured",
    "cpu": {"name": "test"},
    "versions": {},
    "date": "2026-01-01",
}


def cost(
    op: str = "encode", erasures: int = 0, fixed_ns: float = 100.0, **changes: Any
) -> KernelCost:
    fields: dict[str, Any] = {
        "backend": "b1",
        "scheme": "rs:6,3",
        "op": op,
        "erasures": erasures,
        "total": AffineKnee(fixed_ns, 0.5, 1000.0, 2.0),
        "copy": AffineKnee(50.0, 0.1),
        "net": AffineKnee(40.0, 0.25),
        "size_min_bytes": 1,
        "size_max_bytes": 2000,
        "points": 8,
        "residual_median": 0.01,
        "residual_max": 0.02,
    }
    return KernelCost(**(fields | changes))


def decode_cost(erasures: int, fixed_ns: float) -> KernelCost:
    return cost("decode", erasures, net=AffineKnee(fixed_ns, 0.25))


def table(*costs: KernelCost) -> KernelModel:
    return KernelModel("t", PROVENANCE, costs)


def test_a_knee_changes_the_slope_once() -> None:
    line = AffineKnee(100.0, 0.5, 1000.0, 2.0)
    assert [line.duration_ns(x) for x in (0, 1000, 1001, 2000)] == [
        100.0,
        600.0,
        602.0,
        2600.0,
    ]
    assert AffineKnee(7.0, 2.0).duration_ns(10**9) == 7.0 + 2e9


def test_the_copy_cost_is_separate() -> None:
    assert cost().duration_ns(400) == 300.0
    assert cost().arithmetic_ns(400) == 140.0
    # Without a measurement of the copies, the whole call is charged.
    assert cost(copy=None, net=None).arithmetic_ns(400) == 300.0
    with pytest.raises(KernelError, match="data_bytes: got -1"):
        cost().duration_ns(-1)


def test_look_up_takes_the_first_backend_that_has_it() -> None:
    t = table(
        cost(),
        cost(backend="b2", fixed_ns=7.0),
        cost(backend="b2", scheme="rs:4,2", fixed_ns=9.0),
    )
    encode = {"op": "encode", "scheme": "rs:6,3"}
    assert t.cost(**encode).duration_ns(0) == 100.0
    assert t.cost(**encode, backend="b2").duration_ns(0) == 7.0
    assert t.cost(op="encode", scheme="rs:4,2").duration_ns(0) == 9.0
    assert t.backends == ("b1", "b2")
    assert t.schemes("b1") == ("rs:6,3",)


def test_missing_costs_are_reported_with_the_available_ones() -> None:
    t = table(cost())
    with pytest.raises(
        KernelError,
        match="no encode of rs:8,3; it has schemes rs:6,3; `stripesim kernel --scheme rs:8,3",
    ):
        t.cost(op="encode", scheme="rs:8,3")
    with pytest.raises(KernelError, match="by b9; it has backends b1"):
        t.cost(op="encode", scheme="rs:6,3", backend="b9")
    with pytest.raises(KernelError, match="no decode of rs:6,3 with 1 erasures"):
        t.decode_ns(1, scheme="rs:6,3", erasures=2)


def test_decode_beyond_the_measured_erasures_repeats_the_last_step() -> None:
    t = table(*(decode_cost(*row) for row in ((1, 100.0), (2, 130.0))))
    assert t.decode_ns(0, scheme="rs:6,3", erasures=2) == 130.0
    assert t.decode_ns(0, scheme="rs:6,3", erasures=3) == 160.0
    # A faster second erasure is noise: a third does not come cheaper than the second.
    falling = table(*(decode_cost(*row) for row in ((1, 100.0), (2, 90.0))))
    assert falling.decode_ns(0, scheme="rs:6,3", erasures=4) == 90.0


def test_json_round_trip_keeps_everything() -> None:
    t = table(
        cost(),
        cost("decode", 1, copy=None, net=None),
        cost("reconstruct", 1, total=AffineKnee(1.0, 2.0)),
    )
    back = parse_table(table_to_json(t))
    assert back == t
    assert math.isinf(back.costs[2].total.knee_bytes)


def test_merge_lets_the_first_table_win() -> None:
    old, new = table(cost(), cost("decode", 1)), table(cost(fixed_ns=1.0))
    merged = merge_tables("m", [new, old])
    assert merged.cost(op="encode", scheme="rs:6,3").duration_ns(0) == 1.0
    assert len(merged.costs) == 2
    assert merged.provenance["merged"] == [PROVENANCE]


@pytest.mark.parametrize(
    ("break_it", "wanted"),
    [
        (lambda text: text[:50], "x.json:.*not JSON"),
        (lambda text: "[]", "format: got 'list'"),
        (
            lambda text: text.replace("table-1", "table-9"),
            "'stripesim-kernel-table-1'",
        ),
        (
            lambda text: text.replace('"op": "encode"', '"op": "hash"'),
            "op: got 'hash'",
        ),
        (
            lambda text: text.replace('"points": 8', '"points": "8"'),
            "points: got '8'",
        ),
        (lambda text: text.replace('"scheme"', '"shape"'), "scheme: missing"),
        (
            lambda text: text.replace('"fixed_ns": 100.0', '"fixed_ns": -1'),
            "fixed_ns: got -1",
        ),
        (
            lambda text: text.replace('"cpu"', '"gpu"'),
            "provenance: got no cpu, wanted basis, cpu",
        ),
    ],
)
def test_broken_documents_give_one_clear_line(break_it: Any, wanted: str) -> None:
    with pytest.raises(KernelError, match=wanted) as caught:
        parse_table(break_it(table_to_json(table(cost()))), where="x.json")
    assert str(caught.value).startswith("x.json")
    assert "\n" not in str(caught.value)


def test_impossible_costs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"encode: erasures: got 2.*0$"):
        cost("encode", 2)
    with pytest.raises(KernelError, match=r"decode: erasures: got -1.*0 or more$"):
        cost("decode", -1)
    with pytest.raises(KernelError, match=r"^kernel table t: "):
        table(cost(), cost())
    with pytest.raises(KernelError, match="got nan"):
        AffineKnee(math.nan, 1.0)
    with pytest.raises(KernelError, match="cannot read"):
        load_table(tmp_path / "absent.json")
