"""The RADOS gateway: processor time of requests, and how it divides objects into RADOS operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from stripesim.models.provenance import MeasuredModel


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
        "list_keys_max_count",
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
    index_entry_bytes: int  #: Entry of a bucket index that an update writes [B]
    #: Attributes of a head object: manifest, ACL, etag, content type [B]
    attributes_bytes: int
    request_bytes: int  #: HTTP header of a request [B]
    reply_bytes: int  #: HTTP header of a reply [B]
    list_entry_bytes: int  #: An object in the reply to a LIST [B]
    list_keys_max_count: int  #: Objects that one LIST returns at most [count]
    #: Data of a head or tail object, and of one RADOS operation, at most [B]
    chunk_bytes: int
    put_window_bytes: int  #: Writes of tail objects of one PUT in flight, at most [B]
    get_window_bytes: int  #: Reads of tail objects of one GET in flight, at most [B]

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

    def aligned_chunk_bytes(self, alignment_bytes: int) -> int:
        """Return the chunk of a pool with an alignment [B]: whole stripes, at least one."""
        whole = self.chunk_bytes // alignment_bytes
        return max(1, whole) * alignment_bytes
