"""The eleven methods and the classifier around them."""

import inspect

import pytest
import torch

from tempergat.nn import (
    BACKBONES,
    METHODS,
    TemperGATConv,
    TemperGATv2Conv,
    build_model,
)
from tempergat.nn.conv.gcn import GCNLayer, LinearLayer

X = torch.randn(12, 6, generator=torch.Generator().manual_seed(0))
EDGES = torch.randint(0, 12, (2, 50), generator=torch.Generator().manual_seed(1))

PAPER = ["gcn", "gat", "gatv2", "gated", "temp_only", "temp_gated", "gated_temp"]
PAPER += ["gated_v2", "temp_only_v2", "temp_gated_v2", "gated_temp_v2"]


def test_the_table_is_the_papers_and_marks_what_it_did_not_run():
    assert [name for name, method in METHODS.items() if method.in_paper] == PAPER
    others = {name for name, method in METHODS.items() if not method.in_paper}
    assert others == {
        "gated_first",
        "gated_first_v2",
        "head_gated",
        "head_gated_v2",
        "temp_gated_head",
        "temp_gated_head_v2",
        "transformer",
        "gated_transformer",
        "temp_only_transformer",
        "temp_gated_transformer",
        "mlp",
    }
    assert METHODS["temp_gated"][:3] == ("gat", "layer", "post")
    assert METHODS["gated_temp_v2"][:3] == ("gatv2", "layer", "first")
    assert METHODS["gated_first"][:3] == ("gat", None, "first")
    assert METHODS["head_gated_v2"][:3] == ("gatv2", None, "head")


