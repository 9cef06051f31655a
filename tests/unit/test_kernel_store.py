"""Tables on disk: the shipped tables are complete, and measured ones are saved and found."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import stripesim
from stripesim.calibration.kernels import store as kernel_store
from stripesim.calibration.kernels.against_ceph import ceph_rows, ceph_table_from
from stripesim.models.coding import parse_scheme
from stripesim.models.kernel.cost import AffineKnee, KernelCost, KernelModel
from stripesim.models.problems import KernelError
from stripesim.scenarios.answers.plan.plan import make_plan
from stripesim.scenarios.cells.models import build_models

KERNELS_CSV = (
    Path(__file__).resolve().parents[2].parent / "shared/data/ceph16/kernels.csv"
)
needs_kernels = pytest.mark.skipif(
    not KERNELS_CSV.exists(), reason=f"{KERNELS_CSV} is not there"
)


def small_table(scheme: str, fixed_ns: float) -> KernelModel:
    cost = KernelCost(
        "b",
        scheme,
        "encode",
        0,
        AffineKnee(fixed_ns, 1.0),
        None,
        None,
        1,
        2,
        2,
        0.0,
        0.0,
    )
    provenance = {
        "basis": "measured",
        "cpu": {"name": "c"},
        "versions": {},
        "date": "2026-01-01",
    }
    return KernelModel("mine", provenance, (cost,))


def test_shipped_tables_load_and_their_schemes_parse() -> None:
    names = kernel_store.shipped_table_names()
    assert {kernel_store.DEFAULT_TABLE, kernel_store.CEPH_TABLE} <= set(names)
    for name in names:
        table = kernel_store.shipped_table(name)
        assert table.name == name
        assert table.provenance["basis"] == "measured"
        for scheme in table.schemes():
            assert parse_scheme(scheme).kind == "erasure"


def test_default_table_has_the_studied_codes_with_every_operation() -> None:
    table = kernel_store.default_table()
    for scheme in ("rs:6,3", "rs:10,4", "rs:9,3", "rs:12,3"):
        m = parse_scheme(scheme).m
        encode = table.cost(scheme=scheme, op="encode")
        assert 0 < encode.arithmetic_ns(24576) < encode.duration_ns(24576)
        for erasures in range(m + 1):
            assert table.decode_ns(24576, scheme=scheme, erasures=erasures) > 0
        assert (
            table.cost(scheme=scheme, op="reconstruct", erasures=1).duration_ns(24576)
            > 0
        )


def test_default_table_fits_its_measurements() -> None:
    table = kernel_store.default_table()
    residuals = table.provenance["relative_residuals"]
    assert residuals["cost_count"] == len(table.costs)
    assert residuals["max"] == max(cost.residual_max for cost in table.costs)
    # Medians of nine samples on a shared machine repeat within a few per cent; the fit must not add to that.
    assert residuals["median_of_medians"] < 0.05


@needs_kernels
def test_the_ceph_table_equals_its_source() -> None:
    # A fit goes through BLAS, and another processor or build sums in another order: the last bits (1e-16 of a
    # value) differ. 1e-9 is far above that noise and far below any change of the source, which has 6 digits.
    refitted, shipped = (
        ceph_table_from(KERNELS_CSV),
        kernel_store.shipped_table(kernel_store.CEPH_TABLE),
    )
    assert (refitted.name, len(refitted.costs)) == (shipped.name, len(shipped.costs))
    for again, cost in zip(refitted.costs, shipped.costs, strict=True):
        found, wanted = asdict(again), asdict(cost)
        assert found.pop("total") == pytest.approx(
            wanted.pop("total"), rel=1e-9, abs=1e-9
        )
        for residual in ("residual_median", "residual_max"):
            assert found.pop(residual) == pytest.approx(wanted.pop(residual), abs=1e-9)
        assert found == wanted


@needs_kernels
def test_ceph_rows_count_the_padding_and_put_the_default_plugin_first() -> None:
    rows = ceph_rows(KERNELS_CSV)
    assert rows[0]["backend"] == "jerasure:reed_sol_van"
    # 4 plugins and techniques, 3 codes, 3 operations, 2 sizes.
    assert len(rows) == 72
    sizes = {(r["backend"], r["scheme"]): set() for r in rows}
    for r in rows:
        sizes[r["backend"], r["scheme"]].add(r["size_bytes"])
    assert sizes["isa:reed_sol_van", "rs:6,3"] == {24576, 6 * 174784}
    assert sizes["jerasure:cauchy_good", "rs:6,3"] == {6 * 98304, 6 * 196608}


def test_a_bad_source_gives_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="cannot read"):
        ceph_rows(tmp_path / "absent.csv")
    path = tmp_path / "k.csv"
    path.write_text("lib,k\nceph-16.2.15,6\n")
    with pytest.raises(KernelError, match="columns: got no backend"):
        ceph_rows(path)


def test_saving_keeps_existing_costs_and_finds_them_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = kernel_store.save_table(small_table("rs:2,1", 5.0))
    assert path == tmp_path / "stripesim" / "kernel_tables" / "mine.json"
    kernel_store.save_table(small_table("rs:4,2", 7.0))
    kernel_store.save_table(small_table("rs:2,1", 6.0))
    table = kernel_store.named_table("mine")
    assert table.cost(scheme="rs:2,1", op="encode").duration_ns(0) == 6.0
    assert table.cost(scheme="rs:4,2", op="encode").duration_ns(0) == 7.0


def save_here(scheme: str, fixed_ns: float) -> None:
    """Save costs as `kernel --save` does, under the name of this machine's processor."""
    name = kernel_store.table_name(kernel_store.cpu_description())
    table = small_table(scheme, fixed_ns)
    decode = replace(table.costs[0], op="decode", erasures=1)
    kernel_store.save_table(replace(table, name=name, costs=(*table.costs, decode)))


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Save costs of a code that the shipped table lacks: 5 ms for a call, 1 ns/B."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert OWN_CODE not in kernel_store.default_table().schemes()
    save_here(OWN_CODE, 5e6)
    return OWN_CODE


