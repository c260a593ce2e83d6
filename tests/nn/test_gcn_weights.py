"""Graph convolution with edge weights, compared with PyG's GCNConv."""

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch_geometric.nn import GCNConv

from tempergat import Graph
from tempergat.nn import build_model
from tempergat.nn.conv.gcn import GCNLayer

NODES, EDGES = 12, 40


def weighted_graph(*, loops: bool) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    edges = torch.randint(0, NODES, (2, EDGES), generator=generator)
    edges[1] = torch.where(edges[0] == edges[1], (edges[1] + 1) % NODES, edges[1])
    if loops:
        edges[:, :4] = torch.arange(4)
    weight = torch.rand(EDGES, generator=generator) * 4
    weight[5] = 0.0
    return torch.randn(NODES, 5, generator=generator), edges, weight


@pytest.mark.parametrize("as_graph", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_weights_enter_the_normalisation_as_in_pyg(loops: bool, as_graph: bool) -> None:
    x, edges, weight = weighted_graph(loops=loops)
    torch.manual_seed(0)
    theirs = GCNConv(5, 3)
    ours = GCNLayer(5, 3, residual=False)
    ours.load_state_dict(theirs.state_dict())
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    weights = [weight.clone().requires_grad_() for _ in range(2)]
    form = Graph(edges, NODES) if as_graph else edges
    mine = ours(inputs[0], form, edge_weight=weights[0])
    expected = theirs(inputs[1], edges, weights[1])
    torch.testing.assert_close(mine, expected)
    mine.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad)
    torch.testing.assert_close(ours.lin.weight.grad, theirs.lin.weight.grad)
    positive = weight > 0
    torch.testing.assert_close(weights[0].grad[positive], weights[1].grad[positive])


def test_weights_of_one_change_nothing() -> None:
    x, edges, _ = weighted_graph(loops=True)
    layer = GCNLayer(5, 3, residual=False)
    ones = torch.ones(EDGES)
    torch.testing.assert_close(layer(x, edges, edge_weight=ones), layer(x, edges))


def test_many_models_at_once_use_the_weights() -> None:
    x, edges, weight = weighted_graph(loops=True)
    graph = Graph(edges, NODES)
    model = build_model("gcn", 5, 4, 3)
    states = [
        {k: v.detach() + i for k, v in model.state_dict().items()} for i in range(3)
    ]
    stacked = {k: torch.stack([s[k] for s in states]) for k in states[0]}

    def run(state: dict[str, Tensor]) -> Tensor:
        found: Tensor = functional_call(
            model, state, (x, graph), {"edge_weight": weight}
        )
        return found

    together = vmap(run)(stacked)
    for number, state in enumerate(states):
        torch.testing.assert_close(together[number], run(state))


def test_methods_without_use_for_weights_refuse_them() -> None:
    x, edges, weight = weighted_graph(loops=False)
    with pytest.raises(ValueError, match="edge_weight was given"):
        build_model("mlp", 5, 8, 3)(x, edges, edge_weight=weight)
    with pytest.raises(ValueError, match="one weight per edge"):
        build_model("gcn", 5, 8, 3)(x, edges, edge_weight=weight[1:])
