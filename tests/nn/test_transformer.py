"""TemperTransformerConv: PyG's TransformerConv, and what PyG's does not have.

Outputs and gradients of random layers are compared in test_differential.py.
"""

import itertools

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.explain import AttentionExplainer, Explainer
from torch_geometric.nn import TransformerConv
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

from tempergat import Graph, ops
from tempergat.nn import TemperTransformerConv, gate_penalty
from tests.support import same_function

PLAIN = {"temperature": None, "gate": None}
X = torch.randn(9, 6, generator=torch.Generator().manual_seed(0))
Y = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
EDGES = torch.randint(0, 9, (2, 30), generator=torch.Generator().manual_seed(2))
EDGE_ATTR = torch.randn(30, 3, generator=torch.Generator().manual_seed(3))
CALLS = list(itertools.product((None, 3), (True, False), (True, False)))


def twins(*args, **options):
    """PyG's layer and ours with the same weights."""
    theirs, ours = (
        TransformerConv(*args, **options),
        TemperTransformerConv(*args, **options, **PLAIN),
    )
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return theirs, ours


def bipartite(num_dst=4):
    generator = torch.Generator().manual_seed(4)
    ends = (torch.randint(n, (20,), generator=generator) for n in (9, num_dst))
    return torch.stack(list(ends))


@pytest.mark.parametrize(("edge_dim", "concat", "beta"), CALLS)
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_same_outputs_and_gradients(edge_dim, concat, beta, flow):
    theirs, ours = twins(
        6, 5, heads=3, concat=concat, beta=beta, edge_dim=edge_dim, flow=flow
    )
    more = (EDGE_ATTR,) if edge_dim else ()
    same_function.assert_same(ours, theirs, X, EDGES, *more)


@pytest.mark.parametrize(("edge_dim", "concat", "beta"), CALLS)
def test_same_on_bipartite_graphs(edge_dim, concat, beta):
    theirs, ours = twins((6, 3), 5, 2, concat, beta, edge_dim=edge_dim)
    more = (EDGE_ATTR[:20],) if edge_dim else ()
    same_function.assert_same(ours, theirs, (X, Y), bipartite(), *more)


@pytest.mark.parametrize("root_weight", [True, False])
@pytest.mark.parametrize("beta", [True, False])
def test_equal_seeds_give_pygs_initial_weights(root_weight, beta):
    options = {"beta": beta, "edge_dim": 3, "root_weight": root_weight}
    torch.manual_seed(1)
    expected = TransformerConv(6, 5, **options).state_dict()
    for gate in (None, "post", "first"):
        torch.manual_seed(1)
        ours = TemperTransformerConv(6, 5, **options, gate=gate).state_dict()
        for name, value in expected.items():
            assert torch.equal(ours[name], value), name


FORMS = {
    "int32": lambda: EDGES.int(),
    "EdgeIndex": lambda: EdgeIndex(EDGES, sparse_size=(9, 9)),
    "csr": lambda: to_torch_csr_tensor(EDGES.flip(0), size=(9, 9)),
    "coo": lambda: to_torch_coo_tensor(EDGES.flip(0), size=(9, 9)),
    "Graph": lambda: Graph(EDGES, 9),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_edges_gives_the_same(form):
    theirs, ours = twins(6, 5, heads=2)
    unique = EDGES.unique(dim=1)
    made = {"csr": to_torch_csr_tensor, "coo": to_torch_coo_tensor}.get(form)
    if made is None:
        edges, expected = FORMS[form](), theirs(X, EDGES)
    else:
        edges, expected = made(unique.flip(0), size=(9, 9)), theirs(X, unique)
    torch.testing.assert_close(ours(X, edges), expected)


def test_attention_weights_are_pygs():
    theirs, ours = twins(6, 5, heads=3)
    _, (edges, alpha) = theirs(X, EDGES, return_attention_weights=True)
    out, (our_edges, ours_alpha) = ours(X, EDGES, return_attention_weights=True)
    assert torch.equal(our_edges, edges)
    torch.testing.assert_close(ours_alpha, alpha)
    torch.testing.assert_close(out, theirs(X, EDGES))
    assert ours._alpha is theirs._alpha is None
    adj_t = to_torch_csr_tensor(EDGES.unique(dim=1).flip(0), size=(9, 9))
    _, (matrix, alpha) = ours(X, adj_t, return_attention_weights=True)
    assert matrix.layout == adj_t.layout
    torch.testing.assert_close(alpha.sum(0), matrix.to_dense().sum((0, 1)))


def test_edge_features_in_a_sparse_matrix_are_taken():
    theirs, ours = twins(6, 5, edge_dim=3)
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    values = EDGE_ATTR[:4]
    adj_t = torch.sparse_coo_tensor(edges.flip(0), values, (9, 9, 3)).coalesce()
    order = adj_t.indices().flip(0)
    expected = theirs(X, order, adj_t.values())
    torch.testing.assert_close(ours(X, adj_t), expected)


def test_edge_features_and_edge_dim_are_given_together():
    with pytest.raises(ValueError, match=r"has no edge_dim .* edge_dim=3"):
        TemperTransformerConv(6, 5)(X, EDGES, EDGE_ATTR)
    conv = TemperTransformerConv(6, 5, edge_dim=3)
    with pytest.raises(ValueError, match="edge_dim=3, but edge_attr was not given"):
        conv(X, EDGES)
    conv.register_message_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="edge_dim=3, but edge_attr was not given"):
        conv(X, EDGES)


def test_targets_need_features():
    with pytest.raises(ValueError, match=r"x is \(x_src, None\); pass both"):
        TemperTransformerConv(6, 5)((X, None), EDGES)


