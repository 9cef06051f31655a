"""Compare numbers of placement groups and settings of the balancer: usable bytes, rate, and what to type.

Placement groups of a pool are equally full, but OSDs hold different numbers of them. The fullest OSD limits
the usable bytes, the busiest one the rate. More groups and a balancer even both out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stripesim.models.coding import parse_scheme
from stripesim.models.documents import Documented
from stripesim.models.placement.pg_autoscale import autoscaled_pg_num
from stripesim.scenarios.cells.bound import bounds_of
from stripesim.scenarios.cells.models import build_models
from stripesim.scenarios.cells.placement import hosts_of_osds_in
from stripesim.scenarios.forms.capacity import capacity_of, drives_of
from stripesim.scenarios.schema.geometry import shards_per_domain
from stripesim.scenarios.schema.scenario import Scenario
from stripesim.scenarios.schema.units import bytes_text, rate_text

# Accepts only clients that know upmaps. A cluster that requires a later release refuses it, or forgets that.
_ALLOW_UPMAPS: Final = "ceph osd set-require-min-compat-client luminous"
#: Deviations of a balancer to compare: none, Ceph's default, and the smallest.
DEVIATIONS: Final = (None, 5, 1)
#: Settings within this share of the most usable bytes count as equally good.
GOOD_ENOUGH: Final = 0.99


@dataclass(frozen=True)
class PgOption:
    """A number of placement groups with a balancer's setting, and what they leave.

    Attributes
    ----------
    max_deviation
        ``upmap_max_deviation`` [count]. None: no balancer.
    is_present
        True if the cluster is set so now.
    imbalance
        How full the fullest OSD is, over the mean.
    usable_bytes_full, usable_bytes_safe
        Client data at the full ratio, and at the nearfull ratio without the largest failure domain [B].
    rate_share
        Rate at which the busiest OSD is full, over that of equally busy OSDs.
    iops
        Rate at which the limiting resource is full [1/s]. None if it is not known.
    """

    pg_num: int
    max_deviation: int | None
    is_present: bool
    imbalance: float
    usable_bytes_full: float | None
    usable_bytes_safe: float | None
    rate_share: float
    iops: float | None = None

    @property
    def usable_bytes(self) -> float:
        """The safe capacity, or where a pool cannot heal, that at the full ratio [B]."""
        return self.usable_bytes_safe or self.usable_bytes_full or 0.0


@dataclass(frozen=True)
class PgChoice(Documented):
    """The settings of a pool, compared."""

    pool: str
    autoscaled_pg_num: int
    options: Sequence[PgOption]  # The present one first.
    #: Words for settings without a deviation.
    plain_words: str = "no balancer"
    #: True if the cluster accepts only clients that know upmaps.
    allows_upmaps: bool = False

    in_document = (
        "pool",
        "autoscaled_pg_num",
        "options",
        ("recommended", "recommended_number"),
        "sentence",
        "commands",
    )

    @property
    def present(self) -> PgOption:
        """The settings now."""
        return self.options[0]

    @property
    def recommended(self) -> PgOption:
        """First option with at least 99 % of the most usable bytes. Options with fewer changes come first."""
        most_bytes = max(option.usable_bytes for option in self.options)
        enough = GOOD_ENOUGH * most_bytes
        return next(option for option in self.options if option.usable_bytes >= enough)

    @property
    def recommended_number(self) -> int:
        """Place of the recommended option in `options`, from 0."""
        return self.options.index(self.recommended)

    def commands(self) -> list[str]:
        """Return the commands that set what is recommended. Nothing to type where it is set."""
        then, now = self.recommended, self.present
        lines = []
        if then.pg_num != now.pg_num:
            lines += [
                f"ceph osd pool set {self.pool} pg_autoscale_mode warn",
                f"ceph osd pool set {self.pool} pg_num {then.pg_num}",
            ]
        if then.max_deviation is not None and not then.is_present:
            lines += _balancer_commands(then.max_deviation, self.allows_upmaps)
        return lines

    def sentence(self) -> str:
        """Return sentences on what the imbalance costs now, and which settings to choose."""
        now, then = self.present, self.recommended
        settings = _settings_text(now, self.plain_words)
        text = (
            f"{self.pool}: with {settings} the fullest OSD is {now.imbalance:.2f} × as full as the mean: "
            f"{bytes_text(now.usable_bytes)} usable"
        )
        if now.rate_share < 1:
            text += f", and OSDs serve {100 * now.rate_share:.0f} % of the rate of equally busy ones"
        if then is now or not now.usable_bytes:
            return f"{text}. No other setting gives 1 % more."
        gain = then.usable_bytes / max(now.usable_bytes, 1e-9) - 1
        settings = _settings_text(then, self.plain_words).capitalize()
        text += f". {settings}: {bytes_text(then.usable_bytes)} ({100 * gain:+.0f} %)"
        if now.iops and then.iops:
            limit = rate_text(then.iops)
            present = rate_text(now.iops)
            compared = "as now" if limit == present else f"instead of {present}"
            text += f", at most {limit} requests/s {compared}"
        return f"{text}."


def _balancer_commands(max_deviation: int, allows_upmaps: bool) -> list[str]:
    """Return the commands that turn the balancer of a cluster on."""
    first = [] if allows_upmaps else [_ALLOW_UPMAPS]
    return [
        *first,
        "ceph balancer mode upmap",
        f"ceph config set mgr mgr/balancer/upmap_max_deviation {max_deviation}",
        "ceph balancer on",
    ]


def merged_commands(choices: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the commands of several pools. The balancer is one, so its smallest deviation counts."""
    lines = []
    deviations = []
    for choice in choices:
        lines += [line for line in choice["commands"] if "osd pool set" in line]
        option = choice["options"][choice["recommended"]]
        if option["max_deviation"] is not None and not option["is_present"]:
            deviations.append(option["max_deviation"])
    if deviations:
        is_missing = any(_ALLOW_UPMAPS in choice["commands"] for choice in choices)
        lines += _balancer_commands(min(deviations), allows_upmaps=not is_missing)
    return lines


