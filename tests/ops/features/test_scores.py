"""Each node's part of GAT's logits: the kernels against the formula."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat.ops import node_scores
from tests.support.interpreted import run_interpreted


def _by_formula(z: Tensor, att: Tensor) -> list[Tensor]:
    return [(z * vector).sum(-1) for vector in att]


def _results(
    function: Any, z: Tensor, att: Tensor, dscores: list[Tensor]
) -> list[Tensor]:
    """The scores and both gradients."""
    leaves = [z.clone().requires_grad_(), att.clone().requires_grad_()]
    scores = function(*leaves)
    gradients = torch.autograd.grad(scores, leaves, dscores)
    return [*(s.detach() for s in scores), *gradients]


INTERPRETED = """
import torch
from tempergat.ops.gpu import scores as gpu_scores
from tests.ops.features.test_scores import _by_formula, _results
gpu_scores._PROGRAMS = 3
torch.manual_seed(0)
for rows, heads, channels, vectors in ((1, 1, 1, 1), (200, 3, 5, 2), (300, 8, 16, 1)):
    z, att = torch.randn(rows, heads, channels), torch.randn(vectors, heads, channels)
    dscores = [torch.randn(rows, heads) for _ in att]
    exact = [z.double(), att.double(), [d.double() for d in dscores]]
    found = [*gpu_scores.forward(z, att), *gpu_scores.backward(z, att, tuple(dscores))]
    for got, want in zip(found, _results(_by_formula, *exact), strict=True):
        torch.testing.assert_close(got, want.float(), atol=1e-4, rtol=1e-5)
"""


def test_interpreted_kernels_agree_with_float64() -> None:
    run_interpreted(INTERPRETED)


def test_no_kernel_serves_the_cpu() -> None:
    assert node_scores(torch.randn(4, 2, 3), torch.randn(2, 2, 3)) is None


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5000, 3, 7), (2000, 8, 16)])
def test_kernels_are_as_exact_as_pytorch(dtype: Any, shape: tuple[int, ...]) -> None:
    for vectors in (1, 2):
        z = torch.randn(shape, device="cuda").to(dtype)
        att = torch.randn(vectors, *shape[1:], device="cuda")
        dscores = [torch.randn(shape[:2], device="cuda") for _ in att]
        assert node_scores(z, att) is not None
        fast = _results(node_scores, z, att, dscores)
        same = _results(_by_formula, z, att, dscores)
        exact = [d.double() for d in dscores]
        truth = _results(_by_formula, z.double(), att.double(), exact)
        for got, torch_s, want in zip(fast, same, truth, strict=True):
            error = (got.double() - want).abs().max()
            allowed = (torch_s.double() - want).abs().max()
            floor = 8 * torch.finfo(got.dtype).eps * want.abs().max()
            assert error <= 2 * allowed + floor


@pytest.mark.gpu
def test_a_second_derivative_of_the_kernels_is_right() -> None:
    z, att = torch.randn(9, 2, 5, device="cuda"), torch.randn(2, 2, 5, device="cuda")
    second = []
    for function in (node_scores, _by_formula):
        leaves = [z.clone().requires_grad_(), att.clone().requires_grad_()]
        loss = sum(s.square().sum() for s in function(*leaves))
        first = torch.autograd.grad(loss, leaves, create_graph=True)
        again = sum(g.square().sum() for g in first)
        second.append(torch.autograd.grad(again, leaves))
    for got, want in zip(*second, strict=True):
        torch.testing.assert_close(got, want, atol=1e-3, rtol=1e-4)
