"""What a scenario may say to `stripesim plan`: what may vary, what is required, what things cost."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stripesim.scenarios.schema.durability import Bytes
from stripesim.scenarios.schema.types import Count, GbitPerS, PositiveFloat, SizeBytes, Table

Price = Annotated[float, Field(ge=0, le=1e15)]

#: Keys of `[cluster]` that a plan may vary.
VARIED = (
    "hosts",
    "osds_per_host",
    "ssd",
    "drive_bytes",
    "public_gbit_per_s",
    "private_gbit_per_s",
    "cores_per_host",
    "pg_num",
    "stripe_unit_bytes",
    "mclock_profile",
)


class PricesSpec(Table):
    """What the parts of a cluster cost and draw, in any one currency; a part left out costs nothing."""

    host: Price = 0.0
    """One host without drives and network [currency]."""
    drive: Price = 0.0
    """One drive, whatever it holds [currency]."""
    drive_per_tb: Price = 0.0
    """A drive's price for each 10¹² bytes [currency]."""
    network_per_gbit: Price = 0.0
    """Of a host's public and private network, for each Gbit/s [currency]."""
    host_watts: Price = 0.0
    """One host without drives [W]."""
    drive_watts: Price = 0.0
    """One drive [W]."""
    kwh: Price = 0.0
    """A kilowatt-hour, cooling included [currency]."""
    years: Price = 0.0
    """Time for which power is paid [years]."""


class PlanSpec(Table):
    """What may vary, under the scenario's own key names, and what a cluster must do."""

    hosts: tuple[Count, ...] = ()
    """cluster.hosts to try."""
    osds_per_host: tuple[Count, ...] = ()
    """cluster.osds_per_host to try."""
    ssd: tuple[str, ...] = ()
    """cluster.ssd to try."""
    drive_bytes: tuple[SizeBytes, ...] = ()
    """cluster.drive_bytes to try."""
    public_gbit_per_s: tuple[GbitPerS, ...] = ()
    """Public networks to try."""
    private_gbit_per_s: tuple[GbitPerS, ...] = ()
    """Private networks to try."""
    cores_per_host: tuple[Count, ...] = ()
    """cluster.cores_per_host to try."""
    pg_num: tuple[Count, ...] = ()
    """cluster.pg_num to try."""
    stripe_unit_bytes: tuple[SizeBytes, ...] = ()
    """Stripe units to try."""
    mclock_profile: tuple[Literal["high_client_ops", "balanced", "high_recovery_ops"], ...] = ()
    """cluster.mclock_profile to try, with op_queue mclock_scheduler."""
    usable_bytes: Bytes | None = None
    """Client data that must fit at the nearfull ratio with the largest failure domain gone [bytes]."""
    rate_per_s: PositiveFloat | None = None
    """Requests that must be served [1/s]: simulated as Poisson arrivals at this rate."""
    p99_ms: PositiveFloat | None = None
    """Latency that 99 of 100 requests may take [ms]."""
    p99_recovery_ms: PositiveFloat | None = None
    """The same while a lost OSD is rebuilt [ms]."""
    rebuild_s: PositiveFloat | None = None
    """Time to rebuild a lost OSD that is as full as it should ever be [s]."""
    nines: PositiveFloat | None = None
    """−log10 of the probability of any loss within durability.horizon_s."""
    cost_max: PositiveFloat | None = None
    """By [plan.prices] [currency]."""
    watts_max: PositiveFloat | None = None
    """By [plan.prices] [W]."""
    days_until_full: PositiveFloat | None = None
    """Days until the safe capacity is used up [days]."""
    growth_bytes_per_day: Bytes | None = None
    """Growth of client data [bytes/day], for days_until_full."""
    stored_bytes: Bytes | None = None
    """Client data at the start [bytes]; left out: none."""
    replications: Annotated[int, Field(ge=2, le=50)] = 3
    """Runs of each candidate, each with its own seed [count]; they give intervals."""
    simulated_max: Annotated[int, Field(ge=1, le=500)] = 12
    """Candidates simulated at most, least cost first [count]."""
    wall_s_max: PositiveFloat = 600.0
    """Wall-clock time after which no further candidate is simulated [s]."""
    prices: PricesSpec | None = None
    """What the parts cost and draw."""

    @property
    def varies_domains(self) -> bool:
        """Whether candidates have other failure domains than `[cluster]`."""
        return bool(self.hosts or self.osds_per_host)
