"""`stripesim durability`: the document, the rules of `[durability]`, and valid combinations."""

import json
import math
from math import comb

import pytest

from stripesim.models.problems import ScenarioError
from stripesim.scenarios.answers.durability.durability import (
    DETECTION_S,
    described_system,
    estimate_durability,
    lifetime_of,
)
from stripesim.scenarios.answers.plan.candidate_runs import nines_of
from stripesim.scenarios.clusters.cluster import import_cluster
from stripesim.scenarios.clusters.scenario import scenario_of, write_scenario
from stripesim.scenarios.forms.rebuild import RATE_OBJECTS, idle_rebuild
from stripesim.scenarios.schema.scenario import (
    load_scenario,
    parse_scenario,
    scenario_from,
)
from stripesim.sim.durability.system import YEAR_S
from support.messages import states
from support.reports import report, write_report

CLUSTERED = """
schemes = ["rs:8,2"]
[durability]
placement = "clustered"
drives = 50
drive_bytes = "20TB"
afr = 0.05
repair = "serial"
repair_bytes_per_s = 100e6
detection_s = 0
"""
CRUSH = """
schemes = ["rep:3", "rs:4,2"]
[cluster]
hosts = 8
osds_per_host = 3
racks = 4
pg_num = 64
[durability]
drive_bytes = 8e12
afr = 0.03
repair_bytes_per_s = "200MB"
[[durability.bursts]]
name = "switch"
unit = "rack"
per_year = 0.2
lost_fraction = 0
down_s = 600
"""


def test_the_document_has_the_promised_columns(tmp_path, command):
    path = tmp_path / "c.toml"
    path.write_text(CLUSTERED)
    status, out, _ = command(
        "durability", path, "--json", "-", "--walks", 200, "--out", tmp_path / "out"
    )
    assert status == 0
    document = json.loads(out)
    exact, simulated = document["rows"]
    promised = {
        "scheme", "method", "nines", "nines_low", "nines_high", "loss_probability", "mttdl_hours",
        "bytes_lost_per_year", "trajectories", "wall_s",
    }  # fmt: skip
    for row in document["rows"]:
        assert promised <= set(row)
        assert row["nines"] == pytest.approx(-math.log10(row["loss_probability"]))
    assert exact["method"] == "markov"
    assert exact["nines_low"] == exact["nines"] == exact["nines_high"]
    # Five pools of ten: 10·9·8 λ³ T² a pool and year to first order, with T = 200,000 s.
    rate = -math.log1p(-0.05)
    assert exact["nines"] == pytest.approx(
        -math.log10(5 * 720 * rate**3 * (2e5 / YEAR_S) ** 2), abs=0.01
    )
    assert simulated["nines_low"] <= exact["nines"] <= simulated["nines_high"]
    assert simulated["trajectories"] == 20 * 3 * 200
    assert "drives of one pool fail" in simulated["dominant_path"]
    assert document["provenance"]["scenario_sha256"]
    written = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"results.csv", "durability.json", "nines.svg", "provenance.json"} <= written


def test_a_chain_with_latent_errors_names_them(tmp_path, command):
    # With half an error a year and weekly scrubs, splitting sees nearly all losses by one of these errors.
    path = tmp_path / "c.toml"
    path.write_text(CLUSTERED + "sector_error_rate = 0.5\nscrub_interval_s = 604800\n")
    status, out, _ = command("durability", path, "--json", "-", "--walks", 200)
    assert status == 0
    for row in json.loads(out)["rows"]:
        assert "latent sector error" in row["dominant_path"]


def test_a_code_that_survives_fewer_losses_than_it_has_parities_says_so(command):
    # Shards 0, 1 and 5 of lrc:4,3,2 add up to zero, as do 2, 3 and 6, and the parities 4, 5 and 6. So two
    # lost data shards of a group have one equation: {0, 1} and {2, 3}, of 7 * 6 / 2 = 21 pairs.
    given = ("durability", "durability", "--method", "markov", "--set")
    status, out, _ = command(*given, 'schemes=["lrc:4,3,2", "rs:4,3"]')
    assert status == 0
    notes = [line for line in out.splitlines() if line.startswith("note: ")]
    (note,) = notes
    assert "lrc:4,3,2 has 3 parities" in note
    assert "any 1 shard: of 21 sets of 2, 2 cannot" in note


