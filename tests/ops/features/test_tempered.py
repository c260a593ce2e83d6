"""The scores of small graphs, by one function, are those of torch's ops."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat import ops
from tempergat.ops.torch_internals import in_transform

pytestmark = pytest.mark.usefixtures("kernels")
EPSILON = 1e-6
SHAPES = [(1, 1, 1), (11, 3, 5), (4, 2, 16), (7, 1, 33)]


def _inputs(kind: str, shape: tuple[int, ...], dtype: Any) -> list[Tensor | None]:
    _, heads, channels = shape
    tensors: list[Tensor | None] = [torch.randn(shape, dtype=dtype)]
    tensors += [torch.randn(1, heads, channels, dtype=dtype) for _ in range(2)]
    size = {"none": None, "layer": (), "head": (heads,)}[kind]
    theta = None if size is None else torch.randn(size, dtype=dtype)
    return [x if x is None else x.requires_grad_() for x in (*tensors, theta)]


def _plain(
    z: Tensor, att_src: Tensor, att_dst: Tensor, theta: Tensor | None, epsilon: float
) -> tuple[Tensor, Tensor]:
    temperature = torch.ones(1, 1, dtype=z.dtype)
    if theta is not None:
        temperature = (torch.nn.functional.softplus(theta) + epsilon).view(-1, 1)
    src, dst = ((z * att / temperature).sum(-1) for att in (att_src, att_dst))
    return src, dst


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["none", "layer", "head"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_scores_and_gradients_equal_those_of_plain_torch(
    dtype: Any, kind: str, shape: tuple[int, ...]
) -> None:
    inputs = _inputs(kind, shape, dtype)
    leaves = [x for x in inputs if x is not None]
    incoming = [torch.randn(shape[:2], dtype=dtype) for _ in range(2)]
    found = ops.tempered_scores(*inputs, EPSILON)
    assert found is not None
    expected = _plain(*inputs, EPSILON)
    gradients = [
        torch.autograd.grad(scores, leaves, incoming) for scores in (found, expected)
    ]
    for got, want in zip(
        (*found, *gradients[0]), (*expected, *gradients[1]), strict=True
    ):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("theta", [-80.0, -3.0, 0.0, 19.0, 21.0, 90.0])
def test_temperatures_of_any_size(theta: float) -> None:
    inputs = _inputs("layer", (5, 2, 4), torch.float64)
    inputs[3] = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
    found, expected = ops.tempered_scores(*inputs, EPSILON), _plain(*inputs, EPSILON)
    assert found is not None
    gradients = [
        torch.autograd.grad(scores[0].sin().sum(), inputs[3])[0]
        for scores in (found, expected)
    ]
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["none", "layer", "head"])
def test_gradients_of_gradients_are_right(kind: str) -> None:
    inputs = _inputs(kind, (4, 2, 3), torch.float64)

    def scores(*given: Tensor) -> Any:
        every = given if kind != "none" else (*given, None)
        return ops.tempered_scores(*every, EPSILON)

    leaves = [x for x in inputs if x is not None]
    assert torch.autograd.gradgradcheck(scores, leaves)


def test_what_the_function_cannot_take_is_left_to_torch() -> None:
    z, att_src, att_dst, _ = _inputs("none", (4, 2, 3), torch.float32)
    assert z is not None
    assert ops.tempered_scores(z.half(), att_src, att_dst, None, EPSILON) is None
    assert ops.tempered_scores(z.mT.mT[:0], att_src, att_dst, None, EPSILON) is None
    strided = z.detach().transpose(0, 1).contiguous().transpose(0, 1)
    assert ops.tempered_scores(strided, att_src, att_dst, None, EPSILON) is None

    def inside(z: Tensor) -> Tensor:
        assert in_transform()
        assert ops.tempered_scores(z, att_src, att_dst, None, EPSILON) is None
        return z

    torch.func.vmap(inside)(torch.randn(2, 4, 2, 3))
