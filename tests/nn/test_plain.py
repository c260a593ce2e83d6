"""The layers under PyG's names take the place of PyG's: text, arguments, weights.

Outputs and gradients are compared in test_differential.py.
"""

import inspect
import re

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer

import tempergat.nn as ours

NAMES = ["GATConv", "GATv2Conv", "TransformerConv"]
X = torch.randn(9, 8, generator=torch.Generator().manual_seed(0))
EDGES = torch.randint(0, 9, (2, 30), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", NAMES)
def test_arguments_texts_and_checkpoints_are_pygs(name):
    plain, theirs = getattr(ours, name), getattr(pyg, name)
    assert inspect.signature(plain) == inspect.signature(theirs)
    for arguments in ((8, 32), ((8, 16), 32), (-1, 4, 2, False)):
        options = {"heads": 2} if len(arguments) == 2 else {}
        one, other = plain(*arguments, **options), theirs(*arguments, **options)
        assert repr(one) == repr(other)
        assert list(one.state_dict()) == list(other.state_dict())
    torch.manual_seed(0)
    one = plain(8, 4, edge_dim=3)
    torch.manual_seed(0)
    other = theirs(8, 4, edge_dim=3)
    for key, value in other.state_dict().items():
        assert torch.equal(one.state_dict()[key], value), key
    one.load_state_dict(other.state_dict())
    other.load_state_dict(one.state_dict())
    assert not isinstance(one, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_a_temperature_or_a_gate_needs_the_other_class(name):
    for option in ({"gate": "post"}, {"temperature": None}, {"init_temp": 2.0}):
        words = f"{name} takes no {min(option)}; use Temper{name}"
        with pytest.raises(TypeError, match=words):
            getattr(ours, name)(8, 4, **option)


def test_pools_and_models_of_pyg_show_the_layers_as_their_own():
    for package in (pyg, ours):
        pool = pyg.SAGPooling(16, ratio=0.5, GNN=package.GATConv)
        assert repr(pool) == "SAGPooling(GATConv, 16, ratio=0.5, multiplier=1.0)"
        assert pool(torch.randn(9, 16), EDGES)[0].shape == (5, 16)


def test_edge_features_that_a_layer_was_not_made_for_are_ignored_as_in_pyg():
    theirs, plain = pyg.GATConv(8, 4), ours.GATConv(8, 4)
    plain.load_state_dict(theirs.state_dict())
    features = torch.randn(30, 2)
    with pytest.warns(UserWarning, match="edge_attr is ignored"):
        out = plain(X, EDGES, features)
    torch.testing.assert_close(out, theirs(X, EDGES, features))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("first", [pyg, ours])
def test_layers_of_both_packages_work_side_by_side(name, first):
    second = ours if first is pyg else pyg
    layers = [
        (getattr(first, name)(8, 6), "x, edge_index -> x"),
        (getattr(second, name)(6, 6), "x, edge_index -> x"),
    ]
    model = pyg.Sequential("x, edge_index", layers)
    same = pyg.Sequential(
        "x, edge_index",
        [(getattr(pyg, name)(width, 6), "x, edge_index -> x") for width in (8, 6)],
    )
    same.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(X, EDGES), same(X, EDGES))
    found = []
    for net in (model, same):
        torch.manual_seed(0)
        masks = []
        for way in (AttentionExplainer(), GNNExplainer(epochs=3)):
            explainer = Explainer(
                net,
                way,
                explanation_type="model",
                edge_mask_type="object",
                model_config={"mode": "regression", "task_level": "node"},
            )
            masks.append(explainer(X, EDGES).edge_mask)
        found.append(masks)
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_pygs_weights_in_a_gated_layer_are_explained():
    theirs = torch.nn.ModuleList([pyg.GATConv(8, 4), pyg.GATConv(4, 2)])
    gated = torch.nn.ModuleList([ours.TemperGATConv(8, 4), ours.TemperGATConv(4, 2)])
    words = (
        "PyG's layers, or into GATConv, GATv2Conv or TransformerConv of tempergat.nn"
    )
    with pytest.raises(RuntimeError, match=words) as raised:
        gated.load_state_dict(theirs.state_dict())
    assert len(re.findall(r"upgrade\(model\)", str(raised.value))) == 1
    missing, _ = gated.load_state_dict(theirs.state_dict(), strict=False)
    assert "0.lin_gate.bias" in missing
