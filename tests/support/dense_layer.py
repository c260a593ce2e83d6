"""The layers' equations written straight down with matrices, for any input.

Nothing of tempergat is called: settings and parameters of a layer are read, the rest is
matrix products. An edge is a row of two incidence matrices.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.utils import add_self_loops, remove_self_loops


class DenseLayer(nn.Module):
    """A layer with the parameters and settings of another one.

    Args:
        layer: A `TemperGATConv`, `TemperGATv2Conv` or `TemperTransformerConv`.
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x, edge_index, edge_attr=None, size=None) -> Tensor:
        layer = self.layer
        x_src, x_dst = x if isinstance(x, tuple | list) else (x, x)
        num_src = num_dst = len(x_src)
        if x_dst is not None:
            num_dst = len(x_dst)
        elif size is not None:
            num_dst = size[1]
        if layer.add_self_loops:
            edge_index, edge_attr = remove_self_loops(edge_index, edge_attr)
            edge_index, edge_attr = add_self_loops(
                edge_index, edge_attr, layer.fill_value, min(num_src, num_dst)
            )
        backwards = layer.flow == "target_to_source"
        source, target = edge_index.flip(0) if backwards else edge_index
        # One row per edge, with a one in the column of its source, or of its target.
        leaves = F.one_hot(source, max(num_src, 1))[:, :num_src].to(x_src)
        arrives = F.one_hot(target, max(num_dst, 1))[:, :num_dst].to(x_src)

        gate = layer.gate
        left, right = self._project("src", x_src), self._project("dst", x_dst)
        edge = self._heads(self._map("lin_edge", edge_attr))
        value = None
        if hasattr(layer, "lin_value"):
            value = self._map("lin_value", x_src)
            if layer.qk_norm:
                left = self._normalize("norm_key", left)
                right = self._normalize("norm_query", right)
        if gate == "first":
            left = left * self._gate("src", x_src)
            right = None if right is None else right * self._gate("dst", x_dst)
            value = None if value is None else value * self._gate("src", x_src)
        left_e = self._rows(leaves, self._heads(left))
        right_e = None if right is None else self._rows(arrives, self._heads(right))
        value_e = left_e if value is None else self._rows(leaves, self._heads(value))

        if value is not None:
            if edge is not None:
                left_e, value_e = left_e + edge, value_e + edge
            logit = (left_e * right_e).sum(-1) / layer.out_channels**0.5
        elif hasattr(layer, "att"):
            summed = left_e + right_e
            summed = summed if edge is None else summed + edge
            logit = (F.leaky_relu(summed, layer.negative_slope) * layer.att).sum(-1)
        else:
            logit = (left_e * layer.att_src).sum(-1)
            if right_e is not None:
                logit = logit + (right_e * layer.att_dst).sum(-1)
            if edge is not None:
                logit = logit + (edge * layer.att_edge).sum(-1)
            logit = F.leaky_relu(logit, layer.negative_slope)
        logit = logit / self._temperature()
        # Without the largest of each target, which is in every exponent, exp overflows.
        index = target.unsqueeze(1).expand_as(logit)
        largest = logit.detach().new_zeros(num_dst, layer.heads)
        largest.scatter_reduce_(0, index, logit.detach(), "amax", include_self=False)
        weight = (logit - largest[target]).exp()
        alpha = weight / (arrives @ (arrives.t() @ weight))
        message = alpha.unsqueeze(-1) * value_e
        out = arrives.t() @ message.flatten(1)
        if gate == "post":
            out = out * self._gate("dst", x_dst)
        if gate == "head":
            by_head = self._gate("dst", x_dst).unsqueeze(-1)
            out = (self._heads(out) * by_head).flatten(-2)
        if not layer.concat:
            out = out.unflatten(-1, (layer.heads, layer.out_channels)).mean(1)
        return self._skip(out, x_dst)

    def _skip(self, out: Tensor, x_dst: Tensor | None) -> Tensor:
        """Adds the linear map of the targets' input, and the bias."""
        layer = self.layer
        if hasattr(layer, "lin_value"):
            skipped = self._map("lin_skip", x_dst) if layer.root_weight else None
        else:
            skipped = self._map("res", x_dst)
        if skipped is not None and layer.lin_beta is not None:
            both = torch.cat([out, skipped, out - skipped], -1)
            share = torch.sigmoid(both @ layer.lin_beta.weight.t())
            out = share * skipped + (1 - share) * out
        elif skipped is not None:
            out = out + skipped
        return out if layer.bias is None else out + layer.bias

    def _temperature(self) -> Tensor | float:
        kind = self.layer.temperature_kind
        if isinstance(kind, str):
            return F.softplus(self.layer.theta) + 1e-6
        return 1.0 if kind is None else kind

    def _project(self, side: str, x: Tensor | None) -> Tensor | None:
        names = {
            "src": ("lin", "lin_src", "lin_l", "lin_key"),
            "dst": ("lin", "lin_dst", "lin_r", "lin_query"),
        }
        return next(
            self._map(name, x)
            for name in names[side]
            if getattr(self.layer, name, None) is not None
        )

    def _gate(self, side: str, x: Tensor | None) -> Tensor:
        name = "lin_gate" if hasattr(self.layer, "lin_gate") else f"lin_gate_{side}"
        if x is None:
            # Missing features are zeros.
            return torch.sigmoid(getattr(self.layer, name).bias)
        return torch.sigmoid(self._map(name, x))

    def _map(self, name: str, x: Tensor | None) -> Tensor | None:
        lin = getattr(self.layer, name)
        if x is None or lin is None:
            return None
        x = x.unsqueeze(-1) if x.dim() == 1 else x
        out = x @ lin.weight.t()
        return out if lin.bias is None else out + lin.bias

    def _heads(self, z: Tensor | None) -> Tensor | None:
        shape = (self.layer.heads, self.layer.out_channels)
        return None if z is None else z.unflatten(-1, shape)

    def _normalize(self, name: str, z: Tensor) -> Tensor:
        """Divides every head by its root mean square."""
        z = self._heads(z)
        # As torch.nn.RMSNorm does, in the type the layer was trained in.
        size = (z.square().mean(-1, keepdim=True) + torch.finfo(z.dtype).eps).sqrt()
        return (z / size * getattr(self.layer, name).weight).flatten(-2)

    @staticmethod
    def _rows(incidence: Tensor, z: Tensor) -> Tensor:
        return (incidence @ z.flatten(1)).view(-1, *z.shape[1:])


def with_dense_layers(model: nn.Module) -> nn.Module:
    """A copy of a model, or of a layer, with every layer of ours written out."""
    holder = nn.ModuleDict({"model": copy.deepcopy(model)})
    for parent in list(holder.modules()):
        for name, child in list(parent._modules.items()):
            if hasattr(child, "temperature_kind"):
                parent._modules[name] = DenseLayer(child)
    return holder["model"]
