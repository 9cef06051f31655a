"""Placement groups and balancer: what the imbalance costs, what to choose, and what to type."""

from dataclasses import replace

import pytest

from stripesim.models.placement.pg_autoscale import autoscaled_pg_num
from stripesim.scenarios.answers.plan.figure import placement_figure
from stripesim.scenarios.clusters.capacity import capacity_of, pg_choices
from stripesim.scenarios.clusters.cluster import import_cluster
from stripesim.scenarios.clusters.scenario import scenario_of, write_scenario
from stripesim.scenarios.forms.pg_settings import (
    PgChoice,
    PgOption,
    merged_commands,
    pg_choice_of,
)
from stripesim.scenarios.schema.scenario import load_scenario, parse_scenario
from support.reports import OSD_BYTES, report, write_report

TEXT = """
name = "p"
schemes = ["rep:3"]
generation = "quincy"
[cluster]
hosts = {hosts}
osds_per_host = {osds}
pg_num = {pg_num}
cores_per_host = 16
drive_bytes = "1TB"
[workload]
requests = 100
patterns = ["rand"]
"""
TB = 10**12


def option(pg_num, deviation, usable_tb, *, is_present=False):
    usable_bytes = usable_tb * TB
    return PgOption(pg_num, deviation, is_present, 1.2, None, usable_bytes, 0.9)


@pytest.mark.parametrize(
    ("share", "osds", "width", "wanted"),
    [
        # 24 × 100 / 3 = 800, nearer to 1,024 than to 512.
        (1.0, 24, 3, 1024),
        # Half of it: 400, nearer to 512 than to 256.
        (0.5, 24, 3, 512),
        # 8: fewer than the least number.
        (0.01, 24, 3, 32),
    ],
)
def test_the_autoscaler_aims_at_a_hundred_shards_for_each_osd(
    share, osds, width, wanted
):
    assert autoscaled_pg_num(share, osds, width) == wanted


def test_the_fewest_changes_that_give_nearly_all_bytes_are_recommended():
    now = option(64, None, 8, is_present=True)
    default, smallest = option(64, 5, 9.95), option(64, 1, 10)
    more = option(256, 1, 10.02)
    choice = PgChoice("data", 256, [now, default, smallest, more])
    # 99 % of 10.02 TB are 9.92 TB, which the default deviation gives.
    assert choice.recommended is default
    assert choice.commands() == [
        "ceph osd set-require-min-compat-client luminous",
        "ceph balancer mode upmap",
        "ceph config set mgr mgr/balancer/upmap_max_deviation 5",
        "ceph balancer on",
    ]
    assert "9.95 TB (+24 %)" in choice.sentence()


def test_a_rate_that_other_resources_limit_is_not_compared_with_itself():
    now = replace(option(64, None, 8, is_present=True), iops=21_740.0)
    same = replace(option(64, 1, 10), iops=21_740.0)
    more = replace(option(64, 1, 10), iops=30_000.0)

    text = PgChoice("data", 64, [now, same]).sentence()

    assert text.endswith("at most 21,740 requests/s as now.")
    text = PgChoice("data", 64, [now, more]).sentence()
    assert text.endswith("at most 30,000 requests/s instead of 21,740.")


def test_a_number_of_groups_is_set_before_the_balancer():
    now = option(64, None, 8, is_present=True)
    choice = PgChoice("data", 256, [now, option(256, 1, 10)])
    assert choice.commands()[:2] == [
        "ceph osd pool set data pg_autoscale_mode warn",
        "ceph osd pool set data pg_num 256",
    ]


def test_nothing_is_typed_where_no_setting_gives_more():
    now = option(64, 1, 10, is_present=True)
    choice = PgChoice("data", 64, [now, option(64, 5, 9), option(64, None, 8)])
    assert choice.recommended is now
    assert choice.commands() == []
    assert choice.sentence().endswith("No other setting gives 1 % more.")


def test_the_balancer_of_several_pools_has_the_smallest_deviation():
    now = option(64, None, 8, is_present=True)
    choices = [
        PgChoice("a", 64, [now, option(64, 5, 10)]).to_json(),
        PgChoice("b", 64, [now, option(64, 1, 10)]).to_json(),
    ]
    commands = merged_commands(choices)
    assert [line for line in commands if "deviation" in line] == [
        "ceph config set mgr mgr/balancer/upmap_max_deviation 1"
    ]


def test_a_cluster_whose_clients_know_upmaps_needs_no_command_for_it():
    now = option(64, None, 8, is_present=True)
    options = [now, option(64, 5, 10)]
    choice = PgChoice("a", 64, options, allows_upmaps=True)
    assert choice.commands()[0] == "ceph balancer mode upmap"
    assert merged_commands([choice.to_json()]) == choice.commands()


