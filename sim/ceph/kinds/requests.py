"""Requests as kinds of pools see them: each within one object, in the order of issue."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stripesim.sim.ceph.paths import ObjectExtent
from stripesim.sim.engine.columns import Columns
from stripesim.sim.engine.graph import IntArray, Template


@dataclass(frozen=True)
class ObjectRequests(Columns):
    """Requests that each stay within one object, in order of issue. Arrays have shape (n,)."""

    is_write: npt.NDArray[np.bool_]
    objects: IntArray  #: Number of the object over all images
    groups: IntArray  #: Placement group of the object
    offsets_bytes: IntArray  #: First byte of the request in the object [B]
    lengths_bytes: IntArray
    sizes_bytes: IntArray  #: Size of the object before the request [B]

    def __len__(self) -> int:
        return len(self.objects)

    @property
    def ends_bytes(self) -> IntArray:
        """End of each request in its object [B]."""
        return self.offsets_bytes + self.lengths_bytes


class RequestShape(NamedTuple):
    """Everything that determines the graph of a request, except the state of its PG."""

    is_write: bool
    offset_bytes: int
    length_bytes: int
    object_size_bytes: int
    head: int  #: Cached part of the request's beginning, in units of the kind of pool
    tail: int  #: Cached part of the request's end, in units of the kind of pool
    #: True for the first write into its object, if the image has an object map
    creates: bool = False
    #: True if the request begins where the previous ones of its disks have ended
    continues: bool = False

    @property
    def extent(self) -> ObjectExtent:
        """The extent in the object, and the object's size."""
        return ObjectExtent(
            offset_bytes=self.offset_bytes,
            length_bytes=self.length_bytes,
            object_size_bytes=self.object_size_bytes,
        )


class RequestPlan(NamedTuple):
    """The plan of a request. Plans with equal keys have equal graphs except for the name."""

    key: Hashable
    compile: Callable[[], Template]
