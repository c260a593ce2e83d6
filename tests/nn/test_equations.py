"""The layers compute what the paper's equations say."""

import itertools

import pytest
import torch
from torch.autograd import gradcheck

from tempergat.nn import TemperGATConv, TemperGATv2Conv, build_model
from tests.support.dense_layer import DenseLayer
from tests.support.layers import LAYERS, METHOD_OF

COMBINATIONS = list(
    itertools.product(LAYERS, [None, "layer", "head"], [None, "post", "first", "head"])
)


def random_graph(num_nodes: int = 9, num_edges: int = 30) -> torch.Tensor:
    return torch.randint(0, num_nodes, (2, num_edges))


def make(backbone: str, **kwargs):
    conv = LAYERS[backbone](5, 4, heads=3, **kwargs).double()
    for parameter in conv.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return conv


@pytest.mark.parametrize(("backbone", "temperature", "gate"), COMBINATIONS)
@pytest.mark.parametrize("concat", [True, False])
@pytest.mark.parametrize("self_loops", [True, False])
def test_output_and_every_gradient_follow_the_formula(
    backbone, temperature, gate, concat, self_loops
):
    conv = make(
        backbone,
        temperature=temperature,
        gate=gate,
        concat=concat,
        add_self_loops=self_loops,
    )
    x = torch.randn(9, 5, dtype=torch.double, requires_grad=True)
    edge_index = random_graph()
    parameters = dict(conv.named_parameters())
    expected = DenseLayer(conv)(x, edge_index)
    out = conv(x, edge_index)
    assert torch.allclose(out, expected, rtol=1e-12, atol=1e-12)

    direction = torch.randn_like(out)
    names = ["x", *parameters]
    inputs = [x, *parameters.values()]
    ours = torch.autograd.grad((out * direction).sum(), inputs)
    theirs = torch.autograd.grad((expected * direction).sum(), inputs)
    for name, a, b in zip(names, ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-11), name


@pytest.mark.parametrize(("backbone", "temperature", "gate"), COMBINATIONS)
def test_gradients_agree_with_finite_differences(backbone, temperature, gate):
    conv = make(backbone, temperature=temperature, gate=gate)
    edge_index = random_graph(5, 9)
    x = torch.randn(5, 5, dtype=torch.double, requires_grad=True)
    parameters = list(conv.parameters())
    # Along random directions; the formula has every entry of the Jacobian above.
    assert gradcheck(
        lambda *inputs: conv(inputs[0], edge_index), (x, *parameters), fast_mode=True
    )


@pytest.mark.parametrize("backbone", LAYERS)
def test_remark_1_counts_the_new_parameters(backbone):
    def count(**kwargs) -> int:
        conv = LAYERS[backbone](7, 4, heads=3, **kwargs)
        return sum(p.numel() for p in conv.parameters())

    plain = count(temperature=None, gate=None)
    width_in, width_out = 7, 12
    gate = width_in * width_out + width_out
    assert count(temperature="layer", gate=None) == plain + 1
    assert count(temperature="head", gate=None) == plain + 3
    assert count(temperature=None, gate="post") == plain + gate
    assert count(temperature=None, gate="first") == plain + gate
    assert count(temperature=None, gate="head") == plain + 3 * (width_in + 1)
    assert count(temperature="layer", gate="post") == plain + gate + 1
    assert count(temperature=2.0, gate=None) == plain


def weighted_l1_layer(weights: torch.Tensor, gate=None) -> TemperGATv2Conv:
    """The layer whose logit is the paper's weighted l1 distance."""
    d = len(weights)
    conv = TemperGATv2Conv(
        d, 2 * d, bias=False, add_self_loops=False, temperature="layer", gate=gate
    ).double()
    diagonal = torch.diag(weights)
    slope = conv.negative_slope
    with torch.no_grad():
        # W [h_i || h_j] with i the target: W_r h_i + W_l h_j.
        conv.lin_r.weight.copy_(torch.cat([diagonal, -diagonal]))
        conv.lin_l.weight.copy_(torch.cat([-diagonal, diagonal]))
        conv.att.fill_(-1.0 / (1.0 - slope))
    return conv


def l1_attention(h, edge_index, weights, temperature):
    source, target = edge_index
    logit = -(weights * (h[target] - h[source]).abs()).sum(-1) / temperature
    alpha = torch.zeros_like(logit)
    for i in target.unique():
        alpha[target == i] = torch.softmax(logit[target == i], dim=0)
    return alpha


def test_weighted_l1_logit_of_the_theory_is_a_gatv2_layer():
    weights = torch.rand(4, dtype=torch.double) + 0.1
    h = torch.randn(8, 4, dtype=torch.double)
    edge_index = random_graph(8, 24)
    conv = weighted_l1_layer(weights)
    with torch.no_grad():
        conv.theta.fill_(1.3)
    _, (_, alpha) = conv(h, edge_index, return_attention_weights=True)
    expected = l1_attention(h, edge_index, weights, conv.temperature)
    assert torch.allclose(alpha.squeeze(-1), expected, rtol=1e-12, atol=1e-14)


class Constant(torch.nn.Module):
    """A map that gives the same values whatever its input."""

    def __init__(self, values: torch.Tensor) -> None:
        super().__init__()
        self.values = values

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.values


