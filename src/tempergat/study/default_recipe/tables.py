"""Rows and words that several parts of docs/default.md share."""

from collections.abc import Mapping

from tempergat.study.default_recipe.confirmation import ConfirmationResult
from tempergat.study.report import signed
from tempergat.study.search import Setting, setting_word


def graph_rows(found: ConfirmationResult) -> list[list[str]]:
    """A row for each graph: both cells by baseline, gain, runs that are counted."""
    return [
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


def cell_words(cell: Mapping[str, Setting]) -> str:
    """`residual yes, norm batch, learning_rate 0.005, dropout 0.5`."""
    return ", ".join(f"{name} {setting_word(value)}" for name, value in cell.items())
