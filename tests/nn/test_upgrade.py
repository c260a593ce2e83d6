"""A trained PyG model keeps its function, its optimiser and its hooks."""

import pytest
import torch
from torch.nn.utils import prune
from torch_geometric.nn import (
    GAT,
    AttentiveFP,
    GATConv,
    GATv2Conv,
    GCNConv,
    Linear,
    Sequential,
    TransformerConv,
    to_hetero,
)

import tempergat.nn
from tempergat.nn import (
    TemperGATConv,
    TemperGATv2Conv,
    TemperTransformerConv,
    upgrade,
)

X = torch.randn(15, 6, generator=torch.Generator().manual_seed(0))
EDGES = torch.randint(0, 15, (2, 60), generator=torch.Generator().manual_seed(1))
EDGE_ATTR = torch.randn(60, 3, generator=torch.Generator().manual_seed(2))
GATES = [None, "post", "first", "head"]
KINDS = {
    GATConv: TemperGATConv,
    GATv2Conv: TemperGATv2Conv,
    TransformerConv: TemperTransformerConv,
}
# Those of tempergat.nn under PyG's names.
PLAIN = {getattr(tempergat.nn, theirs.__name__): theirs for theirs in KINDS}
KINDS_OF_BOTH = KINDS | {plain: KINDS[theirs] for plain, theirs in PLAIN.items()}
WITH_RESIDUAL = {
    GATConv: {"residual": True},
    GATv2Conv: {"residual": True},
    TransformerConv: {"beta": True},
}
WITHOUT_RESIDUAL = {GATConv: {}, GATv2Conv: {}, TransformerConv: {"root_weight": False}}


class TwoLayers(torch.nn.Module):
    def __init__(self, layer, **kwargs):
        super().__init__()
        self.first = layer(6, 4, heads=3, **kwargs)
        self.block = torch.nn.ModuleDict({"deep": layer(12, 5, concat=False, **kwargs)})

    def forward(self, x, edge_index, edge_attr=None):
        x = self.first(x, edge_index, edge_attr).relu()
        return self.block["deep"](x, edge_index, edge_attr)


def randomise_biases(model):
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return model


def assert_same(a, b):
    assert (a - b).abs().max() <= 1e-6 * b.abs().max()


@pytest.mark.parametrize("layer", [*KINDS, *PLAIN])
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("temperature", [None, "layer", "head", 1.0])
@pytest.mark.parametrize("edge_dim", [None, 3])
def test_function_is_unchanged_and_new_parts_have_gradients(
    layer, gate, temperature, edge_dim
):
    options = {"edge_dim": edge_dim, **WITH_RESIDUAL[PLAIN.get(layer, layer)]}
    model = randomise_biases(TwoLayers(layer, **options))
    edge_attr = EDGE_ATTR if edge_dim else None
    expected = model(X, EDGES, edge_attr)
    new = upgrade(model, temperature=temperature, gate=gate)
    assert type(model.first) is KINDS_OF_BOTH[layer]
    assert type(model.block["deep"]) is KINDS_OF_BOTH[layer]
    out = model(X, EDGES, edge_attr)
    assert_same(out, expected)

    per_layer = (2 if gate else 0) + (1 if isinstance(temperature, str) else 0)
    assert len(new) == 2 * per_layer
    out.pow(2).sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in new)


def sequential():
    layers = [
        (GATConv(6, 4), "x, edge_index -> x"),
        torch.nn.ReLU(),
        (GATv2Conv(4, 3), "x, edge_index -> x"),
    ]
    return Sequential("x, edge_index", layers)


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(
    "make",
    [
        lambda: GAT(6, 8, 2, 3, heads=2),
        lambda: GAT(6, 8, 2, 3, heads=2, v2=True),
        sequential,
    ],
    ids=["gat", "gatv2", "sequential"],
)
def test_pygs_own_models_keep_their_function(make, gate):
    model = make().eval()
    expected = model(X, EDGES)
    assert upgrade(model, gate=gate)
    assert_same(model(X, EDGES), expected)


