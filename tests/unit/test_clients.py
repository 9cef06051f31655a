"""Several clients: each has its own threads, network, image and closed loop."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import stripesim
from stripesim.models.coding import parse_scheme
from stripesim.scenarios.cells.build import build_pool
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.notes import scenario_warnings
from stripesim.scenarios.schema.scenario import parse_scenario
from stripesim.sim.ceph.clients.workload import Synthetic, SyntheticLoops
from stripesim.sim.ceph.cluster import NO_OSD
from stripesim.sim.ceph.layout import Layout
from stripesim.sim.ceph.loops import ClientLoops
from stripesim.sim.ceph.planner import PoolGraphs, RequestPlanner
from stripesim.sim.ceph.pool import Pool
from stripesim.sim.run import Run, simulate

GIB = 1 << 30
SCENARIO = parse_scenario(
    'schemes = ["rep:3", "rs:4,2"]\n[cluster]\nparameters = "kraken"\n'
    "hosts = 3\nosds_per_host = 2\npg_num = 64\n"
    'failure_domain_erasure = "osd"\n[workload]\nrequests = 1\n'
)


def pool_of(
    scheme: str, client_hosts: list[int], *, on_osd_hosts: bool = False
) -> Pool:
    pool = build_pool(SCENARIO, parse_scheme(scheme), build_models(SCENARIO))
    hosts = np.array(client_hosts, dtype=np.int64)
    cluster = replace(
        pool.cluster, client_hosts=hosts, clients_on_osd_hosts=on_osd_hosts
    )
    return replace(pool, cluster=cluster)


def load(
    clients: int, *, requests: int = 240, closed: bool = True, **other: object
) -> Synthetic:
    bounds = {"queue_depth": 4} if closed else {"queue_depth": 0, "rate_per_s": 4000.0}
    given = {
        "pattern": "rand",
        "block_bytes": 4096,
        "image_bytes": GIB,
        "read_fraction": 0.5,
        **bounds,
        **other,
    }
    return Synthetic(
        requests=requests, clients=clients, image_stride_bytes=GIB, seed=3, **given
    )


def run(pool: Pool, *loads: Synthetic, engine: str = "compiled") -> Run:
    streams = [load.start() for load in loads]
    return simulate(
        pool, streams if len(streams) > 1 else streams[0], engine=engine, seed=1
    )


@pytest.mark.parametrize(
    ("scheme", "closed"), list(product(["rep:3", "rs:4,2"], [True, False]))
)
def test_both_engines_run_several_clients_equally(scheme: str, closed: bool) -> None:
    pool = pool_of(scheme, [0, 0, 1])
    # Blocks that cross objects: parts of one request belong to one client.
    loads = load(
        3, closed=closed, block_bytes=6000, pattern="seq", image_bytes=(1 << 22) + 6000
    )
    compiled, simpy = (
        run(pool, loads, engine=engine) for engine in ("compiled", "simpy")
    )
    assert compiled.sha256 == simpy.sha256
    assert compiled.uses == simpy.uses
    assert np.array_equal(compiled.engine_run.busy_ns, simpy.engine_run.busy_ns)
    assert compiled.row.requests == 240


def test_each_client_submits_and_receives_its_own_requests() -> None:
    pool = pool_of("rep:3", [0, 0, 1])
    result = run(pool, load(3, requests=242, read_fraction=1.0))
    busy = dict(
        zip(
            pool.cluster.resources.names,
            result.engine_run.busy_ns.tolist(),
            strict=True,
        )
    )
    per_request = round(pool.cluster.models.client.submit_ns)
    assert [busy[f"{client}.client.submit"] // per_request for client in range(3)] == [
        81,
        81,
        80,
    ]
    # Two clients share the first machine's network.
    assert busy["machine.0.client.rx"] * 80 == busy["machine.1.client.rx"] * 162


def test_several_clients_serve_more_than_one_whose_thread_is_the_limit() -> None:
    # Its submission thread limits one client at depth 64, but not four clients.
    one = run(
        pool_of("rep:3", [0]), load(1, requests=2000, read_fraction=1.0, queue_depth=64)
    )
    four = run(
        pool_of("rep:3", [0, 1, 2, 3]),
        load(4, requests=4000, read_fraction=1.0, queue_depth=16),
    )
    assert four.row.iops > 1.5 * one.row.iops


def test_clients_on_osd_hosts_share_the_public_network() -> None:
    pool = pool_of("rep:3", [0, 1, 2, 0], on_osd_hosts=True)
    assert not {"client.tx", "client.rx"} & set(pool.cluster.resources.kinds)
    apart = run(pool_of("rep:3", [0, 1, 2, 0]), load(4, read_fraction=1.0))
    shared = run(pool, load(4, read_fraction=1.0))
    names = pool.cluster.resources.names
    received = dict(zip(names, shared.engine_run.busy_ns.tolist(), strict=True))
    own = dict(
        zip(
            pool_of("rep:3", [0, 1, 2, 0]).cluster.resources.names,
            apart.engine_run.busy_ns,
            strict=True,
        )
    )
    # Data for clients comes in where requests to the OSDs come in.
    assert received["host.0.public.rx"] > own["host.0.public.rx"]


def test_an_open_loop_of_many_clients_keeps_its_rate_and_spreads_it() -> None:
    result = run(pool_of("rep:3", list(range(8))), load(8, requests=4000, closed=False))
    assert result.row.iops == pytest.approx(4000, rel=0.06)
    clients = result.foreground.planned.clients
    assert np.bincount(clients).min() > 0.8 * 500


def test_simultaneous_workloads_are_reported_together_and_separately() -> None:
    pool = pool_of("rep:3", [0, 1, 2])
    small = load(2, requests=400)
    large = Synthetic(
        pattern="seq", block_bytes=1 << 20, image_bytes=GIB, read_fraction=0.0, requests=40, queue_depth=2,
        first_client=2, first_byte=2 * GIB,
    )  # fmt: skip
    results = [
        run(pool, small, large, engine=engine) for engine in ("compiled", "simpy")
    ]
    assert results[0].sha256 == results[1].sha256
    both = results[0]
    assert [row.requests for row in both.load_rows] == [400, 40]
    assert both.row.requests == 440
    moved = [
        row.requests * size
        for row, size in zip(both.load_rows, (4096, 1 << 20), strict=True)
    ]
    share = sum(
        row.device_write_bytes_per_client_byte * size
        for row, size in zip(both.load_rows, moved, strict=True)
    ) / sum(moved)
    assert both.row.device_write_bytes_per_client_byte == pytest.approx(share)


def test_sequential_clients_read_each_its_own_image_in_order() -> None:
    stream = load(3, closed=False, pattern="seq", requests=300).start()
    asked = stream.take(300)
    assert asked.clients is not None
    for client in range(3):
        own = asked.offsets_bytes[asked.clients == client]
        assert np.array_equal(own, client * GIB + 4096 * np.arange(len(own)))


@pytest.mark.parametrize(
    ("hosts", "place", "policy", "direct", "told"),
    [
        (3, "osd-hosts", "needed", True, "one message in 3 stays on the host"),
        (8, "osd-hosts", "local", False, "many of their reads stay on the host"),
        (8, "osd-hosts", "needed", True, None),
        (3, "osd-hosts", "needed", False, None),
        (3, "own", "needed", True, None),
    ],
)
def test_messages_that_stay_on_a_host_but_count_on_its_interface_are_told(
    hosts, place, policy, direct, told
):
    keys = "sites = 4\nsite_rtt_ms = 0.1\n" if policy == "local" else ""
    scheme, generation = "rep:3", "reef"
    if direct:
        scheme, generation = "rs:2,1", "umbrella"
        keys += "direct_reads = true\nec_optimizations = true\n"
    asked = parse_scenario(
        f'schemes = ["{scheme}"]\ngeneration = "{generation}"\n[cluster]\n{keys}hosts = {hosts}\n'
        f'osds_per_host = 2\npg_num = 32\nread_policy = "{policy}"\n[client]\nplace = "{place}"\n'
        "[workload]\nrequests = 10\n"
    )
    found = [
        line for line in scenario_warnings(asked, build_models(asked)) if "stay" in line
    ]
    assert [told in line for line in found] == ([True] if told else [])


def rows_of_clients(place, engine="compiled"):
    """Return the rows of reads and writes of three clients, of 4 MiB over slow interfaces."""
    scenario = parse_scenario(
        f"""
schemes = ["rep:3"]
[cluster]
hosts = 3
osds_per_host = 2
pg_num = 64
public_gbit_per_s = 1
private_gbit_per_s = 100
[client]
place = "{place}"
[workload]
ops = ["read", "write"]
patterns = ["rand"]
block_sizes_bytes = ["4MiB"]
clients = 3
queue_depth = 8
requests = 900
image_bytes = "8GiB"
"""
    )
    answer = stripesim.run(scenario, engine=engine, costs=False, unchecked=True)
    return {row["op"]: row for row in answer.rows.iter_rows(named=True)}


def test_requests_to_a_primary_on_the_client_s_host_do_not_cross_the_network():
    own, shared = rows_of_clients("own"), rows_of_clients("osd-hosts")
    for op in ("read", "write"):
        # Each client finds a third of the primaries on its host.
        crossing = (
            shared[op]["public_net_bytes_per_client_byte"]
            / own[op]["public_net_bytes_per_client_byte"]
        )
        assert crossing == pytest.approx(2 / 3, abs=0.05)
    # The interface of a host sends the reads of two other hosts' clients: 125 MB/s × 3 × 3/2 at most.
    wire_bytes_per_s = 3 * 125e6
    assert own["read"]["throughput_bytes_per_s"] < wire_bytes_per_s
    assert 1.15 * wire_bytes_per_s < shared["read"]["throughput_bytes_per_s"]
    assert shared["read"]["throughput_bytes_per_s"] < 1.5 * wire_bytes_per_s
    # The bound counts what crosses. A run reaches most of it, and not more.
    assert 0.8 < shared["read"]["bottleneck_utilisation"] <= 1


def test_both_engines_leave_the_network_out_on_the_client_s_host():
    compiled, simple = (
        rows_of_clients("osd-hosts", engine) for engine in ("compiled", "simpy")
    )
    for op in ("read", "write"):
        assert compiled[op]["latency_mean_ns"] == simple[op]["latency_mean_ns"]


def test_a_client_does_not_issue_what_was_planned_before_an_osd_failed() -> None:
    # Given two clients whose requests are planned together when the first one asks
    pool = pool_of("rep:3", [0, 1])
    book = pool.book()
    layout = Layout(pool)
    workload = SyntheticLoops(load(2))
    graphs = PoolGraphs(pool, book, layout)
    planner = RequestPlanner(pool, book, workload, prefilled=True, graphs=graphs)
    first, second = ClientLoops(planner, workload).streams
    first.take(1)
    # When the primary of each group fails before the second one asks
    for group, (_, *replicas) in enumerate(pool.cluster.acting.tolist()):
        layout.set(book, group, [NO_OSD, *replicas], frozenset({0}), primary=1)
    chunk = second.take(1)
    # Then its requests go to the replicas, as do those that are planned now.
    again = second.replan(np.arange(len(chunk)))
    assert chunk.templates.tolist() == again.templates.tolist()
    assert chunk.bindings.tolist() == again.bindings.tolist()
