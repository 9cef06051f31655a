"""Usable capacity follows from scheme, placement and full ratio, and wear from bytes, rate and rating."""

import numpy as np
import pytest

from stripesim.models.drive import (
    DriveCapacity,
    DriveEndurance,
    FillLimits,
    drive_writes_per_day,
)
from stripesim.models.provenance import Provenance
from stripesim.scenarios.cells.build import build_pool
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.forms.capacity import (
    Drives,
    capacity_of,
    drives_of,
    warnings_of,
    wear_of,
)
from stripesim.scenarios.schema.scenario import parse_scenario, scenario_from

TEXT = """
schemes = ["rep:3", "rs:6,3"]
[cluster]
drive = "intel-730"
parameters = "kraken"
hosts = 4
osds_per_host = 6
pg_num = 64
failure_domain_erasure = "osd"
[workload]
requests = 1
"""


def given(*names):
    return {name: Provenance("given", "a test") for name in names}


def drives(drive_bytes=1e12, per_osd=2, rated=365e12, days=365.0):
    return Drives(
        per_osd,
        DriveCapacity(drive_bytes=drive_bytes, provenance=given("drive_bytes")),
        DriveEndurance(
            rated_write_bytes=rated,
            rated_days=days,
            provenance=given("rated_write_bytes", "rated_days"),
        ),
        FillLimits(
            full_ratio=0.9,
            nearfull_ratio=0.8,
            provenance=given("full_ratio", "nearfull_ratio"),
        ),
    )


# One host of small drives, and three of large ones.
UNEVEN = """
schemes = ["rep:3"]
[cluster]
drive = "nvme-tlc"
pg_num = 512
[[cluster.hosts]]
count = 1
osds = 2
drive_bytes = "1TB"
[[cluster.hosts]]
count = 3
osds = 2
drive_bytes = "2TB"
[workload]
requests = 1
"""


@pytest.fixture(scope="module")
def scenario():
    return parse_scenario(TEXT)


@pytest.fixture(scope="module")
def models(scenario):
    return build_models(scenario)


def test_replication_holds_a_third_of_the_raw_capacity_up_to_the_full_ratio(
    scenario, models
):
    held = capacity_of(scenario, "rep:3", models, drives())
    assert held.raw_bytes == 24 * 2 * 1e12
    assert held.stored_per_client_byte == 3
    even = held.raw_bytes * 0.9 / 3
    assert held.usable_bytes_full * held.imbalance == pytest.approx(even)


def test_stripes_pad_the_last_one_of_an_object(scenario, models):
    # 4 MiB are 170.67 stripes of 24 KiB: nine shards of 171 units are stored.
    held = capacity_of(scenario, "rs:6,3", models, drives())
    assert held.stored_per_client_byte == 9 * 171 * 4096 / (4 << 20)
    assert held.failures_tolerated == 3


def test_the_fullest_osd_limits_the_pool(scenario, models):
    from stripesim.models.coding import parse_scheme

    held = capacity_of(scenario, "rep:3", models, drives())
    acting = build_pool(scenario, parse_scheme("rep:3"), models).cluster.acting
    most = np.bincount(acting.ravel()).max()
    # Each group holds a 64th of the data and that OSD a whole copy of `most` of them.
    assert held.usable_bytes_full * most / 64 == pytest.approx(0.9 * 2e12)
    # 64 groups of three copies on 24 OSDs: 8 on the mean OSD.
    assert held.imbalance == pytest.approx(most / 8)


