"""The page of the noise study: where the paper's statements hold, and where not."""

from collections.abc import Sequence
from pathlib import Path

from tempergat.base import UserError, write_into
from tempergat.stats import PairedComparison
from tempergat.study.noise import figures
from tempergat.study.noise.analysis import DatasetNoise, analyse, end_of
from tempergat.study.noise.export import read_noise_csv
from tempergat.study.noise.moment_columns import SELECTED
from tempergat.study.noise.plan import NoisePlan
from tempergat.study.noise.trends import (
    ACCURACY,
    Series,
    Trend,
    accuracy,
    against_backbone,
    series_of,
)
from tempergat.study.noise.variants import variant_of
from tempergat.study.report import filled, markdown_rows, p_value, signed
from tempergat.training import CLEAN, Condition

# Named as not run when there are no runs on it, though the plan does not list it.
_OPTIONAL_DATASET = "ogbn-arxiv"

# What a trend of the entropy means for the attention weights.
_ATTENTION_WORDS = {
    "rises": "flatter",
    "falls": "sharper",
    "no trend": "neither shown",
    "too few runs": "-",
}


def write_page(plan: NoisePlan, results: Path, docs: Path) -> list[DatasetNoise]:
    """Write noise.md and its figures from the runs of the study.

    Args:
        plan: The methods, noise levels and seeds of the study.
        results: Folder of the CSV files, one per dataset.
        docs: Folder of the page; its figures go to `figures/` below it.

    Returns:
        The trends on each dataset.

    Raises:
        UserError: There are no runs.
    """
    files = sorted(results.glob("*.csv"))
    order = {name: place for place, name in enumerate(plan.datasets)}
    found = [analyse(runs, plan) for file in files if (runs := read_noise_csv(file))]
    found.sort(key=lambda dataset: order.get(dataset.dataset, len(order)))
    if not found:
        raise UserError(f"{results} holds no runs of the noise study; run it first")
    for dataset in found:
        _draw(dataset, plan, docs / "figures")
    write_into(docs, "noise.md", page_text(plan, found))
    return found


def page_text(plan: NoisePlan, found: Sequence[DatasetNoise]) -> str:
    """The page as Markdown."""
    sections = [_section(dataset, plan) for dataset in found]
    return "\n".join([_opening(plan, found), _verdicts(found), *sections])


def _draw(dataset: DatasetNoise, plan: NoisePlan, folder: Path) -> None:
    def stem(name: str) -> Path:
        return folder / f"noise-{dataset.dataset}-{name}"

    if dataset.temperature:
        figures.temperature_figure(
            [trend.series for trend in dataset.temperature], stem("temperature")
        )
    if dataset.gate:
        figures.gate_figure([trend.series for trend in dataset.gate], stem("gate"))
    if dataset.entropy:
        figures.sharpness_figure(
            [trend.series for trend in dataset.spread],
            [trend.series for trend in dataset.entropy],
            stem("sharpness"),
        )
    figures.accuracy_figure(_accuracies(dataset, plan), stem("accuracy"))


def _accuracies(dataset: DatasetNoise, plan: NoisePlan) -> list[Series]:
    found = series_of(dataset.runs, "gaussian", None, ACCURACY)
    for tau in plan.tau:
        found += series_of(dataset.runs, "missing", tau, ACCURACY)
    return found


def _opening(plan: NoisePlan, found: Sequence[DatasetNoise]) -> str:
    levels = ", ".join(f"{level:g}" for level in plan.gaussian)
    shares = ", ".join(f"{level:g}" for level in plan.missing)
    taus = " and ".join(f"{tau:g}" for tau in plan.tau)
    counts = "".join(
        f"- {dataset.dataset}: {len(dataset.runs):,} of {dataset.expected_runs:,} runs"
        f"{'' if dataset.is_complete else ', **incomplete**'}; "
        f"{sum(run.status == 'failed' for run in dataset.runs)} failed; on "
        f"{', '.join(sorted({run.device for run in dataset.runs}))}.\n"
        for dataset in found
    )
    present = {dataset.dataset for dataset in found}
    missing = [n for n in (*plan.datasets, _OPTIONAL_DATASET) if n not in present]
    absent = ""
    if missing:
        names = ", ".join(missing)
        absent = f"- Not run: {names}; `tempergat noise --datasets NAME` adds one.\n"
    text = f"""# Controlled noise

This page is made by `tempergat noise` from its CSV files, one row per run. It asks what
the paper's figure of controlled noise asks: does the learned temperature T rise
with Gaussian noise on the features, and does the mean gate fall with the share of
missing coordinates?

- {len(plan.methods)} methods with the settings of `recipes/paper`, {plan.seeds} seeds,
  each with its own noise, which is added to the features of every node after the
  recipe's normalisation. sigma ({levels}) and tau ({taus}) are in units of the feature
  matrix's root mean square; rho is {shares}. The levels were fixed before the first
  run.
- T and the mean gate are measured in evaluation mode, over all nodes, at the selected
  epoch and, where the runs have records of it, at the last one. They move throughout
  training, and the selected epoch may move with the noise. So a trend at the selected
  epoch may only say when that epoch was: rely on the last epoch, which is fixed.
- Methods with temperature are trained with and without weight decay on theta. Decay
  pulls theta to 0, which is T = 0.69, whatever the data say.
- Only the ratio of the attention vector and T matters to a layer, so T alone does not
  say how sharp attention is. Two more values do: the standard deviation of e/T over the
  edges of a target (its spread), and the entropy of the attention weights divided by
  the logarithm of the degree (1 is uniform).
- Trends are tested with Page's test over all levels, with seeds as blocks, two-sided; p
  is Holm-corrected over all tests of one quantity on one dataset. The test looks for a
  rise or a fall over all levels: a value that changes at the last level only, or goes
  down and up again, may show no trend.
- Changes are from level 0 to the highest level, paired by seed, with 95 % intervals,
  which are not corrected; a value is called higher or lower at the highest level where
  its interval does not contain 0.

{counts}{absent}"""
    return filled(text)


