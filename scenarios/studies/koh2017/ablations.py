"""What the study can switch off or change, to see what each mechanism does to erasure coding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from stripesim.scenarios.studies.base import Ablation, chosen

if TYPE_CHECKING:
    from stripesim.scenarios.schema.keys import Scenario
    from stripesim.sim.ceph.cluster import Models

__all__ = ["ABLATIONS", "Change", "named"]

KIB_BYTES: Final = 1024
#: A word of 32 bits per byte of a symbol: what jerasure's reed_sol_van asks of a chunk's alignment.
ALIGNMENT_BYTES: Final = 32


@dataclass(frozen=True)
class Change(Ablation):
    """One change to the cluster or to the rules.

    Parameters
    ----------
    lock_scope : str, optional
        Of the placement group's lock, see `stripesim.models.pg_lock.PgLockModel`.
    private_gbit_per_s : float, optional
        Rate of the private network [10^9 bit/s].
    free_encoding : bool
        Whether the kernel takes no time.
    no_rollback_wait : bool
        Whether overwritten stripes are saved in no time.
    fill : str
        See `stripesim.sim.ceph.creation.CreationSource`.
    stripe_bytes : int, optional
        Stripe width asked for [B]; rounded up to whole aligned chunks, as the system does.
    completions : str, optional
        What the client waits for, see `stripesim.scenarios.schema.keys.WorkloadSpec`.
    """

    lock_scope: str | None = None
    private_gbit_per_s: float | None = None
    free_encoding: bool = False
    no_rollback_wait: bool = False
    fill: str = "gap"
    stripe_bytes: int | None = None
    completions: str | None = None

    def scenario(self, base: Scenario, scheme: str) -> Scenario:
        """Return the scenario with the change, for one scheme."""
        from stripesim.models.coding import parse_scheme

        changed: dict[str, object] = {}
        if self.private_gbit_per_s is not None:
            changed["private_gbit_per_s"] = self.private_gbit_per_s
        code = parse_scheme(scheme)
        if self.stripe_bytes is not None and code.kind == "erasure":
            chunks = code.geometry(ALIGNMENT_BYTES).stripe_bytes // ALIGNMENT_BYTES
            whole = chunks * ALIGNMENT_BYTES
            changed["stripe_unit_bytes"] = -(-self.stripe_bytes // whole) * ALIGNMENT_BYTES
        workload = base.workload
        if self.completions is not None:
            workload = workload.model_copy(update={"completions": self.completions})
        cluster = base.cluster.model_copy(update=changed)
        return base.model_copy(update={"cluster": cluster, "workload": workload})

    def models(self, models: Models) -> Models:
        """Return the models with the change."""
        if self.lock_scope is not None:
            models = replace(models, pg_lock=replace(models.pg_lock, scope=self.lock_scope))
        if self.no_rollback_wait:
            models = replace(models, cpu=replace(models.cpu, ec_rollback_wait_ns=0.0))
        if self.private_gbit_per_s is not None:
            rate = self.private_gbit_per_s * 1e9
            models = replace(models, private_nic=replace(models.private_nic, rate_bits_per_s=rate))
        if self.free_encoding:
            from stripesim.scenarios.studies.koh2017.free_encoding import without_encoding

            models = without_encoding(models)
        return models


ABLATIONS: Final[Mapping[str, Change]] = MappingProxyType(
    {
        "baseline": Change("as calibrated"),
        "no-pg-lock": Change("no lock on placement groups", lock_scope="none"),
        "lock-to-dispatch": Change("lock held to dispatch, not to commit", lock_scope="dispatch"),
        "any-completion": Change("client goes on with each completion", completions="each"),
        "no-rollback-wait": Change("overwritten stripes saved in no time", no_rollback_wait=True),
        "no-object-initialisation": Change("no object initialisation", fill="nothing"),
        "private-100g": Change("private network of 100 Gb/s", private_gbit_per_s=100.0),
        "free-encoding": Change("encoding takes no time", free_encoding=True),
        **{
            f"stripe-{kib}k": Change(f"stripe width {kib} KiB", stripe_bytes=kib * KIB_BYTES)
            for kib in (4, 8, 16, 32, 64)
        },
    }
)
"""Name → ablation; ``baseline`` changes nothing and is what the others are compared with."""

#: Image states and sizes that an ablation is shown on: (op, pattern, image).
KINDS: Final = (("write", "seq", "prefilled"), ("write", "rand", "pristine"), ("read", "rand", "prefilled"))
SIZES_BYTES: Final = (4 * KIB_BYTES, 16 * KIB_BYTES, 64 * KIB_BYTES)
SCHEMES: Final = ("rs:6,3", "rs:10,4")

# Shorter than the study's own run, for the comparison is with a baseline of the same length.
PRISTINE_DURATION_S: Final = 3.0


def named(names: Sequence[str]) -> tuple[str, ...]:
    """Return the ablations of these names in the table's order, the baseline first.

    Raises
    ------
    ValueError
        If there is no ablation of some name.
    """
    return chosen("--ablate", ("baseline", *names), ABLATIONS)
