"""Fill the page templates of this folder, with inline figures that follow light and dark mode."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from xml.etree import ElementTree

from stripesim.scenarios.show.tables import Table

if TYPE_CHECKING:
    from jinja2 import Environment

    from stripesim.scenarios.show.figures.renderer import CaptionedFigure

_PACKAGE: Final = "stripesim.scenarios.show.page"

#: Placeholder for the policy of a page, until the hashes of its scripts are known.
_POLICY_MARK: Final = "content-security-policy-of-this-page"
# User texts are escaped, so only templates contain scripts.
_SCRIPT: Final = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True)
class Figure:
    """A figure on a page. A wide one takes the full width of the page, and scrolls if that is too narrow."""

    stem: str
    svg: str
    caption: str
    wide: bool


class Section(NamedTuple):
    """A part of a page with its own heading."""

    heading: str
    anchor: str
    text: str
    tables: Sequence[Table]
    figures: Sequence[Figure] = ()


#: Maximum width of figures that are legible on a phone [inch].
_NARROW_INCHES: Final = 6.5


def figure_blocks(figures: Mapping[str, CaptionedFigure]) -> list[Figure]:
    """Convert figures, by anchor, to blocks of a page."""
    # Imported here, because a page without figures does not need Matplotlib.
    from stripesim.scenarios.show.figures.screen import svg_of

    return [
        Figure(
            stem=stem,
            svg=inline_svg(svg_of(figure), stem, caption),
            caption=caption,
            wide=bool(figure.get_figwidth() > _NARROW_INCHES),
        )
        for stem, (figure, caption) in figures.items()
    ]


@cache
def templates(package: str, folder: str = ".") -> Environment:
    """Return the templates of a package's folder."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    template_folder = files(package) / folder

    def source(name: str) -> str:
        return (template_folder / name).read_text(encoding="utf-8")

    # Names and captions come from users, so everything is escaped unless a template says otherwise.
    return Environment(
        loader=FunctionLoader(source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **context: Any) -> str:
    """Fill a template of this folder. The page includes style and figures and links only to itself.

    A content security policy forbids browsers to load anything, or to run scripts except for those of the
    template.
    """
    greys = dark_greys(
        figure.svg for value in context.values() for figure in _figures_in(value)
    )
    filled = templates(_PACKAGE).get_template(template)
    page = filled.render(**context, dark_greys=greys, policy=_POLICY_MARK)
    # The placeholder is in the head, before all user text.
    return page.replace(_POLICY_MARK, _policy(page), 1)


def _policy(page: str) -> str:
    """Return the content security policy of a page: its style, and its scripts by hash."""
    hashes = [_script_source(script) for script in _SCRIPT.findall(page)]
    scripts = [f"script-src {' '.join(hashes)}"] if hashes else []
    # Figures contain style attributes, which a policy can only allow in general.
    directives = [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        *scripts,
        "base-uri 'none'",
    ]
    return "; ".join([*directives, "form-action 'none'"])


def _script_source(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _figures_in(value: Any) -> list[Figure]:
    if isinstance(value, Figure):
        return [value]
    if isinstance(value, list | tuple):
        return [figure for item in value for figure in _figures_in(item)]
    return []


# A grey in Matplotlib's notation, and the page's variable for it.
_GREY = re.compile(r"#([0-9a-f]{2})\1\1\b", re.IGNORECASE)
_VARIABLE = re.compile(r"--grey-([0-9a-f]{2})\b")
# Coordinates with more than two decimals. A hundredth of a point is invisible.
_LONG = re.compile(r"\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")

# Range of greys in dark mode: the values of white and black.
_DARK_PAPER: Final = 0x1F
_DARK_INK: Final = 0xEC


def inline_svg(picture: bytes, stem: str, caption: str) -> str:
    """Fit an SVG into a page, with ids prefixed by `stem` and greys as variables for dark mode."""
    root = ElementTree.fromstring(picture)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {
            name.rpartition("}")[2]: value for name, value in element.attrib.items()
        }
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
        # Text between elements is only indentation, because letters are drawn as paths.
        element.text = element.tail = None
        for name in ("d", "x", "y", "width", "height", "viewBox"):
            if name in element.attrib:
                element.attrib[name] = _LONG.sub(
                    lambda found: f"{float(found[0]):.2f}", element.attrib[name]
                )
    width, height = (
        float(root.attrib.pop(name).removesuffix("pt")) for name in ("width", "height")
    )
    root.attrib = {
        "viewBox": f"0 0 {width:g} {height:g}",
        "role": "img",
        "aria-label": caption,
        "focusable": "false",
    }
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _clip_by_viewport(root: ElementTree.Element) -> None:
    """Clip panels by nested viewports, which need no references."""
    panels = {clip.attrib["id"]: list(clip) for clip in root.iter("clipPath")}
    for parent in list(root.iter()):
        for index, child in enumerate(list(parent)):
            reference = _REFERENCE.fullmatch(child.attrib.get("clip-path", ""))
            shapes = panels.get(reference[1], []) if reference else []
            # A viewport can replace only an upright rectangle on an element without rotation.
            if (
                len(shapes) != 1
                or shapes[0].tag != "rect"
                or "transform" in child.attrib
            ):
                continue
            box = {
                name: shapes[0].attrib[name] for name in ("x", "y", "width", "height")
            }
            del child.attrib["clip-path"]
            view = ElementTree.Element(
                "svg", {**box, "viewBox": " ".join(box.values())}
            )
            view.append(child)
            parent[index] = view
    _remove_unused_clips(root)


def _remove_unused_clips(root: ElementTree.Element) -> None:
    """Remove the clip paths that no element refers to."""
    used = {
        reference
        for e in root.iter()
        for v in e.attrib.values()
        for reference in _REFERENCE.findall(v)
    }
    for parent in list(root.iter()):
        for clip in parent.findall("clipPath"):
            if clip.attrib["id"] not in used:
                parent.remove(clip)


def _rename(root: ElementTree.Element, stem: str) -> None:
    """Prefix the ids of a figure, and remove unused ones."""
    used = {
        found
        for element in root.iter()
        for v in element.attrib.values()
        for found in _REFERENCE.findall(v)
    }
    used |= {
        element.attrib["href"].removeprefix("#")
        for element in root.iter()
        if "href" in element.attrib
    }
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
    """Return the dark counterparts of the greys in some figures: white becomes paper, black becomes ink.

    >>> dark_greys(["<path style='fill:var(--grey-ff,#ffffff)'/>"])
    {'--grey-ff': '#1f1f1f'}
    """
    levels = sorted({level for svg in svgs for level in _VARIABLE.findall(svg)})
    span = _DARK_INK - _DARK_PAPER
    dark = {
        level: _DARK_PAPER + round(span * (255 - int(level, 16)) / 255)
        for level in levels
    }
    return {
        f"--grey-{level}": f"#{shade:02x}{shade:02x}{shade:02x}"
        for level, shade in dark.items()
    }
