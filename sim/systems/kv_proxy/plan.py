"""What the encoding proxy does for a write, a read and a repair: operations, and where keys lie."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stripesim.sim.engine.graph import IntArray
from stripesim.sim.systems.kv_proxy.costs import AggregationModel
from stripesim.sim.systems.kv_proxy.proxy import (
    EXISTS,
    GET,
    SET,
    WORK,
    Operations,
    StoreSystem,
)

SLOTS = 1 << 14
"""Hash slots of a Redis cluster."""


@dataclass(frozen=True)
class Writes:
    """Writes of the file system, in order."""

    files: IntArray  # Shape (writes,). File of each write, ascending.
    size_bytes: IntArray  # Shape (writes,). Data of each write [B].
    stripes: IntArray  # Shape (writes,). Stripes that it touches, those it only completes included.
    # Shape (writes,). Blocks of an earlier write in its first stripe, which have to be read back.
    restored: IntArray

    def __len__(self) -> int:
        return len(self.files)


def extraction(file_bytes: IntArray, model: AggregationModel, *, k: int) -> Writes:
    """Plan the writes of extracting an archive.

    An archive is a row of headers and files, each rounded up to a block, and it is read a record at a time:
    a file's data is written as far as it lies in a record. A write that begins inside a stripe rewrites the
    whole stripe, and reads back what was there.
    """
    record, block = int(model.extract_record_bytes), int(model.extract_block_bytes)
    rows = []
    at = 0
    for index, size in enumerate(file_bytes.tolist()):
        at += block
        done = 0
        while done < size:
            take = min(size - done, record - (at + done) % record)
            rows.append((index, take, -(-(done + take) // k) - done // k, done % k))
            done += take
        at += -(-size // block) * block
    return Writes(*np.array(rows, dtype=np.int64).T)


def sequential(file_bytes: int, write_bytes: int, *, k: int) -> Writes:
    """Plan a file written from its beginning, so many bytes at a time."""
    starts = np.arange(0, file_bytes, write_bytes, dtype=np.int64)
    ends = np.minimum(starts + write_bytes, file_bytes)
    return Writes(
        np.zeros_like(starts), ends - starts, -(-ends // k) - starts // k, starts % k
    )


@dataclass(frozen=True)
class Keys:
    """Keys that writes make: rows of one key for each position."""

    writes: IntArray  # Shape (rows,). Write of each row.
    files: IntArray  # Shape (rows,). File of each row, ascending.
    stripes: IntArray  # Shape (rows,). Stripes under each key of the row.
    width: int  # Positions of a stripe.

    @property
    def count(self) -> int:
        """Keys in all."""
        return len(self.stripes) * self.width

    def binary_bytes(self, model: AggregationModel) -> int:
        """Bytes of all values before Base64 [B]."""
        return self.width * int(model.key_bytes(self.stripes).sum())

    def stored_bytes(self, model: AggregationModel) -> int:
        """Bytes of all values in the store [B]."""
        return self.width * int(model.value_bytes(self.stripes).sum())


def keys_of(writes: Writes, model: AggregationModel, *, width: int) -> Keys:
    """The keys that writes make, buffer by buffer."""
    listed = [
        (index, file, part)
        for index, (file, stripes) in enumerate(
            zip(writes.files.tolist(), writes.stripes.tolist(), strict=True)
        )
        for part in model.key_stripes(stripes, width)
    ]
    rows, files, parts = np.array(listed, dtype=np.int64).T
    return Keys(rows, files, parts, width)


def even_owners(nodes: int) -> IntArray:
    """Node of each slot when they are dealt evenly, in runs, shape (SLOTS,)."""
    return np.arange(SLOTS, dtype=np.int64) * nodes // SLOTS


def draw_slots(rows: int, width: int, rng: np.random.Generator) -> IntArray:
    """Slots of keys, shape (rows, width): each position has a run of slots of its own, drawn from evenly."""
    each = SLOTS // width
    return np.arange(width, dtype=np.int64) * each + rng.integers(
        0, each, size=(rows, width)
    )


def write_operations(
    system: StoreSystem,
    writes: Writes,
    keys: Keys,
    nodes: IntArray,
    *,
    code: str,
    fuse: bool = True,
) -> Operations:
    """Plan writes: work, blocks read back, then every key of every position."""
    model, width = system.model, keys.width
    work_ns = writes.stripes * width * model.block_write_ns
    work_ns = work_ns + writes.size_bytes * model.encode_ns_per_byte(code)
    list_bytes = (
        _stripes_so_far(writes) * width * int(system.aggregation.list_entry_bytes)
    )
    work_ns = work_ns + list_bytes * model.list_copy_ns_per_byte
    if fuse:
        work_ns = work_ns + writes.size_bytes * model.fuse_write_ns_per_byte
    work_ns[0] += model.write_start_ns + model.encoder_start_ns(code)
    values = system.aggregation.value_bytes(keys.stripes)
    first = np.searchsorted(keys.writes, np.arange(len(writes)))
    last = np.searchsorted(keys.writes, np.arange(len(writes)), side="right")
    parts = []
    for index, (work, restored) in enumerate(
        zip(work_ns.tolist(), writes.restored.tolist(), strict=True)
    ):
        parts.append(working(work))
        if restored:
            before = first[index] - 1
            parts.append(gets(system, nodes[before, :restored], values[before]))
        rows = slice(first[index], last[index])
        sizes = np.repeat(values[rows], width)
        parts.append(sets(system, nodes[rows].reshape(-1), sizes))
    return Operations.joined(parts)


def read_operations(
    system: StoreSystem,
    keys: Keys,
    nodes: IntArray,
    *,
    code: str,
    data_bytes: IntArray,
    sources: Sequence[Sequence[int]],
    fuse: bool = True,
) -> Operations:
    """Plan reads: for each row of keys the presence of every position, then the values of its sources."""
    model = system.model
    per_byte = model.read_ns_per_byte(code) + (
        model.fuse_read_ns_per_byte if fuse else 0.0
    )
    work_ns = data_bytes * per_byte
    work_ns[0] += model.read_start_ns
    values = system.aggregation.value_bytes(keys.stripes)
    parts = []
    for row, (work, chosen) in enumerate(zip(work_ns.tolist(), sources, strict=True)):
        parts += [exists(system, nodes[row]), working(work)]
        if chosen:
            parts.append(gets(system, nodes[row, list(chosen)], values[row]))
    return Operations.joined(parts)


def working(work_ns: float) -> Operations:
    """The proxy's thread at work [ns]."""
    return operations_of(WORK, np.zeros(1, dtype=np.int64), 0, 0, round(work_ns))