def _verdicts(found: Sequence[DatasetNoise]) -> str:
    rows = []
    for dataset in found:
        for trends in (dataset.last_temperature, dataset.temperature):
            rows += _verdict_rows(dataset, trends, "T rises with sigma", "rises")
        taus = list(dict.fromkeys(t.series.tau for t in dataset.gate))
        for tau in taus:
            for trends in (dataset.last_gate, dataset.gate):
                statement = f"gate falls with rho, tau = {tau:g}"
                of_tau = [trend for trend in trends if trend.series.tau == tau]
                rows += _verdict_rows(dataset, of_tau, statement, "falls")
    columns = (
        "dataset",
        "layer",
        "the paper's statement",
        "epoch",
        "result",
        "over all levels: rises / falls / no trend",
        "at the highest level: higher / lower / neither",
        "where T rises, attention gets",
    )
    return "## Does the paper's statement hold?\n\n" + markdown_rows(columns, rows)


def _verdict_rows(
    dataset: DatasetNoise, trends: Sequence[Trend], statement: str, direction: str
) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for layer in _layers(trends):
        here = [trend for trend in trends if trend.series.layer == layer]
        found = [trend for trend in here if trend.direction == direction]
        at_selected = here[0].series.moment == SELECTED
        # The entropy was measured at the selected epoch.
        attention = direction == "rises" and at_selected
        rows.append(
            (
                dataset.dataset,
                str(layer),
                statement,
                "selected" if at_selected else "last",
                _holds(len(found), len(here)),
                _tally(here),
                _ends(here),
                _attention_of(dataset, found) if attention else "",
            )
        )
    return rows


def _layers(trends: Sequence[Trend]) -> list[int]:
    return sorted({trend.series.layer or 0 for trend in trends})


def _tally(trends: Sequence[Trend]) -> str:
    directions = [trend.direction for trend in trends]
    return " / ".join(
        str(directions.count(word)) for word in ("rises", "falls", "no trend")
    )


def _ends(trends: Sequence[Trend]) -> str:
    moved = [end_of(trend) for trend in trends]
    return " / ".join(str(moved.count(word)) for word in ("higher", "lower", "neither"))


def _holds(in_favour: int, variants: int) -> str:
    if in_favour == variants:
        return "holds"
    if in_favour == 0:
        return "does not hold"
    return f"holds for {in_favour} of {variants}"


def _attention_of(dataset: DatasetNoise, rising: Sequence[Trend]) -> str:
    words = [
        _ATTENTION_WORDS[dataset.entropy_beside(trend).direction] for trend in rising
    ]
    return ", ".join(
        f"{word} in {words.count(word)}"
        for word in ("flatter", "sharper", "neither shown")
        if word in words
    )


def _section(dataset: DatasetNoise, plan: NoisePlan) -> str:
    name = dataset.dataset
    top = plan.gaussian[-1]
    parts = [f"\n## {name}\n"]
    if dataset.temperature:
        parts += [
            f"![T against sigma on {name}](figures/noise-{name}-temperature.svg)\n",
            f"T against sigma, from 0 to {top:g}:\n",
            _temperature_table(dataset),
            _rises_without_effect(dataset),
        ]
    if dataset.entropy:
        parts += [
            f"![Sharpness on {name}](figures/noise-{name}-sharpness.svg)\n",
            "Attention entropy over log degree against sigma, for every method with\n"
            "attention:\n",
            _trend_table(dataset.entropy),
        ]
    if dataset.gate:
        parts += [
            f"![Mean gate against rho on {name}](figures/noise-{name}-gate.svg)\n",
            f"Mean gate against rho, from 0 to {plan.missing[-1]:g}:\n",
            _trend_table(dataset.gate),
        ]
    parts += [
        f"![Accuracy against noise on {name}](figures/noise-{name}-accuracy.svg)\n",
        filled(
            "Mean test accuracy in percent; the figure shows the intervals. ▲ and ▼: "
            "significantly better or worse than the backbone (paired t-test over "
            "seeds, Holm-corrected over the column).\n"
        ),
        _accuracy_table(dataset),
    ]
    return "\n".join(parts)