def test_crush_answers_by_every_method():
    found = estimate_durability(parse_scenario(CRUSH), "all", walks=50)
    assert [row["method"] for row in found["rows"]] == [
        "markov",
        "burst",
        "history",
    ] * 2
    chain, burst, walked = found["rows"][:3]
    assert any("splitting: method history aims" in text for text in found["skipped"])
    # The chain of a CRUSH cluster is an approximation: it has an error, but no interval.
    assert not chain["exact"]
    assert chain["nines_low"] is chain["nines_high"] is None
    assert chain["nines"] == pytest.approx(walked["nines"], abs=0.3)
    # The switch loses no data, but the groups of two of four racks wait for it.
    assert burst["nines"] is None
    assert burst["loss_probability"] == 0
    assert walked["unavailability"] > 0


def test_progress_ends_with_the_number_of_its_steps():
    totals = []
    scenario = parse_scenario(CRUSH)
    estimate_durability(
        scenario, "all", walks=20, progress=lambda words, total: totals.append(total)
    )
    # Two schemes, each with a rebuild, before their methods and the rounds of those are known.
    assert totals[0] == 2
    assert totals[-1] == len(totals)
    assert all(total >= number for number, total in enumerate(totals, 1))


def test_a_rack_that_goes_down_takes_groups_below_min_size_with_it():
    found = CRUSH.replace("units = 1", "").replace(
        'unit = "rack"', 'unit = "rack"\nunits = 4'
    )
    down = estimate_durability(parse_scenario(found), "burst")["rows"][0]
    assert down["bursts"][0]["unavailable_share"] == 1
    assert down["unavailability"] == pytest.approx(0.2 * 600 / YEAR_S, rel=0.2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("afr = 0.05", ""), "durability.afr: got ... lifetime"),
        (("drives = 50", ""), "durability.drives: got nothing"),
        (("drives = 50", "drives = 9"), "schemes: got rs:8,2 (10 shards) on 9 drives"),
        (
            ("repair_bytes_per_s = 100e6", ""),
            "durability.repair_bytes_per_s: got nothing",
        ),
        (('"serial"', '"simulated"'), 'durability.repair: got "simulated"'),
        (
            ("afr = 0.05", "afr = 1.5"),
            "durability.afr: got 1.5 ... 1.0",
        ),
        (
            ("afr = 0.05", "afr = 0.05\ngroups_at_once = 3"),
            "durability.groups_at_once: got 3",
        ),
        (
            ('placement = "clustered"', 'placement = "crush"'),
            "durability.drives: got 50",
        ),
        (
            ("afr = 0.05", 'lifetime = {distribution = "weibull", scale_s = 1e9}'),
            "durability.lifetime.shape: got nothing",
        ),
        (
            (
                "afr = 0.05",
                'lifetime = {distribution = "piecewise", ages_s = [5.0], afrs = [0.1]}',
            ),
            "durability.lifetime.ages_s",
        ),
        (
            ("afr = 0.05", 'lifetime = {distribution = "trace", trace = "none.tab"}'),
            "none.tab (no such file)",
        ),
        (
            (
                "afr = 0.05",
                'afr = 0.05\nbursts = [{name = "b", unit = "rack", per_year = 1.0}]',
            ),
            'durability.bursts[0].unit: got "rack"',
        ),
        (
            (
                "afr = 0.05",
                'afr = 0.05\nbursts = [{name = "b", unit = "drive", units = 99, per_year = 1.0}]',
            ),
            "durability.bursts[0].units: got 99 drives",
        ),
        (
            ("afr = 0.05", "afr = 0.05\nscrub_interval_s = 5.0"),
            "durability.scrub_interval_s",
        ),
        (("afr", "arf"), 'unknown key "arf" ... "afr"'),
        (
            (
                "afr = 0.05",
                'afr = 0.05\nbursts = [{name = "b", unit = "drive", per_year = 1.0},'
                ' {name = "b", unit = "drive", units = 2, per_year = 0.1}]',
            ),
            'name: got "b", wanted a name that no other burst has',
        ),
    ],
)
def test_errors_name_their_key(change, said):
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(CLUSTERED.replace(*change))
    assert states(str(caught.value).replace("[0]", ""), said.replace("[0]", ""))


