"""Dropout and sparse features on a CUDA device."""

import pytest
import torch

from tempergat.ops import fold_in, random
from tempergat.ops.features.elementwise import dropout
from tempergat.ops.features.sparse import SparseFeatures, linear
from tempergat.ops.features.sums import aggregate_plainly

pytestmark = pytest.mark.gpu


def random_features(nodes: int, features: int) -> SparseFeatures:
    dense = torch.randn(nodes, features) * (torch.rand(nodes, features) < 0.1)
    return SparseFeatures.from_torch(dense).to("cuda")


@pytest.mark.parametrize(
    ("sets", "channels"), [(1, 3), (1, 1000), (3, 7), (40, 64), (2, 300)]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_aggregation_agrees_with_plain_torch(sets, channels, dtype):
    from tempergat.ops.gpu.features import aggregate as gpu_aggregate

    features = random_features(50, 30)
    for rows, others in ((features.by_node, 30), (features.by_feature, 50)):
        values = torch.randn(features.values.numel(), sets, device="cuda", dtype=dtype)
        x = torch.randn(others, sets, channels, device="cuda", dtype=dtype)
        found = gpu_aggregate.run(rows, values, x)
        expected = aggregate_plainly(rows, values, x)
        assert torch.allclose(found, expected, rtol=1e-5, atol=1e-5)
        assert torch.equal(gpu_aggregate.run(rows, values, x), found)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_agrees_with_plain_torch(dtype):
    from tempergat.ops.gpu.features import aggregate as gpu_aggregate

    features = random_features(50, 30)
    values = torch.randn(features.values.numel(), 2, device="cuda", dtype=dtype)
    x = torch.randn(30, 2, 7, device="cuda", dtype=dtype)
    found = gpu_aggregate.run(features.by_node, values, x)
    expected = aggregate_plainly(features.by_node, values, x)
    assert found.dtype == dtype
    assert torch.allclose(found, expected, rtol=0.02, atol=0.02)


def test_many_models_at_once_agree_with_one_by_one():
    features = random_features(60, 40)
    weight = torch.randn(5, 8, 40, device="cuda", requires_grad=True)
    seeds = torch.arange(5, device="cuda")

    def project(w, seed):
        return linear(features.dropout(0.4, seed), w)

    together = torch.func.vmap(project)(weight, seeds)
    alone = torch.stack([project(weight[i], seeds[i]) for i in range(5)])
    assert torch.allclose(together, alone, atol=1e-5)
    dense = torch.stack(
        [
            features.dropout(0.4, s).to_dense() @ weight[i].t()
            for i, s in enumerate(seeds)
        ]
    )
    assert torch.allclose(together, dense, atol=1e-4)
    ours = torch.autograd.grad(together.pow(2).sum(), weight, retain_graph=True)[0]
    expected = torch.autograd.grad(dense.pow(2).sum(), weight)[0]
    assert torch.allclose(ours, expected, atol=1e-2, rtol=1e-4)


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


@pytest.mark.parametrize("data", [torch.arange(7), torch.tensor(2**40), -(2**62)])
def test_seeds_are_those_of_the_plain_formula(data):
    seed = torch.tensor(-(2**63) + 5)
    on_device = data.cuda() if isinstance(data, torch.Tensor) else data
    assert torch.equal(
        fold_in(seed.cuda(), on_device).cpu(), random.fold_in(seed, data)
    )
