"""Sparse node features and their product with a weight, for one model or many.

`tempergat::sparse_linear` is batched by nature: B weights, and one set of values for
all of them or one for each (every model's own dropout). A `vmap` over models becomes
a larger B, and the product comes out as [nodes, B, channels], which is the layout
attention wants.

Shape suffixes: N nodes, K stored elements, F features, B models, O output channels,
V sets of values (1 or B).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempergat.ops.features.elementwise import dropout
from tempergat.ops.features.sums import fold_values, product
from tempergat.ops.graphs.rows import Rows
from tempergat.ops.registration import ELSEWHERE, call, fold, needs_plain, register
from tempergat.ops.torch_internals import GetAttrKey, register_pytree_node


class SparseFeatures:
    """A sparse matrix of node features, sorted both ways once.

    Args:
        crow: Where each node's elements begin, [N + 1].
        col: The feature of each stored element, [K].
        values: The stored elements, [K].
        num_features: The number of features, stored or not.
    """

    by_node: Rows
    by_feature: Rows
    values: Tensor

    def __init__(
        self, crow: Tensor, col: Tensor, values: Tensor, num_features: int
    ) -> None:
        nodes = crow.numel() - 1
        if crow.dim() != 1 or nodes < 0 or int(crow[-1]) != col.numel():
            raise ValueError(
                f"crow must end with the number of stored elements, {col.numel()}; "
                f"got {crow.tolist()[-1:]}"
            )
        if col.shape != values.shape:
            raise ValueError(
                f"col and values must have the same length, got {list(col.shape)} and "
                f"{list(values.shape)}"
            )
        if col.numel() and not 0 <= int(col.min()) <= int(col.max()) < num_features:
            raise ValueError(
                f"col holds {int(col.min())}..{int(col.max())}, but there are "
                f"{num_features} features (0..{num_features - 1})"
            )
        self.shape = torch.Size((nodes, num_features))
        self.values = values
        element = torch.arange(col.numel(), dtype=torch.int32, device=col.device)
        crow, col = crow.int(), col.int()
        self.by_node = Rows(crow, col, element, element)
        row = torch.repeat_interleave(
            torch.arange(nodes, dtype=torch.int32, device=col.device),
            crow.diff().long(),
        )
        sorted_col, order = torch.sort(col, stable=True)
        features = torch.arange(num_features + 1, dtype=torch.int32, device=col.device)
        pointer = torch.searchsorted(sorted_col, features).int()
        order = order.int()
        self.by_feature = Rows(pointer, row[order.long()], order, order)

    @classmethod
    def from_torch(cls, x: Tensor) -> SparseFeatures:
        """From a matrix, in any of torch's layouts, sparse or dense."""
        if x.dim() != 2:
            raise ValueError(f"features must be a matrix, got shape {list(x.shape)}")
        coo = x.to_sparse().coalesce()
        row, col = coo.indices()
        rows = torch.arange(x.size(0) + 1, device=x.device)
        return cls(torch.searchsorted(row, rows), col, coo.values().clone(), x.size(1))

    @property
    def device(self) -> torch.device:
        return self.values.device

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    def size(self, dim: int) -> int:
        """The number of nodes (0 or -2) or of features (1 or -1)."""
        return self.shape[dim]

    def to(self, *arguments: Any) -> SparseFeatures:
        """The same features on another device, or with values of another type."""
        values = self.values.to(*arguments)
        moved = [
            Rows(*(t.to(values.device) for t in rows))
            for rows in (self.by_node, self.by_feature)
        ]
        return _unflatten([*moved, values], self.shape)

    def dropout(self, rate: float, seed: Tensor) -> SparseFeatures:
        """Drops stored elements, keyed by the seed and the element's number."""
        if rate == 0.0:
            return self
        values = dropout(self.values, rate, seed)
        return _unflatten([self.by_node, self.by_feature, values], self.shape)

    def to_dense(self) -> Tensor:
        """The matrix with its zeros."""
        row = torch.repeat_interleave(
            self.by_node.pointer.diff().long(), output_size=self.values.size(0)
        )
        dense = self.values.new_zeros(self.shape)
        return dense.index_put((row, self.by_node.other.long()), self.values)

    def __repr__(self) -> str:
        return f"SparseFeatures({list(self.shape)}, stored={self.values.size(-1)})"


def _flatten(features: SparseFeatures) -> tuple[list[Any], Any]:
    return [features.by_node, features.by_feature, features.values], features.shape


def _flatten_with_keys(features: SparseFeatures) -> tuple[list[Any], Any]:
    children, shape = _flatten(features)
    names = ("by_node", "by_feature", "values")
    keys = [GetAttrKey(name) for name in names]
    return list(zip(keys, children, strict=True)), shape


def _unflatten(children: Any, shape: Any) -> SparseFeatures:
    features = SparseFeatures.__new__(SparseFeatures)
    features.by_node, features.by_feature, features.values = children
    features.shape = shape
    return features


register_pytree_node(
    SparseFeatures,
    _flatten,
    _unflatten,
    serialized_type_name="tempergat.SparseFeatures",
    flatten_with_keys_fn=_flatten_with_keys,
)


