"""Every private name of PyTorch that this package uses, in one place.

Each function says why the public interface is not enough. Where a public way exists, it
is the fallback for a version of PyTorch that no longer has the private name.
`tests/test_architecture.py` fails when another module uses a private name of torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._functorch import TransformType
from torch._functorch.autograd_function import VmapInfo
from torch._functorch.pyfunctorch import (
    retrieve_current_functorch_interpreter,
    temporarily_clear_interpreter_stack,
)
from torch._functorch.utils import enable_single_level_autograd_function
from torch._subclasses import FakeTensor
from torch.autograd import forward_ad

# The public torch.utils.pytree lacks registration with key paths.
from torch.utils._pytree import GetAttrKey as GetAttrKey
from torch.utils._pytree import register_pytree_node as register_pytree_node

# Dynamo traces one functorch level at a time and needs this class; the public
# autograd.Function dispatches over all levels.
SingleLevelFunction: Any = torch.autograd.function._SingleLevelFunction
single_level_functions = enable_single_level_autograd_function

# Whether a torch.func transform (vmap, grad) is active; no public function says it.
in_transform: Callable[[], bool] = torch._C._are_functorch_transforms_active
# How many modes (tensors without data, counters of operations) watch every operation.
in_dispatch_mode: Callable[[], int] = torch._C._len_torch_dispatch_stack
# Whether an argument needs a gradient; a loop in Python would cost time in every call.
# torch 2.6 has the loop alone.
any_requires_grad: Callable[..., bool] = getattr(
    torch._C,
    "_any_requires_grad",
    lambda *given: any(isinstance(x, Tensor) and x.requires_grad for x in given),
)
# A context in which ops run without autograd, and the dispatch keys that come after
# autograd's: what `torch.library` uses for a registered formula, without reading
# the schema in every call.
below_autograd: Callable[[], AbstractContextManager[None]] = (
    torch._C._AutoDispatchBelowAutograd
)
KEYS_BELOW_AUTOGRAD: Any = torch._C._after_autograd_keyset
_HOOKS = ("backward_pre_", "backward_", "forward_pre_", "forward_")
# Whether a hook is registered for all modules; there is no public function for it, and
# in torch 2.6 no private one: it reads the hooks that modules may see.
has_global_hooks: Callable[[], bool] = getattr(
    nn.modules.module,
    "_has_any_global_hook",
    lambda: any(getattr(nn.modules.module, f"_global_{kind}hooks") for kind in _HOOKS),
)
# The number of the current CUDA device, and the address of its current stream. What is
# public makes an object or checks the state of CUDA in every call. Builds without CUDA
# do not have them.
current_device: Any = getattr(torch._C, "_cuda_getDevice", None)
current_stream: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)
# What torch 2.6 does less well here, for `tempergat doctor`; it lacks this name.
LIMITS: tuple[str, ...] = (
    "torch.compile runs parts of some calls eagerly, where fullgraph=True fails",
    "torch.export needs strict=False",
)
if hasattr(torch.compiler, "is_exporting"):
    LIMITS = ()
# torch.jit.is_tracing returns the same, but is slow compared with a small graph.
_tracing_state: Callable[[], Any] = torch._C._get_tracing_state


def is_tracing() -> bool:
    """Whether a compiler, exporter or tracer records the calls instead of running."""
    return torch.compiler.is_compiling() or in_torch_export() or bool(_tracing_state())


def execution_mode() -> str:
    """How the calls of a layer run.

    Returns:
        "traced": a compiler, exporter or tracer records them; "forward": a forward-mode
        derivative is taken; "transformed": `torch.func` runs them, perhaps with a stack
        of many models; "watched": a mode sees every operation; "eager": none of these.
    """
    # First: a compiler cannot trace the other questions.
    if is_tracing():
        return "traced"
    if in_forward_mode():
        return "forward"
    if in_transform():
        return "transformed"
    return "watched" if in_dispatch_mode() else "eager"


def is_exporting() -> bool:
    """Whether the recorded program will run without this package."""
    return in_torch_export() or bool(_tracing_state())


def in_torch_export() -> bool:
    """Whether `torch.export` records the calls.

    The public `torch.compiler.is_exporting` also returns True inside every
    `torch.compile` of torch 2.11, so this reads its flag. torch 2.6 has neither: there
    an export alone sets the flag of compilers.
    """
    for flag in ("_is_exporting_flag", "_is_compiling_flag"):
        if hasattr(torch.compiler, flag):
            return bool(getattr(torch.compiler, flag))
    return torch.compiler.is_exporting()


def original_module(module: nn.Module) -> nn.Module:
    """The module that `torch.compile` was given; any other module as it is.

    The wrapper of `torch.compile` has no public name for it, and a `forward` without
    named parameters.
    """
    original = getattr(module, "_orig_mod", None)
    return original if isinstance(original, nn.Module) else module


def in_forward_mode() -> bool:
    """Whether a forward-mode derivative is being taken.

    No public function says it. Without the private counter this returns False, and our
    ops then refuse tensors that carry a tangent.
    """
    return bool(getattr(forward_ad, "_current_level", -1) >= 0)


def in_backward() -> bool:
    """Whether autograd is running a backward pass; no public function says it."""
    return bool(torch._C._current_graph_task_id() != -1)


def by_vmap_rule(rule: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Runs a vmap rule as `torch.autograd.Function.apply` does, but quickly.

    The public way looks through all arguments as nested containers, which takes longer
    than the work on a small graph.

    Args:
        rule: As `torch.autograd.Function.vmap`.
        arguments: Tensors, numbers and None.

    Returns:
        The results; NotImplemented where the innermost transform is not a vmap over
        one of the arguments.
    """
    interpreter: Any = retrieve_current_functorch_interpreter()
    if interpreter.key() != TransformType.Vmap:
        return NotImplemented
    functorch, level = torch._C._functorch, interpreter.level()
    values = list(arguments)
    dims: list[int | None] = [None] * len(arguments)
    for place, argument in enumerate(arguments):
        if not isinstance(argument, Tensor):
            continue
        # It may be wrapped for a transform that has ended.
        x = values[place] = functorch.unwrap_if_dead(argument)
        if functorch.is_batchedtensor(x) and functorch.maybe_get_level(x) == level:
            values[place] = functorch.get_unwrapped(x)
            dims[place] = functorch.maybe_get_bdim(x)
    if all(dim is None for dim in dims):
        return NotImplemented
    info = VmapInfo(interpreter.batch_size(), interpreter.randomness())
    with interpreter.lower():
        results, places = rule(info, tuple(dims), *values)
    if isinstance(results, Tensor):
        return functorch._add_batch_dim(results, places, level)
    return tuple(
        x if dim is None else functorch._add_batch_dim(x, dim, level)
        for x, dim in zip(results, places, strict=True)
    )