OWN_CODE = "shec:5,3,2"
OWN = {
    "schemes": [OWN_CODE],
    "cluster": {"hosts": 10, "osds_per_host": 1, "pg_num": 32},
    "workload": {
        "requests": 20,
        "ops": ["write"],
        "patterns": ["rand"],
        "queue_depth": 1,
        "image_bytes": "1GiB",
    },
}


def test_without_saved_costs_a_new_code_is_refused_with_the_timing_command():
    with pytest.raises(ValueError, match=f"kernel --scheme {OWN_CODE} --save"):
        stripesim.run(stripesim.Scenario(**OWN))


def test_saved_costs_of_a_new_code_are_used_by_the_next_run(saved: str) -> None:
    result = stripesim.run(stripesim.Scenario(**OWN))
    (row,) = result.rows.to_dicts()
    # Each write encodes once, alone on the cluster: 5 ms of it at least.
    assert row["latency_mean_ns"] > 5e6
    (measured,) = result.provenance["kernel_measured_here"]
    assert (measured["scheme"], measured["basis"]) == (saved, "measured")
    assert result.provenance["kernel_table"] == kernel_store.DEFAULT_TABLE


def test_saved_costs_of_a_new_code_are_used_by_the_next_sweep(saved: str) -> None:
    scenario = stripesim.Scenario(**OWN)
    result = stripesim.sweep(scenario, {"workload.queue_depth": [1, 2]}, jobs=1)
    assert not result.failed
    assert result.rows["latency_mean_ns"].min() > 5e6


def test_saved_costs_of_a_new_code_are_used_by_the_next_plan(saved: str) -> None:
    scenario = stripesim.Scenario(**OWN, plan={"hosts": [10], "p99_ms": 1000.0})
    (candidate,) = make_plan(scenario).document["candidates"]
    assert candidate["meets"]
    assert candidate["latency_p99_ns"] > 5e6


def test_saved_costs_of_a_new_code_are_used_by_the_next_explain(saved: str) -> None:
    (timeline,) = stripesim.explain("write", saved, 4096)
    assert timeline.latency_by_category_ns()["coding"] > 5e6
    assert "measured here" in timeline.parameters["kernel"]["source"]


def test_saved_costs_change_no_code_that_the_table_has_or_interpolates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = stripesim.Scenario(**OWN | {"schemes": ["rs:4,2", "rs:7,2", "rs:7,3"]})
    before = build_models(scenario)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    save_here("rs:4,2", 5e6)
    save_here("rs:7,2", 5e6)
    after = build_models(scenario)
    # The table has the first and the last follows from the codes of the table alone.
    for scheme in ("rs:4,2", "rs:7,3"):
        assert after.encode_ns(scheme, 65536) == before.encode_ns(scheme, 65536)
    assert before.encode_ns("rs:7,2", 65536) < 5e6 < after.encode_ns("rs:7,2", 65536)


def test_a_sweep_runs_a_code_with_interpolated_costs() -> None:
    scenario = stripesim.Scenario(**OWN | {"schemes": ["rs:7,2"]})
    assert not stripesim.sweep(scenario, {"cluster.hosts": [9, 10]}, jobs=1).failed


def test_unknown_tables_and_unwritable_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(KernelError, match="got 'nonesuch'"):
        kernel_store.named_table("nonesuch")
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(KernelError, match="cannot write"):
        kernel_store.save_table(small_table("rs:2,1", 5.0), blocked / "below")


def test_a_damaged_file_of_costs_is_refused_before_any_code_is_timed(
    command: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(
        "stripesim.scenarios.answers.kernel.time_kernels",
        lambda *_, **__: pytest.fail("timed"),
    )
    path = kernel_store.user_table_path()
    path.parent.mkdir(parents=True)
    path.write_text('{"format"')

    status, _, err = command("kernel", "--scheme", "rs:4,2", "--save")

    assert status == 2
    assert err.startswith(f"{path}:1: ")


def test_an_interruption_leaves_the_costs_that_were_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kernel_store.save_table(small_table("rs:2,1", 5.0), tmp_path)
    before = path.read_text("utf-8")

    def cut(self: Path, text: str, **_: object) -> None:
        self.write_bytes(text[:50].encode())
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", cut)
    with pytest.raises(KeyboardInterrupt):
        kernel_store.save_table(small_table("rs:3,1", 5.0), tmp_path)

    assert path.read_text("utf-8") == before


def test_cpu_is_described_and_named() -> None:
    cpu = kernel_store.cpu_description()
    assert cpu["name"]
    name = kernel_store.table_name(cpu)
    assert name == name.lower()
    assert " " not in name