def test_more_placement_groups_and_a_balancer_hold_more(models):
    # Given 170 placement groups on each of 24 OSDs, which CRUSH places like a die: the fullest of 24 OSDs has
    # two deviations of sqrt(170) = 13 more than the mean, about 15 %. Ceph's balancer leaves 5 more, 3 %.
    sets = ["cluster.pg_num=1360", 'schemes=["rep:3"]']
    placed = cluster(*sets)
    balanced = cluster(*sets, "cluster.upmap_max_deviation=5")

    one = capacity_of(placed, "rep:3", models, drives())
    other = capacity_of(balanced, "rep:3", models, drives())

    assert 1.05 < one.imbalance < 1.3
    assert 1.0 < other.imbalance <= 175 / 170
    gain = other.usable_bytes_full / one.usable_bytes_full
    assert gain == pytest.approx(one.imbalance / other.imbalance)
    assert other.usable_bytes_safe > one.usable_bytes_safe


def test_the_safe_capacity_is_that_of_the_placement_after_the_loss():
    # Given four hosts of which the first has drives of half the size, and three copies. Without one of the
    # large hosts, each other one holds a copy of everything: the small one, 2 × 1 TB, limits the pool.
    asked = parse_scenario(UNEVEN)
    models = build_models(asked)

    held = capacity_of(asked, "rep:3", models, drives_of(asked, models))

    # Between all groups spread evenly over its two OSDs, and 20 % more on the fuller one.
    by_hand = 2e12 * 0.85
    assert by_hand / 1.2 < held.usable_bytes_safe <= by_hand
    assert held.spare_domains == 1


@pytest.mark.parametrize("scheme", ["rep:3", "rs:6,3"])
def test_the_steps_end_at_the_usable_capacity(scenario, models, scheme):
    held = capacity_of(scenario, scheme, models, drives())
    left = {step.name: step.left_bytes for step in held.steps}
    assert left["imbalance"] * held.imbalance_after_loss == pytest.approx(
        left["nearfull"]
    )
    assert held.steps[-1].left_bytes == pytest.approx(held.usable_bytes_safe)


def test_an_image_of_padded_objects_fits_less_often():
    # Given stripes of 6 × 1 MiB, into which an object of 4 MiB does not fit evenly: it takes nine units.
    asked = cluster('schemes=["rs:6,3"]', 'cluster.stripe_unit_bytes="1MiB"')
    held = capacity_of(asked, "rs:6,3", build_models(asked), drives())
    even_bytes = held.raw_bytes * 0.9 / (9 / 4)
    assert held.usable_bytes_full * held.imbalance == pytest.approx(even_bytes)


def test_an_unknown_drive_leaves_shares_alone(scenario, models):
    held = capacity_of(scenario, "rep:3", models, Drives(1, None, None, None))
    assert (held.raw_bytes, held.usable_bytes_full, held.usable_bytes_safe) == (
        None,
        None,
        None,
    )
    assert held.stored_per_client_byte == 3


def test_drives_come_from_the_parameter_set_unless_the_scenario_gives_them(
    scenario, models
):
    found = drives_of(scenario, models)
    assert found.capacity.drive_bytes == 480e9
    assert found.endurance.rated_write_bytes == 127.75e12
    assert {row["name"] for row in found.parameters()} >= {
        "drive.drive_bytes",
        "fill.full_ratio",
    }
    other = parse_scenario(TEXT.replace("pg_num", 'drive_bytes = "1TB"\npg_num'))
    assert drives_of(other, models).capacity.drive_bytes == 1e12
    # A rating belongs to a capacity: another drive has another one.
    assert drives_of(other, models).endurance is None
    rated = parse_scenario(
        TEXT.replace(
            "pg_num", 'drive_bytes = "1TB"\ndrive_rated_write_bytes = "600TB"\npg_num'
        )
    )
    assert drives_of(rated, models).endurance.drive_writes_per_day(
        1e12
    ) == pytest.approx(600 / 1825)


def test_a_set_without_capacity_or_rating_gives_none(models):
    loop = parse_scenario(
        TEXT.replace(
            'drive = "intel-730"\nparameters = "kraken"',
            'drive = "pacific"\nparameters = "pacific"',
        )
    )
    found = drives_of(loop, models)
    assert (found.capacity, found.endurance, found.osd_bytes) == (None, None, None)


