"""The estimated memory of a run is right within a factor of two."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.schema.geometry import NumberedScheme
from stripesim.scenarios.schema.memory import known_requests, memory_parts
from stripesim.scenarios.schema.scenario import parse_scenario

STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(
    not STATUS.exists(), reason="/proc does not tell the memory of a process here"
)

BASE = """
schemes = ["rep:3"]
[workload]
ops = ["write"]
patterns = ["rand"]
requests = 100
image_bytes = "1GiB"
"""
CODED = ["schemes=rs:6,3", "cluster.hosts=10"]

# Run a scenario, so that all is loaded, and print by how much another needs more at its peak [bytes].
PROGRAM = """
import json, sys
from stripesim.scenarios.answers.run.execute import run_scenario
from stripesim.scenarios.schema.scenario import parse_scenario

def peak_bytes():
    # getrusage would include the parent process.
    status = open("/proc/self/status").read()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

text, sets = json.load(sys.stdin)
run_scenario(parse_scenario(text), costs=False)
before_bytes = peak_bytes()
run_scenario(parse_scenario(text, sets=sets), costs=False)
print(peak_bytes() - before_bytes)
"""


def growth_bytes(sets):
    """Return the growth of memory during a run, measured in a separate process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([BASE, sets]),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.fixture(scope="module")
def compiled():
    """Compile and cache the engine first, because compilation takes memory."""
    run_scenario(parse_scenario(BASE), costs=False)


@pytest.mark.parametrize(
    "sets",
    [
        ["cluster.op_shards=24000"],
        ["cluster.pg_num=100000"],
        [*CODED, "cluster.stripe_unit_bytes=64", "workload.block_sizes_bytes=4MiB"],
        # The fill of a fresh image is not lengthened.
        [
            "workload.requests=150000",
            "workload.queue_depth=50000",
            "workload.image=pristine",
        ],
        [
            "workload.kind=s3",
            "workload.ops=put",
            "workload.object_sizes_bytes=4k",
            "cluster.gateways.count=20000",
        ],
    ],
    ids=[
        "queues of operations",
        "placement groups",
        "stripes in flight",
        "requests",
        "gateways",
    ],
)
def test_the_estimate_is_within_a_factor_of_two(compiled, sets):
    scenario = parse_scenario(BASE, sets=sets)
    schemes = [NumberedScheme(0, text, parse_scheme(text)) for text in scenario.schemes]
    parts = memory_parts(scenario, schemes, known_requests(scenario))
    needed_bytes = sum(part.needed_bytes for part in parts)
    measured_bytes = growth_bytes(sets)
    assert measured_bytes > 50e6
    assert measured_bytes / 2 < needed_bytes < measured_bytes * 2
