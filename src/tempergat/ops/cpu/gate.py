"""What the CPU does with attention's output: gate, skip and bias."""

from typing import Any

import torch
from torch import Tensor

from tempergat.ops.calls import Backward, Forward, working_dtype


def attend(kernels: Any, call: Forward) -> tuple[Tensor | None, ...]:
    """Attention with its epilogue.

    Returns:
        The output, attention's output before the epilogue (None where they are the
        same), the log-sum-exp, the weights, the sum of the gate by head, [1, H], and
        the attention's state.
    """
    attended, lse, weights, *state = kernels.forward(call)
    logit, skip, bias, wants_sum = call.epilogue
    if not call.epilogue.changes_output:
        return attended, None, lse, weights, None, *state
    out, gate_sum = attended.clone(), None
    if logit is not None:
        gate = torch.sigmoid(logit)
        out *= gate
        if wants_sum:
            dtype = working_dtype(gate.dtype)
            gate_sum = gate.sum((0, 2), dtype=dtype).unsqueeze(0)
    for more in (skip, bias):
        if more is not None:
            out += more
    return out, attended, lse, weights, gate_sum, *state


def gradients(kernels: Any, call: Backward) -> tuple[Tensor | None, ...]:
    """The gradients of the attention's inputs, of the gate's logit and of the bias."""
    saved, dout = call.saved, call.dout
    dlogit = dbias = None
    if saved.gate_logit is not None:
        gate = torch.sigmoid(saved.gate_logit)
        dgate = dout * saved.attended
        if call.dgate_sum is not None:
            dgate += call.dgate_sum.unsqueeze(-1)
        dlogit = torch.ops.aten.sigmoid_backward(dgate, gate)
        call = call._replace(dout=dout * gate)
    if saved.bias is not None and call.wants_bias:
        dbias = dout.sum(0)
    return *kernels.backward(call), dlogit, dbias
