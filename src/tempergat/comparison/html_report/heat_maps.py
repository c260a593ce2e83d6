"""Coloured squares: confusion matrices, and differences by method and graph."""

from collections.abc import Mapping, Sequence

from tempergat.comparison.html_report import svg
from tempergat.comparison.report.formats import p_value, signed
from tempergat.comparison.results.result import DatasetResult
from tempergat.stats import PairedComparison

# More classes than this are not seen in a figure, and make the page large.
MOST_CLASSES = 60
_LEFT, _WIDTH, _LARGEST_CELL = 120.0, 760.0, 46.0
# Below this size of a cell, numbers would not fit.
_CELL_WITH_NUMBER = 30.0
# Width of a letter, and the letters of a name that fit beside or above cells.
_LETTER, _LONGEST_NAME = 7.0, 14
# Height above the cells, where names of columns are level or slanted.
_TOP, _SLANTED_TOP = 44.0, 94.0
# The same for differences, whose cells are wider than high.
_MAP_TOP, _MAP_CELL_WIDTH, _MAP_CELL_HEIGHT = 34.0, 96.0, 34.0


def confusion_chart(
    method: str, counts: Sequence[Sequence[int]], class_names: Sequence[str]
) -> str:
    """The share of each true class (row) that is predicted as each class (column).

    Of more than `MOST_CLASSES` classes, those with the most test nodes are drawn.

    Args:
        method: The method.
        counts: Test nodes of all finished runs by true and predicted class.
        class_names: The names of the classes.
    """
    totals = [sum(line) for line in counts]
    by_size = sorted(range(len(counts)), key=lambda number: -totals[number])
    shown = sorted(by_size[:MOST_CLASSES])
    size = min(_LARGEST_CELL, _WIDTH / len(shown))
    is_slanted = max(len(class_names[number]) for number in shown) * _LETTER > size
    top = _SLANTED_TOP if is_slanted else _TOP
    side = len(shown) * size
    drawing = svg.Drawing()
    drawing.text(_LEFT, 16, "predicted class", class_="label")
    drawing.text(0, top - 8, "true class", class_="label")
    square = {"x": _LEFT, "y": top, "width": side, "height": side}
    drawing.add("rect", **square, class_="heat", fill_opacity=0.05)
    for row, true in enumerate(shown):
        name = svg.shortened(class_names[true], _LONGEST_NAME)
        y = top + row * size
        drawing.text(_LEFT - 8, y + size / 2 + 4, name, class_="tick end")
        x = _LEFT + (row + 0.5) * size
        look = {"class_": "tick middle"}
        if is_slanted:
            turned = f"rotate(-35 {x:.1f} {top - 8:.1f})"
            look = {"class_": "tick", "transform": turned}
        drawing.text(x, top - 8, name, **look)
        for column, predicted in enumerate(shown):
            count = counts[true][predicted]
            if not count:
                continue
            share = count / totals[true]
            words = (
                f"{class_names[true]} predicted as {class_names[predicted]}: "
                f"{count:,} of {totals[true]:,} ({100 * share:.1f} %)"
            )
            x = _LEFT + column * size
            drawing.add(
                "rect", words,
                x=x + 0.5, y=y + 0.5, width=size - 1, height=size - 1, rx=2,
                class_="heat", fill_opacity=0.04 + 0.9 * share,
            )  # fmt: skip
            if size >= _CELL_WITH_NUMBER and share >= 0.005:
                dark = " on-heat" if share > 0.5 else ""
                drawing.text(
                    x + size / 2, y + size / 2 + 4, f"{100 * share:.0f}",
                    class_=f"cell middle{dark}", pointer_events="none",
                )  # fmt: skip
    name = f"Confusion matrix of {method}"
    return drawing.svg(_LEFT + side + 70, top + side + 12, name)


def differences_chart(results: Mapping[str, DatasetResult]) -> str | None:
    """One row per compared method, one column per graph; None without comparisons.

    Gains are in one colour and losses in another; a star marks those whose corrected
    p-value is below 0.05.

    Args:
        results: The result of each graph, by the name to show.
    """
    compared = [result.against_baseline for result in results.values()]
    methods = list(dict.fromkeys(method for column in compared for method in column))
    if not methods:
        return None
    pairs = [pair for column in compared for pair in column.values()]
    largest = max(abs(pair.difference or 0.0) for pair in pairs)
    drawing = svg.Drawing()
    for column, name in enumerate(results):
        x = svg.NAME_WIDTH + (column + 0.5) * _MAP_CELL_WIDTH
        words = svg.shortened(name, _LONGEST_NAME)
        drawing.text(x, _MAP_TOP - 10, words, class_="name middle")
    for row, method in enumerate(methods):
        y = _MAP_TOP + row * _MAP_CELL_HEIGHT
        drawing.method_name(svg.NAME_WIDTH - 12, y + 21, method)
        for column, result in enumerate(results.values()):
            if method in compared[column]:
                x = svg.NAME_WIDTH + column * _MAP_CELL_WIDTH
                pair = compared[column][method]
                _draw_difference(drawing, x, y, result, pair, largest)
    width = svg.NAME_WIDTH + len(results) * _MAP_CELL_WIDTH + 6
    height = _MAP_TOP + len(methods) * _MAP_CELL_HEIGHT + 6
    name = "Difference to the baseline by method and graph"
    return drawing.svg(width, height, name)


def _draw_difference(
    drawing: svg.Drawing,
    x: float,
    y: float,
    result: DatasetResult,
    pair: PairedComparison,
    largest: float,
) -> None:
    difference = pair.difference
    if difference is None:
        return
    star, weight = "", ""
    if pair.verdict in ("better", "worse"):
        star, weight = " *", " strong"
    by = signed(difference, result.metric.digits)
    gains = result.metric.merit(difference) > 0
    words = (
        f"{pair.method} on {result.dataset}: {by} {result.metric.points}".rstrip()
        + f" against {pair.baseline}, p {p_value(pair.t_p_holm)}, {pair.verdict}"
    )
    strength = abs(difference) / largest if largest else 0.0
    drawing.add(
        "rect", words,
        x=x + 1.0, y=y + 1.0, width=_MAP_CELL_WIDTH - 2, height=_MAP_CELL_HEIGHT - 2,
        rx=3, class_="gain" if gains else "loss",
        fill_opacity=0.05 + 0.6 * strength,
    )  # fmt: skip
    drawing.text(
        x + _MAP_CELL_WIDTH / 2, y + 21, by + star,
        class_=f"value middle{weight}", pointer_events="none",
    )  # fmt: skip
