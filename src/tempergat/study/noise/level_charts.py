"""Values against noise levels, drawn for the report."""

from collections.abc import Iterator, Sequence

from tempergat.nn import METHODS
from tempergat.study.html_report import DASHES, Across, Line, Panel, panels_chart
from tempergat.study.noise.analysis import DatasetNoise
from tempergat.study.noise.plan import NoisePlan
from tempergat.study.noise.trends import ACCURACY, Series, series_of

# Classes of the report's style sheet. The first three have other dashes than the last,
# so that colours which look alike to some can still be distinguished.
_COLOURS = ("c1", "c2", "c3", "c4", "c5", "c0")
_AXES = {"gaussian": "sigma / RMS", "missing": "missing share rho"}


def level_charts(dataset: DatasetNoise, plan: NoisePlan) -> Iterator[tuple[str, str]]:
    """The name of each figure of the page about a dataset, and its drawing as SVG.

    Args:
        dataset: Its trends.
        plan: The plan of the study.
    """
    accuracies = series_of(dataset.runs, "gaussian", None, ACCURACY)
    for tau in plan.tau:
        accuracies += series_of(dataset.runs, "missing", tau, ACCURACY)
    for name, label, found in (
        ("temperature", "learned T", [t.series for t in dataset.temperature]),
        ("gate", "mean gate", [t.series for t in dataset.gate]),
        ("sharpness", "entropy / log degree", [t.series for t in dataset.entropy]),
        ("accuracy", "test accuracy (%)", accuracies),
    ):
        drawn = _chart(f"{label} against noise on {dataset.dataset}", label, found)
        if drawn is not None:
            yield name, drawn


def _chart(name: str, label: str, series: Sequence[Series]) -> str | None:
    """Panels by kind of noise, layer and backbone; None without values."""
    shown = [s for s in series if len(s.values)]
    roles = list(dict.fromkeys(_role(s) for s in shown))
    panels = []
    for key in dict.fromkeys((s.noise, s.tau, s.layer, _backbone(s)) for s in shown):
        here = [s for s in shown if (s.noise, s.tau, s.layer, _backbone(s)) == key]
        lines = [_line(s, roles.index(_role(s))) for s in here]
        ticks = {float(n): f"{level:g}" for n, level in enumerate(here[0].levels)}
        across = Across(_AXES[here[0].noise], ticks)
        panels.append(Panel(_title(here[0]), lines, across))
    return panels_chart(panels, name, label) if panels else None


def _line(series: Series, role: int) -> Line:
    """Means with their 95 % intervals, the levels at equal distances."""
    found = series.summaries
    means = [summary.mean or 0.0 for summary in found]
    # One seed has no interval.
    lows = [m if s.low is None else s.low for s, m in zip(found, means, strict=True)]
    highs = [m if s.high is None else s.high for s, m in zip(found, means, strict=True)]
    undecayed = series.variant != series.method
    return Line(
        _role(series) + (", theta undecayed" if undecayed else ""),
        _COLOURS[role % len(_COLOURS)],
        DASHES[2 * undecayed + role // 3 % 2],
        range(len(series.levels)),
        means,
        lows,
        highs,
    )


def _title(series: Series) -> str:
    parts = [_backbone(series)]
    if series.layer is not None:
        parts.append(f"layer {series.layer}")
    if series.tau is not None:
        parts.append(f"tau = {series.tau:g}")
    return ", ".join(parts)


def _backbone(series: Series) -> str:
    return METHODS[series.method].backbone


def _role(series: Series) -> str:
    """What a method adds to its backbone, by the same name for both backbones."""
    if series.method == _backbone(series):
        return "plain"
    return series.method.removesuffix("_v2")
