"""Which classes a method takes for which."""

from collections.abc import Sequence

from tempergat.comparison.html_report import svg

# More classes than this are not seen in a figure, and make the page large.
MOST_CLASSES = 60

_LABEL_WIDTH, _LONGEST_LABEL = 120.0, 14
_LARGEST_CELL, _WIDTH = 46.0, 760.0
# Below this size of a cell, numbers would not fit.
_CELL_WITH_NUMBER = 30.0
# Width of a letter.
_LETTER = 7.0
# Height above the cells, where names of columns are level or slanted.
_TOP, _SLANTED_TOP = 44.0, 94.0


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
    parts = [
        svg.text(_LABEL_WIDTH, 16, "predicted class", class_="label"),
        svg.text(0, top - 8, "true class", class_="label"),
        svg.element(
            "rect", x=_LABEL_WIDTH, y=top, width=side, height=side,
            class_="heat", fill_opacity=0.05,
        ),
    ]  # fmt: skip
    for row, true in enumerate(shown):
        name = svg.shortened(class_names[true], _LONGEST_LABEL)
        y = top + row * size
        middle = y + size / 2 + 4
        parts.append(svg.text(_LABEL_WIDTH - 8, middle, name, class_="tick end"))
        x = _LABEL_WIDTH + (row + 0.5) * size
        parts.append(_column_label(x, top - 8, name, is_slanted))
        for column, predicted in enumerate(shown):
            count = counts[true][predicted]
            if not count:
                continue
            share = count / totals[true]
            words = (
                f"{class_names[true]} predicted as {class_names[predicted]}: "
                f"{count:,} of {totals[true]:,} ({100 * share:.1f} %)"
            )
            parts.append(_cell(_LABEL_WIDTH + column * size, y, size, share, words))
    return svg.drawing(
        _LABEL_WIDTH + side + 70, top + side + 12, f"Confusion matrix of {method}",
        parts,
    )  # fmt: skip


def _column_label(x: float, y: float, name: str, is_slanted: bool) -> str:
    """The name above a column; slanted where names are wider than columns."""
    if not is_slanted:
        return svg.text(x, y, name, class_="tick middle")
    turned = f"rotate(-35 {x:.1f} {y:.1f})"
    return svg.text(x, y, name, class_="tick", transform=turned)


def _cell(x: float, y: float, size: float, share: float, words: str) -> str:
    square = svg.element(
        "rect", svg.title(words),
        x=x + 0.5, y=y + 0.5, width=size - 1, height=size - 1, rx=2,
        class_="heat", fill_opacity=0.04 + 0.9 * share,
    )  # fmt: skip
    if size < _CELL_WITH_NUMBER or share < 0.005:
        return square
    dark = " on-heat" if share > 0.5 else ""
    number = svg.text(
        x + size / 2, y + size / 2 + 4, f"{100 * share:.0f}",
        class_=f"cell middle{dark}", pointer_events="none",
    )  # fmt: skip
    return square + number
