"""Figures inside a page: names of their own, colours that follow the reader's light or dark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# A grey as Matplotlib writes it, and the variable that stands for it on the page.
_GREY = re.compile(r"#([0-9a-f]{2})\1\1\b", re.IGNORECASE)
_VARIABLE = re.compile(r"--grey-([0-9a-f]{2})\b")
# Coordinates of more than two decimals: a hundredth of a point is nothing that an eye could see.
_LONG = re.compile(r"\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")

# Ends of the grey scale in the dark: what is white on paper, and what is black.
_DARK_PAPER: Final = 0x1F
_DARK_INK: Final = 0xEC


def inline_svg(figure: Figure, stem: str, caption: str) -> str:
    """Draw a figure as SVG that can stand in an HTML page; the caption is read out in its stead.

    `stem` is put before every name inside, so that two figures on a page share none. Greys are variables,
    which the page's style sets for the dark; anything else keeps its colour. Metadata, namespaces and styles
    that would reach beyond the figure are gone.
    """
    # Here, because a page without figures needs no library that draws.
    from stripesim.scenarios.figures.results import METADATA, styled

    buffer = BytesIO()
    with styled():
        figure.savefig(buffer, format="svg", metadata=METADATA["svg"])
    root = ElementTree.fromstring(buffer.getvalue())
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style"):
                parent.remove(child)
    _clip_by_viewport(root)
    _rename(root, stem)
    for element in root.iter():
        for name in ("style", "fill", "stroke"):
            if name in element.attrib:
                element.attrib[name] = _GREY.sub(_variable, element.attrib[name])
        # Text between elements is indentation alone: letters are drawn as paths.
        element.text = element.tail = None
        for name in ("d", "x", "y", "width", "height", "viewBox"):
            if name in element.attrib:
                element.attrib[name] = _LONG.sub(lambda found: f"{float(found[0]):.2f}", element.attrib[name])
    width, height = (float(root.attrib.pop(name).removesuffix("pt")) for name in ("width", "height"))
    root.attrib = {
        "viewBox": f"0 0 {width:g} {height:g}",
        "role": "img",
        "aria-label": caption,
        "focusable": "false",
    }
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _clip_by_viewport(root: ElementTree.Element) -> None:
    """Cut off at the edge of a panel by a view of its own, so that no reference is needed."""
    panels = {clip.attrib["id"]: list(clip) for clip in root.iter("clipPath")}
    for parent in list(root.iter()):
        for index, child in enumerate(list(parent)):
            found = _REFERENCE.fullmatch(child.attrib.get("clip-path", ""))
            shapes = panels.get(found[1], []) if found else []
            # Only an upright rectangle is a view, and only where the element is not turned itself.
            if len(shapes) != 1 or shapes[0].tag != "rect" or "transform" in child.attrib:
                continue
            place = {name: shapes[0].attrib[name] for name in ("x", "y", "width", "height")}
            del child.attrib["clip-path"]
            view = ElementTree.Element("svg", {**place, "viewBox": " ".join(place.values())})
            view.append(child)
            parent[index] = view
    used = {found for e in root.iter() for v in e.attrib.values() for found in _REFERENCE.findall(v)}
    for parent in list(root.iter()):
        for clip in parent.findall("clipPath"):
            if clip.attrib["id"] not in used:
                parent.remove(clip)


def _rename(root: ElementTree.Element, stem: str) -> None:
    """Give names the figure's own prefix; those that nothing refers to go."""
    used = {
        found for element in root.iter() for v in element.attrib.values() for found in _REFERENCE.findall(v)
    }
    used |= {element.attrib["href"].removeprefix("#") for element in root.iter() if "href" in element.attrib}
    for element in root.iter():
        name = element.attrib.pop("id", None)
        if name in used:
            element.attrib["id"] = f"{stem}-{name}"
        target = element.attrib.get("href", "")
        if target.startswith("#"):
            element.attrib["href"] = f"#{stem}-{target[1:]}"
        for attribute, value in element.attrib.items():
            element.attrib[attribute] = _REFERENCE.sub(rf"url(#{stem}-\1)", value)


def _variable(found: re.Match[str]) -> str:
    return f"var(--grey-{found[1].lower()},{found[0]})"


def dark_greys(svgs: Iterable[str]) -> dict[str, str]:
    """Choose the dark counterpart of every grey in some figures: white becomes paper, black becomes ink.

    Examples
    --------
    >>> dark_greys(["<path style='fill:var(--grey-ff,#ffffff)'/>"])
    {'--grey-ff': '#1f1f1f'}
    """
    levels = sorted({level for svg in svgs for level in _VARIABLE.findall(svg)})
    span = _DARK_INK - _DARK_PAPER
    dark = {level: _DARK_PAPER + round(span * (255 - int(level, 16)) / 255) for level in levels}
    return {f"--grey-{level}": f"#{shade:02x}{shade:02x}{shade:02x}" for level, shade in dark.items()}
