"""Write finished figures: SVG and PNG for screens, PDF, SVG and LaTeX for papers, and their captions."""

from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, Final, cast

import matplotlib as mpl

from stripesim.models.problems import AnswerError, Problem
from stripesim.scenarios.show.figures.paper import (
    WIDTH_MAX_INCH,
    WIDTH_MIN_INCH,
    paper_files,
)
from stripesim.scenarios.show.figures.renderer import CaptionedFigure
from stripesim.scenarios.show.figures.screen import screen_files, styled
from stripesim.scenarios.show.files import write_files

_CAPTIONS: Final = "captions.md"
#: Text stays text: a PDF embeds TrueType fonts, an SVG names them.
_PAPER_FONTS: Final[dict[str, Any]] = {"pdf.fonttype": 42, "svg.fonttype": "none"}


def save_figures(
    figures: Mapping[str, CaptionedFigure],
    out_dir: str | Path,
    *,
    width_inch: float | None = None,
) -> list[Path]:
    """Write figures as SVG and PNG, or for a paper as PDF and SVG, and their captions.

    Parameters
    ----------
    figures
        File stem → figure.
    out_dir
        Folder, created if missing.
    width_inch
        Width of a paper's column [inch], 2 to 12. Figures of stripesim are drawn again for it, and keep
        their form for screens. None writes that form.

    Returns
    -------
    list of Path
        ``<stem>.svg`` and ``<stem>.png`` for each figure, or with a width ``<stem>.pdf``, ``<stem>.svg`` and
        ``<stem>.tex``, then ``captions.md``. Captions of other figures in that file stay.

    Raises
    ------
    AnswerError
        If the width is out of range, a stem or a figure is none, or the folder cannot be written to.

    Notes
    -----
    The files contain no date, so that equal rows give equal bytes.
    """
    if width_inch is not None and not WIDTH_MIN_INCH <= width_inch <= WIDTH_MAX_INCH:
        wanted = f"{WIDTH_MIN_INCH:g} to {WIDTH_MAX_INCH:g} inches"
        raise AnswerError(
            Problem(key="width_inch", got=f"{width_inch:g}", wanted=wanted)
        )
    _check_figures(figures)
    contents: dict[str, bytes] = {}
    for stem, drawn in figures.items():
        if width_inch is None:
            contents |= screen_files(stem, drawn.figure)
            continue
        with styled(), mpl.rc_context(cast(Any, _PAPER_FONTS)):
            figure = drawn.at_width(width_inch)
            contents |= paper_files(stem, figure, drawn.caption, width_inch)
    if figures:
        captions = {stem: caption for stem, (_, caption) in figures.items()}
        contents[_CAPTIONS] = _captions(Path(out_dir) / _CAPTIONS, captions)
    return write_files(out_dir, contents)


def _check_figures(figures: Mapping[Any, Any]) -> None:
    """Reject stems that are no plain names of files, and values that are no figures."""
    problems = []
    for stem, drawn in figures.items():
        if not isinstance(stem, str) or Path(stem).name != stem:
            wanted = "a file name without its suffix"
            problems.append(Problem(key="figures", got=short_repr(stem), wanted=wanted))
        if not isinstance(drawn, CaptionedFigure):
            got = short_repr(drawn)
            wanted = (
                "a CaptionedFigure, as draw_all and the other draw functions return"
            )
            problems.append(Problem(key=f"figures[{stem!r}]", got=got, wanted=wanted))
    if problems:
        raise AnswerError(*problems)


def _captions(there: Path, captions: Mapping[str, str]) -> bytes:
    """Return the file of captions: those of figures saved there before stay, unless they are saved again."""
    texts = there.read_text("utf-8", "replace").split("\n\n") if there.is_file() else []
    heads = {f"**{stem}.** ": caption for stem, caption in captions.items()}
    kept = [text.strip() for text in texts if not text.startswith(tuple(heads))]
    written = [head + caption for head, caption in heads.items()]
    return ("\n\n".join([*filter(None, kept), *written]) + "\n").encode()