def linear(
    features: SparseFeatures, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """`torch.nn.functional.linear` of sparse features, [N, O].

    Args:
        features: The features; their values get no gradient.
        weight: [O, F].
        bias: [O].
    """
    if weight.size(-1) != features.size(1):
        raise ValueError(
            f"the weight takes {weight.size(-1)} features, there are "
            f"{features.size(1)}; its shape must be [out, {features.size(1)}]"
        )
    if features.values.requires_grad:
        raise ValueError(
            "sparse features have no gradient; pass features.to_dense() where one is "
            "wanted"
        )
    if needs_plain():
        x = features.to_dense().to(weight.dtype)
        return torch.nn.functional.linear(x, weight, bias)
    out_NBO: Tensor = call(
        "sparse_linear",
        features.values.to(weight.dtype).unsqueeze(1),
        weight.unsqueeze(0),
        *tuple(features.by_node)[:3],
        *tuple(features.by_feature)[:3],
    )
    out = out_NBO.squeeze(1)
    return out if bias is None else out + bias


def _forward(
    values_KV: Tensor, weight_BOF: Tensor, crow: Tensor, col: Tensor, *rest: Tensor
) -> Tensor:
    rows = Rows(crow, col, rest[0], rest[0])
    # Transposed as one matrix, which torch does in blocks.
    x_FBO = weight_BOF.flatten(0, 1).t().contiguous()
    x_FBO = x_FBO.view(weight_BOF.size(2), *weight_BOF.shape[:2])
    return product(rows, values_KV, x_FBO, in_order=True)


def _backward(
    dout_NBO: Tensor, values_KV: Tensor, ccol: Tensor, row: Tensor, element: Tensor
) -> Tensor:
    rows = Rows(ccol, row, element, element)
    # Nodes that are far from all training nodes have no gradient.
    dx_FBO = product(rows, values_KV, dout_NBO, skip_zeros=True)
    dweight = dx_FBO.flatten(1).t().contiguous()
    return dweight.view(*dx_FBO.shape[1:], dx_FBO.size(0))


def _forward_shape(values: Tensor, weight: Tensor, crow: Tensor, *_: Tensor) -> Tensor:
    return weight.new_empty(crow.size(0) - 1, *weight.shape[:2])


def _backward_shape(dout: Tensor, values: Tensor, ccol: Tensor, *_: Tensor) -> Tensor:
    return dout.new_empty(*dout.shape[1:], ccol.size(0) - 1)


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0], *inputs[5:])


def _gradient(ctx: Any, dout: Tensor) -> Any:
    dweight = call("sparse_linear_backward", dout, *ctx.saved_tensors)
    return (None, dweight, *[None] * 6)


def _save_backward(ctx: Any, inputs: Any, output: Any) -> None:
    dout, *saved = inputs
    ctx.nodes = dout.size(0)
    ctx.save_for_backward(*saved)


def _second_gradient(ctx: Any, d_BOF: Tensor) -> Any:
    """The gradient of dout: the product of the features with ``d``, plainly."""
    values_KV, ccol, row, element = ctx.saved_tensors
    slots = torch.arange(row.size(0), device=row.device, dtype=ccol.dtype)
    column = torch.searchsorted(ccol, slots, right=True) - 1
    message = values_KV[element.long()].unsqueeze(-1) * d_BOF.permute(2, 0, 1)[column]
    ddout = message.new_zeros(ctx.nodes, *message.shape[1:])
    return (ddout.index_add(0, row, message), *[None] * 4)


def _fold_forward(info: Any, in_dims: Any, *arguments: Any) -> Any:
    size = info.batch_size
    values, weight = arguments[:2]
    folded = fold(weight, in_dims[1], 0, size)
    values = fold_values(values, in_dims[0], folded.size(0) // size, size)
    out = call("sparse_linear", values, folded, *arguments[2:])
    return out.unflatten(1, (size, -1)), 1


def _fold_backward(info: Any, in_dims: Any, *arguments: Any) -> Any:
    size = info.batch_size
    dout, values = arguments[:2]
    folded = fold(dout, in_dims[0], 1, size)
    values = fold_values(values, in_dims[1], folded.size(1) // size, size)
    dweight = call("sparse_linear_backward", folded, values, *arguments[2:])
    return dweight.unflatten(0, (size, -1)), 0


_EDGES = "Tensor ccol, Tensor row, Tensor column_element"
register(
    "sparse_linear(Tensor values, Tensor weight, Tensor crow, Tensor col, "
    f"Tensor element, {_EDGES}) -> Tensor",
    {ELSEWHERE: _forward},
    shapes=_forward_shape,
    save=_save,
    gradient=_gradient,
    fold=_fold_forward,
)
register(
    f"sparse_linear_backward(Tensor dout, Tensor values, {_EDGES}) -> Tensor",
    {ELSEWHERE: _backward},
    shapes=_backward_shape,
    save=_save_backward,
    gradient=_second_gradient,
    fold=_fold_backward,
)
