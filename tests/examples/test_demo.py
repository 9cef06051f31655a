"""The headline of `make demo` has the paper's means beside those of the run."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
if str(DOCS) not in sys.path:
    sys.path.append(str(DOCS))
import demo  # noqa: E402


def rows() -> pl.DataFrame:
    """Return throughputs of 10 and 30 MB/s, twice that for 3-replication: means of 20 and 40."""
    return pl.DataFrame(
        [
            {
                "op": op,
                "pattern": pattern,
                "scheme": scheme,
                "throughput_bytes_per_s": factor * 1e6 * rate,
            }
            for op, pattern in [("write", "seq"), ("write", "rand"), ("read", "seq")]
            for scheme in demo.SCHEMES
            for factor in [2 if scheme == "rep:3" else 1]
            for rate in (10, 30)
        ]
    )


def test_each_bar_has_the_published_mean_beside_it(tmp_path: Path) -> None:
    assert demo.means(rows(), "write", "seq") == pytest.approx([40, 20, 20])
    figure, caption = demo.fit_figure(rows())
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    # Koh et al.: sequential writes of 179, 36.8 and 28 MB/s; RS(6,3) reads 26 % less than 3-replication.
    assert texts[:3] == ["40 (179)", "20 (36.8)", "20 (28)"]
    assert texts[-2:] == ["0.5 (0.74)", "0.5 (0.55)"]
    assert "used to calibrate" in caption
    rows().write_parquet(tmp_path / "results.parquet")
    demo.draw(tmp_path)
    assert (tmp_path / "headline.png").read_bytes().startswith(b"\x89PNG")
