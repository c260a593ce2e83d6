"""Plain layers are PyG's: attention weights, state, hooks and call forms.

Outputs and gradients of layers with any options are compared in test_differential.py.
"""

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

from tempergat import Graph
from tests.support.layers import LAYERS, PYG_LAYERS
from tests.support.same_function import assert_same

WITH_LOOPS = ["gat", "gatv2"]
SEEDS = [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))]


@pytest.fixture(autouse=True, params=SEEDS)
def fixed_seed(request):
    torch.manual_seed(request.param)


def twins(backbone, *args, **kwargs):
    """PyG's layer and ours with the same weights."""
    theirs = PYG_LAYERS[backbone](*args, **kwargs)
    ours = LAYERS[backbone](*args, temperature=None, gate=None, **kwargs)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return theirs, ours


def assert_close(a, b):
    scale = b.abs().max().item() if b.numel() else 0.0
    assert a.shape == b.shape
    worst = (a - b).abs().max().item() if b.numel() else 0.0
    assert worst <= 1e-6 * max(scale, 1e-3), f"{worst:.1e} of {scale:.1e}"


@pytest.mark.parametrize("by_messages", [False, True])
@pytest.mark.parametrize("size", [None, (8, 4), (8, 11)])
def test_same_without_target_features(size, by_messages):
    theirs, ours = twins("gat", (6, 3), 5, add_self_loops=False, residual=False)
    if by_messages:
        ours.register_message_forward_hook(lambda *_: None)
    targets = torch.randint(0, size[1] if size else 4, (20,))
    edge_index = torch.stack([torch.randint(0, 8, (20,)), targets])
    x = (torch.randn(8, 6), None)
    assert_close(ours(x, edge_index, size=size), theirs(x, edge_index, size=size))


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("self_loops", [True, False])
def test_messages_along_int32_edges_have_the_gradients_of_int64(backbone, self_loops):
    theirs, ours = twins(backbone, 6, 5, heads=2, add_self_loops=self_loops)
    ours.register_message_forward_hook(lambda *_: None)
    edge_index, x = torch.randint(0, 9, (2, 30)), torch.randn(9, 6)
    theirs(x, edge_index).sin().sum().backward()
    ours(x, edge_index.int()).sin().sum().backward()
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, msg=name)


@pytest.mark.parametrize("backbone", WITH_LOOPS)
def test_same_with_one_dimensional_edge_features(backbone):
    theirs, ours = twins(backbone, 6, 5, edge_dim=1)
    edge_index = torch.randint(0, 7, (2, 20))
    x, edge_attr = torch.randn(7, 6), torch.randn(20)
    assert_same(ours, theirs, x, edge_index, edge_attr)


@pytest.mark.parametrize("backbone", WITH_LOOPS)
def test_edge_features_may_be_left_out(backbone):
    theirs, ours = twins(backbone, 6, 5, edge_dim=3)
    edge_index = torch.randint(0, 7, (2, 20))
    x = torch.randn(7, 6)
    assert_close(ours(x, edge_index), theirs(x, edge_index))


@pytest.mark.parametrize(
    ("backbone", "aggr"),
    [(b, aggr) for b in LAYERS for aggr in ("mean", "max")]
    + [(b, ["add", "mean"]) for b in WITH_LOOPS],
)
def test_same_with_another_aggregation(backbone, aggr):
    bias = backbone == "transformer"
    theirs, ours = twins(backbone, 6, 4, heads=1, concat=False, bias=bias, aggr=aggr)
    edge_index = torch.randint(0, 9, (2, 30))
    x = torch.randn(9, 6)
    assert "aggr" in ours.slow_path_reason()
    assert_close(ours(x, edge_index), theirs(x, edge_index))


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("self_loops", [True, False])
def test_attention_weights_are_pygs_in_order_shape_and_content(backbone, self_loops):
    theirs, ours = twins(backbone, 6, 5, heads=3, add_self_loops=self_loops)
    edge_index = torch.randint(0, 9, (2, 30))
    x = torch.randn(9, 6)
    _, (edges, alpha) = theirs(x, edge_index, return_attention_weights=True)
    _, (our_edges, our_alpha) = ours(x, edge_index, return_attention_weights=True)
    assert torch.equal(our_edges, edges)
    assert our_edges.dtype == edges.dtype
    _, (our_edges, _) = ours(x, edge_index.int(), return_attention_weights=True)
    assert torch.equal(our_edges, edges.int())
    assert_close(our_alpha, alpha)
    entropy = -(our_alpha * our_alpha.clamp_min(1e-9).log()).sum()
    entropy.backward()
    assert all(
        p.grad is not None and p.grad.abs().sum() > 0
        for n, p in ours.named_parameters()
        if n.startswith("att")
    )


