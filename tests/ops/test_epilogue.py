"""Attention with gate, skip and bias as one op: the same numbers as step by step."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat.nn import (
    TemperGATConv,
    TemperGATv2Conv,
    TemperTransformerConv,
    gate_penalty,
)
from tempergat.ops import Epilogue, attention, attention_op
from tempergat.ops.calls import changes_output
from tempergat.ops.kinds import registered
from tests.support.attention_cases import GRAPHS, Settings, in_order, make_inputs
from tests.support.interpreted import run_interpreted

LAYERS = {"gat": TemperGATConv, "gatv2": TemperGATv2Conv}
NODES, FEATURES, HEADS, CHANNELS = 9, 5, 3, 4
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"temperature": None, "gate": None},
    "temperature": {"gate": None},
    "by head": {"temperature": "head", "init_temp": 0.5},
    "fixed": {"temperature": 0.7},
    "gate first": {"gate": "first"},
    "gate of heads": {"gate": "head"},
    "both": {"dropout": 0.4},
    "mean": {"concat": False, "residual": True},
    "no bias": {"bias": False},
    "residual alone": {"bias": False, "residual": True},
    "residual and no gate": {"bias": False, "residual": True, "gate": None},
    "edges": {"edge_dim": 2},
}


def edges_and_input(device: str = "cpu") -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, 30), generator=generator)
    x = torch.randn(NODES, FEATURES, generator=generator)
    return edges.to(device), x.to(device)


def results(layer: Any, x: Tensor, edges: Tensor, order: int = 1) -> list[Tensor]:
    """Output and weights, then gradients of an order of the input and parameters."""
    leaves = [x.clone().requires_grad_(), *layer.parameters()]
    edge_attr = None if layer.edge_dim is None else x.new_ones(30, 2).cumsum(0) / 30
    seed = torch.tensor(3, device=x.device)
    rest = {"return_attention_weights": True, "dropout_seed": seed}
    out, (_, weights) = layer(leaves[0], edges, edge_attr, **rest)
    loss = (out * torch.linspace(-1, 2, out.numel()).view_as(out).to(out)).sum()
    loss = loss + weights.square().sum()
    if layer.gate is not None:
        loss = loss + 5 * gate_penalty(layer)
    gradients = torch.autograd.grad(
        loss, leaves, create_graph=order == 2, allow_unused=True
    )
    if order == 2:
        again = sum(g.square().sum() for g in gradients if g is not None)
        gradients = torch.autograd.grad(again, leaves, allow_unused=True)
    found = [
        torch.zeros_like(leaf) if g is None else g
        for leaf, g in zip(leaves, gradients, strict=True)
    ]
    return [out.detach(), weights.detach(), *found]


def finishes_inside(layer: Any) -> bool:
    """Whether the op has anything to do after attention."""
    adds = layer.concat and (layer.bias is not None or layer.residual)
    return adds or layer.gate in ("post", "head")


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("backbone", LAYERS)
def test_outputs_and_gradients_are_those_of_the_steps(
    backbone: str, options: str, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    layer = LAYERS[backbone](FEATURES, CHANNELS, HEADS, **OPTIONS[options]).double()
    edges, x = edges_and_input()
    given: list[Any] = []
    flatten = attention_op.arguments
    monkeypatch.setattr(
        attention_op, "arguments", lambda *a: (given.append(a[3]), flatten(*a))[1]
    )
    found = results(layer, x.double(), edges, order)
    assert changes_output(given[-1]) == finishes_inside(layer)
    monkeypatch.setattr(attention, "_epilogue_of_op", lambda *_: None)
    expected = results(layer, x.double(), edges, order)
    assert not changes_output(given[-1])
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("backbone", LAYERS)
def test_no_gradient_is_computed_that_nobody_needs(backbone: str) -> None:
    layer = LAYERS[backbone](FEATURES, CHANNELS, HEADS)
    for name, parameter in layer.named_parameters():
        parameter.requires_grad_("lin" not in name)
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


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("backbone", LAYERS)
def test_wide_features_are_multiplied_once(backbone: str, sparse: bool) -> None:
    layer = LAYERS[backbone](600, CHANNELS, HEADS, residual=True).double()
    edges, _ = edges_and_input()
    x = torch.randn(NODES, 600, dtype=torch.double).relu()
    given = x.to_sparse() if sparse else x
    out = layer(given, edges)
    names = []
    waiting = [out.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None:
            names.append(node.name())
            waiting += [following for following, _ in node.next_functions]
    assert "CatBackward0" in names
    for lin in (layer.lin_gate, layer.res):
        # A map with a hook is called by itself, and so all are one by one.
        lin.register_forward_hook(lambda *_: None)
    expected = layer(given, edges)
    torch.testing.assert_close(out, expected)
    leaves = list(layer.parameters())
    found = torch.autograd.grad(out.sin().sum(), leaves)
    wanted = torch.autograd.grad(expected.sin().sum(), leaves)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


INTERPRETED = """
import torch
from tempergat.ops import cpu, gpu
from tests.ops.test_epilogue import (
    CHANNELS, FEATURES, HEADS, LAYERS, OPTIONS, edges_and_input, results
)
own = cpu.attend, cpu.gradients
calls = []
def attend_on_gpu(*call):
    calls.append(call)
    return gpu.attend(*call)
