"""A plan prunes by closed forms, decides by simulation, and never calls the uncertain met."""

import json
import math
from copy import deepcopy

import numpy as np
import pytest

from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.durability.durability import DescribedSystem
from stripesim.scenarios.answers.plan import candidate_runs
from stripesim.scenarios.answers.plan.answer import answer_of_plan
from stripesim.scenarios.answers.plan.assumptions import price_warnings
from stripesim.scenarios.answers.plan.candidates import (
    candidates_of,
    judge,
    judge_closed_forms,
    line_name,
)
from stripesim.scenarios.answers.plan.curves import curves_of_plan
from stripesim.scenarios.answers.plan.figure import draw_plan, front_of
from stripesim.scenarios.answers.plan.page import report_of_plan, rows_of
from stripesim.scenarios.answers.plan.plan import MadePlan, make_plan
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.scenarios.schema.tables import VARIED
from stripesim.sim.durability.system import (
    YEAR_S,
    Burst,
    DriveRepair,
    Lifetime,
    System,
    code_of,
)
from stripesim.sim.observe.intervals import Interval
from support.messages import states

pytestmark = pytest.mark.usefixtures("quick_rebuilds", "quick_figures")

TEXT = """
name = "buy"
schemes = ["rep:3", "rs:4,2"]
[cluster]
parameters = "kraken"
drive = "nvme-tlc"
pg_num = 64
[workload]
read_fraction = 0.5
patterns = ["rand"]
block_sizes_bytes = ["16k"]
requests = 400
image_bytes = "1GiB"
[plan]
hosts = [4, 7]
osds_per_host = [2]
usable_bytes = "10TB"
rate_per_s = 200.0
p99_ms = 500.0
nines = 1.0
replications = 2
[plan.prices]
host = 5000.0
drive = 400.0
"""


@pytest.fixture(scope="module")
def document():
    return make_plan(parse_scenario(TEXT)).document


def test_candidates_run_until_their_intervals_are_as_narrow_as_asked():
    sets = ["plan.hosts=[7]", "plan.interval_percent=10"]
    answer = make_plan(parse_scenario(TEXT, sets=sets)).document

    simulated = [one for one in answer["candidates"] if one["iops"] is not None]
    assert simulated
    for one in simulated:
        for name in ("iops", "latency_p99"):
            unit = "" if name == "iops" else "_ns"
            low = one[f"{name}_low{unit}"]
            high = one[f"{name}_high{unit}"]
            # Five runs may agree exactly, as rates do that are all served.
            if low is not None:
                assert (high - low) / 2 <= 0.10 * one[f"{name}{unit}"]
        assert not [line for line in one["warnings"] if "interval_percent" in line]
    assert any("5 to 50 seeds" in line for line in answer["assumptions"])


def test_a_candidate_whose_interval_stays_wide_says_so_after_fifty_runs(monkeypatch):
    # Given latencies that alternate between 1 and 3 s: after 50 runs, half the interval is
    # t(49) × 1.01 s / √50 = 2.01 × 0.143 s = 0.287 s, 14 % of 2 s.
    seeds = []

    def alternating(scenario, *_, **__):
        seeds.append(scenario.seed)
        latency_s = 1 + 2 * (scenario.seed % 2)
        return candidate_runs._WorstCells(
            200.0, 200.0, False, None, latency_s * 1e9, 0.0
        )

    monkeypatch.setattr(candidate_runs, "_worst", alternating)
    sets = ["plan.hosts=[7]", "schemes=['rs:4,2']", "plan.interval_percent=10"]
    scenario = parse_scenario(TEXT, sets=sets)
    answer = make_plan(scenario).document

    assert "5 to 50 seeds from 1" in report_of_plan(scenario, answer)
    # The scenario has seed 1.
    assert sorted(seeds) == list(range(1, 51))
    (one,) = answer["candidates"]
    assert any(
        states(line, "plan.interval_percent (10) ... 50") for line in one["warnings"]
    )
    # Seven hosts for six shards: the warning is about its intervals alone.
    (row,) = rows_of(answer)
    assert "no spare" not in row["verdict"]


@pytest.mark.parametrize(
    ("iops", "slow_cells", "words"),
    [
        (1e9, (), "1,000 M requests/s or more are a burst: ... sustain"),
        (
            200.0,
            (("a cell", "ssd"),),
            "a cell: ... settles slowly ... workload.requests = ",
        ),
        (200.0, (), None),
    ],
)
def test_a_candidate_in_a_closed_loop_that_is_too_short_says_so(
    monkeypatch, iops, slow_cells, words
):
    worst = candidate_runs._WorstCells(
        iops, None, False, None, 1e6, 0.0, slow_cells=slow_cells
    )
    monkeypatch.setattr(candidate_runs, "_worst", lambda *_, **__: worst)
    text = TEXT.replace("rate_per_s = 200.0\n", "")
    sets = ["plan.hosts=[7]", "schemes=['rs:4,2']"]
    (one,) = make_plan(parse_scenario(text, sets=sets)).document["candidates"]
    assert [states(line, words) for line in one["warnings"]] == [True] * bool(words)


