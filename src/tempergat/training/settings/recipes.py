"""Recipes: the settings of all methods on one dataset, as YAML files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from tempergat.base import (
    UserError,
    first_validation_error,
    suggest_one_of,
    validated,
)
from tempergat.data import Dataset, Entry, find_entry
from tempergat.nn import METHODS, find_method
from tempergat.training.settings.config import FrozenSettings, RunConfig, has_setting
from tempergat.training.settings.fields import LATER_SETTINGS, PARTS, Count, MetricName
from tempergat.training.settings.recipe_files import (
    WIDTHS,
    recipe_files,
    recipe_names,
    settings_in,
    with_changes,
)

# The blocks of a recipe, and a method that has the settings of each.
_BLOCKS = {"attention": "gat", "gatv2": "gatv2", "gcn": "gcn"}
_OF_RECIPE = ("training", "metric", "class_weights")
# What a recipe leaves to a default came after the first recipes.
_REQUIRED = tuple(
    name
    for name, field in RunConfig.model_fields.items()
    if name in PARTS and name not in (*_OF_RECIPE, *LATER_SETTINGS)
    if field.default is not None
)
_GIVE_OR_EXTEND = "give it, or extend a recipe, like extends: default"


class Recipe(FrozenSettings):
    """The settings of all methods on one dataset.

    Settings of methods are fields of `RunConfig`; `channels_per_head` may stand for
    `hidden_channels`.

    Attributes:
        dataset: Name of the dataset it was made for; None for a recipe for any graph.
        runs: How many seeds a full study has.
        metric: The metric of the scores; None for the dataset's. The usual metric of
            `dataset` (accuracy where there is none) is no setting of its own.
        class_weights: How classes are weighed in the loss.
        training: Whether a step sees the whole graph or sampled neighbourhoods.
        attention: Settings of all attention methods.
        gatv2: Settings of the methods on gatv2, where they differ.
        gcn: Settings of gcn and mlp, where they differ.
        methods: By method, settings in place of those above.
    """

    dataset: str | None = None
    runs: Count
    metric: MetricName | None = None
    class_weights: Literal["balanced"] | None = None
    training: Literal["full", "sampled"]
    attention: dict[str, Any]
    gatv2: dict[str, Any] = Field(default_factory=dict)
    gcn: dict[str, Any] = Field(default_factory=dict)
    methods: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _settings_are_known(self) -> Self:
        blocks = {name: (of, getattr(self, name)) for name, of in _BLOCKS.items()}
        blocks |= {f"methods.{of}": (of, block) for of, block in self.methods.items()}
        for name, (method, block) in blocks.items():
            known = _names_for(method)
            if name in ("attention", "gatv2"):
                known = [*known, *WIDTHS]
            for setting in block:
                if setting not in known:
                    raise ValueError(
                        f"{name}.{setting}: no such setting; "
                        f"{suggest_one_of(str(setting), known)}"
                    )
            if all(width in block for width in WIDTHS):
                raise ValueError(f"{name}: give either {' or '.join(WIDTHS)}")
        for setting in _REQUIRED:
            if setting not in self._block("gat"):
                raise ValueError(f"attention.{setting} is missing; {_GIVE_OR_EXTEND}")
        for name, (method, block) in blocks.items():
            of_method = block if name not in _BLOCKS else {}
            settings = with_changes(self._block(method), of_method)
            # A user's own module has no name here.
            settings["method"] = method if method in METHODS else "gat"
            try:
                RunConfig.model_validate(settings)
            except ValidationError as error:
                reason = first_validation_error(error, RunConfig)
                raise ValueError(f"{name}.{reason}") from error
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
        settings = with_changes(self._block(method), self.methods.get(method, {}))
        settings |= {"method": method, "training": self.training}
        settings |= {"source_hash": source_hash, "class_weights": self.class_weights}
        if self.metric not in (None, unnamed_metric(self.dataset)):
            settings["metric"] = self.metric
        return validated(RunConfig, settings, f"settings of {method}")

    def changes_for(self, config: RunConfig) -> dict[str, Any]:
        """What `methods` has to hold for a method to have these settings."""
        block = self._block(config.method)
        fields = RunConfig.model_fields
        return {
            name: getattr(config, name)
            for name in _names_for(config.method)
            if getattr(config, name) != block.get(name, fields[name].default)
        }

    def to_yaml(self) -> str:
        """The text of the recipe's file."""
        values = self.model_dump(mode="json", exclude_unset=True)
        return yaml.safe_dump(values, sort_keys=False)

    def _block(self, method: str) -> dict[str, Any]:
        """The settings that a method, or a user's own module, shares with others."""
        block = self.attention
        if method in METHODS and METHODS[method].backbone == "gatv2":
            block = with_changes(block, self.gatv2)
        block = dict(block)
        per_head = block.pop("channels_per_head", None)
        if per_head is not None:
            heads = block.get("heads")
            # Anything else is refused where all settings are checked.
            is_number = type(per_head) is type(heads) is int and heads > 0
            block["hidden_channels"] = per_head * heads if is_number else per_head
        if method in METHODS and not has_setting(method, "heads"):
            known = _names_for(method)
            shared = {name: value for name, value in block.items() if name in known}
            block = shared | self.gcn
        return block


def _names_for(method: str) -> list[str]:
    """The settings that a block of a recipe may have for a method.

    A block is for all methods with attention, or for those without. A user's own module
    has the former, of which those of the model have no effect.
    """
    has_attention = method not in METHODS or has_setting(method, "heads")
    known = "temp_gated" if has_attention else method
    return [n for n in PARTS if n not in _OF_RECIPE and has_setting(known, n)]


def load_recipe(name_or_path: str | Path) -> Recipe:
    """Reads a recipe by name, or from a YAML file.

    Args:
        name_or_path: A dataset's name for the paper's recipe (``cora``), a name with
            its folder (``paper/cora``), ``demo``, ``default``, ``plain``, or a path.

    Raises:
        UserError: There is no such recipe, or it or one it extends is not valid.
    """
    values = settings_in(recipe_files(str(name_or_path)))
    return validated(Recipe, values, f"recipe {name_or_path}")


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
