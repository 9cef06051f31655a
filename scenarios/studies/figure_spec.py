"""Figures, their panels, axes and layers, from a study's ``figures.toml``.

Read `stripesim.scenarios.studies.small_multiples` first, which describes the file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stripesim.scenarios.show.figures.panels import COLOURS
from stripesim.scenarios.studies.description import shipped_toml


@dataclass(frozen=True, kw_only=True)
class AxisSpec:
    """One axis of a panel: label, scale, ticks, and lines across the panel."""

    label: str = ""
    scale: str = "linear"  #: Or ``log``, or ``auto``: depends on the values
    ticks: Sequence[float] = ()
    format: str = ",g"  #: Of ticks: ``size``, ``KiB``, or as `format` takes it
    low: float | None = None
    high: float | None = None
    rotation: float = 0
    size: float | None = None  #: Of the ticks' letters
    margin: float | None = None
    reverse: bool = False
    rules: Sequence[float] = ()  #: Lines at these values
    span: Sequence[float] = ()  #: A grey band between two values


@dataclass(frozen=True, kw_only=True)
class PanelSpec:
    """One panel, with the location of its own legend, if it has one.

    The title may hold facts like the caption. Then ``key`` is the panel's name in queries.
    """

    title: str = ""
    key: str = ""
    x: AxisSpec
    y: AxisSpec
    legend: str = ""
    sideways: bool = False  #: Horizontal bars
    order: Sequence[str] = ()  #: Of categories (default: order of appearance)
    square: bool = False
    grid: bool = True


@dataclass(frozen=True, kw_only=True)
class LayerSpec:
    """Queries drawn as one kind of mark."""

    mark: str  #: A key of `stripesim.scenarios.studies.marks.MARKS`
    queries: Sequence[str]  #: Their results are concatenated
    label: str | None = None  #: One legend entry for all series, ``""``: none
    colour: str | None = None  #: The same for all series
    style: Mapping[str, Any] = field(default_factory=dict)  #: Passed to matplotlib


@dataclass(frozen=True, kw_only=True)
class FigureSpec:
    """One figure."""

    size: Sequence[float]  #: Width and height [inch]
    caption: str
    layers: Sequence[LayerSpec]
    panels: Sequence[PanelSpec]  #: Empty: one for each panel of the first layer
    template: PanelSpec  #: For panels of that kind
    facts: Sequence[str] = ()  #: Queries of one row whose columns the caption names
    needs: Sequence[str] = ()  #: Experiments without which the figure is left out
    title: str = ""
    columns: int | None = None  #: Panels side by side (default: all)
    widths: Sequence[float] = ()  #: Of the columns, relative to each other
    heights: Sequence[float] = ()  #: Of the lines, relative to each other
    category_height: float = 0.0  #: Additional height per category [inch]
    share: str = ""  #: Axes that panels share: ``x``, ``y``, ``xy``, ``rows``
    legend_columns: int = 4  #: Of the legend of all panels, 0 for none
    series: Sequence[str] = ()  #: Order of series (default: order of appearance)
    names: Mapping[str, str] = field(default_factory=dict)  #: Series → legend
    colours: Sequence[str] = COLOURS


def figure_specs(study: str) -> dict[str, FigureSpec]:
    """Read ``figures.toml`` of a study and return its figures by file stem."""
    listed = shipped_toml(study, "figures.toml")
    specs = {}
    for stem, table in listed.items():
        if stem != "tables":
            original = listed.get(table.get("like"), {})
            specs[stem] = figure_spec(stem, original | table)
    return specs


def figure_spec(stem: str, table: Mapping[str, Any]) -> FigureSpec:
    """Return a figure from its table in the file."""
    own = {**table, "facts": _with_stem(stem, table.get("facts", ()))}
    own.pop("like", None)
    shared = {name: own.pop(name, {}) for name in ("x", "y")}
    shared_by_panels = own.pop("panel", {})
    panels = [
        _panel_spec(shared, {**shared_by_panels, **panel})
        for panel in table.get("panels", [{}])
    ]
    own["panels"] = panels
    own["template"] = _panel_spec(shared, shared_by_panels)
    own["layers"] = [_layer_spec(stem, **layer) for layer in table["layers"]]
    return FigureSpec(**own)


def _panel_spec(shared: Mapping[str, Any], panel: Mapping[str, Any]) -> PanelSpec:
    axes = {
        which: AxisSpec(**(axis | panel.get(which, {})))
        for which, axis in shared.items()
    }
    return PanelSpec(**{**panel, **axes})


def _layer_spec(stem: str, query: str | list[str], **layer: Any) -> LayerSpec:
    queries = [query] if isinstance(query, str) else query
    return LayerSpec(queries=_with_stem(stem, queries), **layer)


def _with_stem(stem: str, queries: Sequence[str]) -> list[str]:
    return [query.replace("{stem}", stem) for query in queries]
