"""The five-step write by hand: each cost term alone, waits between requests, and both engines."""

from dataclasses import replace

import pytest

from stripesim.models.problems import ProblemsError
from stripesim.models.provenance import Provenance
from stripesim.sim.systems.striped_fs.costs import (
    SlaveDiskModel,
    StripedWriteModel,
    VolumeGeometry,
)
from stripesim.sim.systems.striped_fs.participants import FileStream, StripedSystem
from stripesim.sim.systems.striped_fs.write import (
    STEPS,
    record_template,
    step_times,
    write_files,
)

NUMBERS = {
    "client_base_ns": 10_000.0,
    "client_growth_exponent": 0.5,
    "client_rate_exponent": 1.0,
    "client_rate_max_bits_per_s": 4e9,
    "mds_round_trip_ns": 100_000.0,
    "mds_round_trips_per_chunk_set": 3.0,
    "master_record_ns": 1_000.0,
    "master_stripe_ns": 500.0,
    "master_stripe_uncached_ns": 900.0,
    "parity_record_ns": 200.0,
    "parity_stripe_ns": 300.0,
    "parity_stripe_uncached_ns": 400.0,
    "cache_bytes": 81_920.0,
    "distribution_record_ns": 50_000.0,
    "network_efficiency_fraction": 0.5,
    "slave_base_ns": 4_000.0,
    "slave_growth_exponent": 0.5,
    "message_header_bytes": 0.0,
    "cores_count": 8.0,
}
GEOMETRY = VolumeGeometry(k=4, m=2)
# A frame of 1,448 bytes takes 1,538 on the wire. At 1 Gb/s and efficiency 0.5, a byte takes 16 ns.
NS_PER_WIRE_BYTE = 16.0


def model(**changed):
    numbers = NUMBERS | changed
    return StripedWriteModel(
        **numbers, provenance={n: Provenance("assumed", "by hand") for n in numbers}
    )


def hdd(**changed):
    numbers = {
        "rate_bytes_per_s": 1e8,
        "positioning_ns": 10e6,
        "burst_bytes": 1 << 20,
        "dirty_bytes": 1 << 30,
        "disks_count": 2,
    } | changed
    return SlaveDiskModel(
        **numbers, provenance={n: Provenance("assumed", "by hand") for n in numbers}
    )


def system(gbit_per_s=1.0, **changed):
    given = {"model": model(), "geometry": GEOMETRY} | changed
    return StripedSystem(network_bits_per_s=gbit_per_s * 1e9, **given)


