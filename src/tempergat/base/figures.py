"""The look of every figure, and how one is saved.

Figures use matplotlib's object interface only and are the same bytes for the same
numbers, so that a committed figure changes only when its numbers do.
"""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from tempergat.base import files

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
    # Long enough to tell dashes from dots.
    "legend.handlelength": 3.5,
    "lines.linewidth": 1.5,
    "svg.hashsalt": "tempergat",
}

# Okabe and Ito's colours in an order whose lightness falls, so that they stay apart
# in grey; every use pairs a colour with a marker or a line style of its own.
COLOURS = ("#E69F00", "#56B4E9", "#D55E00", "#0072B2", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


@contextmanager
def style() -> Iterator[None]:
    """Draw with the project's settings, leaving matplotlib's own untouched."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def new_figure(width: float = 6.4, height: float = 4.0) -> Figure:
    """An empty figure, in inches, drawn without a display.

    Call it and draw on it inside `style()`.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, stem: str | Path) -> tuple[Path, Path]:
    """Write a figure as SVG and PNG, each whole or not at all.

    Args:
        figure: What to write.
        stem: Path without a suffix: `out/scores` gives `out/scores.svg` and
            `out/scores.png`.

    Returns:
        The two paths, SVG first.
    """
    paths = []
    for suffix, metadata in ((".svg", {"Date": None}), (".png", {"Software": None})):
        buffer = io.BytesIO()
        with style():
            figure.savefig(buffer, format=suffix[1:], metadata=metadata)
        path = Path(f"{stem}{suffix}")
        files.write_bytes(path, buffer.getvalue())
        paths.append(path)
    return paths[0], paths[1]
