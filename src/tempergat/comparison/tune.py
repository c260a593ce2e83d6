"""Settings of each method, searched on a graph before it is compared there.

Every method has its own search of as many settings on every split, with the validation
nodes of that split. The runs that are reported have seeds that no search uses, and test
scores choose nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tempergat.base import UserError, csv_text, one_line
from tempergat.comparison.plan import Plan
from tempergat.comparison.search import (
    SAMPLER_SEED,
    SEARCH_SEEDS,
    Proposals,
    Setting,
    Trial,
    searched_values,
    setting_word,
)
from tempergat.training import Recipe, Run, RunConfig, metric_of_run, settings_on

# Trains configurations on one split: its number, configurations, seeds.
Train = Callable[[int, Sequence[RunConfig], Sequence[int]], list[Run]]


class SearchIncompleteError(Exception):
    """Runs of the search are missing, and were not to be trained."""


@dataclass(frozen=True)
class Choice:
    """The settings of one method on one split.

    Attributes:
        method: The method.
        split: Number of the split.
        trials: The trials of its search.
        chosen: The trial of the best mean validation score.
        config: Its settings.
    """

    method: str
    split: int
    trials: tuple[Trial, ...]
    chosen: Trial
    config: RunConfig


def search_settings(
    plan: Plan, train: Train, on_search: Callable[[int, int], None]
) -> list[Choice]:
    """Search the settings of every method on every split.

    All methods and splits have their first trial, then all their second, and so on: the
    runs of one round are trained together.

    Args:
        plan: What to compare; its `tune` is the number of trials.
        train: Trains runs, or finds them in the store.
        on_search: Called after every round with its number, from 1, and `tune`.

    Raises:
        UserError: Optuna is missing, or nothing is left to search.
        SearchIncompleteError: `train` did not return every run.
    """
    assert plan.options.tune is not None
    searches = {
        split: [_proposals(plan, config) for config in plan.configs]
        for split, _ in seeds_by_split(plan)
    }
    for number in range(plan.options.tune):
        for split, of_split in searches.items():
            asked = [settings_on(p.ask(), plan.first_graph) for p in of_split]
            runs = train(split, asked, SEARCH_SEEDS)
            for proposals, config in zip(of_split, asked, strict=True):
                mine = [run for run in runs if run.method == config.method]
                if len(mine) < len(SEARCH_SEEDS):
                    raise SearchIncompleteError
                proposals.tell(mine)
        on_search(number + 1, plan.options.tune)
    return [
        Choice(
            method,
            split,
            tuple(tried.trials),
            tried.best,
            settings_on(tried.config_of(tried.best), plan.first_graph),
        )
        for split, of_split in searches.items()
        for method, tried in zip(plan.methods, of_split, strict=True)
    ]


def search_runs(plan: Plan) -> int:
    """How many runs the search of a plan trains; 0 without a search."""
    splits = min(len(plan.seeds), len(plan.graphs))
    each = len(SEARCH_SEEDS) * (plan.options.tune or 0)
    return len(plan.methods) * splits * each


def seeds_by_split(plan: Plan) -> Iterator[tuple[int, Sequence[int]]]:
    """The seeds of every split that has one: of S splits, the r-th is on r mod S."""
    for position, split in enumerate(plan.graphs):
        if seeds := plan.seeds[position :: len(plan.graphs)]:
            yield split, seeds


def notes_on_tuning(
    chosen: Mapping[tuple[str, int], Mapping[str, Setting]], trials: int | None = None
) -> tuple[str, ...]:
    """That settings were searched, and which ones each method has.

    Args:
        chosen: The settings by method and split.
        trials: How many settings were tried; None where that is not known.
    """
    methods = dict.fromkeys(method for method, _ in chosen)
    splits = len({split for _, split in chosen})
    several = f"{trials} settings" if trials else "the settings tried"
    where = "of the split"
    if splits > 1:
        where = f"of each of the {splits} splits by itself"
    first = (
        f"Tuned: each method has the best of {several} by mean validation score over "
        f"{len(SEARCH_SEEDS)} seeds, on validation nodes {where}. Scores are of other "
        "seeds; no test score chose a setting."
    )
    if splits == 1:
        first += (
            " Intervals and p hold for these settings. Another search can find others: "
            "on Cora and Citeseer four searches of a method ended about 1 point apart."
        )
    return (
        first,
        *(
            f"{method}: "
            + _in_words([values for (m, _), values in chosen.items() if m == method])
            for method in methods
        ),
    )


def tuned_recipes(plan: Plan, choices: Sequence[Choice]) -> dict[int, Recipe]:
    """By split, the plan's recipe with the settings that each method has there."""
    of_all = {
        "metric": metric_of_run(plan.configs[0], plan.first_graph),
        "training": plan.configs[0].training,
        "class_weights": plan.configs[0].class_weights,
    }
    recipes: dict[int, Recipe] = {}
    for choice in choices:
        recipe = recipes.get(choice.split) or plan.base.model_copy(update=of_all)
        settings = {**recipe.changes_for(choice.config), **choice.chosen.settings}
        methods = {**recipe.methods, choice.method: settings}
        recipes[choice.split] = recipe.model_copy(update={"methods": methods})
    return recipes


