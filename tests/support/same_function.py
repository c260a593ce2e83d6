"""Compares a layer or model with a slow one that is known to be right."""

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.parameter import is_lazy
from torch_geometric.utils import (
    to_edge_index,
    to_torch_coo_tensor,
    to_torch_csc_tensor,
    to_torch_csr_tensor,
)

from tests.support.dense_layer import with_dense_layers

# What a difference may be: of the largest entry of the same tensor, and of the largest
# of all, where terms that cancel leave nothing but rounding.
TOLERANCE = {torch.float32: (1e-4, 1e-5), torch.float64: (1e-10, 1e-11)}


def assert_same(ours: nn.Module, theirs: nn.Module | None, *inputs: Any) -> None:
    """Asserts that outputs and all gradients are equal, up to rounding.

    Args:
        ours: The model; lazy widths are filled by its first call.
        theirs: One with the same parameters, which are overwritten by those of `ours`;
            None for the equations themselves.
        *inputs: What both are called with.
    """
    theirs = _prepare(ours, theirs, inputs)
    _compare_with(theirs, inputs, _results(ours, ours, inputs))


def assert_same_compiled(
    ours: nn.Module,
    theirs: nn.Module | None,
    *inputs: Any,
    backend: str = "inductor",
) -> None:
    """`assert_same` of a model that torch.compile compiles as a whole."""
    theirs = _prepare(ours, theirs, inputs)
    torch._dynamo.reset()
    compiled = torch.compile(ours, fullgraph=True, backend=backend)
    _compare_with(theirs, inputs, _results(compiled, ours, inputs))


# Traces the model, and compiles nothing.
assert_same_traced = partial(assert_same_compiled, backend="aot_eager")


def assert_same_under_vmap(
    ours: nn.Module, theirs: nn.Module | None, *inputs: Any
) -> None:
    """`assert_same` of two models that run at once."""
    theirs = _prepare(ours, theirs, inputs)
    one = {name: p.detach() for name, p in _parameters(ours).items()}
    both = {name: torch.stack([p, p + 0.1]) for name, p in one.items()}
    leaves: dict[int, Tensor] = {}
    _map_tensors(inputs, lambda x: leaves.setdefault(id(x), x))

    def loss(parameters: dict[str, Tensor], given: dict[int, Tensor]) -> Any:
        arguments = _map_tensors(inputs, lambda x: given[id(x)])
        out = functional_call(ours, parameters, arguments)
        return _loss(out), out

    gradients = vmap(grad(loss, (0, 1), has_aux=True), (0, None))
    (dparameters, dleaves), out = gradients(both, leaves)
    for k in range(2):
        with torch.no_grad():
            for name, parameter in _parameters(theirs).items():
                parameter.copy_(both[name][k])
        found = {"out": out[k]} | {n: d[k] for n, d in dparameters.items()}
        found |= {f"input {i}": d[k] for i, d in enumerate(dleaves.values())}
        _compare_with(theirs, inputs, found)


def assert_same_after_upgrade(ours: nn.Module, theirs: nn.Module, *inputs: Any) -> None:
    """Asserts equal outputs and gradients of the inputs, whatever the parameters."""
    expected = _results(theirs, theirs, inputs, exact=True)
    names = [name for name in expected if name.startswith(("out", "input"))]
    found = _results(ours, ours, inputs)
    _compare(found, {name: expected[name] for name in names})


class OwnTensor(Tensor):
    """A user's subclass of a tensor."""


def held(edges: Tensor, kind: str) -> Tensor:
    """A tensor of other edges, as many, in which `write` puts these."""
    other = torch.zeros_like(edges)
    return other.as_subclass(OwnTensor) if kind == "subclass" else other


def write(held: Tensor, edges: Tensor) -> None:
    """Writes without torch where that can be: on a CPU through NumPy."""
    if held.is_cuda:
        held.copy_(edges)
    else:
        held.as_subclass(Tensor).numpy()[:] = edges.numpy()


def take_matrices(layer: nn.Module, layout: str, shape: tuple[int, int]) -> None:
    """Has a layer called with edges get them, and their features, as a matrix."""

    def convert(_: nn.Module, args: Any) -> Any:
        x, edges, *others = args
        attr = others[0] if others else None
        matrix = _TO_MATRIX[layout](edges.flip(0), attr, shape)
        return x, matrix, None, *others[1:]

    layer.register_forward_pre_hook(convert)


_TO_MATRIX = {
    "coo": to_torch_coo_tensor,
    "csr": to_torch_csr_tensor,
    "csc": to_torch_csc_tensor,
}


