"""A kernel call being filled in, argument by argument."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempergat.ops.calls import Backward, Forward, changes_output, working_dtype
from tempergat.ops.cpu import library
from tempergat.ops.cpu.library import CALL_LENGTH, FEATURES, PLACE, STORAGE
from tempergat.ops.graphs.rows import Rows
from tempergat.ops.random import drop_threshold

_NO_ROWS = (0,) * 5
# What is the same for all copies of a graph.
_PARAMETERS = {"att", "att_dst", "theta", "edge_map", "bias", "dgate_sum"}
# What has the edges of all copies, or of one where it is the same for all.
_OF_EDGES = {"edge", "edge_score", "edge_x", "edge_weight", "edge_bias"}


class KernelCall:
    """Fills in the C structure and keeps the tensors it points to alive.

    Args:
        z: The features, whose type and shape the call has, [rows, H, C].
        by_target: The edges by target.
        by_source: The edges by source, for a backward pass.
        negative_slope: LeakyReLU's slope below zero.
        dropout: Rate of dropout on the weights.
        dropout_seed: One seed per head, needed when ``dropout`` > 0, [H].
        copies: How often the graph stands side by side with itself. Tensors of nodes
            have one copy after the other.
    """

    def __init__(
        self,
        z: Tensor,
        by_target: Rows,
        by_source: Rows | None = None,
        negative_slope: float = 0.0,
        dropout: float = 0.0,
        dropout_seed: Tensor | None = None,
        copies: int = 1,
    ) -> None:
        _, heads, channels = z.shape
        self.z = z
        self.width = heads * channels
        self.copies = copies
        self.num_edges = by_target[1].size(0)
        self.tensors: dict[str, Tensor] = {}
        # The first fields of the structure, in its order.
        first: list[Any] = [
            STORAGE[z.dtype],
            library.library.isa,
            library.library.threads(),
            by_target[0].dtype == torch.int64,
            heads,
            channels,
            negative_slope,
            dropout,
            0,
            0,
            *_addresses(by_target),
            *(_NO_ROWS if by_source is None else _addresses(by_source)),
        ]
        self.values = first + _ABSENT
        if dropout > 0.0:
            if dropout_seed is None:
                raise ValueError("dropout > 0 needs dropout_seed, one int64 per head")
            self.values[PLACE["drop_threshold"]] = drop_threshold(dropout)
            if copies > 1:
                # The number of a copy changes the upper halves of its seeds.
                dropout_seed = dropout_seed ^ (torch.arange(copies).view(-1, 1) << 32)
            self.add_dense(dropout_seed=dropout_seed)
        self.add_features(z_src=z)

    def add_features(self, **tensors: Tensor | None) -> None:
        """Tensors [rows, H, C] in the storage type; None for absent ones."""
        for name, tensor in tensors.items():
            if tensor is None:
                continue
            step = self.width
            if not tensor.is_contiguous():
                _, between_heads, between_channels = tensor.stride()
                # There may be space between rows, as in a slice of a wider product.
                if between_heads == tensor.size(2) and between_channels == 1:
                    step = tensor.stride(0)
                else:
                    tensor = tensor.contiguous()
            self.tensors[name] = tensor
            place = PLACE[name]
            self.values[place : place + 3] = tensor.data_ptr(), tensor.size(0), step

    def add_dense(self, **tensors: Tensor | None) -> None:
        """Contiguous tensors in the working type; None for absent ones."""
        for name, tensor in tensors.items():
            if tensor is not None:
                self.tensors[name] = tensor = tensor.contiguous()
                self.values[PLACE[name]] = tensor.data_ptr()

    def add_edge_map(self, edge_x: Tensor | None, edge_map: Tensor | None) -> None:
        """Edge features [E, D] and their linear map [H, C, D], both or neither."""
        if edge_x is None or edge_map is None:
            return
        self.values[PLACE["edge_width"]] = edge_x.size(1)
        self.add_dense(edge_x=edge_x, edge_map=edge_map)

    def add_edge_gradients(self, call: Backward) -> tuple[Tensor | None, ...]:
        """The weights and biases of edges; returns their gradients, where wanted."""
        edge_weight, edge_bias = call.saved.inputs[-2:]
        if edge_weight is None and edge_bias is None:
            return None, None
        dedge_weight, dedge_bias = (
            self.new_edges(x) if x is not None and wanted else None
            for x, wanted in zip(
                (edge_weight, edge_bias), call.wanted[-2:], strict=True
            )
        )
        self.add_dense(edge_weight=edge_weight, edge_bias=edge_bias)
        self.add_dense(dedge_weight=dedge_weight, dedge_bias=dedge_bias)
        return dedge_weight, dedge_bias

    def add_dout(self, call: Backward) -> tuple[Tensor | None, Tensor | None]:
        """The output's gradient; returns those of the gate's logit and of the bias.

        The bias's is one for each copy, for `totals`.
        """
        saved, dlogit, dbias = call.saved, None, None
        self.add_features(dout=call.dout)
        if saved.gate_logit is not None:
            dlogit, dattended = map(self.new_features, (saved.attended,) * 2)
            given = {"gate_logit": saved.gate_logit, "out": saved.attended}
            self.add_features(**given, dlogit=dlogit, dattended=dattended)
            self.add_dense(dgate_sum=call.dgate_sum)
        if saved.bias is not None and call.wants_bias:
            dbias = self.new_parameter(saved.bias)
            self.add_dense(dbias=dbias)
        return dlogit, dbias

    def new_edges(self, x: Tensor) -> Tensor:
        """Memory for the gradient of a tensor of edges; that of a padded edge is 0."""
        return x.new_zeros((self.copies * self.num_edges, *x.shape[1:]))

    def new_features(self, x: Tensor) -> Tensor:
        """Memory for the gradient of a tensor of nodes."""
        return torch.empty_like(x, memory_format=torch.contiguous_format)

    def new_parameter(self, x: Tensor) -> Tensor:
        """Memory for the gradient of what copies share: one of each, for `totals`."""
        if self.copies == 1:
            return self.new_features(x)
        return x.new_empty((self.copies, *x.shape))

    def totals(self, *gradients: Tensor | None) -> tuple[Any, ...]:
        """The sums of such gradients over the copies."""
        if self.copies == 1:
            return gradients
        return tuple(None if x is None else x.sum(0) for x in gradients)

    def add_records(self, size: int) -> None:
        """What a pass of backward leaves to the next, ``size`` bytes per edge."""
        count, stride = self.copies * self.num_edges, (size + 7) // 8 * 8
        tensor = torch.empty(count, stride, dtype=torch.uint8, device="cpu")
        self.tensors["records"] = tensor
        place = PLACE["records"]
        self.values[place : place + 3] = tensor.data_ptr(), count, stride

    def run(self, kernel: str) -> None:
        """Runs a kernel."""
        if self.copies == 1:
            library.library.run(kernel, self.values)
            return
        steps = [0] * CALL_LENGTH
        for name, tensor in self.tensors.items():
            one = name in _OF_EDGES and tensor.size(0) == self.num_edges
            if one or name in _PARAMETERS:
                continue
            place, rows = PLACE[name], tensor.size(0) // self.copies
            steps[place] = rows * tensor.stride(0) * tensor.element_size()
            if name in FEATURES:
                self.values[place + 1] = rows
        library.library.run(kernel, self.values, self.copies, steps)

    def run_forward(
        self, kernel: str, forward: Forward
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None, Tensor | None]:
        """Runs a forward kernel.

        Returns:
            The output [T, H, C]; attention's output before the epilogue, where it is
            another and backward may need it; the log-sum-exp [T, H]; the weights
            [E, H] and the sum of the gate [1, H], where they are wanted.
        """
        _, heads, channels = self.z.shape
        targets = self.copies * (forward.by_target[0].size(0) - 1)
        work = working_dtype(self.z.dtype)
        out = torch.empty(targets, heads, channels, dtype=self.z.dtype, device="cpu")
        lse = torch.empty(targets, heads, dtype=work, device="cpu")
        attended = weights = gate_sum = None
        if forward.weights:
            # A padded edge has weight 0.
            edges = self.copies * self.num_edges
            weights = self.z.new_zeros((edges, heads), dtype=work)
        edge_weight, edge_bias = forward.inputs[-2:]
        dense = {"edge_weight": edge_weight, "edge_bias": edge_bias}
        epilogue = forward.epilogue
        if changes_output(epilogue):
            if forward.by_source is not None:
                attended = torch.empty_like(out)
            if epilogue.gate_sum:
                gate_sum = lse.new_empty(self.copies, heads)
            logit, skip, bias, _ = epilogue
            self.add_features(gate_logit=logit, skip=skip, finished=out)
            self.add_dense(bias=bias, gate_sum=gate_sum)
        self.add_features(out=out if attended is None else attended)
        self.add_dense(lse=lse, weights=weights, **dense)
        self.run(kernel)
        if gate_sum is not None and self.copies > 1:
            gate_sum = gate_sum.sum(0, keepdim=True)
        return out, attended, lse, weights, gate_sum


def _addresses(rows: Rows) -> tuple[int, ...]:
    pointer, other, position, edge_id = rows
    return (
        pointer.data_ptr(),
        other.data_ptr(),
        position.data_ptr(),
        edge_id.data_ptr(),
        pointer.size(0) - 1,
    )


# The other fields: an absent argument is 0, the null pointer.
_ABSENT: list[Any] = [0] * (CALL_LENGTH - PLACE["z_src"])