@pytest.mark.parametrize(
    ("replications", "settles_at", "longest", "words"),
    [
        (1, 200_000, 400, None),
        (2, 5000, 6400, None),
        (
            2,
            200_000,
            102_400,
            "a cell: the latency grows ... compare workload.requests = 1024000",
        ),
    ],
    ids=["by chance", "settles", "never settles"],
)
def test_a_candidate_runs_until_its_latency_no_longer_grows(
    monkeypatch, replications, settles_at, longest, words
):
    # Given latencies that grow in runs below a number of requests, in one or both replications
    requests = []

    def worst(scenario, *_, **__):
        requests.append(scenario.workload.requests)
        is_growing = scenario.seed < replications and requests[-1] < settles_at
        growing_cells = ("a cell",) if is_growing else ()
        return candidate_runs._WorstCells(
            200.0, 200.0, False, None, 1e6, 0.0, growing_cells=growing_cells
        )

    monkeypatch.setattr(candidate_runs, "_worst", worst)
    sets = ["plan.hosts=[7]", "schemes=['rs:4,2']", "seed=0"]
    (one,) = make_plan(parse_scenario(TEXT, sets=sets)).document["candidates"]
    assert max(requests) == longest
    of_growth = [line for line in one["warnings"] if "latency grows" in line]
    assert [states(line, words) for line in of_growth] == [True] * bool(words)


def test_warnings_are_about_the_load_at_the_rate_that_is_asked_for():
    # At a rate arrivals go by the clock: a queue depth far outside the range plays no part.
    deep = TEXT.replace("requests = 400", "requests = 400\nqueue_depth = 9999")
    answer = make_plan(parse_scenario(deep)).document
    assert not [line for line in answer["warnings"] if "queue_depth" in line]


def test_varied_values_have_units():
    text = TEXT.replace(
        "osds_per_host = [2]",
        "cores_per_host = [32]\npublic_gbit_per_s = [100.0]\ndrive_bytes = ['7.68TB']",
    )
    document = make_plan(
        parse_scenario(text.replace("hosts = [4, 7]", "hosts = [4]"))
    ).document
    (label, *_) = [row["candidate"] for row in rows_of(document)]
    assert label.endswith("drives of 7.68 TB, 100 Gb/s public, 32 cores per host")


def test_every_candidate_is_listed_with_capacity_and_failed_requirements(document):
    found = {(one["scheme"], one["hosts"]): one for one in document["candidates"]}
    assert set(found) == {("rep:3", 4), ("rep:3", 7), ("rs:4,2", 4), ("rs:4,2", 7)}
    raw = 14 * 3.84e12
    held = found["rs:4,2", 7]["capacity"]
    assert held["raw_bytes"] == raw
    # 64 placement groups of 6 shards on 14 OSDs: 27.4 on the mean OSD, and more on the fullest.
    full = held["usable_bytes_full"] * held["imbalance"]
    assert 1.05 < held["imbalance"] < 1.5
    assert full == pytest.approx(raw * 0.95 / 1.5)
    safe = held["usable_bytes_safe"] * held["imbalance_after_loss"]
    assert safe == pytest.approx(raw * 6 / 7 * 0.85 / 1.5)
    # 8 drives of 3.84 TB hold 6.5 TB in three copies, and less on the fullest: no simulation is needed.
    small = found["rep:3", 4]
    assert not small["meets"]
    safe_tb = 6.528 / small["capacity"]["imbalance_after_loss"]
    assert small["fails"][0].startswith(f"usable_bytes: {safe_tb:.4g} TB")
    assert small["iops"] is None
    assert "6 shards" in found["rs:4,2", 4]["fails"][0]


def test_the_cheapest_that_meets_everything_is_recommended_with_reasons(document):
    best = document["recommended"]
    assert best["meets"]
    assert best["fails"] == []
    assert best["hosts"] == 7
    assert best["cost"] == 7 * (5000 + 2 * 400)
    assert best["iops"] > 150
    assert best["rebuild_s"] > 0
    assert best["nines"] > 1
    assert any("lowest cost" in line for line in document["reasons"])
    assert (
        json.loads(json.dumps(document, default=str))["recommended"]["scheme"]
        == best["scheme"]
    )


def test_page_and_table_hold_every_candidate(document):
    scenario = parse_scenario(TEXT).model_copy(update={"description": "buy <b>"})
    page = report_of_plan(scenario, document)
    assert "buy &lt;b&gt;" in page
    assert "TB usable, safe, wanted 10 or more" in page
    assert "<script" not in page
    # Cards on a phone, and the pictures.
    assert 'class="stack numeric"' in page
    # No cell with a sentence is cut off: rows of tables that scroll do not wrap.
    assert 'data-label="why"' in page
    assert 'class="scroll numeric"' not in page
    for stem in ("plan-cost", "plan-p99", "plan-rebuild"):
        assert f'<figure id="{stem}"' in page
    table = answer_of_plan(scenario, MadePlan(document, (), ())).files()["plan.csv"]
    assert len(table.splitlines()) == 5


def test_a_candidate_that_cannot_be_fails_by_the_key_that_is_wrong():
    # rs:4,2 needs six hosts and gets four.
    text = TEXT.replace("hosts = [4, 7]", "hosts = [4]")
    scenario = parse_scenario(text.replace('"rep:3", "rs:4,2"', '"rs:4,2"'))
    (row,) = rows_of(make_plan(scenario).document)
    assert row["verdict"] == "fails: schemes"


def test_an_unknown_drive_rules_out_its_candidates_alone():
    drives = "plan.prices.drives={nvme-tlc={drive=1.0}, nvme-tcl={drive=1.0}}"
    sets = ["schemes=['rep:3']", "plan.hosts=[7]", "plan.usable_bytes=1TB", drives]
    scenario = parse_scenario(TEXT, sets=[*sets, "plan.drive=['nvme-tcl', 'nvme-tlc']"])
    (wrong, right) = make_plan(scenario).document["candidates"]
    assert states(wrong["fails"][0], "cluster.drive ... nvme-tcl")
    assert right["iops"] is not None


