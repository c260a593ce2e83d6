"""Padded batches: one size, padding apart from all graphs, and the same training."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GINConv, global_add_pool

import tempergat
from tempergat import GraphLoader, UserError
from tempergat.nn import BatchNorm, gate_penalty
from tests.sampling.small_graphs.drawn import edges, small_graphs


@pytest.mark.parametrize("shuffle", [True, False])
def test_nearly_all_padded_batches_have_one_size(shuffle: bool) -> None:
    # A few graphs are many times larger than the others.
    sizes = (2 + torch.empty(4000).exponential_(0.2) ** 1.5).int().tolist()
    graphs = [Data(x=torch.ones(n, 1), edge_index=edges(n, n * n % 97)) for n in sizes]
    loader = GraphLoader(graphs, 8, shuffle, seed=0, padded=True)
    others = steps = 0
    for _ in range(6 if shuffle else 1):
        for batch in loader:
            steps += 1
            others += (batch.num_nodes, batch.num_edges) != loader.padded_size
            assert batch.num_nodes >= batch.num_real_nodes + 2
    assert others <= (steps / 1000 if shuffle else 0)
    # The size is no larger than most batches need.
    assert loader.padded_size is not None
    assert loader.padded_size.nodes < 8 * max(sizes) / 2


def test_padding_is_apart_from_all_graphs() -> None:
    graphs = small_graphs(40)
    for number, graph in enumerate(graphs):
        nodes = graph.num_nodes
        graph.update({"near_index": torch.arange(nodes), "mask": torch.ones(nodes) > 0})
        graph.name = str(number)
    options: dict[str, Any] = {"shuffle": True, "seed": 1, "follow_batch": ["x"]}
    plain = GraphLoader(graphs, 7, **options)
    padded = GraphLoader(graphs, 7, padded=True, **options)
    for batch, expected in zip(padded, plain, strict=True):
        real, links = int(batch.num_real_nodes), expected.num_edges
        ends, ring = batch.edge_index.split([links, batch.num_edges - links], 1)
        assert real == expected.num_nodes
        assert (batch.batch[real:] == batch.num_graphs).all()
        assert torch.equal(batch.x_batch, batch.batch)
        assert batch.ptr.tolist() == [*expected.ptr.tolist(), batch.num_nodes]
        assert torch.equal(ends, expected.edge_index)
        assert (ring >= real).all()
        assert (ring < batch.num_nodes).all()
        assert (ring[0] != ring[1]).all()
        assert (batch.near_index[real:] >= real).all()
        assert not batch.mask[real:].any()
        assert not batch.x[real:].any()
        assert torch.equal(batch.y, expected.y)
        assert batch.name == expected.name
        graphs_of_both = batch.to_data_list(), expected.to_data_list()
        for graph, original in zip(*graphs_of_both, strict=True):
            torch.testing.assert_close(graph.x, original.x)
            assert torch.equal(graph.edge_index, original.edge_index)


class Network(nn.Module):
    """Two layers with batch norm, and a number for each graph."""

    def __init__(self, make_layer: Callable[[int], nn.Module], edge_dim: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([make_layer(3), make_layer(8)])
        self.norms = nn.ModuleList([BatchNorm(8), BatchNorm(8)])
        self.out, self.edge_dim = nn.Linear(8, 1), edge_dim

    def forward(self, batch: Any) -> Tensor:
        h, more = batch.x, [batch.edge_attr] if self.edge_dim else []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = layer(h, batch.edge_index, *more)
            h = norm(h, batch.get("num_real_nodes")).relu()
        out: Tensor = self.out(global_add_pool(h, batch.batch)[: batch.num_graphs])
        return out


LAYERS: dict[str, tuple[Callable[[int], nn.Module], int]] = {
    "GAT": (lambda width: tempergat.TemperGATConv(width, 4, 2, edge_dim=2), 2),
    "GATv2": (lambda width: tempergat.TemperGATv2Conv(width, 4, 2, edge_dim=2), 2),
    "Transformer": (lambda width: tempergat.TemperTransformerConv(width, 4, 2), 0),
    "PyG's GAT": (lambda width: GATConv(width, 4, 2, edge_dim=2), 2),
    "PyG's GIN": (lambda width: GINConv(nn.Linear(width, 8)), 0),
}


@pytest.mark.parametrize("name", LAYERS)
def test_training_on_padded_batches_gives_the_same_losses_and_weights(
    name: str,
) -> None:
    graphs, results = small_graphs(90), list[Any]()
    for padded in (False, True):
        torch.manual_seed(5)
        model = Network(*LAYERS[name]).double()
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        loader = GraphLoader(graphs, 16, shuffle=True, padded=padded)
        losses = []
        while len(losses) < 50:
            for batch in loader:
                optimizer.zero_grad()
                loss = mse_loss(model(batch), batch.y) + 0.1 * gate_penalty(model)
                loss.backward()
                optimizer.step()
                losses.append(loss.detach())
        results.append((torch.stack(losses), model.state_dict()))
    (losses, weights), (padded_losses, padded_weights) = results
    torch.testing.assert_close(padded_losses, losses, rtol=1e-9, atol=0)
    # Before batch norm a bias has no gradient, and Adam scales up what is rounded.
    torch.testing.assert_close(padded_weights, weights, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_batch_norm_over_rows_in_use_is_that_of_these_rows_in_half_precision(
    kind: torch.dtype,
) -> None:
    x = (torch.randn(1003, 4) + 3).to(kind)
    x[1000:] = 0
    one, other = BatchNorm(4), BatchNorm(4)
    out, expected = one(x, torch.tensor(1000)), other(x[:1000])
    torch.testing.assert_close(out[:1000], expected)
    torch.testing.assert_close(one.state_dict(), other.state_dict())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"part": torch.ones(17)}, "padded=True cannot pad 'part'"),
        ({"face": torch.zeros(3, 5).long()}, "padded=True cannot pad 'face'"),
        ({"my_batch": torch.ones(1).long()}, "padded=True cannot pad 'my_batch'"),
        ({"edge_index": None}, "padded=True needs graphs with edge_index"),
    ],
)
def test_what_cannot_be_padded_is_named(more: dict[str, Any], message: str) -> None:
    graphs = [graph.update(more) for graph in small_graphs(5)]
    graphs[0].update({k: x[..., :3] for k, x in more.items() if x is not None})
    with pytest.raises(UserError, match=re.escape(message)):
        GraphLoader(graphs, 2, padded=True)
