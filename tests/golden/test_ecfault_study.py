"""The study of Han et al. 2024: its claims, profiles and verdicts, and the assumptions behind them."""

import csv
import json
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stripesim.models.coding import parse_scheme
from stripesim.models.problems import MeasuredError, ParameterSetError
from stripesim.scenarios.cells.build import build_pool
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.studies.base import Setting
from stripesim.scenarios.studies.claim_rules import claim_rules
from stripesim.scenarios.studies.ecfault2024 import amplification
from stripesim.scenarios.studies.ecfault2024.parameters import (
    StudyModel,
    study_model,
)
from stripesim.scenarios.studies.ecfault2024.profiles import (
    CODES,
    Failures,
    parse_profiles,
    profile,
    profiles,
)
from stripesim.scenarios.studies.ecfault2024.recover import failing_osds, recover
from stripesim.scenarios.studies.ecfault2024.recovery_numbers import EcfaultNumbers
from stripesim.scenarios.studies.ecfault2024.study import STUDY
from stripesim.scenarios.studies.ecfault2024.tables import implied_effect, tables
from stripesim.scenarios.studies.kernels import scaled_table
from stripesim.scenarios.studies.page import report_page
from stripesim.scenarios.studies.parameters import model_from
from support.studies import computed, figures_of, simulated_claims

PUBLISHED = (
    Path(__file__).resolve().parents[2].parent / "shared/data/published/claims.csv"
)
SMALL = {"workload.image_bytes": "4GiB"}


def test_claims_are_those_fixed_beforehand():
    if not PUBLISHED.exists():
        pytest.skip(f"{PUBLISHED} is not there")
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        wanted = [row for row in csv.DictReader(file) if row["paper"] == "ecfault2024"]
    text = (files("stripesim.scenarios.studies.ecfault2024") / "claims.csv").read_text(
        "utf-8"
    )
    ours = list(csv.DictReader(text.splitlines()))
    assert [
        {k: v for k, v in row.items() if k != "statement"} for row in ours
    ] == wanted


def test_no_number_is_fitted_and_each_has_a_source():
    found = STUDY.parameters()
    assert {row["provenance"] for row in found} <= {
        *("measured", "code", "datasheet", "published", "given", "assumed", "fitted"),
    }
    # Numbers of the parameter set `pacific` were fitted on another cluster, none to this source.
    assert not [
        row["name"]
        for row in found
        if "ecfault" in row["source"] and row["provenance"] == "fitted"
    ]
    assert len({row["name"] for row in found}) == len(found)


def test_a_simulated_write_stores_the_lower_bound():
    for code, bound in (("rs:9,3", Fraction(3, 2)), ("rs:12,3", Fraction(15, 8))):
        sets = {
            "workload.ops": ["write"],
            "workload.patterns": ["seq"],
            "workload.image": "pristine",
            "workload.block_sizes_bytes": ["64MiB"],
            "workload.requests": 4,
            "workload.image_bytes": "256MiB",
        }
        scenario = profile("rados").scenario(code, sets)
        (cell,) = cells(scenario)
        # Four requests are too few for a rate, and enough for their bytes.
        result = run_cell(scenario, cell, "compiled", unchecked=True)
        row = result.accepted_counts().row
        assert row.device_data_write_bytes_per_client_byte == float(bound)


def test_mechanisms_add_up_and_the_log_is_a_constant_of_the_cluster():
    model = study_model()
    both = [
        amplification.mechanisms(parse_scheme(code), model)
        for code in amplification.MEASURED_CODES
    ]
    assert both[0]["log"] == both[1]["log"] == 90 * model.osd_log_bytes / (2500 * 2**26)
    assert both[0]["redundancy"] + both[0]["padding"] == 1.5
    assert both[1]["redundancy"] + both[1]["padding"] == 1.875
    assert both[0]["allocation"] == 0
    halved = amplification.mechanisms(
        parse_scheme("rs:9,3"), replace(model, hosts_count=15)
    )
    assert halved["log"] == both[0]["log"] / 2