@pytest.mark.parametrize("name", ["add_self_loops", "negative_slope", "residual"])
def test_arguments_of_the_other_layers_are_refused(name):
    with pytest.raises(TypeError, match=f"takes no {name}: it adds no self-loops"):
        TemperTransformerConv(6, 5, **{name: True})


@pytest.mark.parametrize("aggr", ["mean", "max"])
def test_same_with_another_aggregation(aggr):
    theirs, ours = twins(6, 4, heads=2, edge_dim=3, aggr=aggr)
    assert "aggr" in ours.slow_path_reason()
    torch.testing.assert_close(ours(X, EDGES, EDGE_ATTR), theirs(X, EDGES, EDGE_ATTR))


def test_a_message_hook_sees_pygs_messages_and_can_change_them():
    theirs, ours = twins(6, 5, heads=2, edge_dim=3)
    seen = []

    def double(_, inputs, out):
        seen.append(out)
        return 2 * out

    for layer in (theirs, ours):
        layer.register_message_forward_hook(double)
    expected, out = theirs(X, EDGES, EDGE_ATTR), ours(X, EDGES, EDGE_ATTR)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(seen[1], seen[0])


def test_maps_of_edges_with_hooks_and_other_modules_are_called():
    theirs, ours = twins(6, 5, edge_dim=3)
    ours.lin_edge = theirs.lin_edge = torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.ReLU()
    )
    assert "lin_edge" in ours.slow_path_reason()
    torch.testing.assert_close(ours(X, EDGES, EDGE_ATTR), theirs(X, EDGES, EDGE_ATTR))


def test_a_lazy_map_of_edges_learns_its_width():
    conv = TemperTransformerConv(-1, 5, heads=2, edge_dim=-1, **PLAIN)
    first = conv(X, EDGES, EDGE_ATTR)
    assert conv.lin_edge.weight.shape == (10, 3)
    assert conv.slow_path_reason() is None
    torch.testing.assert_close(conv(X, EDGES, EDGE_ATTR), first)


def test_an_attention_explainer_reads_pygs_attention():
    theirs, ours = twins(6, 5, heads=2)
    config = {
        "mode": "multiclass_classification",
        "task_level": "node",
        "return_type": "raw",
    }
    masks = [
        Explainer(
            layer.eval(),
            AttentionExplainer(),
            explanation_type="model",
            model_config=config,
            edge_mask_type="object",
        )(X, EDGES, index=3).edge_mask
        for layer in (theirs, ours)
    ]
    torch.testing.assert_close(masks[1], masks[0])


def test_both_ways_drop_the_same_attention_weights():
    conv = TemperTransformerConv(6, 5, heads=3, dropout=0.5)
    seed = torch.tensor(3)
    out = conv(X, EDGES, dropout_seed=seed)
    assert not torch.equal(out, conv(X, EDGES))
    hook = conv.register_message_forward_hook(lambda *_: None)
    torch.testing.assert_close(conv(X, EDGES, dropout_seed=seed), out)
    hook.remove()
    conv.dropout = 1.0
    torch.testing.assert_close(conv(X, EDGES), conv.lin_skip(X))


def test_the_layer_is_its_op_between_linear_maps():
    conv = TemperTransformerConv(6, 4, heads=2, edge_dim=3, temperature=0.5, gate=None)
    maps = (conv.lin_query, conv.lin_key, conv.lin_value)
    out, _ = ops.dot_product(
        Graph(EDGES, 9),
        *(lin(X).view(9, 2, 4) for lin in maps),
        EDGE_ATTR,
        conv.lin_edge.weight.view(2, 4, 3),
        temperature=torch.tensor(0.5),
    )
    expected = out.flatten(1) + conv.lin_skip(X)
    torch.testing.assert_close(conv(X, EDGES, EDGE_ATTR), expected)


def test_normalised_queries_and_keys_do_not_depend_on_their_length():
    conv = TemperTransformerConv(6, 4, heads=2, qk_norm=True, bias=False)
    _, (_, alpha) = conv(X, EDGES, return_attention_weights=True)
    _, (_, larger) = conv(100 * X, EDGES, return_attention_weights=True)
    torch.testing.assert_close(larger, alpha)
    with torch.no_grad():
        conv.norm_key.weight.zero_()
    _, (_, alpha) = conv(X, EDGES, return_attention_weights=True)
    counts = EDGES[1].bincount(minlength=9)[EDGES[1]]
    torch.testing.assert_close(alpha[:, 0], 1.0 / counts)


def test_a_gate_first_counts_each_node_once_in_the_penalty():
    conv = TemperTransformerConv((6, 3), 5, gate="first")
    conv((X, Y), bipartite())
    gates = conv.gate_values((X, Y))
    expected = torch.cat([g.flatten() for g in gates]).mean()
    torch.testing.assert_close(gate_penalty(conv), expected)


def test_the_gate_after_attention_leaves_the_skip_as_it_is():
    conv = TemperTransformerConv(6, 5, beta=False)
    with torch.no_grad():
        conv.lin_gate.bias.fill_(-100.0)
    torch.testing.assert_close(conv(X, EDGES), conv.lin_skip(X))


def test_repr_names_what_differs_from_the_defaults():
    assert repr(TemperTransformerConv(6, 5, heads=2)) == (
        "TemperTransformerConv(6, 5, heads=2, temperature='layer', gate='post')"
    )
    changed = TemperTransformerConv((6, 3), 5, beta=True, qk_norm=True, **PLAIN)
    assert repr(changed) == (
        "TemperTransformerConv((6, 3), 5, heads=1, beta=True, qk_norm=True, "
        "temperature=None, gate=None)"
    )
