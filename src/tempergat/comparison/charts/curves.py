"""Learning curves: the validation score over epochs."""

from collections.abc import Mapping, Sequence

from tempergat.comparison.charts.panels import Line, Panel, panels_chart
from tempergat.comparison.charts.series import lines_of
from tempergat.nn import METHODS
from tempergat.training import Run

_OWN = "other methods"


def curves_chart(
    runs: Sequence[Run], methods: tuple[str, ...], metric: str
) -> str | None:
    """A panel for each backbone; None where no run recorded its curve.

    Args:
        runs: All runs.
        methods: The methods of the report, in order.
        metric: The metric's name.
    """
    panels: dict[str, list[Line]] = {}
    for line in lines_of(runs, methods, _validation):
        known = METHODS.get(line.name)
        panels.setdefault(known.backbone if known else _OWN, []).append(line)
    if not panels:
        return None
    lines = [line for found in panels.values() for line in found]
    return panels_chart(
        [Panel(_title(of, found), found) for of, found in panels.items()],
        f"Validation {metric} over epochs by method",
        f"validation {metric} (%)",
        lowest=_lowest(lines),
    )


def _title(backbone: str, lines: Sequence[Line]) -> str:
    names = {line.name for line in lines}
    if backbone == _OWN or names == {backbone}:
        return backbone
    has_backbone = backbone in names
    return f"{backbone} and its variants" if has_backbone else f"variants of {backbone}"


def _lowest(lines: Sequence[Line]) -> float:
    """Where the axis begins: near the least value after the first tenth of the epochs.

    The first epochs are far below all others, which would be squeezed to one line.
    """
    start = 0.1 * max(epoch for line in lines for epoch in line.at)
    low = [
        value
        for line in lines
        for epoch, value in zip(line.at, line.low, strict=True)
        if epoch >= start
    ]
    high = max(value for line in lines for value in line.high)
    return max(0.0, min(low) - 0.05 * (high - min(low)))


def _validation(run: Run) -> Mapping[int, float]:
    curves = run.curves or {}
    if "epoch" not in curves or "val" not in curves:
        return {}
    return {
        int(epoch): 100.0 * value
        for epoch, value in zip(curves["epoch"], curves["val"], strict=True)
    }
