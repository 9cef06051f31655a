"""Reads that ask for more shards or copies than they need: traffic, latency, decoding, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import stripesim
from stripesim.scenarios.cells.models import build_models

KIB = 1024
NEEDED = "needed"


def run(scheme: str, policy: str, **more: Any) -> dict[str, Any]:
    """Return the row of small random reads, in whole stripes of 4 KiB units."""
    keys = {"hosts": 8, "read_policy": policy, "pg_num": 64, "drive": "samsung-pm983"}
    load = {"ops": ["read"], "block_sizes_bytes": [16 * KIB], "requests": 400}
    options = {"engine": more.pop("engine", "compiled")}
    scenario = stripesim.Scenario(
        generation=more.pop("generation", "pacific"),
        schemes=[scheme],
        cluster=keys | more.pop("cluster", {}),
        workload=load | {"patterns": ["rand"], "queue_depth": 4} | more,
    )
    [row] = stripesim.run(scenario, **options).rows.to_dicts()
    del row["engine_wall_s"]
    return row


@pytest.mark.parametrize(
    ("scheme", "policy", "asked"),
    [
        ("rs:4,2", "needed", 4),
        ("rs:4,2", "speculative:1", 5),
        ("rs:4,2", "speculative:2", 6),
        ("rs:4,2", "fastest:k", 6),
        ("clay:4,2,5", "speculative:1", 5),
    ],
)
def test_all_that_are_asked_read_and_send(scheme: str, policy: str, asked: int) -> None:
    row = run(scheme, policy)
    needed = run(scheme, NEEDED)
    # Four data shards hold the 16 KiB of a stripe. One of the asked is the primary, which sends nothing.
    assert row["device_read_bytes_per_client_byte"] == pytest.approx(asked / 4)
    ratio = (
        row["private_net_bytes_per_client_byte"]
        / (needed["private_net_bytes_per_client_byte"])
    )
    assert ratio == pytest.approx((asked - 1) / 3)
    assert row["public_net_bytes_per_client_byte"] == pytest.approx(
        needed["public_net_bytes_per_client_byte"]
    )


@pytest.mark.parametrize(("policy", "copies"), [("speculative:1", 2), ("fastest:k", 3)])
def test_a_client_reads_further_copies(policy: str, copies: int) -> None:
    row = run("rep:3", policy)
    needed = run("rep:3", NEEDED)
    assert row["device_read_bytes_per_client_byte"] == pytest.approx(copies)
    assert row["private_net_bytes_per_client_byte"] == 0
    ratio = (
        row["public_net_bytes_per_client_byte"]
        / (needed["public_net_bytes_per_client_byte"])
    )
    assert ratio == pytest.approx(copies)


def test_a_small_read_of_an_optimised_pool_asks_for_the_rows_of_its_pages() -> None:
    load = {"block_sizes_bytes": [4 * KIB], "generation": "tentacle"}
    row = run("rs:4,2", "speculative:1", **load)
    # One page is wanted. Any 4 of 5 shards give it, each with a page.
    assert row["device_read_bytes_per_client_byte"] == pytest.approx(5)
    assert run("rs:4,2", NEEDED, **load)["device_read_bytes_per_client_byte"] == 1


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_both_engines_agree(scheme: str) -> None:
    assert run(scheme, "speculative:1") == run(scheme, "speculative:1", engine="simpy")


@pytest.mark.parametrize("scheme", ["rep:3", "rs:4,2"])
def test_a_slow_drive_no_longer_sets_the_tail(scheme: str) -> None:
    # One request at a time, so that nothing waits.
    wide = {"drive_numbers": {"read_sigma": 2.0}}
    needed = run(scheme, NEEDED, cluster=wide, queue_depth=1)
    extra = run(scheme, "speculative:1", cluster=wide, queue_depth=1)
    assert extra["latency_p99_ns"] < 0.7 * needed["latency_p99_ns"]


def test_the_primary_decodes_if_one_of_the_wanted_shards_is_the_last() -> None:
    def encode_ns(policy: str, sigma: float) -> float:
        wide = {"drive_numbers": {"read_sigma": sigma}}
        row = run("rs:4,2", policy, cluster=wide, queue_depth=1)
        return float(row["cost_encode_ns"])

    assert encode_ns(NEEDED, 1.0) == 0
    # On equal drives the parity is never before the data, which is asked first.
    assert encode_ns("speculative:1", 0.0) == 0
    # With a wide spread each of the five may be the last. The primary's own shard, a wanted one, crosses no
    # network and is so less often: a wanted one is the last in 3 of 4 to 4 of 5 reads.
    scenario = stripesim.Scenario(
        generation="pacific", schemes=["rep:3"], workload={"requests": 1}
    )
    models = build_models(scenario)
    share = encode_ns("speculative:1", 2.0) / models.decode_ns("rs:4,2", 16 * KIB, 1)
    error = 3 * (0.8 * 0.2 / 400) ** 0.5
    assert 3 / 4 - error < share < 4 / 5 + error


def test_without_spare_shards_a_degraded_read_asks_for_those_that_are_left() -> None:
    scenario = stripesim.Scenario(
        generation="pacific",
        schemes=["rs:4,2"],
        cluster={"hosts": 8, "osds_per_host": 1, "read_policy": "fastest:k"},
        workload={
            "ops": ["read"],
            "patterns": ["rand"],
            "block_sizes_bytes": [16 * KIB],
            "requests": 400,
        },
        degraded={"missing_osds": [0, 1]},
    )
    [row] = stripesim.run(scenario).rows.to_dicts()
    assert 4 / 4 < row["device_read_bytes_per_client_byte"] < 6 / 4


@pytest.mark.parametrize(
    ("sets", "wanted"),
    [
        (
            {"schemes": ["rs:4,2"], "cluster.read_policy": "speculative:3"},
            "speculative:2",
        ),
        ({"schemes": ["none"], "cluster.read_policy": "speculative:1"}, '"needed"'),
        ({"schemes": ["lrc:4,3,2"], "cluster.read_policy": "fastest:k"}, "rs:k,m"),
        ({"cluster.read_policy": "fastest:3"}, "needed"),
        ({"cluster.read_policy": "speculative:0"}, "needed"),
        ({"workload.kind": "s3", "cluster.read_policy": "fastest:k"}, '"needed"'),
    ],
)
def test_refuses_what_cannot_be_read_so(
    sets: dict[str, Any],
    wanted: str,
    tmp_path: Any,
    command: Callable[..., tuple[int, str, str]],
) -> None:
    path = tmp_path / "s.toml"
    scheme = sets.pop("schemes", ["rep:3"])
    path.write_text(
        f'generation = "pacific"\nschemes = ["{scheme[0]}"]\nworkload.requests = 10\ncluster.hosts = 9\n'
    )
    arguments = [f"--set={key}={value}" for key, value in sets.items()]
    status, _, err = command("run", path, *arguments)
    assert status == 2
    [line] = [line for line in err.splitlines() if "cluster.read_policy" in line]
    assert "got " in line
    assert wanted in line.split("wanted")[1]
