"""Large messages pass their sender, the wire and their receiver in pieces, so that the stages overlap."""

from dataclasses import replace

import pytest

from stripesim.scenarios.answers.explain.layout import bars_of, merged_bars
from stripesim.scenarios.answers.explain.request import explain
from stripesim.scenarios.answers.explain.text import table_rows
from stripesim.scenarios.cells.run import run_cell
from stripesim.scenarios.schema.keys import cells
from stripesim.scenarios.schema.scenario import load_scenario
from stripesim.sim.ceph.paths import message, write_path
from stripesim.sim.ceph.roles import CPU, PRIMARY_CPU, shard_role

KIB = 1 << 10
MIB = 1 << 20
# Of the set kraken: a message costs each side 15,005 ns and 0.35 ns/B, a wake-up 7,600 ns.
BASE_NS = 15_005
NS_PER_BYTE = 0.35
WAKE_NS = 7_600


def write_of_4_mib(gbit_per_s):
    """Explain a replicated write of 4 MiB, over networks of this rate."""
    rates = {f"cluster.{net}_gbit_per_s": gbit_per_s for net in ("public", "private")}
    (timeline,) = explain(
        "write", "rep:2", 4 * MIB, sets={**rates, "cluster.parameters": "kraken"}
    )
    return timeline


