"""Draws the README's picture: time and memory of a layer next to PyG's.

    python -m benchmarks.front_page

The numbers are those of `benchmarks/results/attention_gpu.csv`; the picture is written
twice, for light and for dark pages.
"""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tempergat.base import write_text

RESULTS = Path("benchmarks/results/attention_gpu.csv")
FIGURES = Path("docs/figures")
GRAPHS = {
    "arxiv": "ogbn-arxiv's size",
    "reddit": "Reddit's size",
    "products": "ogbn-products' size",
}
LAYERS = {
    "PyG GATv2Conv": "PyG GATv2Conv",
    "PyG GATv2Conv compiled": "the same, compiled",
    "layer gatv2 tempered, gated": "TemperGATv2Conv",
}
OURS = "layer gatv2 tempered, gated"
# What the device has, in GiB: the memory of a layer that does not fit is larger.
MEMORY_GIB = 140.0
WIDTH, LEFT, GAP, RIGHT = 880, 190, 50, 20
PANEL = (WIDTH - LEFT - GAP - RIGHT) / 2
BAR, STEP, HEADING = 17, 24, 36


class Colours(NamedTuple):
    """The colours of a picture."""

    text: str
    quiet: str
    pyg: str
    ours: str
    failed: str


LIGHT = Colours("#1f2328", "#59636e", "#afb8c1", "#0072b2", "#b35900")
DARK = Colours("#f0f6fc", "#9198a1", "#656c76", "#56b4e9", "#e69f00")


@dataclass(frozen=True)
class Row:
    """A training step of a layer; no time and memory where it ran out of memory."""

    graph: str
    layer: str
    edges: int
    ms: float | None
    gib: float | None


def read_rows(path: Path = RESULTS) -> list[Row]:
    """The rows of the picture, by graph and layer in the order they are drawn."""
    with path.open(newline="") as file:
        found = {
            (row["graph"], row["what"]): Row(
                row["graph"],
                row["what"],
                int(row["edges"]),
                float(row["step_ms"]) if row["step_ms"] else None,
                float(row["peak_gib"]) if row["peak_gib"] else None,
            )
            for row in csv.DictReader(file)
            if row["graph"] in GRAPHS and row["what"] in LAYERS
        }
    order = [(graph, layer) for graph in GRAPHS for layer in LAYERS]
    return [found[key] for key in order if key in found]


def picture(rows: list[Row], colours: Colours) -> str:
    """The picture as SVG."""
    slowest = max(row.ms for row in rows if row.ms is not None)
    second = LEFT + PANEL + GAP
    parts = [
        _text(LEFT, 20, "time of a training step", colours.text, "600"),
        _text(second, 20, f"memory, of {MEMORY_GIB:g} GiB", colours.text, "600"),
    ]
    y = 22.0
    graph = ""
    for row in rows:
        if row.graph != graph:
            graph = row.graph
            y += HEADING
            edges = f"{row.edges / 1e6:.3g} million edges"
            parts.append(_text(0, y - 10, f"{GRAPHS[graph]}, {edges}", colours.quiet))
        fill = colours.ours if row.layer == OURS else colours.pyg
        weight = "600" if row.layer == OURS else "400"
        middle = y + BAR / 2 + 4.5
        parts.append(_text(14, middle, LAYERS[row.layer], colours.text, weight))
        if row.ms is None or row.gib is None:
            parts.append(_text(LEFT, middle, "does not run", colours.failed))
            parts.append(_unfilled(second, y, colours))
        else:
            time, memory = row.ms / slowest, row.gib / MEMORY_GIB
            parts += _bar(LEFT, y, time, f"{row.ms:.3g} ms", fill, colours)
            parts += _bar(second, y, memory, f"{row.gib:.3g} GiB", fill, colours)
        y += STEP
    description = "; ".join(_words(row) for row in rows)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:g}" '
            f'width="{WIDTH}" height="{y:g}" role="img" font-size="14" '
            'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, '
            'sans-serif">',
            f"<title>{description}</title>",
            *parts,
            "</svg>\n",
        ]
    )


def _words(row: Row) -> str:
    took = "out of memory" if row.ms is None else f"{row.ms:.3g} ms, {row.gib:.3g} GiB"
    return f"{LAYERS[row.layer]}, {GRAPHS[row.graph]}: {took}"


def _text(x: float, y: float, words: str, colour: str, weight: str = "400") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{colour}" font-weight="{weight}">'
        f"{words}</text>"
    )


def _bar(
    x: float, y: float, share: float, words: str, fill: str, colours: Colours
) -> list[str]:
    # The number stands after the bar, and the longest bar leaves room for it.
    width = max(2.0, share * (PANEL - 70))
    return [
        f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{BAR}" rx="2" '
        f'fill="{fill}"/>',
        _text(round(x + width + 8, 1), y + BAR / 2 + 4.5, words, colours.text),
    ]


def _unfilled(x: float, y: float, colours: Colours) -> str:
    """A bar as long as the device's memory, for a layer that needs more."""
    width = PANEL - 70
    return (
        f'<rect x="{x + 0.5:g}" y="{y + 0.5:g}" width="{width:.1f}" '
        f'height="{BAR - 1}" rx="2" fill="none" stroke="{colours.failed}" '
        'stroke-dasharray="4 3"/>'
        + _text(x + 10, y + BAR / 2 + 4.5, "out of memory", colours.failed)
    )


def main() -> None:
    rows = read_rows()
    for name, colours in (("front-page", LIGHT), ("front-page-dark", DARK)):
        path = FIGURES / f"{name}.svg"
        write_text(path, picture(rows, colours))
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
