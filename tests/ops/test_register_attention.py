"""A third attention needs its reference and one registration, nothing else."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat import ops
from tempergat.ops import Graph, Input
from tempergat.ops.kinds import registered
from tempergat.ops.random import keep_mask
from tempergat.ops.reference import at_source, at_target
from tests.support.attention_cases import GRAPHS

HEADS, CHANNELS, MODELS = 2, 5, 3


def dot_product(
    graph: Graph,
    value: Tensor,
    key: Tensor,
    query: Tensor,
    scale: float,
) -> Tensor:
    return (at_source(graph, key) * at_target(graph, query)).sum(-1) * scale


@pytest.fixture(name="dot", scope="module")
def register_dot_product() -> str:
    ops.register_attention(
        "dot",
        inputs=[Input("value", "SHC"), Input("key", "SHC"), Input("query", "THC")],
        reference=dot_product,
        settings={"scale": 1.0},
    )
    return "dot"


def _inputs(graph: Graph, *batch: int) -> list[Tensor]:
    rows = (graph.num_src, graph.num_src, graph.num_dst)
    return [torch.randn(*batch, n, HEADS, CHANNELS, dtype=torch.float64) for n in rows]


def test_a_registered_attention_runs_by_its_reference_with_dropout_and_weights(
    dot: str,
) -> None:
    graph = GRAPHS["bipartite"]()
    inputs, seed = _inputs(graph), torch.tensor([3, -4])
    out, weights = ops.attend(
        dot,
        graph,
        *inputs,
        scale=0.5,
        dropout=0.4,
        dropout_seed=seed,
        return_weights=True,
    )
    every = (*inputs, None, None)
    expected = registered(dot).by_reference(graph, every, (0.5,), 0.4, seed)
    assert torch.equal(out, expected[0])
    assert torch.equal(weights, expected[1])
    assert torch.equal(weights != 0, keep_mask(seed, graph.edge_id[:, None], 0.4))
    assert ops.attend(dot, graph, *inputs)[1] is None


def test_the_choice_says_that_there_are_no_kernels(dot: str) -> None:
    graph = GRAPHS["random"]()
    choice = ops.explain(graph, *_inputs(graph), attention=dot)
    assert choice.backend == "reference"
    assert choice.refused["cpu"] == "there are no cpu kernels for dot"


def _loss(dot: str, graph: Graph) -> Any:
    def loss(seed: Tensor, *inputs: Tensor) -> Tensor:
        out, weights = ops.attend(
            dot,
            graph,
            *inputs,
            dropout=0.3,
            dropout_seed=seed,
            return_weights=True,
        )
        assert weights is not None
        return out.sin().sum() + weights.square().sum()

    return loss


def test_it_has_gradients_of_any_order(dot: str) -> None:
    graph = GRAPHS["self_loops"]()
    inputs = [x.requires_grad_() for x in _inputs(graph)]
    seed = torch.tensor([3, -4])
    assert torch.autograd.gradcheck(_loss(dot, graph), (seed, *inputs))
    loss = _loss(dot, graph)
    assert torch.autograd.gradgradcheck(loss, (seed, *inputs), fast_mode=True)


def test_many_models_at_once_equal_each_alone(dot: str) -> None:
    graph = GRAPHS["self_loops"]()
    batch, seeds = _inputs(graph, MODELS), torch.arange(6).view(MODELS, HEADS)
    gradient = torch.func.grad(_loss(dot, graph), (1, 2, 3))
    together = torch.vmap(gradient)(seeds, *batch)
    for model in range(MODELS):
        alone = gradient(seeds[model], *(x[model] for x in batch))
        for got, want in zip(together, alone, strict=True):
            torch.testing.assert_close(got[model], want)


def test_it_compiles_into_one_graph(dot: str) -> None:
    graph = GRAPHS["self_loops"]()
    inputs = [x.requires_grad_() for x in _inputs(graph)]
    seed, loss = torch.tensor([3, -4]), _loss(dot, graph)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found = torch.autograd.grad(compiled(seed, *inputs), inputs)
    expected = torch.autograd.grad(loss(seed, *inputs), inputs)
    for got, want in zip(found, expected, strict=True):
        torch.testing.assert_close(got, want)


def test_a_wrong_argument_is_refused_by_name(dot: str) -> None:
    graph = GRAPHS["random"]()
    value, key, query = _inputs(graph)
    with pytest.raises(ValueError, match=r"^query must have shape \[23, 2, 5\]"):
        ops.attend(dot, graph, value, key, query[:-1])
    with pytest.raises(ValueError, match=r"^query must have shape .* got None"):
        ops.attend(dot, graph, value, key)
    with pytest.raises(ValueError, match="dot takes value, key, query, got 4"):
        ops.attend(dot, graph, value, key, query, query)
    with pytest.raises(ValueError, match="dot has no setting slope; it has scale"):
        ops.attend(dot, graph, value, key, query, slope=0.1)
    with pytest.raises(ValueError, match="no attention called 'absent'; there are gat"):
        ops.attend("absent", graph, value)


def test_a_registration_that_cannot_be_served_is_refused(dot: str) -> None:
    with pytest.raises(ValueError, match="'dot' is registered already"):
        ops.register_attention(dot, inputs=[Input("z", "SHC")], reference=dot_product)
    with pytest.raises(ValueError, match="has shape 'SHC'"):
        ops.register_attention("a", inputs=[], reference=dot_product)
    with pytest.raises(ValueError, match="shape of 'edge' is 'EX'"):
        ops.register_attention(
            "a",
            inputs=[Input("z", "SHC"), Input("edge", "EX")],
            reference=dot_product,
        )


def test_an_input_may_have_one_dimension() -> None:
    def scaled(graph: Graph, value: Tensor, scale: Tensor) -> Tensor:
        return at_source(graph, value).sum(-1) * scale

    kind = ops.register_attention(
        "scaled", inputs=[Input("value", "SHC"), Input("scale", "H")], reference=scaled
    )
    graph = GRAPHS["random"]()
    value, scale = _inputs(graph)[0], torch.randn(HEADS, dtype=torch.float64)
    out, _ = ops.attend("scaled", graph, value, scale)
    every = (value, scale, None, None)
    assert torch.equal(out, kind.by_reference(graph, every, (), 0.0, None)[0])
    with pytest.raises(ValueError, match=r"^scale must have shape \[2\]"):
        ops.attend("scaled", graph, value, scale[:1])
