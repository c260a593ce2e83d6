"""GAT from its attention vectors: the kernels against the formula."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tempergat.ops import Graph, divide_by_temperature, gat, gat_from_vectors
from tests.support.interpreted import run_interpreted

# The fixed temperature, or what is added to a learnt one.
NUMBER = 0.25
THETAS = {
    "fixed": None,
    "layer": torch.tensor(-1.0),
    "head": torch.tensor([-3.0, 0.4, 25.0]),
}


def scores_by_formula(
    z: Tensor, att: list[Tensor], theta: Tensor | None
) -> list[Tensor]:
    """``<z, a> / T`` for every vector a."""
    temperature: Any = NUMBER
    if theta is not None:
        temperature = (F.softplus(theta) + NUMBER).view(-1, 1)
    return [(z * (a / temperature)).sum(-1) for a in att]


INTERPRETED = """
import sys
import torch
from tempergat.ops.calls import Vectors
from tempergat.ops.gpu import scores as kernels
from tests.ops.features.test_vectors import NUMBER, THETAS, scores_by_formula
kernels._PROGRAMS, kernels._FEW = 3, 60
torch.manual_seed(0)
theta = THETAS[sys.argv[1]]
for rows, channels, vectors in ((1, 1, 1), (90, 5, 2), (60, 16, 1)):
    z = torch.randn(rows, 3, channels)
    att = [torch.randn(3, channels) for _ in range(vectors)]
    # The second score is of the first rows only.
    dscores = [torch.randn(rows, 3), torch.randn(rows - rows // 4, 3)][:vectors]
    leaves = [x.double().requires_grad_() for x in (z, *att)]
    if theta is not None:
        leaves.append(theta.double().requires_grad_())
    wide = leaves[1 + vectors] if theta is not None else None
    want = scores_by_formula(leaves[0], leaves[1 : 1 + vectors], wide)
    cut = [w[: d.size(0)] for w, d in zip(want, dscores)]
    truth = torch.autograd.grad(cut, leaves, [d.double() for d in dscores])
    given = Vectors(att[0], att[1] if vectors > 1 else None, theta, NUMBER)
    found = kernels.forward(z, given)
    start = torch.randn_like(z)
    dz = start.clone()
    columns = torch.randn(7, 2, 3, channels)
    gradients, sums = kernels.backward(
        z, given, tuple(dscores), dz, add=True, columns=columns
    )
    torch.testing.assert_close(sums, columns.sum(0))
    other = torch.empty_like(z)
    kernels.backward(z, given, tuple(dscores), other, add=False)
    got = [*found, dz, other, *[g for g in gradients[:3] if g is not None]]
    want = [*want, truth[0] + start, truth[0], *truth[1:]]
    if theta is not None and vectors == 1:
        dout = torch.randn_like(att[0])
        softplus = torch.nn.functional.softplus(leaves[2])
        wide = leaves[1] / (softplus + NUMBER).view(-1, 1)
        want += [wide, *torch.autograd.grad(wide, leaves[1:], dout.double())]
        got += [kernels.divide(att[0], theta, NUMBER)]
        got += kernels.divide_backward(dout, att[0], theta, NUMBER)[:2]
    for one, exact in zip(got, want, strict=True):
        error = (one.double() - exact).abs().max() / exact.abs().max()
        assert one.shape == exact.shape
        assert error < 2e-6, (sys.argv[1], rows, float(error))
"""


@pytest.mark.parametrize("temperature", THETAS)
def test_interpreted_kernels_agree_with_float64(temperature: str) -> None:
    run_interpreted(INTERPRETED, temperature)


SETTINGS: dict[str, Any] = {
    "negative_slope": 0.2,
    "dropout": 0.0,
    "dropout_seed": None,
    "return_weights": True,
}


def _by_formula(
    graph: Graph, z: Tensor, z_dst: Tensor, att: list[Tensor], theta: Tensor | None
) -> tuple[Tensor, Tensor]:
    (score_src,) = scores_by_formula(z, att[:1], theta)
    (score_dst,) = scores_by_formula(z_dst, att[1:], theta)
    out, weights = gat(
        graph, z, score_src, score_dst[: graph.num_dst], None, **SETTINGS
    )
    assert weights is not None
    return out, weights


def _by_kernels(
    graph: Graph, z: Tensor, z_dst: Tensor, att: list[Tensor], theta: Tensor | None
) -> Any:
    vectors = (att[0], att[1])
    nodes = (z, z_dst)
    result = gat_from_vectors(graph, nodes, vectors, theta, NUMBER, None, **SETTINGS)
    assert result is not None
    return result


def _case(kind: str, temperature: str, device: str) -> tuple[Graph, list[Tensor]]:
    """A graph and its leaves: features, both vectors, theta, targets' features."""
    torch.manual_seed(0)
    sizes = {"shared": (30, 30), "prefix": (30, 14), "pair": (30, 17)}[kind]
    edges = torch.stack([torch.randint(n, (150,)) for n in sizes]).to(device)
    leaves = [torch.randn(30, 3, 5), torch.randn(1, 3, 5), torch.randn(1, 3, 5)]
    theta = THETAS[temperature]
    leaves.append(torch.tensor(0.0) if theta is None else theta.clone())
    leaves.append(torch.randn(sizes[1], 3, 5))
    return Graph(edges, sizes), [x.to(device) for x in leaves]


def _run(
    function: Any, kind: str, temperature: str, leaves: list[Tensor], graph: Graph
) -> Any:
    z, att_src, att_dst, theta, z_dst = leaves
    targets = z_dst if kind == "pair" else z
    wide = None if temperature == "fixed" else theta
    return function(graph, z, targets, [att_src, att_dst], wide)


def check_a_step(kind: str, temperature: str, order: int, device: str) -> None:
    """Asserts that outputs and gradients of an order agree with float64."""
    graph, leaves = _case(kind, temperature, device)
    found = []
    for function, dtype in ((_by_kernels, torch.float32), (_by_formula, torch.float64)):
        given = [x.to(dtype).requires_grad_() for x in leaves]
        out, weights = _run(function, kind, temperature, given, graph)
        loss = out.square().sum() + weights.square().sum()
        gradients = torch.autograd.grad(
            loss, given, create_graph=order == 2, allow_unused=True
        )
        if order == 2:
            again = sum(g.square().sum() for g in gradients if g is not None)
            gradients = torch.autograd.grad(again, given, allow_unused=True)
        found.append([out, weights, *gradients])
    for got, want in zip(*found, strict=True):
        if want is None:
            assert got is None
            continue
        error = (got.double() - want).abs().max()
        limit = 5e-5 if order == 1 else 2e-4
        assert error <= limit * want.abs().max().clamp(min=1e-2), (kind, float(error))


WHOLE_STEP = """
from tempergat.ops import gpu
from tempergat.ops.features import vectors
from tests.ops.features.test_vectors import check_a_step
vectors._find_kernels = lambda *_: gpu.kernels
for kind in ("shared", "prefix", "pair"):
    for order in (1, 2):
        check_a_step(kind, "head" if order == 1 else "layer", order, "cpu")
"""


def test_an_interpreted_step_agrees_with_float64() -> None:
    run_interpreted(WHOLE_STEP)


@pytest.mark.gpu
@pytest.mark.parametrize("temperature", ["fixed", "layer", "head"])
@pytest.mark.parametrize("kind", ["shared", "prefix", "pair"])
@pytest.mark.parametrize("order", [1, 2])
def test_a_step_agrees_with_float64(kind: str, temperature: str, order: int) -> None:
    check_a_step(kind, temperature, order, "cuda")


def test_no_kernel_serves_the_cpu() -> None:
    graph = Graph(torch.tensor([[0], [1]]), 2)
    z, att = torch.randn(2, 2, 3), torch.randn(1, 2, 3)
    nodes, vectors = (z, z), (att, att)
    assert gat_from_vectors(graph, nodes, vectors, None, 1.0, None, **SETTINGS) is None


@pytest.mark.gpu
@pytest.mark.parametrize("temperature", ["layer", "head"])
def test_division_by_the_temperature_has_first_and_second_derivatives(
    temperature: str,
) -> None:
    theta = THETAS[temperature]
    assert theta is not None
    leaves = [torch.randn(1, 3, 5).cuda(), theta.clone().cuda()]
    found = []
    for function, dtype in (
        (divide_by_temperature, torch.float32),
        (lambda a, t, n: a / (F.softplus(t) + n).view(-1, 1), torch.float64),
    ):
        att, wide = (x.to(dtype).requires_grad_() for x in leaves)
        out = function(att, wide, NUMBER)
        loss = out.pow(3).sum()
        first = torch.autograd.grad(loss, (att, wide), create_graph=True)
        again = sum(g.square().sum() for g in first)
        by_kernels = torch.autograd.grad(
            function(att, wide, NUMBER).pow(3).sum(), (att, wide)
        )
        second = torch.autograd.grad(again, (att, wide))
        found.append([out, *first, *by_kernels, *second])
    for got, want in zip(*found, strict=True):
        error = (got.double() - want).abs().max()
        assert error <= 1e-4 * want.abs().max()
    # The kernel takes one vector of each head.
    assert divide_by_temperature(torch.randn(2, 3, 5).cuda(), leaves[1], 1.0) is None
