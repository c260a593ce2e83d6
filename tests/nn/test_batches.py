"""Graphs whose targets are the first of their sources, layer by layer."""

import pytest
import torch
from torch import Tensor

from tempergat import Graph, ops
from tempergat.nn import METHODS, build_model, gate_penalty
from tempergat.nn.conv.gat import TemperGATConv
from tempergat.nn.conv.gatv2 import TemperGATv2Conv
from tempergat.nn.conv.gcn import GCNLayer

# Hop by hop: 3 seeds, 4 nodes that only the first hop reaches, 5 of the second hop.
HOPS = (3, 4, 5)
NODES = sum(HOPS)


def sampled_edges() -> tuple[Tensor, list[int]]:
    """Edges sorted by target, and how many there are up to each hop."""
    generator = torch.Generator().manual_seed(2)
    edges, counts, targets, sources = [], [], 0, HOPS[0]
    for hop, new in enumerate(HOPS[1:]):
        sources += new
        for target in range(targets, targets + HOPS[hop]):
            drawn = torch.randperm(sources, generator=generator)[:3]
            drawn = drawn[drawn != target]
            edges += [(int(source), target) for source in drawn.sort().values]
        targets += HOPS[hop]
        counts.append(len(edges))
    return torch.tensor(edges).t().contiguous(), counts


EDGES, COUNTS = sampled_edges()
X = torch.randn(NODES, 6, generator=torch.Generator().manual_seed(0))


def graphs_of_layers() -> tuple[Graph, Graph]:
    outer = Graph(EDGES, (NODES, HOPS[0] + HOPS[1]))
    inner = Graph(EDGES[:, : COUNTS[0]], (HOPS[0] + HOPS[1], HOPS[0]))
    return outer, inner


def gradients(model: torch.nn.Module, out: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    out.square().sum().backward()
    return {
        name: p.grad.clone()
        for name, p in model.named_parameters()
        if p.grad is not None
    }


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_batch_layer_by_layer_gives_the_seeds_what_the_whole_batch_gives_them(
    method: str, residual: bool
) -> None:
    torch.manual_seed(0)
    model = build_model(method, 6, 8, 3, heads=2, residual=residual, norm="batch")
    # In training, batch norm sees fewer rows.
    model.norms.eval()
    whole = model(X, Graph(EDGES, NODES))[: HOPS[0]]
    expected = gradients(model, whole)
    out = model(X, graphs_of_layers())
    assert out.shape == (HOPS[0], 3)
    torch.testing.assert_close(out, whole)
    found = gradients(model, out)
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], msg=name)


@pytest.mark.parametrize("jk", ["last", "cat", "max"])
@pytest.mark.parametrize("method", ["gcn", "temp_gated", "gated_temp_v2"])
def test_jumping_knowledge_takes_the_seeds_of_every_layer(method, jk):
    model = build_model(method, 6, 8, 3, heads=2, jk=jk)
    whole = model(X, Graph(EDGES, NODES))[: HOPS[0]]
    torch.testing.assert_close(model(X, graphs_of_layers()), whole)


@pytest.mark.parametrize("method", ["gat", "gatv2", "gcn"])
def test_features_and_weights_are_those_of_the_first_edges(method):
    of_edges, options = {"edge_weight": torch.rand(EDGES.size(1)) + 0.5}, {}
    if method != "gcn":
        of_edges["edge_attr"] = torch.randn(EDGES.size(1), 2)
        options["edge_dim"] = 2
    model = build_model(method, 6, 8, 3, heads=2, **options)
    whole = model(X, Graph(EDGES, NODES), **of_edges)[: HOPS[0]]
    torch.testing.assert_close(model(X, graphs_of_layers(), **of_edges), whole)


@pytest.mark.parametrize("share_weights", [False, True])
@pytest.mark.parametrize("gate", ["post", "first", "head"])
def test_a_layer_that_builds_messages_takes_the_first_rows_as_targets(
    gate, share_weights
):
    graph = Graph(EDGES, (NODES, 7))
    layers = [
        TemperGATConv(6, 4, 2, gate=gate, residual=True),
        TemperGATv2Conv(6, 4, 2, gate=gate, share_weights=share_weights),
    ]
    for layer in layers:
        quick = layer(X, graph)
        layer.register_message_forward_hook(lambda *_: None)
        assert layer.slow_path_reason() is not None
        torch.testing.assert_close(layer(X, graph), quick)
        assert quick.shape[0] == 7


@pytest.mark.parametrize("layer", [TemperGATConv, TemperGATv2Conv])
def test_a_gate_before_attention_counts_every_node_once_in_its_mean(layer):
    conv = layer(6, 4, 2, gate="first")
    conv(X, Graph(EDGES, (NODES, 7)))
    mean = gate_penalty(conv)
    torch.testing.assert_close(mean, conv.gate_values(X).mean())


def test_sparse_features_have_the_first_rows_as_targets():
    sparse = torch.where(X > 0.5, X, 0.0)
    model = build_model("temp_gated", 6, 8, 3, heads=2)
    features = ops.SparseFeatures.from_torch(sparse)
    out = model(features, graphs_of_layers())
    torch.testing.assert_close(out, model(sparse, graphs_of_layers()))


def test_a_batch_runs_for_many_models_at_once():
    model = build_model("gated_temp_v2", 6, 8, 3, heads=2, residual=True)
    states = [{k: v + d for k, v in model.state_dict().items()} for d in (0.0, 0.1)]
    stacked = {k: torch.stack([s[k] for s in states]) for k in states[0]}
    graphs = graphs_of_layers()

    def run(state):
        return torch.func.functional_call(model, state, (X, graphs))

    both = torch.func.vmap(run)(stacked)
    for found, state in zip(both, states, strict=True):
        torch.testing.assert_close(found, run(state))


def test_graph_convolution_of_a_part_uses_the_given_degrees():
    layer = GCNLayer(6, 4, residual=True)
    whole = Graph(EDGES, NODES)
    degree = whole.with_self_loops().by_target.pointer.diff()
    part = Graph(EDGES[:, : COUNTS[0]], (NODES, HOPS[0]))
    out = layer(X, part, degree=degree)
    torch.testing.assert_close(out, layer(X, whole)[: HOPS[0]])


def test_graphs_that_do_not_fit_the_layers_are_refused():
    model = build_model("gat", 6, 8, 3, heads=2)
    outer, inner = graphs_of_layers()
    with pytest.raises(ValueError, match="1 graphs were given for 2 layers"):
        model(X, (outer,))
    with pytest.raises(ValueError, match="layer 2 has a graph with 12 source nodes"):
        model(X, (inner, outer))
    with pytest.raises(ValueError, match="x has 5 rows"):
        model(X[:5], (outer, inner))
    with pytest.raises(TypeError, match="got Tensor"):
        model(X, (EDGES, EDGES))
