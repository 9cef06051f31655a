"""The words for classes of resources: every class has them."""

from __future__ import annotations

from stripesim.sim.ceph import cluster
from stripesim.sim.observe.resource_words import RESOURCE_WORDS


def test_every_class_of_a_cluster_has_words() -> None:
    kinds = {
        kind
        for name, listed in vars(cluster).items()
        if name.endswith("_KINDS")
        for kind in listed
    }
    # One of each list, so that the search is known to find them.
    assert {"cpu", "kv", "reader", "pg.exec", "map.lock", "gateway.tx"} <= kinds
    assert sorted(kinds - set(RESOURCE_WORDS)) == []


def test_a_class_that_bounds_a_rate_names_its_servers() -> None:
    for kind, words in RESOURCE_WORDS.items():
        assert bool(words.limit) == bool(words.server), kind


def test_one_server_is_no_plural() -> None:
    assert RESOURCE_WORDS["gateway.serial"].counted(1) == "1 gateway"
    assert RESOURCE_WORDS["public.tx"].counted(1) == "1 sending interface"
    drives = RESOURCE_WORDS["ssd"]
    assert drives.counted(1200) == "1,200 requests in service on all drives"
