"""The layers work with other features of torch and PyG."""

import copy
import itertools
import pickle

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch_geometric import EdgeIndex
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer
from torch_geometric.nn import to_hetero

from tempergat import Graph
from tempergat.nn import TemperGATConv, build_model, gate_penalty
from tests.support.layers import LAYERS, METHOD_OF, PYG_LAYERS
from tests.support.versions import needs_torch

X = torch.randn(10, 5, generator=torch.Generator().manual_seed(0))
EDGES = torch.randint(0, 10, (2, 40), generator=torch.Generator().manual_seed(1))
counts_loops = needs_torch(2, 11, "Dynamo cannot count the edges without self-loops")
COMBINATIONS = list(itertools.product(LAYERS, [None, "post", "first", "head"]))


def step(layer, conv, x, edges):
    conv.zero_grad()
    x = x.clone().requires_grad_()
    out = layer(x, edges)
    out.pow(2).sum().backward()
    grads = {n: p.grad.clone() for n, p in conv.named_parameters()}
    return out.detach(), grads | {"x": x.grad}


def assert_steps_equal(ours, expected):
    assert torch.allclose(ours[0], expected[0], atol=1e-5)
    # What is left of gradients that cancel, as of the keys' bias, is rounding.
    largest = max(gradient.abs().max().item() for gradient in expected[1].values())
    for name, gradient in expected[1].items():
        scale = gradient.abs().max().item() + 0.01 * largest + 1e-6
        assert torch.allclose(ours[1][name], gradient, atol=1e-5 * scale), name


@pytest.mark.parametrize(
    ("backbone", "gate", "edges"),
    [
        *((backbone, "post", "tensor") for backbone in LAYERS),
        ("gat", None, "tensor"),
        ("gatv2", "first", "tensor"),
        ("gat", "post", "graph"),
        pytest.param("gatv2", "post", "edge_index", marks=counts_loops),
    ],
)
def test_compiled_whole_forward_and_backward(backbone, gate, edges):
    torch._dynamo.reset()
    conv = LAYERS[backbone](5, 4, heads=2, gate=gate)
    forms = {
        "tensor": EDGES,
        "graph": Graph(EDGES, 10),
        "edge_index": EdgeIndex(EDGES, sparse_size=(10, 10)),
    }
    index = forms[edges]
    expected = step(conv, conv, X, index)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    assert_steps_equal(step(compiled, conv, X, index), expected)


@pytest.mark.slow
@pytest.mark.parametrize(("backbone", "gate"), COMBINATIONS)
def test_compiled_by_inductor(backbone, gate):
    torch._dynamo.reset()
    conv = LAYERS[backbone](5, 4, heads=2, gate=gate)
    expected = step(conv, conv, X, EDGES)
    compiled = torch.compile(conv, fullgraph=True)
    assert_steps_equal(step(compiled, conv, X, EDGES), expected)


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_compiled_with_edge_features_and_existing_self_loops(backbone, flow):
    torch._dynamo.reset()
    conv = LAYERS[backbone](5, 4, edge_dim=3, flow=flow)
    edges = torch.cat([EDGES, torch.tensor([[2, 2, 7], [2, 2, 7]])], dim=1)
    edge_attr = torch.randn(43, 3)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    expected = conv(X, edges, edge_attr)
    assert torch.allclose(compiled(X, edges, edge_attr), expected, atol=1e-6)


@counts_loops
@pytest.mark.parametrize("x", [X, torch.stack([X, -X])], ids=["one", "sets"])
@pytest.mark.parametrize("backbone", LAYERS)
def test_compiled_with_values_of_edges_and_returned_weights(backbone, x):
    torch._dynamo.reset()
    conv = LAYERS[backbone](5, 4, heads=2, edge_dim=3)
    of_edges = {"edge_attr": torch.randn(40, 3), "edge_weight": torch.rand(40)}
    options = {**of_edges, "return_attention_weights": True}
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    expected, (edges, weights) = conv(x, EDGES, **options)
    out, (found, ours) = compiled(x, EDGES, **options)
    assert torch.allclose(out, expected, atol=1e-6)
    assert torch.equal(found, edges)
    assert torch.allclose(ours, weights, atol=1e-6)


