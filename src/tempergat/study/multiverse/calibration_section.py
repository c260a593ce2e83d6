"""The part of docs/calibration.md about the joint calibration."""

from collections.abc import Sequence

from tempergat.study.multiverse.cells import Cell, Paper, is_near, is_rejected
from tempergat.study.multiverse.plan import PLAN_FILE, MultiversePlan
from tempergat.study.paper import RULE_WORDS
from tempergat.study.report import markdown_rows, mean_and_std, p_value, signed

# A misfit above this is far outside of what chance gives.
_LARGE = 1000
# Cells in the table; the nearest come first.
_SHOWN = 12


def calibration_answer(
    plan: MultiversePlan, cells: Sequence[Cell], *, has_variants: bool
) -> str:
    """The answer in three sentences; empty before anything was run.

    Args:
        plan: The plan.
        cells: The cells that were run, nearest first.
        has_variants: Whether the variants were run in some of them.
    """
    if not cells:
        return ""
    total = sum(1 for _ in plan.trainings()) * len(RULE_WORDS)
    whole = [cell for cell in cells if not cell.not_run]
    kept = [cell for cell in whole if not is_rejected(cell, plan)]
    near = [cell for cell in whole if is_near(cell, plan)]
    nearest = cells[0]
    first = (
        f"None of the {total} combinations of weight decay, dropout, normalisation and "
        "selection rule that were tried gives the paper's scores of gat and gatv2 on "
        "all three datasets; the paper's settings remain unknown."
        if not kept
        else f"Of {total} combinations of weight decay, dropout, normalisation and "
        f"selection rule, {len(kept)} cannot be told from the paper's by the scores of "
        "gat and gatv2 on all three datasets."
    )
    second = (
        f"The nearest is {_words(nearest)}, on average {nearest.distance:.1f} standard "
        f"errors away (p {p_value(nearest.p)})."
    )
    trainings = len({cell.training for cell in near})
    third = (
        f"{len(near)} combinations of {trainings} trainings are within "
        f"{plan.near_standard_errors:g} standard errors; "
        + (
            "docs/reproduction.md shows how the variants' gains depend on the choice."
            if has_variants
            else "the variants have not been run there yet."
        )
        if near
        else f"None is within {plan.near_standard_errors:g} standard errors."
    )
    return f"{first} {second} {third}\n"


def calibration_section(
    plan: MultiversePlan, cells: Sequence[Cell], paper: Paper, devices: str
) -> str:
    """Every cell beside the paper's baselines.

    Args:
        plan: The plan.
        cells: The cells that were run, nearest first.
        paper: The paper's cells by dataset and method.
        devices: Where the runs were made.
    """
    heads = [
        f"{dataset} {method}" for dataset in plan.datasets for method in plan.baselines
    ]
    theirs = [
        mean_and_std(paper[dataset][method].mean, paper[dataset][method].std)
        for dataset in plan.datasets
        for method in plan.baselines
    ]
    rows = [["the paper", "", *theirs, "", "", ""]]
    rows += [_row(plan, cell) for cell in cells[:_SHOWN]]
    missing = sum(1 for _ in plan.trainings()) - len({cell.training for cell in cells})
    seeds = plan.run_seeds
    return (
        "## One setting for all three datasets\n\n"
        f"gat and gatv2, seeds {seeds.start} to {seeds.stop - 1}, on {devices}. The "
        f"grid, the criterion and the limits were fixed in results/{PLAN_FILE} before "
        "the first run. The grid is that of the first calibration below, which was "
        "drawn around an earlier trial that had seen scores of variants. The misfit is "
        "the sum of twelve squared distances in standard errors: six means, and the "
        "logarithms of six standard deviations. p is that of chi-squared with twelve "
        "degrees of freedom, which takes the twelve as independent; cells with a p of "
        "at least "
        f"{plan.not_rejected_p:g} are not rejected. The distance is the root mean "
        f"square of the twelve; up to {plan.near_standard_errors:g} a cell is near. "
        "A training that was too far on the first datasets was not run on the others: "
        'there the misfit is a lower bound ("at least"). gcn takes no part: the '
        "paper's gcn on Pubmed (74.97) is reached by no setting that was tried, and in "
        "the first calibration it decided the attention methods' normalisation.\n\n"
        + markdown_rows(
            ["training", "epoch selected by", *heads, "misfit", "p", "distance"], rows
        )
        + _not_shown(cells)
        + (f"\n{missing} trainings were not run yet.\n" if missing else "")
        + f"\n{_nearest(cells[0])}\n"
    )


def _not_shown(cells: Sequence[Cell]) -> str:
    rest = cells[_SHOWN:]
    if not rest:
        return ""
    return (
        f"\nThe other {len(rest)} cells, not shown, are at least "
        f"{min(cell.distance for cell in rest):.1f} standard errors away.\n"
    )


def _row(plan: MultiversePlan, cell: Cell) -> list[str]:
    found = {(b.dataset, b.method): b.ours for b in cell.baselines}
    scores = []
    for dataset in plan.datasets:
        for method in plan.baselines:
            ours = found.get((dataset, method))
            scores.append("-" if ours is None else mean_and_std(ours.mean, ours.std))
    bound = "at least " if cell.not_run else ""
    verdict = "" if is_rejected(cell, plan) else ", not rejected"
    near = ", near" if is_near(cell, plan) and not cell.not_run else ""
    misfit = f"{cell.misfit:.1f}" if cell.misfit < _LARGE else f"{cell.misfit:.0f}"
    return [
        cell.training.words,
        RULE_WORDS[cell.selection],
        *scores,
        f"{bound}{misfit}",
        f"{p_value(cell.p)}{verdict}",
        f"{bound}{cell.distance:.1f}{near}",
    ]


def _nearest(cell: Cell) -> str:
    parts = [
        f"{b.dataset} {b.method} {signed(b.mean_distance, 1)} (deviation "
        f"{signed(b.std_distance, 1)})"
        for b in cell.baselines
    ]
    return f"The nearest cell's distances, in standard errors: {', '.join(parts)}."


def _words(cell: Cell) -> str:
    return f"{cell.training.words}, epoch by {RULE_WORDS[cell.selection]}"