def test_a_wrong_key_of_a_scenario_without_a_workload_is_its_only_error():
    """Without [durability], the scenario would need a workload and more hosts than it has."""
    burst = 'bursts = [{name = "b", unit = "drive", count = 3, per_year = 1.0}]'
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(CLUSTERED.replace("afr = 0.05", f"afr = 0.05\n{burst}"))
    (problem,) = caught.value.problems
    assert problem.got == 'unknown key "count"'
    # Another table has such a key, and that of bursts has six.
    assert problem.wanted.startswith(
        '"cluster.hosts.count", or here one of name, unit, units'
    )


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["stripes=9"], "durability.stripes: got 9"),
        (["rebuilt_is_safe=true"], "durability.rebuilt_is_safe: got true"),
        (["replacement_s=5"], "durability.spare_drives, too"),
        (["replacement_s=5", "spare_drives=0"], "durability.replacement_s: got 5"),
        (
            ['placement="declustered"', 'repair_time="fixed"'],
            'durability.repair_time: got "fixed"',
        ),
        (
            ['placement="declustered"', "spare_drives=3"],
            "durability.spare_drives: got 3",
        ),
        (
            ['placement="declustered"', "prioritised=false"],
            "durability.prioritised: got false",
        ),
    ],
)
def test_keys_without_effect_are_refused(sets, said):
    keys = [f"durability.{key}" for key in sets]
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(CLUSTERED, sets=keys)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("scheme", "min_size", "is_allowed"),
    [
        ("rs:8,2", 7, False),
        ("rs:8,2", 8, True),
        ("rs:8,2", 10, True),
        ("rs:8,2", 11, False),
        ("rep:3", 1, True),
        ("rep:3", 4, False),
    ],
)
def test_min_size_is_between_k_and_the_shards_of_each_scheme(
    scheme, min_size, is_allowed
):
    sets = [f'schemes=["{scheme}"]', f"durability.min_size={min_size}"]
    if is_allowed:
        spec = parse_scenario(CLUSTERED, sets=sets).durability
        assert spec is not None and spec.min_size == min_size
        return
    with pytest.raises(ScenarioError, match=f"durability.min_size: got {min_size}"):
        parse_scenario(CLUSTERED, sets=sets)


@pytest.mark.parametrize(
    "key", ["spare_drives=9", 'bursts=[{name="x",unit="drive",per_year=1.0}]']
)
def test_the_shared_pace_is_that_of_one_pool(key):
    sets = ['durability.repair="shared"', f"durability.{key}"]
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(CLUSTERED, sets=sets)
    said = f'durability.repair: got "shared" with {key.partition("=")[0]} and 5 pools'
    assert said in str(caught.value)
    parse_scenario(CLUSTERED, sets=[*sets, "durability.drives=10"])
    parse_scenario(CLUSTERED, sets=[*sets, 'durability.repair="parallel"'])


@pytest.mark.parametrize("method", ["history", "splitting"])
@pytest.mark.parametrize(
    "together",
    ['bursts=[{name="x",unit="drive",per_year=1e-6}]', "spare_drives=500"],
)
def test_drives_in_turn_are_those_of_one_pool(method, together):
    # Given 200 pools that are simulated together, though a burst or a lack of spares hardly ever happens
    sets = [
        "schemes=['rs:3,2']",
        "durability.drives=1000",
        "durability.drive_bytes='4TB'",
        "durability.afr=0.3",
        "durability.repair_bytes_per_s='20MB'",
    ]
    alone = parse_scenario(CLUSTERED, sets=sets)
    (exact,) = estimate_durability(alone, "markov")["rows"]
    all_of_them = parse_scenario(CLUSTERED, sets=[*sets, f"durability.{together}"])
    (row,) = estimate_durability(all_of_them, method, walks=2000)["rows"]
    assert row["nines"] == pytest.approx(exact["nines"], abs=0.1)


