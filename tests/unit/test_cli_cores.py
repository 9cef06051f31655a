"""`stripesim run --cores-at` prints the cores that a rate keeps busy."""

import json

import pytest

GIVEN = ("run", "quickstart", "--no-costs", "--set", 'schemes=["rep:3"]')


@pytest.mark.parametrize("rate", ["0", "-5", "nan", "inf"])
def test_a_rate_that_is_none_is_refused(command, rate: str) -> None:
    status, out, err = command(*GIVEN, "--cores-at", rate)
    assert (status, out) == (2, "")
    assert "--cores-at" in err


def test_a_rate_beyond_the_cluster_is_named_as_such(command) -> None:
    sets = ("--set", "workload.ops=write", "--set", "workload.requests=300")
    _, possible, _ = command(*GIVEN, *sets, "--cores-at", "1000")
    _, impossible, _ = command(*GIVEN, *sets, "--cores-at", "5e9")
    assert "1,000 requests/s keep" in possible
    assert "5,000,000,000 requests/s are more than this cluster serves" in impossible


def test_cores_that_a_rate_keeps_busy_include_what_sharing_a_core_costs(
    command, tmp_path
) -> None:
    # Of 4 hardware threads a host, all share cores at saturation. Work then takes 1.55 times as long.
    sets = ["workload.ops=write", "workload.queue_depth=128", "workload.requests=3000"]
    sets.append("cluster.cores_per_host=4")
    given = [word for text in sets for word in ("--set", text)]
    _, text, _ = command(*GIVEN, *given, "--json", "-")
    document = json.loads(text)
    rate = document["rows"][0]["iops"]
    hosts = document["processors"][0]["hosts"]
    simulated = sum(host["cores"] * host["utilisation"] for host in hosts)
    _, out, _ = command(*GIVEN, *given, "--cores-at", f"{rate * 0.999:.0f}")
    stated = float(out.split("requests/s keep ")[1].split()[0])
    assert stated == pytest.approx(simulated, rel=0.1)
    alone = rate * document["processors"][0]["cpu_ns_per_op"] / 1e9
    assert stated > 1.3 * alone