def test_rebuilds_are_drawn_in_the_unit_of_the_slowest(document):
    candidates = deepcopy(document)
    first, *others = candidates["candidates"]
    first["rebuild_s"] = 9000.0
    for one in others:
        one["rebuild_s"] = 600.0
    figure, _ = draw_plan(parse_scenario(TEXT).plan, candidates)["plan-rebuild"]
    (axes,) = figure.axes
    assert axes.get_xlabel() == "time [h]"
    labels = {text.get_text() for text in axes.texts}
    assert {"2.5 h", "0.167 h"} <= {label.strip() for label in labels}


def test_cost_is_drawn_in_the_currency_of_the_prices(document):
    figure, _ = draw_plan(parse_scenario(TEXT).plan, document)["plan-cost"]
    assert figure.axes[0].get_ylabel() == "cost [currency of the prices]"


def test_growth_is_drawn_until_each_candidate_is_full(document):
    # Given 1 TB that grows by 3.6525 TB a year: s TB are reached after (s - 1) / 3.6525 years.
    plan = parse_scenario(
        TEXT, sets=["plan.growth_bytes_per_day=10GB", "plan.stored_bytes=1TB"]
    ).plan
    safe_tb = document["recommended"]["capacity"]["usable_bytes_safe"] / 1e12

    figure, caption = draw_plan(plan, document)["plan-growth"]

    years = (safe_tb - 1) / 3.6525
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert dots[0].get_xdata()[0] == pytest.approx(years, rel=1e-6)
    assert f"{years:.3g}" in caption


def test_the_front_leaves_out_what_another_candidate_beats():
    # Given capacity and cost: (2, 30) holds less than (3, 20) and costs more.
    candidates = [
        {"capacity": {"usable_bytes_safe": capacity * 1e12}, "cost": cost}
        for capacity, cost in ((1, 10), (2, 30), (3, 20), (5, 40))
    ]

    front = front_of(candidates, lambda one: one["cost"])

    assert [one["cost"] for one in front] == [10, 20, 40]


def test_curves_of_a_plan_are_those_of_the_recommended_candidate(document):
    scenario = parse_scenario(TEXT, sets=["workload.requests=100"])
    single = {**document, "candidates": [document["recommended"]]}

    (curve,) = curves_of_plan(scenario, single)

    assert curve.cell.scheme == document["recommended"]["scheme"]
    assert curve.within[0].p99_ns == 500e6
    page = report_of_plan(scenario, document, [curve])
    assert 'id="load-curves"' in page


def test_curves_of_a_plan_stop_at_the_two_cheapest_other_schemes(document, monkeypatch):
    # Given three other schemes that meet all requirements, of which RS(2,1) is the dearest
    schemes = ("rep:3", "rep:2", "rs:4,2", "rs:2,1")
    costs = (1, 2, 3, 4)
    best = document["recommended"]
    candidates = [
        {**best, "scheme": scheme, "cost": cost, "meets": True}
        for scheme, cost in zip(schemes, costs, strict=True)
    ]
    scenario = parse_scenario(TEXT, sets={"schemes": list(schemes)})
    simulated = []
    monkeypatch.setattr(
        "stripesim.scenarios.answers.plan.curves.load_curves",
        lambda scenarios, _, **options: simulated.extend(scenarios),
    )

    curves_of_plan(
        scenario, {**document, "recommended": candidates[0], "candidates": candidates}
    )

    assert [each.schemes for each in simulated] == [("rep:3",), ("rep:2",), ("rs:4,2",)]


def test_an_interval_across_its_bound_is_uncertain():
    def state(key: str, value: Interval | None, side: str) -> str:
        return judge(key, value, 6.0, 1.0, "ms", side).state

    assert state("p99_ms", Interval(5.0, 4.0, 6.5), "or less") == "uncertain"
    assert state("p99_ms", Interval(5.0, 4.0, 6.0), "or less") == "met"
    assert state("p99_ms", Interval(7.0, 6.5, 7.5), "or less") == "failed"
    assert state("nines", Interval(5.0, 4.0, 6.5), "or more") == "uncertain"
    assert state("nines", None, "or more") == "uncertain"


def test_an_interval_of_a_latency_begins_at_0():
    # Student's t of two runs of 1 and 2 ms: 1.5 ± 12.7 × 0.5.
    verdict = judge("p99_ms", Interval(1.5, -4.85, 7.85), 10.0, 1.0, "ms", "or less")
    assert "(95 % 0 to 7.85)" in verdict.words


@pytest.mark.parametrize(
    ("sets", "wanted"),
    [
        # Seven hosts with two drives of 3.84 TB hold less than 15.2 TB in three copies: 6 × 7.68 × 0.85 / 3.
        (["plan.usable_bytes='1TB'", "plan.stored_bytes='16TB'"], 16),
        (["plan.usable_bytes='17TB'", "plan.stored_bytes='16TB'"], 17),
    ],
)
def test_the_data_at_the_start_has_to_fit(sets, wanted):
    sets = [*sets, "schemes=['rep:3']", "plan.hosts=[7]"]
    (one,) = make_plan(parse_scenario(TEXT, sets=sets)).document["candidates"]
    assert one["fails"][0].endswith(f"wanted {wanted} or more")


def test_a_laboratory_s_capacity_is_judged_in_gigabytes():
    scenario = parse_scenario(TEXT, sets=["plan.usable_bytes=200GB", "plan.hosts=[7]"])
    (one, _) = candidates_of(scenario, scenario.plan)
    judge_closed_forms(one, scenario, scenario.plan)
    assert states(one.verdicts[0].words, "GB ... wanted 200")


