"""The report of a sweep says which schemes can lose data with one host."""

import pytest

from stripesim.scenarios.answers.sweep.report import loses_data_with_a_host
from stripesim.scenarios.schema.scenario import parse_scenario

SCENARIO = """
schemes = ["{scheme}"]
[cluster]
hosts = {hosts}
osds_per_host = {osds}
pg_num = 64
failure_domain_erasure = "{domain}"
failure_domain_replicated = "{domain}"
[workload]
requests = 100
"""


@pytest.mark.parametrize(
    ("scheme", "hosts", "osds", "domain", "is_lost"),
    [
        # Up to four of eight shards on a host, of which two may be lost.
        ("rs:6,2", 4, 4, "osd", True),
        # At most two shards on a host.
        ("rs:6,2", 8, 2, "osd", False),
        ("rs:6,2", 10, 4, "host", False),
        # All three copies on a host.
        ("rep:3", 4, 4, "osd", True),
    ],
)
def test_a_host_with_too_many_shards_loses_data(scheme, hosts, osds, domain, is_lost):
    text = SCENARIO.format(scheme=scheme, hosts=hosts, osds=osds, domain=domain)
    assert loses_data_with_a_host(parse_scenario(text), scheme) == is_lost
