"""Recipes: the settings of all methods on one dataset, as YAML files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import Field, model_validator

import tempergat
from tempergat.base import UserError, read_yaml, suggest_one_of, validated
from tempergat.data import Dataset, Entry, find_entry
from tempergat.nn import BACKBONES, METHODS, find_method
from tempergat.training.evaluate import MetricName
from tempergat.training.settings.config import (
    Count,
    FrozenSettings,
    GateBias,
    MethodSettings,
    NotNegative,
    Rate,
    RunConfig,
    Temperature,
)


class AttentionBlock(MethodSettings):
    """Settings of the attention methods.

    The width is given by ``channels_per_head`` or by ``hidden_channels``, the total.
    """

    heads: Count
    channels_per_head: Count | None = None
    hidden_channels: Count | None = None
    out_heads: Count
    attention_dropout: Rate
    decay_temperature: bool
    decay_gate: bool
    gate_penalty: NotNegative
    init_temp: Temperature
    gate_bias_init: GateBias

    @model_validator(mode="after")
    def _one_width(self) -> Self:
        if (self.channels_per_head is None) == (self.hidden_channels is None):
            raise ValueError("give either channels_per_head or hidden_channels")
        return self


class GcnBlock(MethodSettings):
    """Settings of gcn and mlp."""

    hidden_channels: Count


class Recipe(FrozenSettings):
    """The settings of all methods on one dataset.

    Attributes:
        dataset: Name of the dataset it was made for; None for a recipe for any graph.
        runs: How many seeds a full study has.
        metric: The metric of the scores; None for the dataset's. The usual metric of
            `dataset` (accuracy where there is none) is no setting of its own.
        class_weights: How classes are weighed in the loss, as `RunConfig` says.
        training: Whether a step sees the whole graph or sampled neighbourhoods.
        attention: Settings of all attention methods.
        gatv2: Settings of the methods on gatv2, where they differ.
        gcn: Settings of gcn and mlp.
        methods: By method, settings in place of those above.
    """

    dataset: str | None = None
    runs: Count
    metric: MetricName | None = None
    class_weights: Literal["balanced"] | None = None
    training: Literal["full", "sampled"]
    attention: AttentionBlock
    gatv2: AttentionBlock | None = None
    gcn: GcnBlock
    methods: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known_settings(self) -> Self:
        for method, settings in self.methods.items():
            known = self._block(method)
            for name in settings:
                if name not in known:
                    raise ValueError(
                        f"methods.{method}.{name}: no such setting; "
                        f"{suggest_one_of(name, known)}"
                    )
        return self

    def made_for_another(self, graph: object) -> str | None:
        """The dataset that the recipe was made for, where the graph is not that one.

        Args:
            graph: A dataset or its name, or any other graph.
        """
        name = graph.name if isinstance(graph, Dataset) else graph
        given, own = (
            text.lower().replace("_", "-") if isinstance(text, str) else ""
            for text in (name, self.dataset)
        )
        return None if own in ("", given) else self.dataset

    def config_for(self, method: str, source_hash: str | None = None) -> RunConfig:
        """The settings of one method.

        Args:
            method: A built-in method, or what a user's own module is called in tables.
            source_hash: Hash of the source code of such a module. It has the settings
                of the attention methods, and those of the model have no effect.

        Raises:
            UserError: There is no such method, or a module's name is empty or that of
                a built-in method.
        """
        if source_hash is None:
            find_method(method)
        settings = self._block(method) | self.methods.get(method, {})
        settings |= {"method": method, "training": self.training}
        settings |= {"source_hash": source_hash, "class_weights": self.class_weights}
        if self.metric not in (None, unnamed_metric(self.dataset)):
            settings["metric"] = self.metric
        return validated(RunConfig, settings, f"settings of {method}")

    def changes_for(self, config: RunConfig) -> dict[str, Any]:
        """What `methods` has to hold for a method to have these settings."""
        return {
            name: getattr(config, name)
            for name, value in self._block(config.method).items()
            if getattr(config, name) != value
        }

    def to_yaml(self) -> str:
        """The text of the recipe's file."""
        values = self.model_dump(mode="json", exclude_unset=True)
        return yaml.safe_dump(values, sort_keys=False)

    def _block(self, method: str) -> dict[str, Any]:
        """The settings that a method, or a user's own module, shares with others."""
        block: AttentionBlock | GcnBlock = self.attention
        if method in METHODS:
            backbone = METHODS[method].backbone
            block = getattr(self, BACKBONES[backbone].recipe_block)
            if backbone == "gatv2" and self.gatv2 is not None:
                block = self.gatv2
        settings = block.model_dump()
        per_head = settings.pop("channels_per_head", None)
        if per_head is not None:
            settings["hidden_channels"] = per_head * settings["heads"]
        return settings


