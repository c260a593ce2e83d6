"""The part of docs/reproduction.md about the multiverse."""

from collections.abc import Mapping, Sequence

from tempergat.stats import PairedComparison
from tempergat.study.multiverse.cells import Cell, is_near
from tempergat.study.multiverse.gains import CellGains, VariationEffect
from tempergat.study.multiverse.plan import PLAN_FILE, MultiversePlan, Training
from tempergat.study.paper import RULE_WORDS
from tempergat.study.report import markdown_rows, signed

PaperGains = Mapping[str, Mapping[str, float]]
FIGURE = "multiverse"


def multiverse_answer(plan: MultiversePlan, found: Sequence[CellGains]) -> str:
    """Which gains do not depend on the settings that the paper leaves open.

    A sentence without its full stop.
    """
    trainings = len({gains.cell.training for gains in found})
    above, below = (
        " and ".join(
            f"{', '.join(methods)} on {dataset}"
            for dataset in plan.datasets
            if (methods := _in_every_cell(plan, found, dataset, sign))
        )
        for sign in (1, -1)
    )
    return (
        f"At the {'setting' if trainings == 1 else f'{trainings} settings'} nearest to "
        "the paper's baselines, the 95 % "
        "interval of the gain (not corrected for the number of variants) is above 0 "
        f"under all three rules for {above or 'no variant'}, and below 0 for "
        f"{below or 'no variant'}"
    )


def _in_every_cell(
    plan: MultiversePlan, found: Sequence[CellGains], dataset: str, sign: int
) -> list[str]:
    """The variants whose interval is on one side of 0 in every cell of a dataset."""
    of_dataset = [gains.gains for gains in found if gains.dataset == dataset]
    return [
        method
        for method in plan.variants
        if of_dataset and all(_side(gains[method]) == sign for gains in of_dataset)
    ]


def _side(gain: PairedComparison) -> int:
    if gain.low is not None and gain.low > 0:
        return 1
    return -1 if gain.high is not None and gain.high < 0 else 0


def multiverse_section(
    plan: MultiversePlan,
    found: Sequence[CellGains],
    effects: Sequence[VariationEffect],
    chosen: Sequence[Training],
    paper: PaperGains,
    devices: str,
) -> str:
    """The gains in every cell, their range, and the effects of the variations.

    Args:
        plan: The plan.
        found: The gains, nearest cells first.
        effects: The effects of the variations in the nearest training.
        chosen: The trainings in which the plan wants variants.
        paper: The paper's gains by dataset and variant.
        devices: Where the runs were made.
    """
    trainings = list(dict.fromkeys(gains.cell.training for gains in found))
    seeds = plan.run_seeds
    parts = [
        "## The gains at other settings that fit as well\n\n"
        "The paper leaves several settings open, and its baselines do not decide them "
        "(docs/calibration.md). So the variants were run, with seeds "
        f"{seeds.start} to {seeds.stop - 1} on {devices}, at the settings nearest to "
        f"the paper's baselines, by rules fixed in results/{PLAN_FILE}: "
        + "; ".join(f"({_letter(n)}) {t.words}" for n, t in enumerate(trainings))
        + ". The methods are the paper's ten with attention, and gated_first and "
        "gated_first_v2; gcn takes no part, since no setting that was tried gives the "
        "paper's gcn on Pubmed. "
        "Each training is judged under all three selection rules. Intervals are 95 "
        "%.\n",
        "![Gains of all variants in every cell](figures/multiverse.svg)\n",
        "The nearest cell is at the top of each variant's band; the black bar is the "
        "paper's gain.\n",
        _ranges(plan, found, paper),
        *(
            _cells_table(plan, [g for g in found if g.dataset == dataset], trainings)
            for dataset in plan.datasets
        ),
        _variations(effects),
        _missing(plan, found, effects, chosen),
    ]
    return "\n".join(part for part in parts if part)


def not_run_section(plan: MultiversePlan, trainings: Sequence[Training]) -> str:
    """What the variants' runs will be, before there are any."""
    if not trainings:
        return ""
    return (
        "## The gains at other settings\n\n"
        "The paper leaves several settings open, and its baselines do not decide them "
        "(docs/calibration.md). How the gains depend on them is planned in "
        f"results/{PLAN_FILE}: all variants, {plan.seeds} seeds, at "
        + "; ".join(training.words for training in trainings)
        + f". These runs are missing. {_command(plan)} trains them. Until then the "
        "numbers on this page hold for the settings of recipes/paper alone.\n"
    )


