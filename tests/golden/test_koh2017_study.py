"""A few cells of the study, run for real: series, ablations, heartbeats, figures and the report."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest

from stripesim.models.problems import AnswerError, NotComputedError
from stripesim.scenarios.studies.base import StudyResult
from stripesim.scenarios.studies.claim_rules import simulate_claims
from stripesim.scenarios.studies.koh2017 import ablations as what_if
from stripesim.scenarios.studies.koh2017.ablations import ABLATIONS, CHANGES
from stripesim.scenarios.studies.koh2017.cells import BARE, Recorder
from stripesim.scenarios.studies.koh2017.claims import required_cells, vocabulary
from stripesim.scenarios.studies.koh2017.creation import CreationSource
from stripesim.scenarios.studies.koh2017.figure_tables import (
    as_factor,
    claims_of_figures,
    compared,
    needed_pause_ns,
)
from stripesim.scenarios.studies.koh2017.paper import FIGURES, PAPER_FIGURES
from stripesim.scenarios.studies.koh2017.runs import Simulation, tasks_for
from stripesim.scenarios.studies.koh2017.series import (
    RUNS,
    converged_s,
    convergence_s,
    dips,
    dips_of,
    pristine_over_overwrites,
)
from stripesim.scenarios.studies.koh2017.study import STUDY
from stripesim.scenarios.studies.page import report_page, seen_by_fits
from stripesim.scenarios.studies.tasks import run_tasks
from stripesim.sim.ceph.clients.workload import Replay, Requests
from stripesim.sim.run import simulate

KIB = 1024
MS_NS = 1_000_000


@pytest.fixture(scope="module")
def bare() -> StudyResult:
    """The bare device's runs: the only figure that takes seconds in all, less its cluster runs."""
    return STUDY.run(figures=["13"], jobs=1)


@pytest.fixture(scope="module")
def series() -> pl.DataFrame:
    """The courses of Fig 19, shortened."""
    rows = []
    for task in tasks_for(figures=["19"]):
        if task.kind == "series" and task.name in (
            "fig19-rs",
            "fig19-pause-2000ms",
        ):
            rows += replace(task, duration_s=12.0).perform()
    return pl.DataFrame(rows, infer_schema_length=None)


def test_all_tasks_cover_the_needs_of_the_claims():
    cells = {
        (t.scheme, t.op, t.pattern, t.image, t.size_bytes)
        for t in tasks_for()
        if t.kind == "cell"
    }
    assert cells == set(required_cells())
    assert {t.name for t in tasks_for() if t.kind == "series"} == set(RUNS)
    assert not [t for t in tasks_for() if t.kind == "ablation"]


def test_every_entry_belongs_to_a_figure_of_the_paper():
    listed = {entry for entries in PAPER_FIGURES.values() for entry in entries}
    assert listed == set(FIGURES)


def test_only_the_runs_of_a_figure():
    tasks = tasks_for(figures=["13"])
    assert {(t.op, t.pattern, t.image) for t in tasks} == {
        ("write", "seq", "prefilled")
    }
    assert BARE not in {t.scheme for t in tasks}


@pytest.mark.parametrize(
    ("figure", "image", "schemes"),
    [
        # Claim 039 compares both images under the codes.
        ("20", "pristine", {"rs:6,3", "rs:10,4"}),
        ("20", "prefilled", {"rs:6,3", "rs:10,4"}),
        # The cluster's random writes are those of Figure 7.
        ("18", "prefilled", {BARE}),
        ("18", "pristine", {"rep:3", "rs:6,3", "rs:10,4"}),
    ],
)
def test_only_the_schemes_of_a_figure(figure, image, schemes):
    kind = ("write", "rand", image)
    tasks = tasks_for(figures=[figure])
    assert {t.scheme for t in tasks if (t.op, t.pattern, t.image) == kind} == schemes


