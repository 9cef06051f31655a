"""A pool of a cluster: redundancy scheme, objects, and state of its placement groups."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from stripesim.models.coding import (
    WHOLE_STRIPES,
    RedundancyScheme,
    StripeGeometry,
    leaders,
)
from stripesim.models.placement import pgs_of_objects
from stripesim.models.problems import UnavailableError
from stripesim.sim.ceph.cluster import NO_OSD, Cluster
from stripesim.sim.ceph.paths import PathContext, object_map_path
from stripesim.sim.ceph.sites import SiteDelays
from stripesim.sim.engine.graph import IntArray, Template
from stripesim.sim.engine.program import AnyIntArray, Bindings, with_client


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A pool of objects with one redundancy scheme."""

    cluster: Cluster  #: The cluster, with the `acting` sets of this pool
    scheme: RedundancyScheme
    #: Chunk of one stripe on one shard that was asked for [B]. `geometry` has the one that is stored
    stripe_unit_bytes: int
    object_bytes: int  #: Object size of an image [B]
    #: Object name prefixes of the first images, where a measurement states them
    image_prefixes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Pool: {self.scheme.name} on {self.cluster!r}>"

    @cached_property
    def geometry(self) -> StripeGeometry:
        """Stripe geometry of the scheme, whose chunks codes that divide them into parts round up."""
        return self.scheme.geometry(self.stripe_unit_bytes)

    @property
    def leaders(self) -> tuple[int, ...]:
        """Shards that may be the primary."""
        scheme = self.scheme
        policy = self.cluster.models.ec
        if scheme.kind == "replicated":
            policy = WHOLE_STRIPES
        return leaders(k=scheme.k, width=scheme.width, policy=policy)

    @cached_property
    def primaries(self) -> IntArray:
        """Primary shard of each placement group: the first present shard that may lead, shape (groups,)."""
        present = self.cluster.acting != NO_OSD
        if not present.any(axis=1).all():
            lost = int(np.flatnonzero(~present.any(axis=1))[0])
            raise UnavailableError(f"placement group {lost:x}: no OSD is left")
        may_lead = np.isin(np.arange(self.scheme.width), self.leaders)
        # If none of them is left, data is lost. The caller reports it.
        leading = present & (may_lead | ~(present & may_lead).any(axis=1)[:, None])
        first: IntArray = leading.argmax(axis=1).astype(np.int64)
        return first

    @property
    def primary_osds(self) -> IntArray:
        """Primary of each placement group, shape (groups,)."""
        cluster = self.cluster
        osds: IntArray = cluster.acting[np.arange(cluster.groups), self.primaries]
        return osds

    def context(
        self,
        primary: int,
        missing: frozenset[int],
        catching_up: frozenset[int] = frozenset(),
    ) -> PathContext:
        """Return the path context for one state of a placement group."""
        return PathContext(
            models=self.cluster.models,
            scheme=self.scheme,
            geometry=self.geometry,
            primary=primary,
            missing=missing,
            recovery_chunk_bytes=self.cluster.recovery_chunk_bytes,
            recovery_sync_ns=self.cluster.recovery_sync_ns,
            catching_up=catching_up,
            hinted_writes=self.cluster.hinted_writes,
            site_delays=self._site_delays,
        )

    @property
    def _site_delays(self) -> SiteDelays | None:
        sites = self.cluster.sites
        return None if sites is None else sites.delays

    @cached_property
    def _views(self) -> tuple[list[PathContext], IntArray]:
        absent = self.cluster.acting == NO_OSD
        looks = np.column_stack([self.primaries, absent])
        unique, firsts, inverse = np.unique(
            looks, axis=0, return_index=True, return_inverse=True
        )
        # Number the states by their first placement group.
        order = np.argsort(firsts)
        number_of = np.empty(len(order), dtype=np.int64)
        number_of[order] = np.arange(len(order))
        contexts = [
            self._context_of(group, unique[look])
            for look, group in zip(order, firsts[order], strict=True)
        ]
        return contexts, number_of[inverse.reshape(-1)]

    def _context_of(self, group: int, look: IntArray) -> PathContext:
        """Return the context for a group's primary and missing shards, or raise if too many are lost."""
        missing = frozenset(np.flatnonzero(look[1:]).tolist())
        if not self.scheme.can_decode(missing):
            raise UnavailableError(
                f"placement group {group:x}: {self.scheme.name} has lost shards {sorted(missing)}, "
                f"it tolerates {self.scheme.failures_tolerated}"
            )
        return self.context(int(look[0]), missing)

    @property
    def contexts(self) -> list[PathContext]:
        """Contexts of the distinct placement group states, each a primary and its missing shards."""
        return self._views[0]

    @property
    def views(self) -> IntArray:
        """Index of each placement group's state in `contexts`, shape (groups,)."""
        return self._views[1]

    def book(self) -> Book:
        """Return a book with the binding rows of clients. `Layout` adds those of placement groups."""
        cluster = self.cluster
        if cluster.one_client and cluster.object_maps is None:
            return Book(np.zeros((0, cluster.roles), dtype=np.int32))
        return Book(cluster.client_rows())

    def group_bindings(self, groups: IntArray) -> Bindings:
        """Return the binding row of each of some placement groups, shape (n, roles)."""
        cluster = self.cluster
        return cluster.bind(cluster.acting[groups], self.primaries[groups], groups)

    def binding_of(
        self, rows: IntArray, clients: IntArray, images: IntArray
    ) -> IntArray:
        """Return the binding of each request, given the row of its placement group."""
        cluster = self.cluster
        if cluster.object_maps is not None:
            return with_client(rows, images)
        if cluster.one_client:
            return rows
        return with_client(rows, clients)

    @property
    def has_clients_at_home(self) -> bool:
        """True if messages between a client and a primary of its own host do not cross the network.

        Messages of a request to several OSDs share the roles of the client's interface. Clients may also read
        from other OSDs than the primary (direct reads of shards, reads of the nearest copy). Then all their
        messages cross it. A message to an object map crosses it only if the one to the primary does.
        """
        models = self.cluster.models
        asks_others = models.local_reads or (
            models.ec.direct_reads and self.scheme.kind == "erasure"
        )
        return self.cluster.clients_on_osd_hosts and not asks_others

    @cached_property
    def object_map_update(self) -> Template | None:
        """Op graph of an update of an object map, or None if images have none."""
        maps = self.cluster.object_maps
        if maps is None:
            return None
        context = PathContext(
            models=self.cluster.models,
            scheme=maps.scheme,
            geometry=maps.scheme.geometry(self.geometry.stripe_unit_bytes),
            site_delays=self._site_delays,
        )
        data_roles = self.cluster.member_roles(self.scheme.width)
        return object_map_path(context, maps, data_roles=data_roles)

    def groups_of(self, images: IntArray, objects: IntArray) -> IntArray:
        """Return the placement group of each object of each image, shape (n,)."""
        groups = np.empty(len(objects), dtype=np.int64)
        for image in np.unique(images).tolist():
            in_image = images == image
            unique, inverse = np.unique(objects[in_image], return_inverse=True)
            prefix = self._prefix_of(image)
            of_unique = pgs_of_objects(prefix, unique, self.cluster.groups)
            groups[in_image] = np.asarray(of_unique, dtype=np.int64)[inverse]
        return groups

    def _prefix_of(self, image: int) -> str:
        if image < len(self.image_prefixes):
            return self.image_prefixes[image]
        return image_prefix(image)