def return_weights(*layers: nn.Module | None) -> None:
    """Has layers return attention weights, in the order of targets and sources, too.

    The equations alone, in the place of a layer, have none to compare with.
    """
    if None in layers:
        return

    def ask(_: nn.Module, args: Any, options: Any) -> Any:
        return args, {**options, "return_attention_weights": True}

    def sort(layer: nn.Module, args: Any, found: Any) -> dict[str, Tensor]:
        out, (edges, weights) = found
        if edges.layout != torch.strided:
            # A transformer gives its matrix back, the others one of the weights.
            is_given = hasattr(layer, "lin_value")
            assert (edges is args[1]) == is_given
            assert is_given or torch.equal(edges.values(), weights)
            # PyG's function would count as a change of a COO matrix.
            is_coo = edges.layout == torch.sparse_coo
            edges = (edges.indices() if is_coo else to_edge_index(edges)[0]).flip(0)
        places = edges[1] * (int(edges.max()) + 1 if edges.numel() else 1) + edges[0]
        return {"": out, "weights": weights[places.argsort(stable=True)]}

    for layer in layers:
        layer.register_forward_pre_hook(ask, with_kwargs=True)
        layer.register_forward_hook(sort)


def _prepare(ours: nn.Module, theirs: nn.Module | None, inputs: Any) -> nn.Module:
    """Gives both the same parameters, none of them zero or one."""
    generator = torch.Generator().manual_seed(0)
    lazy = _outputs(ours(*inputs))
    again = _outputs(ours(*inputs))
    _compare(again, {name: out.double() for name, out in lazy.items()})
    with torch.no_grad():
        for parameter in _parameters(ours).values():
            if parameter.dim() < 2:
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.add_(0.3 * noise.to(parameter))
    if theirs is None:
        return with_dense_layers(ours)
    theirs(*inputs)
    theirs.load_state_dict(ours.state_dict())
    return theirs


def _parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """By name; those of a lazy map that was never called have no value."""
    return {
        name.replace("layer.", ""): p
        for name, p in model.named_parameters()
        if not is_lazy(p)
    }


def _results(
    call: Any, owner: nn.Module, inputs: Any, exact: bool = False
) -> dict[str, Tensor]:
    """Outputs and gradients by name; exact ones are computed in float64."""
    if exact:
        call = owner = copy.deepcopy(owner).double()
    leaves: dict[int, Tensor] = {}

    def leaf(x: Tensor) -> Tensor:
        if id(x) not in leaves:
            x_leaf = x.double() if exact else x
            leaves[id(x)] = x_leaf.detach().clone().requires_grad_()
        return leaves[id(x)]

    out = call(*_map_tensors(inputs, leaf))
    named = {f"input {i}": x for i, x in enumerate(leaves.values())}
    named |= _parameters(owner)
    found = torch.autograd.grad(
        _loss(out), list(named.values()), allow_unused=True, materialize_grads=True
    )
    return _outputs(out) | dict(zip(named, found, strict=True))


def _outputs(out: Tensor | dict[str, Tensor]) -> dict[str, Tensor]:
    if isinstance(out, dict):
        return {f"out {name}": x.detach() for name, x in out.items()}
    return {"out": out.detach()}


def _loss(out: Tensor | dict[str, Tensor]) -> Tensor:
    """A sum in which every element has another weight."""
    parts = out.values() if isinstance(out, dict) else [out]
    total = 0.0
    for part in parts:
        place = torch.arange(part.numel(), device=part.device, dtype=part.dtype)
        total = total + (part * torch.sin(1 + place).view(part.shape)).sum()
    return total


def _compare_with(theirs: nn.Module, inputs: Any, found: dict[str, Tensor]) -> None:
    """Compares with exact results; twice the error of the slow model is allowed too."""
    exact = _results(theirs, theirs, inputs, exact=True)
    try:
        _compare(found, exact)
    except AssertionError:
        _compare(found, exact, _results(theirs, theirs, inputs))


def _compare(
    found: dict[str, Tensor],
    expected: dict[str, Tensor],
    slow: dict[str, Tensor] | None = None,
) -> None:
    largest = max((_largest(x) for x in expected.values()), default=0.0)
    for name, value in expected.items():
        got = found[name]
        assert got.shape == value.shape, f"{name}: {got.shape}, not {value.shape}"
        relative, absolute = TOLERANCE[got.dtype]
        scale = _largest(value)
        error = _largest(got.double() - value)
        allowed = relative * scale + absolute * largest
        if slow is not None:
            allowed = max(allowed, 2 * _largest(slow[name].double() - value))
        assert error <= allowed, f"{name}: differs by {error:.1e}, largest {scale:.1e}"


def _largest(x: Tensor) -> float:
    return x.abs().max().item() if x.numel() else 0.0


def _map_tensors(value: Any, function: Any) -> Any:
    """Applies a function to the floating-point tensors in tuples and dictionaries."""
    if isinstance(value, Tensor):
        return function(value) if value.is_floating_point() else value
    if isinstance(value, tuple):
        return tuple(_map_tensors(part, function) for part in value)
    if isinstance(value, dict):
        return {key: _map_tensors(part, function) for key, part in value.items()}
    return value
