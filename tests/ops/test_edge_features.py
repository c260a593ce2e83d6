"""Edge features that come unprojected, with their linear map."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat import ops
from tempergat.ops import Graph
from tempergat.ops.kinds import registered
from tests.support.attention_cases import (
    GRAPHS,
    Settings,
    attend,
    by_torch,
    in_order,
    make_inputs,
)

HEADS, CHANNELS, WIDTH, MODELS = 2, 5, 3, 3
GIVEN = {
    "gatv2": ("z_src", "z_dst", "att", "edge_x", "edge_map"),
    "dot_product": ("value", "key", "query", "edge_x", "edge_map"),
}
KINDS = list(GIVEN)


def _inputs(graph: Graph, kind: str = "gatv2") -> dict[str, Tensor]:
    settings = Settings(edge_width=WIDTH)
    return make_inputs(kind, graph, HEADS, CHANNELS, torch.float64, settings)


def _loss(kind: str, graph: Graph, by_reference: bool = False) -> Any:
    """A loss over output and weights, of a seed and the tensors in `GIVEN`."""

    def loss(seed: Tensor, *given: Tensor) -> Tensor:
        arguments: dict[str, Any] = dict(zip(GIVEN[kind], given, strict=True))
        if by_reference:
            tensors = in_order(kind, arguments)
            numbers = registered(kind).settings.values()
            out, weights = by_torch(kind)(graph, *tensors, *numbers, 0.3, seed)
        else:
            options = {"dropout": 0.3, "dropout_seed": seed, "return_weights": True}
            out, weights = attend(kind, graph, arguments, **options)
        return out.sin().sum() + weights.square().sum()

    return loss


def test_the_map_of_the_features_is_what_is_added_to_the_two_nodes() -> None:
    graph = GRAPHS["self_loops"]()
    inputs = _inputs(graph)
    edge_x, edge_map = inputs["edge_x"], inputs["edge_map"]
    projected = torch.einsum("ed,hcd->ehc", edge_x, edge_map)
    nodes = (inputs["z_src"], inputs["z_dst"], inputs["att"])
    expected = ops.gatv2(graph, *nodes, projected)[0]
    found = ops.gatv2(graph, *nodes, edge_x=edge_x, edge_map=edge_map)[0]
    torch.testing.assert_close(found, expected)
    half = ops.gatv2(graph, *nodes, projected / 2, edge_x / 2, edge_map)[0]
    torch.testing.assert_close(half, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gradients_are_right(kind: str) -> None:
    graph = GRAPHS["bipartite"]()
    inputs = [x.requires_grad_() for x in _inputs(graph, kind).values()]
    seed = torch.tensor([3, -4])
    loss = _loss(kind, graph)
    assert torch.autograd.gradgradcheck(loss, (seed, *inputs), fast_mode=True)


@pytest.mark.parametrize(
    "shared", [(), ("edge_x",), ("edge_x", "edge_map"), ("z_src", "key")]
)
@pytest.mark.parametrize("order", ["vmap of grad", "grad of vmap"])
@pytest.mark.parametrize("kind", KINDS)
def test_many_models_at_once_equal_each_alone(
    kind: str, shared: tuple[str, ...], order: str
) -> None:
    graph = GRAPHS["self_loops"]()
    models = [_inputs(graph, kind) for _ in range(MODELS)]
    seeds = torch.randint(-(2**63), 2**63 - 1, (MODELS, HEADS))
    arguments = [
        models[0][name] if name in shared else torch.stack([m[name] for m in models])
        for name in GIVEN[kind]
    ]
    in_dims = (0, *(None if name in shared else 0 for name in GIVEN[kind]))
    every = (1, 2, 3, 4, 5)
    loss = _loss(kind, graph)
    if order == "vmap of grad":
        gradient = torch.func.vmap(torch.func.grad(loss, every), in_dims)
    else:
        gradient = torch.func.grad(
            lambda *given: torch.func.vmap(loss, in_dims)(*given).sum(), every
        )
    together = gradient(seeds, *arguments)
    alone = torch.func.grad(_loss(kind, graph, True), every)
    each = [
        alone(
            seeds[k],
            *(
                x if name in shared else x[k]
                for name, x in zip(GIVEN[kind], arguments, strict=True)
            ),
        )
        for k in range(MODELS)
    ]
    for k, name in enumerate(GIVEN[kind]):
        expected = torch.stack([gradients[k] for gradients in each])
        if order == "grad of vmap" and name in shared:
            expected = expected.sum(0)
        torch.testing.assert_close(together[k], expected, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_it_compiles_into_one_graph(kind: str) -> None:
    graph = GRAPHS["self_loops"]()
    inputs = [x.requires_grad_() for x in _inputs(graph, kind).values()]
    seed, loss = torch.tensor([3, -4]), _loss(kind, graph)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found = torch.autograd.grad(compiled(seed, *inputs), inputs)
    expected = torch.autograd.grad(loss(seed, *inputs), inputs)
    for name, got, want in zip(GIVEN[kind], found, expected, strict=True):
        torch.testing.assert_close(got, want, msg=name)


def test_features_and_map_that_do_not_fit_are_refused() -> None:
    graph = GRAPHS["random"]()
    inputs = _inputs(graph)
    with pytest.raises(ValueError, match=r"^edge_x needs edge_map as well"):
        ops.gatv2(graph, **{k: v for k, v in inputs.items() if k != "edge_map"})
    with pytest.raises(ValueError, match=r"^edge_map must have shape \[2, 5, 3\]"):
        ops.gatv2(graph, **inputs | {"edge_map": inputs["edge_map"][..., :2]})
    with pytest.raises(ValueError, match=r"^edge_x must have shape \[90, 3\]"):
        ops.gatv2(graph, **inputs | {"edge_x": inputs["edge_x"][1:]})