def test_the_new_layers_have_the_layers_own_defaults():
    model = torch.nn.ModuleList([theirs(6, 5) for theirs in KINDS])
    upgrade(model)
    for layer, ours in zip(model, KINDS.values(), strict=True):
        fresh = ours(6, 5)
        assert repr(layer) == repr(fresh)
        assert torch.equal(layer.lin_gate.bias, fresh.lin_gate.bias)


@pytest.mark.parametrize("layer", [*KINDS, *PLAIN])
def test_a_new_residual_keeps_the_outputs_learns_and_is_named_as_pygs(layer):
    theirs = PLAIN.get(layer, layer)
    model = randomise_biases(TwoLayers(layer, **WITHOUT_RESIDUAL[theirs])).double()
    expected = model(X.double(), EDGES)
    new = upgrade(model, temperature=None, gate=None, residual=True)
    out = model(X.double(), EDGES)
    assert_same(out, expected)
    name = "lin_skip" if theirs is TransformerConv else "res"
    maps = [getattr(conv, name) for conv in (model.first, model.block["deep"])]
    assert [id(p) for p in new] == [id(p) for lin in maps for p in lin.parameters()]
    out.pow(2).sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in new)
    options = {} if theirs is TransformerConv else {"residual": True}
    TwoLayers(layer, **options).load_state_dict(model.state_dict())


def test_a_residual_that_a_layer_has_is_kept():
    model = TwoLayers(GATConv, residual=True)
    kept, expected = model.first.res, model(X, EDGES)
    new = upgrade(model, residual=True)
    assert model.first.res is kept
    assert all(p is not kept.weight for p in new)
    assert_same(model(X, EDGES), expected)


def test_what_a_layer_keeps_between_calls_and_a_fixed_temperature_survive():
    model = torch.nn.ModuleList([tempergat.nn.GATConv(6, 4, cache=False)])
    upgrade(model, temperature=0.5, gate=True)
    assert model[0].cache is False
    assert model[0].temperature.item() == 0.5
    assert model[0].gate == "post"


def test_to_hetero_after_the_upgrade():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = GATConv((6, 6), 4, add_self_loops=False)
            self.lin = Linear(4, 2)

        def forward(self, x, edge_index):
            return self.lin(self.conv(x, edge_index).relu())

    net = Net()
    upgrade(net, gate="first")
    hetero = to_hetero(net, (["a"], [("a", "to", "a")]))
    out = hetero({"a": X}, {("a", "to", "a"): EDGES})
    assert out["a"].shape == (15, 2)


def test_parameters_stay_the_same_objects_and_optimisers_valid():
    model = TwoLayers(GATv2Conv)
    before = dict(model.named_parameters())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model(X, EDGES).pow(2).sum().backward()
    optimizer.step()
    new = upgrade(model, gate="post")
    after = dict(model.named_parameters())
    for name, parameter in before.items():
        assert after[name] is parameter
    assert {id(p) for p in new} == {id(p) for n, p in after.items() if n not in before}
    optimizer.add_param_group({"params": new})
    values = [p.detach().clone() for p in new]
    optimizer.zero_grad()
    model(X, EDGES).pow(2).sum().backward()
    optimizer.step()
    assert all(not torch.equal(p, v) for p, v in zip(new, values, strict=True))


def test_dtype_mode_frozen_weights_and_hooks_are_kept():
    model = TwoLayers(GATConv).double().eval()
    model.first.att_src.requires_grad_(False)
    seen = []
    handle = model.first.register_forward_hook(lambda *_: seen.append("forward"))
    model.first.lin.register_forward_hook(lambda *_: seen.append("projection"))
    message = model.first.register_message_forward_hook(
        lambda *_: seen.append("message")
    )
    upgrade(model, gate="post")
    assert model.first.theta.dtype == torch.float64
    assert model.first.lin_gate.weight.dtype == torch.float64
    assert not model.first.training
    assert not model.first.att_src.requires_grad
    model(X.double(), EDGES)
    assert seen == ["projection", "message", "forward"]
    handle.remove()
    message.remove()
    seen.clear()
    model(X.double(), EDGES)
    assert seen == ["projection"]


