"""Dropout on a CUDA device."""

import pytest
import torch

from tempergat.ops import random
from tempergat.ops.features.dropout import dropout

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("shape", [(7,), (300, 257), (4, 2, 33), (70_000, 1)])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16]
)
def test_the_same_elements_are_dropped_as_by_the_reference(shape, dtype):
    x, seed = torch.randn(shape, device="cuda", dtype=dtype), torch.tensor(-12345)
    for rate in (0.1, 0.6):
        expected = random.dropout(x, rate, seed.cuda())
        assert torch.equal(dropout(x, rate, seed.cuda()), expected)
        on_cpu = dropout(x.cpu(), rate, seed)
        assert torch.equal(on_cpu, expected.cpu())


def test_many_seeds_at_once_drop_what_each_drops():
    x = torch.randn(50, 300, 64, device="cuda", requires_grad=True)
    seeds = torch.randint(2**62, (50,), device="cuda")
    together = torch.func.vmap(lambda x, seed: dropout(x, 0.5, seed))(x, seeds)
    shared = torch.func.vmap(lambda seed: dropout(x[0, :, 0], 0.5, seed))(seeds)
    together.sum().backward()
    for model, seed in enumerate(seeds):
        assert torch.equal(together[model], random.dropout(x[model], 0.5, seed))
        assert torch.equal(shared[model], random.dropout(x[0, :, 0], 0.5, seed))
        kept = random.dropout(torch.ones_like(x[model]), 0.5, seed)
        assert torch.equal(x.grad[model], kept)


def test_a_seed_may_lie_on_the_host():
    x, seed = torch.randn(30, 7, device="cuda"), torch.tensor(5)
    assert torch.equal(dropout(x, 0.5, seed), dropout(x, 0.5, seed.cuda()))
