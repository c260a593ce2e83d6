"""The second plan's part of docs/default.md."""

from typing import Any

from tempergat.study.default_recipe.confirmation import (
    ConfirmationResult,
    family_gains,
)
from tempergat.study.default_recipe.second import SecondResult
from tempergat.study.default_recipe.second_plan import SECOND_PLAN_FILE
from tempergat.study.default_recipe.tables import cell_words, graph_rows
from tempergat.study.report import markdown_rows, p_value, signed
from tempergat.study.search import setting_word


def second_answer(found: SecondResult) -> str:
    """Whether the default changes, and what speaks for and against it."""
    cell = cell_words(found.chosen_settings)
    if not found.is_complete:
        return (
            f"By a second plan {cell} is compared with the default on ten splits; too "
            "few of its runs are there to decide, so the default stays as it is."
        )
    test = found.test(found.chosen, found.deciding)
    start = (
        f"Over all graphs the second plan chose {cell}; the default before both plans "
        "is called `plain`."
        if found.replaces
        else f"The recipe `default` stays as it was: {cell}, the better candidate, "
        "does not meet the conditions of the second plan."
    )
    family, gain = _largest_loss(test)
    runs = len(found.deciding) * len(found.plan.methods) * found.plan.seeds
    return (
        f"{start} On graphs that use the default, the mean test score of "
        f"{_listed(found.plan.methods)} changes by {signed(test.gain)} points over "
        f"{len(family_gains(test.graphs))} families (Wilcoxon p {p_value(test.p)}). "
        f"The family with the lowest gain is {family} ({signed(gain)}), and "
        f"{found.wrong_runs(found.chosen)} of {runs} runs go wrong in place of "
        f"{found.wrong_runs(0)}."
    )


def second_section(found: SecondResult, figure: str) -> str:
    """The section about the second plan.

    Args:
        found: What was found.
        figure: The figure's path from the page.
    """
    plan, seeds = found.plan, found.plan.run_seeds
    everything = found.test(found.chosen, found.cells)
    families = len(family_gains(everything.graphs))
    missing = (
        f" Without all their runs, and left out: {', '.join(found.missing)}."
        if found.missing
        else ""
    )
    return (
        "## The second plan\n\n"
        f"results/{SECOND_PLAN_FILE} was fixed before its first run, but with the "
        "results below known, and its rule is another one because of them. So this is "
        "no blind test. It asks for the average and the largest loss, since a default "
        "is for graphs of which nothing is known. Fresh are the seeds "
        f"({seeds.start} to {seeds.stop - 1}), the splits other than the first, two "
        f"graphs, and the test of the cells with a norm.{missing}\n\n"
        + _candidates(found)
        + "\nThe candidate is chosen by its average rank in validation score; the "
        f"other columns choose nothing.{_ahead_by_test(found)} Layer norm is measured "
        "but no candidate: PyG's takes mean and variance over all nodes, so with "
        "sampled batches the scores of a node would depend on the batch that it is in. "
        "The gains are about graphs that use the default, so without "
        f"{_listed(plan.with_own_recipe)}, which have recipes of their own. A run goes "
        "wrong that fails, predicts one class, or ends more than "
        f"{plan.far_below:g} points below the median of its ten in validation score. "
        f"Over all {families} families, those three graphs included, the gain of the "
        f"chosen one is {signed(everything.gain)} points (Wilcoxon p "
        f"{p_value(everything.p)}).{_choice_of_graphs_with_default(found)}\n\n"
        f"{_losses(found, everything)}\n\n"
        f"![Gain of the chosen candidate by graph]({figure})\n\n"
        "Mean test score in percent with the earlier default and with the chosen "
        "candidate; the gain is the mean over baselines; the last column counts runs "
        f"that go wrong, of {len(plan.methods) * plan.seeds}.\n\n"
        + markdown_rows(
            ["graph", *plan.methods, "gain", "go wrong"], graph_rows(everything)
        )
    )


def second_json(found: SecondResult) -> dict[str, Any]:
    """The outcome as plain JSON values."""
    test = found.test(found.chosen, found.deciding)
    return {
        "chosen": dict(found.chosen_settings),
        "ranks": list(found.ranks),
        "gain": test.gain,
        "p": test.p,
        "gain_with_all_graphs": found.test(found.chosen, found.cells).gain,
        "too_large_losses": found.too_large_losses,
        "wrong_runs": [found.wrong_runs(cell) for cell in range(len(found.plan.cells))],
        "missing": list(found.missing),
        "replaces": found.replaces,
    }


def _candidates(found: SecondResult) -> str:
    plan, rows = found.plan, []
    for place, cell in enumerate(plan.cells):
        test = found.test(place, found.deciding)
        family, gain = _largest_loss(test)
        gains = [signed(test.gain), p_value(test.p), f"{signed(gain)} ({family})"]
        measured = ["", *(gains if place > 0 else ["", "", ""])]
        if 0 < place <= len(plan.candidates):
            measured[0] = f"{found.ranks[place - 1]:.2f}"
        note = {0: "the earlier default", found.chosen: "chosen"}.get(place, "")
        words = [setting_word(value) for value in cell.values()]
        rows.append([*words, *measured, str(found.wrong_runs(place)), note])
    header = ["average rank", "gain", "Wilcoxon p", "lowest gain", "runs that go wrong"]
    return markdown_rows([*plan.present, *header, ""], rows)


def _ahead_by_test(found: SecondResult) -> str:
    """The candidates that test scores would have put before the chosen one."""
    gain = found.test(found.chosen, found.deciding).gain
    ahead = [
        cell_words(found.plan.cells[place])
        for place in range(1, 1 + len(found.plan.candidates))
        if found.test(place, found.deciding).gain > gain
    ]
    if not ahead:
        return ""
    return f" By test scores {' and '.join(ahead)} would be ahead."


def _choice_of_graphs_with_default(found: SecondResult) -> str:
    """Which candidate has the best rank on the graphs that use the default."""
    ranks = found.ranks_where_used
    best = 1 + ranks.index(min(ranks))
    outcome = "the same candidate would be chosen"
    if best != found.chosen:
        outcome = f"{cell_words(found.plan.cells[best])} would be chosen"
    words = " and ".join(f"{rank:.2f}" for rank in ranks)
    return (
        " Not in the plan: without those three graphs the average ranks of the "
        f"candidates are {words}, in their order, and {outcome}."
    )


def _losses(found: SecondResult, everything: ConfirmationResult) -> str:
    """Every family and graph whose mean falls."""
    families = family_gains(found.test(found.chosen, found.deciding).graphs)
    falling = {name: gain for name, gain in families.items() if gain < 0}
    graphs = {one.graph: one.gain for one in everything.graphs if one.gain < 0}
    single = {
        f"{method} on {one.graph}": pair.chosen - pair.present
        for one in everything.graphs
        for method, pair in one.scores.items()
    }
    worst, loss = min(single.items(), key=lambda item: item[1])
    return (
        f"Families that lose, without those three graphs: {_gains(falling)}. Graphs "
        f"that lose: {_gains(graphs)}. The lowest gain of a single baseline is that "
        f"of {worst}: {signed(loss)}."
    )


def _gains(gains: dict[str, float]) -> str:
    ordered = sorted(gains.items(), key=lambda item: item[1])
    return ", ".join(f"{name} {signed(gain)}" for name, gain in ordered) or "none"


def _largest_loss(test: ConfirmationResult) -> tuple[str, float]:
    return min(family_gains(test.graphs).items(), key=lambda item: item[1])


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else "".join(names)
