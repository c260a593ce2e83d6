"""Dropout masks are those of the random bits, however they are computed."""

import pytest
import torch

from tempergat.ops import random
from tempergat.ops.masks import dropout, keep_matrix


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


def test_masks_of_many_seeds_lie_row_by_row() -> None:
    seeds = torch.randint(2**62, (4,))
    masks = torch.vmap(lambda seed: keep_matrix(seed, 6, 5, 0.5), out_dims=1)(seeds)
    assert masks.shape == (6, 4, 5)
    assert masks.is_contiguous()


def test_gradient_passes_where_elements_were_kept() -> None:
    x, seed = torch.randn(6, 5, requires_grad=True), torch.tensor(3)
    dropout(x, 0.5, seed).sum().backward()
    assert torch.equal(x.grad, keep_matrix(seed, 6, 5, 0.5) / 0.5)


def test_compiles_into_one_graph() -> None:
    x, seed = torch.randn(6, 5), torch.tensor(3)
    compiled = torch.compile(dropout, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x, 0.5, seed), dropout(x, 0.5, seed))