def sets(
    system: StoreSystem, nodes: IntArray, value_bytes: IntArray | int
) -> Operations:
    """Keys written, one after another."""
    return operations_of(
        SET, nodes, system.command_bytes + value_bytes, system.reply_bytes
    )


def gets(
    system: StoreSystem, nodes: IntArray, value_bytes: IntArray | int
) -> Operations:
    """Keys read, one after another."""
    return operations_of(
        GET, nodes, system.command_bytes, system.reply_bytes + value_bytes
    )


def exists(system: StoreSystem, nodes: IntArray) -> Operations:
    """Keys looked for, one after another."""
    return operations_of(EXISTS, nodes, system.command_bytes, system.reply_bytes)


def _stripes_so_far(writes: Writes) -> IntArray:
    """Stripes of the file after each write, shape (writes,)."""
    total = np.cumsum(writes.stripes)
    first = np.flatnonzero(np.diff(writes.files, prepend=-1))
    before = np.repeat(
        total[first] - writes.stripes[first], np.diff(np.append(first, len(writes)))
    )
    so_far: IntArray = total - before
    return so_far


def operations_of(
    kind: int,
    nodes: IntArray,
    sent: IntArray | int,
    answered: IntArray | int,
    work_ns: int = 0,
) -> Operations:
    """Operations of one kind, one after another."""
    zeros = np.zeros(nodes.shape, dtype=np.int64)
    return Operations(
        zeros + kind, zeros + nodes, zeros + sent, zeros + answered, zeros + work_ns
    )
