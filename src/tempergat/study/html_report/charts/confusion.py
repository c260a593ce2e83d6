"""Which classes a method takes for which."""

from collections.abc import Sequence

from tempergat.study.html_report import svg

_LABEL_WIDTH, _TOP, _LONGEST_LABEL = 120.0, 64.0, 14
_LARGEST_CELL, _SMALLEST_CELL, _WIDTH = 46.0, 9.0, 520.0
# Below this size of a cell, numbers would not fit.
_CELL_WITH_NUMBER = 30.0
# Width of a letter.
_LETTER = 7.0


def confusion_chart(
    method: str, counts: Sequence[Sequence[int]], class_names: Sequence[str]
) -> str:
    """The share of each true class (row) that is predicted as each class (column).

    Args:
        method: The method.
        counts: Test nodes of all finished runs by true and predicted class.
        class_names: The names of the classes.
    """
    size = max(_SMALLEST_CELL, min(_LARGEST_CELL, _WIDTH / len(counts)))
    parts = [
        svg.text(_LABEL_WIDTH, 16, "predicted class", class_="label"),
        svg.text(0, _TOP - 8, "true class", class_="label"),
    ]
    is_narrow = max(map(len, class_names)) * _LETTER > size
    for row, (name, line) in enumerate(zip(class_names, counts, strict=True)):
        total = sum(line)
        y = _TOP + row * size
        if size >= _SMALLEST_CELL + 3:
            middle = y + size / 2 + 4
            parts.append(
                svg.text(
                    _LABEL_WIDTH - 8,
                    middle,
                    svg.shortened(name, _LONGEST_LABEL),
                    class_="tick end",
                )
            )
            x = _LABEL_WIDTH + (row + 0.5) * size
            parts.append(_column_label(x, name, is_narrow))
        for column, count in enumerate(line):
            share = count / total if total else 0.0
            words = (
                f"{name} predicted as {class_names[column]}: {count:,} of {total:,} "
                f"({100 * share:.1f} %)"
            )
            parts.append(_cell(_LABEL_WIDTH + column * size, y, size, share, words))
    side = _LABEL_WIDTH + len(counts) * size + 60
    height = _TOP + len(counts) * size + 12
    return svg.drawing(side, height, f"Confusion matrix of {method}", parts)


def _column_label(x: float, name: str, is_narrow: bool) -> str:
    """The name above a column; slanted where names are wider than columns."""
    y = _TOP - 8
    if not is_narrow:
        return svg.text(x, y, name, class_="tick middle")
    turned = f"rotate(-35 {x:.1f} {y:.1f})"
    return svg.text(
        x, y, svg.shortened(name, _LONGEST_LABEL), class_="tick", transform=turned
    )


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
        class_=f"tick middle{dark}", pointer_events="none",
    )  # fmt: skip
    return square + number