def test_a_course_of_a_sample_has_the_rates_of_all_requests():
    """Given overwrites, when one of five is simulated in a fifth of the time."""
    (task,) = (t for t in tasks_for(figures=["20"]) if t.name == "fig20-overwrite")
    assert task.every == 5
    courses = [
        pl.DataFrame(replace(task, duration_s=8.0, every=every).perform())
        for every in (1, task.every)
    ]
    for course in courses:
        assert course["time_s"].to_list() == list(range(1, 9))
    # Without the first two seconds, in which the pipeline fills.
    whole, sample = (course[2:].mean() for course in courses)
    for column in (
        "throughput_bytes_per_s",
        "cpu_utilisation",
        "context_switches_per_s",
        "private_net_bytes_per_s",
    ):
        assert sample[column].item() == pytest.approx(whole[column].item(), rel=0.05)


def test_only_ablations():
    tasks = tasks_for(ablations=["no-pg-lock"])
    assert {t.name for t in tasks} == {"baseline", "no-pg-lock"}
    assert {t.kind for t in tasks} == {"ablation"}


@pytest.mark.parametrize(("figures", "ablations"), [(["4"], ()), (None, ["no-such"])])
def test_an_unknown_name_is_reported(figures, ablations):
    with pytest.raises(ValueError, match="wanted"):
        tasks_for(figures=figures, ablations=ablations)


def test_device_traffic_of_sequential_writes(bare):
    by_id = {entry.claim.id: entry for entry in bare.ledger.entries}
    # 3 KiB of padding read on each of three replicas for 1 KiB written.
    assert by_id["koh2017-091"].simulated == 9
    assert by_id["koh2017-091"].verdict == "right"
    assert by_id["koh2017-105"].verdict == "not-derivable"
    assert by_id["koh2017-115"].verdict == "not-derivable"


def test_rows_do_not_depend_on_the_number_of_processes(bare):
    listed = [t for t in tasks_for(figures=["13"]) if t.size_bytes in (1024, 4096)][:4]
    apart = [rows[0] for rows in run_tasks(listed, jobs=2).rows]
    for task, row in zip(listed, apart, strict=True):
        mine = bare.rows.filter(
            (pl.col("scheme") == task.scheme)
            & (pl.col("block_size_bytes") == task.size_bytes)
        ).to_dicts()[0]
        assert {k: v for k, v in row.items() if k != "engine_wall_s"} == {
            k: mine[k] for k in row if k != "engine_wall_s"
        }


def test_a_task_that_cannot_run_reports_the_reason():
    task = Simulation(
        kind="cell", scheme="rs:6,3", op="read", pattern="rand", image="prefilled",
        size_bytes=4096, engine="no such engine",
    )  # fmt: skip
    with pytest.raises(AnswerError, match="no such engine"):
        run_tasks([task], jobs=1)


def test_heartbeats_follow_from_pairs_interval_and_size():
    (task,) = (t for t in tasks_for(figures=["17"]) if t.kind == "heartbeat")
    (row,) = replace(task, duration_s=6.0).perform()
    # 24 OSDs, each with 18 on other hosts, a ping and an answer every 6 s, 122 B and a header of 52 B each.
    assert row["heartbeat_private_bytes_per_s"] == pytest.approx(
        24 * 18 * 2 * (122 + 52) / 6, rel=0.01
    )


def test_no_first_write_dips_unless_it_stalls(series):
    assert dips_of(series, "fig19-rs").says == "none"
    stalled = dips(
        series.filter(pl.col("series") == "fig19-pause-2000ms")[
            "throughput_bytes_per_s"
        ].to_numpy()
    )
    # These 12 s hold too few dips to call them periodic.
    assert stalled.says.startswith("near-zero")


def test_seconds_add_up_to_the_whole(series):
    course = series.filter(pl.col("series") == "fig19-rs")
    assert course["time_s"].to_list() == list(range(1, 13))
    assert (course["private_net_bytes_per_s"] > course["throughput_bytes_per_s"]).all()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([10, 10, 10, 10], "none"),
        ([10, 2, 10, 10], "none"),
        ([10, 0, 10, 10, 10, 10], "near-zero, irregular"),
        ([10, 0, 10, 10, 0, 10, 10, 0, 10], "near-zero, periodic"),
        ([10, 0, 0, 10, 10, 0, 0, 10, 10, 10, 0, 0, 10], "near-zero, periodic"),
        (
            [10, 0, 10, 0, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 0, 10],
            "near-zero, irregular",
        ),
    ],
)
def test_dips(values, says):
    assert dips(np.array(values, dtype=float)).says == says


