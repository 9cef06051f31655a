"""What the study can switch off or change, to see what each mechanism does to erasure coding."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from stripesim.scenarios.studies.base import Ablation, chosen

KIB_BYTES: Final = 1024
#: A word of 32 bits per byte of a symbol: what jerasure's reed_sol_van asks of a chunk's alignment.
ALIGNMENT_BYTES: Final = 32


@dataclass(frozen=True)
class Change(Ablation):
    """One change to the cluster or to the rules; it is shown on cells of its own, not on the whole study."""

    scenario: tuple[
        str, ...
    ] = ()  #: Settings of the scenario, in the form of ``--set``
    numbers: Mapping[str, float] = field(
        default_factory=dict
    )  #: Numbers of the models, ``MODEL.NUMBER``
    #: Stripe width asked for [B]; rounded up to whole aligned chunks, as the system does
    stripe_bytes: int | None = None
    fill: str = (
        "gap"  #: See `stripesim.scenarios.studies.koh2017.creation.CreationSource`
    )
    free_encoding: bool = False  #: Whether the kernel takes no time

    def settings(self, scheme: str) -> tuple[str, ...]:
        """Return what is set in the scenario under one scheme."""
        from stripesim.models.coding import parse_scheme

        code = parse_scheme(scheme)
        if self.stripe_bytes is None or code.kind != "erasure":
            return self.scenario
        whole_bytes = code.geometry(ALIGNMENT_BYTES).stripe_bytes
        unit_bytes = -(-self.stripe_bytes // whole_bytes) * ALIGNMENT_BYTES
        return (*self.scenario, f"cluster.stripe_unit_bytes={unit_bytes}")


ABLATIONS: Final[Mapping[str, Change]] = {
    "baseline": Change("as calibrated"),
    "no-pg-lock": Change(
        "no lock on placement groups", scenario=("cluster.pg_lock_scope='none'",)
    ),
    "lock-to-dispatch": Change(
        "lock held to dispatch, not to commit",
        scenario=("cluster.pg_lock_scope='dispatch'",),
    ),
    "any-completion": Change(
        "client goes on with each completion", scenario=("workload.completions='each'",)
    ),
    "no-rollback-wait": Change(
        "overwritten stripes saved in no time", numbers={"cpu.ec_rollback_wait_ns": 0.0}
    ),
    "no-object-initialisation": Change("no object initialisation", fill="nothing"),
    "private-100g": Change(
        "private network of 100 Gb/s", scenario=("cluster.private_gbit_per_s=100.0",)
    ),
    "free-encoding": Change("encoding takes no time", free_encoding=True),
    **{
        f"stripe-{kib}k": Change(
            f"stripe width {kib} KiB", stripe_bytes=kib * KIB_BYTES
        )
        for kib in (4, 8, 16, 32, 64)
    },
}
"""Name → ablation; ``baseline`` changes nothing and is what the others are compared with."""

#: Image states and sizes that an ablation is shown on: (op, pattern, image).
KINDS: Final = (
    ("write", "seq", "prefilled"),
    ("write", "rand", "pristine"),
    ("read", "rand", "prefilled"),
)
SIZES_BYTES: Final = (4 * KIB_BYTES, 16 * KIB_BYTES, 64 * KIB_BYTES)
SCHEMES: Final = ("rs:6,3", "rs:10,4")

# Shorter than the study's own run, for the comparison is with a baseline of the same length.
PRISTINE_DURATION_S: Final = 3.0


def named(names: Sequence[str]) -> tuple[str, ...]:
    """Return the ablations of these names in the table's order, the baseline first; none without names."""
    return chosen("--ablate", ("baseline", *names), ABLATIONS) if names else ()
