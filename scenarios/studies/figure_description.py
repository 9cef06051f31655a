"""Figures as a study's ``figures.toml`` describes them: panels, axes, and layers of queries.

Read `stripesim.scenarios.studies.small_multiples` first, which describes the file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stripesim.scenarios.show.figures.specification import (
    COLOURS,
    AxisSpec,
    LayerSpec,
    line_at,
)
from stripesim.scenarios.studies.description import shipped_toml


@dataclass(frozen=True, kw_only=True)
class DescribedAxis:
    """One axis of a panel, with lines across the panel."""

    spec: AxisSpec
    rules: Sequence[float] = ()  #: Lines at these values
    span: Sequence[float] = ()  #: A grey band between two values

    def layers(self, *, sideways: bool) -> list[LayerSpec]:
        """Return the lines and the band."""
        layers = [line_at(value, sideways=sideways, zorder=0.5) for value in self.rules]
        if self.span:
            low, high = self.span
            layers.append(
                LayerSpec(mark="span", low=[low], high=[high], sideways=sideways)
            )
        return layers


@dataclass(frozen=True, kw_only=True)
class DescribedPanel:
    """One panel, with the location of its own legend, if it has one.

    The title may hold facts like the caption. Then ``key`` is the panel's name in queries.
    """

    title: str = ""
    key: str = ""
    x: DescribedAxis
    y: DescribedAxis
    legend: str = ""
    sideways: bool = False  #: Horizontal bars
    order: Sequence[str] = ()  #: Of categories (default: order of appearance)
    square: bool = False
    grid: bool = True


@dataclass(frozen=True, kw_only=True)
class DescribedLayer:
    """Queries drawn as one kind of mark."""

    mark: str  #: A key of `stripesim.scenarios.studies.marks.MARKS`
    queries: Sequence[str]  #: Their results are concatenated
    label: str | None = None  #: One legend entry for all series, ``""``: none
    colour: str | None = None  #: The same for all series
    style: Mapping[str, Any] = field(default_factory=dict)  #: Passed to matplotlib


@dataclass(frozen=True, kw_only=True)
class DescribedFigure:
    """One figure."""

    size: Sequence[float]  #: Width and height [inch]
    caption: str
    layers: Sequence[DescribedLayer]
    panels: Sequence[DescribedPanel]  #: Empty: one for each panel of the first layer
    template: DescribedPanel  #: For panels of that kind
    facts: Sequence[str] = ()  #: Queries of one row whose columns the caption names
    needs: Sequence[str] = ()  #: Experiments without which the figure is left out
    title: str = ""
    columns: int | None = None  #: Panels side by side (default: all)
    widths: Sequence[float] = ()  #: Of the columns, relative to each other
    heights: Sequence[float] = ()  #: Of the lines, relative to each other
    category_height: float = 0.0  #: Additional height per category [inch]
    share: str = ""  #: Axes that panels share: ``x``, ``y``, ``xy``, ``rows``
    legend: str | None = None  #: ``""``: no legend of all panels
    series: Sequence[str] = ()  #: Order of series (default: order of appearance)
    names: Mapping[str, str] = field(default_factory=dict)  #: Series → legend
    colours: Sequence[str] = COLOURS


def figure_specs(study: str) -> dict[str, DescribedFigure]:
    """Read ``figures.toml`` of a study and return its figures by file stem."""
    listed = shipped_toml(study, "figures.toml")
    specs = {}
    for stem, table in listed.items():
        if stem != "tables":
            original = listed.get(table.get("like"), {})
            specs[stem] = figure_spec(stem, original | table)
    return specs


def figure_spec(stem: str, table: Mapping[str, Any]) -> DescribedFigure:
    """Return a figure from its table in the file."""
    own = {**table, "facts": _with_stem(stem, table.get("facts", ()))}
    own.pop("like", None)
    shared = {name: own.pop(name, {}) for name in ("x", "y")}
    shared_by_panels = own.pop("panel", {})
    panels = [
        _panel(shared, {**shared_by_panels, **panel})
        for panel in table.get("panels", [{}])
    ]
    own["panels"] = panels
    own["template"] = _panel(shared, shared_by_panels)
    own["layers"] = [_layer(stem, **layer) for layer in table["layers"]]
    return DescribedFigure(**own)


def _panel(shared: Mapping[str, Any], panel: Mapping[str, Any]) -> DescribedPanel:
    axes = {
        which: _axis(**(axis | panel.get(which, {}))) for which, axis in shared.items()
    }
    return DescribedPanel(**{**panel, **axes})


def _axis(
    rules: Sequence[float] = (), span: Sequence[float] = (), **spec: Any
) -> DescribedAxis:
    return DescribedAxis(spec=AxisSpec(**spec), rules=rules, span=span)


def _layer(stem: str, query: str | list[str], **layer: Any) -> DescribedLayer:
    queries = [query] if isinstance(query, str) else query
    return DescribedLayer(queries=_with_stem(stem, queries), **layer)


def _with_stem(stem: str, queries: Sequence[str]) -> list[str]:
    return [query.replace("{stem}", stem) for query in queries]
