"""The results of several graphs, in the forms people use."""

import html
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempergat.base import UserError, counted, suggest_one_of
from tempergat.comparison.html_report.report import several_html
from tempergat.comparison.html_report.tables import as_html
from tempergat.comparison.report.formats import Table, as_text
from tempergat.comparison.results.across_graphs import (
    AcrossGraphs,
    across_graphs,
    scores_table,
    summary_table,
    summary_verdict,
)
from tempergat.comparison.results.comparison import Comparison, Written

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Comparisons(Written):
    """Methods compared on several graphs: an overview, and one comparison each.

    `comparisons["cora"]` is the comparison on one graph; iterating gives all of them.

    Attributes:
        comparisons: One for each graph, in the order given.
        files: The files of the summary that were written: CSV, Markdown, LaTeX, SVG and
            PNG of the ranks where there are some, and HTML. Each comparison has its
            own.
    """

    comparisons: tuple[Comparison, ...]
    files: tuple[Path, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The graphs; a further one of the same name is called like its files.

        Where that name is taken too, a number is put behind it.
        """
        names: list[str] = []
        for comparison in self.comparisons:
            name = comparison.result.dataset
            if name in names:
                name = comparison.file_name or name
            if name in names and comparison.result.splits > 1:
                name = f"{name} on {comparison.result.splits} splits"
            numbered = (f"{name}-{number}" for number in count(2))
            names.append(next(n for n in chain([name], numbered) if n not in names))
        return tuple(names)

    @cached_property
    def across(self) -> AcrossGraphs:
        """Average ranks with their critical difference, wins, ties and losses."""
        seen: set[str] = set()
        results, repeated = {}, []
        for name, comparison in zip(self.names, self.comparisons, strict=True):
            results[name] = comparison.result
            prints = {run.fingerprint for run in comparison.runs}
            if seen & prints:
                repeated.append(comparison.result.dataset)
            seen |= prints
        return across_graphs(results, tuple(dict.fromkeys(repeated)))

    def __len__(self) -> int:
        return len(self.comparisons)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.comparisons)

    def __getitem__(self, name: str) -> Comparison:
        if name not in self.names:
            raise UserError(f"no graph {name!r}; {suggest_one_of(name, self.names)}")
        return self.comparisons[self.names.index(name)]

    @property
    def best(self) -> str | None:
        """The method with the best average rank; None without ranks or on a tie."""
        best = self.across.best
        return best[0] if len(best) == 1 else None

    @property
    def verdict(self) -> str:
        """What the graphs show together, in one sentence."""
        return "".join(summary_verdict(self.across))

    @property
    def complete(self) -> bool:
        """Whether all runs that were asked for are there, on every graph."""
        return all(comparison.complete for comparison in self.comparisons)

    @property
    def failed(self) -> int:
        """How many runs failed, on all graphs together."""
        return sum(comparison.failed for comparison in self.comparisons)

    @property
    def summary(self) -> Table:
        """Average ranks, wins, ties and losses, as people read them."""
        return summary_table(self.across)

    @property
    def scores(self) -> Table:
        """Every method's mean score on every graph, as people read them."""
        return scores_table(self.across)

    @property
    def tables(self) -> tuple[Table, Table]:
        return self.summary, self.scores

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row of plain values per graph and method, numbers in full."""
        ranks = self.across.ranks
        rows = []
        for name, comparison in zip(self.names, self.comparisons, strict=True):
            of_graph = {} if ranks is None else ranks.ranks.get(name, {})
            for row in comparison.table:
                rank = of_graph.get(row["method"])
                rows.append({"graph": name, **row, "rank": rank})
        return rows

    @property
    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        named = zip(self.names, self.comparisons, strict=True)
        return {
            "graphs": {name: comparison.facts for name, comparison in named},
            "summary": self.across.facts,
            "complete": self.complete,
            "best": self.best,
            "verdict": self.verdict,
            "files": [str(path) for path in self.files],
        }

    def plot(self) -> "Figure":
        """A figure of the average ranks with their critical difference.

        Raises:
            UserError: There are no ranks.
        """
        ranks = self.across.ranks
        if ranks is None:
            raise UserError(
                "there are no average ranks to draw: they need two methods or more, "
                "with finished runs on two graphs or more, each compared on once"
            )
        graphs = counted(len(ranks.datasets), "graph")
        # Loads matplotlib.
        from tempergat.comparison.report.figures import ranks_figure

        return ranks_figure(f"Average rank on {graphs}", ranks)

    def _page(self, command: str | None, explorer: str) -> str:
        return several_html(self, command, explorer)

    def written_to(self, folder: Path, command: str | None = None) -> "Comparisons":
        """Write the files of the summary; returns the comparisons with their paths.

        The files of each graph are written by `Comparison.written_to`.

        Args:
            folder: Where to write; made when missing.
            command: What was typed to make the comparisons, for the report.
        """
        # No graph has files of this name.
        name, taken = "summary", {c.file_name for c in self.comparisons}
        while name in taken:
            name += "-of-graphs"
        figure = None if self.across.ranks is None else self.plot()
        return replace(self, files=self._written_files(folder / name, command, figure))

    def __repr__(self) -> str:
        overview = f"{as_text(self.summary)}\n{self.verdict}"
        return "\n\n".join([*map(repr, self.comparisons), overview])

    def _repr_html_(self) -> str:
        answer = f"<p><strong>{html.escape(self.verdict)}</strong></p>\n"
        parts = [answer, *map(as_html, self.tables)]
        for name, comparison in zip(self.names, self.comparisons, strict=True):
            parts.append(f"<h3>{html.escape(name)}</h3>\n{comparison._repr_html_()}")
        return "".join(parts)
