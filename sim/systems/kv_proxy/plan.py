"""Operations of the encoding proxy for writes, reads and repairs, and the slots of keys."""

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

# Hash slots of a Redis cluster.
SLOTS = 1 << 14


@dataclass(frozen=True)
class Writes:
    """Writes of the file system, in order.

    Attributes
    ----------
    files
        File of each write, ascending, shape (writes,).
    size_bytes
        Data of each write [B], shape (writes,).
    stripes
        Stripes that each write touches, in full or in part, shape (writes,).
    restored
        Blocks of an earlier write in each write's first stripe, which are read back, shape (writes,).
    """

    files: IntArray
    size_bytes: IntArray
    stripes: IntArray
    restored: IntArray

    def __len__(self) -> int:
        return len(self.files)


def extraction(file_bytes: IntArray, model: AggregationModel, *, k: int) -> Writes:
    """Plan the writes of extracting an archive.

    Parameters
    ----------
    file_bytes
        Sizes of the files [B].
    model
        Sizes of records and blocks of the archive.
    k
        Data blocks of a stripe.

    Returns
    -------
    Writes
        The writes.

    Notes
    -----
    An archive is a sequence of headers and files, each rounded up to a block. It is read one record at a
    time, and each write is the part of a file in one record. A write that begins inside a stripe reads the
    earlier part back and rewrites the whole stripe.
    """
    record = int(model.extract_record_bytes)
    block = int(model.extract_block_bytes)
    rows = []
    at = 0
    for index, size in enumerate(file_bytes.tolist()):
        at += block
        done = 0
        while done < size:
            length = min(size - done, record - (at + done) % record)
            stripes = -(-(done + length) // k) - done // k
            rows.append((index, length, stripes, done % k))
            done += length
        at += -(-size // block) * block
    return Writes(*np.array(rows, dtype=np.int64).T)


def sequential(file_bytes: int, write_bytes: int, *, k: int) -> Writes:
    """Plan the sequential writes of one file.

    Parameters
    ----------
    file_bytes
        Size of the file [B].
    write_bytes
        Size of each write [B].
    k
        Data blocks of a stripe.

    Returns
    -------
    Writes
        The writes.
    """
    starts = np.arange(0, file_bytes, write_bytes, dtype=np.int64)
    ends = np.minimum(starts + write_bytes, file_bytes)
    stripes = -(-ends // k) - starts // k
    return Writes(np.zeros_like(starts), ends - starts, stripes, starts % k)


@dataclass(frozen=True)
class Keys:
    """Keys created by writes, in rows of one key per position.

    Attributes
    ----------
    writes
        Write of each row, shape (rows,).
    files
        File of each row, ascending, shape (rows,).
    stripes
        Stripes under each key of the row, shape (rows,).
    width
        Positions of a stripe.
    """

    writes: IntArray
    files: IntArray
    stripes: IntArray
    width: int

    @property
    def count(self) -> int:
        """Number of keys."""
        return len(self.stripes) * self.width

    def binary_bytes(self, model: AggregationModel) -> int:
        """Return the size of all values before Base64 [B]."""
        return self.width * int(model.key_bytes(self.stripes).sum())

    def stored_bytes(self, model: AggregationModel) -> int:
        """Return the size of all values in the store [B]."""
        return self.width * int(model.value_bytes(self.stripes).sum())


def keys_of(writes: Writes, model: AggregationModel, *, width: int) -> Keys:
    """Return the keys that writes create, buffer by buffer.

    Parameters
    ----------
    writes
        The writes.
    model
        Sizes of buffers.
    width
        Positions of a stripe.
    """
    rows = [
        (index, part)
        for index, stripes in enumerate(writes.stripes.tolist())
        for part in model.key_stripes(stripes, width)
    ]
    owners, stripes = np.array(rows, dtype=np.int64).T
    return Keys(owners, writes.files[owners], stripes, width)


def even_owners(nodes: int) -> IntArray:
    """Return the node of each slot, in contiguous runs of equal length, shape (SLOTS,)."""
    return np.arange(SLOTS, dtype=np.int64) * nodes // SLOTS


def draw_slots(rows: int, width: int, rng: np.random.Generator) -> IntArray:
    """Draw slots of keys uniformly from each position's run of slots, shape (rows, width)."""
    each = SLOTS // width
    drawn = rng.integers(0, each, size=(rows, width))
    return np.arange(width, dtype=np.int64) * each + drawn


def write_operations(
    system: StoreSystem,
    writes: Writes,
    keys: Keys,
    nodes: IntArray,
    *,
    code: str,
    fuse: bool = True,
) -> Operations:
    """Plan writes: work, blocks read back, then each key of each position.

    Parameters
    ----------
    system
        The proxy and its nodes.
    writes, keys
        The writes and the keys that they create.
    nodes
        Node of each key, shape (rows, width).
    code
        Name of the code in the source: NC, RS or LRC.
    fuse
        True to include the kernel's file system.

    Returns
    -------
    Operations
        The operations.
    """
    model = system.model
    width = keys.width
    entry_bytes = int(system.aggregation.list_entry_bytes)
    list_bytes = _stripes_so_far(writes) * width * entry_bytes
    work_ns = writes.stripes * width * model.block_write_ns
    work_ns += writes.size_bytes * model.encode_ns_per_byte(code)
    work_ns += list_bytes * model.list_copy_ns_per_byte
    if fuse:
        work_ns += writes.size_bytes * model.fuse_write_ns_per_byte
    work_ns[0] += model.write_start_ns + model.encoder_start_ns(code)
    values = system.aggregation.value_bytes(keys.stripes)
    numbers = np.arange(len(writes))
    first = np.searchsorted(keys.writes, numbers)
    last = np.searchsorted(keys.writes, numbers, side="right")
    parts = []
    for index, restored in enumerate(writes.restored.tolist()):
        parts.append(working(work_ns[index]))
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
    """Plan reads: look up each position of each row of keys, then get the values of its sources.

    Parameters
    ----------
    system
        The proxy and its nodes.
    keys
        The keys to read.
    nodes
        Node of each key, shape (rows, width).
    code
        Name of the code in the source: NC, RS or LRC.
    data_bytes
        Data in each row [B], shape (rows,).
    sources
        Positions to read in each row.
    fuse
        True to include the kernel's file system.

    Returns
    -------
    Operations
        The operations.
    """
    model = system.model
    per_byte = model.read_ns_per_byte(code)
    if fuse:
        per_byte += model.fuse_read_ns_per_byte
    work_ns = data_bytes * per_byte
    work_ns[0] += model.read_start_ns
    values = system.aggregation.value_bytes(keys.stripes)
    parts = []
    for row, positions in enumerate(sources):
        parts += [exists(system, nodes[row]), working(work_ns[row])]
        if positions:
            parts.append(gets(system, nodes[row, list(positions)], values[row]))
    return Operations.joined(parts)


def working(work_ns: float) -> Operations:
    """Return one operation of the proxy's thread [ns]."""
    return operations_of(WORK, np.zeros(1, dtype=np.int64), 0, 0, round(work_ns))


def sets(
    system: StoreSystem, nodes: IntArray, value_bytes: IntArray | int
) -> Operations:
    """Return writes of keys, one after another."""
    return operations_of(
        SET, nodes, system.command_bytes + value_bytes, system.reply_bytes
    )


def gets(
    system: StoreSystem, nodes: IntArray, value_bytes: IntArray | int
) -> Operations:
    """Return reads of keys, one after another."""
    return operations_of(
        GET, nodes, system.command_bytes, system.reply_bytes + value_bytes
    )


def exists(system: StoreSystem, nodes: IntArray) -> Operations:
    """Return look-ups of keys, one after another."""
    return operations_of(EXISTS, nodes, system.command_bytes, system.reply_bytes)


def _stripes_so_far(writes: Writes) -> IntArray:
    """Return the number of stripes of the file after each write, shape (writes,)."""
    total = np.cumsum(writes.stripes)
    first = np.flatnonzero(np.diff(writes.files, prepend=-1))
    counts = np.diff(np.append(first, len(writes)))
    before = np.repeat(total[first] - writes.stripes[first], counts)
    so_far: IntArray = total - before
    return so_far


def operations_of(
    kind: int,
    nodes: IntArray,
    sent: IntArray | int,
    answered: IntArray | int,
    work_ns: int = 0,
) -> Operations:
    """Return operations of one kind, one after another."""
    columns = np.empty((5, *nodes.shape), dtype=np.int64)
    columns[0] = kind
    columns[1] = nodes
    columns[2] = sent
    columns[3] = answered
    columns[4] = work_ns
    return Operations(*columns)