def _ranges(plan: MultiversePlan, found: Sequence[CellGains], paper: PaperGains) -> str:
    """For each variant, the range of its gains over the near cells."""
    near = [gains for gains in found if is_near(gains.cell, plan)]
    which = f"cells within {plan.near_standard_errors:g} standard errors"
    if not near:
        near, which = list(found), "cells shown, none of which is near"
    rows = []
    for method in plan.variants:
        row = [method]
        for dataset in plan.datasets:
            gains = [g.gains[method] for g in near if g.dataset == dataset]
            theirs = paper[dataset].get(method)
            row.append("-" if theirs is None else signed(theirs))
            row.append(_range(gains))
        rows.append(row)
    columns = [
        text
        for dataset in plan.datasets
        for text in (f"{dataset}, paper", "ours: range; above 0, below 0")
    ]
    return (
        f"### The range over the {which}\n\n"
        "The least and the largest gain, and in how many cells its interval is above "
        "or below 0. gated_first and gated_first_v2 are not in the paper.\n\n"
        + markdown_rows(["variant", *columns], rows)
    )


def _range(gains: Sequence[PairedComparison]) -> str:
    values = [gain.difference for gain in gains if gain.difference is not None]
    if not values:
        return "-"
    above = sum(_side(gain) == 1 for gain in gains)
    below = sum(_side(gain) == -1 for gain in gains)
    return (
        f"{signed(min(values))} to {signed(max(values))}; {above}, {below} of "
        f"{len(gains)}"
    )


def _cells_table(
    plan: MultiversePlan, found: Sequence[CellGains], trainings: Sequence[Training]
) -> str:
    if not found:
        return ""
    rows = [
        [method, *(_gain(gains.gains[method]) for gains in found)]
        for method in plan.variants
    ]
    columns = [
        f"({_letter(trainings.index(gains.cell.training))}) "
        + RULE_WORDS[gains.cell.selection]
        + (", near" if is_near(gains.cell, plan) else "")
        for gains in found
    ]
    return (
        f"### Every cell, {found[0].dataset}\n\n"
        "With a star where the gain or loss is significant after Holm's correction: "
        "over the paper's variants together, over the others together.\n\n"
        + markdown_rows(["variant", *columns], rows)
    )


def _gain(gain: PairedComparison) -> str:
    mark = "*" if gain.verdict in ("better", "worse") else ""
    if gain.low is None:
        return signed(gain.difference)
    interval = f"{signed(gain.low)} to {signed(gain.high)}"
    return f"{signed(gain.difference)}{mark} ({interval})"


def _variations(effects: Sequence[VariationEffect]) -> str:
    if not effects:
        return ""
    keys = list(dict.fromkeys((e.variation, e.dataset) for e in effects))
    rows = []
    for variation, dataset in keys:
        of_one = {
            e.selection: e
            for e in effects
            if (e.variation, e.dataset) == (variation, dataset)
        }
        methods = next(iter(of_one.values())).methods
        changes = []
        for rule in RULE_WORDS:
            change = of_one[rule].change
            interval = f"({signed(change.low)} to {signed(change.high)})"
            changes.append(f"{signed(change.mean)} {interval}")
        rows.append([variation, dataset, str(methods), *changes])
    columns = ["variation", "dataset", "methods", *RULE_WORDS.values()]
    return (
        "### What baselines cannot calibrate\n\n"
        "Baselines have neither temperature nor gate, so they say nothing about the "
        "weight decay of theta and of gates, or about a gate on the output layer. Each "
        f"was changed in training ({_letter(0)}): the average change of the test score "
        "over the methods it concerns, with its 95 % interval over seeds, not "
        "corrected.\n\n" + markdown_rows(columns, rows)
    )


def _missing(
    plan: MultiversePlan,
    found: Sequence[CellGains],
    effects: Sequence[VariationEffect],
    chosen: Sequence[Training],
) -> str:
    """What the plan asks for and was not run."""
    run = {(gains.cell.training, gains.dataset) for gains in found}
    varied = {(effect.variation, effect.dataset) for effect in effects}
    parts = [
        f"{training.words}, on {dataset}"
        for training in chosen
        for dataset in plan.datasets
        if (training, dataset) not in run
    ]
    parts += [
        f"{variation}, on {dataset}"
        for variation in plan.variations
        for dataset in plan.datasets
        if (variation, dataset) not in varied
    ]
    if not parts:
        return ""
    return (
        "### Not run yet\n\n"
        f"{_command(plan)} trains what the plan asks for beyond this:\n\n"
        + "".join(f"- {part}\n" for part in parts)
    )


def _command(plan: MultiversePlan) -> str:
    names = ",".join(plan.datasets)
    return f"`tempergat reproduce homogeneous --run --datasets {names}`"


def _letter(number: int) -> str:
    return "abcdefghijkl"[number]


def nearest_cells(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of the nearest training, one for each selection rule."""
    return [cell for cell in cells if cell.training == cells[0].training]