def test_wear_spreads_the_writes_over_all_drives():
    row = {"device_write_bytes_per_client_byte": 3.0, "throughput_bytes_per_s": 40e6}
    wear = wear_of(row, 6, drives(drive_bytes=864e9, per_osd=2))
    assert wear.drive_write_bytes_per_s == 10e6
    assert wear.drive_writes_per_day == pytest.approx(1.0)
    assert wear.rated_drive_writes_per_day == pytest.approx(1e12 / 864e9)
    assert wear.life_years == pytest.approx(365e12 / 864e9 / 365.25)


def test_without_writes_there_is_no_wear():
    row = {"device_write_bytes_per_client_byte": 0.0, "throughput_bytes_per_s": 1e6}
    assert wear_of(row, 6, drives()) is None
    assert wear_of({}, 6, drives()) is None


def test_without_a_rating_wear_is_bytes_alone():
    row = {"device_write_bytes_per_client_byte": 2.0, "throughput_bytes_per_s": 1e6}
    wear = wear_of(row, 1, Drives(1, None, None, None))
    assert wear.drive_write_bytes_per_s == 2e6
    assert (
        wear.drive_writes_per_day,
        wear.rated_drive_writes_per_day,
        wear.life_years,
    ) == (None, None, None)


def test_a_full_ratio_below_the_nearfull_one_is_refused():
    with pytest.raises(ValueError, match=r"full_ratio: got 0.8.*0.9.*1\b"):
        FillLimits(
            full_ratio=0.8,
            nearfull_ratio=0.9,
            provenance=given("full_ratio", "nearfull_ratio"),
        )


def test_one_capacity_a_day_is_one_drive_write():
    assert drive_writes_per_day(1e12 / 86400, 1e12) == pytest.approx(1.0)


def cluster(*sets):
    return parse_scenario(TEXT, sets=list(sets))


@pytest.mark.parametrize(("scheme", "overhead"), [("rep:3", 3), ("rs:4,2", 1.5)])
def test_full_and_safe_capacity_follow_from_ratios_domains_and_overhead(
    scheme, overhead
):
    asked = cluster(
        f'schemes=["{scheme}"]', "cluster.hosts=12", "cluster.osds_per_host=10", 'cluster.drive="nvme-tlc"',
        'cluster.failure_domain_erasure="host"', "cluster.drive_bytes=7.68TB",
    )  # fmt: skip
    models = build_models(asked)
    held = capacity_of(asked, scheme, models, drives_of(asked, models))
    raw = 12 * 10 * 7.68e12
    assert held.raw_bytes == raw
    # As full as the fullest OSD allows: the mean OSD holds less.
    full = raw * 0.95 / overhead
    safe = raw * (1 - 1 / 12) * 0.85 / overhead
    assert held.usable_bytes_full == pytest.approx(full / held.imbalance)
    assert held.usable_bytes_safe == pytest.approx(safe / held.imbalance_after_loss)
    assert held.steps[0].name == "raw"
    assert held.steps[-1].left_bytes <= held.usable_bytes_safe


def test_an_osd_has_one_drive_unless_the_set_states_more():
    assert build_models(cluster()).ssd.raid0_drives == 1
    assert (
        build_models(cluster('cluster.drive="intel-730-raid0"')).ssd.raid0_drives == 2
    )


@pytest.mark.parametrize(
    "name", ["nvme-tlc", "nvme-qlc", "sata-tlc", "hdd-7200", "hdd-7200-nvme-db"]
)
def test_a_device_preset_gives_time_and_capacity(name):
    asked = cluster(f'cluster.drive="{name}"')
    models = build_models(asked)
    assert models.ssd.raid0_drives == 1
    assert drives_of(asked, models).osd_bytes > 1e12
    assert models.ssd.read_ns(4096) > 0