@lru_cache(maxsize=1024)
def image_prefix(image: int) -> str:
    """Return the object name prefix of an image in RBD's format."""
    return f"rbd_data.{0x5717_0000 + image:x}"


class Book:
    """Templates and bindings of a run, extended on demand."""

    def __init__(self, bindings: AnyIntArray) -> None:
        self.templates: list[Template] = []
        self._known: set[int] = set()
        self._rows: Bindings = bindings.astype(np.int32, copy=False)
        self._used = len(bindings)

    @property
    def bindings(self) -> Bindings:
        """Binding rows, shape (rows, roles)."""
        return self._rows[: self._used]

    def add(self, template: Template) -> int:
        """Add a template and any new templates that its requests spawn, and return its index."""
        spawned = template.dynamics.spawned if template.dynamics else ()
        for other in spawned:
            if id(other) not in self._known:
                self.add(other)
        self._known.add(id(template))
        self.templates.append(template)
        return len(self.templates) - 1

    def add_bindings(self, rows: Bindings) -> IntArray:
        """Append binding rows and return their indices."""
        start = self._used
        stop = start + len(rows)
        if stop > len(self._rows):
            room = np.empty((stop, *rows.shape[1:]), dtype=self._rows.dtype)
            self._rows = np.concatenate([self.bindings, room])
        self._rows[start:stop] = rows
        self._used = stop
        return np.arange(start, stop, dtype=np.int64)
