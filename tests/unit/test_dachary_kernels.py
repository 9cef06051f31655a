"""Raw kernels, software codes, their benchmark and the comparison with Ceph's, without asserting times."""

import itertools
import stat
import sys

import numpy as np
import pytest

from stripesim.calibration.kernels import bench as kernel_bench
from stripesim.calibration.kernels import isal as kernel_raw
from stripesim.calibration.kernels import jerasure as kernel_jerasure
from stripesim.calibration.kernels import software as kernel_software
from stripesim.calibration.kernels.against_ceph import (
    ceph_rows_against,
    parse_output,
    side_by_side,
)
from stripesim.calibration.kernels.buffers import ceph_buffers, fit_buffers
from stripesim.calibration.kernels.codec import available_backends
from stripesim.models.kernel.buffers import EncodeBufferModel
from stripesim.models.problems import KernelError
from stripesim.models.provenance import Provenance

needs_isa_l = pytest.mark.skipif(
    not kernel_raw.available(),
    reason="pyeclib with an ISA-L of its own is not installed",
)
SOURCE_COLUMNS = (
    "seconds",
    "KB",
    "plugin",
    "k",
    "m",
    "workload",
    "iterations",
    "size",
    "erasures",
)
SOURCE_LINES = """
seconds         KB      plugin          k m work.       iter.   size    eras.
0.103921        1048576 jerasure        6 2 decode      1024    1048576 1
# a remark
0.238322        1048576 jerasure        6 2 encode      1024    1048576 0
"""


def chunks(count, size, seed=1):
    rng = np.random.default_rng(seed)
    made = [kernel_raw.aligned(size) for _ in range(count)]
    for one in made:
        one[:] = rng.integers(0, 256, size, dtype=np.uint8)
    return made


def extensions():
    from stripesim.calibration.kernels.store import cpu_description

    return set(cpu_description()["extensions"])


@needs_isa_l
@pytest.mark.parametrize(("k", "m"), [(2, 1), (6, 2), (10, 4)])
def test_isal_alone_gives_back_every_lost_chunk(k, m):
    data = chunks(k, 1000)
    parity = kernel_raw.coefficients(k, m)
    every = [*data, *kernel_raw.RawKernel(parity).apply(data)]
    lost = [0, k] if m > 1 else [k - 1]
    rows, kept = kernel_raw.decode_rows(parity, lost)
    rebuilt = kernel_raw.RawKernel(rows).apply([every[index] for index in kept])
    for index, one in zip(lost, rebuilt, strict=True):
        assert np.array_equal(one, every[index])


@needs_isa_l
@pytest.mark.parametrize("variant", [v for v in kernel_raw.VARIANTS if v])
def test_every_vector_extension_computes_the_same(variant):
    if (
        variant.startswith("avx")
        and {"avx512": "avx512bw"}.get(variant, variant) not in extensions()
    ):
        pytest.skip(f"this processor has no {variant}")
    data = chunks(6, 4096)
    parity = kernel_raw.coefficients(6, 3)
    wanted = kernel_raw.RawKernel(parity).apply(data)
    got = kernel_raw.RawKernel(parity, variant).apply(data)
    assert all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True))


@needs_isa_l
def test_raw_rows_are_verified_and_go_round_cold_buffers():
    rows = kernel_raw.measure_raw(
        [(4, 2)], [512], rounds=2, sample_s=0.0, cold_bytes=20_000
    )
    assert [(r["op"], r["erasures"], r["verified"]) for r in rows] == [
        ("encode", 0, True),
        ("decode", 1, True),
        ("decode", 2, True),
    ]
    assert all(r["size_bytes"] == 2048 and r["backend"] == "isal_cauchy" for r in rows)


@needs_isa_l
def test_a_loop_works_on_every_set_of_buffers():
    parity = kernel_raw.coefficients(4, 2)
    kernel = kernel_raw.RawKernel(parity)
    sets = [
        (chunks(4, 256, seed), [kernel_raw.aligned(256) for _ in range(2)])
        for seed in (1, 2, 3)
    ]
    kernel.loop(sets)(3)
    for data, outputs in sets:
        assert all(
            np.array_equal(a, b)
            for a, b in zip(outputs, kernel.apply(data), strict=True)
        )


