"""Behaviour of each release of Ceph, as data: `generation(name)` gives its lock, EC policy and limits."""

from stripesim.models.generations.table import (
    Generation,
    OpThreads,
    generation,
    generations,
    recovery_model,
)

__all__ = ["Generation", "OpThreads", "generation", "generations", "recovery_model"]
