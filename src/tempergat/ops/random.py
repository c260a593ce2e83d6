"""Counter-based random bits: a pure function of a seed and an index.

Dropout masks come from here on every backend, so that forward, backward, the CPU
and the GPU kernels, and one run or many at once all see the same mask.
"""

import functools

import torch
from torch import Tensor

_LOW = 0xFFFFFFFF
_GOLDEN = -0x61C8864680B583EB


def draw_seed(device: torch.device) -> Tensor:
    """A 0-d int64 seed from torch's own generator of that device."""
    return torch.randint(-(2**63), 2**63 - 1, (), device=device)


def fold_in(seed: Tensor, data: int | Tensor) -> Tensor:
    """A new int64 seed from a seed and a number (or a tensor of numbers)."""
    if isinstance(data, Tensor):
        x = seed + (data + 1) * _GOLDEN
    else:
        # Wrapped to int64 in Python, so that no tensor is made on the host.
        x = seed + (((data + 1) * _GOLDEN + 2**63) % 2**64 - 2**63)
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


def fold_numbers(seed: int, *data: int) -> int:
    """`fold_in` of one number after the other, on the host: a signed 64-bit number."""
    x = seed
    for number in data:
        x = (x + (number + 1) * _GOLDEN) % 2**64
        x = (x ^ (x >> 30)) * -0x40A7B892E31B1A47 % 2**64
        x = (x ^ (x >> 27)) * -0x6B2FB644ECCEEE15 % 2**64
        x = x ^ (x >> 31)
    return (x + 2**63) % 2**64 - 2**63


def _mix32(x: Tensor) -> Tensor:
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & _LOW
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & _LOW
    return x ^ (x >> 16)


def random_bits(seed: Tensor, index: Tensor) -> Tensor:
    """32 random bits, as int64, for every broadcast pair of seed and index."""
    index = index.long()
    x = _mix32((index & _LOW) ^ (seed & _LOW))
    return _mix32(x ^ ((index >> 32) & _LOW) ^ ((seed >> 32) & _LOW))


def drop_threshold(rate: float) -> int:
    """An element is dropped when its upper 24 bits are below this."""
    return round(rate * 2**24)


@functools.cache
def keep_scale(rate: float, dtype: torch.dtype) -> float:
    """The factor of a kept element, 1 / (1 - rate), rounded as in a tensor."""
    if rate == 1.0:
        return 0.0
    return float(torch.ones((), dtype=dtype, device="cpu") / (1.0 - rate))


def keep_mask(seed: Tensor, index: Tensor, rate: float) -> Tensor:
    """True with probability ``1 - rate``, for every pair of seed and index."""
    return (random_bits(seed, index) >> 8) >= drop_threshold(rate)


def keep_factor(seed: Tensor, index: Tensor, rate: float, dtype: torch.dtype) -> Tensor:
    """Dropout's factor of each element: 0, or 1 / (1 - rate) where it is kept."""
    kept = keep_mask(seed, index, rate).to(dtype)
    # At rate 1 nothing is kept, and 0 / 0 must not be computed.
    return kept / (1.0 - rate) if rate < 1.0 else kept


def dropout(x: Tensor, rate: float, seed: Tensor) -> Tensor:
    """Dropout on all elements of a tensor, keyed by seed and element number."""
    if rate == 0.0:
        return x
    index = torch.arange(x.numel(), device=x.device).view(x.shape)
    return x * keep_factor(seed, index, rate, x.dtype)
