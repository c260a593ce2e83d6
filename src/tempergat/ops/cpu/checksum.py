"""A number that depends on a tensor's contents, computed in microseconds."""

from __future__ import annotations

from torch import Tensor

from tempergat.ops.cpu import library

# As in csrc/graphs/checksum.h.
_WHOLE, _SAMPLED = 2048, 512


def checksum(tensor: Tensor) -> int:
    """A number that differs, nearly always, where the contents differ.

    All elements of a tensor of up to 2,048 elements count. Of a larger one 64 runs of
    8 elements count, evenly spread, so that the call takes a few microseconds.

    Args:
        tensor: A strided tensor on the CPU, of any number of dimensions.
    """
    data = tensor.detach() if tensor.requires_grad else tensor
    if data.dim() != 2:
        # A view where the layout allows it.
        data = data.reshape(1, -1)
    if library.library.prepares_graphs and data.element_size() in (4, 8):
        return library.library.checksum(data)
    step = 1 if data.numel() <= _WHOLE else data.numel() // _SAMPLED
    return hash(tuple(data[:, ::step].flatten().tolist()))
