"""The gated skip is that of PyG's TransformerConv."""

import torch
from torch_geometric.nn import TransformerConv

from tempergat.nn.skip import gated_skip


def test_a_gated_skip_is_that_of_transformer_conv() -> None:
    conv = TransformerConv(5, 4, heads=2, beta=True)
    plain = TransformerConv(5, 4, heads=2, root_weight=False)
    plain.load_state_dict(conv.state_dict(), strict=False)
    x, edges = torch.randn(6, 5), torch.randint(6, (2, 20))
    out = gated_skip(plain(x, edges), conv.lin_skip(x), conv.lin_beta)
    torch.testing.assert_close(out, conv(x, edges))