@pytest.mark.parametrize("temperature", ["layer", "head"])
def test_the_function_is_unchanged_in_double_precision(temperature):
    model = TwoLayers(GATConv).double().eval()
    before = model(X.double(), EDGES)
    upgrade(model, temperature=temperature)
    assert torch.allclose(model(X.double(), EDGES), before, rtol=0, atol=1e-13)


def test_a_layer_whose_targets_have_no_features_keeps_its_function():
    model = torch.nn.ModuleList([GATConv((6, 3), 4, add_self_loops=False)])
    before = model[0]((X, None), EDGES)
    upgrade(model, gate="post")
    assert torch.allclose(model[0]((X, None), EDGES), before, atol=1e-6)


def test_a_layer_shared_by_two_places_stays_shared():
    conv = GATConv(6, 6)
    model = torch.nn.ModuleList([conv, conv])
    new = upgrade(model)
    assert model[0] is model[1]
    assert len(new) == 3


def test_shared_weights_are_folded_once():
    model = torch.nn.ModuleList([GATv2Conv(6, 5, share_weights=True, heads=2)])
    randomise_biases(model)
    expected = model[0](X, EDGES)
    upgrade(model, gate="post")
    assert model[0].lin_l is model[0].lin_r
    assert_same(model[0](X, EDGES), expected)


def test_other_layers_are_left_alone():
    model = torch.nn.ModuleList([GCNConv(6, 5), torch.nn.Linear(5, 5), GATConv(5, 5)])
    upgrade(model)
    assert type(model[0]) is GCNConv
    assert type(model[1]) is torch.nn.Linear


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            torch.nn.Linear(5, 5),
            "no GATConv, GATv2Conv or TransformerConv .* in Linear; give",
        ),
        (torch.nn.ModuleList([GCNConv(6, 5)]), "found in ModuleList"),
        (GATConv(6, 5), "itself a GATConv"),
    ],
)
def test_a_model_without_layers_that_can_be_replaced_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        upgrade(model)


def test_a_second_upgrade_of_the_same_layers_is_refused():
    model = torch.nn.ModuleList([GATConv(6, 5)])
    upgrade(model)
    layer = model[0]
    with pytest.raises(ValueError, match="layers of ModuleList are tempergat's alr"):
        upgrade(model, gate="post")
    assert model[0] is layer
    # A new layer beside it is upgraded, and the first stays as it is.
    model.append(GATv2Conv(6, 5))
    assert upgrade(model)
    assert model[0] is layer


class MyConv(GATConv):
    pass


def with_its_own_forward():
    layer = GATConv(6, 5)
    plain = layer.forward
    layer.forward = lambda *arguments: 2 * plain(*arguments)
    return layer


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MyConv(6, 5), "0.0, a MyConv, is a subclass"),
        (with_its_own_forward, r"0.0, a GATConv, has its own forward\(\)"),
    ],
)
def test_layers_that_users_changed_are_left_alone_with_a_warning(make, message):
    layer = make()
    model = torch.nn.ModuleList([torch.nn.ModuleList([layer])])
    with pytest.warns(UserWarning, match=message):
        assert upgrade(model) == []
    assert model[0][0] is layer


@pytest.mark.filterwarnings("error")
def test_a_layer_that_pyg_itself_excludes_from_explanations_is_replaced():
    model = AttentiveFP(6, 5, 1, edge_dim=3, num_layers=2, num_timesteps=2).eval()
    x, edge_index = torch.randn(10, 6), torch.randint(0, 10, (2, 30))
    inputs = x, edge_index, torch.randn(30, 3), torch.arange(10) // 5
    before = model(*inputs)
    upgrade(model)
    assert isinstance(model.mol_conv, TemperGATConv)
    assert model.mol_conv.explain is False
    torch.testing.assert_close(model(*inputs), before)