def wire_ns(size_bytes):
    frames = -(-size_bytes // 1448)
    return (size_bytes + 90 * frames) * NS_PER_WIRE_BYTE


def test_each_step_of_a_record_of_four_stripes_by_hand():
    (times,) = step_times(system(), [16384])
    answer_ns = 90 * 8  # an empty frame at the line's rate
    assert times["client"] == pytest.approx(
        20_000 + 2 * answer_ns + 300_000 / (16 * 1024), abs=2
    )
    assert times["master"] == 1_000 + 4 * 500
    assert times["parity"] == 200 + 4 * 300
    assert times["slave"] == 8_000
    last_frame_ns = wire_ns(1448)
    by_hand_ns = 50_000 + 5 * wire_ns(4096) + last_frame_ns + 2 * answer_ns
    assert times["distribution"] == pytest.approx(by_hand_ns, abs=10)


def test_steps_sum_to_the_time_of_a_record_in_a_run():
    here = system(10.0)
    (times,) = step_times(here, [65536])
    run = write_files(here, [FileStream()], record_bytes=65536, records=4096)
    # A chunk set of 64 MiB holds 4,096 records of 16 KiB on each server, so one allocation falls to each.
    assert run.latency_mean_ns == pytest.approx(sum(times.values()), abs=1)


def test_slope_changes_where_record_copy_and_parity_fill_the_cache():
    # 80 KiB over blocks of 1 KiB times 2 k + m = 10: eight stripes.
    assert model().knee_stripes(GEOMETRY) == 8
    assert model().master_ns(GEOMETRY, 16 * 4096) == 1_000 + 8 * 500 + 8 * 900
    assert model().parity_ns(GEOMETRY, 16 * 4096) == 200 + 8 * 300 + 8 * 400


def test_client_time_grows_with_the_rate_up_to_the_fastest_calibrated():
    listed = [model().client_ns(4096, rate) for rate in (1e9, 2e9, 4e9, 8e9)]
    assert listed == [10_000, 20_000, 40_000, 40_000]


def test_parity_of_another_code_and_of_none():
    assert model().parity_ns(GEOMETRY, 4096, kernel_factor=3) == 3 * 500
    (times,) = step_times(system(kernel_factor=0.0), [16384])
    assert times["parity"] == 0
    with pytest.raises(ValueError, match="kernel_factor"):
        model().parity_ns(GEOMETRY, 4096, kernel_factor=-1)


def test_parity_scales_with_parities_and_stripe():
    wide = VolumeGeometry(k=8, m=4)
    one = model(parity_record_ns=0.0)
    # A stripe of twice the data with twice the parities.
    assert one.parity_ns(wide, 8192) == 4 * one.parity_ns(GEOMETRY, 4096)


@pytest.mark.parametrize("place", ["master", "client"])
def test_engines_agree(place):
    here = system(10.0, encode_at=place, clients=2, hdd=hdd())
    files = [FileStream(0, 0), FileStream(0, 1), FileStream(1, 0), FileStream(1, 5)]
    runs = [
        write_files(here, files, record_bytes=20_000, records=40, engine=engine)
        for engine in ("compiled", "simpy")
    ]
    assert runs[0].sha256 == runs[1].sha256
    assert runs[0].utilisation == runs[1].utilisation


def test_transfer_hides_behind_distribution_only_under_write_back():
    ahead, after = (
        step_times(system(write_back=hidden), [65536])[0] for hidden in (True, False)
    )
    assert after["client"] - ahead["client"] == pytest.approx(
        wire_ns(65536) + wire_ns(1448), abs=10
    )
    assert {s: ahead[s] for s in STEPS if s != "client"} == {
        s: after[s] for s in STEPS if s != "client"
    }


def test_a_transfer_longer_than_the_servers_work_shows_as_client_overhead():
    # With one block for each of sixteen, a slave's part is small and the record is what takes long.
    lone = replace(GEOMETRY, k=16, m=1)
    quick = system(
        geometry=lone,
        servers=17,
        model=model(distribution_record_ns=0.0, slave_base_ns=0.0),
    )
    (times,) = step_times(quick, [1 << 20])
    assert sum(times.values()) >= wire_ns(1 << 20)


def test_client_encoding_sends_all_blocks_and_masters_encoding_one_record():
    at = {
        place: write_files(
            system(10.0, encode_at=place),
            [FileStream()],
            record_bytes=131072,
            records=10,
        )
        for place in ("master", "client")
    }
    assert at["client"].private_net_bytes == 0
    assert at["client"].public_net_bytes == pytest.approx(1.5, rel=0.05)
    assert at["master"].public_net_bytes == pytest.approx(1.0, rel=0.05)
    assert at["master"].private_net_bytes == pytest.approx(1.25, rel=0.05)


def test_only_files_with_the_same_master_share_its_interface():
    def rate(files):
        # Interfaces are all that takes time here.
        bare = model(client_base_ns=0.0, distribution_record_ns=0.0, slave_base_ns=0.0)
        here = system(1.0, model=bare, servers=12)
        return write_files(
            here, files, record_bytes=65536, records=30
        ).throughput_bytes_per_s

    alone = rate([FileStream(0, 0)])
    assert rate([FileStream(0, 0), FileStream(0, 0)]) == pytest.approx(alone, rel=0.05)


def test_a_short_record_is_stored_as_a_whole_encoding_unit():
    assert GEOMETRY.stored_bytes(1) == GEOMETRY.stored_bytes(4096) == 6 * 1024
    one, four = step_times(system(), [512, 4096])
    assert one["distribution"] == four["distribution"]
    assert one["parity"] == four["parity"]


def test_disks_wait_for_memory_only_when_it_is_full():
    def elapsed(disk):
        here = system(10.0, hdd=disk)
        return write_files(
            here, [FileStream()], record_bytes=65536, records=64
        ).elapsed_ns

    never = elapsed(None)
    assert elapsed(hdd()) == never
    # 16 KiB at 50 MB/s and a 64th of 10 ms: 0.48 ms a record, against 0.39 ms without a disk. The last
    # four records are still in memory when the writer is done.
    full = elapsed(hdd(dirty_bytes=65536, rate_bytes_per_s=5e7))
    assert full == pytest.approx(61 * (327_680 + 156_250), rel=0.02)
    assert elapsed(hdd(dirty_bytes=0)) > 64 * 10e6


def test_mds_is_asked_once_for_a_chunk_set():
    few = VolumeGeometry(k=4, m=2, chunk_bytes=32768)
    run = write_files(
        system(geometry=few), [FileStream()], record_bytes=16384, records=64
    )
    plain = write_files(
        system(geometry=few, model=model(mds_round_trip_ns=0.0)),
        [FileStream()],
        record_bytes=16384,
        records=64,
    )
    assert few.records_per_chunk_set(16384) == 8
    assert run.elapsed_ns - plain.elapsed_ns == 8 * 300_000


def test_all_blocks_of_a_stripe_are_on_different_servers():
    here = system(servers=9)
    rows = here.bindings([FileStream(master=7)])
    template = record_template(here, 4096)
    resources = here.resources([FileStream(master=7)], 4096)
    slaves = {
        resources.names[rows[0, template.roles[step]]]
        for step in range(template.steps)
        if template.labels[step].startswith("slave process")
    }
    assert slaves == {f"server.{i}.cpu" for i in (7, 8, 0, 1, 2, 3)}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"servers": 5}, r"servers: got 5.*6\b"),
        ({"clients": 0}, "clients: got 0"),
        ({"encode_at": "slave"}, "encode_at: got 'slave'"),
    ],
)
def test_an_impossible_system_is_refused_with_the_reason(changed, words):
    with pytest.raises(ProblemsError, match=words):
        system(**changed)


def test_bad_networks_files_geometries_and_numbers():
    with pytest.raises(ProblemsError, match="network: got 0"):
        system(0.0)
    with pytest.raises(ProblemsError, match="file 0: got client 3"):
        system().bindings([FileStream(client=3)])
    with pytest.raises(ProblemsError, match="wanted"):
        write_files(system(), [], record_bytes=1, records=1)
    with pytest.raises(ValueError, match="volume: k: got 0"):
        VolumeGeometry(k=0, m=1)
    with pytest.raises(ValueError, match="record: got 0 bytes"):
        GEOMETRY.stripes(0)
    with pytest.raises(ValueError, match=r"network_efficiency_fraction: got 1\.5"):
        model(network_efficiency_fraction=1.5)
