"""Average ranks of methods over datasets, with the critical difference."""

from tempergat.comparison.html_report import marks, svg
from tempergat.stats import RankTable

_WIDTH, _SIDE, _AXIS, _ROW, _GROUPS_TOP, _GROUP_ROW = (
    760.0,
    190.0,
    46.0,
    22.0,
    66.0,
    9.0,
)


def ranks_chart(table: RankTable) -> str:
    """The methods on an axis of average ranks.

    A bar joins methods whose average ranks differ by less than the critical difference.

    Args:
        table: Average ranks, best first.
    """
    methods = list(table.average)
    ranks = list(table.average.values())
    x = svg.Scale(1.0, float(max(len(methods), 2)), _SIDE, _WIDTH - _SIDE)
    parts = [svg.line(x.start, _AXIS, x.end, _AXIS, "axis")]
    for rank in range(1, len(methods) + 1):
        parts.append(svg.line(x(rank), _AXIS - 5, x(rank), _AXIS, "axis"))
        parts.append(svg.text(x(rank), _AXIS - 10, str(rank), class_="tick middle"))
    reach = min(x.end, x.start + (x(1.0 + table.critical_difference) - x(1.0)))
    parts += [
        svg.line(x.start, 12, reach, 12, "interval c0"),
        svg.text(
            reach + 8, 16, f"critical difference {table.critical_difference:.2f}",
            class_="tick",
        ),
    ]  # fmt: skip
    groups = _groups(ranks, table.critical_difference)
    for number, (first, last) in enumerate(groups):
        y = _GROUPS_TOP - 8 + number * _GROUP_ROW
        parts.append(svg.line(x(ranks[first]) - 4, y, x(ranks[last]) + 4, y, "group"))
    top = _GROUPS_TOP + len(groups) * _GROUP_ROW + 6
    half = (len(methods) + 1) // 2
    for number, (method, average) in enumerate(table.average.items()):
        is_left = number < half
        row = number if is_left else len(methods) - 1 - number
        parts += _named(method, average, x, top + row * _ROW, is_left, tuple(methods))
    return svg.drawing(
        _WIDTH, top + half * _ROW, "Average ranks with critical difference", parts
    )


def _named(
    method: str,
    rank: float,
    x: svg.Scale,
    y: float,
    is_left: bool,
    methods: tuple[str, ...],
) -> list[str]:
    colour = marks.colour_of(method, methods)
    end = x.start - 14 if is_left else x.end + 14
    path = [(x(rank), _AXIS), (x(rank), y), (end, y)]
    words = f"{method} {rank:.2f}" if is_left else f"{rank:.2f} {method}"
    return [
        svg.element("path", d=svg.path_of(path), class_=f"thin {colour}"),
        svg.element("circle", cx=x(rank), cy=_AXIS, r=4.0, class_=f"mark {colour}"),
        svg.text(
            end - 6 if is_left else end + 6, y + 4, words,
            class_="name end" if is_left else "name",
        ),
    ]  # fmt: skip


def _groups(ranks: list[float], difference: float) -> list[tuple[int, int]]:
    """The largest runs of methods within one critical difference."""
    groups: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(n for n, other in enumerate(ranks) if other - rank < difference)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups
