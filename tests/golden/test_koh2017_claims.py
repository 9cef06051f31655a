"""The study's table of claims on made-up rows whose every expected value was worked out by hand.

The rows hold one constant per scheme and kind of run, so means are plain; the tests that follow then vary a
quantity over the block sizes to tell means, extremes and ratios apart.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl
import pytest

from stripesim.calibration.ledger.verdicts import Observation, judge, load_claims
from stripesim.models.problems import MeasuredError
from stripesim.scenarios.studies.claim_rules import claim_rules
from stripesim.scenarios.studies.koh2017.claims import (
    TREND_TOLERANCE,
    koh_claims,
    required_cells,
)
from stripesim.scenarios.studies.koh2017.paper import FIGURES, Runs
from stripesim.scenarios.studies.lookup import claims_of
from support.messages import states

STUDY = Path(__file__).resolve().parents[2] / "scenarios/studies/koh2017"
PUBLISHED = (
    Path(__file__).resolve().parents[2].parent / "shared/data/published/claims.csv"
)
SIZES = [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]
PARAMETERS = [
    {"name": "s", "value": 1.0, "unit": "ms", "provenance": "fitted: row 040"}
]

# Per cell: MB/s, ms, CPU fraction, user fraction of it, context switches per byte, device bytes read and
# written per client byte, private bytes per client byte. Powers of two and round numbers, for hand sums.
CONSTANTS = {
    ("rep:3", "write", "seq", "prefilled"): (160, 50, 0.04, 0.70, 0.01, 0.5, 3, 2),
    ("rep:3", "write", "seq", "pristine"): (170, 48, 0.05, 0.70, 0.01, 0, 3, 2),
    ("rep:3", "write", "rand", "pristine"): (400, 20, 0.20, 0.70, 0.03, 0.5, 5, 2.5),
    ("rep:3", "read", "seq", "prefilled"): (500, 16, 0.01, 0.60, 0.002, 1, 0, 0.0),
    ("rep:3", "read", "rand", "prefilled"): (1000, 8, 0.04, 0.60, 0.002, 1, 0, 0.0),
    ("rs:6,3", "write", "seq", "prefilled"): (40, 200, 0.05, 0.75, 0.08, 6, 9, 7),
    ("rs:6,3", "write", "seq", "pristine"): (45, 180, 0.05, 0.75, 0.08, 0, 9, 5),
    ("rs:6,3", "write", "rand", "pristine"): (120, 60, 0.40, 0.75, 0.12, 0, 100, 125),
    ("rs:6,3", "write", "rand", "prefilled"): (180, 40, 0.45, 0.75, 0.12, 6, 9, 10),
    ("rs:6,3", "read", "seq", "prefilled"): (350, 32, 0.03, 0.80, 0.03, 1.1, 0, 4),
    ("rs:6,3", "read", "rand", "prefilled"): (900, 9, 0.20, 0.80, 0.01, 6, 0, 5),
    ("rs:10,4", "write", "seq", "prefilled"): (20, 400, 0.06, 0.72, 0.16, 10, 14, 12),
    ("rs:10,4", "write", "seq", "pristine"): (25, 380, 0.06, 0.72, 0.16, 0, 14, 8),
    ("rs:10,4", "write", "rand", "pristine"): (80, 100, 0.60, 0.72, 0.24, 0, 150, 200),
    ("rs:10,4", "write", "rand", "prefilled"): (160, 50, 0.65, 0.72, 0.24, 10, 14, 15),
    ("rs:10,4", "read", "seq", "prefilled"): (250, 48, 0.05, 0.80, 0.04, 0.7, 0, 8),
    ("rs:10,4", "read", "rand", "prefilled"): (650, 12, 0.30, 0.80, 0.02, 10, 0, 9),
    ("none", "write", "seq", "prefilled"): (400, 20, 0, 0, 0, 0, 1, 0),
    ("none", "write", "rand", "prefilled"): (200, 40, 0, 0, 0, 0, 1, 0),
    ("none", "read", "seq", "prefilled"): (500, 16, 0, 0, 0, 1, 0, 0),
    ("none", "read", "rand", "prefilled"): (125, 64, 0, 0, 0, 1, 0, 0),
}

EXPECTED = {
    31: 2,
    32: 100 * (1 - 450 / 750),
    33: 100 * (30 / 12 - 1),
    34: 87.5,
    35: 8,
    36: 7.5,
    37: 10,
    38: 30,
    39: (1.5 + 2) / 2,
    40: 160,
    41: 40,
    42: 20,
    43: 4,
    44: 4,
    45: 50,
    46: 200,
    47: 400,
    48: "flat",
    49: 30,
    50: 50,
    51: 2,
    52: 3,
    53: 16,
    54: 32,
    55: 48,
    56: 400 / 120,
    57: 5,
    58: 3,
    59: 4,
    60: 70,
    61: 75,
    62: "flat",
    63: 12.5,
    67: "random > sequential",
    68: 4,
    69: 5,
    70: 6,
    71: (70, 75),
    72: 20,
    73: 40,
    74: 60,
    75: 2.5,
    76: 1,
    77: 3,
    78: 5,
    79: 4,
    80: 20,
    81: 30,
    82: 25,
    83: 80,
    # User time 2.8+14+0.6+2.4 + 3.75+30+2.4+16 + 4.32+43.2+4+24 = 147.47 of 4+20+1+4 + 5+40+3+20 + 6+60+5+30.
    84: 100 * 147.47 / 198,
    86: 0.10 / 0.02,
    87: 0.20 / 0.02,
    88: 80,
    89: 85,
    90: (10, 15),
    91: 0.5,
    92: 4,
    93: 10,
    94: 14,
    95: 30,
    96: 30,
    97: 0.7,
    98: 6,
    99: 10,
    100: 8,
    101: 2.5,
    102: 4,
    103: 50,
    104: 80,
    106: 5,
    107: 9,
    108: (0.25 + 0.5) / 2,
    109: 0.5,
    110: 2 / 0.25,
    111: (900 / 350) / 2,
    112: 1.3,
    113: 6,
    114: 8,
    121: 80,
    122: 20,
    # Sequential writes 6/4, random writes 60/20, sequential reads 5/1, random reads 30/4.
    123: 7.5,
    124: 120,
    125: 80,
    126: 400,
    127: 60,
    128: 100,
    129: 4,
    130: 8,
    131: 50,
    132: 6,
    133: 10,
    134: 6,
    135: 9,
    136: 14,
}


def make_rows(changes=None, drop=()):
    """Return rows from CONSTANTS. `changes` maps (cell, column) to eight values, one per block size."""
    rows = []
    for cell, numbers in CONSTANTS.items():
        throughput, latency, cpu, user, switches, read, written, private = numbers
        for place, size in enumerate(SIZES):
            row = {
                **dict(zip(("scheme", "op", "pattern", "image"), cell, strict=True)),
                "block_size_bytes": size,
                "iops": throughput * 1e6 / size,
                "throughput_bytes_per_s": throughput * 1e6,
                "latency_mean_ns": latency * 1e6,
                "latency_p99_ns": latency * 2e6,
                "device_read_bytes_per_client_byte": float(read),
                "device_data_write_bytes_per_client_byte": float(written),
                "private_net_bytes_per_client_byte": float(private),
                "cpu_utilisation": float(cpu),
                "cpu_user_fraction": float(user),
                "cpu_ns_per_op": 1.0,
                "context_switches_per_op": switches * size,
                "simulated_s": 60.0,
            }
            for (changed, column), values in (changes or {}).items():
                if changed == cell:
                    row[column] = values[place]
            if (*cell, size) not in drop:
                rows.append(row)
    return pl.DataFrame(rows)


def ledger_for(rows, parameters):
    values, reasons = koh_claims(rows)
    return judge(
        claims_of("koh2017"),
        values,
        reasons=reasons,
        parameters=parameters,
        groups=claim_rules("koh2017").groups,
    )


def value(number, changes=None):
    return koh_claims(make_rows(changes))[0][f"koh2017-{number:03d}"]


def verdict(number, changes=None):
    entries = ledger_for(make_rows(changes), PARAMETERS).entries
    return next(
        entry for entry in entries if entry.claim.id == f"koh2017-{number:03d}"
    ).verdict


@pytest.fixture(scope="module")
def simulated():
    return koh_claims(make_rows())


def test_every_rule_has_a_hand_made_expectation():
    ours = {f"koh2017-{number:03d}" for number in EXPECTED}
    rules = claim_rules("koh2017")
    # Claims on series and heartbeats have an expression and, without data, a reason.
    assert ours == set(rules.expressions) - set(rules.not_computed)


@pytest.mark.parametrize("number", EXPECTED)
def test_value_worked_out_by_hand(simulated, number):
    got = simulated[0][f"koh2017-{number:03d}"]
    wanted = EXPECTED[number]
    if isinstance(wanted, str):
        assert isinstance(got, Observation)
        assert got.says == wanted
    else:
        assert got == pytest.approx(wanted)


def test_every_claim_has_a_value_or_a_reason(simulated):
    ids = [claim.id for claim in claims_of("koh2017")]
    values, reasons = simulated
    assert ids == list(values)
    for key in ids:
        assert (values[key] is None) == (key in reasons)


def test_only_the_cells_asked_for_are_needed():
    cells = set(required_cells())
    assert cells == {(*cell, size) for cell in CONSTANTS for size in SIZES}
    one = ("rs:6,3", "write", "seq", "prefilled", 8192)
    values, reasons = koh_claims(make_rows(drop=[one]))
    assert values["koh2017-041"] is None
    assert states(reasons["koh2017-041"], "rs:6,3 seq write ... 8192 B ... prefilled")
    assert values["koh2017-042"] == pytest.approx(20)


# --- means, extremes and ratios separated -----------------------------------------------------------------

SEQ_WRITE = {
    "rep:3": [20, 40, 80, 160, 272, 280, 290, 290],
    "rs:6,3": [2.4, 4.0, 10.0, 20.0, 34.0, 60.0, 74.0, 90.0],
    "rs:10,4": [2.0, 3.0, 7.0, 12.0, 25.0, 40.0, 60.0, 75.0],
}


def seq_write_throughput(factor=1.0):
    return {
        ((scheme, "write", "seq", "prefilled"), "throughput_bytes_per_s"): [
            factor * megabytes * 1e6 for megabytes in values
        ]
        for scheme, values in SEQ_WRITE.items()
    }


def test_sequential_write_means_of_the_paper_are_right():
    # The three lists sum to 1432, 294.4 and 224: means 179, 36.8 and 28.0, the published ones.
    changes = seq_write_throughput()
    assert value(40, changes) == pytest.approx(179)
    assert value(41, changes) == pytest.approx(36.8)
    assert value(42, changes) == pytest.approx(28.0)
    assert value(43, changes) == pytest.approx((8 + 8 + 8) / 3)
    assert [verdict(number, changes) for number in (40, 41, 42, 43)] == ["right"] * 4


@pytest.mark.parametrize(
    ("factor", "wanted"), [(1.21, "wrong"), (0.79, "wrong"), (1.19, "right")]
)
def test_sequential_write_means_perturbed(factor, wanted):
    assert [
        verdict(number, seq_write_throughput(factor)) for number in (40, 41, 42)
    ] == [wanted] * 3


def test_on_average_is_the_ratio_of_means():
    changes = {
        (("rep:3", "read", "seq", "prefilled"), "latency_mean_ns"): [
            1e6,
            1e6,
            1e6,
            1e6,
            5e6,
            5e6,
            5e6,
            5e6,
        ],
        (("rs:6,3", "read", "seq", "prefilled"), "latency_mean_ns"): [4e6] * 8,
    }
    # Means 4 and 3 ms; the mean of the ratios would be (4·4 + 4·0.8)/8 = 2.4.
    assert value(51, changes) == pytest.approx(4 / 3)


def test_extremes_take_one_size():
    latency = [10e6, 20e6, 30e6, 142e6, 50e6, 60e6, 70e6, 80e6]
    changes = {(("rs:10,4", "read", "seq", "prefilled"), "latency_mean_ns"): latency}
    assert value(55, changes) == pytest.approx(142)
    traffic = [80, 40, 20, 10, 5, 4, 3, 2.5]
    changes = {
        (
            ("rs:6,3", "write", "rand", "pristine"),
            "private_net_bytes_per_client_byte",
        ): traffic,
        (("rep:3", "write", "rand", "pristine"), "private_net_bytes_per_client_byte"): [
            4,
            1,
            2,
            2,
            2,
            2,
            2,
            2,
        ],
    }
    # The largest of the size-by-size ratios is at 2 KB, 40/1, though traffic is largest at 1 KB.
    assert value(103, changes) == pytest.approx(40)
    assert value(31, changes) == pytest.approx(1)


def test_most_sizes_is_a_majority():
    latency = [88e6, 300e6, 87e6, 86e6, 85e6, 84e6, 200e6, 250e6]
    changes = {(("rep:3", "write", "seq", "prefilled"), "latency_mean_ns"): latency}
    assert value(45, changes) == pytest.approx(88)
    assert verdict(45, changes) == "right"
    changes[(("rep:3", "write", "seq", "prefilled"), "latency_mean_ns")] = [
        200e6
    ] * 5 + [10e6] * 3
    assert verdict(45, changes) == "wrong"


def test_context_switches_are_counted_per_byte():
    cell = ("rs:6,3", "write", "seq", "prefilled")
    per_op = [8.0] * 8
    # 8 switches per op are 8/1024 per byte at 1 KB, halving with each size: mean (8/1024)·(255/128)/8.
    mean_per_byte = 8 / 1024 * (255 / 128) / 8
    changes = {(cell, "context_switches_per_op"): per_op}
    assert value(86, changes) == pytest.approx((mean_per_byte + 0.12) / 2 / 0.02)


def test_user_share_is_weighted_by_time():
    cell = ("rep:3", "write", "seq", "prefilled")
    changes = {
        (cell, "cpu_utilisation"): [0.01] * 7 + [0.13],
        (cell, "cpu_user_fraction"): [0.5] * 7 + [0.9],
    }
    # User time 7·0.005 + 0.117 = 0.152 of 0.20.
    assert value(71, changes) == pytest.approx((72, 76))


def test_latency_trend_is_read_from_the_rows():
    falling = [350e6] * 5 + [175e6, 90e6, 45e6]
    changes = {
        ((scheme, "write", "seq", "prefilled"), "latency_mean_ns"): falling
        for scheme in ("rs:6,3", "rs:10,4")
    }
    assert value(48, changes).says == "decreasing"
    assert verdict(48, changes) == "right"
    changes[(("rs:10,4", "write", "seq", "prefilled"), "latency_mean_ns")] = falling[
        ::-1
    ]
    assert value(48, changes).says == "decreasing, increasing"
    assert verdict(48, changes) == "wrong"
    assert verdict(62) == "right"
    wavy = [50e6, 100e6] * 4
    assert (
        value(
            62, {(("rs:6,3", "write", "rand", "pristine"), "latency_mean_ns"): wavy}
        ).says
        == "mixed, flat"
    )


def test_ordering_fails_when_one_scheme_turns_round():
    changes = {
        (("rs:6,3", "read", "rand", "prefilled"), "throughput_bytes_per_s"): [300e6] * 8
    }
    assert verdict(67) == "right"
    assert verdict(67, changes) == "wrong"


def test_small_sizes_only():
    cell = ("rep:3", "read", "rand", "prefilled")
    above = {(cell, "throughput_bytes_per_s"): [1000e6] * 3 + [1e6] * 5}
    assert value(110, above) == pytest.approx(EXPECTED[110])
    below = {(cell, "throughput_bytes_per_s"): [500e6] * 3 + [1000e6] * 5}
    assert value(110, below) == pytest.approx(EXPECTED[110] / 2)


def test_sequential_read_amplification_takes_the_worst_cell():
    cell = ("rs:10,4", "read", "seq", "prefilled")
    changes = {(cell, "device_read_bytes_per_client_byte"): [1.0] * 7 + [1.6]}
    assert value(97, changes) == pytest.approx(1.6)
    assert verdict(97, changes) == "wrong"


def test_image_state_comes_from_the_figure(monkeypatch):
    monkeypatch.setitem(FIGURES, "5", Runs("write", "seq", "pristine"))
    assert value(40) == pytest.approx(170)


# --- rows that cannot be used ------------------------------------------------------------------------------


def test_no_ratio_to_nothing():
    nothing = {
        (("rep:3", "read", "rand", "prefilled"), "device_read_bytes_per_client_byte"): [
            0.0
        ]
        * 8
    }
    values, reasons = koh_claims(make_rows(nothing))
    assert values["koh2017-098"] is None
    assert "no ratio" in reasons["koh2017-098"]


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf")])
def test_missing_numbers_are_reasons_not_values(bad):
    cell = ("rs:6,3", "write", "seq", "prefilled")
    values, reasons = koh_claims(
        make_rows({(cell, "latency_mean_ns"): [200e6] * 7 + [bad]})
    )
    assert values["koh2017-046"] is None
    assert "latency_mean_ns" in reasons["koh2017-046"]


def test_a_missing_column_leaves_the_other_claims():
    values, _ = koh_claims(make_rows().drop("cpu_user_fraction"))
    assert values["koh2017-083"] is None
    assert values["koh2017-080"] == pytest.approx(20)


def test_missing_keys_and_repeated_cells_are_refused():
    rows = make_rows()
    with pytest.raises(MeasuredError, match=r"got .*image"):
        koh_claims(rows.drop("image"))
    with pytest.raises(MeasuredError, match=r"two rows.*rep:3 seq write.*1024"):
        koh_claims(pl.concat([rows, rows.head(1)]))


def test_no_rows_leave_every_held_out_claim_in_the_count():
    ledger = ledger_for(make_rows().clear(), [])
    summary = ledger.summary()
    assert summary["held_out"] == summary["not_derivable"] == 63
    assert summary["share_right"] == 0


# --- the shipped files -------------------------------------------------------------------------------------


def test_shipped_claims_are_the_published_ones():
    if not PUBLISHED.exists():
        pytest.skip(
            "published claims are missing: no shared/data/published/claims.csv next to the checkout"
        )
    with PUBLISHED.open(newline="") as file:
        published = [row for row in csv.DictReader(file) if row["paper"] == "koh2017"]
    with (STUDY / "claims.csv").open(newline="") as file:
        shipped = list(csv.DictReader(file))
    assert [{key: row[key] for key in published[0]} for row in shipped] == published


def test_counted_roles_keep_their_numbers():
    roles = [claim.role for claim in claims_of("koh2017")]
    assert {role: roles.count(role) for role in sorted(set(roles))} == {
        "calibration": 16,
        "contradicted": 8,
        "derived": 16,
        "given": 27,
        "held-out": 63,
        "not-derivable": 6,
    }


def test_trends_use_the_tolerance_of_their_rows():
    assert {
        claim.tolerance for claim in claims_of("koh2017") if claim.compare == "trend"
    } == {TREND_TOLERANCE}


def test_disputed_rows_stay_in_the_count():
    claims = {claim.id: claim for claim in claims_of("koh2017")}
    plain = {claim.id: claim for claim in load_claims(STUDY / "claims.csv")}
    disputed = [key for key, claim in claims.items() if claim.disputed]
    assert disputed == [
        f"koh2017-{number}" for number in ("035", "106", "107", "113", "114")
    ]
    assert all(claims[key].role == plain[key].role == "held-out" for key in disputed)


def test_reasons_and_groups_name_real_rows():
    claims = claims_of("koh2017")
    rules = claim_rules("koh2017")
    assert set(rules.groups) <= {claim.metric for claim in claims}
    numeric = {
        c.metric
        for c in claims
        if c.role == "held-out"
        and c.id in rules.expressions
        and c.id not in rules.not_computed
        and c.published is not None
    }
    assert numeric - set(rules.groups) == {"throughput_and_latency_diff"}


def test_every_figure_is_in_the_readme_with_its_image_and_bound():
    text = (STUDY / "README.md").read_text()
    for figure, runs in FIGURES.items():
        line = (
            f"| `{figure}` | {runs.pattern} {runs.op} | {runs.image} | {runs.bound} |"
        )
        assert line in text, f"README lacks: {line}"


def test_json_of_the_study():
    document = json.loads(
        json.dumps(ledger_for(make_rows(), PARAMETERS).to_json(), allow_nan=False)
    )
    assert len(document["claims"]) == 136
    assert document["summary"]["fitted_parameters"] == 1
    assert document["parameters"] == PARAMETERS
    for row in document["claims"]:
        assert row["verdict"] in ("right", "wrong", "not-derivable")
        for key in ("published", "simulated"):
            assert row[key] is None or isinstance(row[key], float | list)