def test_without_spares_no_drive_is_rebuilt():
    # Given five pools of ten drives, of which three of a pool have to fail within a year
    scenario = parse_scenario(CLUSTERED, sets=["durability.spare_drives=0"])
    (row,) = estimate_durability(scenario, "splitting", walks=500)["rows"]
    of_pool = sum(comb(10, i) * 0.05**i * 0.95 ** (10 - i) for i in range(3, 11))
    by_hand = 1 - (1 - of_pool) ** 5
    assert row["loss_probability"] == pytest.approx(by_hand, rel=0.1)
    assert any("no failed drive is ever rebuilt" in line for line in row["assumptions"])


def test_a_scenario_of_durability_alone_cannot_be_run(tmp_path, command):
    path = tmp_path / "c.toml"
    path.write_text(CLUSTERED)
    status, _, err = command("run", str(path))
    assert status == 2
    assert "stripesim durability" in err
    path.write_text('schemes = ["rep:3"]\n[workload]\nrequests = 5\n')
    status, _, err = command("durability", str(path))
    assert status == 2
    assert "[durability]" in err


def test_bursts_strike_the_racks_of_a_crush_map(tmp_path):
    # Six hosts in three racks, a copy in each rack.
    document = report(rule=(("chooseleaf_firstn", 0, "rack"),))
    cluster = import_cluster([write_report(tmp_path, document)])
    path = tmp_path / "data.toml"
    write_scenario(scenario_of(cluster, cluster.pools[0], "data.crush"), path)

    def struck(unit, units):
        burst = {"name": "b", "unit": unit, "units": units, "per_year": 1}
        spec = {"afr": 0.02, "repair_bytes_per_s": 1e8, "bursts": [burst]}
        text = json.dumps(spec).replace('": ', '"= ')
        scenario = load_scenario(path, sets=[f"durability={text}"])
        (row,) = estimate_durability(scenario, method="burst")["rows"]
        (of_burst,) = row["bursts"]
        return of_burst["loss_probability"], of_burst["unavailable_share"]

    assert struck("rack", 1) == (0, 0)
    # One copy of three is left, and clients need two.
    assert struck("rack", 2) == (0, 1)
    assert struck("rack", 3) == (1, 1)
    with pytest.raises(ScenarioError, match=r"bursts.unit: got .* in no datacenter"):
        struck("site", 1)
    with pytest.raises(
        ScenarioError, match=r"bursts.units: got 4 racks, wanted at most 3"
    ):
        struck("rack", 4)


@pytest.mark.parametrize("method", ["splitting", "burst", "history"])
def test_a_hole_of_crush_is_a_missing_shard(method):
    # CRUSH seldom takes the small sixth OSD, so that some groups have a hole and tolerate one more loss.
    sizes = ((5, "4TB"), (1, "20GB"))
    hosts = [{"count": 1, "osds": n, "drive_bytes": size} for n, size in sizes]
    burst = {"name": "b", "unit": "drive", "units": 2, "per_year": 1}
    rates = {"afr": 0.02, "repair_bytes_per_s": 1e8, "drive_bytes": 1e12}
    scenario = scenario_from(
        {
            "schemes": ["rs:4,2"],
            "cluster": {
                "hosts": hosts,
                "failure_domain_erasure": "osd",
                "pg_num": 64,
            },
            "durability": {**rates, "bursts": [burst]},
        }
    )
    (row,) = estimate_durability(scenario, method=method, walks=200)["rows"]
    assert 0 < row["loss_probability"] < 1
    if method == "burst":
        # Two of the five large drives destroy a group with a hole, a large and the small one none.
        assert row["bursts"][0]["loss_probability"] == pytest.approx(10 / 15)


def test_ageing_drives_have_no_chain(tmp_path, command):
    path = tmp_path / "c.toml"
    path.write_text(
        CLUSTERED.replace(
            "afr = 0.05",
            'lifetime = {distribution = "weibull", scale_s = 1e9, shape = 2.0}',
        )
    )
    status, _, err = command("durability", str(path), "--method", "markov")
    assert status == 2
    assert "drives age" in err
    found = estimate_durability(parse_scenario(path.read_text()), "all", walks=50)
    assert [row["method"] for row in found["rows"]] == ["splitting"]
    assert "rs:8,2: markov: drives age" in found["skipped"][0]