@needs_isa_l
def test_unknown_variants_are_refused():
    with pytest.raises(KernelError, match="variant: got 'mmx'"):
        kernel_raw.RawKernel(np.ones((1, 2), dtype=np.uint8), "mmx")


@pytest.mark.skipif(
    not kernel_jerasure.available(),
    reason="libJerasure.so.2 (Debian: libjerasure2) is missing",
)
def test_jerasure_gives_back_every_choice_of_losses():
    rows = kernel_jerasure.measure_cauchy_good(4, 2, 1000, rounds=1)
    assert [(r["op"], r["erasures"], r["verified"]) for r in rows] == [
        ("encode", 0, True),
        ("decode", 1, True),
        ("decode", 2, True),
    ]
    # Whole packets: 8 of 3,072 bytes in each of four chunks.
    assert rows[0]["size_bytes"] == 4 * 8 * 3072


def test_without_jerasure_the_error_names_the_package(monkeypatch):
    monkeypatch.setattr(kernel_jerasure, "_library", lambda: None)
    assert not kernel_jerasure.available()
    with pytest.raises(KernelError, match="libjerasure2"):
        kernel_jerasure.CauchyGood(6, 2, 1024)


@pytest.mark.parametrize("code", kernel_software.CODES)
def test_software_codes_compute_their_parity(code):
    encode, check = kernel_software.software_encoder(code, 4, 512, 3)
    assert not check()
    encode()
    assert check()


def bears_two_losses(bits, k, w):
    """Return True if the code survives every loss of two of k + 2 blocks (full rank over GF(2))."""
    blocks = np.vstack([np.eye(k * w, dtype=np.uint8), bits]).reshape(k + 2, w, k * w)
    for lost in itertools.combinations(range(k + 2), 2):
        left = np.delete(blocks, lost, axis=0).reshape(-1, k * w)
        rows = [int("".join(map(str, row.tolist())), 2) for row in left]
        rank = 0
        while rows:
            pivot = rows.pop()
            if pivot:
                rank += 1
                rows = [row ^ pivot if row & pivot & -pivot else row for row in rows]
        if rank < k * w:
            return False
    return True


@pytest.mark.parametrize("k", [2, 4, 5])
def test_bit_matrices_bear_two_losses(k):
    assert bears_two_losses(kernel_software.cauchy_bits(k), k, 8)
    w = 5
    assert bears_two_losses(kernel_software.liberation_bits(k, w), k, w)
    # Without its extra ones the second parity of a Liberation code is a plain rotation, which does not.
    bare = kernel_software.liberation_bits(k, w)
    bare[:w] = bare[w:]
    assert not bears_two_losses(bare, k, w)


def test_liberation_matrices_hold_as_few_ones_as_can_be():
    # Plank 2008: k w + k - 1 in the second parity.
    for k, w in ((4, 5), (5, 5), (7, 7)):
        assert int(kernel_software.liberation_bits(k, w)[w:].sum()) == k * w + k - 1


def test_wrong_software_codes_are_refused():
    with pytest.raises(ValueError, match="code: got 'XYZ'"):
        kernel_software.software_encoder("XYZ", 4, 512, 1)
    with pytest.raises(ValueError, match="w: got 6"):
        kernel_software.liberation_bits(4, 6)


def test_copies_are_timed_and_below_the_roof():
    rows = kernel_bench.memcpy_rows([4096, 65536], rounds=2, sample_s=0.0)
    encode = rows[0] | {
        "op": "encode",
        "scheme": "rs:6,2",
        "backend": "x",
        "size_bytes": 5000,
    }
    found = kernel_bench.with_roofline(
        [*rows, encode, encode | {"cores": 2}, encode | {"buffers": "cold"}]
    )
    assert [row["roofline"] for row in found[:2]] == [1.0, 1.0]
    wanted = encode["bytes_per_s"] * (1 + 2 / 6) / (2 * rows[0]["bytes_per_s"])
    assert found[2]["roofline"] == pytest.approx(wanted)
    assert found[3]["roofline"] is None and found[4]["roofline"] is None


