"""One of two recipes for each method, on a graph without a recipe of its own.

`default` adds a residual and batch norm to `plain`: right where neighbours differ,
wrong where they are alike. Both are trained, and their validation scores choose.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tempergat.base import joined
from tempergat.comparison.options import MOST_RUNS
from tempergat.comparison.plan import backbone_of, has_choice
from tempergat.stats import summarise
from tempergat.training import Metric, Run, canonical_json, metric_of_settings

# By method and split, the recipe that was chosen.
Recipes = Mapping[tuple[str, int], str]

# Residual and norm of each recipe; of equally good ones the first is chosen.
_KINDS = {"plain": (False, None), "default": (True, "batch")}
# The rate of `plain` where `default` has this one; a user may give both another.
_RATES = {0.01: 0.005}
_DIFFERENT = ("residual", "norm", "learning_rate", "bias_before_norm")


class Chosen(NamedTuple):
    """Runs, and which of them are compared.

    Attributes:
        recipes: The recipe of each method on each split.
        compared: The runs with it.
        others: The runs with the other recipe.
        beside_backbones: The runs of methods with the recipes of their backbones.
    """

    recipes: Recipes
    compared: list[Run]
    others: list[Run]
    beside_backbones: list[Run]


def choose(runs: Iterable[Run]) -> Chosen:
    """Choose a recipe wherever a method has runs of both on a split.

    Fewer failed runs come first, then the better mean validation score, over the seeds
    that both have.
    """
    units = [(_better(unit), unit) for unit in by_recipes(runs)]
    keys = [(unit[recipe][0].method, unit[recipe][0].split) for recipe, unit in units]
    recipes = dict(zip(keys, (recipe for recipe, _ in units), strict=True))
    chosen = Chosen(recipes, [], [], [])
    for (method, split), (recipe, unit) in zip(keys, units, strict=True):
        of_backbone = recipes.get((backbone_of(method), split), recipe)
        chosen.beside_backbones.extend(unit.get(of_backbone, []))
        chosen.compared.extend(unit.pop(recipe))
        chosen.others.extend(run for other in unit.values() for run in other)
    return chosen


def by_recipes(runs: Iterable[Run]) -> Iterator[dict[str, list[Run]]]:
    """The runs of each method and split by recipe: of both, where they fit together."""
    alike: dict[tuple[Any, ...], dict[tuple[Any, ...], list[Run]]] = {}
    for run in runs:
        rest = {k: v for k, v in run.config.items() if k not in _DIFFERENT}
        # Searches, and runs with the settings they found, have other seeds.
        use = run.seed // MOST_RUNS
        if use or not has_choice(run.method, run.config.get("training")):
            rest["hash"] = run.config_hash
        of = (run.method, run.fingerprint, run.split, use)
        made = (*of, run.device, run.numerics, run.condition)
        of_alike = alike.setdefault((*made, canonical_json(rest)), {})
        config = (recipe_kind(run.config), run.config.get("learning_rate"))
        # Layers before a norm had a bias in earlier versions.
        kind = (*config, run.config.get("bias_before_norm"))
        of_alike.setdefault(kind, []).append(run)
    for kinds in alike.values():
        # The runs of the latest version are those that `compare` has.
        for default in [key for key in reversed(kinds) if key[0] == "default"]:
            for rate in _RATES.get(default[1], default[1]), default[1]:
                plain = ("plain", rate, None)
                if plain in kinds and default in kinds:
                    both = kinds.pop(plain), kinds.pop(default)
                    yield dict(zip(_KINDS, both, strict=True))
        yield from ({kind: of_kind} for (kind, *_), of_kind in kinds.items())


def recipe_kind(config: Mapping[str, Any]) -> str:
    """The recipe whose residual and norm these settings have; they name any other."""
    own = (config.get("residual"), config.get("norm"))
    return next((name for name, kind in _KINDS.items() if kind == own), str(own))


def how_often(recipes: Recipes, method: str) -> str:
    """The recipe of a method; where splits differ, `default on 7 of 10 splits`."""
    own = [recipe for (name, _), recipe in recipes.items() if name == method]
    most = max(dict.fromkeys(own), key=own.count)
    few = own.count(most) < len(own)
    return f"{most} on {own.count(most)} of {len(own)} splits" if few else most


def in_words(recipes: Recipes, runs: Iterable[Run]) -> str:
    """Which recipe was chosen for whom, and how long both took beside `default`."""
    methods: dict[str, list[str]] = {}
    for method in dict.fromkeys(method for method, _ in recipes):
        methods.setdefault(how_often(recipes, method), []).append(method)
    words = "; ".join(f"{recipe} for {joined(of)}" for recipe, of in methods.items())
    times = [(run.time_s, recipe_kind(run.config) == "default") for run in runs]
    alone = sum(time_s for time_s, is_default in times if is_default)
    ratio = sum(time_s for time_s, _ in times) / alone if alone else 2.0
    return (
        f"settings chosen by validation: {words}; both took {ratio:.1f} times the time "
        "of default alone"
    )


def recipe_means(runs: Sequence[Run], recipes: Recipes) -> list[dict[str, Any]]:
    """The mean test score of each method in percent with each recipe, and its own."""
    rows = []
    for method in dict.fromkeys(method for method, _ in recipes):
        means = dict.fromkeys(_KINDS)
        for kind in _KINDS:
            own = [
                r for r in runs if (r.method, recipe_kind(r.config)) == (method, kind)
            ]
            done = [(r, s) for r in own if (s := r.selected_scores) is not None]
            test = [_metric_of(run).shown(scores.test) for run, scores in done]
            means[kind] = summarise(test).mean
        plain, default = means.values()
        gain = None if plain is None or default is None else default - plain
        chosen = how_often(recipes, method)
        rows.append({"method": method, **means, "gain": gain, "chosen": chosen})
    return rows


def _metric_of(run: Run) -> Metric:
    return metric_of_settings(run.config.get("metric"))


def _better(unit: Mapping[str, Sequence[Run]]) -> str:
    """The recipe of a method on a split."""
    if len(unit) == 1:
        return next(iter(unit))
    shared = set.intersection(*({run.seed for run in of} for of in unit.values()))

    def place(recipe: str) -> tuple[int, float]:
        judged = [run for run in unit[recipe] if run.seed in shared or not shared]
        val = [s.val for run in judged if (s := run.selected_scores) is not None]
        # Rounded, so that equal scores tie in whatever order they were summed up.
        merit = _metric_of(unit[recipe][0]).merit(summarise(val).mean or 0.0)
        return len(val) - len(judged), round(merit, 9)

    return max(unit, key=place)
