"""Participants of a file system whose data servers encode: resources, and the roles of a write.

A client, a metadata server, a master that encodes, and slaves that store run on the same engines as the
Ceph-like system. `stripesim.sim.systems.striped_fs.write` builds the op graph of a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stripesim.models.nic import NicModel
from stripesim.models.problems import ProblemsError
from stripesim.models.provenance import Provenance
from stripesim.sim.engine.graph import IntArray
from stripesim.sim.engine.program import FIFO, POOL, UNBOUND, Resources
from stripesim.sim.systems.striped_fs.costs import (
    SlaveDiskModel,
    StripedWriteModel,
    VolumeGeometry,
)

ENCODERS = ("master", "client")

# Roles of one file's writes. The home encodes and distributes. It is the master, or the client
# itself.
CLIENT_CPU, CLIENT_TX, CLIENT_RX, MDS, MASTER_TX, MASTER_RX = range(6)
HOME_CPU, HOME_TX, HOME_RX, LOCK = range(6, 10)
_FIXED_ROLES = 10
# Roles of each shard. The interfaces are unbound for the shard that stays at home.
SHARD_CPU, SHARD_RX, SHARD_TX, SHARD_REPLY, SHARD_DISK, SHARD_DIRTY = range(6)
_SHARD_ROLES = 6

_CLIENT_KINDS = ("client.cpu", "client.tx", "client.rx")
_SERVER_KINDS = ("server.cpu", "server.tx", "server.rx", "server.dirty")
# Kinds of resources that are held, not busy.
POOL_KINDS = ("file.lock", "server.dirty")

# Frames of TCP over Ethernet with an MTU of 1500, as in the other studies.
_FRAME_PAYLOAD_BYTES = 1448
_FRAME_OVERHEAD_BYTES = 90
_FRAME_HEADER_BYTES = 52


def shard_role(shard: int, part: int) -> int:
    """Return the role of one part of one shard."""
    return _FIXED_ROLES + shard * _SHARD_ROLES + part


@dataclass(frozen=True)
class FileStream:
    """One file, written record by record.

    Attributes
    ----------
    client
        Client that writes it.
    master
        Server that encodes it and keeps the first block of each stripe. Block j is on server
        ``(master + j) % servers``.
    """

    client: int = 0
    master: int = 0


@dataclass(frozen=True, kw_only=True)
class StripedSystem:
    """Clients, a metadata server and data servers on one network.

    Attributes
    ----------
    model
        Times of the steps of a write.
    geometry
        The volume.
    network_bits_per_s
        Line rate of every interface [bit/s].
    servers
        Data servers, at least k + m.
    clients
        Clients, at least 1.
    kernel_factor
        Time of the encoding kernel relative to the calibrated kernel, 0 for no encoding.
    encode_at
        ``master``: the client sends a record once. ``client``: it encodes and sends k + m blocks.
    write_back
        True if a record's transfer to the master overlaps with the distribution of the previous record.
    hdd
        Disks of the slaves. None for slaves that answer from memory that never fills.
    """

    model: StripedWriteModel
    geometry: VolumeGeometry
    network_bits_per_s: float
    servers: int = 6
    clients: int = 1
    kernel_factor: float = 1.0
    encode_at: str = "master"
    write_back: bool = True
    hdd: SlaveDiskModel | None = None

    def __post_init__(self) -> None:
        if self.servers < self.geometry.width:
            raise ProblemsError(
                f"system: servers: got {self.servers}, wanted at least k + m = {self.geometry.width}"
            )
        if self.clients < 1:
            raise ProblemsError(
                f"system: clients: got {self.clients}, wanted at least 1"
            )
        if not self.network_bits_per_s > 0:
            raise ProblemsError(
                f"system: network: got {self.network_bits_per_s} bit/s, wanted above 0"
            )
        if self.encode_at not in ENCODERS:
            raise ProblemsError(
                f"system: encode_at: got {self.encode_at!r}, wanted {' or '.join(ENCODERS)}"
            )

    @property
    def _disks(self) -> int:
        if self.hdd is None:
            return 0
        return int(self.hdd.disks_count)

    @cached_property
    def nic(self) -> NicModel:
        """Model of every interface, at the rate that transfers reach."""
        model = self.model
        return NicModel(
            rate_bits_per_s=self.network_bits_per_s * model.network_efficiency_fraction,
            frame_payload_bytes=_FRAME_PAYLOAD_BYTES,
            frame_overhead_bytes=_FRAME_OVERHEAD_BYTES,
            frame_header_bytes=_FRAME_HEADER_BYTES,
            latency_ns=0.0,
            provenance={
                "rate_bits_per_s": Provenance(
                    "given", "line rate times the fitted efficiency"
                ),
                "frame_payload_bytes": Provenance("given", "TCP over an MTU of 1500"),
                "frame_overhead_bytes": Provenance(
                    "given", "TCP, IP and Ethernet with preamble and gap"
                ),
                "frame_header_bytes": Provenance("given", "TCP and IP headers"),
                "latency_ns": Provenance(
                    "given", "part of the constant that each record costs"
                ),
            },
        )

    def resources(self, files: Sequence[FileStream], record_bytes: int) -> Resources:
        """Return all resources: clients, metadata server, servers, locks of files, disks.

        Parameters
        ----------
        files
            The files to write.
        record_bytes
            Size of a record [B].
        """
        cores = int(self.model.cores_count)
        dirty = 1
        if self.hdd is not None:
            dirty = self.hdd.records_dirty(self.geometry.shard_bytes(record_bytes))
        capacities = {"client.cpu": cores, "server.cpu": cores, "server.dirty": dirty}
        owners = [("mds", "mds")]
        owners += [
            (f"client.{i}", kind) for i in range(self.clients) for kind in _CLIENT_KINDS
        ]
        owners += [
            (f"server.{i}", kind) for i in range(self.servers) for kind in _SERVER_KINDS
        ]
        owners += [(f"file.{i}", "file.lock") for i in range(len(files))]
        owners += [
            (f"server.{i}.{disk}", "server.disk")
            for i in range(self.servers)
            for disk in range(self._disks)
        ]
        names = [
            f"{owner}.{kind.partition('.')[2]}".rstrip(".") for owner, kind in owners
        ]
        kinds = tuple(kind for _, kind in owners)
        return Resources(
            names=tuple(names),
            kinds=kinds,
            capacities=np.array(
                [capacities.get(kind, 1) for kind in kinds], dtype=np.int64
            ),
            disciplines=np.where(np.isin(kinds, POOL_KINDS), POOL, FIFO).astype(
                np.int64
            ),
        )

    def bindings(self, files: Sequence[FileStream]) -> IntArray:
        """Bind roles to resources.

        Parameters
        ----------
        files
            The files to write.

        Returns
        -------
        ndarray of int64
            One row per file, shape (files, roles).

        Raises
        ------
        ProblemsError
            If a file names a client or server that does not exist.
        """
        width = self.geometry.width
        at_master = self.encode_at == "master"
        first_lock = (
            1 + self.clients * len(_CLIENT_KINDS) + self.servers * len(_SERVER_KINDS)
        )
        first_disk = first_lock + len(files)
        rows = np.full((len(files), shard_role(width, 0)), UNBOUND, dtype=np.int64)
        for index, file in enumerate(files):
            is_client = 0 <= file.client < self.clients
            if not (is_client and 0 <= file.master < self.servers):
                raise ProblemsError(
                    f"file {index}: got client {file.client} and master {file.master}, "
                    f"wanted below {self.clients} and {self.servers}"
                )
            client = [self._client(file.client, kind) for kind in _CLIENT_KINDS]
            master = [self._server(file.master, kind) for kind in _SERVER_KINDS[:3]]
            row = rows[index]
            row[MDS] = 0
            row[LOCK] = first_lock + index
            row[[CLIENT_CPU, CLIENT_TX, CLIENT_RX]] = client
            row[[HOME_CPU, HOME_TX, HOME_RX]] = master if at_master else client
            if at_master:
                row[[MASTER_TX, MASTER_RX]] = master[1:]
            for shard in range(width):
                server = (file.master + shard) % self.servers
                row[shard_role(shard, SHARD_CPU)] = self._server(server, "server.cpu")
                if self.hdd is not None:
                    # A chunk is on one disk. Files are spread over the disks of a server.
                    disk = server * self._disks + index % self._disks
                    row[shard_role(shard, SHARD_DISK)] = first_disk + disk
                    dirty = self._server(server, "server.dirty")
                    row[shard_role(shard, SHARD_DIRTY)] = dirty
                if shard == 0 and at_master:
                    continue
                row[shard_role(shard, SHARD_RX)] = self._server(server, "server.rx")
                row[shard_role(shard, SHARD_TX)] = self._server(server, "server.tx")
                row[shard_role(shard, SHARD_REPLY)] = row[HOME_RX]
        return rows

    def _client(self, client: int, kind: str) -> int:
        return 1 + client * len(_CLIENT_KINDS) + _CLIENT_KINDS.index(kind)

    def _server(self, server: int, kind: str) -> int:
        first = 1 + self.clients * len(_CLIENT_KINDS)
        return first + server * len(_SERVER_KINDS) + _SERVER_KINDS.index(kind)
