"""Synthetic requests, replayed traces, open arrivals."""

import numpy as np
import pytest

from stripesim.scenarios.cells.replay import replay_of, requests_of
from stripesim.scenarios.cells.run import run_cells
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.ceph.clients.workload import Replay, Requests, Synthetic
from stripesim.traces.read import read_trace

KIB = 1024
TOLD = {
    "pattern": "rand",
    "block_bytes": 4 * KIB,
    "image_bytes": 1 << 30,
    "read_fraction": 0.3,
    "requests": 1000,
    "queue_depth": 4,
}


def stream(**found):
    return Synthetic(**{**TOLD, **found}).start()


def test_sequential_goes_through_the_image_and_around_its_end():
    got = stream(pattern="seq", image_bytes=10 * KIB, requests=6).take(100)
    # Two whole blocks fit, and the rest of the image is never addressed.
    assert got.offsets_bytes.tolist() == [0, 4096, 0, 4096, 0, 4096]


def test_random_blocks_are_aligned_and_cover_the_image_evenly():
    got = stream(image_bytes=16 * 4 * KIB, requests=16_000).take(16_000)
    assert (got.offsets_bytes % (4 * KIB) == 0).all()
    counts = np.bincount(got.offsets_bytes // (4 * KIB), minlength=16)
    # 1000 in each on average, standard deviation 31.
    assert len(counts) == 16 and abs(counts - 1000).max() < 150


@pytest.mark.parametrize("pattern", ["seq", "rand"])
@pytest.mark.parametrize("rate", [None, 5000.0])
def test_chunks_do_not_change_the_requests(pattern, rate):
    values = {"pattern": pattern, "rate_per_s": rate, "queue_depth": 0 if rate else 4}
    whole = stream(**values).take(1000)
    pieces, source = [], stream(**values)
    for count in (1, 7, 500, 4096):
        pieces.append(source.take(count))
    for name in (
        "is_write",
        "offsets_bytes",
        "lengths_bytes",
        *(["arrivals_ns"] if rate else []),
    ):
        assert np.array_equal(
            np.concatenate([getattr(piece, name) for piece in pieces]),
            getattr(whole, name),
        ), name
    assert len(source.take(10)) == 0


def test_offsets_do_not_depend_on_the_mix_and_seeds_differ():
    reads, mixed = (stream(read_fraction=share).take(500) for share in (1.0, 0.3))
    assert (reads.offsets_bytes == mixed.offsets_bytes).all()
    assert (
        not reads.is_write.any() and stream(read_fraction=0.0).take(500).is_write.all()
    )
    assert 0.6 < mixed.is_write.mean() < 0.8
    assert (stream(seed=1).take(500).offsets_bytes != reads.offsets_bytes).any()


def test_an_unbounded_stream_continues():
    source = stream(requests=None)
    assert [len(source.take(1000)) for _ in range(5)] == [1000] * 5


def test_poisson_arrivals_have_their_rate_and_spread():
    got = stream(queue_depth=0, rate_per_s=10_000.0, requests=50_000).take(50_000)
    gaps = np.diff(got.arrivals_ns)
    assert (gaps >= 0).all()
    # Mean and standard deviation of an exponential are equal. 50,000 draws estimate them to 0.5 %.
    assert gaps.mean() == pytest.approx(1e5, rel=0.02)
    assert gaps.std() == pytest.approx(1e5, rel=0.03)
    # Memoryless: the counts of 10 ms are Poisson, variance equal to the mean.
    counts = np.bincount(got.arrivals_ns // 10_000_000)[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"pattern": "zipf"}, "pattern: got 'zipf'"),
        ({"block_bytes": 0}, r"block_bytes: got 0.*1.*1073741824\b"),
        ({"image_bytes": 100}, r"block_bytes: got 4096.*1.*100\b"),
        ({"read_fraction": 1.5}, r"read_fraction: got 1.5.*0.*1\b"),
        ({"queue_depth": 0}, "queue depth|queue_depth"),
        ({"rate_per_s": 5.0}, "wanted"),
    ],
)
def test_refuses_impossible_values(found, said):
    with pytest.raises(ValueError, match=said):
        stream(**found)


