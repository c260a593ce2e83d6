"""The style of all figures, and how they are saved.

The same numbers give the same bytes, so a committed figure changes only when its
numbers do. Only matplotlib's object interface is used, never its global state.
"""

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tempergat.base.files import write_into

STYLE: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "figure.dpi": 150.0,
    "savefig.dpi": 150.0,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "legend.frameon": False,
    # Long enough to see the difference between dashes and dots.
    "legend.handlelength": 3.5,
    "lines.linewidth": 1.5,
    "svg.hashsalt": "tempergat",
}

# Okabe and Ito's colours from light to dark, so that they also differ in grey. A
# series always has a marker or a line style as well.
COLOURS = ("#E69F00", "#56B4E9", "#D55E00", "#0072B2", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
# What would differ each time.
_UNDATED = {".svg": {"Date": None}, ".png": {"Software": None}}


@contextmanager
def style() -> Iterator[None]:
    """Draws in the project's style; matplotlib's settings are restored after it."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def new_figure(width: float = 6.4, height: float = 4.0) -> Figure:
    """An empty figure that needs no display; create and draw it inside `style()`.

    Args:
        width: In inches.
        height: In inches.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(
    figure: Figure, stem: str | Path, suffixes: Sequence[str] = (".svg", ".png")
) -> list[Path]:
    """Writes a figure as SVG and as PNG, each atomically.

    Args:
        figure: The figure.
        stem: Path without a suffix: `out/scores` gives `out/scores.svg` and
            `out/scores.png`.
        suffixes: The kinds of files; pages of the documentation show SVG alone.

    Returns:
        The paths, in the order of the suffixes.
    """
    paths = []
    for suffix in suffixes:
        buffer = io.BytesIO()
        with style(), warnings.catch_warnings():
            # Letters that the font lacks are drawn as boxes.
            warnings.filterwarnings("ignore", "Glyph .* missing from (current )?font")
            figure.savefig(buffer, format=suffix[1:], metadata=_UNDATED[suffix])
        path = Path(f"{stem}{suffix}")
        paths.append(write_into(path.parent, path.name, buffer.getvalue()))
    return paths
