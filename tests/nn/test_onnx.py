"""Exported to ONNX, layers and models give the same outputs on any graph."""

import io
import warnings

import pytest
import torch
from torch.export import Dim

from tempergat.nn import (
    NodeType,
    TypedFeatures,
    build_model,
    build_typed_model,
)
from tests.support.layers import LAYERS

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

VARIANTS = {
    "plain": {"temperature": None},
    "temperature": {"temperature": "layer", "init_temp": 0.5},
    "temperature per head": {"temperature": "head", "init_temp": 2.0},
    "fixed temperature": {"temperature": 0.7},
    "gate": {"gate": "post"},
    "gate first": {"gate": "first"},
    "gate of heads": {"gate": "head"},
    "mean of heads, residual": {"concat": False, "residual": True},
    "without self-loops": {"add_self_loops": False},
    "other direction": {"flow": "target_to_source"},
}
AXES = {
    "x": {0: Dim("nodes")},
    "edge_index": {1: Dim("edges")},
    "edge_attr": {0: Dim("edges")},
    "edge_weight": {0: Dim("edges")},
}
SLOW = pytest.mark.slow
# The tracing exporter takes a tenth of the other one's time.
BOTH_EXPORTERS = [False, pytest.param(True, marks=SLOW)]
# The exported graph has 12 nodes and 40 edges.
OTHER_GRAPHS = [(30, 7), (9, 200), (4, 2)]


def make_graph(nodes, edges, seed=0, scale=1.0):
    """A graph with self-loops, repeated edges and nodes without edges."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(0, max(2, nodes // 2), (2, edges), generator=generator)
    edge_index[:, 0] = 1
    edge_index[:, 1] = edge_index[:, -1]
    return {
        "x": scale * torch.randn(nodes, 5, generator=generator),
        "edge_index": edge_index,
        "edge_attr": torch.randn(edges, 3, generator=generator),
        "edge_weight": torch.rand(edges, generator=generator),
    }


class Net(torch.nn.Module):
    """A module whose forward has no arguments by name only.

    The tracing exporter would pass those of a layer by position.
    """

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, edge_index, edge_attr=None):
        return self.layer(x, edge_index, edge_attr)


def exported(module, arguments, dynamo):
    """The program as onnxruntime runs it."""
    file = io.BytesIO()
    settings = {"input_names": list(arguments), "output_names": ["out"]}
    axes = {name: AXES[name] for name in arguments}
    with warnings.catch_warnings():
        # torch deprecates the tracing exporter and its own functions.
        warnings.simplefilter("ignore")
        if dynamo:
            program = torch.onnx.export(
                module,
                kwargs=arguments,
                dynamo=True,
                dynamic_shapes=axes,
                verbose=False,
                **settings,
            )
            program.save(file)
        else:
            torch.onnx.export(
                module,
                (arguments,),
                file,
                dynamo=False,
                dynamic_axes={
                    name: {at: dim.__name__ for at, dim in axis.items()}
                    for name, axis in axes.items()
                },
                opset_version=18,
                **settings,
            )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        file.getvalue(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]

    def run(inputs):
        feeds = {name: inputs[name].numpy() for name in names}
        return torch.from_numpy(session.run(None, feeds)[0])

    return run


def check(module, names, dynamo, scale=1.0):
    """Exports for one graph and compares on others."""

    def inputs(*size):
        graph = make_graph(*size, scale=scale)
        return {name: graph[name] for name in names}

    module.eval()
    run = exported(module, inputs(12, 40), dynamo)
    for size in [(12, 40), *OTHER_GRAPHS]:
        given = inputs(*size, 1)
        with torch.no_grad():
            expected = module(**given)
        assert torch.allclose(run(given), expected, rtol=1e-4, atol=1e-5), size


@pytest.mark.parametrize(
    ("layer", "variant"),
    [
        *(("gat", variant) for variant in VARIANTS),
        ("gatv2", "temperature per head"),
        ("gatv2", "gate first"),
        ("transformer", "temperature per head"),
        ("transformer", "gate first"),
        ("transformer", "other direction"),
    ],
)
def test_a_traced_layer_runs_on_graphs_of_other_sizes(layer, variant):
    conv = LAYERS[layer](5, 4, heads=2, **VARIANTS[variant])
    check(Net(conv), ["x", "edge_index"], dynamo=False)


@pytest.mark.parametrize(
    ("layer", "variant"),
    [
        ("gat", "gate"),
        pytest.param("gat", "gate first", marks=SLOW),
        pytest.param("gatv2", "temperature per head", marks=SLOW),
        pytest.param("gatv2", "without self-loops", marks=SLOW),
        pytest.param("transformer", "gate", marks=SLOW),
    ],
)
def test_an_exported_layer_runs_on_graphs_of_other_sizes(layer, variant):
    conv = LAYERS[layer](5, 4, heads=2, **VARIANTS[variant])
    check(conv, ["x", "edge_index"], dynamo=True)


@pytest.mark.parametrize("dynamo", BOTH_EXPORTERS)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_with_edge_features_is_exported(layer, dynamo):
    conv = LAYERS[layer](5, 4, heads=2, edge_dim=3)
    check(Net(conv), ["x", "edge_index", "edge_attr"], dynamo)


@pytest.mark.parametrize("dynamo", BOTH_EXPORTERS)
def test_a_model_of_two_layers_is_exported(dynamo):
    model = build_model("temp_gated_v2", 5, 8, 3, heads=2, dropout=0.5)
    check(model, ["x", "edge_index"], dynamo)


@pytest.mark.parametrize("method", ["mlp", "gcn", "gated_temp"])
def test_models_of_other_methods_are_exported(method):
    check(build_model(method, 5, 8, 3), ["x", "edge_index"], dynamo=False)


@pytest.mark.parametrize("dynamo", BOTH_EXPORTERS)
def test_edge_weights_of_a_graph_convolution_are_exported(dynamo):
    model = build_model("gcn", 5, 8, 3)
    check(model, ["x", "edge_index", "edge_weight"], dynamo)


@pytest.mark.parametrize(
    ("layer", "dynamo"),
    [("gat", False), ("gatv2", False), pytest.param("gat", True, marks=SLOW)],
)
def test_logits_far_below_zero_are_exported(layer, dynamo):
    """The exported softmax subtracts the largest logit, not the larger of it and 0.

    PyG 2.8.1 and torch 2.13 do the latter in traced programs, whose outputs are then
    wrong (pytorch/pytorch#147617).
    """
    conv = LAYERS[layer](5, 4, heads=2, negative_slope=1.0, temperature=None)
    with torch.no_grad():
        for name, parameter in conv.named_parameters():
            if name.startswith("att"):
                parameter.mul_(50.0)
    check(Net(conv), ["x", "edge_index"], dynamo, scale=20.0)


class TypedOnTensors(torch.nn.Module):
    """A typed model with plain tensors as inputs, as ONNX has them."""

    def __init__(self, method):
        super().__init__()
        types = [NodeType("paper", 6, 5), NodeType("author", 6, 5)]
        self.model = build_typed_model(method, types, 8, 3)

    def forward(self, x, edge_index):
        papers, authors = x[:2], x[2:]
        nodes = TypedFeatures((papers, authors), papers.size(0))
        return self.model(nodes, edge_index)


@pytest.mark.parametrize("dynamo", BOTH_EXPORTERS)
def test_a_typed_model_is_exported(dynamo):
    check(TypedOnTensors("temp_gated"), ["x", "edge_index"], dynamo)
