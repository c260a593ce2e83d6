"""The GPU kernels, run by Triton's interpreter on the CPU, against the reference.

This checks what is computed, not the compiled code, which
tests/ops/gpu/test_attention.py does.
"""

import pytest

from tests.support.interpreted import run_interpreted

PROGRAM = """
import sys
import torch
from tempergat.ops import gpu
from tempergat.ops.calls import Backward, Forward, Saved, sum_copies
from tempergat.ops.gpu import gatv2
from tempergat.ops.gpu import schedule as gpu_schedule
from tests.support.attention_cases import (
    GRAPHS, NAMES, Settings, by_torch, error_of_torch, in_order, make_inputs, number_of,
    results, scale_of)

# Rows are cut, and programs serve several items, even on graphs this small.
gpu_schedule.LONGEST = gpu_schedule.LONGEST_OF_SMALL = 8
gatv2._TARGET_PROGRAMS = 3
torch.manual_seed(0)
kind, name = sys.argv[1:]
# The bipartite graph stands twice side by side, and its rows count as short.
copies = 1
if name == "bipartite":
    copies, gpu_schedule._MANY, gpu_schedule._SHORT = 2, 1, 100
graph = GRAPHS[name]().repeat(copies)
heads, channels = 3, 5
# On the bipartite graph the kernels take edge features that are not projected.
width = 3 if kind != "gat" and name == "bipartite" else 0
options = Settings(
    edge=name != "bipartite", edge_width=width, dropout=0.3, weights=True,
    targets="own" if name == "bipartite" else "shared",
    theta="head" if name == "bipartite" else "layer",
    edge_weight=True, edge_bias=(kind, name) != ("gatv2", "self_loops"),
    shared_edges=kind == "gat")
inputs = make_inputs(kind, graph, heads, channels, torch.float32, options)
seed = torch.randint(-(2**63), 2**63 - 1, (heads,))
shape = (graph.num_dst, heads, channels)
incoming = torch.randn(shape), torch.randn(graph.num_all_edges, heads)
truth, same = (
    results(kind, by_torch(kind), graph,
            {k: v.to(dtype) for k, v in inputs.items()}, options, seed, incoming)
    for dtype in (torch.float64, torch.float32))
names = NAMES[kind]
arguments = tuple(in_order(kind, inputs))
rows = (graph.by_target, graph.by_source)
kernels, number = gpu.kernels(kind), (number_of(kind, inputs, options),)
out, lse, weights, *state = kernels.forward(
    Forward(arguments, seed, *rows, copies, number, 0.3, True))
saved = Saved(arguments, seed, out, lse, tuple(state), *rows)
wanted = (True,) * len(names)
gradients = kernels.backward(
    Backward(*incoming, saved, copies, number, 0.3, wanted))
found = {"out": out, "weights": weights}
found |= {
    "d" + n: sum_copies(g, inputs[n])
    for n, g in zip(names, gradients) if n in inputs}
assert found.keys() == truth.keys()
for n, exact in truth.items():
    error = (found[n].double() - exact).abs().max()
    # At most twice that of PyTorch, as in tests/support/attention_cases.py.
    allowed = 2 * (same[n].double() - exact).abs().max()
    scale = scale_of(n, truth, inputs)
    floor = 8 * torch.finfo(torch.float32).eps * scale
    if error > allowed + floor:
        # One draw of PyTorch's own may be exact by luck.
        allowed = 2 * error_of_torch(kind, n, graph, inputs, options, seed)
    assert error <= allowed + floor, (n, float(error))
"""


@pytest.mark.parametrize("graph", ["self_loops", "bipartite"])
@pytest.mark.parametrize("kind", ["gat", "gatv2", "dot_product"])
def test_interpreted_kernels_agree_with_float64(kind: str, graph: str) -> None:
    run_interpreted(PROGRAM, kind, graph)


