"""Object maps of RBD images: where each map is stored, and how it is updated.

A map holds two bits for each object of its image. Before librbd writes into an object for the first time, it
records in the map that the object exists, and waits for that update. All updates of an image go to one object
of a replicated pool.
"""

from dataclasses import dataclass

import numpy as np

from stripesim.models.coding import RedundancyScheme, parse_scheme
from stripesim.models.placement import pgs_of_objects
from stripesim.sim.engine.graph import IntArray

#: Prefix of the map's object names in RBD's format.
OBJECT_PREFIX = "rbd_object_map"
#: Objects whose states fill one byte of a map.
OBJECTS_PER_BYTE = 4
#: An update rewrites the blocks of the map that hold the changed states [B].
BLOCK_BYTES = 4096
#: Encoded size of the map, which precedes the blocks [B].
HEADER_BYTES = 18
#: Checksum of the header and of each block, which follow the blocks [B].
CHECKSUM_BYTES = 4
#: Arguments of the two class methods that an update calls: the check of the map's lock, and the update [B].
CALL_BYTES = 17 + 20
#: Pieces that the method reads at the primary before it writes: header, checksums and block [count].
READS_COUNT = 3


@dataclass(frozen=True, kw_only=True)
class ObjectMaps:
    """The object maps of all images.

    References
    ----------
    Ceph v11.2.0, ``src/librbd/AioObjectRequest.cc`` (``send_pre``),
    ``src/librbd/object_map/UpdateRequest.cc``, ``src/cls/rbd/cls_rbd.cc`` (``object_map_update``),
    ``src/common/bit_vector.hpp``.
    """

    #: OSD of each replica of each image's map, the primary first, shape (images, replicas)
    acting: IntArray
    scheme: RedundancyScheme  #: Scheme of the pool that holds the maps
    image_objects: int  #: Objects of one image [count]
    #: True if an update locks the map until it is complete on all replicas, so that the updates of an image
    #: run one after another
    exclusive: bool

    @property
    def images(self) -> int:
        """Number of images."""
        return len(self.acting)

    @property
    def map_bytes(self) -> int:
        """Size of the states in one map [B]."""
        return -(-self.image_objects // OBJECTS_PER_BYTE)

    @property
    def update_bytes(self) -> int:
        """Size of the block and the checksums that an update writes [B]."""
        blocks = -(-self.map_bytes // BLOCK_BYTES)
        return min(BLOCK_BYTES, self.map_bytes) + CHECKSUM_BYTES * (1 + blocks)


def pool_of_maps(scheme: RedundancyScheme) -> RedundancyScheme:
    """Return the scheme of the pool that holds the maps of a pool's images.

    A replicated pool holds them itself. An erasure-coded pool cannot, so a pool of three replicas does.
    """
    if scheme.kind == "replicated":
        return scheme
    return parse_scheme("rep:3")


def groups_of_maps(images: int, pg_num: int) -> IntArray:
    """Return the placement group of each image's map, shape (images,)."""
    numbers = np.arange(images, dtype=np.int64)
    return np.asarray(pgs_of_objects(OBJECT_PREFIX, numbers, pg_num), dtype=np.int64)
