"""A layer as one node of autograd: the same numbers as with a node for each step."""

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat.nn import TemperGATConv, TemperGATv2Conv, gate_penalty
from tempergat.nn.conv import _base
from tests.support.interpreted import run_interpreted

LAYERS = {"gat": TemperGATConv, "gatv2": TemperGATv2Conv}
NODES, FEATURES, HEADS, CHANNELS = 9, 5, 3, 4
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"temperature": None, "gate": None},
    "temperature": {"gate": None},
    "by head": {"temperature": "head", "init_temp": 0.5},
    "gate": {"temperature": None},
    "both": {"dropout": 0.4},
    "mean": {"concat": False, "residual": True},
    "no bias": {"bias": False, "concat": True},
}


def edges_and_input(device: str = "cpu") -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, 30), generator=generator)
    x = torch.randn(NODES, FEATURES, generator=generator)
    return edges.to(device), x.to(device)


def results(layer: Any, x: Tensor, edges: Tensor, with_penalty: bool) -> list[Tensor]:
    """Output, then the gradients of the input and of every parameter."""
    x = x.clone().requires_grad_()
    seed = torch.tensor(3, device=x.device)
    out = layer(x, edges, dropout_seed=seed)
    loss = (out * torch.linspace(-1, 2, out.numel()).view_as(out).to(out)).sum()
    if with_penalty:
        loss = loss + 5 * gate_penalty(layer)
    else:
        gate_penalty(layer)
    return [out, *torch.autograd.grad(loss, [x, *layer.parameters()])]


def nodes_of(out: Tensor) -> list[str]:
    """The names of the nodes between an output and the leaves."""
    found, waiting = [], [out.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None:
            found.append(node.name())
            waiting += [following for following, _ in node.next_functions]
    return [name for name in found if "Accumulate" not in name]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("with_penalty", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("backbone", LAYERS)
def test_every_bit_is_that_of_the_steps(
    backbone: str, options: str, with_penalty: bool, dtype: torch.dtype, monkeypatch
) -> None:
    torch.manual_seed(0)
    layer = LAYERS[backbone](FEATURES, CHANNELS, HEADS, **OPTIONS[options]).to(dtype)
    if with_penalty and layer.gate is None:
        pytest.skip("no gate")
    edges, x = edges_and_input()
    x = x.to(dtype)
    assert any("Layer" in name for name in nodes_of(layer(x, edges)))
    gate_penalty(layer)
    found = results(layer, x, edges, with_penalty)
    monkeypatch.setattr(_base, "run_as_one_node", lambda *_: None)
    expected = results(layer, x, edges, with_penalty)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


def test_a_shared_map_of_both_sides_has_the_gradient_of_both(monkeypatch) -> None:
    layer = TemperGATv2Conv(FEATURES, CHANNELS, HEADS, share_weights=True)
    edges, x = edges_and_input()
    found = results(layer, x, edges, False)
    monkeypatch.setattr(_base, "run_as_one_node", lambda *_: None)
    expected = results(layer, x, edges, False)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("backbone", LAYERS)
def test_no_gradient_is_computed_that_nobody_needs(backbone: str) -> None:
    layer = LAYERS[backbone](FEATURES, CHANNELS, HEADS)
    frozen = [p for name, p in layer.named_parameters() if "lin" in name]
    for parameter in frozen:
        parameter.requires_grad_(False)
    edges, x = edges_and_input()
    layer(x, edges).sum().backward()
    for name, parameter in layer.named_parameters():
        assert (parameter.grad is None) == ("lin" in name), name


def test_hooks_of_a_linear_map_are_called() -> None:
    layer = TemperGATConv(FEATURES, CHANNELS, HEADS)
    edges, x = edges_and_input()
    seen = []
    handle = layer.lin_gate.register_forward_hook(lambda *_: seen.append("own"))
    layer(x, edges)
    handle.remove()
    add = torch.nn.modules.module.register_module_forward_hook
    handle = add(lambda module, *_: seen.append(type(module).__name__))
    layer(x, edges)
    handle.remove()
    assert seen == ["own", "Linear", "GateLinear", "TemperGATConv"]


def test_the_output_may_be_changed_in_place() -> None:
    for options in OPTIONS.values():
        layer = TemperGATConv(FEATURES, CHANNELS, HEADS, **options).eval()
        edges, x = edges_and_input()
        parameters = list(layer.parameters())
        expected = torch.autograd.grad(layer(x, edges).relu().sum(), parameters)
        found = torch.autograd.grad(layer(x, edges).relu_().sum(), parameters)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)


INTERPRETED = """
import itertools
import torch
from tempergat.nn.conv import _base
from tempergat.ops import gpu
from tempergat.ops.one_node import layer as one_node
from tests.ops.one_node.test_layer import (
    CHANNELS, FEATURES, HEADS, LAYERS, OPTIONS, edges_and_input, results
)
apply = one_node._Layer.apply
calls = []
def apply_on_gpu(options, *tensors):
    calls.append(options)
    return apply(options._replace(kernels=gpu.kernels, on_gpu=True), *tensors)
one_node._Layer.apply = apply_on_gpu
edges, x = edges_and_input()
cases = (("plain", False), ("by head", True), ("both", False))
for (name, penalty), backbone in itertools.product(cases, LAYERS):
    torch.manual_seed(0)
    options = OPTIONS[name]
    layer = LAYERS[backbone](FEATURES, CHANNELS, HEADS, **options)
    found = results(layer, x, edges, penalty)
    calls_before = len(calls)
    run, _base.run_as_one_node = _base.run_as_one_node, lambda *_: None
    exact = results(layer.double(), x.double(), edges, penalty)
    _base.run_as_one_node = run
    assert len(calls) == calls_before > 0
    for one, other in zip(found, exact, strict=True):
        error = (one.double() - other).abs().max() / other.abs().max().clamp(min=1e-3)
        assert error < 5e-6, (backbone, name, float(error))
"""


@pytest.mark.slow
def test_interpreted_kernels_agree_with_float64() -> None:
    run_interpreted(INTERPRETED)


@pytest.mark.gpu
@pytest.mark.parametrize("backbone", LAYERS)
def test_a_gpu_agrees_with_float64(backbone: str) -> None:
    for options, penalty in itertools.product(OPTIONS.values(), (False, True)):
        layer = LAYERS[backbone](FEATURES, CHANNELS, HEADS, **options).cuda()
        if penalty and layer.gate is None:
            continue
        edges, x = edges_and_input("cuda")
        assert any("Layer" in name for name in nodes_of(layer(x, edges)))
        gate_penalty(layer)
        found = results(layer, x, edges, penalty)
        exact = results(layer.double(), x.double(), edges, penalty)
        for one, other in zip(found, exact, strict=True):
            scale = other.abs().max().clamp(min=1e-3)
            assert (one.double() - other).abs().max() / scale < 5e-6