def recorded(arrivals=(0, 10, 30)):
    count = len(arrivals)
    return Requests(
        is_write=np.zeros(count, dtype=bool),
        images=np.zeros(count, dtype=np.int64),
        offsets_bytes=np.arange(count, dtype=np.int64) * 4096,
        lengths_bytes=np.full(count, 4096, dtype=np.int64),
        arrivals_ns=np.array(arrivals, dtype=np.int64),
    )


def test_a_replay_keeps_times_divides_them_by_the_speed_or_drops_them():
    assert Replay(recorded()).take(9).arrivals_ns.tolist() == [0, 10, 30]
    assert Replay(recorded(), speed=2.0).take(9).arrivals_ns.tolist() == [0, 5, 15]
    assert Replay(recorded(), speed=0.5).take(9).arrivals_ns.tolist() == [0, 20, 60]
    closed = Replay(recorded(), queue_depth=2)
    assert closed.queue_depth == 2 and closed.take(9).arrivals_ns is None
    assert Replay(recorded()).queue_depth == 0


def test_a_replay_stops_at_its_limit_and_at_its_end():
    assert len(Replay(recorded(), limit=2).take(9)) == 2
    source = Replay(recorded())
    assert [len(source.take(2)) for _ in range(3)] == [2, 1, 0]


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan")])
def test_a_replay_refuses_a_speed_that_is_none(speed):
    with pytest.raises(ValueError, match=r"speed: got .*0\b"):
        Replay(recorded(), speed=speed)


MSR = "block-traces/msr-cambridge1-sample.csv"
CEPH = "ceph16/block-traces/ec63-read-rand-4096-q64.loop20.osd0.txt.gz"


def traced(path, *sets):
    text = f"""
schemes = ["rep:3"]
[cluster]
hosts = 3
osds_per_host = 1
pg_num = 32
[workload]
kind = "trace"
trace = "{path}"
"""
    return parse_scenario(text, sets=sets)


@pytest.mark.parametrize(
    ("name", "requests", "reads"), [(MSR, 1000, 508), (CEPH, 249, 249)]
)
def test_a_real_trace_is_replayed_request_by_request(data, name, requests, reads):
    trace = read_trace(data / name)
    found = requests_of(trace)
    frame = trace.requests.filter(trace.requests["length_bytes"] > 0)
    assert len(found) == requests and int((~found.is_write).sum()) == reads
    assert found.arrivals_ns[0] == 0 and (np.diff(found.arrivals_ns) >= 0).all()
    assert found.lengths_bytes.sum() == frame["length_bytes"].sum()
    ((_, result),) = run_cells(traced(data / name), "compiled")
    stream = result.requested
    assert stream.done.all() and len(stream.issued_ns) == requests
    # Requests arrive when they were recorded, whatever the cluster does.
    assert (stream.issued_ns == found.arrivals_ns).all()
    assert (stream.lengths_bytes == found.lengths_bytes).all()
    assert (stream.is_write == found.is_write).all()


def test_speed_and_closed_replay_of_a_real_trace(data):
    def issued(*sets):
        ((_, result),) = run_cells(traced(data / MSR, *sets), "compiled")
        return result

    plain, fast = issued(), issued("workload.speed=4")
    assert (fast.requested.issued_ns == np.rint(plain.requested.issued_ns / 4)).all()
    closed = issued("workload.replay=closed", "workload.queue_depth=3")
    assert closed.row.requests == 1000
    # Never more than three outstanding requests, and no idle time: far faster than recorded.
    events = sorted(
        [(time, 1) for time in closed.requested.issued_ns.tolist()]
        + [(time, -1) for time in closed.requested.completed_ns.tolist()]
    )
    outstanding = np.cumsum([change for _, change in events])
    assert outstanding.max() == 3
    assert closed.row.simulated_s < plain.row.simulated_s / 10
    assert issued("workload.requests=100").row.requests == 100


def test_devices_of_a_trace_are_separate_images(tmp_path):
    rows = [
        f"{128166372000000000 + index * 1000},host,{index % 3},Read,8192,4096,100"
        for index in range(9)
    ]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    found = replay_of(traced(tmp_path / "t.csv")).take(99)
    assert found.images.tolist() == [0, 1, 2] * 3
    assert (found.offsets_bytes == 8192).all()
    assert found.arrivals_ns.tolist() == [index * 100_000 for index in range(9)]