@pytest.mark.parametrize("backbone", LAYERS)
def test_attention_weights_in_training_show_the_dropout(backbone):
    ours = LAYERS[backbone](6, 5, heads=3, dropout=0.5)
    edge_index = torch.randint(0, 40, (2, 600))
    x = torch.randn(40, 6)
    out, (_, alpha) = ours(x, edge_index, return_attention_weights=True)
    dropped = (alpha == 0).float().mean().item()
    assert 0.4 < dropped < 0.6
    ours.eval()
    _, (_, whole) = ours(x, edge_index, return_attention_weights=True)
    kept = alpha != 0
    assert torch.allclose(alpha[kept], 2 * whole[kept], rtol=1e-5)
    assert not torch.equal(out, ours(x, edge_index))


@pytest.mark.parametrize("backbone", LAYERS)
def test_dropout_follows_torchs_seed_and_a_given_seed(backbone):
    ours = LAYERS[backbone](6, 5, heads=3, dropout=0.5)
    edge_index, x = torch.randint(0, 20, (2, 90)), torch.randn(20, 6)

    def run(**kwargs):
        return ours(x, edge_index, **kwargs)

    torch.manual_seed(5)
    first = run()
    torch.manual_seed(5)
    assert torch.equal(run(), first)
    assert not torch.equal(run(), first)
    seed = torch.tensor(11)
    assert torch.equal(run(dropout_seed=seed), run(dropout_seed=seed))
    assert not torch.equal(run(dropout_seed=seed), run(dropout_seed=seed + 1))


@pytest.mark.parametrize("backbone", LAYERS)
def test_equal_seeds_give_pygs_initial_weights_whatever_is_added(backbone):
    options = {"heads": 2, "edge_dim": 3, "residual": True}
    torch.manual_seed(1)
    expected = PYG_LAYERS[backbone](6, 5, **options).state_dict()
    for gate in (None, "post", "first", "head"):
        torch.manual_seed(1)
        ours = LAYERS[backbone](6, 5, **options, gate=gate)
        for key, value in expected.items():
            assert torch.equal(ours.state_dict()[key], value), key


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("form", ["int32", "edge_index", "csr", "csc", "coo", "graph"])
def test_every_form_of_edge_index_gives_the_same(backbone, self_loops, form):
    theirs, ours = twins(backbone, 6, 5, heads=2, add_self_loops=self_loops)
    edge_index = torch.randint(0, 9, (2, 30)).unique(dim=1)
    x = torch.randn(9, 6)
    expected = theirs(x, edge_index)
    csr = to_torch_csr_tensor(edge_index.flip(0), size=(9, 9))
    forms = {
        "int32": lambda: edge_index.int(),
        "edge_index": lambda: EdgeIndex(edge_index.contiguous(), sparse_size=(9, 9)),
        "csr": lambda: csr,
        "csc": lambda: csr.to_sparse_csc(),
        "coo": lambda: to_torch_coo_tensor(edge_index.flip(0), size=(9, 9)),
        "graph": lambda: Graph(edge_index, 9),
    }
    edges = forms[form]()
    assert_close(ours(x, edges), expected)
    assert_close(ours(x, edges), expected)


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("edge_dim", [None, 3])
@pytest.mark.parametrize("to_sparse", [to_torch_csr_tensor, to_torch_coo_tensor])
def test_attention_weights_of_a_sparse_matrix_are_pygs(
    backbone, self_loops, edge_dim, to_sparse
):
    options = {"edge_dim": edge_dim, "add_self_loops": self_loops}
    theirs, ours = twins(backbone, 6, 5, heads=2, **options)
    edge_index = torch.randint(0, 9, (2, 30)).unique(dim=1)
    edge_attr = torch.randn(edge_index.size(1), 3) if edge_dim else None
    adj_t = to_sparse(edge_index.flip(0), edge_attr, size=(9, 9))
    x = torch.randn(9, 6)
    _, (our_adj, our_alpha) = ours(x, adj_t, return_attention_weights=True)
    assert our_adj.layout == adj_t.layout
    if edge_dim and backbone != "transformer":
        # PyG cannot return this matrix, but the same weights as those of edges.
        _, (edges, alpha) = theirs(
            x, edge_index, edge_attr, return_attention_weights=True
        )
        adj = to_sparse(edges.flip(0), alpha, size=(9, 9))
        alpha = adj.values()
    else:
        _, (adj, alpha) = theirs(x, adj_t, return_attention_weights=True)
    assert_close(our_alpha, alpha)
    assert_close(our_adj.to_dense(), adj.to_dense())


