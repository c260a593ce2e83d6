"""The fused ops as torch sees them: batching, compiling, differentiating."""

import importlib
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from tempergat import ops
from tempergat.ops import Graph, reference
from tempergat.ops.kinds import registered
from tempergat.ops.registration import fold
from tests.support.attention_cases import (
    GRAPHS,
    Settings,
    by_torch,
    in_order,
    make_inputs,
    padded,
)

pytestmark = pytest.mark.usefixtures("kernels")
KINDS = ["gat", "gatv2", "dot_product"]
MODELS, HEADS, CHANNELS = 3, 2, 5


def _loss(kind: str, graph: Graph, use: Any = None) -> Any:
    """A loss over output and weights (an entropy), of all arguments and the seed."""

    def loss(seed: Tensor, *arguments: Tensor | None) -> Tensor:
        if use is reference:
            numbers = registered(kind).settings.values()
            call = by_torch(kind)
            out, weights = call(graph, *padded(kind, arguments), *numbers, 0.3, seed)
        else:
            out, weights = ops.attend(
                kind,
                graph,
                *arguments,
                dropout=0.3,
                dropout_seed=seed,
                return_weights=True,
            )
        entropy = (weights * (weights + 1e-3).log()).sum()
        return (out.sin().sum() + entropy).to(torch.float64)

    return loss


def _batch(kind: str, graph: Graph) -> tuple[Tensor, list[Tensor]]:
    # All inputs in order: other temperatures come after edge features.
    options = Settings(edge=True, theta="head" if kind == "gat" else None)
    models = [
        make_inputs(kind, graph, HEADS, CHANNELS, torch.float64, options).values()
        for _ in range(MODELS)
    ]
    seeds = torch.randint(-(2**63), 2**63 - 1, (MODELS, HEADS))
    return seeds, [torch.stack(x) for x in zip(*models, strict=True)]


@pytest.mark.parametrize(
    ("kind", "shared"),
    [
        *[("gat", k) for k in range(7)],
        *[("gatv2", k) for k in range(5)],
        *[("dot_product", k) for k in range(4)],
    ],
)
def test_tensors_shared_by_models_are_not_batched(kind: str, shared: int) -> None:
    graph = GRAPHS["bipartite"]()
    seeds, batch = _batch(kind, graph)
    arguments: list[Tensor] = [seeds, *batch]
    arguments[shared] = arguments[shared][0]
    in_dims = tuple(None if k == shared else 0 for k in range(len(arguments)))
    every = tuple(range(1, 1 + len(batch)))
    gradient = torch.func.grad(_loss(kind, graph), every)
    together = torch.vmap(gradient, in_dims)(*arguments)
    alone = torch.func.grad(_loss(kind, graph, reference), every)
    for model in range(MODELS):
        mine = [x if k == shared else x[model] for k, x in enumerate(arguments)]
        for got, want in zip(together, alone(*mine), strict=True):
            torch.testing.assert_close(got[model], want)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_of_a_batch_equals_the_sum_of_gradients(kind: str) -> None:
    graph = GRAPHS["random"]()
    seeds, batch = _batch(kind, graph)

    def total(z: Tensor) -> Tensor:
        return torch.vmap(_loss(kind, graph))(seeds, z, *batch[1:]).sum()

    leaf = batch[0].clone().requires_grad_()
    total(leaf).backward()
    torch.testing.assert_close(torch.func.grad(total)(batch[0]), leaf.grad)
    alone = torch.func.grad(_loss(kind, graph, reference), 1)
    expected = [alone(seeds[m], *(x[m] for x in batch)) for m in range(MODELS)]
    torch.testing.assert_close(leaf.grad, torch.stack(expected))


def test_folding_models_into_heads_copies_nothing_when_the_layout_fits() -> None:
    stored = torch.randn(7, MODELS, HEADS, CHANNELS)
    folded = fold(stored.movedim(1, 0), 0, 1, MODELS)
    assert folded.shape == (7, MODELS * HEADS, CHANNELS)
    assert folded.data_ptr() == stored.data_ptr()


