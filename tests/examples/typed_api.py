"""Call the public API as the README does. `make lint` checks the types; nothing runs this file."""

import stripesim


def calls() -> None:
    """Make every kind of call that the documentation shows."""
    load = {
        "ops": ["write"],
        "patterns": ["rand"],
        "block_sizes_bytes": ["4k"],
        "requests": 20000,
    }
    scenario = stripesim.Scenario(
        schemes=["rep:3", "rs:4,2"],
        cluster={"hosts": 8, "osds_per_host": 6, "pg_num": 4096},
        workload=load | {"clients": 8, "queue_depth": 32},
    )
    everything = stripesim.Scenario(
        name="all keys",
        description="every key of a scenario",
        generation="reef",
        schemes=("halves:6",),
        codes=["halves.py"],
        seed=1,
        cluster=scenario.cluster,
        workload=scenario.workload,
        workloads=[{"name": "reads", "ops": ["read"]}],
        client={"threads": 2},
        repair={"lost_osds": [1]},
        degraded={"missing_osds": [2]},
        faults={"events": [{"osds": [1], "at_s": 1.0}]},
        changes=[{"kind": "out", "osds": [5]}],
        durability={"afr": 0.01},
        plan={"hosts": [6, 8]},
    )
    result: stripesim.ScenarioResult = stripesim.run(scenario)
    print(result.rows.select("scheme", "iops", "latency_p99_ns", "bottleneck"))
    try:
        sweep = stripesim.sweep(
            scenario, over={"workload.queue_depth": [16, 64]}, jobs=1
        )
    except (stripesim.ScenarioError, stripesim.AnswerError) as error:
        print(error)
    timelines: list[stripesim.Timeline] = stripesim.explain("write", "rs:6,3")
    loaded = stripesim.load_scenario("quickstart", sets={"cluster.hosts": 8})
    prediction: stripesim.Answer = stripesim.predict(scenario, register="register.json")
    scored = stripesim.score("register.json", "measured.csv")
    checked = stripesim.check(scenario, "fio.json", sets={"cluster.hosts": 8})
    print(prediction["sha256"], scored["summary"], checked["verdict"])


def wrong_call() -> None:
    """Seed a run with a word. `--strict` fails if this error, and so perhaps all others, is not found."""
    stripesim.run("quickstart", seed="one")  # type: ignore[arg-type]
