"""A store of files with a journal in front: every byte is written twice."""

from __future__ import annotations

from dataclasses import dataclass, fields

from stripesim.models.object_store.store import ObjectStoreModel, StoreIo


@dataclass(frozen=True, kw_only=True)
class FileStoreModel(ObjectStoreModel):
    """Ceph's FileStore: data goes into the journal with the commit and into its file later.

    Notes
    -----
    A partial block of a file is completed in the page cache, where a recent file's blocks are; no read is
    charged for it. Reads are those of the other store. Journal and files share the device; the journal's
    data is written before the commit, as a BlueStore's is.

    Deviation: syncing the files (``filestore_max_sync_interval``) holds nothing up here.

    References
    ----------
    Ceph v16.2.15, ``src/os/filestore/FileStore.cc`` (``queue_transactions``: the journal first,
    as on XFS).
    """

    @classmethod
    def of(cls, store: ObjectStoreModel) -> FileStoreModel:
        """Return the file store with the numbers of another store."""
        return cls(**{field.name: getattr(store, field.name) for field in fields(store)})

    def write_io(self, offset_bytes: int, length_bytes: int, *, existing_bytes: int) -> StoreIo:
        """Device traffic of writing an extent: its bytes in the journal, its blocks in the file."""
        if length_bytes <= 0:
            return StoreIo(0, 0, self.metadata_bytes, 0)
        blocks_bytes = self.read_bytes(offset_bytes, length_bytes)
        return StoreIo(0, length_bytes, self.metadata_bytes, blocks_bytes)

    def partial_write_io(self, offset_bytes: int, length_bytes: int, states: tuple[int, int]) -> StoreIo:
        """As `write_io`: what is known of a block makes no difference."""
        return self.write_io(offset_bytes, length_bytes, existing_bytes=0)