def test_padding_and_the_published_share_give_the_published_effect():
    # The source is consistent: 53.7 % and 426 %.
    assert implied_effect(0.537) == pytest.approx(4.241, abs=1e-3)
    assert implied_effect(1.0) == 1
    assert implied_effect(0.0) == 8


def test_every_profile_is_a_separate_scenario_and_names_its_variation():
    found = profiles()
    assert {one.dimension for one in found} == {
        *(
            "base",
            "stripe unit",
            "placement groups",
            "pg autoscale",
            "cache",
            "plugin and technique",
        ),
        *("failure domain", "device class", "storage backend", "interface", "failures"),
    }
    for one in found:
        for code in one.codes:
            assert one.scenario(code).schemes == (code,)
    assert profile("pg-autoscale").scenario(CODES[0]).cluster.pg_num == 32
    assert profile("pg-bulk").scenario(CODES[0]).cluster.pg_num == 256


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[profile", "mine.toml: "),
        ('[[profile]]\nname = "a"', "mine.toml: profile 1: dimension: "),
        (
            '[[profile]]\nname = "a"\ndimension = "b"\nlabel = "c"\nfailures = { count = 4 }',
            "failures.count: got 4",
        ),
        (
            '[[profile]]\nname = "a"\ndimension = "b"\nlabel = "c"\nx = 1',
            "profile 1: x: got 1",
        ),
        (
            2 * '[[profile]]\nname = "a"\ndimension = "b"\nlabel = "c"\n',
            "got 'a'",
        ),
    ],
)
def test_a_wrong_profile_is_reported_in_one_line(text, says):
    with pytest.raises(MeasuredError) as caught:
        parse_profiles(text, "mine.toml")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value).strip() or text == "[[profile"


def test_wrong_parameters_are_reported_with_their_key():
    with pytest.raises(ParameterSetError, match="here: 'source'"):
        model_from(
            StudyModel, {"objects_count": {"value": 1, "provenance": "code"}}, "here"
        )


@pytest.mark.parametrize("hosts", ["same", "different"])
def test_failing_osds_hold_data_and_are_in_the_right_places(hosts):
    scenario = profile("base").scenario(CODES[0])
    pool = build_pool(scenario, parse_scheme(CODES[0]), build_models(scenario))
    osds = failing_osds(pool, Failures(count=3, hosts=hosts))
    assert len(set(osds)) == 3
    assert len({int(pool.cluster.osd_hosts[osd]) for osd in osds}) == (
        1 if hosts == "same" else 3
    )
    assert osds[0] in pool.cluster.acting[0]
    lost = np.isin(pool.cluster.acting, osds).sum(axis=1)
    # No two shards share a host, so failures on one host hit no object twice.
    assert (lost.max() > 1) == (hosts == "different")


def test_only_the_family_named_is_scaled():
    table = build_models(profile("base").scenario(CODES[0])).kernel
    half = scaled_table(table, "clay", 0.5)
    for code, factor in (("clay:9,3,11", 0.5), ("rs:9,3", 1.0)):
        before = table.cost(scheme=code, op="encode").duration_ns(1 << 22)
        after = half.cost(scheme=code, op="encode").duration_ns(1 << 22)
        assert after == pytest.approx(factor * before)


@pytest.fixture(scope="module")
def small():
    """The runs of the ledger's profiles with a fraction of the data."""
    rows = [*amplification.amplification_rows()]
    wanted = ("base", "stripe unit", "placement groups", "cache", "failures")
    for one in profiles():
        if one.dimension in wanted:
            for code in one.codes:
                rows.append(
                    {
                        "experiment": "profiles",
                        **recover(one, code, "compiled", sets=SMALL),
                    }
                )
    return pl.DataFrame(rows, infer_schema_length=None)


def test_the_checking_period_is_the_wait_of_ceph_s_defaults(small):
    recovered = small.filter(pl.col("experiment") == "profiles")
    # 600 s from down to out, and a few seconds of ticks and maps around them.
    assert recovered["checking_s"].min() > 600
    assert recovered["checking_s"].max() < 615
    total = recovered["checking_s"] + recovered["recovery_s"]
    assert total.to_list() == pytest.approx(recovered["total_s"].to_list())
    assert recovered["objects_lost"].max() == 0


