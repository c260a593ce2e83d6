"""One node and its neighbours as an SVG picture, for a notebook or a paper."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from tempergat.base import UserError, write_text
from tempergat.comparison.explorer.neighbourhood import (
    Neighbourhood,
    ShownNode,
    neighbourhood_of,
)
from tempergat.comparison.html_report.svg import Drawing, shortened, shortened_id

# Fill and text of each class, after Okabe and Ito: different also to people who confuse
# red and green, on light and on dark pages. The number of the class is written inside.
COLOURS = (
    ("#0072b2", "#ffffff"),
    ("#e69f00", "#000000"),
    ("#009e73", "#000000"),
    ("#cc79a7", "#000000"),
    ("#56b4e9", "#000000"),
    ("#d55e00", "#000000"),
    ("#f0e442", "#000000"),
    ("#8d949b", "#000000"),
)
_WIDTH, _MIDDLE, _RING, _TOP = 640.0, 320.0, 178.0, 262.0
_RADIUS, _CENTRE_RADIUS = 12.0, 20.0
# The width of an edge that has all the attention.
_WIDEST = 16.0
_UNKNOWN_INK = "#1d1f21"
_LEGEND_ROW, _LEGEND_COLUMN = 24.0, 200.0
_STYLE = (
    ".tempergat text{font:13px/1 system-ui,'Segoe UI',Roboto,'DejaVu Sans',Arial,"
    "sans-serif;fill:#1d1f21}.tempergat .soft{fill:#5b6066}"
    ".tempergat .edge{stroke:#6f7880}"
    ".tempergat .unknown{fill:#ffffff;stroke:#5b6066;stroke-width:1.5;"
    "stroke-dasharray:3 2.5}"
    ".tempergat .own{stroke:#6f7880;fill:none}"
    ".tempergat .wrong{stroke:#1d1f21;stroke-width:2.5;stroke-linecap:round}"
    "@media (prefers-color-scheme:dark){.tempergat text{fill:#e7e9ea}"
    ".tempergat .soft{fill:#a4abb1}.tempergat .wrong{stroke:#e7e9ea}}"
)


@dataclass(frozen=True)
class NodePicture:
    """A picture of one node; notebooks show it.

    Attributes:
        svg: The picture as SVG text.
    """

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"NodePicture({len(self.svg)} characters of SVG)"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the picture; the file is replaced as a whole or not at all.

        Args:
            path: The SVG file.

        Returns:
            Its path.

        Raises:
            UserError: The file cannot be written.
        """
        write_text(Path(path), self.svg + "\n")
        return Path(path)


def draw_node(
    model: nn.Module,
    graph: Any,
    node: int | str,
    *,
    layer: int = -1,
    head: int | None = None,
    max_neighbors: int = 24,
) -> NodePicture:
    """Draws a node, its neighbours and the attention it pays to them.

    The width of an edge is its attention weight, and so is that of the ring around the
    node for its self-loop. The colour and the number of a node are its true class; a
    node whose class is not known is dashed, with a question mark. A node that the model
    classifies wrongly has a cross. The words of the picture count layers and heads from
    1.

    Args:
        model: A model that `tempergat.attention` takes. It returns class scores for
            every node.
        graph: A graph that it takes, with one type of nodes. Its labels are taken from
            ``y``, if it has any.
        node: The number of the node, or its id in the user's table.
        layer: The layer, from 0; -1 is the last one.
        head: The head, from 0; None for the mean over heads.
        max_neighbors: How many neighbours are drawn at most, the strongest first.

    Raises:
        UserError: There is no such node, layer or head, or the model has no attention.
    """
    if max_neighbors < 1:
        raise UserError(f"max_neighbors must be at least 1, got {max_neighbors}")
    view = neighbourhood_of(model, graph, node, layer, head)
    return NodePicture(picture_svg(view, max_neighbors))


