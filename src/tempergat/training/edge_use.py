"""Which methods use the edge features and weights of a graph, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from tempergat.data import Dataset
from tempergat.training.settings.config import RunConfig
from tempergat.training.task import edge_arguments
from tempergat.training.user_methods.user_code import (
    BuildModule,
    build_user_module,
    taken_edge_inputs,
)


def notes_on_unused_edges(
    dataset: Dataset,
    configs: Sequence[RunConfig],
    builds: Mapping[str, BuildModule] | None = None,
) -> tuple[str, ...]:
    """A sentence for edge features and for weights that some methods cannot use.

    Args:
        dataset: The graph.
        configs: The settings of the methods.
        builds: For each of the user's own methods, the callable that builds it.

    Raises:
        UserError: A user's module cannot be built.
    """
    subjects = {}
    if dataset.edge_feature_names:
        names = ", ".join(dataset.edge_feature_names)
        subjects["edge_attr"] = f"The edge features ({names}) are"
    if dataset.edge_weight_name is not None:
        subjects["edge_weight"] = f"The edge weight ({dataset.edge_weight_name}) is"
    if not subjects:
        return ()
    taken = {
        config.method: _taken(dataset, config.method, (builds or {}).get(config.method))
        for config in configs
    }
    notes = []
    for argument, subject in subjects.items():
        without = [method for method, found in taken.items() if argument not in found]
        if without:
            notes.append(f"{subject} not used by {', '.join(without)}.")
    return tuple(notes)


def _taken(dataset: Dataset, method: str, build: BuildModule | None) -> tuple[str, ...]:
    if build is None:
        return edge_arguments(method)
    features = int(dataset.data.x.size(1))
    module = build_user_module(build, method, features, dataset.num_classes, seed=0)
    nothing = torch.empty(0)
    return tuple(
        taken_edge_inputs(module, {"edge_attr": nothing, "edge_weight": nothing})
    )
