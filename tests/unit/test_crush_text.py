"""Reading and writing CRUSH maps: accepted maps, and every problem reported with its line."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from stripesim.models.placement import (
    NONE,
    BucketArgs,
    Rule,
    Step,
    StepOp,
    Tunables,
    build_map,
    load_map,
    map_to_text,
    parse_map,
)
from stripesim.models.problems import ProblemsError
from support.messages import states

SOUND = """\
# begin crush map
tunable choose_local_tries 0
tunable choose_local_fallback_tries 0
tunable choose_total_tries 50
tunable chooseleaf_descend_once 1
tunable chooseleaf_vary_r 1
tunable chooseleaf_stable 1
device 0 osd.0 class ssd
device 1 osd.1 class hdd
type 0 osd
type 1 host
type 2 root
host h0 {
  id -1
  id -3 class ssd
  alg straw2
  hash 0  # rjenkins1
  item osd.0 weight 1.000
  item osd.1 weight 2.000
}
root top {
  id -2
  alg straw2
  hash 0
  item h0 weight 3.000
}
rule fast {
  id 0
  type replicated
  step take top class ssd
  step choose firstn 0 type osd
  step emit
}
"""


def line_of(text, part):
    return next(n for n, line in enumerate(text.splitlines(), start=1) if part in line)


def problems(text):
    with pytest.raises(ProblemsError) as caught:
        parse_map(text, source="m.txt")
    return caught.value.faults


def test_a_class_is_taken_through_its_shadow():
    crush = parse_map(SOUND)
    assert {b.name: b.id for b in crush.buckets} == {
        "h0": -1, "top": -2, "h0~ssd": -3, "top~ssd": -4, "h0~hdd": -5, "top~hdd": -6
    }  # fmt: skip
    assert {b.name: b.weights for b in crush.buckets}["top~hdd"] == (2 << 16,)
    assert crush.mappings("fast", range(20), 2) == [[0]] * 20


def test_shadow_ids_that_the_text_leaves_open_are_those_crushtool_gives():
    # crushtool 16.2.15 -c, then -d, on the map of `SOUND` without its shadow id.
    text = SOUND.replace("  id -3 class ssd\n", "")
    assert {
        b.name: b.id for b in parse_map(text).buckets if "~" in b.name
    } == SHADOWS_BY_CRUSHTOOL


SHADOWS_BY_CRUSHTOOL = {"h0~ssd": -3, "top~ssd": -4, "h0~hdd": -5, "top~hdd": -6}


def test_tunables_not_named_are_the_legacy_ones():
    text = re.sub(r"tunable .*\n", "", SOUND)
    assert (
        parse_map(text).tunables == Tunables.legacy() == Tunables(2, 5, 19, 0, 0, 0, 0)
    )


def test_weights_go_through_a_32_bit_float_and_are_cut_off():
    # crushtool 16.2.15 compiles 7.27899 to 477035 and 0.1 to 6553.
    text = SOUND.replace("weight 1.000", "weight 7.27899").replace(
        "weight 2.000", "weight 0.1"
    )
    assert parse_map(text).buckets[0].weights == (477035, 6553)


@pytest.mark.parametrize(
    ("old", "new", "got", "wanted"),
    [
        ("item osd.1 weight", "item osd.9 weight", "unknown item 'osd.9' in bucket 'h0'", "device or bucket"),
        ("item h0 weight", "item h7 weight", "unknown item 'h7' in bucket 'top'", "device or bucket"),
        ("take top class ssd", "take toop", "unknown item 'toop'", "bucket or device"),
        ("take top class ssd", "take top class nvme", "unknown device class 'nvme'", "class"),
        ("weight 2.000", "weight heavy", "weight 'heavy'", "number from 0"),
        ("weight 2.000", "weight -2", "weight '-2'", "number from 0"),
        ("weight 2.000", "weight nan", "weight 'nan'", "number from 0"),
        ("weight 2.000", "weight 100.5", "weight 100.5 of device", "at most 100"),
        ("device 1 osd.1", "device 0 osd.1", "duplicate device id 0", "line 8"),
        ("device 1 osd.1", "device 1 osd.0", "duplicate item name osd.0", "line 8"),
        ("  id -2", "  id -01", "duplicate bucket id -1", "line 14"),
        ("  id -3 class ssd", "  id -1 class ssd", "duplicate bucket id -1", "line 14"),
        ("  id -2", "  id 2", "bucket id '2'", "from -1000000 to -1"),
        ("host h0 {", "hosst h0 {", "unknown type 'hosst'", "one of host, root"),
        ("host h0 {", "osd h0 {", "type 'osd'", "above 0"),
        ("firstn 0 type osd", "firstn 0 type disk", "unknown type 'disk'", "one of osd, host, root"),
        ("type 2 root", "type 1 root", "duplicate type id 1", "line 11"),
        ("  item osd.1 weight 2.000", "  item osd.0 weight 2", "item 'osd.0' twice", "once"),
        ("  item osd.1 weight 2.000", "  item h0 weight 2", "a cycle", "without cycles"),
        ("tunable choose_total_tries 50", "tunable choose_total_tries many", "'many'", "whole number"),
        ("tunable choose_total_tries 50", "tunable choose_tries 50", "unknown tunable", "choose_total_tries"),
        ("step emit", "step emitt", "step 'emitt'", "'emit'"),
        ("type replicated", "type striped", "'type striped' in rule 'fast'", "replicated|erasure"),
        ("device 1 osd.1 class hdd", "devise 1 osd.1", "'devise 1 osd.1'", "device N NAME"),
        ("device 1 osd.1 class hdd", "device 4000000000 osd.1", "device id '4000000000'", "to 1000000"),
    ],
)  # fmt: skip
def test_each_problem_names_its_line(old, new, got, wanted):
    text = SOUND.replace(old, new)
    assert text != SOUND
    expected = f"m.txt:{line_of(text, new)}: got "
    matching = [fault for fault in problems(text) if fault.startswith(expected)]
    assert any(
        got in fault.split(", wanted ")[0] and wanted in fault.split(", wanted ")[1]
        for fault in matching
    )


def test_other_bucket_algorithms_are_refused():
    (problem,) = problems(SOUND.replace("straw2", "straw3", 1))
    assert states(problem, "m.txt:16: got ... 'straw3' ... straw2")


def test_a_cycle_through_several_buckets_is_reported_once():
    (problem,) = problems(SOUND.replace("item osd.1 weight 2.000", "item top weight 2"))
    assert states(problem, "m.txt:25: got ... cycle ... 'top' ... 'h0'")


def test_a_missing_brace_is_reported():
    assert problems(SOUND.rstrip().removesuffix("}"))


ARGS = """choose_args 0 {
  {
    bucket_id -1
    weight_set [
      [ 1.000 0.000 ]
      [ 0.000 2.000 ]
    ]
    ids [ 7 -9 ]
  }
}
"""


def test_weight_sets_are_read_and_written():
    crush = parse_map(SOUND + ARGS)
    change = BucketArgs(-1, ((1 << 16, 0), (0, 2 << 16)), (7, -9))
    assert crush.choose_args == ((0, (change,)),)
    assert parse_map(map_to_text(crush)) == crush
    # The first replica may only be OSD 0, the second only OSD 1. Only pool 0 has weight sets.
    fast = Rule(
        1,
        "any",
        "replicated",
        (Step(StepOp.TAKE, -1), Step(StepOp.CHOOSE_FIRSTN, 0, 0), Step(StepOp.EMIT)),
    )
    crush = replace(crush, rules=(fast,))
    assert crush.mappings("any", range(50), 2) == [[0, 1]] * 50
    assert (
        len(set(map(tuple, crush.map_many("any", range(50), 2, pool=1).tolist()))) == 2
    )


@pytest.mark.parametrize(
    ("old", "new", "got", "wanted"),
    [
        ("bucket_id -1", "bucket_id -7", "bucket_id -7", "bucket"),
        ("    bucket_id -1\n", "", "choose_args without a bucket", "bucket_id N"),
        (
            "[ 1.000 0.000 ]",
            "[ 1.000 ]",
            "1 numbers for bucket 'h0'",
            "2, one for each",
        ),
        ("ids [ 7 -9 ]", "ids [ 7 ]", "1 numbers for bucket 'h0'", "2, one for each"),
        ("0.000 2.000", "0.000 much", "weight 'much'", "a number"),
        ("choose_args 0", "choose_args x", "choose_args id 'x'", "whole number"),
    ],
)
def test_weight_sets_that_do_not_fit_are_reported(old, new, got, wanted):
    assert old in ARGS
    assert any(
        got in p and wanted in p for p in problems(SOUND + ARGS.replace(old, new))
    )


@pytest.mark.parametrize(
    "tunable",
    ["choose_total_tries", "choose_local_tries", "choose_local_fallback_tries"],
)
def test_tries_without_end_are_refused(tunable, monkeypatch):
    from stripesim.models.placement.crush import flat

    monkeypatch.setattr(flat, "_BUDGET", 1_000_000)
    crush = build_map(hosts=2, osds_per_host=2)
    crush = replace(crush, tunables=replace(crush.tunables, **{tunable: 2**31 - 1}))
    with pytest.raises(ProblemsError, match=r"rule 'rep': got .*x = 5"):
        crush.mappings("rep", [5], 3)


MSR = """rule msr {
  id 1
  type msr_indep
  step set_msr_descents 20
  step take top
  step choosemsr 1 type host
  step choosemsr 2 type osd
  step emit
}
"""


def test_msr_rules_are_read_and_written():
    crush = parse_map(SOUND + MSR)
    assert parse_map(map_to_text(crush)) == crush
    assert {tuple(sorted(row)) for row in crush.mappings("msr", range(20), 2)} == {
        (0, 1)
    }
    assert {tuple(row) for row in crush.mappings("msr", range(20), 2, {0: 0})} == {
        (NONE, 1),
        (1, NONE),
    }


@pytest.mark.parametrize(
    "line", ["  step take top\n", "  step emit\n", "  step choosemsr 2 type osd\n"]
)
def test_msr_rules_of_another_form_are_refused(line):
    crush = parse_map(SOUND + MSR.replace(line, ""))
    with pytest.raises(ProblemsError, match="rule 'msr': got steps"):
        crush.mappings("msr", range(4), 2)


def test_all_faults_are_reported_together_in_line_order():
    text = (
        SOUND.replace("weight 2.000", "weight x")
        .replace("device 1 ", "device 0 ")
        .replace("take top", "take no")
    )
    found = problems(text)
    assert [int(fault.split(":")[1]) for fault in found] == [9, 19, 30]


def test_the_error_can_be_rebuilt_from_its_arguments():
    with pytest.raises(ProblemsError) as caught:
        parse_map("nonsense", source="m.txt")
    assert str(ProblemsError(*caught.value.args)) == str(caught.value)


def test_files_that_cannot_be_read_are_reported(tmp_path):
    with pytest.raises(ProblemsError, match=r"none\.txt: got No such file"):
        load_map(tmp_path / "none.txt")
    (tmp_path / "compiled").write_bytes(b"\x00\x00\x01\x00\xff\xfe")
    with pytest.raises(ProblemsError, match="crushtool -d"):
        load_map(tmp_path / "compiled")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none", [0], 3), r"got 'none'.*0 \(rep\)"),
        (("rep", [0], 0), "num_rep: got 0"),
        (("rep", [0.5], 3), "xs: got .*float64"),
        (("rep", [2**32], 3), "xs: got 4294967296"),
        (("rep", [0], 3, {99: 0.5}), "got OSD 99"),
        (("rep", [0], 3, {1: 1.5}), "got 1.5 for OSD 1"),
        (("rep", [0], 3, {1: float("nan")}), "got nan for OSD 1"),
        (("rep", [0], 3, [1.0, 0.5]), "got 2 values.*24"),
    ],
)
def test_bad_questions_are_refused(arguments, message):
    with pytest.raises(ProblemsError, match=message):
        build_map(hosts=4, osds_per_host=6).map_many(*arguments)


def test_maps_that_cannot_be_built_are_refused():
    for bad in ({"hosts": 0}, {"osds_per_host": -1}, {"racks": 3}, {"hosts": 10**6}):
        with pytest.raises(ProblemsError, match=r"got .*, wanted"):
            build_map(**{"hosts": 4, "osds_per_host": 6} | bad)


def test_domains_of_a_map_are_found_once(monkeypatch):
    crush = build_map(hosts=4, osds_per_host=6)
    hosts = crush.domains("host")
    assert sorted(hosts) == list(range(24))
    assert len(set(hosts.values())) == 4
    assert crush.domains("nosuch") == {}
    monkeypatch.setattr(type(crush), "osds_below", None)
    assert crush.domains("host") == hosts


def test_racks_are_failure_domains():
    crush = build_map(hosts=6, osds_per_host=2, racks=3)
    assert [rule.name for rule in crush.rules] == [
        "rep",
        "rep_osd",
        "ec",
        "ec_osd",
        "rep_rack",
        "ec_rack",
    ]
    for row in crush.mappings("ec_rack", range(200), 3):
        assert sorted(osd // 4 for osd in row) == [0, 1, 2]


def test_two_trees_with_the_same_hosts_may_put_two_shards_into_one():
    """One copy goes to an SSD of any host, two to disks of different hosts."""
    classes = ["ssd", "hdd"] * 3
    text = "".join(
        f"device {osd} osd.{osd} class {name}\n" for osd, name in enumerate(classes)
    )
    text += "type 0 osd\ntype 1 host\ntype 2 root\n"
    for host in range(3):
        items = f" item osd.{2 * host} weight 1\n item osd.{2 * host + 1} weight 1\n"
        text += f"host h{host} {{\n id -{host + 1}\n alg straw2\n{items}}}\n"
    hosts = "".join(f" item h{host} weight 2\n" for host in range(3))
    text += f"root top {{\n id -10\n alg straw2\n{hosts}}}\n"
    text += "rule mixed {\n id 0\n type replicated\n"
    text += (
        " step take top class ssd\n step chooseleaf firstn 1 type host\n step emit\n"
    )
    text += " step take top class hdd\n step chooseleaf firstn -1 type host\n step emit\n}\n"
    text += "rule sites {\n id 1\n type replicated\n"
    text += " step take h0\n step choose firstn 1 type osd\n step emit\n"
    text += " step take h1\n step choose firstn 1 type osd\n step emit\n}\n"
    crush = parse_map(text)
    hosts_of_rows = [
        {osd // 2 for osd in row} for row in crush.mappings("mixed", range(64), 3)
    ]
    # By chance a third of the SSDs would be in the one host without a disk of the group.
    assert min(map(len, hosts_of_rows)) == 2
    assert crush.failure_domain("mixed") == "osd"
    assert crush.failure_domain("sites") == "osd"
    # Ceph's balancer counts both trees alike: 3 SSDs have a third each, as have 3 disks.
    assert crush.shares_of_rule("mixed") == pytest.approx(
        dict.fromkeys(range(6), 1 / 3)
    )
    trees = crush.trees_of_rule("mixed")
    assert trees[0] == trees[2] == trees[4] != trees[1] == trees[3] == trees[5]


def test_buckets_in_several_parents_are_visited_once():
    levels = 40
    text = (
        SOUND.split("host h0", maxsplit=1)[0]
        + "host b0 {\n id -1\n alg straw2\n item osd.0 weight 1\n}\n"
    )
    for n in range(1, levels):
        # Two buckets a level, each holding both of the level below: 2**40 ways from the top to the bottom.
        below = [f"b{n - 1}"] if n == 1 else [f"b{n - 1}", f"c{n - 1}"]
        items = "".join(f" item {name} weight 1\n" for name in below)
        text += f"root b{n} {{\n id {-2 * n}\n alg straw2\n{items}}}\n"
        text += f"root c{n} {{\n id {-2 * n - 1}\n alg straw2\n{items}}}\n"
    text += f"rule r {{\n id 0\n type replicated\n step take b{levels - 1} class ssd\n"
    text += " step choose firstn 0 type osd\n step emit\n}\n"
    crush = parse_map(text)
    assert len(crush.buckets) == 3 * (2 * levels - 1)
    assert crush.mappings("r", range(4), 1) == [[0]] * 4


def test_a_byte_order_mark_is_skipped(tmp_path):
    (tmp_path / "m.txt").write_bytes(b"\xef\xbb\xbf" + SOUND.encode())
    assert load_map(tmp_path / "m.txt") == parse_map(SOUND)


def test_importing_the_package_does_not_load_numba():
    code = "import sys, stripesim.models.placement; print({'numba'} & set(sys.modules))"
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "set()"