def recipe_text(
    recipe: Recipe, choices: Sequence[Choice], dataset: str, split: int
) -> str:
    """The file of a recipe that `tuned_recipes` made.

    Args:
        recipe: The recipe.
        choices: The searches.
        dataset: Name of the graph.
        split: Number of the split.
    """
    return (
        f"# Found on {one_line(dataset)}, split {split}: below `methods`, each method "
        f"has the best of\n# {len(choices[0].trials)} settings by mean validation "
        f"score; no test score chose one.\n{recipe.to_yaml()}"
    )


def tuned_facts(choices: Sequence[Choice]) -> dict[str, Any]:
    """The searches as plain JSON values."""
    return {
        "trials": len(choices[0].trials),
        "search_seeds": list(SEARCH_SEEDS),
        "chosen": [
            {
                "method": choice.method,
                "split": choice.split,
                "trial": choice.chosen.number,
                "settings": dict(choice.chosen.settings),
                "val_mean": choice.chosen.validation.mean,
            }
            for choice in choices
        ],
    }


def tuned_csv(dataset: str, choices: Sequence[Choice]) -> str:
    """One line per trial: settings, validation scores in percent, and what was chosen.

    Args:
        dataset: Name of the graph.
        choices: The searches.
    """
    names = dict.fromkeys(name for choice in choices for name in choice.chosen.settings)
    return csv_text(
        [
            {
                "dataset": dataset,
                "method": choice.method,
                "split": choice.split,
                "trial": trial.number,
                **{name: trial.settings.get(name) for name in names},
                "runs": trial.validation.runs,
                "failed": trial.validation.failed,
                "val_mean": trial.validation.mean,
                "val_std": trial.validation.std,
                "chosen": trial is choice.chosen,
            }
            for choice in choices
            for trial in choice.trials
        ]
    )


def searched_settings(config: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings of a run that `compare` with `tune` searches for its method."""
    is_own = config.get("source_hash") is not None
    names = searched_values(config["method"], is_own=is_own)
    return {name: config[name] for name in names if name in config}


def _proposals(plan: Plan, config: RunConfig) -> Proposals:
    is_own = config.source_hash is not None
    every = searched_values(config.method, is_own=is_own)
    fixed = plan.overrides.fields
    values = {name: tried for name, tried in every.items() if name not in fixed}
    if not values:
        raise UserError(
            f"nothing is left to search for {config.method}: all of it is given as "
            "settings; leave some out"
        )
    return Proposals(config, values, SAMPLER_SEED)


def _in_words(settings: Sequence[Mapping[str, Setting]]) -> str:
    """`learning_rate 0.01, norm batch`; over splits, how often each value is chosen."""
    words = []
    for name in settings[0]:
        counts = Counter(setting_word(of_split.get(name)) for of_split in settings)
        values = counts.most_common()
        if len(values) == 1:
            words.append(f"{name} {values[0][0]}")
        else:
            words.append(name + " " + " or ".join(f"{v} ({n}x)" for v, n in values))
    return ", ".join(words)