def picture_svg(view: Neighbourhood, most: int) -> str:
    """The picture of a neighbourhood.

    Args:
        view: The neighbourhood.
        most: How many neighbours are drawn at most.
    """
    drawn, left = view.neighbours[:most], view.neighbours[most:]
    places = [_place(number, len(drawn)) for number in range(len(drawn))]
    drawing = Drawing()
    drawing.add("style", "", _STYLE)
    own = view.node.weight
    ring = max(0.6, _WIDEST * own) if own else 0.0
    # Edges end at the ring.
    inner = (_CENTRE_RADIUS + 3 + ring / 2) / _RING
    for other, (x, y) in zip(drawn, places, strict=True):
        x2, y2 = _MIDDLE + inner * (x - _MIDDLE), _TOP + inner * (y - _TOP)
        ends = {"x1": x, "y1": y, "x2": x2, "y2": y2}
        width = max(0.6, _WIDEST * other.weight)
        drawing.add("line", **ends, class_="edge", stroke_width=width)
    if own:
        size = _CENTRE_RADIUS + 3 + ring / 2
        place = {"cx": _MIDDLE, "cy": _TOP, "r": size}
        drawing.add("circle", **place, class_="own", stroke_width=ring)
    for other, (x, y) in zip(drawn, places, strict=True):
        _draw_node(drawing, other, view, x, y, _RADIUS)
        _draw_label(drawing, other, x, y)
    _draw_node(drawing, view.node, view, _MIDDLE, _TOP, _CENTRE_RADIUS)
    words = [f"node {view.node.name}", view.layer]
    if own:
        words.append(f"attention weight {own:.2f} to itself")
    drawing.text(20.0, 22.0, shortened(", ".join(words), 84))
    drawing.text(20.0, 42.0, shortened(_verdict(view), 84), class_="soft")
    bottom = _TOP + _RING + 60
    if left:
        rest = sum(other.weight for other in left)
        note = f"{len(left)} more neighbours, {rest:.2f} in all, are not drawn"
        drawing.text(20.0, bottom, note, class_="soft")
        bottom += 26
    height = _draw_legend(drawing, view, bottom)
    picture = Drawing()
    picture.add("g", "", "".join(drawing.parts), class_="tempergat")
    name = f"Node {view.node.name} and its neighbours. {_verdict(view)}"
    return picture.svg(_WIDTH, height, name)


def _place(number: int, count: int) -> tuple[float, float]:
    """Clockwise from the top."""
    angle = 2 * math.pi * number / max(count, 1) - math.pi / 2
    return _MIDDLE + _RING * math.cos(angle), _TOP + _RING * math.sin(angle)


def _draw_node(
    drawing: Drawing,
    one: ShownNode,
    view: Neighbourhood,
    x: float,
    y: float,
    radius: float,
) -> None:
    words = _class_words(one, view)
    said = f"node {one.name}: {words}, attention weight {one.weight:.3f}"
    _draw_disc(drawing, one.label, x, y, radius, said)
    if one.is_right is False:
        arm = 4.5
        a, b = x + radius * 0.8, y - radius * 0.8
        for dx in (arm, -arm):
            drawing.line(a - dx, b - arm, a + dx, b + arm, "wrong")


def _draw_disc(
    drawing: Drawing,
    label: int | None,
    x: float,
    y: float,
    radius: float,
    words: str = "",
) -> None:
    """The sign of a class; None for one that is not known."""
    if label is None:
        sign, ink, look = "?", _UNKNOWN_INK, {"class_": "unknown"}
    else:
        fill, ink = COLOURS[label % len(COLOURS)]
        sign, look = str(label), {"fill": fill}
    style = f"fill:{ink};font-weight:600;pointer-events:none"
    drawing.add("circle", words, cx=x, cy=y, r=radius, **look)
    drawing.text(x, y + 4.5, sign, text_anchor="middle", style=style)


def _draw_label(drawing: Drawing, one: ShownNode, x: float, y: float) -> None:
    """Name and attention, on the outer side of the circle."""
    dx, dy = (x - _MIDDLE) / _RING, (y - _TOP) / _RING
    anchor = "middle" if abs(dx) < 0.25 else "start" if dx > 0 else "end"
    at = (x + dx * (_RADIUS + 10), y + dy * (_RADIUS + 12) + 4.5)
    weight = f"{one.weight:.2f}" if one.weight >= 0.095 else f"{one.weight:.3f}"
    words = f"{shortened_id(one.name, 12)} · {weight}"
    drawing.text(*at, words, text_anchor=anchor)


def _class_words(one: ShownNode, view: Neighbourhood) -> str:
    known = "class not known;"
    if one.label is not None:
        known = f"class {view.class_name(one.label)},"
    if one.predicted is None:
        return f"{known} not predicted"
    guess = "right" if one.is_right else view.class_name(one.predicted)
    return f"{known} predicted {guess}"


def _verdict(view: Neighbourhood) -> str:
    words = _class_words(view.node, view)
    return words[0].upper() + words[1:]


def _draw_legend(drawing: Drawing, view: Neighbourhood, top: float) -> float:
    """Draw the legend; returns where the picture ends."""
    labels = {one.label for one in (view.node, *view.neighbours)}
    shown: list[int | None] = [*sorted(label for label in labels if label is not None)]
    if None in labels:
        shown.append(None)
    per_row = int((_WIDTH - 40) // _LEGEND_COLUMN)
    for number, place in enumerate(shown):
        x = 32 + (number % per_row) * _LEGEND_COLUMN
        y = top + (number // per_row) * _LEGEND_ROW
        _draw_disc(drawing, place, x, y, 9)
        named = "class not known"
        if place is not None:
            word = view.class_name(place)
            named = word if word != str(place) else f"class {word}"
        drawing.text(x + 16, y + 4, shortened(named, 22))
    rows = -(-len(shown) // per_row)
    y = top + rows * _LEGEND_ROW
    note = (
        "Width: attention weight. Ring: attention weight to itself. "
        "Cross: classified wrongly."
    )
    drawing.text(20.0, y + 4, note, class_="soft")
    return y + 20
