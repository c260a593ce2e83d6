"""A new attention layer can use the existing temperature and gate.

It needs its mathematics, one registration and a layer; nothing in tempergat is edited.
"""

import itertools

import pytest
import torch
from torch import nn

from tempergat import Graph, ops
from tempergat.nn import (
    FeatureGate,
    GateLinear,
    gate_penalty,
    make_theta,
    temperature_of,
)
from tempergat.ops.reference import at_source, at_target
from tests.support import dense_attention as dense

COMBINATIONS = list(
    itertools.product([None, "layer", "head", 0.5], [None, "post", "first", "head"])
)
EDGES = torch.randint(0, 9, (2, 30), generator=torch.Generator().manual_seed(1))


def scaled_dot(graph, value, key, query):
    """Logits ``<query[i], key[j]>``."""
    return (at_target(graph, query) * at_source(graph, key)).sum(-1)


@pytest.fixture(autouse=True, scope="module")
def registered():
    inputs = [
        ops.Input("value", "SHC"),
        ops.Input("key", "SHC"),
        ops.Input("query", "THC"),
    ]
    ops.register_attention("scaled_dot", inputs=inputs, reference=scaled_dot)


class DotProductConv(nn.Module):
    def __init__(self, in_channels, channels, heads, temperature, gate):
        super().__init__()
        width = heads * channels
        self.shape = (-1, heads, channels)
        self.lin_query = nn.Linear(in_channels, width)
        self.lin_key = nn.Linear(in_channels, width)
        self.lin_value = nn.Linear(in_channels, width)
        self.theta = make_theta(temperature, heads, init_temp=0.8)
        self.fixed = temperature if isinstance(temperature, float) else 1.0
        self.gates = FeatureGate(gate, channels)
        if gate is not None:
            outputs = heads if gate == "head" else width
            self.lin_gate = GateLinear(in_channels, outputs, bias_init=0.3)

    def forward(self, x, edge_index):
        graph = Graph(edge_index, len(x), self_loops=True)
        query, key, value = self.lin_query(x), self.lin_key(x), self.lin_value(x)
        logit = None if self.gates.kind is None else self.lin_gate(x)
        if self.gates.kind == "first":
            (value,) = self.gates.features([value], [logit], graph)
        value, key, query = (z.view(self.shape) for z in (value, key, query))
        query = ops.divide_by_temperature(query, self.theta) / self.fixed
        query = query * query.size(-1) ** -0.5
        out = ops.attend("scaled_dot", graph, value, key, query)[0].flatten(1)
        if self.gates.kind in (None, "first"):
            return out
        return self.gates.output(out, self.gates.widen(logit), graph)


def by_matrices(p, x, counts, heads, temperature, gate):
    """The same layer on N x N matrices, from its state_dict's names alone."""

    def project(name):
        z = x @ p[f"{name}.weight"].t() + p[f"{name}.bias"]
        return z.view(len(x), heads, -1)

    query, key, value = (project(f"lin_{n}") for n in ("query", "key", "value"))
    g = torch.sigmoid(project("lin_gate")) if gate else None
    if gate == "first":
        value = value * g
    logit = torch.einsum("ihc,jhc->ijh", query, key) / query.size(-1) ** 0.5
    if isinstance(temperature, str):
        logit = logit / (nn.functional.softplus(p["theta"]) + 1e-6)
    elif temperature is not None:
        logit = logit / temperature
    out = torch.einsum("ijh,jhc->ihc", dense.masked_softmax(logit, counts), value)
    return (out * g if gate in ("post", "head") else out).flatten(1)


@pytest.mark.parametrize(("temperature", "gate"), COMBINATIONS)
def test_output_and_gradients_are_those_of_a_dense_softmax(temperature, gate):
    torch.manual_seed(0)
    conv = DotProductConv(5, 4, 3, temperature, gate).double()
    parameters = dict(conv.named_parameters())
    assert ("theta" in parameters) == isinstance(temperature, str)
    assert ("lin_gate.weight" in parameters) == (gate is not None)
    x = torch.randn(9, 5, dtype=torch.double, requires_grad=True)
    counts = dense.adjacency(EDGES, 9, 9, self_loops=True)
    out = conv(x, EDGES)
    expected = by_matrices(parameters, x, counts, 3, temperature, gate)
    assert torch.allclose(out, expected, rtol=1e-12, atol=1e-12)
    inputs = [x, *parameters.values()]
    direction = torch.randn_like(out)
    ours = torch.autograd.grad((out * direction).sum(), inputs)
    theirs = torch.autograd.grad((expected * direction).sum(), inputs)
    for name, a, b in zip(["x", *parameters], ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-11), name


@pytest.mark.parametrize("temperature", ["layer", "head"])
@pytest.mark.parametrize("gate", ["post", "first"])
def test_temperature_and_gate_are_trained(temperature, gate):
    torch.manual_seed(0)
    conv = DotProductConv(5, 4, 3, temperature, gate)
    x, target = torch.randn(9, 5), torch.randn(9, 12)
    optimizer = torch.optim.Adam(conv.parameters(), lr=0.05)
    before = {name: p.detach().clone() for name, p in conv.named_parameters()}
    assert torch.allclose(temperature_of(conv.theta), torch.tensor(0.8))
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        out = conv(x, EDGES)
        loss = (out - target).square().mean() + 0.01 * gate_penalty(conv)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    for name, parameter in conv.named_parameters():
        assert not torch.equal(parameter, before[name]), name


def test_the_penalty_finds_the_gate():
    conv = DotProductConv(5, 4, 3, None, "post")
    x = torch.randn(9, 5)
    conv(x, EDGES)
    assert torch.allclose(gate_penalty(conv), torch.sigmoid(conv.lin_gate(x)).mean())
