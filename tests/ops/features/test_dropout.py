"""Elements are dropped by the random bits, however that is computed."""

import pytest
import torch

from tempergat.ops import random
from tempergat.ops.features.elementwise import dropout


@pytest.fixture(params=["kernels", "plain"], autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the compiled kernels, and without them."""
    library = request.getfixturevalue("kernels")
    if request.param == "plain":
        monkeypatch.setattr(library, "problem", "set aside by this test")


@pytest.mark.parametrize("shape", [(7,), (3, 5), (4, 2, 33), (300, 257)])
def test_the_same_elements_are_dropped_as_by_the_reference(
    shape: tuple[int, ...],
) -> None:
    x, seed = torch.randn(shape), torch.tensor(-(2**62) + 12345)
    for rate in (0.0, 0.1, 0.6):
        for given in (x, x.double()):
            expected = random.dropout(given, rate, seed)
            assert torch.equal(dropout(given, rate, seed), expected)
        assert torch.equal(dropout(x, rate, seed), random.dropout(x, rate, seed))


def test_many_seeds_at_once_drop_what_each_drops() -> None:
    x, seeds = torch.randn(4, 6, 5), torch.randint(2**62, (4,))
    together = torch.vmap(lambda x, seed: dropout(x, 0.5, seed))(x, seeds)
    for model, seed in enumerate(seeds):
        assert torch.equal(together[model], random.dropout(x[model], 0.5, seed))


def test_one_tensor_dropped_out_for_many_seeds_lies_row_by_row() -> None:
    x, seeds = torch.randn(6), torch.randint(2**62, (40,))
    together = torch.vmap(lambda seed: dropout(x, 0.5, seed), out_dims=1)(seeds)
    assert together.is_contiguous()
    for model, seed in enumerate(seeds):
        assert torch.equal(together[:, model], random.dropout(x, 0.5, seed))


def test_variants_of_a_seed_have_its_mask() -> None:
    x, seeds = torch.randn(3, 2, 6, 5), torch.randint(2**62, (3,))
    variants = torch.vmap(lambda x, seed: dropout(x, 0.5, seed), in_dims=(0, None))
    together = torch.vmap(variants)(x, seeds)
    shared = torch.vmap(variants, in_dims=(None, 0))(x[0], seeds)
    for model, seed in enumerate(seeds):
        for variant in range(2):
            one = random.dropout(x[model, variant], 0.5, seed)
            assert torch.equal(together[model, variant], one)
            one = random.dropout(x[0, variant], 0.5, seed)
            assert torch.equal(shared[model, variant], one)


def test_gradient_passes_where_elements_were_kept() -> None:
    x, seed = torch.randn(6, 5, requires_grad=True), torch.tensor(3)
    dropout(x, 0.5, seed).sum().backward()
    assert torch.equal(x.grad, random.dropout(torch.ones(6, 5), 0.5, seed))


def test_gradient_of_a_tensor_dropped_out_for_many_seeds_is_the_sum() -> None:
    x, seeds = torch.randn(6, 5, requires_grad=True), torch.randint(2**62, (4,))
    torch.vmap(lambda seed: dropout(x, 0.5, seed))(seeds).sum().backward()
    ones = torch.ones(6, 5)
    expected = sum(random.dropout(ones, 0.5, seed) for seed in seeds)
    assert torch.allclose(x.grad, expected)


def test_second_derivatives_exist() -> None:
    x, seed = (
        torch.randn(6, 5, dtype=torch.float64, requires_grad=True),
        torch.tensor(3),
    )
    assert torch.autograd.gradgradcheck(lambda x: dropout(x, 0.5, seed).pow(3), x)


def test_compiles_into_one_graph() -> None:
    x, seed = torch.randn(6, 5), torch.tensor(3)
    compiled = torch.compile(dropout, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x, 0.5, seed), dropout(x, 0.5, seed))
