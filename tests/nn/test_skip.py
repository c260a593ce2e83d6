"""The gated skip is that of PyG's TransformerConv."""

import pytest
import torch
from torch_geometric.nn import TransformerConv

from tempergat.nn import TemperGATConv, TemperGATv2Conv, build_model
from tempergat.nn.skip import gated_skip


def test_a_gated_skip_is_that_of_transformer_conv() -> None:
    conv = TransformerConv(5, 4, heads=2, beta=True)
    plain = TransformerConv(5, 4, heads=2, root_weight=False)
    plain.load_state_dict(conv.state_dict(), strict=False)
    x, edges = torch.randn(6, 5), torch.randint(6, (2, 20))
    out = gated_skip(plain(x, edges), conv.lin_skip(x), conv.lin_beta)
    torch.testing.assert_close(out, conv(x, edges))


@pytest.mark.parametrize("layer", [TemperGATConv, TemperGATv2Conv])
@pytest.mark.parametrize("concat", [True, False])
def test_a_gated_skip_mixes_what_the_gate_leaves_with_a_linear_map(layer, concat):
    torch.manual_seed(0)
    conv = layer(5, 4, heads=2, residual="gate", concat=concat)
    width = 8 if concat else 4
    shapes = {name: list(value.shape) for name, value in conv.state_dict().items()}
    assert shapes["res.weight"] == [width, 5]
    assert shapes["lin_beta.weight"] == [1, 3 * width]
    plain = layer(5, 4, heads=2, concat=concat, bias=layer is TemperGATv2Conv)
    plain.load_state_dict(conv.state_dict(), strict=False)
    if plain.bias is not None:
        torch.nn.init.zeros_(plain.bias)
    torch.nn.init.normal_(conv.bias)
    x, edges = torch.randn(6, 5), torch.randint(6, (2, 20))
    mixed = gated_skip(plain(x, edges), conv.res(x), conv.lin_beta)
    torch.testing.assert_close(conv(x, edges), mixed + conv.bias)


def test_other_residuals_are_refused():
    with pytest.raises(ValueError, match="True, False or 'gate', got 'skip'"):
        TemperGATConv(5, 4, residual="skip")
    with pytest.raises(ValueError, match="True, False or 'gate', got 'skip'"):
        build_model("gcn", 5, 8, 3, residual="skip")


@pytest.mark.parametrize("method", ["temp_gated", "gatv2", "transformer", "gcn", "mlp"])
def test_models_have_gated_skips(method):
    torch.manual_seed(0)
    model = build_model(method, 5, 8, 3, heads=2, residual="gate")
    names = [name for name, _ in model.named_parameters() if "lin_beta" in name]
    assert names == ["convs.0.lin_beta.weight", "convs.1.lin_beta.weight"]
    x, edges = torch.randn(6, 5), torch.randint(6, (2, 20))
    model(x, edges).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