def test_every_method_says_in_words_what_it_is_and_no_two_say_the_same() -> None:
    words = {name: method.description for name, method in METHODS.items()}
    assert len(set(words.values())) == len(METHODS)
    assert words["mlp"] == "no edges (MLP)"
    assert words["gatv2"] == "GATv2"
    assert words["temp_gated"] == "GAT + temperature + gate after attention"
    assert words["gated_temp"] == "GAT + gate before attention + temperature"
    assert words["head_gated"] == "GAT + gate per head after attention"
    assert words["temp_gated_head_v2"] == (
        "GATv2 + temperature per head + gate after attention"
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_all_of_its_parameters(method):
    model = build_model(method, 6, 8, 3, heads=2)
    out = model(X, EDGES)
    assert out.shape == (12, 3)
    out.pow(2).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_making_a_model_reads_no_source_code(monkeypatch):
    # PyG does it for layers with messages of their own: 50 ms for each of ours.
    read = []
    monkeypatch.setattr(inspect, "getsource", lambda *_: read.append(_) or "")
    build_model("temp_gated", 6, 8, 3, heads=2)
    assert read == []


def test_hidden_channels_is_the_total_width_at_every_depth():
    model = build_model("gat", 6, 64, 7, num_layers=3, heads=8)
    shapes = [conv.lin.weight.shape for conv in model.convs]
    assert shapes == [(64, 6), (64, 64), (7, 64)]
    assert [conv.heads for conv in model.convs] == [8, 8, 1]
    assert len(build_model("gat", 6, 64, 7, num_layers=1).convs) == 1


def test_output_heads_are_averaged():
    model = build_model("gatv2", 6, 8, 3, heads=2, out_heads=5)
    assert model.convs[-1].heads == 5
    assert not model.convs[-1].concat
    assert model(X, EDGES).shape == (12, 3)


@pytest.mark.parametrize("jk", ["last", "cat", "max", "lstm"])
@pytest.mark.parametrize("norm", [None, "batch_norm", "layer_norm"])
def test_jumping_knowledge_and_normalisation(jk, norm):
    model = build_model("temp_gated", 6, 8, 3, heads=2, jk=jk, norm=norm, residual=True)
    out = model(X, EDGES)
    assert out.shape == (12, 3)
    out.pow(2).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("method", ["gcn", "mlp", "gat", "gatv2", "transformer"])
@pytest.mark.parametrize("residual", [False, True, "gate"])
def test_a_layer_before_batch_norm_may_go_without_the_bias_that_has_no_effect(
    method, residual
):
    settings = {"norm": "batch", "num_layers": 3, "residual": residual}
    made = [
        build_model(method, 5, 8, 3, heads=2, bias_before_norm=has, **settings)
        for has in (True, False)
    ]
    x, edges = torch.randn(6, 5), torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    named, fewer = (dict(model.named_parameters()) for model in made)
    gone = sorted(named.keys() - fewer.keys())
    part = ".lin_skip" if method == "transformer" else ""
    if part and residual == "gate":
        # The share weighs it.
        assert gone == []
    else:
        assert gone == [f"convs.{layer}{part}.bias" for layer in range(2)]
    with torch.no_grad():
        for name, value in fewer.items():
            named[name].copy_(value)
        for name in gone:
            named[name].normal_()
    # The last layer has its bias, and outputs in training are those with the others.
    torch.testing.assert_close(*(model(x, edges) for model in made), atol=1e-4, rtol=0)


def test_activation_is_applied_between_layers_only():
    model = build_model("gat", 6, 8, 3, heads=2, act="relu")
    hidden = model.convs[0](X, EDGES).relu()
    assert torch.allclose(model(X, EDGES), model.convs[1](hidden, EDGES))


@pytest.mark.parametrize("backbone", ["gat", "gatv2"])
@pytest.mark.parametrize("in_channels", [6, -1])
def test_shared_parameters_of_two_methods_start_equal(backbone, in_channels):
    states = {}
    for name, method in METHODS.items():
        if method.backbone == backbone:
            torch.manual_seed(4)
            model = build_model(
                name, in_channels, 8, 3, num_layers=3, heads=2, residual=True, jk="cat"
            )
            if in_channels == -1:
                model(X, EDGES)
            states[name] = model.state_dict()
    plain = states[backbone]
    for name, state in states.items():
        for key, value in plain.items():
            assert torch.equal(state[key], value), (name, key)


def test_building_a_model_moves_the_generator_as_far_as_its_weights_need():
    torch.manual_seed(4)
    first = build_model("temp_gated", 6, 8, 3, heads=2)
    second = build_model("temp_gated", 6, 8, 3, heads=2)
    assert not torch.equal(first.convs[0].lin.weight, second.convs[0].lin.weight)


def test_dropout_of_features_and_attention_are_separate():
    seed = torch.tensor(1)
    for options in ({"dropout": 0.5}, {"attention_dropout": 0.5}):
        model = build_model("gat", 6, 8, 3, heads=2, **options)
        model.train()
        dropped = model(X, EDGES, dropout_seed=seed)
        assert torch.equal(dropped, model(X, EDGES, dropout_seed=seed))
        assert not torch.equal(dropped, model(X, EDGES, dropout_seed=seed + 1))
        model.eval()
        assert not torch.equal(dropped, model(X, EDGES, dropout_seed=seed))


def test_the_gate_sees_the_dropped_out_input():
    model = build_model("gated", 6, 8, 3, num_layers=1, dropout=0.9)
    seen = []
    conv = model.convs[0]
    conv.lin_gate.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    conv.lin.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(X, EDGES)
    assert torch.equal(seen[0], seen[1])
    assert (seen[0] == 0).float().mean() > 0.5


def test_without_dropout_training_draws_no_random_numbers():
    model = build_model("temp_gated", 6, 8, 3, heads=2)
    before = torch.get_rng_state()
    model(X, EDGES)
    assert torch.equal(torch.get_rng_state(), before)


def test_trimming_a_sampled_batch_keeps_the_seed_nodes_scores():
    # Two seeds, their neighbours, and theirs, numbered by hop as samplers do.
    edges = torch.tensor([[2, 3, 3, 4, 5, 6], [0, 0, 1, 2, 3, 3]])
    x = torch.randn(7, 6)
    model = build_model("temp_gated_v2", 6, 8, 3, heads=2)
    whole = model(x, edges)[:2]
    trimmed = model(
        x,
        edges,
        num_sampled_nodes_per_hop=[2, 2, 3],
        num_sampled_edges_per_hop=[3, 3],
    )
    assert len(trimmed) < 7
    assert torch.allclose(trimmed[:2], whole, atol=1e-6)


def test_layer_classes_match_the_backbones():
    for name, method in METHODS.items():
        conv = build_model(name, 6, 8, 3, heads=2).convs[0]
        assert type(conv) is BACKBONES[method.backbone].layer
    layers = {name: backbone.layer for name, backbone in BACKBONES.items()}
    known = {
        "gcn": GCNLayer,
        "gat": TemperGATConv,
        "gatv2": TemperGATv2Conv,
        "mlp": LinearLayer,
    }
    assert layers | known == layers


def test_only_attention_backbones_take_a_temperature_or_a_gate():
    for method in METHODS.values():
        if not BACKBONES[method.backbone].has_attention:
            assert (method.temperature, method.gate) == (None, None)


def test_an_mlp_ignores_the_graph_and_starts_from_gcns_weights():
    models = {}
    for name in ("mlp", "gcn"):
        torch.manual_seed(5)
        models[name] = build_model(name, 6, 8, 3)
    mlp = models["mlp"]
    for name, value in models["gcn"].state_dict().items():
        assert torch.equal(mlp.state_dict()[name], value)
    first, last = mlp.convs
    hidden = torch.nn.functional.elu(X @ first.lin.weight.t() + first.bias)
    expected = hidden @ last.lin.weight.t() + last.bias
    assert torch.allclose(mlp(X, EDGES), expected, atol=1e-6)
    assert torch.equal(mlp(X, EDGES), mlp(X, EDGES[:, :0]))


@pytest.mark.parametrize("method", ["gcn", "mlp"])
def test_edge_features_without_attention_are_refused(method):
    with pytest.raises(ValueError, match=rf"^{method} has no .* takes no edge_dim; "):
        build_model(method, 6, 8, 3, edge_dim=4)
    with pytest.raises(ValueError, match=r"shape \[50, 4\].* do not pass edge_attr"):
        build_model(method, 6, 8, 3)(X, EDGES, torch.randn(50, 4))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("in_channels", [6, -1])
def test_sparse_features_give_what_dense_ones_give(method, in_channels):
    dense = X * (X > 0.3)
    torch.manual_seed(3)
    model = build_model(method, in_channels, 8, 3, heads=2, residual=True).eval()
    out = model(dense.to_sparse_csr(), EDGES)
    out.pow(2).sum().backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    expected = model(dense, EDGES)
    assert torch.allclose(out, expected, atol=1e-5)
    expected.pow(2).sum().backward()
    for name, parameter in model.named_parameters():
        assert torch.allclose(gradients[name], parameter.grad, atol=1e-4), name


def test_dropout_of_sparse_features_drops_stored_elements():
    dense = torch.ones(12, 6)
    model = build_model("gat", 6, 8, 3, num_layers=1, dropout=0.5)
    seed = torch.tensor(1)
    sparse = dense.to_sparse_csr()
    out = model(sparse, EDGES, dropout_seed=seed)
    # All elements are stored, in the order of the dense matrix: the masks agree.
    assert torch.allclose(out, model(dense, EDGES, dropout_seed=seed), atol=1e-5)
    assert not torch.allclose(out, model(sparse, EDGES, dropout_seed=seed + 1))


@pytest.mark.parametrize("residual", [False, True])
def test_layers_of_transformers_always_add_a_map_of_their_input(residual):
    model = build_model("transformer", 6, 8, 3, residual=residual)
    assert all(conv.root_weight for conv in model.convs)
    model = build_model("transformer", 6, 8, 3, root_weight=False)
    assert not any(conv.root_weight for conv in model.convs)