@pytest.mark.parametrize(
    ("oldest", "allows"),
    [
        ("", False),
        ("jewel", False),
        ("luminous", True),
        ("squid", True),
        ("unknown", False),
    ],
)
def test_an_import_knows_whether_clients_know_upmaps(tmp_path, oldest, allows):
    document = report()
    document["osdmap"]["require_min_compat_client"] = oldest
    imported = import_cluster([write_report(tmp_path, document)])
    assert imported.allows_upmaps == allows


def test_three_hosts_with_an_osd_each_cannot_be_uneven():
    scenario = parse_scenario(TEXT.format(hosts=3, osds=1, pg_num=32))
    choice = pg_choice_of(scenario, "rep:3")
    # Each group is on each OSD: 3 TB × 0.95 / 3.
    assert {each.imbalance for each in choice.options} == {1.0}
    assert choice.present.usable_bytes_full == pytest.approx(0.95 * TB)
    assert choice.commands() == []


def test_a_balancer_gives_bytes_and_rate_that_the_imbalance_costs():
    scenario = parse_scenario(TEXT.format(hosts=6, osds=4, pg_num=256))
    choice = pg_choice_of(scenario.with_enough_clients(), "rep:3")
    for each in choice.options:
        even_bytes = 24 * TB * 0.95 / 3
        assert each.usable_bytes_full == pytest.approx(even_bytes / each.imbalance)
        assert each.rate_share == pytest.approx(1 / each.imbalance)
    # 256 × 3 / 24 = 32 shards for each OSD, at most one more with the smallest deviation.
    smallest = next(
        each for each in choice.options if (each.pg_num, each.max_deviation) == (256, 1)
    )
    assert smallest.imbalance <= 33 / 32
    assert smallest.iops > choice.present.iops
    assert choice.recommended.usable_bytes > choice.present.usable_bytes


def test_a_plan_on_a_crush_map_counts_its_osds_that_are_in(tmp_path):
    document = report()
    for osd in range(5):
        document["osdmap"]["osds"][osd] |= {"in": 0, "weight": 0.0}
    cluster = import_cluster([write_report(tmp_path, document)])
    path = tmp_path / "data.toml"
    write_scenario(scenario_of(cluster, cluster.pools[0], "data.crush"), path)
    choice = pg_choice_of(load_scenario(path), "rep:3")
    # 19 of 24 OSDs: 19 × 100 / 3 = 633, nearer to 512 than to 1,024.
    assert choice.autoscaled_pg_num == 512


def test_an_imported_pool_compares_its_placement_with_a_balancer(tmp_path):
    counters = {"num_bytes": 10 * TB}
    cluster = import_cluster([write_report(tmp_path, report(counters=counters))])
    (choice,) = pg_choices(cluster)
    # 24 OSDs: 1,024 groups, sixteen times the 64 of the pool, beyond the factor of 3.
    assert choice.autoscaled_pg_num == 1024
    assert [(each.pg_num, each.max_deviation) for each in choice.options] == [
        (64, None),
        (64, 5),
        (64, 1),
        (1024, 5),
        (1024, 1),
    ]
    smallest = choice.options[2]
    # 64 × 3 / 24 = 8 shards for each OSD, at most one more.
    assert smallest.imbalance <= 9 / 8
    assert smallest.usable_bytes_full == pytest.approx(
        24 * OSD_BYTES * 0.95 / 3 / smallest.imbalance
    )
    figure = placement_figure([choice.to_json()])
    assert len(figure.panels[0].y.names) == 5


def test_groups_that_share_their_osds_are_compared_as_they_are(tmp_path):
    # 8 places for 64 groups: the 24 shards of 8 groups count 8 times each.
    document = report(counters={"num_bytes": 10 * TB})
    document["osdmap"]["pools"][0]["pg_placement_num"] = 8
    cluster = import_cluster([write_report(tmp_path, document)])
    (choice,) = pg_choices(cluster)
    (pool,) = capacity_of(cluster)["pools"]
    assert choice.present.imbalance == pool["imbalance"]
    assert choice.present.usable_bytes_safe == pool["usable_bytes_safe"]


def test_a_pool_without_data_is_not_compared(tmp_path):
    cluster = import_cluster([write_report(tmp_path, report())])
    assert pg_choices(cluster) == []


def test_the_pool_of_the_manager_keeps_its_placement_group(tmp_path):
    document = report(counters={"num_bytes": 50_000_000})
    document["osdmap"]["pools"][0]["pool_name"] = ".mgr"
    cluster = import_cluster([write_report(tmp_path, document)])
    assert pg_choices(cluster) == []