def test_lazy_layers_are_refused_and_nothing_is_changed():
    model = torch.nn.ModuleList([GATConv(6, 5), GATConv(-1, 5)])
    with pytest.raises(ValueError, match="run the model once"):
        upgrade(model)
    assert type(model[0]) is GATConv
    model[1](X, EDGES)
    upgrade(model, gate="post")
    assert model[1](X, EDGES).shape == (15, 5)


def test_edge_attr_that_pyg_ignored_is_ignored_with_one_warning():
    model = torch.nn.ModuleList([GATConv(6, 5)])
    expected = model[0](X, EDGES, EDGE_ATTR)
    upgrade(model)
    with pytest.warns(UserWarning, match="edge_attr is ignored"):
        assert_same(model[0](X, EDGES, EDGE_ATTR), expected)
    model[0](X, EDGES, EDGE_ATTR)


def test_upgrading_draws_nothing_from_torchs_generator():
    model = TwoLayers(GATConv)
    before = torch.get_rng_state()
    upgrade(model, gate="first")
    assert torch.equal(torch.get_rng_state(), before)


def tied():
    model = torch.nn.ModuleList([GATConv(6, 6), GATConv(6, 6)])
    model[1].lin.weight = model[0].lin.weight
    return model


def parametrised():
    model = torch.nn.ModuleList([GATConv(6, 6)])
    torch.nn.utils.parametrizations.spectral_norm(model[0].lin)
    return model


def other_aggregation():
    return torch.nn.ModuleList([GATConv(6, 6, aggr="softmax")])


@pytest.mark.parametrize("make", [tied, parametrised, other_aggregation])
def test_upgrading_refuses_a_gate_that_changes_the_function_but_not_no_gate(make):
    model = make().eval()
    expected = [layer(X, EDGES) for layer in model]
    with pytest.raises(ValueError, match="gate=None"):
        upgrade(model, gate="post")
    assert all(type(layer) is GATConv for layer in model)
    upgrade(model, gate=None)
    for layer, before in zip(model, expected, strict=True):
        assert_same(layer(X, EDGES), before)


def test_what_a_user_attached_to_a_layer_stays():
    model = torch.nn.ModuleList([GATConv(6, 5)])
    model[0].register_buffer("seen", torch.tensor(3))
    model[0].nickname = "first"
    upgrade(model)
    assert model[0].seen == 3
    assert "0.seen" in model.state_dict()
    assert model[0].nickname == "first"


@pytest.mark.parametrize("gate", [None, "first"])
def test_pruned_attention_vectors_stay_pruned(gate):
    model = torch.nn.ModuleList([GATConv(6, 5)])
    prune.l1_unstructured(model[0], "att_src", 0.5)
    expected = model[0](X, EDGES)
    upgrade(model, gate=gate)
    assert_same(model[0](X, EDGES), expected)
    assert (model[0].att_src == 0).any()


def test_a_compiled_model_computes_with_the_new_layers():
    compiled = torch.compile(TwoLayers(GATConv).eval(), backend="eager")
    with torch.no_grad():
        expected = compiled(X, EDGES)
        upgrade(compiled, gate="post")
        assert_same(compiled(X, EDGES), expected)
        compiled.first.reset_temperature_and_gate()
        assert (compiled(X, EDGES) - expected).abs().max() > 1e-3


def compiled_by_torch(layer):
    return torch.compile(layer, backend="eager")


def compiled_in_place(layer):
    layer.compile(backend="eager")
    return layer


@pytest.mark.parametrize("compile_layer", [compiled_by_torch, compiled_in_place])
def test_a_layer_compiled_on_its_own_is_refused_and_nothing_is_changed(compile_layer):
    model = torch.nn.ModuleList([GATConv(6, 6), compile_layer(GATConv(6, 6))])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(ValueError, match="compiled on its own"):
        upgrade(model, gate="post")
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in before)
    assert type(model[0]) is GATConv


def test_a_gated_skip_is_no_upgrade():
    model = torch.nn.Sequential(GATConv(3, 3))
    with pytest.raises(ValueError, match="True or False, got 'gate'"):
        upgrade(model, residual="gate")