SPARSE = """
import torch
from tempergat.ops import gpu, random
from tempergat.ops.features.sparse import SparseFeatures
from tempergat.ops.features.sums import aggregate_plainly
from tempergat.ops.gpu import schedule as gpu_schedule

gpu_schedule.LONGEST = gpu_schedule.LONGEST_OF_SMALL = 4
torch.manual_seed(0)
dense = torch.randn(9, 13) * (torch.rand(9, 13) < 0.5)
features = SparseFeatures.from_torch(dense)
stored, run = features.values.numel(), gpu.kernels("aggregate").run
for models, channels in ((1, 70), (3, 8), (2, 5)):
    seeds = torch.arange(models) + 2**40
    values = gpu.kernels("dropout").run(features.values.view(1, 1, -1), seeds, 0.5)
    for model, seed in enumerate(seeds):
        expected = random.dropout(features.values, 0.5, seed)
        assert torch.equal(values[0, model], expected)
    values = values[0].t()
    weight, gradient = (torch.randn(n, models, channels) for n in (13, 9))
    gradient[3:7] = 0.0
    gradient[4, -1, -1] = 1.0
    for rows, x, known in (
        (features.by_node, weight, {"in_order": True}),
        (features.by_feature, gradient, {"skip_zeros": True}),
    ):
        exact = aggregate_plainly(rows, values.double(), x.double())
        found = run(rows, values, x, **known)
        assert (found - exact).abs().max() < 2e-6 * exact.abs().max()
        if models == 3:
            found = run(rows, values, x)
            assert (found - exact).abs().max() < 2e-6 * exact.abs().max()
        broken = torch.where(x == 0.0, float("nan"), x)
        assert run(rows, values, broken, **known).isnan().any() == (x == 0.0).any()
"""

OUTER = """
import torch
from tempergat.ops import gpu

torch.manual_seed(0)
for nodes, models, outs, features in ((1100, 2, 7, 64), (40, 3, 16, 8), (300, 2, 2, 7)):
    dout, x = torch.randn(nodes, models, outs), torch.randn(nodes, models, features)
    found = gpu.kernels("outer").run(dout, x)
    exact = torch.einsum("nbo,nbf->bof", dout.double(), x.double())
    assert (found - exact).abs().max() < 2e-6 * exact.abs().max()
"""

EDGE_MAPS = """
import torch
from tempergat.ops.gpu.edge_maps import add_push, map_gradient, pull_back


def check(found, formula, *tensors, start=0.0):
    exact = start + torch.einsum(formula, *[x.double() for x in tensors])
    assert found.shape == exact.shape
    assert (found - exact).abs().max() < 2e-6 * exact.abs().max()


torch.manual_seed(0)
for nodes, heads, channels, width in ((99, 3, 20, 5), (70, 16, 32, 8), (90, 2, 80, 70)):
    both = torch.randn(nodes, 2, heads, channels)
    edge_map = torch.randn(heads, channels, width)
    c, du = torch.randn(2, nodes, heads, width)
    # With space between rows, and without.
    for x in (both[:, 1], both[:, 1].contiguous(), both[:, 1].half()):
        check(pull_back(x, edge_map), "thc,hcd->thd", x, edge_map)
        joined = (torch.cat([x.float(), both[:, 0]]), torch.cat([du, c]))
        check(map_gradient(x, du, both[:, 0], c), "thc,thd->hcd", *joined)
    out = torch.randn(nodes, heads, channels)
    start = out.double()
    add_push(out, c, edge_map)
    check(out, "thd,hcd->thc", c, edge_map, start=start)
"""


@pytest.mark.parametrize(
    "program", [SPARSE, OUTER, EDGE_MAPS], ids=["sparse", "outer", "edge maps"]
)
def test_interpreted_products_of_models_and_heads_agree_with_float64(
    program: str,
) -> None:
    run_interpreted(program)


def test_interpreted_gather_copies_rows() -> None:
    run_interpreted("""
import torch
from tempergat.ops.gpu.features import gather

for width in (8, 100, 7, 3000):
    x, index = torch.randn(50, width), torch.randint(50, (33,), dtype=torch.int32)
    assert torch.equal(gather.run(x, index), x[index.long()]), width
""")