@pytest.mark.parametrize("backbone", LAYERS)
def test_compiled_with_features_of_both_sides(backbone):
    torch._dynamo.reset()
    conv = LAYERS[backbone]((5, 3), 4, heads=2)
    y = torch.randn(10, 3)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled((X, y), EDGES), conv((X, y), EDGES), atol=1e-6)


@pytest.mark.parametrize(("backbone", "gate"), COMBINATIONS)
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_traced_layer_passes_torchs_check_and_runs_on_other_edges(backbone, gate):
    conv = LAYERS[backbone](5, 4, heads=2, gate=gate).eval()
    traced = torch.jit.trace(conv, (X, EDGES))
    edges = torch.randint(0, 10, (2, 17))
    assert torch.allclose(traced(X, edges), conv(X, edges), atol=1e-6)


def test_scripting_is_refused_in_words():
    with pytest.raises(TypeError, match=r"use torch\.compile or torch\.export"):
        torch.jit.script(build_model("temp_gated", 5, 8, 3))


@pytest.mark.parametrize("backbone", LAYERS)
def test_exported_program_runs_on_other_edges(backbone):
    conv = LAYERS[backbone](5, 4, heads=2).eval()
    program = torch.export.export(conv, (X, EDGES), strict=False)
    edges = torch.randint(0, 10, (2, 40))
    assert torch.allclose(program.module()(X, edges), conv(X, edges), atol=1e-6)


@pytest.mark.parametrize(
    ("backbone", "self_loops", "strict"),
    [
        pytest.param("gat", True, True, marks=counts_loops),
        ("gat", True, False),
        *((b, False, False) for b in LAYERS),
    ],
)
def test_exported_for_any_number_of_nodes_and_edges(backbone, self_loops, strict):
    conv = LAYERS[backbone](5, 4, add_self_loops=self_loops).eval()
    shapes = {
        "x": {0: torch.export.Dim("nodes")},
        "edge_index": {1: torch.export.Dim("edges")},
    }
    program = torch.export.export(
        conv, (X, EDGES), dynamic_shapes=shapes, strict=strict
    )
    x, edges = torch.randn(23, 5), torch.randint(0, 23, (2, 17))
    assert torch.allclose(program.module()(x, edges), conv(x, edges), atol=1e-6)


@pytest.mark.parametrize(("backbone", "gate"), COMBINATIONS)
def test_autocast_keeps_the_result_close(backbone, gate):
    conv = LAYERS[backbone](5, 4, heads=2, gate=gate)
    expected = conv(X, EDGES)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = conv(X, EDGES)
        loss = out.float().pow(2).mean() + gate_penalty(conv)
    loss.backward()
    assert torch.allclose(
        out.float(), expected, atol=0.05 * expected.abs().max().item()
    )
    assert all(torch.isfinite(p.grad).all() for p in conv.parameters())


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("temperature", [1e-3, 1e3])
def test_half_autocast_keeps_the_logits_finite(backbone, temperature):
    conv = LAYERS[backbone](5, 4, heads=2, edge_dim=3, init_temp=temperature)
    x, edge_attr = 30 * X, 30 * torch.randn(40, 3)
    with torch.autocast("cpu", dtype=torch.float16):
        out = conv(x, EDGES, edge_attr)
    assert torch.isfinite(out).all()
    out.float().mean().backward()
    assert all(torch.isfinite(p.grad).all() for p in conv.parameters())


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("given", ["tensor", "graph", "sparse features"])
def test_inference_mode_first_leaves_training_possible(backbone, given):
    conv = LAYERS[backbone](5, 4)
    edges = Graph(EDGES, 10) if given == "graph" else EDGES.clone()
    x = X.to_sparse_csr() if given == "sparse features" else X
    with torch.inference_mode():
        expected = conv(x, edges)
    out = conv(x, edges)
    out.sum().backward()
    assert torch.equal(out, expected)


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("without_data", [lambda: torch.device("meta"), FakeTensorMode])
def test_layers_run_on_tensors_without_data(backbone, without_data):
    with without_data():
        conv = LAYERS[backbone](5, 4, heads=2, add_self_loops=False)
        x = torch.randn(10, 5, requires_grad=True)
        out = conv(x, torch.randint(0, 10, (2, 40)))
        out.sum().backward()
    assert out.shape == (10, 8)
    assert x.grad.shape == x.shape


