"""A cluster whose kernels take no time: what arithmetic alone costs is the difference."""

from __future__ import annotations

from stripesim.sim.ceph.cluster import Models

__all__ = ["without_encoding"]


class _FreeEncoding(Models):
    """Models whose encoding and decoding take no time."""

    def encode_ns(self, scheme: str, data_bytes: float) -> float:
        """Take no time."""
        return 0.0

    def decode_ns(self, scheme: str, data_bytes: float, erasures: int) -> float:
        """Take no time."""
        return 0.0


def without_encoding(models: Models) -> Models:
    """Return the models with kernels that take no time."""
    return _FreeEncoding(**{name: getattr(models, name) for name in models.__dataclass_fields__})
