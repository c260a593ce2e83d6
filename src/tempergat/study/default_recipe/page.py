"""docs/default.md: the verdict, both plans, and the search."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tempergat.base import UserError, write_into
from tempergat.study.default_recipe import figures
from tempergat.study.default_recipe.confirmation import (
    ConfirmationResult,
    confirmation_result,
)
from tempergat.study.default_recipe.plan import (
    PLAN_FILE,
    DefaultPlan,
    load_default_plan,
)
from tempergat.study.default_recipe.search import SearchResult, search_result
from tempergat.study.default_recipe.second import SecondResult, second_result
from tempergat.study.default_recipe.second_page import (
    second_answer,
    second_json,
    second_section,
)
from tempergat.study.default_recipe.second_plan import load_second_plan
from tempergat.study.default_recipe.tables import cell_words, graph_rows
from tempergat.study.report import filled, markdown_rows, p_value
from tempergat.study.search import setting_word

_FIGURE = "default-gains"
_SECOND_FIGURE = "default-second"
# Cells of the table; the others are in the CSVs.
_SHOWN = 8


@dataclass(frozen=True)
class DefaultReport:
    """What the page says.

    Attributes:
        search: What the search found.
        confirmation: The test on fresh seeds; None where it was not run.
        second: What the second plan found; None where it has no runs.
        sentences: The recipe, and the answer of each plan, the latest first.
        page: Where the page is.
    """

    search: SearchResult
    confirmation: ConfirmationResult | None
    second: SecondResult | None
    sentences: tuple[str, ...]
    page: Path


def reproduce_default(results: Path, docs: Path) -> DefaultReport:
    """Write docs/default.md from the plan and the runs in results/default_recipe/.

    Args:
        results: The project's folder of results.
        docs: Where the page and its figure go.

    Raises:
        UserError: No graph has all its runs, or a file cannot be read.
    """
    plan = load_default_plan(results)
    search = search_result(plan, results)
    if search is None:
        raise UserError(
            "no graph of the search for the default recipe has all its runs; train "
            "them with `tempergat reproduce default --run`"
        )
    confirmation = confirmation_result(plan, search.chosen, results)
    second_plan = load_second_plan(results)
    second = second_result(second_plan, results) if second_plan is not None else None
    first = f"{_chosen(plan, search)} {_verdict(plan, search, confirmation, second)}"
    answers: tuple[str, ...] = (first,)
    if second is not None:
        answers = (*_recipe(plan, results, second), second_answer(second), first)
    parts = ["# The default recipe\n", *(f"{answer}\n" for answer in answers)]
    parts.append(_origin(plan, search))
    if second is not None:
        test = second.test(second.chosen, second.cells)
        figures.gains_figure(test, docs / "figures" / _SECOND_FIGURE)
        parts.append(second_section(second, f"figures/{_SECOND_FIGURE}.svg"))
    if confirmation is not None:
        figures.gains_figure(confirmation, docs / "figures" / _FIGURE)
        parts.append(_confirmation_section(plan, confirmation))
    parts.append(_search_section(plan, search))
    page = write_into(docs, "default.md", filled("\n".join(parts)))
    return DefaultReport(search, confirmation, second, answers, page)


def default_json(report: DefaultReport) -> dict[str, Any]:
    """What the page says, as plain JSON values."""
    search, test, second = report.search, report.confirmation, report.second
    return {
        "chosen": dict(search.chosen),
        "ranks": list(search.ranks),
        "graphs": list(search.graphs),
        "confirmation": None
        if test is None
        else {
            "gain": test.gain,
            "p": test.p,
            "more_one_class": test.worse,
            "replaces": test.replaces,
        },
        "second": None if second is None else second_json(second),
        "page": str(report.page),
    }


def _recipe(plan: DefaultPlan, results: Path, second: SecondResult) -> tuple[str, ...]:
    """The recipe, where both plans choose the same on the graphs that use it."""
    own = second.plan.with_own_recipe
    search, ranks = search_result(plan, results, own), second.ranks_where_used
    best = ranks.index(min(ranks))
    if search is None or dict(search.chosen) != second.plan.candidates[best]:
        return ()
    return (
        f"The recipe `default` is {cell_words(search.chosen)}: on the graphs that the "
        f"default is for, all but {', '.join(own)}, it has the best average rank in "
        f"validation score in both plans ({min(search.ranks):.2f} among "
        f"{len(search.ranks)} settings on {len(search.graphs)} graphs, and "
        f"{min(ranks):.2f} among {len(ranks)} candidates on {len(second.deciding)}).",
    )


def _chosen(plan: DefaultPlan, search: SearchResult) -> str:
    baselines = f"{', '.join(plan.methods[:-1])} and {plan.methods[-1]}"
    return (
        f"Of {len(search.ranks)} settings, {cell_words(search.chosen)} has the best "
        f"average rank in validation score for {baselines} over "
        f"{len(search.graphs)} graphs of {search.families} families."
    )


def _verdict(
    plan: DefaultPlan,
    search: SearchResult,
    found: ConfirmationResult | None,
    second: SecondResult | None,
) -> str:
    if dict(search.chosen) == plan.present:
        return "This was the default already, so nothing changes."
    if search.families < plan.confirmation.least_families:
        return (
            f"The plan asks for {plan.confirmation.least_families} families before "
            "anything is decided, so the default stays as it is."
        )
    if found is None or not found.is_complete:
        return (
            "It was not yet compared with the present default on fresh seeds, as the "
            "plan asks, so the default stays as it is."
        )
    words = "rises" if found.gain > 0 else "falls"
    families = len({one.family for one in found.graphs})
    start = (
        f"On {plan.confirmation.seeds} fresh seeds the mean test score {words} by "
        f"{abs(found.gain):.2f} points over {families} families (Wilcoxon p "
        f"{p_value(found.p)}), and "
        + (
            f"more runs predict one class on {', '.join(found.worse)}"
            if found.worse
            else "no graph has more runs that predict one class"
        )
    )
    if found.replaces:
        return f"{start}. By the plan's rule it is now the recipe `default`."
    if second is not None and second.replaces:
        return f"{start}. By the first plan's rule the default would have stayed."
    return f"{start}. By the plan's rule the default stays as it was."


def _origin(plan: DefaultPlan, search: SearchResult) -> str:
    missing = [name for name in plan.graphs if name not in search.graphs]
    without = (
        f" Without all their runs, and left out: {', '.join(missing)}."
        if missing
        else ""
    )
    return (
        "`tempergat reproduce default` makes this page from results/default_recipe/. "
        f"What was tried, how a cell is chosen and when it replaces the default was "
        f"fixed in results/{PLAN_FILE} before the first run. Baselines alone took "
        "part, so nothing here favours a variant. All scores are accuracies, also on "
        f"tolokers, whose authors report ROC AUC.{without}\n"
    )


def _confirmation_section(plan: DefaultPlan, found: ConfirmationResult) -> str:
    seeds = plan.confirmation.run_seeds
    return (
        "## The first plan: the chosen settings on fresh seeds\n\n"
        f"![Gain of the chosen cell by graph](figures/{_FIGURE}.svg)\n\n"
        "Mean test score in percent with the earlier default and with the chosen "
        f"settings, seeds {seeds.start} to {seeds.stop - 1}; the gain is the mean over "
        "baselines; the last column counts runs that predict one class, of "
        f"{len(plan.methods) * len(seeds)}.\n\n"
        + markdown_rows(
            ["graph", *plan.methods, "gain", "one class"], graph_rows(found)
        )
    )


def _search_section(plan: DefaultPlan, search: SearchResult) -> str:
    cells, order = plan.cells(), np.argsort(search.ranks, kind="stable")
    shown = list(order[:_SHOWN])
    present = cells.index(plan.present)
    if present not in shown:
        shown.append(present)
    places = {int(cell): place for place, cell in enumerate(order, start=1)}
    rows = [
        [
            str(places[int(i)]),
            *(setting_word(value) for value in cells[i].values()),
            f"{search.ranks[i]:.2f}",
            "the earlier default" if i == present else "",
        ]
        for i in shown
    ]
    seeds = plan.run_seeds
    return (
        "## The search\n\n"
        f"The best {_SHOWN} of {len(cells)} cells and the earlier default: rank in "
        f"mean validation score over seeds {seeds.start} to {seeds.stop - 1}, averaged "
        "over baselines, over the graphs of a family and over families. `dropout` is "
        "that of features and of attention.\n\n"
        + markdown_rows(["", *plan.grid, "average rank", ""], rows)
        + f"\nThe graphs: {', '.join(search.graphs)}.\n"
    )