def test_cheaper_candidates_that_are_uncertain_are_counted(monkeypatch):
    # Given a p99 of 4 to 6 ms on four hosts, and of 3 ms on seven, where at most 5 ms are wanted.
    def simulated(scenario, *_, **__):
        p99_ms = 3.0
        if scenario.cluster.host_count == 4:
            p99_ms = 4.0 + 2 * (scenario.seed % 2)
        return candidate_runs._WorstCells(200.0, 200.0, False, None, p99_ms * 1e6, 0.0)

    monkeypatch.setattr(candidate_runs, "_worst", simulated)
    sets = ["schemes=['rep:3']", "plan.p99_ms=5.0", "plan.usable_bytes='1TB'"]
    answer = make_plan(parse_scenario(TEXT, sets=sets)).document
    assert answer["recommended"]["hosts"] == 7
    assert any(line.startswith("1 cheaper candidate is") for line in answer["reasons"])


def test_nines_follow_the_rebuild_of_the_same_candidate():
    # Given two paces of recovery that differ by its sleep alone.
    durability = "[durability]\nafr = 0.05\n"
    text = TEXT.replace('"rep:3", "rs:4,2"', '"rep:3"') + durability
    sets = [
        "plan.hosts=[7]",
        "plan.nines=0.1",
        "plan.usable_bytes=1TB",
        "repair.lost_osds=[0]",
    ]
    slow, fast = (
        make_plan(
            parse_scenario(text, sets=[*sets, f"repair.recovery_sleep_s={sleep}"])
        ).document
        for sleep in (0.5, 0.0)
    )
    slow, fast = (document["candidates"][0] for document in (slow, fast))
    assert slow["rebuild_s"] > 1.5 * fast["rebuild_s"]
    # Two more losses within a rebuild: each takes the ratio of the times off the probability, or nearly.
    assert fast["nines"] - slow["nines"] > math.log10(
        slow["rebuild_s"] / fast["rebuild_s"]
    )