def test_oracle_gate_on_the_projected_channels_gives_the_oracle_gated_logit():
    weights = torch.rand(4, dtype=torch.double) + 0.1
    observed = (torch.rand(8, 4) < 0.6).double()
    h = torch.randn(8, 4, dtype=torch.double)
    edge_index = random_graph(8, 24)
    conv = weighted_l1_layer(weights, gate="first")
    with torch.no_grad():
        conv.theta.fill_(0.4)
    # The oracle knows the mask, which no function of h does: put it in its place.
    gate = torch.cat([observed, observed], dim=-1)
    conv.lin_gate = Constant(torch.logit(gate))
    _, (_, alpha) = conv(h, edge_index, return_attention_weights=True)
    expected = l1_attention(h * observed, edge_index, weights, conv.temperature)
    assert torch.allclose(alpha.squeeze(-1), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("init_temp", [1e-3, 0.1, 0.5, 1.0, 2.0, 30.0, 1e3])
@pytest.mark.parametrize("temperature", ["layer", "head"])
def test_temperature_starts_at_init_temp(init_temp, temperature):
    conv = TemperGATConv(3, 2, heads=4, temperature=temperature, init_temp=init_temp)
    assert conv.temperature.shape == (() if temperature == "layer" else (4,))
    expected = torch.full_like(conv.temperature, init_temp)
    assert torch.allclose(conv.temperature, expected, rtol=1e-6, atol=0)


def test_fixed_temperature_is_not_learned_and_not_saved():
    conv = TemperGATConv(3, 2, temperature=2.5, init_temp=7.0)
    assert conv.temperature.item() == 2.5
    assert not conv.temperature.requires_grad
    assert not any("temp" in key or "theta" in key for key in conv.state_dict())
    assert TemperGATConv(3, 2, temperature=None).temperature is None


@pytest.mark.parametrize("backbone", LAYERS)
def test_higher_temperature_flattens_attention(backbone):
    x, edge_index = torch.randn(6, 5), random_graph(6, 20)
    spreads = []
    for temperature in (0.1, 1.0, 10.0):
        torch.manual_seed(3)
        conv = LAYERS[backbone](5, 4, temperature=temperature, gate=None)
        _, (_, alpha) = conv(x, edge_index, return_attention_weights=True)
        spreads.append(alpha.std().item())
    assert spreads[0] > spreads[1] > spreads[2]


@pytest.mark.parametrize("backbone", LAYERS)
def test_gate_values_are_the_sigmoid_of_the_gate_projection(backbone):
    conv = LAYERS[backbone](5, 4, heads=3, gate_bias_init=1.5)
    x = torch.randn(6, 5, requires_grad=True)
    expected = torch.sigmoid(x @ conv.lin_gate.weight.t() + 1.5)
    assert torch.allclose(conv.gate_values(x), expected)
    conv.gate_values(x).sum().backward()
    assert x.grad is not None
    assert conv.lin_gate.weight.grad is not None


@pytest.mark.parametrize("backbone", LAYERS)
def test_a_new_gate_is_open(backbone):
    model = build_model(METHOD_OF[backbone], 5, 8, 3)
    for layer in (LAYERS[backbone](5, 4), *model.convs):
        assert (layer.lin_gate.bias == 2.0).all()


@pytest.mark.parametrize("backbone", LAYERS)
@pytest.mark.parametrize("channels", [1, 4])
def test_gate_values_of_heads_are_one_number_per_head(backbone, channels):
    conv = LAYERS[backbone](5, channels, heads=3, gate="head", gate_bias_init=0.0)
    assert conv.lin_gate.weight.shape == (3, 5)
    x = torch.randn(6, 5)
    expected = torch.sigmoid(x @ conv.lin_gate.weight.t())
    assert torch.allclose(conv.gate_values(x), expected)
    assert "gate='head'" in repr(conv)


def test_a_pair_has_a_gate_per_side_in_first_and_those_of_the_targets_in_others():
    x = (torch.randn(6, 5), torch.randn(2, 3))
    assert TemperGATConv((5, 3), 4, 2, gate="head").gate_values(x).shape == (2, 2)
    source, target = TemperGATConv((5, 3), 4, gate="first").gate_values(x)
    assert (source.shape, target.shape) == ((6, 4), (2, 4))
    assert TemperGATConv((5, 3), 4, gate="post").gate_values(x).shape == (2, 4)


@pytest.mark.parametrize("gate", ["post", "first", "head"])
@pytest.mark.parametrize("share_weights", [True, False])
def test_no_parameter_of_a_bipartite_layer_is_unused(gate, share_weights):
    channels = (5, 5) if share_weights else (5, 3)
    conv = TemperGATv2Conv(channels, 4, heads=2, gate=gate, share_weights=share_weights)
    x = (torch.randn(6, 5), torch.randn(4, channels[1]))
    edge_index = torch.stack([torch.randint(0, 6, (9,)), torch.randint(0, 4, (9,))])
    conv(x, edge_index).pow(2).sum().backward()
    assert all(p.grad is not None for p in conv.parameters())


def test_gate_bias_init_survives_lazy_initialisation():
    conv = TemperGATConv(-1, 4, gate_bias_init=-1.25)
    conv(torch.randn(3, 6), torch.tensor([[0, 1], [1, 2]]))
    assert conv.lin_gate.weight.shape == (4, 6)
    assert torch.equal(conv.lin_gate.bias, torch.full((4,), -1.25))


@pytest.mark.parametrize("backbone", LAYERS)
def test_a_fixed_temperature_is_exact_in_double_precision(backbone):
    conv = make(backbone, temperature=0.1, gate=None)
    assert conv.temperature.item() == 0.1
    assert LAYERS[backbone](5, 4, temperature=0.1).half().temperature == torch.tensor(
        0.1
    )


def test_gate_values_of_a_pair_are_a_pair_in_first():
    conv = TemperGATConv(5, 4, gate="first")
    x = torch.randn(6, 5)
    source, target = conv.gate_values((x, x))
    assert torch.equal(source, conv.gate_values(x))
    assert torch.equal(target, source)
