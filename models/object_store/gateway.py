"""The RADOS gateway: processor time of requests, and how it divides objects into RADOS operations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from stripesim.models.provenance import MeasuredModel

#: Keys that a LIST requests from a shard at least.
_LISTED_MIN = 8


class ObjectLayout(NamedTuple):
    """RADOS objects of one S3 object: the head, and the tail in stripes."""

    head_bytes: int  #: Data in the head object [B]
    tail_bytes: tuple[int, ...]  #: Size of each tail object [B]

    @property
    def parts_bytes(self) -> tuple[int, ...]:
        """Size of the head and of each tail object [B]."""
        return (self.head_bytes, *self.tail_bytes)


@dataclass(frozen=True, kw_only=True)
class GatewayModel(MeasuredModel):
    """Costs of a RADOS gateway, and its limits on data in flight.

    Notes
    -----
    Processor time covers everything that the gateway does for a request: HTTP, authentication, the checksums
    of a PUT, and both network stacks. Data also passes the messenger threads of librados, of which a gateway
    has few, and each request holds state that all requests of its gateway share.

    An object's first bytes, up to a chunk, are in its head object, together with all its metadata. The others
    are in tail objects of a chunk each. In a pool that writes whole stripes, a chunk is a whole number of
    stripes.

    References
    ----------
    Ceph v19.2: ``src/rgw/driver/rados/rgw_putobj_processor.cc`` (``AtomicObjectProcessor``),
    ``src/rgw/driver/rados/rgw_rados.cc`` (``get_max_aligned_size``, ``Object::Write::_do_write_meta``,
    ``Object::Delete::delete_obj``, ``get_obj_iterate_cb``), ``src/cls/rgw/cls_rgw.cc``
    (``rgw_bucket_prepare_op``, ``rgw_bucket_complete_op``).
    """

    positive: ClassVar = (
        "messenger_threads_count",
        "chunk_bytes",
        "put_window_bytes",
        "get_window_bytes",
        "budget_bytes",
        "list_keys_max_count",
        "list_readahead_count",
        "list_in_flight_max_count",
    )
    #: Time that a client's thread takes for a byte: HTTP, TLS, copies and checksums [ns/B]
    client_ns_per_byte: float
    read_ns: float  #: Processor time of a GET, HEAD or LIST without its bytes [ns]
    write_ns: float  #: Processor time of a PUT or DELETE without its bytes [ns]
    #: Processor time of a byte that a gateway returns, without the messenger [ns/B]
    get_ns_per_byte: float
    #: Processor time of a byte that a gateway stores, with its MD5, without the messenger [ns/B]
    put_ns_per_byte: float
    tls_ns_per_byte: float  #: Additional processor time of a byte with TLS [ns/B]
    messenger_threads_count: int  #: Threads of librados that send and receive
    messenger_get_ns_per_byte: float  #: Such a thread: a byte from an OSD [ns/B]
    messenger_put_ns_per_byte: float  #: Such a thread: a byte to an OSD [ns/B]
    #: Time for which a request holds state that all requests of its gateway share [ns]
    serial_ns: float
    #: Processor time of an update of a bucket index, on each of its OSDs, beyond that of a write without data
    #: [ns]
    index_transaction_ns: float
    #: Key-value thread: time of such an update beyond that of a write without data [ns]
    index_kv_ns: float
    #: OSD: time of a read of a head with its attributes, beyond that of a read of data [ns]
    head_read_ns: float
    #: Processor time of a gateway for each index shard that a LIST asks [ns]
    list_shard_ns: float
    list_key_ns: float  #: The same for each key that the shards return [ns]
    #: OSD: time of each key that an index shard returns to a LIST [ns]
    index_key_ns: float
    #: What longer names add to an operation on an RBD object, in the request and in its reply together [B]
    name_bytes: int
    #: Arguments and results of an update of a bucket index, mean of its two halves [B]
    index_call_bytes: int
    index_sub_write_bytes: int  #: Sub-write of such an update [B]
    index_log_bytes: int  #: What such an update writes to the log of each OSD [B]
    index_entry_bytes: int  #: Entry of a bucket index as a LIST reads it [B]
    #: Attributes of a head object: manifest, ACL, etag, tags. A PUT sends and stores them, a read of the head
    #: returns them [B]
    attributes_bytes: int
    head_call_bytes: int  #: What the parts of the write of a head add to its messages with the client [B]
    #: What the write of a new object adds to the log of each OSD, without attributes, and the roll-forward of
    #: one in a coded pool, which has no old data to delete [B]
    new_object_log_bytes: int
    new_object_roll_forward_log_bytes: int
    remove_sub_write_bytes: int  #: Sub-write of the removal of an object [B]
    remove_log_bytes: int  #: What a removal writes to the log of each OSD [B]
    #: What the removal of an object in a coded pool writes again for each block of 4 KiB on a shard, to keep
    #: the object for a rollback: checksums and extents [B]
    kept_block_log_bytes: int
    #: Entry of an object in a list of garbage without its tails: tag and time [B]
    garbage_entry_bytes: int
    garbage_tail_bytes: int  #: What a removed tail object adds to that entry [B]
    #: Sub-write of an update of that list without the entry [B]
    garbage_sub_write_bytes: int
    #: What an update of that list writes to the list beside the entry, and to the log [B]
    garbage_head_bytes: int
    garbage_log_bytes: int
    #: Keys that a LIST asks for at least, to read ahead [count]
    list_readahead_count: int
    #: Index shards that a LIST asks at the same time, at most [count]
    list_in_flight_max_count: int
    request_bytes: int  #: HTTP header of a request [B]
    reply_bytes: int  #: HTTP header of a reply [B]
    list_entry_bytes: int  #: An object in the reply to a LIST [B]
    list_keys_max_count: int  #: Objects that one LIST returns at most [count]
    #: Data of a head or tail object, and of one RADOS operation, at most [B]
    chunk_bytes: int
    put_window_bytes: int  #: Writes of tail objects of one PUT in flight, at most [B]
    get_window_bytes: int  #: Reads of tail objects of one GET in flight, at most [B]
    #: Data of reads and writes of one gateway in flight, at most [B] (objecter_inflight_op_bytes)
    budget_bytes: int
    #: Time until clients use other gateways in place of one that has failed [ns]
    failover_ns: int

    def layout(self, size_bytes: int, alignment_bytes: int = 1) -> ObjectLayout:
        """Return the RADOS objects of an object.

        Parameters
        ----------
        size_bytes
            Size of the object [B].
        alignment_bytes
            Chunks are a multiple of this, the stripe of a pool that only appends whole stripes [B].
        """
        chunk_bytes = self.aligned_chunk_bytes(alignment_bytes)
        head_bytes = min(size_bytes, chunk_bytes)
        starts = range(head_bytes, size_bytes, chunk_bytes)
        tails = tuple(min(chunk_bytes, size_bytes - start) for start in starts)
        return ObjectLayout(head_bytes, tails)

    def listed_keys_of_shard(self, keys: int, shards: int) -> int:
        r"""Return the keys that a LIST requests from each of a bucket's index shards.

        Notes
        -----
        A gateway wants one key more than it returns, to know whether there are more. Keys fall on shards at
        random, so that a shard may hold more than its part of them. Ceph requests
        :math:`1 + n / s + \sqrt{2 n \ln(s) / s}` of :math:`n` keys on :math:`s` shards, at least 8 and at
        most all.

        References
        ----------
        Ceph v20.2, ``src/rgw/driver/rados/rgw_rados.cc`` (``list_objects_ordered``,
        ``calc_ordered_bucket_list_per_shard``).

        Examples
        --------
        With 11 shards, :math:`1 + 91 + \sqrt{2002 \cdot 2.398 / 11} = 1 + 91 + 20.9`:

        >>> from types import SimpleNamespace
        >>> GatewayModel.listed_keys_of_shard(SimpleNamespace(list_readahead_count=1000), 100, 11)
        112
        """
        wanted = max(keys, self.list_readahead_count) + 1
        spread = math.sqrt(2 * wanted * math.log(shards) / shards)
        return min(wanted, max(_LISTED_MIN, 1 + int(wanted // shards + spread)))

    def operations_in_flight(self, size_bytes: int) -> int:
        """Return the operations of a size [B] that one gateway has in flight at most [count]."""
        return max(1, self.budget_bytes // size_bytes)

    def aligned_chunk_bytes(self, alignment_bytes: int) -> int:
        """Return the chunk of a pool with an alignment [B]: whole stripes, at least one."""
        units = self.chunk_bytes // alignment_bytes
        return max(1, units) * alignment_bytes
