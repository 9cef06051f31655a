"""Figures inside a page: names of their own, colours that follow the reader's light or dark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from stripesim.scenarios.figures import METADATA, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["dark_greys", "inline_svg"]

# A grey as Matplotlib writes it, and the variable that stands for it on the page.
_GREY = re.compile(r"#([0-9a-f]{2})\1\1\b", re.IGNORECASE)
_VARIABLE = re.compile(r"--grey-([0-9a-f]{2})\b")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")

# Ends of the grey scale in the dark: what is white on paper, and what is black.
_DARK_PAPER: Final = 0x1F
_DARK_INK: Final = 0xEC


def inline_svg(figure: Figure, stem: str, caption: str) -> str:
    """Draw a figure as SVG that can stand in an HTML page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    stem : str
        Put before every name inside, so that two figures on a page do not share any.
    caption : str
        Read out in the figure's stead.

    Returns
    -------
    str
        An ``svg`` element. Greys are variables, which the page's style sets for the dark; anything else keeps
        its colour. Without metadata, namespaces and styles that would reach beyond the figure.
    """
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
    _rename(root, stem)
    for element in root.iter():
        for name in ("style", "fill", "stroke"):
            if name in element.attrib:
                element.attrib[name] = _GREY.sub(_variable, element.attrib[name])
    width, height = (float(root.attrib.pop(name).removesuffix("pt")) for name in ("width", "height"))
    root.attrib = {
        "viewBox": f"0 0 {width:g} {height:g}",
        "role": "img",
        "aria-label": caption,
        "focusable": "false",
    }
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


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
    """Choose the dark counterpart of every grey in some figures.

    Parameters
    ----------
    svgs : iterable of str
        From `inline_svg`.

    Returns
    -------
    dict of str to str
        Variable → colour: white becomes the dark page's paper, black its ink, and what is between stays so.

    Examples
    --------
    >>> dark_greys(["<path style='fill:var(--grey-ff,#ffffff)'/>"])
    {'--grey-ff': '#1f1f1f'}
    """
    levels = sorted({level for svg in svgs for level in _VARIABLE.findall(svg)})
    span = _DARK_INK - _DARK_PAPER
    dark = {level: _DARK_PAPER + round(span * (255 - int(level, 16)) / 255) for level in levels}
    return {f"--grey-{level}": f"#{shade:02x}{shade:02x}{shade:02x}" for level, shade in dark.items()}