@pytest.mark.skipif(
    "isa_l_rs_cauchy" not in available_backends(),
    reason="pyeclib with ISA-L is missing",
)
def test_cold_calls_are_verified_on_the_last_datum():
    rows = kernel_bench.cold_rows(
        ["rs:4,2"], [4096], ["isa_l_rs_cauchy"], rounds=2, cold_bytes=20_000
    )
    assert [(r["buffers"], r["verified"], r["op"]) for r in rows] == [
        ("cold", True, "encode")
    ]


@pytest.mark.skipif(
    "isa_l_rs_cauchy" not in available_backends(),
    reason="pyeclib with ISA-L is missing",
)
def test_all_cores_encode_at_the_same_time():
    rows = kernel_bench.cores_rows(
        ["rs:4,2"], [4096], ["isa_l_rs_cauchy"], cores=2, seconds=0.01
    )
    assert [(r["cores"], r["verified"]) for r in rows] == [(2, True)]


def test_rows_in_the_columns_of_the_source():
    row = {
        "backend": "isa",
        "scheme": "rs:6,2",
        "op": "encode",
        "erasures": 0,
        "size_bytes": 1 << 20,
        "seconds_median": 0.001,
    }
    (found,) = kernel_bench.table_rows([row])
    assert tuple(found) == SOURCE_COLUMNS
    assert (
        found["seconds"] == pytest.approx(1.024)
        and found["KB"] == 1 << 20
        and found["iterations"] == 1024
    )
    # Written output can be read again.
    (again,) = parse_output(kernel_bench.format_table([row]))
    assert (
        again["seconds_median"] == pytest.approx(0.001) and again["scheme"] == "rs:6,2"
    )


def test_sweep_goes_from_small_stripes_to_the_largest():
    sizes = kernel_bench.sweep_sizes(6)
    assert sizes[0] == 6 * 4096 and sizes[-1] == 64 << 20


def test_recorded_output_of_cephs_benchmark():
    rows = parse_output(SOURCE_LINES)
    assert [(r["backend"], r["op"], r["erasures"]) for r in rows] == [
        ("ceph jerasure", "decode", 1),
        ("ceph jerasure", "encode", 0),
    ]
    assert rows[1]["seconds_median"] == pytest.approx(0.238322 / 1024)
    assert rows[1]["bytes_per_s"] == pytest.approx((1 << 30) / 0.238322)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "got no"),
        ("0.1 1 isa six 2 encode 1 1024 0", "output:1: got '0.1 1 isa six"),
        ("0.1 7 isa 6 2 encode 1 1024 0", "output:1: got 7 KB"),
        ("\n0.000000 1 isa 6 2 encode 1 1024 0", "output:2: got 1 KB in 0.0 s"),
    ],
)
def test_unreadable_output_is_reported_with_its_line(text, words):
    with pytest.raises(KernelError, match=words) as caught:
        parse_output(text)
    assert "\n" not in str(caught.value)