def test_equal_series_converge_immediately_and_others_at_their_end():
    one = np.ones(50)
    assert converged_s(one, one) == 0
    assert converged_s(2 * one, one) == 50


def _flat(
    name: str, seconds: int, cpu: float, switches: float, private: float
) -> list[dict]:
    return [
        {
            "series": name,
            "time_s": second + 1,
            "cpu_utilisation": cpu,
            "context_switches_per_s": switches,
            "private_net_bytes_per_s": private,
        }
        for second in range(seconds)
    ]


def test_claims_of_figure_20_by_hand():
    found = _flat("fig20-pristine", 80, 0.4, 60.0, 7e9) + _flat(
        "fig20-overwrite", 80, 0.5, 100.0, 2e9
    )
    frame = pl.DataFrame(found)
    values, _ = simulate_claims("koh2017", vocabulary(Recorder(), frame))
    # 1 - 0.4/0.5 and 1 - 60/100 in percent, 7/2, and all 80 seconds.
    assert values["koh2017-117"] == pytest.approx(20)
    assert values["koh2017-118"] == pytest.approx(40)
    assert values["koh2017-119"] == pytest.approx(3.5)
    assert values["koh2017-120"] == 80


def test_a_series_too_short_answers_nothing():
    found = _flat("fig20-pristine", 60, 0.4, 60.0, 7e9) + _flat(
        "fig20-overwrite", 60, 0.5, 100.0, 2e9
    )
    with pytest.raises(NotComputedError):
        pristine_over_overwrites(pl.DataFrame(found), "cpu_utilisation")
    with pytest.raises(NotComputedError):
        convergence_s(pl.DataFrame(found))


@pytest.fixture(scope="module")
def ablated() -> pl.DataFrame:
    rows = []
    for task in tasks_for(
        ablations=["no-pg-lock", "private-100g", "free-encoding", "stripe-4k"]
    ):
        kind = (task.op, task.pattern, task.scheme, task.size_bytes)
        if kind == ("write", "seq", "rs:6,3", 16384):
            rows += run_tasks([task], jobs=1).rows[0]
    return pl.DataFrame(rows, infer_schema_length=None)


def test_ablations_change_the_named_mechanism(ablated):
    over = dict(
        compared(ablated)
        .select("ablation", "throughput_bytes_per_s_over_baseline")
        .iter_rows()
    )
    assert over["baseline"] == 1
    assert over["no-pg-lock"] > 3
    # A narrower stripe means more stripes to save and to encode for the same write.
    assert over["stripe-4k"] < 0.6
    # Neither the network nor the kernel is what sequential writes wait for.
    assert over["private-100g"] == pytest.approx(1, abs=0.1)
    assert over["free-encoding"] == pytest.approx(1, abs=0.1)


def test_no_object_initialisation_moves_less():
    tasks = {
        t.name: replace(t, duration_s=4.0)
        for t in tasks_for(ablations=["no-object-initialisation"])
        if (t.image, t.scheme, t.size_bytes) == ("pristine", "rs:6,3", 16384)
    }
    moved = {
        name: run_tasks([task], jobs=1).rows[0][0]["private_net_bytes_per_client_byte"]
        for name, task in tasks.items()
    }
    assert moved["no-object-initialisation"] < 0.1 * moved["baseline"]


@pytest.mark.parametrize(
    ("kib", "scheme", "unit"), [(4, "rs:6,3", 704), (4, "rs:10,4", 416)]
)
def test_a_stripe_of_4_kib_is_the_modelled_system_s_default(kib, scheme, unit):
    # 4,224 and 4,160 bytes: notes of koh2017-021 and -022.
    sets = CHANGES[f"stripe-{kib}k"].sets(scheme)
    assert sets == {"cluster.stripe_unit_bytes": unit}


def test_ablations_by_name_begin_with_the_baseline():
    assert what_if.named(["free-encoding"]) == ("baseline", "free-encoding")
    assert what_if.named(["all"]) == tuple(ABLATIONS)