def load_recipe(name_or_path: str | Path) -> Recipe:
    """Reads a recipe by name, or from a YAML file.

    Args:
        name_or_path: A dataset's name for the paper's recipe (``cora``), a name with
            its folder (``paper/cora``), ``demo``, ``default``, ``plain``, or a path.

    Raises:
        UserError: There is no such recipe, or it is not valid.
    """
    name = str(name_or_path)
    shipped = _shipped()
    file = shipped.get(name) or shipped.get(f"paper/{name}")
    if file is None and Path(name).suffix in (".yaml", ".yml"):
        file = Path(name)
    if file is None:
        names = [key.removeprefix("paper/") for key in shipped]
        raise UserError(
            f"no recipe {name!r}; give the path of a .yaml file, or "
            f"{suggest_one_of(name, names)}"
        )
    values = read_yaml(file, f"recipe {name}")
    if not isinstance(values, dict):
        raise UserError(
            f"recipe {name} holds {type(values).__name__}, not settings by name; start "
            f"from a copy of the default recipe"
        )
    return validated(Recipe, values, f"recipe {name}")


def recipe_names() -> list[str]:
    """The names of the recipes that come with the package."""
    return sorted(_shipped())


def recipe_for(
    graph: object, recipe: str | Path | Recipe | None = None
) -> tuple[str, Recipe]:
    """The recipe to train with, and its name.

    Args:
        graph: A dataset or its name; any other graph gets the default recipe.
        recipe: A recipe, its name or its file; None for the paper's recipe of the
            dataset where there is one.

    Raises:
        UserError: There is no such recipe.
    """
    if isinstance(recipe, Recipe):
        return "given", recipe
    name, entry = "default", _entry_of(graph)
    if recipe is not None:
        name = str(recipe)
    elif entry is not None:
        own = (entry.recipe or entry.name).replace("_", "-")
        known = recipe_names()
        name = next((r for r in (f"paper/{own}", own) if r in known), name)
    return name, load_recipe(name)


def metric_of(graph: object) -> str:
    """The metric that a dataset's results are reported in; accuracy for user graphs."""
    if isinstance(graph, Dataset):
        return graph.metric
    entry = _entry_of(graph)
    return "accuracy" if entry is None else entry.metric


def unnamed_metric(graph: object) -> str:
    """The metric of a run on a graph whose settings name none.

    Settings name every metric but accuracy and micro-F1, also where it is the dataset's
    own, so that the accuracy of tolokers, whose authors report ROC AUC, has settings
    without a metric.
    """
    metric = metric_of(graph)
    return metric if metric == "micro_f1" else "accuracy"


def metric_of_run(config: RunConfig, graph: object) -> str:
    """The metric of a run with these settings on a graph."""
    return config.metric or unnamed_metric(graph)


def _entry_of(graph: object) -> Entry | None:
    name = graph.name if isinstance(graph, Dataset) else graph
    try:
        return find_entry(name) if isinstance(name, str) else None
    except UserError:
        # A path, or an unknown name, which is reported when the graph is loaded.
        return None


def _shipped() -> dict[str, Path]:
    folder = Path(tempergat.__file__).parent / "recipes"
    files = folder.rglob("*.yaml")
    return {file.relative_to(folder).with_suffix("").as_posix(): file for file in files}