def test_lifetimes_are_those_that_were_given():
    scenario = parse_scenario(CLUSTERED)
    rate_per_s = lifetime_of(scenario, scenario.durability).rate_per_s
    assert rate_per_s == pytest.approx(-math.log1p(-0.05) / YEAR_S)
    aged = parse_scenario(
        CLUSTERED.replace(
            "afr = 0.05",
            'lifetime = {distribution = "piecewise", ages_s = [0, 8e6], afrs = [0.05, 0.01], age_s = 1e6}',
        )
    )
    system = described_system(aged, "rs:8,2").system
    assert system.lifetime.hazards_per_s[1] * YEAR_S == pytest.approx(
        -math.log1p(-0.01)
    )
    assert system.age_s == 1e6
    weibull = parse_scenario(
        CLUSTERED.replace(
            "afr = 0.05",
            'lifetime = {distribution = "weibull", scale_s = 3e7, shape = 0.7, age_s = 1e7}',
        )
    )
    found = lifetime_of(weibull, weibull.durability)
    # The pieces have the distribution's own cumulative hazard where they end.
    ages = [*found.edges_s, 1e7 + weibull.durability.horizon_s]
    lived = sum(
        h * (b - a)
        for h, a, b in zip(found.hazards_per_s, ages, ages[1:], strict=False)
    )
    assert lived == pytest.approx((ages[-1] / 3e7) ** 0.7)


def test_equal_lifetimes_are_fitted_without_a_shape(tmp_path):
    """Of forty drives, each fails at an age of a million seconds: a Weibull distribution has no shape."""
    path = tmp_path / "equal.csv"
    path.write_text(
        "time_s,component,up\n" + "".join(f"0,c{n},true\n" for n in range(40))
    )
    path.with_name("equal.spans.csv").write_text(
        "start_s,stop_s,component,up,left_cut,right_cut\n"
        + "".join(f"0,1000000,c{n},true,false,false\n" for n in range(40))
    )
    trace = f'lifetime = {{distribution = "trace", trace = "{path}"}}'
    scenario = parse_scenario(CLUSTERED.replace("afr = 0.05", trace))
    lifetime = lifetime_of(scenario, scenario.durability)
    assert lifetime.hazards_per_s[0] == pytest.approx(1e-6)


def test_a_repair_begins_when_ceph_marks_the_osd_out_or_at_the_given_time():
    # 20 s of silence (osd_heartbeat_grace) and 600 s down (mon_osd_down_out_interval).
    left_out = parse_scenario(CRUSH)
    system = described_system(left_out, "rep:3").system
    assert system.repair.detection_s == 20 + 600 == DETECTION_S
    own_clock = (
        CRUSH
        + "[faults]\ndown_out_interval_s = 30\nevents = [{osds = [0], at_s = 1.0}]\n"
    )
    own_clock += "[workload]\nrequests = 1\n"
    system = described_system(parse_scenario(own_clock), "rep:3").system
    assert system.repair.detection_s == 20 + 30
    given = parse_scenario(CRUSH.replace("afr", "detection_s = 5\nafr"))
    assert described_system(given, "rep:3").system.repair.detection_s == 5
    # The default is among the assumptions, a given time is not said to be one.
    stated = [
        estimate_durability(each, "markov")["rows"][0]["assumptions"]
        for each in (left_out, given)
    ]
    assert ["durability.detection_s" in " ".join(lines) for lines in stated] == [
        True,
        False,
    ]


def test_a_loss_that_no_walk_saw_has_a_bound_and_no_value(tmp_path, command):
    path = tmp_path / "few.toml"
    few = CLUSTERED.replace('"clustered"', '"declustered"\nstripes = 10').replace(
        '"rs:8,2"', '"rs:8,4"'
    )
    path.write_text(few.replace("drives = 50", "drives = 500").replace("100e6", "1e10"))
    folder = tmp_path / "out"
    status, out, _ = command(
        "durability", path, "--method", "splitting", "--out", folder
    )
    assert status == 0
    (row,) = json.loads((folder / "durability.json").read_text())["rows"]
    assert row["nines"] is row["nines_high"] is None
    assert row["loss_probability"] == 0
    assert row["nines_low"] > 3
    assert f"{row['nines_low']:.1f} nines" in out


