"""The result of a comparison, in the forms people use."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tempergat.base import (
    UserError,
    csv_text,
    file_stem,
    suggest_one_of,
    write_into,
    write_text,
)
from tempergat.comparison.chosen import Recipes, in_words, recipe_means
from tempergat.comparison.explorer.page import explorer_section
from tempergat.comparison.html_report.report import report_html
from tempergat.comparison.html_report.tables import notebook_html
from tempergat.comparison.report.answers import Answer
from tempergat.comparison.report.formats import Table, as_latex, as_markdown, as_text
from tempergat.comparison.report.learned import learned_rows, learned_table
from tempergat.comparison.report.records import as_json, as_rows
from tempergat.comparison.report.sentences import answer, claims, verdict
from tempergat.comparison.report.tables import recipes_table, result_table
from tempergat.comparison.results.notes import notes_on_condition
from tempergat.comparison.results.result import DatasetResult
from tempergat.comparison.tune import (
    Choice,
    recipe_text,
    tuned_csv,
    tuned_facts,
)
from tempergat.training import Condition, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tempergat.data import GraphInput
    from tempergat.training import Recipe, TrainedModel


class Written(ABC):
    """The forms of a result: files, JSON, and a report for a browser."""

    @property
    @abstractmethod
    def table(self) -> list[dict[str, Any]]:
        """Rows of plain values, numbers in full."""

    @property
    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """The tables as people read them."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""

    @abstractmethod
    def _page(self, command: str | None, explorer: str) -> str:
        """The report; `explorer` is the section of a trained model, or empty."""

    def to_html(
        self,
        command: str | None = None,
        *,
        model: "TrainedModel | None" = None,
        graph: "GraphInput | None" = None,
    ) -> str:
        """What `to_report` writes, as text."""
        return self._page(command, explorer_section(model, graph))

    def to_csv(self, path: str | Path | None = None) -> str:
        """The rows of `table` as CSV; written to `path` too, if given."""
        return _written(csv_text(self.table), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The tables as Markdown; written to `path` too, if given."""
        return _written("\n".join(map(as_markdown, self.tables)), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """The tables as LaTeX with booktabs; written to `path` too, if given."""
        return _written("\n".join(map(as_latex, self.tables)), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Everything as JSON; written to `path` too, if given.

        Confusion matrices of more than 100 classes are `classes`, their number, and
        `cells`: true class, predicted class and count of each that is not 0.
        """
        return _written(json.dumps(self.facts, indent=1, allow_nan=False), path)

    def to_report(
        self,
        path: str | Path,
        command: str | None = None,
        *,
        model: "TrainedModel | None" = None,
        graph: "GraphInput | None" = None,
    ) -> Path:
        """Write one HTML file that shows everything and needs no network.

        Args:
            path: The file.
            command: What was typed to make the result, for those who repeat it.
            model: A trained model to show node by node at the end.
            graph: The graph to show it on; None for that of its training.

        Returns:
            The file.
        """
        write_text(Path(path), self.to_html(command, model=model, graph=graph))
        return Path(path)

    def _written_files(
        self,
        stem: Path,
        command: str | None,
        figure: "Figure | None",
        texts: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[Path, ...]:
        """Write the tables, further texts by their suffix, the figure and the report.

        All files are called like `stem`; the folder is made when missing.
        """
        from tempergat.base.figures import save_figure

        texts = {
            ".csv": self.to_csv(),
            ".md": self.to_markdown(),
            ".tex": self.to_latex(),
            **texts,
        }
        paths = [
            write_into(stem.parent, f"{stem.name}{suffix}", text)
            for suffix, text in texts.items()
        ]
        if figure is not None:
            paths += save_figure(figure, stem)
        page = self._page(command, "")
        return (*paths, write_into(stem.parent, f"{stem.name}.html", page))


@dataclass(frozen=True, repr=False)
class Comparison(Written):
    """Methods compared on one graph. Scores are in percent.

    Attributes:
        result: Each method's scores, and its comparison with its baseline.
        runs: Every run, failed ones included.
        baseline: The method all others are compared with; None where each variant is
            compared with its backbone.
        recipe: Name of the recipe.
        settings: What was given in place of the recipe's settings.
        class_names: The class words of the graph; None where classes are numbers.
        reading: What the files of the user's graph were taken for, by subject; empty
            for datasets by name and where it is not known.
        device: The device of the runs.
        complete: Whether all runs that were asked for are there.
        notes: Sentences on what the scores depend on, shown below the table.
        store: The file that keeps the runs; None where they were not kept.
        file_name: Name of the files that `written_to` writes, without suffix; the
            dataset's when it is None.
        files: The files that were written: CSV, Markdown, LaTeX, where settings were
            searched the CSV of the trials and a recipe per split, SVG, PNG, HTML.
        tuned: The search of each method on each split; empty where all methods have the
            recipe's settings.
        tuned_recipes: By split, a recipe with the settings found, for `compare` and
            `train`; empty where nothing was searched.
        other_runs: The runs with the recipes that were not chosen.
        chosen: Which recipe each method has on each split.
    """

    result: DatasetResult
    runs: list[Run]
    baseline: str | None
    recipe: str
    device: str
    complete: bool
    settings: Mapping[str, Any] = field(default_factory=dict)
    class_names: tuple[str, ...] | None = None
    reading: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    store: Path | None = None
    file_name: str | None = None
    files: tuple[Path, ...] = ()
    tuned: tuple[Choice, ...] = ()
    tuned_recipes: "Mapping[int, Recipe]" = field(default_factory=dict)
    other_runs: Sequence[Run] = ()
    chosen: Recipes = field(default_factory=dict)

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row of plain values per method, numbers in full."""
        return as_rows(self.result)

    @property
    def tables(self) -> tuple[Table, ...]:
        if not self.other_runs:
            return (self.text_table,)
        means = recipe_means(self.every_run, self.chosen)
        return (self.text_table, recipes_table(self.result, means))

    @property
    def every_run(self) -> list[Run]:
        """The runs, and those with the recipes that were not chosen."""
        return [*self.runs, *self.other_runs]

    @property
    def choice(self) -> str:
        """Which recipe was chosen for whom; empty where there was no choice."""
        return in_words(self.chosen, self.every_run) if self.other_runs else ""

    def recipe_of(self, method: str) -> str:
        """The recipe of a method on the first of its splits."""
        chosen = (of for (name, _), of in self.chosen.items() if name == method)
        return next(chosen, self.recipe)

    @property
    def failed(self) -> int:
        """How many runs failed."""
        return sum(method.summary.failed for method in self.result.results)

    @property
    def condition(self) -> Condition | None:
        """What was done to features and model before every run; None for nothing."""
        return self.runs[0].condition if self.runs else None

    @property
    def best(self) -> str | None:
        """The method with the highest mean, one of `best_set`; None without a run.

        Others of the set may be as good: `simplest` is one of them, and whether only
        one is left is `best_set == (best,)`.
        """
        best = self.result.best
        return None if best is None else best.method

    @property
    def best_set(self) -> tuple[str, ...]:
        """The methods that could be the best (95 %), highest mean first.

        Empty where too few runs can be compared, and where all methods are compared
        with one baseline.
        """
        found = self.result.best_set
        return () if found is None else found.members

    @property
    def simplest(self) -> str | None:
        """The method of the best set with the fewest trained parameters.

        None without such a set, and where a run does not say how many it has.
        """
        return self.result.simplest

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """The tests of all pairs of methods, as plain values.

        The method with the higher mean is the baseline of a pair.
        """
        pairs: list[dict[str, Any]] = as_json(self.result)["pairs"]
        return pairs

    @property
    def left_out(self) -> tuple[str, ...]:
        """The methods that some other one is shown to match or beat."""
        found = self.result.best_set
        return () if found is None else tuple(found.left_out)

    @property
    def answer(self) -> Answer:
        """Which methods could be the best; `str` makes it two lines at most."""
        return answer(self.result)

    @property
    def claims(self) -> list[str]:
        """What was tested besides, and what more seeds would do, a sentence each."""
        return claims(self.result)

    @property
    def verdict(self) -> str:
        """What the comparison shows, in a few sentences; the answer is the last."""
        return verdict(self.result)

    def confusion(self, method: str) -> np.ndarray:
        """Test nodes of all finished runs by true class (rows) and predicted class.

        Args:
            method: One of the methods compared.

        Raises:
            UserError: There is no such method, or its runs have no confusion matrix.
        """
        if method not in self.result.methods:
            known = self.result.methods
            raise UserError(f"no runs of {method!r}; {suggest_one_of(method, known)}")
        counts = self.result[method].confusion
        if counts is None:
            raise UserError(
                f"not every run of {method} has a confusion matrix; compare again in "
                "another folder"
            )
        return np.array(counts)

    @property
    def learned(self) -> list[dict[str, Any]]:
        """Temperatures and mean gates, a row of plain values per method and layer.

        Means and standard deviations over finished runs at the epoch of the scores;
        `last_temperature` and `last_gate` at the last epoch. None for what a layer
        lacks; methods without temperature and gate have no row.
        """
        return learned_rows(self.runs)

    @property
    def learned_table(self) -> Table:
        """`learned` as people read it."""
        return learned_table(self.result.dataset, self.learned)

    @property
    def text_table(self) -> Table:
        """The table as people read it."""
        urgent = notes_on_condition(self.condition)
        return result_table(self.result, self.notes, urgent)

    @property
    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            **as_json(self.result),
            "fingerprints": {
                str(run.split): run.fingerprint
                for run in sorted(self.runs, key=lambda run: run.split)
            },
            "recipe": self.recipe,
            "settings": dict(self.settings),
            **({"condition": self.condition.facts} if self.condition else {}),
            "tuned": tuned_facts(self.tuned) if self.tuned else None,
            "chosen": recipe_means(self.every_run, self.chosen) if self.choice else [],
            "class_names": None if self.class_names is None else list(self.class_names),
            "read": dict(self.reading),
            "device": self.device,
            "complete": self.complete,
            "store": None if self.store is None else str(self.store),
            "files": [str(path) for path in self.files],
            "best": self.best,
            "best_set": list(self.best_set),
            "left_out": list(self.left_out),
            "simplest": self.simplest,
            "answer": str(self.answer),
            "verdict": self.verdict,
            "notes": list(self.notes),
        }

    def _page(self, command: str | None, explorer: str) -> str:
        return report_html(self, command, explorer)

    def plot(self) -> "Figure":
        """A figure of every run, with means and intervals."""
        # Loads matplotlib.
        from tempergat.comparison.report.figures import result_figure

        return result_figure(self.result, self.baseline)

    def written_to(self, folder: Path, command: str | None = None) -> "Comparison":
        """Write the tables, the figure and the report.

        Args:
            folder: Where to write; made when missing.
            command: What was typed to make the comparison, for the report.

        Returns:
            The comparison with the paths of the files.
        """
        dataset, texts = self.result.dataset, {}
        if self.tuned:
            texts["_trials.csv"] = tuned_csv(dataset, self.tuned)
        for split, recipe in self.tuned_recipes.items():
            which = f"_split{split}" if len(self.tuned_recipes) > 1 else ""
            text = recipe_text(recipe, self.tuned, dataset, split)
            texts[f"_recipe{which}.yaml"] = text
        stem = folder / (self.file_name or file_stem(dataset))
        files = self._written_files(stem, command, self.plot(), texts)
        return replace(self, files=files)

    def __repr__(self) -> str:
        return f"{as_text(self.text_table)}\n{self.verdict}"

    def _repr_html_(self) -> str:
        return notebook_html(self.result, self.text_table)


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_text(Path(path), text)
    return text