@pytest.mark.parametrize("backbone", WITH_LOOPS)
def test_lazy_widths_come_from_the_first_input(backbone):
    ours = LAYERS[backbone]((-1, -1), 5, gate="first", add_self_loops=False)
    edge_index = torch.stack([torch.randint(0, 8, (20,)), torch.randint(0, 4, (20,))])
    assert ours((torch.randn(8, 6), torch.randn(4, 3)), edge_index).shape == (4, 5)
    with pytest.raises(ValueError, match="7 target features"):
        ours((torch.randn(8, 6), torch.randn(4, 7)), edge_index)


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_a_message_hook_sees_pygs_messages_and_can_change_them(backbone, flow):
    theirs, ours = twins(backbone, 6, 5, heads=2, edge_dim=3, flow=flow)
    x, edge_index, edge_attr = (
        torch.randn(9, 6),
        torch.randint(0, 9, (2, 30)),
        torch.randn(30, 3),
    )
    seen = []

    def double(_, inputs, out):
        seen.append(out.detach())
        return 2 * out

    for layer in (theirs, ours):
        layer.register_message_forward_hook(double)
    assert ours.slow_path_reason() == "a message hook is registered"
    assert_same(ours, theirs, x, edge_index, edge_attr)
    seen.clear()
    expected, out = theirs(x, edge_index, edge_attr), ours(x, edge_index, edge_attr)
    assert_close(out, expected)
    assert_close(seen[1], seen[0])


@pytest.mark.parametrize("backbone", WITH_LOOPS)
def test_a_subclass_may_override_message(backbone):
    def message(self, x_j, alpha):
        return 2 * x_j * alpha.unsqueeze(-1)

    # PyG caches what it knows of a class by the class name: one name per backbone.
    doubled = {"message": message}
    DoubledTheirs = type(f"DoubledTheirs_{backbone}", (PYG_LAYERS[backbone],), doubled)
    DoubledOurs = type(f"DoubledOurs_{backbone}", (LAYERS[backbone],), doubled)
    theirs = DoubledTheirs(6, 5)
    ours = DoubledOurs(6, 5, temperature=None, gate=None)
    ours.load_state_dict(theirs.state_dict())
    assert ours.slow_path_reason() == f"DoubledOurs_{backbone} overrides message()"
    edge_index, x = torch.randint(0, 9, (2, 30)), torch.randn(9, 6)
    assert_same(ours, theirs, x, edge_index)


def test_a_message_put_into_a_class_later_is_called(monkeypatch):
    conv = LAYERS["gat"](6, 5, bias=False, temperature=None, gate=None)
    edge_index, x = torch.randint(0, 9, (2, 30)), torch.randn(9, 6)
    expected = 2 * conv(x, edge_index)

    def message(self, x_j, alpha):
        return 2 * x_j * alpha.unsqueeze(-1)

    monkeypatch.setattr(LAYERS["gat"], "message", message)
    assert_close(conv(x, edge_index), expected)


def test_the_number_of_targets_may_come_from_the_edges():
    theirs, ours = twins("gat", 6, 5, add_self_loops=False)
    edge_index = torch.tensor([[0, 2, 3], [0, 1, 1]])
    x = (torch.randn(4, 6), None)
    adj_t = to_torch_csr_tensor(edge_index.flip(0), size=(2, 4))
    typed = EdgeIndex(edge_index, sparse_size=(4, 2))
    assert theirs(x, adj_t).shape == (2, 5)
    for edges in (adj_t, typed, Graph(edge_index, (4, 2))):
        assert_close(ours(x, edges), theirs(x, adj_t))


@pytest.mark.parametrize("backbone", LAYERS)
def test_edge_features_in_a_sparse_matrix_get_their_gradient(backbone):
    theirs, ours = twins(backbone, 6, 5, edge_dim=3, add_self_loops=False)
    edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    x = torch.randn(4, 6)
    gradients = []
    for layer in (theirs, ours):
        torch.manual_seed(1)
        values = torch.randn(4, 3, requires_grad=True)
        for _ in range(2):
            adj_t = torch.sparse_coo_tensor(edge_index.flip(0), values, (4, 4, 3))
            layer(x, adj_t.coalesce()).pow(2).sum().backward()
        gradients.append(values.grad)
    assert torch.allclose(*gradients, atol=1e-5)


def test_hooks_and_norms_of_the_edge_projection_work():
    theirs, ours = twins("gat", 6, 5, edge_dim=3)
    edge_index, x = torch.randint(0, 7, (2, 20)), torch.randn(7, 6)
    edge_attr = torch.randn(20, 3, requires_grad=True)
    seen, gradients = [], []
    for layer in (theirs, ours):
        torch.nn.utils.parametrizations.weight_norm(layer.lin_edge)
        layer.lin_edge.register_forward_hook(lambda *_: seen.append(1))
        loss = layer(x, edge_index, edge_attr).sin().sum()
        gradients.append(torch.autograd.grad(loss, edge_attr)[0])
    torch.testing.assert_close(*gradients)
    assert len(seen) == 2


@pytest.mark.parametrize("backbone", WITH_LOOPS)
@pytest.mark.parametrize("aggr", ["add", "max"])
def test_dropout_of_all_weights_leaves_what_pyg_leaves(backbone, aggr):
    theirs, ours = twins(backbone, 6, 5, heads=3, dropout=1.0, aggr=aggr)
    edge_index = torch.randint(0, 12, (2, 50))
    assert_same(ours, theirs, torch.randn(12, 6), edge_index)