def write_program(path, body):
    path.write_text(f"#!{sys.executable}\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_benchmark_binary_is_run_with_the_right_options(tmp_path):
    log = tmp_path / "log"
    program = write_program(
        tmp_path / "bench",
        f"import sys; open({str(log)!r}, 'a').write(' '.join(sys.argv[1:]) + chr(10)); print('0.5\\t1024')",
    )
    rows = ceph_rows_against(program, schemes=["rs:4,2"], sizes_bytes=[1 << 20])
    assert {row["erasures"] for row in rows} == {0, 1, 2} and len(rows) == 12
    assert rows[0]["seconds_median"] == pytest.approx(0.5 / 256)
    asked = log.read_text("utf-8").splitlines()
    assert asked[1] == (
        "--plugin isa --workload decode --iterations 256 --size 1048576 --erasures 1 "
        "--parameter k=4 --parameter m=2 --parameter technique=cauchy"
    )


def test_a_failing_or_missing_benchmark_is_reported(tmp_path):
    failing = write_program(
        tmp_path / "bench", "import sys; sys.exit('no such plugin')"
    )
    with pytest.raises(KernelError, match="exited with status 1: no such plugin"):
        ceph_rows_against(failing)
    silent = write_program(tmp_path / "silent", "pass")
    with pytest.raises(KernelError, match="wanted"):
        ceph_rows_against(silent)
    with pytest.raises(KernelError, match="got no such file"):
        ceph_rows_against(tmp_path / "nothing")
    recorded = tmp_path / "out.txt"
    recorded.write_text(SOURCE_LINES, encoding="utf-8")
    assert len(ceph_rows_against(recorded)) == 2


def test_side_by_side_pairs_like_with_like():
    ours = {
        "backend": "isa_l",
        "scheme": "rs:6,2",
        "op": "encode",
        "erasures": 0,
        "size_bytes": 1 << 20,
        "bytes_per_s": 2e9,
    }
    others = [
        ours | {"op": "decode"},
        ours | {"size_bytes": 4096},
        ours | {"buffers": "cold"},
    ]
    (pair,) = side_by_side([ours, *others], parse_output(SOURCE_LINES))
    assert pair["ceph_over_ours"] == pytest.approx((1 << 30) / 0.238322 / 2e9)


def test_buffers_cost_per_shard_and_per_parity_byte():
    found = EncodeBufferModel(
        shard_ns=100.0,
        output_ns_per_byte=0.5,
        provenance={
            n: Provenance("assumed", "by hand")
            for n in ("shard_ns", "output_ns_per_byte")
        },
    )
    assert found.duration_ns(6000, k=6, m=2) == 8 * 100 + 0.5 * 2000
    with pytest.raises(ValueError, match="shard_ns"):
        EncodeBufferModel(
            shard_ns=-1.0, output_ns_per_byte=0.0, provenance=found.provenance
        )


def test_the_fit_of_buffers_recovers_its_input():
    def row(backend, k, m, size, seconds):
        return {
            "backend": backend,
            "scheme": f"rs:{k},{m}",
            "op": "encode",
            "size_bytes": size,
            "seconds_median": seconds,
        }

    shapes = [(6, 2, 24576), (6, 2, 1 << 20), (10, 4, 40960), (10, 4, 1 << 20)]
    raw = [row("isal_cauchy_avx2", k, m, size, size * 4e-11) for k, m, size in shapes]
    ceph = [
        row(
            "isa:cauchy",
            k,
            m,
            size,
            size * 4e-11 + ((k + m) * 150 + 0.2 * size * m / k) * 1e-9,
        )
        for k, m, size in shapes
    ]
    found, errors = fit_buffers(ceph, raw)
    assert found == pytest.approx({"shard_ns": 150, "output_ns_per_byte": 0.2})
    assert max(map(abs, errors.values())) < 1e-9


def test_simulated_encode_adds_buffers_only_to_a_kernel_without_copies():
    from dataclasses import replace

    from stripesim.calibration.kernels.store import CEPH_TABLE, named_table
    from stripesim.scenarios.cells.models import build_models
    from stripesim.scenarios.schema.scenario import load_scenario

    models = build_models(
        load_scenario("quickstart", sets=["cluster.encode_buffers=false"])
    )
    for table, added_ns in (
        (None, ceph_buffers().duration_ns(24576, k=6, m=3)),
        (CEPH_TABLE, 0.0),
    ):
        bare = models if table is None else replace(models, kernel=named_table(table))
        if table is None:
            assert bare.kernel.cost(scheme="rs:6,3", op="encode").copy is not None
        charged = replace(bare, encode_buffers=ceph_buffers())
        difference_ns = charged.encode_ns("rs:6,3", 24576) - bare.encode_ns(
            "rs:6,3", 24576
        )
        assert difference_ns == pytest.approx(added_ns)


def test_shipped_buffers_have_a_source():
    assert {row["provenance"] for row in ceph_buffers().parameters()} == {"fitted"}