@pytest.mark.parametrize(
    ("value", "kind", "factor"),
    [(86.0, "drop", 0.14), (50.0, "rise", 1.5), (7.6, "factor", 7.6)],
)
def test_summary_factors(value, kind, factor):
    assert as_factor(value, kind) == pytest.approx(factor)


def test_claims_are_at_their_figures(bare):
    ids = [entry.claim.id for entry in claims_of_figures(bare.ledger.entries)["fig13"]]
    assert "koh2017-091" in ids
    assert "koh2017-093" in ids
    assert "koh2017-115" not in ids


def test_published_values_of_wrong_claims_are_drawn(bare):
    by_id = {entry.claim.id: entry for entry in bare.ledger.entries}
    wrong = [by_id["koh2017-093"], by_id["koh2017-094"]]
    assert [entry.verdict for entry in wrong] == ["wrong", "wrong"]
    figure = STUDY.figures(bare)["fig13"].figure
    # Crosses on published values: reads in the first panel, writes in the second.
    for axes, entry in zip(figure.axes[:2], wrong, strict=True):
        crosses = [line for line in axes.lines if line.get_marker() == "x"]
        heights = [y for line in crosses for y in line.get_ydata()]
        assert heights == [entry.claim.published]


def test_no_claim_that_a_fit_has_seen_is_held_out(bare):
    assert seen_by_fits(bare.ledger) == ()
    assert "koh2017-046" in " ".join(
        str(row["source"]) for row in bare.ledger.parameters
    )


def test_figures_and_report_come_from_the_data(bare, ablated):
    result = replace(bare, frames={**bare.frames, "ablations": ablated})
    figures = STUDY.figures(result)
    # The runs of Figure 13 allow Figures 5, 9 and 11 too, but those were not asked for.
    assert set(figures) == {"fig13", "ablations", "stripe-width"}
    assert "091" in " ".join(
        text.get_text() for axes in figures["fig13"].figure.axes for text in axes.texts
    )
    tables = STUDY.tables(result)
    page = report_page(
        title=STUDY.description.title, introduction="", ledger=result.ledger, figures=figures,
        provenance=result.provenance, tables=tables,
    )  # fmt: skip
    summary = bare.ledger.summary()
    assert f"{summary['right']} of {summary['held_out']}" in page
    assert all(entry.claim.id in page for entry in bare.ledger.entries)
    assert all(name in page for name in bare.ledger.fitted_parameters)
    # Nothing from outside, no script, and every link leads to a place on the page.
    assert "<script" not in page
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", page)
    assert not re.search(r"@import|url\(", page)
    targets = set(re.findall(r'id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= targets


def test_the_pause_that_is_needed_is_found_in_the_series():
    rows = []
    for name, gap in (
        ("fig19-pause-100ms", 0),
        ("fig19-pause-500ms", 0),
        ("fig19-pause-1000ms", 3),
        ("fig19-pause-2000ms", 3),
    ):
        rows += [
            {
                "series": name,
                "time_s": s + 1,
                "throughput_bytes_per_s": 0.0 if gap and s % gap == 0 else 9.0,
            }
            for s in range(13)
        ]
    assert needed_pause_ns(pl.DataFrame(rows)) == 1000 * MS_NS


def test_only_the_first_write_into_an_object_pauses(models, make_pool):
    """Given two writes into each of two objects, one at a time, when creation pauses for a millisecond."""
    pool = make_pool(models, "rs:4,2", object_bytes=64 * KIB)
    offsets_bytes = np.array([0, 16, 64, 80]) * KIB
    requests = Requests(
        is_write=np.ones(4, dtype=bool),
        images=np.zeros(4, dtype=np.int64),
        offsets_bytes=offsets_bytes,
        lengths_bytes=np.full(4, 16 * KIB),
    )

    def latencies_ns(pause_ns):
        result = simulate(
            pool,
            Replay(requests, queue_depth=1),
            prefilled=False,
            foreground=partial(CreationSource, pause_ns=pause_ns),
        )
        return result.requested.latencies_ns

    # Nothing else is under way, so the pause is all that a first write takes longer.
    longer_ns = latencies_ns(MS_NS) - latencies_ns(0)
    assert longer_ns.tolist() == [MS_NS, 0, MS_NS, 0]