def test_the_output_of_many_models_is_ready_for_the_next_layer() -> None:
    graph = GRAPHS["random"]()
    _, (z, att_src, att_dst, *_) = _batch("gat", graph)

    def layer(z: Tensor, s: Tensor, d: Tensor) -> Tensor:
        return ops.gat(graph, z, s, d)[0]

    out = torch.vmap(layer, out_dims=1)(z, att_src, att_dst)
    assert out.shape == (23, MODELS, HEADS, CHANNELS)
    assert out.is_contiguous()


@pytest.mark.parametrize("kind", KINDS)
def test_compiles_into_one_graph_with_the_same_gradients(kind: str) -> None:
    graph = GRAPHS["self_loops"]()
    inputs = [
        x.requires_grad_()
        for x in make_inputs(
            kind, graph, HEADS, CHANNELS, torch.float64, Settings()
        ).values()
    ]
    seed = torch.tensor([1, -2])
    loss = _loss(kind, graph)
    expected = torch.autograd.grad(loss(seed, *inputs), inputs)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found = torch.autograd.grad(compiled(seed, *inputs), inputs)
    for got, want in zip(found, expected, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("kind", KINDS)
def test_edges_are_grouped_by_source_only_for_a_gradient(kind: str) -> None:
    with torch.no_grad():
        graph = GRAPHS["random"]()
    inputs = make_inputs(kind, graph, HEADS, CHANNELS, torch.float32, Settings())
    ops.attend(kind, graph, *inputs.values())
    assert graph._by_source is None
    leaves = [x.requires_grad_() for x in inputs.values()]
    with torch.no_grad():
        ops.attend(kind, graph, *leaves)
    assert graph._by_source is None
    ops.attend(kind, graph, *leaves)[0].sum().backward()
    assert graph._by_source is not None


@pytest.mark.parametrize("kind", KINDS)
# torch 2.15's own check reads gradients of tensors that have none.
@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_ops_keep_torchs_contract(kind: str) -> None:
    graph = GRAPHS["random"]()
    options = Settings(edge=True, edge_width=3, theta="head")
    inputs = make_inputs(kind, graph, HEADS, CHANNELS, torch.float64, options)
    for x in inputs.values():
        x.requires_grad_()
    leaves = in_order(kind, inputs)
    shape = (graph.num_dst, HEADS, CHANNELS)
    after = [torch.randn(n, dtype=torch.float64) for n in (shape, shape, shape[1:])]
    for x in after:
        x.requires_grad_()
    seed = torch.tensor([3, 4])
    edges = (*graph.by_target, *graph.by_source)
    op = getattr(torch.ops.tempergat, f"{kind}_forward")
    arguments = (*leaves, *after, seed, *edges, 1, 0.2, 0.5, True, True)
    torch.library.opcheck(op.default, arguments)
    out, attended, lse, weights, total, *state = op(*arguments)
    backward = getattr(torch.ops.tempergat, f"{kind}_backward")
    logit, _, bias = after
    saved = [
        None if x is None else x.detach()
        for x in (*leaves, logit, bias, seed, attended, lse, *state)
    ]
    given = [torch.randn_like(x) for x in (out, weights, total)]
    numbers = (1, 0.2, 0.5, 2 ** (len(leaves) + 1) - 1)
    torch.library.opcheck(backward.default, (*given, *saved, *edges, *numbers))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_forward_mode_goes_through_the_reference(kind: str) -> None:
    graph = GRAPHS["random"]()
    inputs = make_inputs(kind, graph, HEADS, CHANNELS, torch.float64, Settings())
    first, *rest = inputs.values()
    tangent, seed = torch.randn_like(first), torch.tensor([3, 4])
    chosen = []

    def loss(z: Tensor) -> Tensor:
        chosen.append(ops.explain(graph, z))
        return _loss(kind, graph)(seed, z, *rest)

    _, slope = torch.func.jvp(loss, (first,), (tangent,))
    expected = torch.func.grad(_loss(kind, graph), 1)(seed, first, *rest)
    torch.testing.assert_close(slope, (expected * tangent).sum())
    assert chosen[0].backend == "reference"
    assert "forward-mode" in chosen[0].refused["cpu"]


@pytest.mark.parametrize("kind", KINDS)
def test_works_under_autocast(kind: str) -> None:
    graph = GRAPHS["random"]()
    inputs = make_inputs(kind, graph, HEADS, CHANNELS, torch.float32, Settings())
    first, *rest = inputs.values()
    weight = torch.eye(CHANNELS, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        z = first @ weight
        out, _ = ops.attend(kind, graph, z, *rest)
    assert z.dtype == out.dtype == torch.bfloat16
    out.float().sum().backward()
    assert weight.grad is not None
    expected, _ = ops.attend(kind, graph, first, *rest)
    torch.testing.assert_close(out.float(), expected, rtol=0.03, atol=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_checkpointed_call_has_the_same_gradients(kind: str) -> None:
    graph = GRAPHS["random"]()
    inputs = make_inputs(kind, graph, HEADS, CHANNELS, torch.float32, Settings())
    leaves = [x.requires_grad_() for x in inputs.values()]
    seed = torch.tensor([3, 4])
    loss = _loss(kind, graph)
    expected = torch.autograd.grad(loss(seed, *leaves), leaves)
    again = checkpoint(loss, seed, *leaves, use_reentrant=False)
    for got, want in zip(torch.autograd.grad(again, leaves), expected, strict=True):
        assert torch.equal(got, want)


# torch 2.6 warns of the graph's tensors, which it then writes into the program.
@pytest.mark.filterwarnings("ignore:(Attempted to insert a get_attr|Node lifted)")
def test_exported_program_holds_plain_pytorch_only() -> None:
    graph = GRAPHS["random"]()

    class Layer(torch.nn.Module):
        def forward(self, z: Tensor, att: Tensor) -> Tensor:
            return ops.gat(graph, z, att, att)[0]

    arguments = (torch.randn(23, HEADS, CHANNELS), torch.randn(HEADS, CHANNELS))
    program = torch.export.export(Layer(), arguments, strict=False)
    assert "tempergat" not in str(program.graph)
    torch.testing.assert_close(program.module()(*arguments), Layer()(*arguments))


def test_features_on_another_device_than_the_graph_are_refused() -> None:
    graph = GRAPHS["random"]()
    z = torch.empty(23, HEADS, CHANNELS, device="meta")
    assert "meta" in ops.explain(graph, z).refused["cpu"]


def test_a_wider_vector_widens_the_work_but_not_the_output() -> None:
    graph = GRAPHS["random"]()
    z = torch.randn(23, HEADS, CHANNELS, requires_grad=True)
    att = torch.randn(HEADS, CHANNELS, dtype=torch.float64)
    out, weights = ops.gat(graph, z, att, att, return_weights=True)
    assert weights is not None
    assert (out.dtype, weights.dtype) == (torch.float32, torch.float64)
    out.sum().backward()
    assert z.grad is not None
    assert z.grad.dtype == torch.float32


def test_the_gradient_of_the_weights_alone_reaches_the_vector() -> None:
    graph = GRAPHS["random"]()
    z = torch.randn(23, HEADS, CHANNELS, dtype=torch.float64)
    att = torch.randn(HEADS, CHANNELS, dtype=torch.float64, requires_grad=True)
    _, weights = ops.gat(graph, z, att, att, return_weights=True)
    assert weights is not None
    (found,) = torch.autograd.grad((weights * weights.log()).sum(), att)
    _, weights = by_torch("gat")(graph, z, att, att, 0.2, 0.0, None)
    (expected,) = torch.autograd.grad((weights * weights.log()).sum(), att)
    torch.testing.assert_close(found, expected)
    assert found.abs().sum() > 0


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("elementwise", "dropout"),
        ("dense", "dense_linear"),
        ("dense", "dense_outer"),
        ("sparse", "sparse_linear"),
    ],
)
def test_ops_the_layers_always_use_run_on_any_device(module: str, name: str) -> None:
    importlib.import_module(f"tempergat.ops.features.{module}")
    has_kernel = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    for device in ("CPU", "CUDA", "MPS", "XPU"):
        assert has_kernel(f"tempergat::{name}", device), device
