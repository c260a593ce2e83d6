"""The tables of docs/noise.md."""

from collections.abc import Mapping, Sequence

from tempergat.nn import METHODS
from tempergat.study.noise import SELECTED, NoisePlan
from tempergat.study.noise_findings.claims import Cell, Claims, Gain, TrendClaim
from tempergat.study.noise_findings.first_study import EpochEffect, FirstGains
from tempergat.study.noise_findings.sentences import (
    NOISE_WORDS,
    generally_rises,
    rises_on,
    single_methods_sentence,
    with_interval,
)
from tempergat.study.noise_findings.tables import seeds_of
from tempergat.study.report import filled, markdown_rows, p_value, signed
from tempergat.training import Run

_SIGNS = {"rises": "↑", "falls": "↓", "no trend": "·"}


def temperature_section(claims: Claims, plan: NoisePlan) -> str:
    """T over sigma."""
    claim = claims.temperature
    text = f"""## T under Gaussian noise

T at the last epoch, mean over `temp_only`, `temp_gated`, `gated_temp` and the same for
gatv2. ↑, ↓ and · say whether it rises, falls or shows no trend over all levels (Page's
test, seeds as blocks, Holm over the column). "Generally increases"
{_yes(generally_rises(claim))}; "especially on Cora, Citeseer"
{_yes(rises_on(claim, ("cora", "citeseer")))}.
"""
    return filled(text) + "\n" + _trend_table(claim, "sigma")


def flatness_section(claims: Claims) -> str:
    """The entropy of attention with temperature less that without."""
    cells = claims.flatness.cells
    sharper = sum(cell.means[0] < 0 for cell in cells)
    still = sum(cell.means[-1] < 0 for cell in cells)
    flatter = claims.flatness.count("rises")
    text = f"""## Does a rising T flatten attention?

T alone does not say: only its ratio to the attention vector matters. So this is the
entropy of the attention weights over the logarithm of the degree (1 is uniform) of a
method with temperature, less that of the same method without, at the last epoch; the
mean over six such pairs. Without noise, attention with temperature is sharper in
{sharper} of {len(cells)} datasets and layers, at the highest sigma in {still}; relative
to the method without temperature it gets flatter with sigma in {flatter} and sharper in
{claims.flatness.count("falls")}.
"""
    return "\n" + filled(text) + "\n" + _trend_table(claims.flatness, "sigma")


def gate_section(claims: Claims) -> str:
    """The mean gate over rho."""
    text = """## The gate under missing coordinates

The mean gate at the last epoch, over the paper's six gated methods and all tau.
"""
    return "\n" + filled(text) + "\n" + _trend_table(claims.gate, "rho")


def accuracy_section(
    claims: Claims, datasets: Sequence[str], first: FirstGains | None
) -> str:
    """Gains over the backbone."""
    text = """## Accuracy under noise

Points of test accuracy over the backbone at the epoch of best validation accuracy: for
each seed one number, the mean over the methods, all noise levels and all datasets; 95 %
intervals, t-tests, Holm over the four rows. "No gain": shown to be within half a point
of zero (TOST); "not shown": neither a gain or loss nor the
absence of both. Gate-first are
`gated_first`, `gated_temp` and the same for gatv2, post-gate are `gated` and
`gated_v2`, temperature alone `temp_only` and `temp_only_v2`; `gated_first` and
`gated_first_v2` are not the paper's. "First study": the mean gain over its seeds and
levels, on the same datasets and, where these are fewer, on all three. It had suggested
what is tested here.
"""
    rows = []
    for place, gain in enumerate(claims.gains):
        earlier = "-"
        if first is not None:
            same, every = first.same_datasets[place], first.all_datasets[place]
            earlier = signed(every.summary.mean)
            if same.summary.mean != every.summary.mean:
                earlier = f"{signed(same.summary.mean)}, {earlier}"
        by_loss = claims.gains_by_loss[place]
        rows.append(
            (
                f"{gain.name}, {NOISE_WORDS[gain.noise]}",
                with_interval(gain.summary),
                p_value(gain.p_holm),
                gain.verdict,
                *(with_interval(gain.by_dataset[dataset]) for dataset in datasets),
                f"{signed(by_loss.summary.mean)}, {by_loss.verdict}",
                earlier,
            )
        )
    columns = ("methods and noise", "gain", "p", "verdict", *datasets)
    columns = (*columns, "by validation loss", "first study")
    singles = f"""\
Single methods, for description: the plan does not test them. p is Holm-corrected over
the ten methods of a column. {single_methods_sentence(claims.single_methods)}
"""
    return "\n".join(
        [
            "\n" + filled(text),
            markdown_rows(columns, rows),
            filled(singles),
            _single_methods(claims.single_methods),
        ]
    )


