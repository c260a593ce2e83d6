"""The models of runs: before their first step, and at their best epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tempergat.base import UserError
from tempergat.nn import NodeClassifier, NodeType, build_model, build_typed_model
from tempergat.training.settings.config import RunConfig

# Parameters and buffers by name.
State = dict[str, Tensor]


def single_model(
    config: RunConfig,
    in_channels: int,
    num_classes: int,
    seed: int | None,
    edge_dim: int | None = None,
    node_types: Sequence[NodeType] | None = None,
) -> NodeClassifier:
    """The model of one run before its first step, on the CPU.

    Args:
        seed: Seed of its weights; None for a model without memory, on `meta`.
        edge_dim: Features per edge; None where there are none.
        node_types: The node types of a typed graph, the one to classify first.

    Raises:
        UserError: No model can be built with this seed or these settings.
    """
    arguments: dict[str, Any] = config.model_arguments()
    if edge_dim is not None:
        arguments["edge_dim"] = edge_dim
    if node_types is None:
        build: Any = build_model
        arguments["in_channels"] = in_channels
    else:
        build = build_typed_model
        arguments |= {"node_types": node_types, "shared_channels": in_channels}
    with _float32(), torch.device("meta") if seed is None else seeded_weights(seed):
        try:
            model: NodeClassifier = build(out_channels=num_classes, **arguments)
        except ValueError as error:
            raise UserError(f"settings of {config.method}: {error}") from error
    return model


@contextmanager
def seeded_weights(seed: int) -> Iterator[None]:
    """Draws float32 weights inside the block from torch's CPU generator, seeded.

    Raises:
        UserError: The seed is negative or too large.
    """
    if not 0 <= seed < 2**63:
        raise UserError(f"seed is {seed}; give 0 or a positive number below 2**63")
    with seeded(seed, torch.device("cpu")), torch.device("cpu"), _float32():
        yield


@contextmanager
def _float32() -> Iterator[None]:
    """Makes new tensors float32 inside the block, whatever torch's default is."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seeds torch's generators of the CPU and of a device inside the block.

    They are set back afterwards, and those of other devices are not touched;
    `torch.manual_seed` would seed them too.
    """
    generators = [torch.default_generator]
    if device.type == "cuda":
        number = torch.cuda.current_device() if device.index is None else device.index
        generators.append(torch.cuda.default_generators[number])
    states = [generator.get_state() for generator in generators]
    try:
        for generator in generators:
            generator.manual_seed(seed)
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


def initial_states(model: NodeClassifier, seeds: Sequence[int]) -> State:
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


def tensors_of(module: nn.Module) -> State:
    """Parameters and buffers by name, detached; changing one changes the module."""
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return {name: value.detach() for name, value in named.items()}


@torch.no_grad()
def load_tensors(module: nn.Module, state: Mapping[str, Tensor], run: int = 0) -> None:
    """Sets a module's parameters and buffers to those of a run, [runs, ...] each."""
    for name, value in tensors_of(module).items():
        value.copy_(state[name][run])


class BestEpoch:
    """The weights of each run at its best epoch so far.

    Args:
        state: Parameters and buffers, [runs, ...] each.
        like: [runs], on the device of the runs.

    Attributes:
        merit: How good that epoch was; the higher, the better, [runs].
        state: Parameters and buffers at that epoch.
    """

    def __init__(self, state: State, like: Tensor) -> None:
        self.merit = torch.full_like(like, -torch.inf, dtype=torch.float64)
        self.state: State = {k: v.detach().clone() for k, v in state.items()}

    def update(self, merit: Tensor, current: State, valid: Tensor) -> None:
        """Takes over the current weights of the runs whose epoch was the best.

        Args:
            merit: How good the epoch was, [runs].
            current: Parameters and buffers.
            valid: Whether a run has not failed, [runs].
        """
        # Strictly better, so that the first of several equal epochs is chosen.
        better = (merit > self.merit) & valid
        self.merit.copy_(torch.where(better, merit, self.merit))
        for name, value in current.items():
            mask = better.view(-1, *[1] * (value.dim() - 1))
            torch.where(mask, value, self.state[name], out=self.state[name])