def test_a_scenario_without_durability_has_the_name_it_had():
    plain = parse_scenario('schemes = ["rep:3"]\n[workload]\nrequests = 5\n')
    assert "durability" not in plain.model_fields_set
    assert plain.hash() != parse_scenario(CLUSTERED).hash()


def test_one_method_is_recommended_for_each_scheme():
    alone = parse_scenario(CLUSTERED)
    burst = '[[durability.bursts]]\nname = "power"\nunit = "drive"\nunits = 3\nper_year = 0.1\n'
    with_bursts = parse_scenario(CLUSTERED + burst)
    assert (
        estimate_durability(alone, "markov")["recommended"]["rs:8,2"]["method"]
        == "markov"
    )
    # Only simulation counts bursts together with single failures.
    assert (
        estimate_durability(with_bursts, "markov")["recommended"]["rs:8,2"]["method"]
        == "history"
    )


# Stored bytes and the rate of rebuilds.

SMALL = """
schemes = ["rs:4,2"]
[cluster]
hosts = 8
osds_per_host = 4
pg_num = 128
drive_bytes = "8TB"
[durability]
afr = 0.02
repair_bytes_per_s = "100MB"
"""


def system_with(*sets, scheme="rs:4,2"):
    return described_system(parse_scenario(SMALL, sets=sets), scheme).system


def test_a_cluster_rebuilds_what_it_stores():
    # 32 OSDs hold 50 TB × 6 / 4 evenly, with 4 MiB objects of 256 whole stripes.
    stored = system_with("cluster.stored_bytes=50e12")
    assert stored.drive_bytes == pytest.approx(50e12 * 1.5 / 32)
    assert stored.client_bytes == 50e12
    assert stored.transfer_s == pytest.approx(50e12 * 1.5 / 32 / 100e6)
    # What each OSD holds counts all pools, and the client data is still this pool's.
    used = ",".join(["3e12"] * 16 + ["5e12"] * 16).replace("e12", "000000000000")
    held = system_with("cluster.stored_bytes=50e12", f"cluster.used_bytes=[{used}]")
    assert held.drive_bytes == pytest.approx(4e12)
    assert held.client_bytes == 50e12
    # A drive is full if nothing is known, and a stated number wins.
    assert system_with().drive_bytes == 8e12
    assert system_with().client_bytes == pytest.approx(32 * 8e12 * 4 / 6)
    stated = system_with("cluster.stored_bytes=50e12", "durability.drive_bytes=1e12")
    assert stated.drive_bytes == 1e12


def test_small_objects_of_a_pool_do_not_slow_the_rebuild_of_others():
    simulated = SMALL.replace('repair_bytes_per_s = "100MB"', "")

    def rate(*sets):
        scenario = parse_scenario(simulated, sets=sets)
        return described_system(scenario, "rep:3").system.repair.bytes_per_s

    # 320 GB in three copies are 30 GB of each OSD, and other pools have 90 GB more there.
    own = "cluster.stored_bytes=320000000000"
    used = f"cluster.used_bytes=[{','.join(['120000000000'] * 32)}]"
    small = "cluster.object_bytes=64KiB"
    own_s = 30e9 / rate(own, small)
    others_s = 90e9 / rate(own, used)
    assert own_s > 30e9 / rate(own)
    assert 120e9 / rate(own, used, small) == pytest.approx(own_s + others_s, rel=0.01)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ((), "a full drive"),
        (("cluster.stored_bytes=50e12",), "cluster.stored_bytes"),
        (("durability.drive_bytes=1e12",), "durability.drive_bytes states"),
        (("durability.drive_bytes=1e12",), "1 TB of its 8 TB"),
        (("durability.drive_bytes=9e12",), "9 TB (more than the 8 TB of"),
        # 32 OSDs of 8 TB share 200 TB × 6 / 4.
        (("cluster.stored_bytes=200TB",), "9.38 TB (more than the 8 TB of"),
    ],
)
def test_each_answer_says_what_a_drive_holds(sets, said):
    scenario = parse_scenario(SMALL, sets=sets)
    (row,) = estimate_durability(scenario, "markov")["rows"]
    assert any(said in line for line in row["assumptions"])