def test_nines_of_a_large_cluster_include_bursts(monkeypatch):
    # Given a system in which 10,000 drives fail a year, and a fire destroys two of its hosts
    burst = Burst("fire", "host", 2, 1 / YEAR_S)
    drives = 500_000
    large = System(
        code=code_of("rep:2"),
        placement="crush",
        drives=drives,
        drive_bytes=1e12,
        lifetime=Lifetime.exponential(0.02),
        repair=DriveRepair(1e8, "parallel"),
        groups=np.arange(drives, dtype=np.int32).reshape(-1, 2),
        units={"host": np.arange(drives, dtype=np.int32) // 10},
        bursts=(burst,),
    )
    described = DescribedSystem(large, [], "100 MB/s")
    monkeypatch.setattr(candidate_runs, "described_system", lambda *_: described)
    row = candidate_runs.nines_of(parse_scenario(TEXT), "rep:2")
    # All mirrors are on one host, so each fire loses data, and single failures add more.
    assert row["method"] == "history"
    assert row["loss_probability"] > 1 - math.exp(-1)


def test_an_impossible_rate_is_refused_by_the_bound_alone():
    scenario = parse_scenario(
        TEXT, sets=["plan.rate_per_s=10000000", "plan.usable_bytes=1TB"]
    )
    document = make_plan(scenario).document
    assert document["recommended"] is None
    assert document["reasons"] == ["none of 4 candidates meets all requirements"]
    possible = [one for one in document["candidates"] if one["bound"]]
    assert len(possible) == 3
    for one in possible:
        assert one["iops"] is None
        assert one["bound"]["iops"] < 1e7
        (verdict,) = (
            verdict for verdict in one["verdicts"] if verdict["key"] == "rate_per_s"
        )
        assert verdict["state"] == "failed"


def test_table_and_reasons_name_the_same_rate(document):
    # 200 requests/s are offered and served, up to the randomness of 400 Poisson arrivals.
    best = document["recommended"]
    assert best["iops"] == 200.0
    assert any("200 requests/s served" in line for line in document["reasons"])


def prices_of(text, *sets):
    """Return the cost of each candidate by hosts and kind of drive, without simulating any."""
    scenario = parse_scenario(
        text, sets=["plan.simulated_max=1", "plan.rate_per_s=9e9", *sets]
    )
    document = make_plan(scenario).document
    return {
        (one["hosts"], one["ssd"]): one["cost"]
        for one in document["candidates"]
        if one["capacity"]
    }


OWNED = """
name = "grow"
schemes = ["rep:3"]
[cluster]
hosts = 4
osds_per_host = 6
drive = "nvme-tlc"
pg_num = 64
public_gbit_per_s = 25.0
private_gbit_per_s = 25.0
[workload]
read_fraction = 0.5
patterns = ["rand"]
requests = 10
image_bytes = "1GiB"
[plan]
hosts = [4, 6]
owned_hosts = 4
rate_per_s = 100.0
[plan.prices]
host = 5000.0
drive = 400.0
network_per_gbit = 10.0
"""


def test_hosts_that_exist_cost_nothing():
    costs = prices_of(OWNED)
    assert costs[4, "nvme-tlc"] == 0
    # Two new hosts, each with six drives and 50 Gbit/s.
    assert costs[6, "nvme-tlc"] == 2 * (5000 + 6 * 400 + 50 * 10)


@pytest.mark.parametrize(
    ("change", "cost_of_owned"),
    [
        ("plan.osds_per_host=[8]", 4 * 2 * 400),
        ("plan.public_gbit_per_s=[100.0]", 4 * 125 * 10),
        ("plan.drive_bytes=[7680000000000]", 4 * 6 * 400),
        ("plan.cores_per_host=[256]", 4 * 5000),
    ],
)
def test_changes_to_existing_hosts_are_bought(change, cost_of_owned):
    costs = prices_of(OWNED, change, "plan.hosts=[4]")
    assert costs[4, "nvme-tlc"] == cost_of_owned


def test_a_size_that_owned_drives_have_by_default_is_not_bought_again():
    # Given drives of the parameter set's 3.84 TB, which [cluster] does not state
    costs = [
        prices_of(OWNED, "plan.hosts=[4]", f"plan.drive_bytes=[{size}]")[4, "nvme-tlc"]
        for size in (3_840_000_000_000, 8_000_000_000_000)
    ]
    # Then drives of 3.84 TB are there, and all 4 × 6 of 8 TB are bought.
    assert costs == [0.0, 4 * 6 * 400.0]


def test_a_plan_with_one_network_varies_no_private_rate():
    sets = ["cluster.networks=1", "plan.private_gbit_per_s=[10, 25]"]
    with pytest.raises(ScenarioError, match=r"plan\.private_gbit_per_s: got "):
        parse_scenario(OWNED, sets=sets)


def test_one_network_for_both_roles_is_bought_once():
    costs = prices_of(OWNED, "cluster.networks=1")
    # As above, with 25 instead of 50 Gbit/s.
    assert costs[6, "nvme-tlc"] == 2 * (5000 + 6 * 400 + 25 * 10)


STORE = """
name = "store"
schemes = ["rep:3"]
[cluster]
hosts = 4
osds_per_host = 6
pg_num = 64
drive_bytes = "2TB"
[cluster.gateways]
place = "own"
cores = 16
[workload]
kind = "s3"
ops = ["get"]
object_sizes_bytes = ["4MiB"]
objects = 1000
buckets = 4
requests = 100
clients = 16
queue_depth = 4
[plan]
gateways = [1, 4]
gateway_cores = [16, 24]
owned_hosts = 4
owned_gateways = 2
[plan.prices]
host = 5000.0
gateway = 3000.0
gateway_core = 50.0
gateway_watts = 200.0
kwh = 0.1
years = 1.0
"""


def judged_stores(*sets):
    """Return candidates of an object store with their closed forms, by gateways and cores of each."""
    scenario = parse_scenario(STORE, sets=sets)
    stores = {}
    for one in candidates_of(scenario, scenario.plan):
        judge_closed_forms(one, scenario, scenario.plan)
        stores[one.keys["gateways"], one.keys["gateway_cores"]] = one
    return stores


@pytest.fixture(scope="module")
def stores():
    """Return the judged candidates of `STORE`."""
    return judged_stores()


def gateway_costs(stores):
    """Return the costs of candidates without their power, by gateways and cores of each."""
    costs = {}
    for (gateways, cores), one in stores.items():
        kwh = gateways * 200 / 1000 * 8766
        assert one.results["watts"] == gateways * 200
        costs[gateways, cores] = one.results["cost"] - 0.1 * kwh
    return costs


def test_a_plan_varies_gateways_and_their_cores_with_prices(stores):
    # Two of 16 cores exist. Four are two more, and 8 further cores each cost 50.
    assert gateway_costs(stores) == pytest.approx(
        {
            (1, 16): 0,
            (1, 24): 1 * 8 * 50,
            (4, 16): 2 * 3000,
            (4, 24): 2 * 3000 + 4 * 8 * 50,
        }
    )


def test_without_a_price_of_cores_gateways_with_more_of_them_are_bought():
    prices = "plan.prices={gateway=3000.0, gateway_watts=200.0, kwh=0.1, years=1.0}"
    costs = gateway_costs(judged_stores(prices))
    # All four are new: the two that exist have too few cores.
    assert costs[4, 24] == pytest.approx(4 * 3000)
    assert costs[4, 16] == pytest.approx(2 * 3000)


def test_more_gateways_lift_the_bound_until_something_else_limits(stores):
    for (gateways, cores), one in stores.items():
        assert one.scenario.cluster.gateways.count == gateways
        assert one.scenario.cluster.gateways.cores == cores
    # One gateway has 25 reads of 4 MiB in flight, and three messenger threads at 1.12 ns a byte.
    messenger_s = 3 / (1.12e-9 * (4 << 20))
    one, four = stores[1, 16].bound, stores[4, 16].bound
    assert one.resource.startswith("gateways")
    assert one.iops <= 1.01 * messenger_s
    assert four.iops > 2 * one.iops


def test_gateways_are_named_and_need_a_load_of_objects():
    one = {"scheme": "rep:3", "hosts": 4, "osds_per_host": 6, "ssd": "nvme"}
    named = line_name(
        one | {"gateways": 8, "gateway_cores": 16}, ["gateways", "gateway_cores"]
    )
    assert named.endswith("8 gateways, 16 cores per gateway")
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(TEXT.replace("hosts = [4, 7]", "gateways = [4]"))
    assert states(str(caught.value), "plan.gateways ... s3")


def test_each_kind_of_drive_has_its_price():
    text = (
        OWNED
        + "[plan.prices.drives]\nnvme-tlc = { drive = 500.0 }\nhdd-7200 = { drive = 250.0 }\n"
    )
    kinds = 'plan.drive=["nvme-tlc", "hdd-7200"]'
    costs = prices_of(text, kinds)
    assert costs[6, "nvme-tlc"] == 2 * (5000 + 6 * 500 + 50 * 10)
    # Disks are no drives that the hosts have: all 36 are bought.
    assert costs[6, "hdd-7200"] == 2 * (5000 + 50 * 10) + 36 * 250


@pytest.mark.parametrize(
    "prices", ["", "[plan.prices.drives]\nnvme-tlc = { drive = 500.0 }\n"]
)
def test_drives_without_a_price_are_not_compared(prices):
    with pytest.raises(
        ScenarioError, match=r"plan.prices.drives: got no price for .*hdd-7200"
    ):
        parse_scenario(OWNED + prices, sets=['plan.drive=["nvme-tlc", "hdd-7200"]'])


def test_a_misspelt_kind_of_drive_does_not_make_drives_free():
    text = (
        OWNED.replace("drive = 400.0\n", "")
        + "[plan.prices.drives]\nnvme-tcl = { drive = 500.0 }\n"
    )
    with pytest.raises(
        ScenarioError, match=r"plan.prices.drives: got no price for nvme-tlc"
    ):
        parse_scenario(text)


def test_a_plan_compares_releases():
    scenario = parse_scenario(
        OWNED, sets=['plan.generation=["squid", "tentacle"]', 'schemes=["rs:2,1"]']
    )
    candidates = list(candidates_of(scenario, scenario.plan))
    assert [one.keys["generation"] for one in candidates] == [
        "squid",
        "squid",
        "tentacle",
        "tentacle",
    ]
    assert [one.scenario.generation for one in candidates] == [
        "squid",
        "squid",
        "tentacle",
        "tentacle",
    ]


@pytest.mark.parametrize("key", VARIED)
def test_a_list_of_nothing_to_try_is_refused(key):
    with pytest.raises(ScenarioError, match=rf"plan\.{key}: got \[\], wanted at least"):
        parse_scenario(TEXT, sets=[f"plan.{key}=[]"])


def test_too_many_candidates_are_refused():
    hosts = list(range(3, 1100))
    scenario = parse_scenario(TEXT, sets=[f"plan.hosts={hosts}"])
    with pytest.raises(ValueError, match=r"2194 candidates.*2000\b"):
        list(candidates_of(scenario, scenario.plan))


def test_requirements_that_lack_a_key_are_reported():
    with pytest.raises(
        ScenarioError, match=r"plan.days_until_full: got no plan.growth_bytes_per_day"
    ):
        parse_scenario(TEXT, sets=["plan.days_until_full=100"])
    without = TEXT.partition("[plan.prices]")[0] + "cost_max = 5.0\n"
    with pytest.raises(ScenarioError, match=r"plan.cost_max: got no prices"):
        parse_scenario(without)


@pytest.mark.parametrize(
    ("prices", "limit"),
    [
        ("{}", "cost_max"),
        ("{host_watts = 300.0, kwh = 0.3}", "cost_max"),
        ("{host = 9000.0}", "watts_max"),
    ],
)
def test_a_limit_on_what_has_no_price_or_power_is_refused(prices, limit):
    with pytest.raises(ScenarioError, match=rf"plan.{limit}: got no "):
        parse_scenario(TEXT, sets=[f"plan.prices={prices}", f"plan.{limit}=5.0"])


@pytest.mark.parametrize(
    "prices",
    [
        "{host_watts = 300.0, kwh = 0.3, years = 5.0}",
        "{drives = {nvme-tlc = {drive = 500.0}}}",
    ],
)
def test_a_limit_on_the_cost_accepts_any_price(prices):
    scenario = parse_scenario(TEXT, sets=[f"plan.prices={prices}", "plan.cost_max=5.0"])
    assert scenario.plan.cost_max == 5.0


@pytest.mark.parametrize(
    "repeated",
    [
        "hosts=[4, 7, 4]",
        'drive_bytes=["4TB", 4_000_000_000_000]',
        'generation=["squid", "squid"]',
    ],
)
def test_a_value_is_tried_once(repeated):
    key = repeated.partition("=")[0]
    with pytest.raises(ScenarioError, match=rf"plan.{key}: got .* twice"):
        parse_scenario(TEXT, sets=[f"plan.{repeated}"])


@pytest.mark.parametrize(
    ("key", "own"), [("cores_per_host", "cores"), ("drive_bytes", "drive_bytes")]
)
def test_a_plan_does_not_vary_what_groups_of_hosts_state(key, own):
    groups = TEXT.replace(
        "[cluster]", f"[cluster]\nhosts = [{{ count = 7, {own} = 64 }}]"
    )
    text = groups.replace("hosts = [4, 7]\nosds_per_host = [2]", f"{key} = [32, 64]")
    with pytest.raises(ScenarioError, match=rf"plan.{key}: got a list"):
        parse_scenario(text)


def test_a_price_of_a_drive_outside_the_plan_is_refused():
    with pytest.raises(ScenarioError, match=r"plan.prices.drives: .*nvme-tcl"):
        parse_scenario(OWNED, sets=["plan.prices.drives.nvme-tcl.drive=500.0"])


def test_values_in_messages_are_written_as_in_a_scenario():
    with pytest.raises(ScenarioError, match=r"plan.gateways: got \[4\]"):
        parse_scenario(TEXT, sets=["plan.gateways=[4]"])


# Failure domains to spare.

NARROW = TEXT.replace('"rep:3", "rs:4,2"', '"rs:4,2"').replace("[4, 7]", "[6, 7]")


@pytest.fixture(scope="module")
def narrow():
    return make_plan(parse_scenario(NARROW, sets=["plan.usable_bytes=1TB"])).document


def test_a_candidate_without_a_spare_host_is_refused_and_names_its_price(narrow):
    tight, roomy = narrow["candidates"]
    assert (tight["hosts"], roomy["hosts"]) == (6, 7)

    (verdict,) = (one for one in tight["verdicts"] if one["key"] == "spare_domains")

    assert verdict["state"] == "failed"
    # RS(4,2) serves clients with k + 1 = 5 shards. A seventh host costs 5,000, and 2 drives of 400.
    assert states(
        verdict["words"],
        "no spare failure domain: k+m = hosts ... 5 shards (min_size 5) ... 5,800",
    )
    assert tight["next_domain_cost"] == 5800
    assert tight["capacity"]["spare_domains"] == 0
    assert not tight["meets"]
    # It is not worth a simulation, although it is cheaper.
    assert tight["iops"] is None
    assert narrow["recommended"]["hosts"] == 7
    assert any("spare_domains: 1 spare host" in line for line in narrow["reasons"])


def test_a_plan_may_allow_no_spare_host_and_warns(narrow):
    scenario = parse_scenario(
        NARROW, sets=["plan.usable_bytes=1TB", "plan.spare_domains=0"]
    )

    document = make_plan(scenario).document

    best = document["recommended"]
    assert best["hosts"] == 6
    assert states(best["warnings"][0], "no spare host: 6 for 6 shards ... 5,800")
    assert any(line.startswith("warning: rs:4,2") for line in document["reasons"])
    (row, _) = rows_of(document)
    assert "no spare host" in row["verdict"]


@pytest.mark.parametrize(
    ("scheme", "domain", "hosts", "words"),
    [
        ("rep:3", "rack", 2, "one more rack (2 hosts)"),
        ("rs:4,2", "host", 1, "one more host"),
    ],
)
def test_the_next_domain_costs_its_hosts(scheme, domain, hosts, words):
    # Given three racks of two hosts at 5,800: three copies in three racks, or six shards on six hosts
    text = TEXT.replace('"rep:3", "rs:4,2"', f'"{scheme}"').replace("[4, 7]", "[6]")
    domains = [
        f"cluster.failure_domain_{kind}={domain}" for kind in ("replicated", "erasure")
    ]
    scenario = parse_scenario(text, sets=["cluster.racks=3", *domains])

    (candidate,) = make_plan(scenario).document["candidates"]

    assert candidate["next_domain_cost"] == hosts * 5800
    assert any(words in line for line in candidate["fails"])


# Clients that nobody stated.


def test_clients_limit_a_plan_only_where_they_are_stated():
    # Given reads of 1 MiB on hosts with 25 Gb/s each, as much as one client has
    sets = [
        "workload.read_fraction=1.0",
        'workload.block_sizes_bytes=["1MiB"]',
        "cluster.public_gbit_per_s=25.0",
        "plan.rate_per_s=9e9",
        "plan.usable_bytes=1TB",
    ]
    unstated = make_plan(parse_scenario(TEXT, sets=sets)).document
    stated = make_plan(
        parse_scenario(TEXT, sets=[*sets, "workload.clients=1"])
    ).document

    free = unstated["candidates"][1]["bounds"]
    limited = stated["candidates"][1]["bounds"]

    assert not [bound for bound in free if "clients" in bound["resource"]]
    assert any("states no clients" in line for line in unstated["assumptions"])
    # Each frame of 1,448 bytes has 90 more on the wire.
    wire_per_s = 25e9 / 8 / (2**20 * (1 + 90 / 1448))
    assert limited[0]["resource"] == "network of clients"
    assert limited[0]["iops"] == pytest.approx(wire_per_s, rel=0.01)
    assert any(
        "the network of the clients that you stated" in line
        for line in stated["candidates"][1]["fails"]
    )


# Words.


def test_large_rates_are_written_out():
    verdict = judge(
        "rate_per_s", Interval(20000.0, None, None), 19400.0, 1.0, "served", "or more"
    )
    assert states(verdict.words, "20,000 served ... 19,400")


def test_lines_name_every_key_that_varies():
    sets = [
        "plan.hosts=[7]",
        'plan.drive_bytes=["3.84TB", "7.68TB"]',
        "plan.rate_per_s=9e9",
    ]
    document = make_plan(parse_scenario(TEXT, sets=sets)).document
    names = [line_name(one, document["varied"]) for one in document["candidates"]]
    assert len(set(names)) == len(names) == 4
    assert names[0] == "rep:3 on 7 × 2 nvme-tlc, drives of 3.84 TB"


def test_progress_counts_every_run():
    # Given two candidates with two seeds and a rebuild each, after one step of closed forms
    steps = []
    sets = ["plan.hosts=[7]", "plan.usable_bytes=1TB"]
    make_plan(
        parse_scenario(TEXT, sets=sets),
        progress=lambda words, total=None: steps.append(total),
    )
    assert steps[0] == 1 + 2 * (2 + 1)
    assert len(steps) == steps[0]


# The command.


def test_the_recommendation_is_told_once_no_later_candidate_can_be_as_cheap():
    # Given candidates of three prices, of which the cheapest meet the plan
    text = TEXT.replace("hosts = [4, 7]", "hosts = [8, 9, 10]")
    steps: list[str] = []
    told: list[tuple[str, int]] = []
    made = make_plan(
        parse_scenario(text.replace("10TB", "1TB")),
        progress=lambda words, total=None: steps.append(words),
        on_known=lambda sentence: told.append((sentence, len(steps))),
    )
    # Then it is told once, before the last simulation, and it is the final one.
    ((sentence, at),) = told
    assert at < len(steps)
    best = made.document["recommended"]
    assert f"recommended: {line_name(best, made.document['varied'])}," in sentence


def test_the_recommendation_is_printed_before_curves_and_report_are_computed(
    command, capsys, monkeypatch, tmp_path
):
    text = TEXT.replace("[4, 7]", "[7]").replace('"rep:3", "rs:4,2"', '"rs:4,2"')
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    printed = []

    def no_curves(*_, **__):
        printed.append(capsys.readouterr().out)
        return []

    monkeypatch.setattr(
        "stripesim.scenarios.answers.plan.curves.curves_of_plan", no_curves
    )

    status, _, err = command(
        "plan", tmp_path / "s.toml", "--out", tmp_path / "out", "--report"
    )

    assert status == 0, err
    first, second, *_ = printed[0].splitlines()
    assert first == "recommended:"
    assert "rs:4,2 on 7 × 2 nvme-tlc" in second
    assert (tmp_path / "out" / "report.html").exists()


def test_candidates_share_runs_only_where_no_run_differs():
    # Given candidates that differ in the capacity of equal drives, or in something that runs depend on
    base = parse_scenario(TEXT)
    cluster = base.cluster

    def content(**keys):
        changed = base.replaced(cluster=cluster.replaced(**keys))
        return candidate_runs.content_of_runs(changed)

    assert content(drive_bytes=4e12) == content(drive_bytes=8e12)
    assert content(hosts=9) != content(hosts=10)
    assert content(private_gbit_per_s=10.0) != content(private_gbit_per_s=25.0)


def test_a_p99_that_clusters_share_is_explained_only_where_each_has_its_own_runs():
    # Given clusters far below their rate: under common random numbers, the slowest reads are the same.
    sets = ["schemes=['rep:3']", "workload.read_fraction=1.0", "plan.usable_bytes=1TB"]
    far_below = [*sets, "plan.rate_per_s=20", "plan.hosts=[7,10]"]
    slow = make_plan(parse_scenario(TEXT, sets=far_below)).document
    first, second = slow["candidates"]
    assert first["latency_p99_ns"] == second["latency_p99_ns"] > 0

    explained = [line for line in slow["assumptions"] if "same p99" in line]

    assert len(explained) == 1
    assert states(explained[0], "2 clusters with rep:3 ... common random numbers")
    # Drives of another size share the runs of one cluster, so that equal numbers mean nothing.
    sizes = [*sets, "plan.hosts=[7]", "plan.drive_bytes=['4TB','8TB']"]
    shared = make_plan(parse_scenario(TEXT, sets=sizes)).document
    first, second = shared["candidates"]
    assert first["latency_p99_ns"] == second["latency_p99_ns"] > 0
    assert not [line for line in shared["assumptions"] if "same p99" in line]


@pytest.mark.parametrize(
    ("hosts", "owned", "cost_of_cores"),
    [(4, 4, 4 * 128 * 7), (6, 4, 6 * 128 * 7), (4, 0, 4 * 128 * 7)],
)
def test_further_cores_are_paid_for_in_bought_and_in_kept_hosts(
    hosts, owned, cost_of_cores
):
    """[cluster] has 128 cores per host, which the price of a host includes."""
    of_plan = (
        f"plan.hosts=[{hosts}]",
        f"plan.owned_hosts={owned}",
        "plan.prices.core=7.0",
    )
    plain = prices_of(OWNED, *of_plan)
    more = prices_of(OWNED, *of_plan, "plan.cores_per_host=[256]")
    assert more[hosts, "nvme-tlc"] - plain[hosts, "nvme-tlc"] == cost_of_cores


@pytest.mark.parametrize(
    ("sets", "keys"),
    [
        # [cluster] has 128 cores per host, 10 Gbit/s and prices of neither.
        (["plan.cores_per_host=[128, 256]"], ["plan.prices.core"]),
        (["plan.cores_per_host=[128, 256]", "plan.prices.core=7.0"], []),
        # A price for cores beyond 128 leaves 32 and 64 cores at one price.
        (
            ["plan.cores_per_host=[32, 64]", "plan.prices.core=7.0"],
            ["plan.prices.host"],
        ),
        (["plan.cores_per_host=[64]"], []),
        (["plan.public_gbit_per_s=[10.0, 25.0]"], []),
        (
            ["plan.public_gbit_per_s=[10.0, 25.0]", "plan.prices.network_per_gbit=0.0"],
            ["plan.prices.network_per_gbit"],
        ),
        (
            ["plan.prices.host_watts=300.0", "plan.prices.kwh=0.3"],
            ["plan.prices.years"],
        ),
        (
            ["plan.prices.host_watts=300.0", "plan.prices.years=5.0"],
            ["plan.prices.kwh"],
        ),
        (["plan.prices.host_watts=300.0"], []),
    ],
)
def test_what_differs_at_no_price_is_warned_of(sets, keys):
    scenario = parse_scenario(OWNED, sets=sets)
    assert scenario.plan is not None
    lines = list(price_warnings(scenario, scenario.plan))
    assert [line.partition(":")[0] for line in lines] == keys


def test_cores_of_gateways_at_no_price_are_warned_of():
    scenario = parse_scenario(STORE, sets=["plan.prices={gateway=3000.0}"])
    assert scenario.plan is not None
    (line,) = price_warnings(scenario, scenario.plan)
    assert line.startswith("plan.prices.gateway_core: ")
