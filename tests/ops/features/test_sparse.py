"""Sparse features give what dense ones give, for one model and for many."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat.ops.cpu import library as cpu
from tempergat.ops.features.sparse import SparseFeatures, linear
from tempergat.ops.random import keep_mask

MODELS = 3


@pytest.fixture(params=["kernels", "plain"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the compiled kernels, and without them."""
    library = request.getfixturevalue("kernels")
    if request.param == "plain":
        monkeypatch.setattr(library, "problem", "set aside by this test")
    return str(request.param)


def _dense(dtype: Any = torch.float64) -> Tensor:
    x = torch.randn(9, 13) * (torch.rand(9, 13) < 0.3)
    x[4] = 0.0
    x[:, 7] = 0.0
    return x.to(dtype)


@pytest.mark.parametrize("out_channels", [1, 7, 8, 16, 21])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.usefixtures("backend")
def test_linear_and_its_gradient_equal_the_dense_ones(
    dtype: Any, out_channels: int
) -> None:
    x = _dense(dtype)
    features = SparseFeatures.from_torch(x)
    weight = torch.randn(out_channels, 13).to(dtype).requires_grad_()
    bias = torch.randn(out_channels).to(dtype).requires_grad_()
    incoming = torch.randn(9, out_channels).to(dtype)
    found = linear(features, weight, bias)
    grads = torch.autograd.grad(found, (weight, bias), incoming)
    exact = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
    expected = torch.nn.functional.linear(*exact)
    wanted = torch.autograd.grad(expected, exact[1:], incoming.double())
    eps = torch.finfo(dtype).eps
    for got, want in zip((found, *grads), (expected, *wanted), strict=True):
        error = (got.double() - want).abs().max()
        assert error <= 4 * eps * want.abs().max()


@pytest.mark.parametrize("own_dropout", [False, True])
@pytest.mark.usefixtures("backend")
def test_gradients_of_many_models_equal_those_of_each(own_dropout: bool) -> None:
    features = SparseFeatures.from_torch(_dense())
    weights = torch.randn(MODELS, 5, 13, dtype=torch.float64)
    seeds = torch.randint(2**60, (MODELS,))

    def loss(product: Any) -> Any:
        def run(weight: Tensor, seed: Tensor) -> Tensor:
            x = features.dropout(0.5, seed) if own_dropout else features
            return product(x, weight).pow(3).sum()

        return run

    together = torch.vmap(torch.func.grad(loss(linear)))(weights, seeds)
    assert together.is_contiguous()
    alone = torch.func.grad(loss(lambda x, weight: x.to_dense() @ weight.t()))
    for model in range(MODELS):
        torch.testing.assert_close(together[model], alone(weights[model], seeds[model]))


@pytest.mark.usefixtures("kernels")
def test_the_product_of_many_models_lies_node_by_node() -> None:
    features = SparseFeatures.from_torch(_dense())
    weights = torch.randn(MODELS, 5, 13, dtype=torch.float64)
    out = torch.vmap(lambda weight: linear(features, weight), out_dims=1)(weights)
    assert out.shape == (9, MODELS, 5)
    assert out.is_contiguous()


@pytest.mark.usefixtures("kernels")
def test_one_weight_serves_the_dropout_of_many_models() -> None:
    features = SparseFeatures.from_torch(_dense())
    weight = torch.randn(5, 13, dtype=torch.float64)
    seeds = torch.randint(2**60, (MODELS,))
    out = torch.vmap(lambda seed: linear(features.dropout(0.5, seed), weight))(seeds)
    for model, seed in enumerate(seeds):
        expected = features.dropout(0.5, seed).to_dense() @ weight.t()
        torch.testing.assert_close(out[model], expected)


def test_dropout_is_keyed_by_the_number_of_the_stored_element() -> None:
    features = SparseFeatures.from_torch(_dense())
    seed = torch.tensor(5)
    dropped = features.dropout(0.25, seed)
    stored = torch.arange(features.values.numel())
    keep = keep_mask(seed, stored, 0.25)
    torch.testing.assert_close(dropped.values, features.values * keep / 0.75)
    assert features.dropout(0.0, seed) is features


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_every_torch_layout_is_taken() -> None:
    x = _dense()
    for given in (x, x.to_sparse(), x.to_sparse_csr()):
        features = SparseFeatures.from_torch(given)
        assert features.shape == (9, 13)
        assert torch.equal(features.to_dense(), x)


@pytest.mark.usefixtures("kernels")
def test_compiles_into_one_graph() -> None:
    features = SparseFeatures.from_torch(_dense())
    weight = torch.randn(5, 13, dtype=torch.float64, requires_grad=True)

    def loss(weight: Tensor) -> Tensor:
        return linear(features, weight).sin().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    (found,) = torch.autograd.grad(compiled(weight), weight)
    (expected,) = torch.autograd.grad(loss(weight), weight)
    torch.testing.assert_close(found, expected)


@pytest.mark.usefixtures("kernels")
# torch 2.15's own check reads gradients of tensors that have none.
@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_op_keeps_torchs_contract() -> None:
    features = SparseFeatures.from_torch(_dense())
    weight = torch.randn(1, 5, 13, dtype=torch.float64, requires_grad=True)
    rows = (*features.by_node[:3], *features.by_feature[:3])
    arguments = (features.values[:, None], weight, *rows)
    torch.library.opcheck(torch.ops.tempergat.sparse_linear.default, arguments)


def test_mistakes_are_named() -> None:
    features = SparseFeatures.from_torch(_dense())
    with pytest.raises(ValueError, match=r"takes 12 features, there are 13"):
        linear(features, torch.randn(5, 12))
    crow, col = torch.tensor([0, 2]), torch.tensor([0, 3])
    with pytest.raises(ValueError, match=r"0\.\.3, but there are 3 features"):
        SparseFeatures(crow, col, torch.ones(2), 3)
    with pytest.raises(ValueError, match="number of stored elements"):
        SparseFeatures(crow, col[:1], torch.ones(1), 3)
    with pytest.raises(ValueError, match="no gradient"):
        linear(
            SparseFeatures(crow, col, torch.ones(2, requires_grad=True), 4),
            torch.randn(5, 4),
        )


@pytest.mark.usefixtures("kernels")
def test_results_do_not_depend_on_the_number_of_threads() -> None:
    features = SparseFeatures.from_torch(
        torch.randn(300, 200) * (torch.rand(300, 200) < 0.2)
    )
    weight = torch.randn(200, 200, requires_grad=True)
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            out = linear(features, weight)
            found.append((out, *torch.autograd.grad(out.sum(), weight)))
    finally:
        torch.set_num_threads(before)
    assert cpu.library.problem is None
    for one, three in zip(*found, strict=True):
        assert torch.equal(one, three)
