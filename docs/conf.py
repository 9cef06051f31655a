"""Configure Sphinx, which `docs/build.py` starts on the staged pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from stripesim import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

project = "stripesim"
author = "the stripesim developers"
copyright = "the stripesim developers, Apache-2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_space = False
myst_dmath_allow_digits = False
myst_heading_anchors = 4
napoleon_google_docstring = False
# A docstring's single backticks are code.
default_role = "literal"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88

html_math_renderer = "mathml"
html_theme = "furo"
html_title = f"stripesim {__version__}"
html_copy_source = False
html_show_sourcelink = False
templates_path: list[str] = []
html_static_path = ["_static"]
html_css_files = ["stripesim.css"]
pygments_style = "default"
pygments_dark_style = "monokai"


def _numbered(tex: str) -> tuple[str, str]:
    """Separate the number from an equation, because MathML has none."""
    tag = re.search(r"\\\\?tag\{(\d+)\}", tex)
    if tag is None:
        return tex, ""
    return tex.replace(tag[0], ""), f"({tag[1]})"


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    tex, number = _numbered(node.astext())
    self.body.append(
        f'<div class="math">{tex2mathml(tex, as_block=True)}{number}</div>'
    )
    raise nodes.SkipNode


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Render equations as MathML, so that no page loads a script."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True}
