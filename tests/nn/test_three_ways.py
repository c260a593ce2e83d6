"""The fused kernels, PyG's message path and the reference compute the same sum."""

import itertools

import pytest
import torch

from tempergat import ops
from tempergat.nn import TemperGATConv, TemperGATv2Conv, TemperTransformerConv
from tempergat.ops import backend
from tempergat.ops.kinds import registered

LAYERS = {
    "gat": TemperGATConv,
    "gatv2": TemperGATv2Conv,
    "dot_product": TemperTransformerConv,
}
COMBINATIONS = list(
    itertools.product(LAYERS, [None, "layer", "head"], [None, "post", "first", "head"])
)
OPTIONS = {
    "plain": {},
    "dropout": {"dropout": 0.4},
    "edge features": {"edge_dim": 3},
    "reversed": {"flow": "target_to_source"},
    "edge weights": {"dropout": 0.4},
    "edge biases": {},
}
OWN_OPTIONS = {
    "no self-loops": {"add_self_loops": False},
    "edge biases": {"add_self_loops": False},
    "gated skip": {"residual": "gate"},
}
TRANSFORMER_OPTIONS = {
    "gated skip": {"beta": True},
    "no skip, mean of heads": {"root_weight": False, "concat": False},
    "normalised": {"qk_norm": True},
}
X = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
EDGES = torch.randint(0, 12, (2, 50), generator=torch.Generator().manual_seed(1))
EDGE_ATTR = torch.randn(50, 3, generator=torch.Generator().manual_seed(2))
# All edges into node 4 are masked, and some others.
EDGE_BIAS = torch.where(
    (EDGES[1] == 4) | (EDGE_ATTR[:, 1] > 1), -torch.inf, EDGE_ATTR.T
)
OF_EDGES = {
    "edge features": {"edge_attr": EDGE_ATTR.double()},
    "edge weights": {"edge_weight": EDGE_ATTR[:, 0].double()},
    "edge biases": {"edge_bias": EDGE_BIAS.T.double()},
}


def use_reference(monkeypatch):
    """Makes the layers call the reference, and counts the calls."""
    calls = []
    monkeypatch.setattr(backend, "find", lambda *_: None)

    def counted(name, function):
        return lambda *arguments: (calls.append(name), function(*arguments))[1]

    for name in LAYERS:
        kind = registered(name)
        monkeypatch.setattr(kind, "reference", counted(name, kind.reference))
    return calls


def step(conv, of_edges):
    """Output, attention weights and every gradient, by name."""
    conv.zero_grad()
    x = X.double().requires_grad_()
    seed = torch.tensor(4)
    out, (_, alpha) = conv(
        x, EDGES, return_attention_weights=True, dropout_seed=seed, **of_edges
    )
    # A direction that keeps the gradients of all terms apart.
    (
        out * torch.arange(out.numel(), dtype=out.dtype).view_as(out).sin()
    ).sum().backward()
    gradients = {
        name: p.grad.clone()
        for name, p in conv.named_parameters()
        # PyG's layer has a map of the root that it does not use without root_weight.
        if p.grad is not None or getattr(conv, "root_weight", True)
    }
    return {"out": out.detach(), "alpha": alpha.detach(), "x": x.grad, **gradients}


def options_of(backbone):
    own = TRANSFORMER_OPTIONS if backbone == "dot_product" else OWN_OPTIONS
    return OPTIONS | own


@pytest.mark.parametrize(
    ("backbone", "temperature", "gate", "options"),
    [(*c, options) for c in COMBINATIONS for options in options_of(c[0])],
)
def test_the_three_ways_agree(backbone, temperature, gate, options, monkeypatch):
    torch.manual_seed(3)
    given = options_of(backbone)[options]
    conv = LAYERS[backbone](
        5, 4, heads=3, temperature=temperature, gate=gate, **given
    ).double()
    of_edges = OF_EDGES.get(options, {})
    found = {"fused": step(conv, of_edges)}
    hook = conv.register_message_forward_hook(lambda *_: None)
    assert conv.slow_path_reason() is not None
    found["messages"] = step(conv, of_edges)
    hook.remove()
    calls = use_reference(monkeypatch)
    found["reference"] = step(conv, of_edges)
    assert calls == [backbone]
    for way in ("messages", "reference"):
        for name, expected in found["fused"].items():
            assert torch.allclose(found[way][name], expected, atol=1e-10), (way, name)


def test_the_kernels_serve_where_nothing_forbids_it():
    graph = ops.Graph(EDGES, 12)
    assert ops.explain(graph, torch.randn(12, 3, 4)).backend == "cpu"
