"""docs/default.md: the cells of the search by their average rank, and the verdict."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tempergat.base import UserError, write_text
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
from tempergat.study.report import filled, markdown_rows, p_value, signed
from tempergat.study.search import Setting, setting_word

_FIGURE = "default-gains"
# Cells of the table; the others are in the CSVs.
_SHOWN = 8


@dataclass(frozen=True)
class DefaultReport:
    """What the page says.

    Attributes:
        search: What the search found.
        confirmation: The test on fresh seeds; None where it was not run.
        sentences: The answer.
        page: Where the page is.
    """

    search: SearchResult
    confirmation: ConfirmationResult | None
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
    sentences = (_chosen(plan, search), _verdict(plan, search, confirmation))
    parts = ["# The default recipe\n", " ".join(sentences) + "\n"]
    if confirmation is not None:
        figures.gains_figure(confirmation, docs / "figures" / _FIGURE)
        parts += [
            f"![Gain of the chosen cell by graph](figures/{_FIGURE}.svg)\n",
            "Mean test score of the chosen cell less that of the earlier default, by "
            "graph and baseline.\n",
        ]
    parts += [_origin(plan, search)]
    if confirmation is not None:
        parts.append(_confirmation_section(plan, confirmation))
    parts.append(_search_section(plan, search))
    page = docs / "default.md"
    write_text(page, filled("\n".join(parts)))
    return DefaultReport(search, confirmation, sentences, page)


def _chosen(plan: DefaultPlan, search: SearchResult) -> str:
    baselines = f"{', '.join(plan.methods[:-1])} and {plan.methods[-1]}"
    return (
        f"Of {len(search.ranks)} settings, {_cell_words(search.chosen)} has the best "
        f"average rank in validation score for {baselines} over "
        f"{len(search.graphs)} graphs of {search.families} families."
    )


def _verdict(
    plan: DefaultPlan, search: SearchResult, found: ConfirmationResult | None
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
        f"part, so nothing here favours a variant.{without}\n"
    )


def _confirmation_section(plan: DefaultPlan, found: ConfirmationResult) -> str:
    rows = [
        [
            one.graph,
            *(
                f"{pair.present:.2f} to {pair.chosen:.2f}"
                for pair in one.scores.values()
            ),
            signed(one.gain),
            f"{one.one_class.present:g} to {one.one_class.chosen:g}",
        ]
        for one in found.graphs
    ]
    seeds = plan.confirmation.run_seeds
    return (
        "## The chosen settings on fresh seeds\n\n"
        "Mean test score in percent with the earlier default and with the chosen "
        f"settings, seeds {seeds.start} to {seeds.stop - 1}; the gain is the mean over "
        "baselines; the last column counts runs that predict one class, of "
        f"{len(plan.methods) * len(seeds)}.\n\n"
        + markdown_rows(["graph", *plan.methods, "gain", "one class"], rows)
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


def _cell_words(cell: Mapping[str, Setting]) -> str:
    """`residual yes, norm batch, learning_rate 0.005, dropout 0.5`."""
    return ", ".join(f"{name} {setting_word(value)}" for name, value in cell.items())