def _temperature_table(dataset: DatasetNoise) -> str:
    rows = []
    for trend in dataset.temperature:
        entropy = dataset.entropy_beside(trend)
        rows.append(
            (
                *_trend_cells(trend),
                signed(entropy.change.mean, 3),
                _ATTENTION_WORDS[entropy.direction],
                *_last_cells(dataset.last_beside(trend)),
            )
        )
    columns = ("entropy changes", "attention", "at the last epoch", "trend there")
    return markdown_rows((*_TREND_COLUMNS, *columns), rows)


def _last_cells(trend: Trend | None) -> tuple[str, str]:
    if trend is None:
        return "-", "-"
    ends = f"{_three_digits(trend.first)} to {_three_digits(trend.last)}"
    return ends, trend.direction


_TREND_COLUMNS = (
    "variant",
    "layer",
    "without noise",
    "highest level",
    "change",
    "p",
    "trend",
)


def _trend_table(trends: Sequence[Trend]) -> str:
    if all(trend.series.tau is None for trend in trends):
        return markdown_rows(_TREND_COLUMNS, [_trend_cells(t) for t in trends])
    rows = [(*_trend_cells(trend), f"{trend.series.tau:g}") for trend in trends]
    return markdown_rows((*_TREND_COLUMNS, "tau"), rows)


def _trend_cells(trend: Trend) -> tuple[str, ...]:
    change, series = trend.change, trend.series
    lost = f" ({series.lost_seeds} seeds lost)" if series.lost_seeds else ""
    return (
        series.variant + lost,
        str(series.layer),
        _three_digits(trend.first),
        _three_digits(trend.last),
        f"{signed(change.mean, 3)} [{signed(change.low, 3)}, {signed(change.high, 3)}]",
        p_value(trend.p_holm),
        trend.direction,
    )


def _three_digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _rises_without_effect(dataset: DatasetNoise) -> str:
    """The variants in which T rises and the entropy shows no trend, by layer."""
    lines = []
    any_moved = False
    for layer in _layers(dataset.temperature):
        names = []
        for trend in dataset.temperature:
            beside = dataset.entropy_beside(trend)
            if (
                trend.series.layer == layer
                and trend.direction == "rises"
                and beside.direction == "no trend"
            ):
                moved = end_of(beside) != "neither"
                any_moved = any_moved or moved
                names.append(trend.series.variant + (" (*)" if moved else ""))
        if names:
            lines.append(f"- layer {layer}: {'; '.join(names)}.")
    if not lines:
        return "Wherever T rises, the entropy of attention shows a trend.\n"
    text = (
        "T rises but the entropy of attention shows no trend, so these runs show no "
        "effect of the rise on attention:\n\n" + "\n".join(lines) + "\n"
    )
    if any_moved:
        text += (
            "\n(*) The entropy shows no trend, but at the highest level it is higher "
            "or lower than without noise.\n"
        )
    return filled(text)


def _accuracy_table(dataset: DatasetNoise) -> str:
    compared = against_backbone(dataset.runs)
    conditions = sorted(
        compared, key=lambda c: (c.noise != "none", c.noise, c.tau or 0, c.level)
    )
    verdicts = {
        (condition, comparison.method): comparison
        for condition in conditions
        for comparison in compared[condition]
    }
    scores: dict[tuple[str, Condition], list[float]] = {}
    for run in dataset.runs:
        score = accuracy(run)
        if score is not None:
            key = (variant_of(run), run.condition or CLEAN)
            scores.setdefault(key, []).append(score)
    rows = []
    for variant in dict.fromkeys(variant_of(run) for run in dataset.runs):
        cells = [variant]
        for condition in conditions:
            found = scores.get((variant, condition))
            mean = f"{sum(found) / len(found):.1f}" if found else "-"
            cells.append(mean + _mark(verdicts.get((condition, variant))))
        rows.append(tuple(cells))
    return markdown_rows(("variant", *(c.words for c in conditions)), rows)


def _mark(comparison: PairedComparison | None) -> str:
    if comparison is None:
        return ""
    return {"better": " ▲", "worse": " ▼"}.get(comparison.verdict, "")
