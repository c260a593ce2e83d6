"""Dense products of many models equal those of each model alone."""

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tempergat.ops.features.dense import linear


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_many_models_at_once_agree_with_each_alone(shared: bool, device: str) -> None:
    options = {"dtype": torch.float64, "device": device}
    x = torch.randn(*([] if shared else [4]), 7, 5, **options, requires_grad=True)
    weight = torch.randn(4, 3, 5, **options, requires_grad=True)
    dout = torch.randn(4, 7, 3, **options)
    together = torch.vmap(linear, in_dims=(None if shared else 0, 0))(x, weight)
    alone = x @ weight.mT
    torch.testing.assert_close(together, alone)
    found = torch.autograd.grad((together * dout).sum(), (x, weight))
    expected = torch.autograd.grad((alone * dout).sum(), (x, weight))
    torch.testing.assert_close(found, expected)


def test_products_lie_node_by_node() -> None:
    x, weight = torch.randn(4, 7, 5), torch.randn(4, 3, 5)
    together = torch.vmap(linear, out_dims=1)(x, weight)
    assert together.shape == (7, 4, 3)
    assert together.is_contiguous()


def test_variants_of_a_model_have_features_of_their_own() -> None:
    x, weight = torch.randn(3, 2, 7, 5), torch.randn(3, 4, 5)
    together = torch.vmap(torch.vmap(linear, in_dims=(0, None)))(x, weight)
    torch.testing.assert_close(together, x @ weight.mT.unsqueeze(1))


def test_features_without_gradient_cost_none() -> None:
    x, weight = torch.randn(7, 5), torch.randn(4, 3, 5, requires_grad=True)
    out = torch.vmap(linear, in_dims=(None, 0))(x, weight)
    out.sum().backward()
    assert x.grad is None
    torch.testing.assert_close(weight.grad, x.sum(0).expand(4, 3, 5))


def test_transforms_and_second_derivatives_work() -> None:
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(linear, (x, weight))
    found = torch.func.grad(lambda w: linear(x, w).square().sum())(weight)
    expected = torch.func.grad(lambda w: (x @ w.t()).square().sum())(weight)
    torch.testing.assert_close(found, expected)


def test_a_factor_is_saved_only_for_the_other_s_gradient() -> None:
    saved: list[torch.Size] = []
    x, weight = torch.randn(7, 5, requires_grad=True), torch.randn(4, 3, 5)

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor.shape)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        torch.vmap(linear, in_dims=(None, 0))(x, weight)
        assert saved == [weight.shape]
        torch.vmap(linear, in_dims=(None, 0))(x.detach(), weight.requires_grad_())
    assert saved[1:] == [(7, 1, 5)]


def test_maps_to_nothing_give_nothing() -> None:
    x, weight = torch.randn(7, 5), torch.randn(4, 0, 5)
    assert torch.vmap(linear, in_dims=(None, 0))(x, weight).shape == (4, 7, 0)


class LargestArgument(TorchDispatchMode):
    """Keeps the number of elements of the largest argument of our ops."""

    seen = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if str(func).startswith("tempergat"):
            self.seen = max(self.seen, *(x.numel() for x in args))
        return func(*args, **(kwargs or {}))


def test_weights_are_not_repeated_for_the_rows_of_a_jacobian() -> None:
    x, weight = torch.randn(4, 2, 20), torch.randn(4, 3, 20)
    with LargestArgument() as largest:
        jacobian = torch.vmap(torch.func.jacrev(linear))(x, weight)
    assert largest.seen == weight.numel()
    expected = torch.vmap(torch.func.jacrev(torch.nn.functional.linear))(x, weight)
    torch.testing.assert_close(jacobian, expected)
