"""The feature gate: the plain formula, and the kernels against it."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat.ops.features import elementwise as gate
from tests.support.interpreted import run_interpreted


def _by_formula(logit: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    value = 1 / (1 + torch.exp(-logit))
    return x * value, value.sum()


def _results(function: Any, logit: Tensor, x: Tensor, dout: Tensor) -> list[Tensor]:
    """Output, sum and both gradients; the sum has a gradient of its own."""
    leaves = [logit.clone().requires_grad_(), x.clone().requires_grad_()]
    out, parts = function(*leaves)
    total = parts.sum()
    loss = (out * dout).sum() + 0.3 * total
    return [out.detach(), total.detach(), *torch.autograd.grad(loss, leaves)]


def test_gate_and_its_sum_have_the_formula_s_values_and_gradients() -> None:
    arguments = [torch.randn(7, 5, dtype=torch.float64) for _ in range(3)]
    for got, want in zip(
        _results(gate.sigmoid_gate, *arguments),
        _results(_by_formula, *arguments),
        strict=True,
    ):
        torch.testing.assert_close(got, want)


def test_the_sum_of_a_half_precision_gate_is_single_precision() -> None:
    x = torch.randn(7000, 5).bfloat16()
    out, total = gate.sigmoid_gate(x, x)
    assert total is not None
    assert (out.dtype, total.dtype) == (torch.bfloat16, torch.float32)


INTERPRETED = """
import torch
from tempergat.ops.gpu.features import gate as gpu_gate
torch.manual_seed(0)
for rows in (0, 1, 999):
    logit, x, dout = torch.randn(3, rows, 5).unbind()
    leaves = [logit.double().requires_grad_(), x.double().requires_grad_()]
    gate = torch.sigmoid(leaves[0])
    loss = (leaves[1] * gate * dout).sum() + 0.3 * gate.sum()
    truth = [leaves[1] * gate, gate.sum(), *torch.autograd.grad(loss, leaves)]
    out, parts = gpu_gate.forward(logit, x)
    dparts = torch.full_like(parts, 0.3)
    found = [out, parts.sum(), *gpu_gate.backward(dout, dparts, logit, x)]
    for got, want in zip(found, truth, strict=True):
        torch.testing.assert_close(got, want.float())
"""


def test_interpreted_kernels_agree_with_float64() -> None:
    run_interpreted(INTERPRETED)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_kernels_are_as_exact_as_pytorch(dtype: Any) -> None:
    for rows in (1, 1000):
        arguments = [torch.randn(rows, 3, 7, device="cuda").to(dtype) for _ in "123"]
        assert gate.find_backend(*arguments[:2]) is not None
        fast = _results(gate.sigmoid_gate, *arguments)
        same = _results(_by_formula, *arguments)
        truth = _results(_by_formula, *(x.double() for x in arguments))
        for got, torch_s, want in zip(fast, same, truth, strict=True):
            error = (got.double() - want).abs().max()
            allowed = (torch_s.double() - want).abs().max()
            floor = 4 * torch.finfo(dtype).eps * want.abs().max()
            assert error <= 2 * allowed + floor


@pytest.mark.gpu
def test_a_second_derivative_of_the_kernels_is_right() -> None:
    logit, x = torch.randn(2, 900, 5, device="cuda").unbind()
    second = []
    for function, dtype in (
        (gate.sigmoid_gate, torch.float32),
        (_by_formula, torch.float64),
    ):
        leaf = logit.to(dtype, copy=True).requires_grad_()
        out, total = function(leaf, x.to(dtype))
        loss = out.square().sum() + total.sum().square()
        (first,) = torch.autograd.grad(loss, leaf, create_graph=True)
        second.append(torch.autograd.grad(first.square().sum(), leaf)[0].double())
    got, want = second
    # The largest ones are sums over all elements; the smallest ones are what is left
    # where such sums cancel.
    assert (got - want).abs().max() <= 1e-5 * want.abs().max()