def is_alive(tensor: Tensor) -> bool:
    """Whether the transform that wrapped the tensor is the active one.

    A tensor that outlives its transform cannot be used; only functorch knows.
    """
    functorch = torch._C._functorch
    if not functorch.is_functorch_wrapped_tensor(tensor):
        return True
    return bool(functorch.maybe_get_level(tensor) == functorch.maybe_current_level())


def as_constant(edge_index: Tensor) -> Tensor:
    """Edges without the wrapper that torch.func's transforms give every argument.

    Raises:
        ValueError: If the edges differ between the calls of a vmap.
    """
    functorch = torch._C._functorch
    while functorch.is_gradtrackingtensor(edge_index):
        edge_index = functorch.get_unwrapped(edge_index)
    if functorch.is_batchedtensor(edge_index):
        raise ValueError(
            "edge_index must be the same in all calls of a vmap; pass it with "
            "in_dims=None, or join the graphs into one (torch_geometric.data.Batch)"
        )
    return edge_index


def ordinary_tensors(source: Tensor) -> AbstractContextManager[None]:
    """Makes tensors that are cached usable by every later call.

    A tensor made in inference mode cannot be used in training, and one made inside a
    torch.func transform cannot be used after it.

    Args:
        source: What the cached tensors are computed from.
    """
    # Checked first: a compiler cannot trace the other checks.
    if is_tracing():
        return nullcontext()
    if not (torch.is_inference_mode_enabled() or in_transform()):
        return nullcontext()
    return _outside_modes(source)


@contextmanager
def _outside_modes(source: Tensor) -> Iterator[None]:
    with torch.inference_mode(False):
        if torch._C._functorch.is_functorch_wrapped_tensor(source):
            yield
        else:
            with temporarily_clear_interpreter_stack():
                yield


def edit_count(tensor: Tensor) -> int:
    """How often the tensor was edited in place; -1 for inference tensors.

    There is no public counter, and inference tensors have none at all.
    """
    return -1 if tensor.is_inference() else tensor._version


def has_data(tensor: Tensor) -> bool:
    """Whether the tensor has numbers: those of the meta device have a shape only.

    The same is so in a `FakeTensorMode`, and no public function says it.
    """
    return not (tensor.is_meta or isinstance(tensor, FakeTensor))


def sparse_parts(matrix: Tensor) -> tuple[Tensor, ...]:
    """The strided tensors that hold a sparse matrix, or () inside a transform.

    The public ``indices()`` needs a coalesced matrix, and a coalesced copy is another
    matrix.
    """
    if torch._C._functorch.is_functorch_wrapped_tensor(matrix):
        return ()
    matrix = matrix.detach()
    if matrix.layout == torch.sparse_coo:
        return matrix._indices(), matrix._values()
    if matrix.layout in (torch.sparse_csr, torch.sparse_bsr):
        return matrix.crow_indices(), matrix.col_indices(), matrix.values()
    return matrix.ccol_indices(), matrix.row_indices(), matrix.values()


def is_compiled(module: nn.Module) -> bool:
    """Whether `torch.compile` made this module, or `module.compile` was called.

    Neither leaves a public mark.
    """
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None and isinstance(module, dynamo.OptimizedModule):
        return True
    return module.__dict__.get("_compiled_call_impl") is not None