def test_groups_rebuilt_at_a_time_are_counted_or_stated():
    counted = described_system(parse_scenario(SMALL), "rs:4,2")
    count = counted.system.groups_at_once
    assert count == 2
    assert any(
        line.startswith(f"{count} placement groups of a drive are rebuilt at a time")
        and "max_backfills" in line
        for line in counted.notes
    )
    stated = parse_scenario(SMALL, sets=["durability.groups_at_once=8"])
    described = described_system(stated, "rs:4,2")
    assert described.system.groups_at_once == 8
    assert any("durability.groups_at_once states" in line for line in described.notes)
    ratio = described.system.group_transfer_s / counted.system.group_transfer_s
    assert ratio == pytest.approx(8 / 2)
    (many,) = estimate_durability(stated, "splitting", walks=100)["rows"]
    (few,) = estimate_durability(parse_scenario(SMALL), "splitting", walks=100)["rows"]
    assert many["loss_probability"] > 1.5 * few["loss_probability"]


def test_drives_of_several_sizes_are_said_to_count_as_equal():
    # Given hosts of two sizes of drives
    groups = "hosts=[{count=4, drive_bytes='8TB'}, {count=4, drive_bytes='4TB'}]"
    scenario = parse_scenario(SMALL, sets=[f"cluster.{groups}"])
    # When their durability is computed
    (mixed,) = estimate_durability(scenario, "markov")["rows"]
    (equal,) = estimate_durability(parse_scenario(SMALL), "markov")["rows"]
    # Then the answer says what it does with them.
    said = [line for line in mixed["assumptions"] if "4 TB to 8 TB" in line]
    assert len(said) == 1
    assert not any("count as equal" in line for line in equal["assumptions"])


def test_durability_plan_and_page_rebuild_at_the_same_rate():
    # Given a scenario without a rate, and one with
    simulated = SMALL.replace('repair_bytes_per_s = "100MB"', "")
    for text, said in ((simulated, "recovery model simulates"), (SMALL, "100 MB/s")):
        scenario = parse_scenario(text)
        # When the command and the plan answer, the latter with a rebuild that it simulated itself
        rebuild = idle_rebuild(scenario, "rs:4,2", sample_objects=RATE_OBJECTS)
        (row,) = estimate_durability(scenario, "markov")["rows"]
        planned = nines_of(scenario, "rs:4,2", rebuild)
        # Then they agree, and say which rate they took.
        assert row["nines"] == planned["nines"]
        for each in (row, planned):
            assert said in each["rebuild_rate"]
            assert any(each["rebuild_rate"] in line for line in each["assumptions"])


def test_codes_that_read_less_are_rebuilt_faster_than_the_stated_rate():
    # RS(4,2) reads four bytes and writes one. LRC(4,3,2) reads two shards for each lost one of its groups.
    plain = system_with()
    local = system_with(scheme="lrc:4,3,2")
    assert plain.repair.bytes_per_s == 100e6
    assert local.code.repair_reads == 2
    assert local.repair.bytes_per_s == pytest.approx(100e6 * (4 + 1) / (2 + 1))
    # Clay(4,2,5) asks for 2.5 bytes. Its pieces of 1 KiB cost whole blocks of 4 KiB, so five shards are read.
    small = system_with(scheme="clay:4,2,5")
    assert small.repair.bytes_per_s == pytest.approx(100e6 * (4 + 1) / (5 + 1))
    # With a stripe unit of 64 KiB, pieces are whole blocks.
    large = system_with("cluster.stripe_unit_bytes=65536", scheme="clay:4,2,5")
    assert large.repair.bytes_per_s == pytest.approx(100e6 * (4 + 1) / (2.5 + 1))
    # Pools without a cluster follow the plans, too.
    text = CLUSTERED.replace("rs:8,2", "lrc:4,3,2")
    pools = described_system(parse_scenario(text), "lrc:4,3,2").system
    assert pools.repair.bytes_per_s == pytest.approx(100e6 * 5 / 3)


def test_a_history_that_takes_too_long_is_refused(tmp_path, command):
    path = tmp_path / "often.toml"
    burst = '[[durability.bursts]]\nname = "b"\nunit = "drive"\nper_year = 1e9\n'
    path.write_text(CLUSTERED + burst)
    status, _, err = command("durability", path, "--method", "history")
    assert status == 2
    assert states(
        err, "durability: got ... history cannot answer ... wanted one of markov"
    )