def test_bytes_are_those_of_the_codes(small):
    row = {
        (r["profile"], r["scheme"]): r
        for r in small.to_dicts()
        if r["experiment"] == "profiles"
    }
    assert row["base", "rs:9,3"]["read_bytes_per_lost_byte"] == pytest.approx(9)
    # 11/3 and what whole blocks add to 51,808-byte sub-chunks.
    assert 11 / 3 <= row["base", "clay:9,3,11"]["read_bytes_per_lost_byte"] < 4
    # Eight times the chunk: eight times the bytes to rebuild.
    large, base = row["su-64m", "rs:9,3"], row["base", "rs:9,3"]
    assert large["rebuilt_bytes"] == 8 * base["rebuilt_bytes"]
    # Sub-chunks of 64 bytes: a repair reads all of every helper's chunks.
    assert row["su-4k", "clay:9,3,11"]["read_bytes_per_lost_byte"] == pytest.approx(
        11, rel=0.01
    )
    assert (
        row["su-4k", "clay:9,3,11"]["recovery_s"]
        > 2 * row["su-4k", "rs:9,3"]["recovery_s"]
    )


def test_verdicts_follow_from_rows(small):
    simulated, _ = simulated_claims(STUDY, small)
    missing = set(simulated) - computed(simulated)
    assert missing == set(claim_rules(STUDY.name).not_computed)
    assert simulated["ecfault2024-178"] == pytest.approx(4 / 3)
    assert simulated["ecfault2024-179"] == pytest.approx(1.829, abs=1e-3)
    assert simulated["ecfault2024-182"] == pytest.approx(2.204, abs=1e-3)
    assert simulated["ecfault2024-186"] == 1.5
    # Another time in the rows is another verdict.
    slow = small.with_columns(
        total_s=pl.when(
            (pl.col("profile") == "cache-kv") & (pl.col("scheme") == "clay:9,3,11")
        )
        .then(pl.col("total_s") * 1.11)
        .otherwise(pl.col("total_s"))
    )
    assert simulated_claims(STUDY, slow)[0]["ecfault2024-174"].says == "kv-optimized"
    assert simulated_claims(STUDY, slow)[0]["ecfault2024-164"] == pytest.approx(11)
    assert simulated["ecfault2024-174"].says == "no scheme is worse than the others"


def test_an_advantage_is_gone_only_where_there_was_one(small):
    def with_times(clay):
        changed = pl.col("recovery_s")
        for name, value in clay.items():
            mine = pl.col("profile") == f"fail-{name}"
            changed = (
                pl.when(mine & (pl.col("scheme") == CODES[1]))
                .then(value)
                .otherwise(changed)
            )
            changed = (
                pl.when(mine & (pl.col("scheme") == CODES[0]))
                .then(10.0)
                .otherwise(changed)
            )
        numbers = EcfaultNumbers(small.with_columns(recovery_s=changed))
        return numbers.clay_advantage().says

    names = ("1", "2-same", "3-same", "2-different", "3-different")
    assert with_times(
        dict(zip(names, (5.0, 5.0, 5.0, 7.0, 9.9), strict=True))
    ).startswith("disappears at 3")
    assert with_times(dict.fromkeys(names, 5.0)).startswith("an advantage also")
    assert with_times(dict.fromkeys(names, 10.0)) == "no advantage at all"


def test_the_report_shows_claims_figures_and_tables(small):
    ledger = STUDY.ledger(Setting(), small)
    figures = figures_of(STUDY, small)
    assert (
        {"effects", "configurations", "write-amplification"}
        >= set(figures)
        >= {"effects"}
    )
    page = report_page(
        title=STUDY.description.title,
        introduction=STUDY.description.introduction,
        ledger=ledger,
        figures=figures,
        provenance={"study": "ecfault2024"},
        tables=tables(small),
    )
    assert "424 %" in page
    json.dumps(ledger.to_json())


def test_unknown_experiments_are_refused():
    with pytest.raises(ValueError, match="--experiment: got 'nonsense'"):
        STUDY.run(experiments=["nonsense"])
