"""Hold everything that the address of the page holds: the scenario to start from, and all values."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from stripesim.scenarios.schema.keys import Scenario
from stripesim.web.controls import SIDES, OwnSets, controls, defaults, problems_of
from stripesim.web.fields import TEXT_MAX, Control

_ONE_CLUSTER = "one_cluster"


@dataclass(frozen=True)
class LabState:
    """The state of the page. `read` and `query` are inverse.

    Attributes
    ----------
    base
        Name of the scenario that the page starts from.
    one_cluster
        If True, option B has the cluster of option A.
    values
        Text of every control by side and name, as typed.
    own
        Parameter sets beyond the shipped ones that the form offers.
    """

    base: str
    one_cluster: bool
    values: Mapping[str, Mapping[str, str]]
    own: OwnSets

    @classmethod
    def read(
        cls,
        query: Mapping[str, str],
        base: str,
        scenario: Scenario,
        own: OwnSets,
    ) -> "LabState":
        """Read the state from a query, with values of a scenario as defaults.

        A query without values compares two schemes on one cluster.
        """
        listed = controls(own)
        keys = {control.key(side) for control in listed for side in SIDES}
        one_cluster = query.get(_ONE_CLUSTER) == "1" or keys.isdisjoint(query)
        values = {}
        for side in SIDES:
            texts = defaults(scenario, side)
            for control in listed:
                typed = query.get(control.key(side))
                if typed is not None:
                    # One character more than allowed, so that the field reports it.
                    texts[control.name] = typed.strip()[: TEXT_MAX + 1]
            values[side] = texts
        if one_cluster:
            shared = [control.name for control in listed if control.scope == "cluster"]
            values["b"] |= {name: values["a"][name] for name in shared}
        return cls(base, one_cluster, values, own)

    @property
    def query(self) -> str:
        """The state as the query of an address."""
        pairs = {"base": self.base}
        if self.one_cluster:
            pairs[_ONE_CLUSTER] = "1"
        for control in controls(self.own):
            for side in SIDES:
                if self.owner(control, side) == side:
                    pairs[control.key(side)] = self.values[side][control.name]
        return urlencode(pairs)

    def owner(self, control: Control, side: str) -> str:
        """Return the side whose field sets a control of a side."""
        is_shared = control.both or (self.one_cluster and control.scope == "cluster")
        return "a" if is_shared else side

    def problems(self, side: str) -> dict[str, str]:
        """Return the problem of each invalid value of a side, by the name of its control."""
        return problems_of(self.values[side], controls(self.own))