def _settings_text(option: PgOption, plain_words: str) -> str:
    balancer = plain_words
    if option.max_deviation is not None:
        balancer = f"a balancer (upmap_max_deviation {option.max_deviation})"
    return f"{option.pg_num:,} placement groups and {balancer}"


def _osd_count(scenario: Scenario) -> int:
    """Return the OSDs that are in [count]. Keys of hosts say nothing about those of a CRUSH map."""
    if scenario.cluster.crush_map is None:
        return scenario.cluster.osd_count
    return int((hosts_of_osds_in(scenario) >= 0).sum())


def pg_choice_of(scenario: Scenario, scheme: str) -> PgChoice:
    """Compare the settings of a scenario's only pool.

    Parameters
    ----------
    scenario
        The scenario. Its own settings come first.
    scheme
        Scheme of the pool.
    """
    models = build_models(scenario)
    drives = drives_of(scenario, models)
    own = scenario.cluster
    code = parse_scheme(scheme)
    wanted = autoscaled_pg_num(1.0, _osd_count(scenario), code.width)
    deviations = [own.upmap_max_deviation]
    if own.crush_map is not None or shards_per_domain(scenario, code) == 1:
        # Without a map, the simulated balancer does not know how many shards a site holds.
        deviations += DEVIATIONS
    settings = dict.fromkeys(
        (pg_num, deviation)
        for pg_num in (own.pg_num, wanted)
        for deviation in deviations
    )
    options = []
    for pg_num, deviation in settings:
        keys: dict[str, Any] = {
            "pg_num": pg_num,
            "upmap_max_deviation": deviation,
        }
        if deviation is not None:
            keys["upmap_items"] = ()
        asked = scenario.with_cluster(**keys)
        held = capacity_of(asked, scheme, models, drives)
        bounds = bounds_of(asked, scheme)
        option = PgOption(
            pg_num=pg_num,
            max_deviation=deviation,
            is_present=(pg_num, deviation) == (own.pg_num, own.upmap_max_deviation),
            imbalance=held.imbalance,
            usable_bytes_full=held.usable_bytes_full,
            usable_bytes_safe=held.usable_bytes_safe,
            rate_share=1 / held.imbalance,
            iops=bounds[0].iops if bounds else None,
        )
        options.append(option)
    return PgChoice("POOL", wanted, options)