def test_a_log_on_a_drive_makes_commits_fast_and_leaves_reads_alone():
    disk, with_log = (
        build_models(cluster(f'cluster.drive="{n}"')).ssd
        for n in ("hdd-7200", "hdd-7200-nvme-db")
    )
    assert with_log.read_ns(4096) == disk.read_ns(4096)
    assert with_log.sync_ns(4096) < disk.sync_ns(4096) / 50


def test_an_image_larger_than_the_pool_is_refused():
    # Given 24 OSDs of 1 GB in three copies: 7.6 GB at the full ratio of 0.95, if all were equally full.
    asked = cluster("cluster.drive_bytes=1GB", "workload.image_bytes=10GB")
    held = capacity_of(
        asked, "rep:3", build_models(asked), drives_of(asked, build_models(asked))
    )
    assert held.usable_bytes_full == pytest.approx(7.6e9 / held.imbalance)
    limit = f"{held.usable_bytes_full / 1e9:.3g}"
    with pytest.raises(
        ValueError,
        match=rf"image_bytes: got 10 GB of images.*{limit} GB.*rep:3",
    ):
        warnings_of(asked, build_models(asked))


def test_a_pool_without_a_spare_domain_is_warned_of():
    asked = cluster('schemes=["rep:3"]', "cluster.hosts=3")
    assert "no spare host" in warnings_of(asked, build_models(asked))[0]
    assert warnings_of(cluster('schemes=["rep:3"]'), build_models(cluster())) == []


def test_holes_are_on_no_host():
    # CRUSH seldom takes the small OSD, the only one of its host, so that most groups have a hole.
    sizes = ((5, "4TB"), (1, "20GB"))
    hosts = [{"count": 1, "osds": n, "drive_bytes": size} for n, size in sizes]
    keys = {"hosts": hosts, "failure_domain_erasure": "osd", "pg_num": 64}
    load = {"requests": 1, "image_bytes": "1GiB"}
    asked = scenario_from({"schemes": ["rs:4,2"], "cluster": keys, "workload": load})
    lines = warnings_of(asked, build_models(asked))
    assert any("a host holds up to 5 of the 6 shards" in line for line in lines)


def test_a_pool_without_a_spare_zone_is_warned_of_zones(tmp_path):
    # Three zones of two hosts each; the rule takes one OSD in each zone.
    (tmp_path / "zones.txt").write_text(zones_map(zones=3, hosts=2))
    asked = scenario_from(
        {
            "schemes": ["rep:3"],
            "cluster": {"crush_map": "zones.txt", "crush_rule": "zones"},
            "workload": {"requests": 1},
        },
        base_dir=tmp_path,
    )
    (line,) = warnings_of(asked, build_models(asked))
    assert "no spare zone: 3 for 3 shards" in line


def zones_map(*, zones: int, hosts: int) -> str:
    """Write a CRUSH map of zones of hosts with one OSD each."""
    lines = [f"device {osd} osd.{osd}" for osd in range(zones * hosts)]
    lines += ["type 0 osd", "type 1 host", "type 2 zone", "type 3 root"]
    for osd in range(zones * hosts):
        lines.append(bucket("host", f"host{osd}", -10 - osd, [f"osd.{osd}"]))
    for zone in range(zones):
        members = [f"host{zone * hosts + host}" for host in range(hosts)]
        lines.append(bucket("zone", f"zone{zone}", -100 - zone, members))
    lines.append(bucket("root", "default", -1, [f"zone{z}" for z in range(zones)]))
    steps = ["take default", "chooseleaf firstn 0 type zone", "emit"]
    rule = ["id 0", "type replicated", *(f"step {step}" for step in steps)]
    lines += ["rule zones {", *rule, "}"]
    return "\n".join(lines) + "\n"


def bucket(kind: str, name: str, number: int, members: list[str]) -> str:
    items = [f"item {member} weight 1.0" for member in members]
    return "\n".join([f"{kind} {name} {{", f"id {number}", "alg straw2", *items, "}"])


