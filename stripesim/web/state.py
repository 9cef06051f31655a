"""Hold everything that the address of the page holds: the scenario to start from, and all values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from stripesim.scenarios.schema.scenario import Scenario
from stripesim.web.controls import (
    SIDES,
    ControlGroup,
    FormKind,
    OwnSets,
    controls,
    groups,
    problems_of,
)
from stripesim.web.fields import TEXT_MAX, Control
from stripesim.web.proposals import first_values, guessed_scheme, unstated
from stripesim.web.uploads import KEPT, PACKED

_ONE_CLUSTER = "one_cluster"
_OWN_KEYS = ("drive", "parameters")


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
    kind
        What decides which controls the form has.
    guess
        Scheme of option B if the page chose it, because the scenario states only one.
    guesses
        First value of each control for which the scenario states none.
    sets
        Uploaded parameter sets that the values choose, as text for the address, or "".
    """

    base: str
    one_cluster: bool
    values: Mapping[str, Mapping[str, str]]
    own: OwnSets
    kind: FormKind
    guess: str | None = None
    guesses: Mapping[str, str] = field(default_factory=dict)
    sets: str = ""

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
        kind = FormKind.of(scenario)
        listed = controls(own, kind)
        keys = {control.key(side) for control in listed for side in SIDES}
        one_cluster = query.get(_ONE_CLUSTER) == "1" or keys.isdisjoint(query)
        values = {}
        for side in SIDES:
            texts = first_values(scenario, side)
            for control in listed:
                typed = query.get(control.key(side))
                if typed is not None:
                    # One character more than allowed, so that the field reports it.
                    texts[control.name] = typed.strip()[: TEXT_MAX + 1]
            values[side] = texts
        if one_cluster:
            shared = [control.name for control in listed if control.scope == "cluster"]
            values["b"] |= {name: values["a"][name] for name in shared}
        guess = guessed_scheme(scenario)
        if values["b"]["scheme"] != guess:
            guess = None
        firsts = first_values(scenario, "a")
        shown = unstated(scenario) & firsts.keys()
        guesses = {name: firsts[name] for name in sorted(shown)}
        return cls(base, one_cluster, values, own, kind, guess, guesses)

    @property
    def groups(self) -> tuple[ControlGroup, ...]:
        """Controls of the form, in groups."""
        return groups(self.own, self.kind)

    @property
    def controls(self) -> tuple[Control, ...]:
        """All controls of the form."""
        return controls(self.own, self.kind)

    @property
    def has_equal_options(self) -> bool:
        """True if there is nothing to compare."""
        return self.values["a"] == self.values["b"]

    @property
    def query(self) -> str:
        """The state as the query of an address."""
        pairs = {"base": self.base}
        if self.one_cluster:
            pairs[_ONE_CLUSTER] = "1"
        if self.sets:
            pairs["sets"] = self.sets
        for control in self.controls:
            for side in SIDES:
                if self.owner(control, side) == side:
                    pairs[control.key(side)] = self.values[side][control.name]
        return urlencode(pairs)

    @property
    def address_holds(self) -> str:
        """Content of the page's address, and what a colleague needs besides it."""
        if self.base == "served":
            note = "The address holds all values, but not the scenario that this server was started with."
        elif self.base.startswith(PACKED):
            note = "The address holds the uploaded cluster and all values: it opens on any stripesim serve."
        elif self.base.startswith(KEPT):
            note = (
                "The uploaded cluster is too large for the address, which works while this server runs. "
                "To share it, send scenarios A and B, which open as uploads."
            )
        else:
            note = "The address holds all values: it opens on any stripesim serve."
        own = {*self.own.drives, *self.own.parameters}
        if own.isdisjoint(self.chosen_sets):
            return note
        if self.sets:
            return f"{note} It holds the uploaded parameters, too."
        return f"{note} Parameters from a file are not in it: they need the same file uploaded first."

    @property
    def chosen_sets(self) -> frozenset[str]:
        """Names of the parameter sets that the values choose."""
        return frozenset(
            values[key] for values in self.values.values() for key in _OWN_KEYS
        )

    def owner(self, control: Control, side: str) -> str:
        """Return the side whose field sets a control of a side."""
        is_shared = control.both or (self.one_cluster and control.scope == "cluster")
        return "a" if is_shared else side

    def problems(self, side: str) -> dict[str, str]:
        """Return the problem of each invalid value of a side, by the name of its control."""
        return problems_of(self.values[side], self.controls)
