"""Every method under both kinds of noise at once, at each level."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from torch import Tensor

from studies.results import read_plan
from studies.runner import Stage, Stages
from tempergat.training import CLEAN, Condition, noise_on_features, recipe_for

PLAN = read_plan("complementarity")
GRAPHS = tuple(PLAN["datasets"])


def stages(graph: str) -> Stages:
    """The levels with noise, and the features without it over fewer seeds."""
    _, recipe = recipe_for(graph)
    configs = [recipe.config_for(method) for method in PLAN["methods"]]
    levels = [(condition_of(name), PLAN["seeds"]) for name in PLAN["levels"]]
    for condition, count in (*levels, (CLEAN, PLAN["seeds_without_noise"])):
        seeds = range(PLAN["first_seed"], PLAN["first_seed"] + count)
        noise = noise_on_features(condition)
        assert noise.features is not None
        prepared = replace(
            noise,
            features=drawn_once(noise.features, seeds),
            matmul_precision=PLAN["matmul_precision"],
        )
        yield Stage(
            "complementarity/runs.csv", graph, configs, seeds, preparation=prepared
        )


def condition_of(level: str) -> Condition:
    """Both noises of a level of the plan."""
    of_level = PLAN["levels"][level]
    return Condition("both", of_level["rho"], of_level["tau"], sigma=of_level["sigma"])


def drawn_once(
    features: Callable[[Tensor, int], Tensor], seeds: Sequence[int]
) -> Callable[[Tensor, int], Tensor]:
    """The noisy features of each seed, drawn for the first method and kept for all.

    All methods of the plan read the same features, and drawing takes longer than
    training on a GPU.
    """
    kept: dict[int, Tensor] = {}

    def of_seed(x: Tensor, seed: int) -> Tensor:
        if not kept:
            with ThreadPoolExecutor() as threads:
                drawn = threads.map(lambda each: features(x.clone(), each), seeds)
                kept.update(zip(seeds, drawn, strict=True))
        return kept[seed]

    return of_seed