edges, x = edges_and_input()
for name, backbone in (
    ("plain", "gat"), ("by head", "gatv2"), ("both", "gat"), ("both", "gatv2"),
    ("edges", "gatv2"), ("residual alone", "gat"), ("residual and no gate", "gatv2"),
    ("gate of heads", "gat"),
):
    torch.manual_seed(0)
    layer = LAYERS[backbone](FEATURES, CHANNELS, HEADS, **OPTIONS[name])
    # The op finds them where it finds those of the CPU.
    cpu.attend, cpu.gradients = attend_on_gpu, gpu.gradients
    found = results(layer, x, edges)
    assert calls
    cpu.attend, cpu.gradients = own
    exact = results(layer.double(), x.double(), edges)
    for one, other in zip(found, exact, strict=True):
        error = (one.double() - other).abs().max() / other.abs().max().clamp(min=1e-2)
        assert error < 5e-6, (backbone, name, float(error))
"""


def test_interpreted_kernels_agree_with_float64() -> None:
    run_interpreted(INTERPRETED)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("gate", [None, "first", "post"])
@pytest.mark.parametrize("backbone", LAYERS)
def test_the_output_may_be_changed_in_place(
    backbone: str, gate: Any, bias: bool
) -> None:
    layer = LAYERS[backbone](FEATURES, CHANNELS, HEADS, bias=bias, gate=gate)
    edges, x = edges_and_input()
    weights = list(layer.parameters())
    expected = torch.autograd.grad(layer(x, edges).relu().sum(), weights)
    found = torch.autograd.grad(layer(x, edges).relu_().sum(), weights)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("order", [1, 2])
def test_a_bias_of_each_row_is_not_kept_for_backward(order: int) -> None:
    layer = TemperTransformerConv(FEATURES, CHANNELS, HEADS)
    edges, x = edges_and_input()
    skipped: list[Tensor] = []
    layer.lin_skip.register_forward_hook(lambda *call: skipped.append(call[-1]))
    kept: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = layer(x, edges)
    assert kept
    assert skipped[0].data_ptr() not in kept
    weight = layer.lin_skip.weight
    (found,) = torch.autograd.grad(out.sum(), weight, create_graph=order == 2)
    torch.testing.assert_close(found, x.sum(0).expand_as(weight))


@pytest.mark.gpu
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("backbone", LAYERS)
def test_a_gpu_agrees_with_float64(backbone: str, order: int) -> None:
    for options in OPTIONS.values():
        layer = LAYERS[backbone](FEATURES, CHANNELS, HEADS, **options).cuda()
        edges, x = edges_and_input("cuda")
        found = results(layer, x, edges, order)
        exact = results(layer.double(), x.double(), edges, order)
        for one, other in zip(found, exact, strict=True):
            scale = other.abs().max().clamp(min=1e-2)
            limit = 5e-6 if order == 1 else 2e-4
            assert (one.double() - other).abs().max() / scale < limit


@pytest.mark.parametrize("case", range(24))
def test_kernels_finish_as_torch_does(
    case: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(case)

    def draw(*choices: Any) -> Any:
        return choices[int(torch.randint(len(choices), (), generator=generator))]

    kind, copies = draw("gat", "gatv2", "dot_product"), draw(1, 1, 3)
    heads, channels = draw(1, 3, 8), draw(1, 5, 8, 16, 40)
    dtype = draw(torch.float32, torch.float64, torch.bfloat16)
    graph = GRAPHS[draw("random", "bipartite", "hub")]().repeat(copies)
    inputs = make_inputs(kind, graph, heads, channels, dtype, Settings())
    own = tuple(in_order(kind, inputs))
    numbers = tuple(registered(kind).settings.values())
    rows, width = graph.num_dst, heads * channels
    given = [
        torch.randn(shape, generator=generator).to(dtype) if draw(True, False) else None
        for shape in ((rows, width), (rows, width), (width,))
    ]
    if given[0] is not None:
        # Rows of padding, and gates beyond the range of exp.
        given[0][0], given[0][1] = -torch.inf, 200.0
    leaves = [x.requires_grad_() for x in (*own, *given) if x is not None]
    upstream = torch.randn(rows, width, generator=generator).to(dtype)

    def step() -> list[Tensor]:
        epilogue = Epilogue(*given, gate_sum=draw(True))
        rest = (numbers, 0.0, None, False, epilogue)
        out, _, total = attention.attend_with(registered(kind), graph, own, *rest)
        loss = (out.flatten(1) * upstream).sum()
        loss = loss if total is None else loss + 3 * total.sum()
        return [out, *torch.autograd.grad(loss, leaves)]

    found = step()
    monkeypatch.setattr(attention, "_epilogue_of_op", lambda *_: None)
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5}.get(dtype, 0.05)
    for one, other in zip(found, step(), strict=True):
        scale = float(other.detach().abs().max())
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance * scale)
