"""The house style, and the files of figures for screens: SVG and PNG."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

#: Enough for a slide of 1920 pixels and for print at column width.
_DPI: Final = 170
#: No date and no version of the drawing library, so that equal rows give equal bytes.
_SCREEN_FORMATS: Final[Mapping[str, dict[str, Any]]] = MappingProxyType(
    {
        # Full compression takes a third longer, for files that are 6 % smaller.
        "png": {"metadata": {"Software": None}, "pil_kwargs": {"compress_level": 3}},
        "svg": {"metadata": {"Date": None, "Creator": "stripesim"}},
    }
)


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save in the house style inside this context."""
    with mpl.rc_context(_house_style()):
        yield


@cache
def _house_style() -> mpl.RcParams:
    return mpl.rc_params_from_file(
        Path(__file__).with_name("house.mplstyle"), use_default_template=False
    )


def svg_of(figure: Figure) -> bytes:
    """Return a figure as SVG, reproducibly."""
    with styled(), _laid_out(figure):
        return _saved(figure, "svg")


def screen_files(stem: str, figure: Figure) -> dict[str, bytes]:
    """Return the files of a figure for screens, by name. They share a layout."""
    with styled(), _laid_out(figure):
        return {
            f"{stem}.{suffix}": _saved(figure, suffix) for suffix in _SCREEN_FORMATS
        }


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """Lay a figure out, and fix its layout. Otherwise Matplotlib would draw each file twice."""
    engine = figure.get_layout_engine()
    if engine is not None:
        dpi = figure.dpi
        # Letters of few dots are narrower, so that names would be cut.
        figure.set_dpi(_DPI)
        engine.execute(figure)
        figure.set_dpi(dpi)
    figure.set_layout_engine(None)
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def _saved(figure: Figure, suffix: str) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format=suffix, dpi=_DPI, **_SCREEN_FORMATS[suffix])
    return buffer.getvalue()