def test_ids_that_no_osd_has_hold_nothing(tmp_path, models):
    from stripesim.models.placement import build_map, map_to_text

    text = map_to_text(build_map(hosts=4, osds_per_host=3))
    # OSD 11 gets the number 1000, as after many removals.
    text = text.replace("device 11 osd.11", "device 1000 osd.1000").replace(
        "item osd.11 ", "item osd.1000 "
    )
    (tmp_path / "m.txt").write_text(text)
    gaps = parse_scenario(
        TEXT.replace(
            "hosts = 4\nosds_per_host = 6", f'crush_map = "{tmp_path}/m.txt"'
        ).replace('"rs:6,3"', '"rs:2,1"')
    )
    held = capacity_of(gaps, "rep:3", build_models(gaps), drives())
    assert held.osds == 12 and held.raw_bytes == 12 * 2 * 1e12


@pytest.mark.parametrize(
    ("hosts", "osds_per_host", "domain", "told"),
    [
        # Four hosts of two OSDs: two of six shards are on one, and four are fewer than the five of min_size.
        (4, 2, "osd", "up to 2 of the 6 shards of an object. Without that host"),
        (4, 6, "osd", "The loss of a host loses data: 2 may be lost"),
        # Some of 4,096 groups would have two shards on a host if any had.
        (12, 1, "osd", None),
        (8, 6, "host", None),
    ],
)
def test_a_host_that_holds_more_shards_than_can_be_missing_is_told(
    hosts, osds_per_host, domain, told
):
    asked = parse_scenario(
        f'schemes = ["rs:4,2"]\n[cluster]\nhosts = {hosts}\nosds_per_host = {osds_per_host}\n'
        f'pg_num = 256\nfailure_domain_erasure = "{domain}"\n[workload]\nrequests = 10\n'
    )
    warnings = warnings_of(asked, build_models(asked))
    found = [line for line in warnings if "a host holds" in line]
    assert [told in line for line in found] == ([True] if told else [])


@pytest.mark.parametrize(("hosts", "spare"), [(3, 0), (4, 1)])
def test_three_copies_are_safe_up_to_nearfull_with_a_host_gone(hosts, spare):
    """Three hosts of 8 TB keep two copies, each whole. Four have three copies on the three that are left."""
    asked = cluster(
        'schemes=["rep:3"]', f"cluster.hosts={hosts}", "cluster.osds_per_host=1", "cluster.drive_bytes=8TB",
        "cluster.parameters=pacific", 'cluster.drive="nvme-tlc"', "cluster.upmap_max_deviation=1",
    )  # fmt: skip
    models = build_models(asked)
    held = capacity_of(asked, "rep:3", models, drives_of(asked, models))
    assert held.spare_domains == spare
    assert held.usable_bytes_safe == pytest.approx(0.85 * 8e12, rel=0.02)
    assert held.steps[-1].left_bytes == pytest.approx(held.usable_bytes_safe)


@pytest.mark.parametrize(
    ("keys", "warned"),
    [
        ("[[faults.events]]\nosds = [1]\nat_s = 0.1\n", True),
        ("[repair]\nlost_osds = [1]\n", True),
        ("", False),
    ],
)
def test_a_recovery_says_what_other_pools_hold(keys, warned):
    # Given 8 OSDs of 30 GB each, 240 GB, of which a pool of 40 GB holds 120 GB under three copies
    text = (
        'schemes = ["rep:3"]\n[cluster]\nhosts = 4\nosds_per_host = 2\npg_num = 32\nstored_bytes = "40GB"\n'
        f"used_bytes = [{', '.join(['30000000000'] * 8)}]\n"
        f'[workload]\nduration_s = 1.0\nimage_bytes = "1GB"\n{keys}'
    )
    scenario = parse_scenario(text)
    lines = warnings_of(scenario, build_models(scenario))
    named = [line for line in lines if "other pools" in line]
    assert bool(named) == warned
    # Then twice as much moves as is simulated.
    assert all("240 GB" in line and "about 2 times" in line for line in named)
