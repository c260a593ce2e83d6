"""TemperTransformerConv: PyG's TransformerConv, and what PyG's does not have.

Outputs and gradients are compared in test_differential.py, forms of edges, attention
weights and hooks in test_pyg_compatibility.py.
"""

import pytest
import torch
from torch_geometric.nn import TransformerConv

from tempergat import Graph, ops
from tempergat.nn import TemperTransformerConv

PLAIN = {"temperature": None, "gate": None}
X = torch.randn(9, 6, generator=torch.Generator().manual_seed(0))
EDGES = torch.randint(0, 9, (2, 30), generator=torch.Generator().manual_seed(2))
EDGE_ATTR = torch.randn(30, 3, generator=torch.Generator().manual_seed(3))


def twins(*args, **options):
    """PyG's layer and ours with the same weights."""
    theirs, ours = (
        TransformerConv(*args, **options),
        TemperTransformerConv(*args, **options, **PLAIN),
    )
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return theirs, ours


def test_attention_weights_are_pygs():
    theirs, ours = twins(6, 5, heads=3)
    _, (edges, alpha) = theirs(X, EDGES, return_attention_weights=True)
    out, (our_edges, ours_alpha) = ours(X, EDGES, return_attention_weights=True)
    assert torch.equal(our_edges, edges)
    torch.testing.assert_close(ours_alpha, alpha)
    torch.testing.assert_close(out, theirs(X, EDGES))
    assert ours._alpha is theirs._alpha is None


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
