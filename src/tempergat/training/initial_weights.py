"""Models before their first step: one of a run, or the weights of many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.nn import NodeClassifier, NodeType, build_model, build_typed_model
from tempergat.training.settings.config import RunConfig


def single_model(
    config: RunConfig,
    in_channels: int,
    num_classes: int,
    seed: int,
    edge_dim: int | None = None,
    node_types: Sequence[NodeType] | None = None,
) -> NodeClassifier:
    """The model of one run before its first step, on the CPU.

    Args:
        config: Its settings.
        in_channels: Features per node.
        num_classes: Number of classes.
        seed: Seed of its weights.
        edge_dim: Features per edge; None where there are none.
        node_types: The node types of a typed graph, the one to classify first.

    Raises:
        UserError: No model can be built with this seed or these settings.
    """
    with seeded_weights(seed):
        try:
            return built_model(config, in_channels, num_classes, edge_dim, node_types)
        except ValueError as error:
            raise UserError(f"settings of {config.method}: {error}") from error


def built_model(
    config: RunConfig,
    in_channels: int,
    num_classes: int,
    edge_dim: int | None,
    node_types: Sequence[NodeType] | None,
) -> NodeClassifier:
    """As `single_model`, with weights from torch's generator.

    Raises:
        ValueError: No model can be built with these settings.
    """
    arguments: dict[str, Any] = config.model_arguments()
    if edge_dim is not None:
        arguments["edge_dim"] = edge_dim
    if node_types is None:
        return build_model(
            in_channels=in_channels, out_channels=num_classes, **arguments
        )
    return build_typed_model(
        node_types=node_types,
        out_channels=num_classes,
        shared_channels=in_channels,
        **arguments,
    )


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Draws weights inside the block from torch's CPU generator, seeded.

    The generator is set back afterwards, and those of CUDA devices are not touched;
    `torch.manual_seed` would seed them too.

    Raises:
        UserError: The seed is negative or too large.
    """
    if not 0 <= seed < 2**63:
        raise UserError(f"seed is {seed}; give 0 or a positive number below 2**63")
    state = torch.default_generator.get_state()
    try:
        torch.default_generator.manual_seed(seed)
        with torch.device("cpu"):
            yield
    finally:
        torch.default_generator.set_state(state)


def initial_states(model: NodeClassifier, seeds: Sequence[int]) -> dict[str, Tensor]:
    """The initial parameters and buffers of all seeds' models, stacked.

    Building a model takes long and drawing its parameters does not, so one model is
    built and its parameters are drawn once per seed.
    """
    states = []
    for seed in seeds:
        with seeded_weights(seed):
            model.reset_parameters()
        states.append({k: v.clone() for k, v in model.state_dict().items()})
    return {name: torch.stack([s[name] for s in states]) for name in states[0]}
