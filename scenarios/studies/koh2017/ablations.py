"""Changes of one mechanism each, and the cells that show their effect on erasure coding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stripesim.models.coding import parse_scheme
from stripesim.scenarios.studies.base import chosen
from stripesim.scenarios.studies.description import study_description

KIB_BYTES: Final = 1024
#: Alignment that jerasure's reed_sol_van asks of a chunk: a word of 32 bits per byte of a symbol [B].
ALIGNMENT_BYTES: Final = 32


@dataclass(frozen=True, kw_only=True)
class CellChange:
    """One change to the cluster or to the rules, applied to the cells of an ablation only."""

    scenario: Mapping[str, Any] = field(default_factory=dict)  #: Keys of the scenario
    numbers: Mapping[str, float] = field(
        default_factory=dict
    )  #: Of the models, by ``MODEL.NUMBER``
    #: Requested stripe width [B], rounded up to whole aligned chunks as in Ceph
    stripe_bytes: int | None = None
    #: See `stripesim.scenarios.studies.koh2017.creation.CreationSource`
    fill: str = "gap"
    free_encoding: bool = False  #: The kernel takes no time

    def sets(self, scheme: str) -> Mapping[str, Any]:
        """Return the changed keys of the scenario under one scheme."""
        code = parse_scheme(scheme)
        if self.stripe_bytes is None or code.kind != "erasure":
            return self.scenario
        aligned_bytes = code.geometry(ALIGNMENT_BYTES).stripe_bytes
        unit_bytes = -(-self.stripe_bytes // aligned_bytes) * ALIGNMENT_BYTES
        return {**self.scenario, "cluster.stripe_unit_bytes": unit_bytes}


ABLATIONS: Final = study_description("koh2017").ablations
"""Name → ablation. The others are compared with ``baseline``, which changes nothing."""
CHANGES: Final = {
    name: CellChange(**ablation.cells) for name, ablation in ABLATIONS.items()
}

#: Image states and sizes of the cells that show an ablation: (op, pattern, image).
KINDS: Final = (
    ("write", "seq", "prefilled"),
    ("write", "rand", "pristine"),
    ("read", "rand", "prefilled"),
)
SIZES_BYTES: Final = (4 * KIB_BYTES, 16 * KIB_BYTES, 64 * KIB_BYTES)
SCHEMES: Final = ("rs:6,3", "rs:10,4")

# Shorter than the study's run, because the baseline runs for the same time.
PRISTINE_DURATION_S: Final = 3.0


def named(names: Sequence[str]) -> tuple[str, ...]:
    """Return the ablations of these names in the table's order after the baseline, or none without names."""
    return chosen("--ablate", ("baseline", *names), ABLATIONS) if names else ()