def first_study_section(effects: Sequence[EpochEffect]) -> str:
    """The first study, adjusted for the epoch."""
    text = """## The first study, read again

The first study (`results/noise/`, 13 methods, seeds 0 to 9, sigma up to 4) has T and
gate at the selected epoch alone. T moves throughout training, so there it mostly says
when that epoch was: "r" is the correlation of the value with the logarithm of the
epoch, within levels, smallest and largest over variants. "Adjusted" takes the
within-level slope over the logarithm of the epoch out of the values and repeats the
tests. These take the slope as known, although it was estimated from the same runs, and
find trends somewhat too easily: the counts describe, and the fixed epochs above test.
Variants are methods with theta decayed or not; for the gate, times two values of
tau.
"""
    rows = [
        (
            f"{e.dataset}, layer {e.layer}",
            f"{'T' if e.quantity == 'temperature' else 'gate'} {e.expected}",
            f"{e.as_measured} of {e.variants}",
            f"{e.adjusted} of {e.variants}",
            f"{e.correlation[0]:.2f} to {e.correlation[1]:.2f}",
        )
        for e in sorted(effects, key=lambda e: e.quantity != "temperature")
    ]
    columns = ("dataset", "trend", "at the selected epoch", "adjusted", "r")
    return "\n" + filled(text) + "\n" + markdown_rows(columns, rows)


def method_section(plan: NoisePlan, runs: Mapping[str, Sequence[Run]]) -> str:
    """How the second study was done.

    Args:
        plan: Its plan.
        runs: Its runs of complete seeds, by dataset.
    """
    seeds = ", ".join(
        f"{dataset} {len(seeds_of(found))}" for dataset, found in runs.items()
    )
    devices = sorted({run.device for found in runs.values() for run in found})
    epochs = ", ".join(str(epoch) for epoch in plan.epochs)
    text = f"""## How it was done

- {len(plan.methods)} methods with the settings of `recipes/paper`,
  {len(plan.conditions)} conditions; seeds from {plan.first_seed} on, none of them in
  the first study: {seeds}. Trained on {", ".join(devices)}.
- Each seed has its own noise, added to every node's features after the recipe's
  normalisation; its levels share the drawn numbers. sigma and tau are in units of the
  features' root mean square.
- T, gate, spread of e/T and entropy were recorded at epochs {epochs}, at the last one
  and at both selected ones, in evaluation, over all nodes.
- ogbn-arxiv, the paper's fourth dataset, was not run.
"""
    return "\n" + filled(text)


def _trend_table(claim: TrendClaim, level: str) -> str:
    fixed = [moment for moment in claim.at if isinstance(moment, int)]
    rows = []
    for place, cell in enumerate(claim.cells):
        rows.append(
            (
                f"{cell.dataset}, layer {cell.layer}",
                *(signed(mean, 3).removeprefix("+") for mean in cell.means),
                with_interval(cell.change, 3),
                p_value(cell.p_holm),
                _SIGNS[cell.direction],
                " ".join(_SIGNS[claim.at[m][place].direction] for m in fixed),
                _SIGNS[claim.at[SELECTED][place].direction],
                _SIGNS[claim.at["best_val_loss"][place].direction],
            )
        )
    columns = (
        "dataset",
        *_level_names(claim.cells, level),
        "change",
        "p",
        "last epoch",
        "epochs " + ", ".join(str(m) for m in fixed),
        "best accuracy",
        "best loss",
    )
    return markdown_rows(columns, rows)


def _level_names(cells: Sequence[Cell], level: str) -> list[str]:
    first, *others = (f"{value:g}" for value in cells[0].levels)
    return [f"{level} = {first}", *others]


def _single_methods(gains: Sequence[Gain]) -> str:
    by_method: dict[str, dict[str, Gain]] = {}
    for gain in gains:
        by_method.setdefault(gain.name, {})[gain.noise] = gain
    rows = []
    for method, found in by_method.items():
        cells = [f"`{method}`", "yes" if METHODS[method].in_paper else "no"]
        for noise in NOISE_WORDS:
            cells += [with_interval(found[noise].summary), p_value(found[noise].p_holm)]
        rows.append(tuple(cells))
    columns = (
        "method",
        "in the paper",
        *(text for words in NOISE_WORDS.values() for text in (words, "p")),
    )
    return markdown_rows(columns, rows)


def _yes(is_so: bool) -> str:
    return "holds" if is_so else "does not hold"
