"""The models of runs before their first step, and calls of a user's own module.

A user's module is any `nn.Module` that is called as ``module(x, edge_index)`` with
dense features and a plain ``edge_index`` tensor, and returns one row of class scores
for each node. Edge features and weights that are used are passed as ``edge_attr`` and
``edge_weight`` where its ``forward`` has an argument of that name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tempergat.base import UserError, is_out_of_memory
from tempergat.nn import NodeClassifier, NodeType, build_model, build_typed_model
from tempergat.training.settings.config import RunConfig

# Parameters and buffers by name.
State = dict[str, Tensor]
BuildModule = Callable[[int, int], nn.Module]


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
    """The model of one run with weights from torch's generator.

    Args:
        config: Its settings.
        in_channels: Features per node.
        num_classes: Number of classes.
        edge_dim: Features per edge; None where there are none.
        node_types: The node types of a typed graph, the one to classify first.

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


def build_user_module(
    build: BuildModule, method: str, in_channels: int, num_classes: int, seed: int
) -> nn.Module:
    """A user's module with its initial weights, on the CPU.

    Raises:
        UserError: The callable fails or returns no module.
    """
    remedy = f"; it is called as {method}(in_channels, out_channels)"
    with seeded_weights(seed), explain_errors(method, remedy):
        module: Any = build(in_channels, num_classes)
    if not isinstance(module, nn.Module):
        raise UserError(
            f"{method}({in_channels}, {num_classes}) returned {_describe(module)}; "
            "return a torch.nn.Module"
        )
    return module


def taken_edge_inputs(
    module: nn.Module, edge_inputs: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The edge features and weights that a module's ``forward`` has arguments for."""
    if not edge_inputs:
        return {}
    taken = inspect.signature(module.forward).parameters
    return {name: value for name, value in edge_inputs.items() if name in taken}


def tensors_of(module: nn.Module) -> State:
    """Parameters and buffers by name, detached; changing one changes the module."""
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return {name: value.detach() for name, value in named.items()}


def require_logits(method: str, logits: Any, expected: list[int]) -> Tensor:
    """Returns a module's output if it is one row of class scores per node.

    Raises:
        UserError: It is not a floating-point tensor of the expected shape.
    """
    right = isinstance(logits, Tensor) and logits.is_floating_point()
    if right and list(logits.shape) == expected:
        return logits  # type: ignore[no-any-return]
    raise UserError(
        f"the module of {method} returned {_describe(logits)}; return a "
        f"floating-point tensor {expected}: one row per node, one score per class"
    )


@contextmanager
def explain_errors(method: str, remedy: str = "") -> Iterator[None]:
    """Turns an error in a user's code into one line; the traceback stays chained.

    Args:
        method: The method's name.
        remedy: What to do about it; ends the line.

    Raises:
        UserError: The code raised an exception, except for lack of memory.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())
        raise UserError(
            f"the module of {method} failed with {type(error).__name__}: {reason}"
            f"{remedy}"
        ) from error


@contextmanager
def seeded_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Seeds torch's generators of the CPU and of one device, and sets them back."""
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


def _describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor {list(value.shape)}"
    return f"an object of type {type(value).__name__}"
