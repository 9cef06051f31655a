"""Requests as kinds of pools see them: each within one object, in the order of issue."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.paths import ObjectExtent
from stripesim.sim.engine.graph import IntArray, Template


@dataclass(frozen=True)
class ObjectRequests:
    """Requests that each stay within one object, in the order of issue; arrays have shape (n,)."""

    is_write: npt.NDArray[np.bool_]
    objects: IntArray  #: Number of the object over all images
    groups: IntArray  #: Placement group of the object
    offsets_bytes: IntArray  #: Where the request begins in the object [B]
    lengths_bytes: IntArray
    sizes_bytes: IntArray  #: Size of the object before the request [B]

    def __len__(self) -> int:
        return len(self.objects)

    @property
    def ends_bytes(self) -> IntArray:
        """Where each request ends in its object [B]."""
        return self.offsets_bytes + self.lengths_bytes


class RequestShape(NamedTuple):
    """What the graph of a request depends on, apart from the state of its placement group."""

    is_write: bool
    offset_bytes: int
    length_bytes: int
    object_size_bytes: int
    #: `head`, `tail`: what the stores hold in memory of the request's beginning and end, in the terms of the
    #: kind of pool
    head: int
    tail: int

    @property
    def extent(self) -> ObjectExtent:
        """The extent in the object, and the object's size."""
        return ObjectExtent(
            offset_bytes=self.offset_bytes,
            length_bytes=self.length_bytes,
            object_size_bytes=self.object_size_bytes,
        )


class RequestPlan(NamedTuple):
    """How a request is served. Plans with equal keys have equal graphs, whatever these are called."""

    key: Hashable
    compile: Callable[[], Template]
