"""Names and kinds of resources that are stored as numbers."""

import numpy as np

from stripesim.sim.engine.kinds import Kinds, Members, Names, kinds_of

MEMBERS = [
    Members(1, "", ("client.tx",), ("client.tx",)),
    Members(0, "map.{}.", ("map.lock",), ("lock",)),
    Members(
        2, "osd.{}.", ("worker", "worker", "kv"), ("q.0.worker", "q.1.worker", "kv")
    ),
    Members(17, "pg.{:x}.", ("pg.lock",), ("lock",)),
]


def test_names_follow_members_and_their_resources():
    names = Names(MEMBERS)
    assert len(names) == 1 + 2 * 3 + 17
    assert list(names)[:7] == [
        "client.tx",
        *(f"osd.{osd}.{end}" for osd in range(2) for end in MEMBERS[2].labels),
    ]
    assert names[-1] == "pg.10.lock"
    assert names[7:9] == ("pg.0.lock", "pg.1.lock")


def test_kinds_are_numbered_in_order_of_first_occurrence():
    kinds = kinds_of(MEMBERS)
    written_out = ["client.tx", *["worker", "worker", "kv"] * 2, *["pg.lock"] * 17]
    assert list(kinds) == written_out
    # Members that do not exist have no kind.
    assert kinds.names == ("client.tx", "worker", "kv", "pg.lock")
    again = Kinds.of(written_out)
    assert again.names == kinds.names
    assert again.indices.tolist() == kinds.indices.tolist()


def test_values_and_masks_by_kind_are_those_of_each_resource():
    kinds = kinds_of(MEMBERS)
    texts = np.array(kinds)
    assert (
        kinds.are("kv", "worker").tolist() == np.isin(texts, ["kv", "worker"]).tolist()
    )
    assert kinds.values({"kv": 5}, 2).tolist() == np.where(texts == "kv", 5, 2).tolist()