def wire_ns(size_bytes, gbit_per_s):
    # A frame of 1448 bytes takes 90 more on the wire (docs/background/nic.md).
    frames = -(-size_bytes // 1448)
    return (size_bytes + 90 * frames) * 8 / gbit_per_s


def steps_labelled(timeline, label, word="use"):
    return [
        entry.step
        for entry in timeline.steps
        if entry.step.label.startswith(label) and entry.step.word == word
    ]


def span_ns(timeline, first_label, last_label):
    """Return the time from the first step of one stage to the end of another."""
    start_ns = min(step.start_ns for step in steps_labelled(timeline, first_label))
    end_ns = max(step.end_ns for step in steps_labelled(timeline, last_label))
    return end_ns - start_ns


@pytest.mark.parametrize(
    ("size_bytes", "count"),
    [
        (0, 1),
        (256 * KIB - 1, 1),
        (256 * KIB, 2),
        # A shard of an object of 4 MiB under RS(6,2): 4 MiB / 6 in units of 4 KiB
        (684 * KIB, 5),
        (MIB, 8),
        (4 * MIB + 480, 8),
        (64 * MIB, 8),
    ],
)
@pytest.mark.parametrize("payload_bytes", [1448, 65483])
def test_pieces_have_the_bytes_and_the_frames_of_their_message(
    models, change, size_bytes, count, payload_bytes
):
    changed = change(models, private_nic={"frame_payload_bytes": payload_bytes})
    nic = changed.private_nic
    # Given a message of one piece per 128 KiB, at most eight, if there are at least two
    pieces = message.cut_message(nic, size_bytes, "request", 0).pieces
    sizes = [piece.size_bytes for piece in pieces]
    assert len(sizes) == count
    # Then its pieces have its bytes, also on the wire, and count as one message.
    assert sum(sizes) == size_bytes
    assert sum(map(nic.traffic_bytes, sizes)) == nic.traffic_bytes(size_bytes)
    assert sum(map(nic.serialise_ns, sizes)) == pytest.approx(
        nic.serialise_ns(size_bytes)
    )
    assert sum(piece.completes for piece in pieces) == 1


def test_a_write_in_pieces_costs_what_it_costs_in_one(
    models, make_context, counted, monkeypatch
):
    def write():
        template = write_path(
            make_context(models, "rep:3"),
            offset_bytes=0,
            length_bytes=4 * MIB,
            object_size_bytes=4 * MIB,
        )
        return counted(template, 3)

    in_pieces = write()
    monkeypatch.setattr(message, "PIECES_MAX", 1)
    in_one = write()
    times = ("cpu_ns", "messenger_ns")
    for name in times:
        # 10 sides of messages, of which each piece is rounded to a nanosecond.
        assert in_pieces.pop(name) == pytest.approx(in_one.pop(name), abs=10 * 8)
    assert in_pieces == in_one
    # Two messages with the client, and two with each of two members.
    assert in_one["messages"] == 2 + 2 * 2


def test_a_sender_begins_with_the_fixed_cost_of_a_message_and_a_receiver_ends_with_it(
    models, make_context
):
    # Given a copy of 4 MiB that the primary sends to another member in pieces
    path = write_path(
        make_context(models, "rep:2"),
        offset_bytes=0,
        length_bytes=4 * MIB,
        object_size_bytes=0,
    )
    pieces_ns = {role: [] for role in (PRIMARY_CPU, shard_role(1, CPU))}
    for role, demand_ns, label in zip(
        path.roles.tolist(), path.demands_ns.tolist(), path.labels, strict=True
    ):
        if label.startswith("messenger, sub-write") and "reply" not in label:
            pieces_ns.get(role, []).append(demand_ns)
    sent_ns, received_ns = pieces_ns.values()
    fixed_ns = models.cpu.message_base_ns
    # Pieces of whole frames differ by a frame at most.
    frame_ns = models.cpu.frame_ns + 1448 * models.cpu.message_ns_per_byte + 1
    assert sent_ns[0] - sent_ns[1] == pytest.approx(fixed_ns, abs=frame_ns)
    assert received_ns[-1] - received_ns[0] == pytest.approx(fixed_ns, abs=frame_ns)
    assert max(received_ns[:-1]) - min(received_ns[:-1]) < frame_ns < fixed_ns / 2


def test_a_receiver_slower_than_the_wire_adds_its_own_time_to_the_first_piece():
    # Given 100 Gb/s: 0.36 ms on the wire, and 1.48 ms at a messenger
    timeline = write_of_4_mib(100)
    size_bytes = 4 * MIB
    # When the request is sent
    took_ns = span_ns(timeline, "request sent", "messenger, request")
    # Then the receiver starts with the first of 8 pieces (on both interfaces; 12.5 us between) and goes on.
    first_ns = 2 * wire_ns(size_bytes / 8, 100) + 12_500
    work_ns = BASE_NS + NS_PER_BYTE * size_bytes
    assert took_ns == pytest.approx(first_ns + WAKE_NS + work_ns, rel=0.01)
    # It wakes once.
    assert (
        len(steps_labelled(timeline, "thread for messenger, request", "acquire")) == 1
    )


def test_a_receiver_faster_than_the_wire_waits_for_each_piece():
    # Given 10 Gb/s: 3.6 ms on the wire, and 1.48 ms at a messenger
    timeline = write_of_4_mib(10)
    size_bytes = 4 * MIB
    took_ns = span_ns(timeline, "request sent", "messenger, request")
    # Then one piece passes the sender's interface, all the receiver's, and one remains for the messenger.
    wire_both_ns = wire_ns(size_bytes / 8, 10) + 12_500 + wire_ns(size_bytes, 10)
    work_ns = BASE_NS + NS_PER_BYTE * size_bytes / 8
    assert took_ns == pytest.approx(wire_both_ns + WAKE_NS + work_ns, rel=0.01)
    # The thread has read everything eight times.
    assert (
        len(steps_labelled(timeline, "thread for messenger, request", "acquire")) == 8
    )


def test_sender_and_receiver_of_a_sub_write_overlap():
    # Given 100 Gb/s, where each messenger takes 1.48 ms
    timeline = write_of_4_mib(100)
    size_bytes = 4 * MIB
    took_ns = span_ns(timeline, "messenger, sub-write", "sub-write received")
    side_ns = BASE_NS + NS_PER_BYTE * size_bytes
    last_ns = 2 * wire_ns(size_bytes / 8, 100) + 12_500
    assert took_ns == pytest.approx(side_ns + last_ns, rel=0.02)
    # When the last of 8 pieces has arrived, the receiver has that piece left.
    (first, *_) = steps_labelled(timeline, "messenger, sub-write, piece 1 of 8")
    (*_, last) = steps_labelled(timeline, "messenger, sub-write, piece 8 of 8")
    whole_ns = last.end_ns - first.start_ns
    assert whole_ns == pytest.approx(took_ns + BASE_NS + side_ns / 8, rel=0.02)


def test_pieces_of_a_message_are_one_line_and_one_bar():
    timeline = write_of_4_mib(100)
    rows = {row.what: row for row in table_rows(timeline)}
    # A line for all pieces, with their number, and another one for the reply's way back.
    assert rows["messenger, request, 8 pieces"].count == 8
    assert rows["public wire, 8 pieces"].count == 8
    assert rows["public wire"].count == 1
    # Work without a break is one bar.
    bars = [
        bar
        for entry in timeline.steps
        if entry.step.label.startswith("messenger, request")
        for bar in bars_of(entry)
        if bar.category == "cpu"
    ]
    (bar,) = merged_bars(bars)
    assert (bar.label, bar.count) == ("request", 8)


@pytest.mark.parametrize("gbit_per_s", [10, 100])
@pytest.mark.parametrize(("scheme", "op"), [("rep:3", "write"), ("rs:2,1", "read")])
def test_both_engines_agree(scheme, op, gbit_per_s):
    # Given more requests than one OSD admits (Kraken: 100), of which each message has several pieces
    loaded = load_scenario(
        "quickstart",
        sets={
            "schemes": [scheme],
            "generation": "kraken",
            "cluster.parameters": "kraken",
            "cluster.public_gbit_per_s": gbit_per_s,
            "cluster.private_gbit_per_s": gbit_per_s,
            "workload.ops": [op],
            "workload.patterns": ["rand"],
            "workload.block_sizes_bytes": ["4MiB"],
            "workload.image_bytes": "256MiB",
            "workload.clients": 2,
            "workload.queue_depth": 64,
            "workload.requests": 200,
        },
    )
    results = [
        run_cell(loaded, cells(loaded)[0], engine) for engine in ("compiled", "simpy")
    ]
    first, second = (replace(result.row, engine_wall_s=0) for result in results)
    assert results[0].sha256 == results[1].sha256
    assert first == second
