"""Behaviour of each Ceph release, as data: PG lock, EC policy and recovery limits. Start with `table`."""

from stripesim.models.generations.table import (
    Generation,
    OpThreads,
    generation,
    generations,
    recovery_model,
)

__all__ = ["Generation", "OpThreads", "generation", "generations", "recovery_model"]
