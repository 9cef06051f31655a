"""Paths of S3 requests: from the client through a gateway to RADOS objects, and back.

A path embeds the paths of the RADOS operations that the gateway sends. `S3Paths` compiles one for each kind
of request. Read `S3Paths.put` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, Literal

from stripesim.models.nic import NicModel
from stripesim.models.object_store.gateway import GatewayModel, ObjectLayout
from stripesim.models.object_store.store import FRESH
from stripesim.sim.ceph import roles
from stripesim.sim.ceph.cluster import Models
from stripesim.sim.ceph.gateway import service
from stripesim.sim.ceph.gateway.operations import (
    attributes_path,
    garbage_path,
    head_read_context,
    head_write_context,
    index_update_path,
    new_object_context,
    remove_path,
    with_long_names,
)
from stripesim.sim.ceph.gateway.service import Gateways, RequestRoles
from stripesim.sim.ceph.kinds.kind import PoolKind
from stripesim.sim.ceph.kinds.requests import RequestShape
from stripesim.sim.ceph.paths import PathContext
from stripesim.sim.ceph.paths.message import cut_message
from stripesim.sim.ceph.phases import Phase
from stripesim.sim.engine.graph import NO_ROLE, NO_SHARD, Template
from stripesim.sim.engine.graph_builder import GraphBuilder

S3Op = Literal["put", "get", "head", "list", "delete", "part", "complete", "range"]
#: Operations that write. Each updates the index as well, before its reply and after it.
WRITING_OPS: frozenset[str] = frozenset({"put", "part", "complete", "delete"})
#: Name of the graph of a LIST, the only one whose size depends on the index shards of a bucket.
LIST_GRAPH: Final = "list"
#: Chunks that a sender is ahead of the work of its receiver: what socket buffers hold.
_CHUNKS_AHEAD = 2


@dataclass(frozen=True)
class S3Paths:
    """Compile the paths of S3 requests to a pool.

    Parameters
    ----------
    kind
        The data pool, which plans the operations on heads and tails.
    contexts
        State of the placement groups of the head and of each tail object.
    tls
        True if clients use TLS.
    index_contexts
        State of the placement group of each index shard that a request names. Empty: all are healthy.
    """

    kind: PoolKind
    contexts: Sequence[PathContext]
    tls: bool
    index_contexts: Sequence[PathContext] = ()

    @property
    def _models(self) -> Models:
        return self.contexts[0].models

    @property
    def _model(self) -> GatewayModel:
        model = self.kind.pool.cluster.models.gateway
        assert model is not None
        return model

    @property
    def _gateways(self) -> Gateways:
        gateways = self.kind.pool.cluster.gateways
        assert gateways is not None
        return gateways

    @property
    def _roles(self) -> RequestRoles:
        return self._gateways.roles

    def _index_context(self, shard: int) -> PathContext:
        """Return the context of operations on an index shard that the request names."""
        if self.index_contexts:
            return with_long_names(self.index_contexts[shard], self._model)
        return self._healthy_index

    @cached_property
    def _healthy_index(self) -> PathContext:
        pool = self.kind.pool
        scheme = self._gateways.index_scheme
        context = PathContext(
            models=pool.cluster.models,
            scheme=scheme,
            geometry=scheme.geometry(pool.stripe_unit_bytes),
        )
        return with_long_names(context, self._model)

    def _context(self, number: int) -> PathContext:
        """Return the context of operations on the head (0) or a tail object."""
        return with_long_names(self.contexts[number], self._model)

    def layout(self, size_bytes: int) -> ObjectLayout:
        """Return the RADOS objects of an S3 object in the pool."""
        return self._model.layout(size_bytes, self.kind.append_bytes)

    def objects_count(self, op: S3Op, size_bytes: int) -> int:
        """Return the number of RADOS objects of the data pool that a request names [count]."""
        if op == "list":
            return 0
        parts = len(self.layout(size_bytes).parts_bytes)
        if op in ("put", "get", "part"):
            return parts
        return parts + 1 if op == "range" else 1

    def index_objects_count(self, op: S3Op) -> int:
        """Return the number of index shards that a request names [count]."""
        if op == "list":
            return self._gateways.index_shards
        return int(op in WRITING_OPS)

    def compile(self, op: S3Op, size_bytes: int) -> Template:
        """Compile a request for an object, a part or a range of a size [B], or for a number of keys."""
        paths: dict[S3Op, Callable[[], Template]] = {
            "put": partial(self.put, size_bytes),
            "part": partial(self.put, size_bytes, is_part=True),
            "complete": self.complete,
            "get": partial(self.get, size_bytes),
            "range": partial(self.range, size_bytes),
            "head": self.head,
            "list": partial(self.list, size_bytes),
            "delete": partial(self.delete, size_bytes),
        }
        return paths[op]()

    def put(self, size_bytes: int, *, is_part: bool = False) -> Template:
        """Compile a PUT, or the upload of a part, which also notes the part before the reply.

        Notes
        -----
        The gateway keeps the first chunk for the head and writes each further one to a tail object, with at
        most `put_window_bytes` in flight. When all tails are written, it marks the object in the bucket
        index, writes the head, and replies. The second update of the index completes the mark, without
        delaying the reply.
        """
        layout = self.layout(size_bytes)
        gateway = self._begin(f"put {size_bytes} B")
        graph = gateway.graph
        step = self._stored_tail(gateway, layout)
        step = self._update_index(graph, [step], "index prepare")
        step = self._write(gateway, 0, layout.head_bytes, [step])
        if is_part:
            step = self._update_index(graph, [step], "index: part noted")
        self._update_index(graph, [step], "index complete")
        return graph.finish(reply=gateway.reply(0, step))

    def _stored_tail(self, gateway: _Gateway, layout: ObjectLayout) -> int:
        """Receive all chunks and write those of the tail. Return the step when all are written."""
        graph = gateway.graph
        window_count = self._window_count(self._model.put_window_bytes)
        prepared = graph.issue
        arrived: list[int] = []
        worked: list[int] = []
        written: list[int] = []
        for number, chunk_bytes in enumerate(layout.parts_bytes):
            prepared = gateway.client(chunk_bytes, [prepared])
            before = [prepared, *arrived[-1:]]
            if number >= _CHUNKS_AHEAD:
                before.append(worked[number - _CHUNKS_AHEAD])
            header_bytes = 0 if number else self._model.request_bytes
            arrived.append(gateway.receive(header_bytes + chunk_bytes, before))
            ready = [arrived[-1], *worked[-1:]]
            if not number:
                ready = [gateway.begin(arrived[-1], is_write=True)]
            work_ns = self._byte_ns("put") * chunk_bytes
            done = gateway.work(work_ns, ready, "store bytes")
            if number > window_count:
                # The window has room once the tail before those in flight is written.
                done = graph.join([done, written[number - 1 - window_count]])
            if number:
                written.append(self._write(gateway, number, chunk_bytes, [done]))
            worked.append(done)
        return graph.join([*worked[-1:], *written], label="tail written")

    def get(self, size_bytes: int) -> Template:
        """Compile a GET.

        Notes
        -----
        One operation reads the head with its attributes. Then the gateway reads tail objects ahead, at most
        `get_window_bytes` beyond what it has returned, and returns them in order.
        """
        return self._returned(self.layout(size_bytes).parts_bytes, size_bytes)

    def _returned(self, parts_bytes: Sequence[int], size_bytes: int) -> Template:
        """Compile a GET of a head and tails of these sizes [B]."""
        gateway = self._begin(f"get {size_bytes} B")
        graph = gateway.graph
        begun = self._request(gateway, is_write=False)
        if parts_bytes[0]:
            head = self._read(gateway, 0, parts_bytes[0], [begun])
        else:
            head = self._attributes(graph, [begun])
        window_count = self._window_count(self._model.get_window_bytes)
        sent: list[int] = []
        taken: list[int] = []
        for number, chunk_bytes in enumerate(parts_bytes):
            arrived = head
            if number:
                room = sent[number - window_count] if number > window_count else head
                arrived = self._read(gateway, number, chunk_bytes, [head, room])
            work_ns = self._byte_ns("get") * chunk_bytes
            step = gateway.work(work_ns, [arrived, *sent[-1:]], "return bytes")
            header_bytes = 0 if number else self._model.reply_bytes
            before = [step]
            if number >= _CHUNKS_AHEAD:
                before.append(taken[number - _CHUNKS_AHEAD])
            left, received = gateway.send(header_bytes + chunk_bytes, before)
            sent.append(left)
            taken.append(gateway.client(chunk_bytes, [received, *taken[-1:]]))
        return graph.finish(reply=taken[-1])

    def range(self, size_bytes: int) -> Template:
        """Compile a GET of a range of an object that was uploaded in parts, whose head has no data."""
        layout = self.layout(size_bytes)
        return self._returned((0, *layout.parts_bytes), size_bytes)

    def complete(self) -> Template:
        """Compile the completion of an upload: read the list of parts, and write a head without data."""
        gateway = self._begin("complete")
        graph = gateway.graph
        step = self._request(gateway, is_write=True)
        path = attributes_path(
            self._index_context(0), returned_bytes=self._model.attributes_bytes
        )
        own = self._roles.of_object(
            self._roles.index(0), self._gateways.index_scheme.width
        )
        step = graph.embed(path, after=[step], roles=own, label="index: read parts")
        step = self._update_index(graph, [step], "index prepare")
        # Costs about as much as the write of a head without data.
        path = remove_path(self._context(0), self._model, 0)
        step = self._on_data(graph, path, 0, [step], "head")
        self._update_index(graph, [step], "index complete")
        return graph.finish(reply=gateway.reply(0, step))

    def head(self) -> Template:
        """Compile a HEAD: a read of the head's attributes."""
        gateway = self._begin("head")
        begun = self._request(gateway, is_write=False)
        step = self._attributes(gateway.graph, [begun])
        return gateway.graph.finish(reply=gateway.reply(0, step))

    def list(self, keys: int) -> Template:
        """Compile a LIST of some keys, which all index shards of the bucket hold in equal parts.

        Notes
        -----
        The gateway asks all shards, some of them at a time, decodes the keys that they return, and merges
        them in order. It asks once: a reply with at least half of the keys is enough.

        References
        ----------
        Ceph v20.2, ``src/rgw/driver/rados/rgw_rados.cc`` (``list_objects_ordered``,
        ``cls_bucket_list_ordered``).
        """
        gateways = self._gateways
        model = self._model
        gateway = self._begin(LIST_GRAPH)
        graph = gateway.graph
        begun = self._request(gateway, is_write=False)
        keys_of_shard = model.listed_keys_of_shard(keys, gateways.index_shards)
        if keys < model.list_keys_max_count:
            # The bucket has no more.
            own_keys = -(-keys // gateways.index_shards)
            keys_of_shard = min(keys_of_shard, own_keys)
        shard_bytes = keys_of_shard * model.index_entry_bytes
        width = gateways.index_scheme.width
        read: list[int] = []
        for shard in range(gateways.index_shards):
            before = [begun]
            if shard >= model.list_in_flight_max_count:
                before = [read[shard - model.list_in_flight_max_count]]
            path = attributes_path(
                self._index_context(shard),
                returned_bytes=shard_bytes,
                keys_ns=keys_of_shard * model.index_key_ns,
            )
            own = self._roles.of_object(self._roles.index(shard), width)
            label = f"index shard {shard}"
            read.append(graph.embed(path, after=before, roles=own, label=label))
        arrived = graph.join(read, label="all shards here")
        reply_bytes = keys * model.list_entry_bytes
        of_shard_ns = model.list_shard_ns + keys_of_shard * model.list_key_ns
        work_ns = gateways.index_shards * of_shard_ns
        work_ns += self._byte_ns("get") * reply_bytes
        step = gateway.work(work_ns, [arrived], "merge keys")
        return graph.finish(reply=gateway.reply(reply_bytes, step))

    def delete(self, size_bytes: int) -> Template:
        """Compile a DELETE of an object of a size [B].

        Notes
        -----
        The gateway reads the head's attributes, marks the object in the bucket index, and removes the head.
        It notes the tail objects in a list of garbage, which is collected after hours, and not in this path.
        The second update of the index does not delay the reply.
        """
        gateway = self._begin("delete")
        graph = gateway.graph
        step = self._request(gateway, is_write=True)
        step = self._attributes(graph, [step])
        step = self._update_index(graph, [step], "index prepare")
        layout = self.layout(size_bytes)
        path = remove_path(self._context(0), self._model, layout.head_bytes)
        step = self._on_data(graph, path, 0, [step], "head")
        tails = len(layout.tail_bytes)
        if tails:
            step = self._note_garbage(graph, tails, step)
        self._update_index(graph, [step], "index complete")
        return graph.finish(reply=gateway.reply(0, step))

    def _begin(self, name: str) -> _Gateway:
        """Return the empty graph of a request."""
        return _Gateway(name, self._models, self._model, self._gateways)

    def _request(self, gateway: _Gateway, *, is_write: bool) -> int:
        """Send a request without data to the gateway, and begin its work."""
        arrived = gateway.receive(self._model.request_bytes, [gateway.graph.issue])
        return gateway.begin(arrived, is_write=is_write)

    def _byte_ns(self, direction: Literal["put", "get"]) -> float:
        """Return the processor time of a byte at the gateway [ns/B]."""
        model = self._model
        own_ns = model.put_ns_per_byte if direction == "put" else model.get_ns_per_byte
        return own_ns + (model.tls_ns_per_byte if self.tls else 0.0)

    def _window_count(self, window_bytes: int) -> int:
        """Return the tail objects in flight [count]."""
        chunk_bytes = self._model.aligned_chunk_bytes(self.kind.append_bytes)
        return max(1, window_bytes // chunk_bytes)

    def _update_index(
        self, graph: GraphBuilder, after: Iterable[int], label: str
    ) -> int:
        """Update the object's shard of the bucket index."""
        gateways = self._gateways
        path = index_update_path(
            self._index_context(0), self._model, exclusive=gateways.exclusive
        )
        own = self._roles.of_object(self._roles.index(0), gateways.index_scheme.width)
        return graph.embed(path, after=after, roles=own, label=label)

    def _note_garbage(self, graph: GraphBuilder, tails: int, after: int) -> int:
        """Add tail objects to a list of garbage, which is in a pool like that of the index."""
        path = garbage_path(self._index_context(0), self._model, tails)
        width = self._gateways.index_scheme.width
        own = self._roles.of_object(self._roles.index(0), width)
        return graph.embed(path, after=[after], roles=own, label="garbage noted")

    def _attributes(self, graph: GraphBuilder, after: Iterable[int]) -> int:
        """Read the attributes of the head."""
        context = head_read_context(self._context(0), self._model, has_data=False)
        path = attributes_path(context, returned_bytes=0)
        return self._on_data(graph, path, 0, after, "head")

    def _write(
        self, gateway: _Gateway, number: int, size_bytes: int, after: Iterable[int]
    ) -> int:
        """Write a new head (0) or tail object in full."""
        shape = RequestShape(True, 0, size_bytes, 0, FRESH, FRESH)
        if self._context(number).erasure:
            shape = shape._replace(head=0, tail=0)
        writes = new_object_context if number else head_write_context
        context = writes(self._context(number), self._model)
        path = self.kind.plan(context, shape).compile()
        name = _object_name(number)
        messenger_ns = self._model.messenger_put_ns_per_byte * size_bytes
        paid = gateway.pay(size_bytes, after, name)
        sent = gateway.work(messenger_ns, [paid], "send to OSD", service.MESSENGER)
        stored = self._on_data(gateway.graph, path, number, [sent], name)
        gateway.repay(size_bytes, stored, name)
        return stored

    def _read(
        self, gateway: _Gateway, number: int, size_bytes: int, after: Iterable[int]
    ) -> int:
        """Read the head (0) or a tail object in full."""
        shape = RequestShape(False, 0, size_bytes, size_bytes, 0, 0)
        context = self._context(number)
        if not number:
            context = head_read_context(context, self._model, has_data=True)
        path = self.kind.plan(context, shape).compile()
        name = _object_name(number)
        paid = gateway.pay(size_bytes, after, name)
        arrived = self._on_data(gateway.graph, path, number, [paid], name)
        messenger_ns = self._model.messenger_get_ns_per_byte * size_bytes
        received = gateway.work(messenger_ns, [arrived], "receive", service.MESSENGER)
        gateway.repay(size_bytes, received, name)
        return received

    def _on_data(
        self,
        graph: GraphBuilder,
        path: Template,
        number: int,
        after: Iterable[int],
        label: str,
    ) -> int:
        """Embed the path of an operation on the head (0) or a tail object."""
        first = self._roles.tail(number - 1) if number else self._roles.head
        own = self._roles.of_object(first, self._roles.width)
        return graph.embed(path, after=after, roles=own, label=label)


def _object_name(number: int) -> str:
    return f"tail {number}" if number else "head"


class _Gateway:
    """Add the steps of the client and of the gateway to a graph."""

    def __init__(
        self, name: str, models: Models, model: GatewayModel, gateways: Gateways
    ) -> None:
        self.graph = GraphBuilder(name)
        self._nic: NicModel = models.public_nic
        self._slice_ns = models.threads.slice_ns
        self._model = model
        self._roles = gateways.roles
        self._unit_bytes = gateways.unit_bytes
        self._on_osd_hosts = gateways.on_osd_hosts

    def receive(self, size_bytes: int, after: Iterable[int]) -> int:
        """Send bytes from the client to the gateway and return their arrival."""
        ends = (roles.CLIENT_TX, self._roles.gateway(service.RX))
        _, arrived = self._carry(size_bytes, after, "request", ends)
        return arrived

    def send(self, size_bytes: int, after: Iterable[int]) -> tuple[int, int]:
        """Send bytes from the gateway to the client. Return the steps when they have left and arrived."""
        ends = (self._roles.gateway(service.TX), roles.CLIENT_RX)
        return self._carry(size_bytes, after, "reply", ends)

    def reply(self, size_bytes: int, after: int) -> int:
        """Send a reply of some bytes after its header, and return its arrival."""
        _, arrived = self.send(self._model.reply_bytes + size_bytes, [after])
        return arrived

    def begin(self, after: int, *, is_write: bool) -> int:
        """Process a request once its header is here."""
        model = self._model
        work_ns = model.write_ns if is_write else model.read_ns
        step = self.work(work_ns, [after], "process request")
        return self.graph.use(
            self._roles.gateway(service.SERIAL),
            model.serial_ns,
            after=[step],
            label="gateway: shared state",
            phase=Phase.CLIENT,
        )

    def pay(self, size_bytes: int, after: Iterable[int], name: str) -> int:
        """Wait until the gateway may have the data of one more operation in flight."""
        if not self._takes_unit(size_bytes):
            return self.graph.join(after)
        return self.graph.acquire(
            self._roles.gateway(service.BUDGET),
            after=after,
            label=f"gateway: room in flight for {name}",
            phase=Phase.CLIENT,
        )

    def repay(self, size_bytes: int, after: int, name: str) -> None:
        """Release the unit of an operation, so that another can have its data in flight."""
        if self._takes_unit(size_bytes):
            role = self._roles.gateway(service.BUDGET)
            label = f"gateway: room back from {name}"
            self.graph.release(role, after=[after], label=label)

    def _takes_unit(self, size_bytes: int) -> bool:
        """Return True if an operation is nearer to a unit of the budget than to none."""
        return 2 * size_bytes >= self._unit_bytes

    def client(self, size_bytes: int, after: Iterable[int]) -> int:
        """Prepare or take bytes on the client's thread."""
        return self.graph.delay(
            NO_ROLE,
            self._model.client_ns_per_byte * size_bytes,
            after=after,
            label="client: bytes",
            phase=Phase.CLIENT,
        )

    def work(
        self,
        work_ns: float,
        after: Iterable[int],
        label: str,
        thread_part: int = service.THREAD,
    ) -> int:
        """Run a thread of the gateway on a core."""
        graph = self.graph
        role = self._roles.gateway(thread_part)
        work_label = f"gateway: {label}"
        thread = graph.acquire(
            role, after=after, label=f"thread for {work_label}", phase=Phase.CLIENT
        )
        step = graph.use(
            self._roles.gateway(service.CPU),
            work_ns,
            after=[thread],
            label=work_label,
            phase=Phase.CLIENT,
            gateway_ns=round(work_ns),
            cpu_ns=round(work_ns) if self._on_osd_hosts else 0,
        )
        if self._slice_ns:
            graph.on_thread(step, thread)
        graph.release(role, after=[step], label=f"thread back from {work_label}")
        return step

    def _carry(
        self, size_bytes: int, after: Iterable[int], name: str, ends: tuple[int, int]
    ) -> tuple[int, int]:
        """Carry bytes from interface to interface, in pieces that overlap."""
        graph = self.graph
        nic = self._nic
        message = cut_message(nic, size_bytes, name, NO_SHARD)
        left = graph.join(after)
        arrived = left
        for piece in message.pieces:
            held_ns = nic.serialise_ns(piece.size_bytes)
            use = partial(graph.use, demand_ns=held_ns, phase=Phase.PUBLIC_NET)
            left = use(
                ends[0],
                after=[left],
                label=f"gateway: {name} sent{piece.label}",
                public_net_bytes=nic.traffic_bytes(piece.size_bytes),
                messages=piece.completes,
            )
            wire = graph.delay(
                ends[1],
                nic.latency_ns,
                after=[left],
                label=f"gateway: public wire{piece.label}",
                phase=Phase.PUBLIC_NET,
            )
            before = [wire] if arrived == left else [wire, arrived]
            arrived = use(
                ends[1], after=before, label=f"gateway: {name} received{piece.label}"
            )
        return left, arrived
