"""Building and calling a user's own module; what goes wrong there is one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from tempergat.base import UserError, is_out_of_memory
from tempergat.training.initial_weights import seeded_weights
from tempergat.training.seeds import State

BuildModule = Callable[[int, int], nn.Module]


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