@pytest.mark.parametrize("backbone", LAYERS)
def test_layers_can_be_made_on_the_meta_device(backbone):
    with torch.device("meta"):
        conv = LAYERS[backbone](5, 4)
    conv = conv.to_empty(device="cpu")
    conv.reset_parameters()
    assert conv.temperature == 1.0


@pytest.mark.parametrize(("backbone", "gate"), COMBINATIONS)
def test_deterministic_algorithms(backbone, gate):
    conv = LAYERS[backbone](5, 4, heads=2, gate=gate, edge_dim=2)
    edge_attr = torch.randn(40, 2)
    torch.use_deterministic_algorithms(True)
    try:
        first = conv(X, EDGES, edge_attr)
        first.sum().backward()
        assert torch.equal(conv(X, EDGES, edge_attr), first)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(("backbone", "gate"), COMBINATIONS)
def test_copies_right_after_a_training_step(backbone, gate):
    conv = LAYERS[backbone](5, 4, heads=2, gate=gate)
    out = conv(X, EDGES)
    assert torch.equal(copy.deepcopy(conv)(X, EDGES), out)
    assert torch.equal(pickle.loads(pickle.dumps(conv))(X, EDGES), out)
    out.sum().backward()


@pytest.mark.parametrize("backbone", LAYERS)
def test_to_hetero(backbone):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = LAYERS[backbone]((-1, -1), 4, add_self_loops=False)
            self.conv2 = LAYERS[backbone]((-1, -1), 3, add_self_loops=False)

        def forward(self, x, edge_index):
            return self.conv2(self.conv1(x, edge_index).relu(), edge_index)

    metadata = (["a", "b"], [("a", "x", "b"), ("b", "y", "a")])
    model = to_hetero(Net(), metadata)
    x = {"a": torch.randn(6, 3), "b": torch.randn(4, 5)}
    edges = {
        ("a", "x", "b"): torch.tensor([[0, 5, 2], [1, 3, 3]]),
        ("b", "y", "a"): torch.tensor([[0, 1], [1, 2]]),
    }
    out = model(x, edges)
    assert out["a"].shape == (6, 3)
    assert gate_penalty(model) > 0


def test_to_hetero_refuses_self_loops_as_pyg_does():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = TemperGATConv((-1, -1), 4)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    with pytest.raises(ValueError, match="add_self_loops"):
        to_hetero(Net(), (["a", "b"], [("a", "x", "b"), ("b", "y", "a")]))


def explain(model, algorithm, **kwargs):
    explainer = Explainer(
        model,
        algorithm,
        explanation_type="model",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
        **kwargs,
    )
    return explainer(X, EDGES, index=3)


@pytest.mark.parametrize("backbone", LAYERS)
def test_attention_explainer_reads_pygs_attention(backbone):
    theirs = PYG_LAYERS[backbone](5, 4, heads=2).eval()
    ours = LAYERS[backbone](5, 4, heads=2, temperature=None, gate=None).eval()
    ours.load_state_dict(theirs.state_dict())
    found = [
        explain(layer, AttentionExplainer(), edge_mask_type="object").edge_mask
        for layer in (ours, theirs)
    ]
    torch.testing.assert_close(*found)
    assert ours.slow_path_reason() is None


@pytest.mark.parametrize("backbone", LAYERS)
def test_mask_based_explainer_learns_a_mask(backbone):
    model = build_model(METHOD_OF[backbone], 5, 8, 3, heads=2)
    before = model.eval()(X, EDGES)
    explanation = explain(
        model,
        GNNExplainer(epochs=5),
        edge_mask_type="object",
        node_mask_type="attributes",
    )
    assert explanation.edge_mask.shape == (40,)
    assert explanation.edge_mask.max() > 0
    assert torch.equal(model(X, EDGES), before)
