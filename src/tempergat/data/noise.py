"""The paper's two models of feature noise, as seeded transforms.

Both take dense or sparse features and return dense ones: noise fills the zeros too.
The values depend on the seed and the shape alone, not on the machine.
"""

import numpy as np
import torch
from torch import Tensor

from tempergat.base import UserError, require_memory
from tempergat.data.features import to_dense
from tempergat.data.splits import seed_sequence

# Rows are worked through in blocks of about this many entries, which bounds the
# temporary memory at a few tens of megabytes.
_BLOCK_ENTRIES = 1 << 20


def gaussian(x: Tensor, sigma: float, seed: int) -> Tensor:
    """Adds isotropic Gaussian noise: `x + sigma * N(0, I)`.

    Args:
        x: Features, dense or sparse.
        sigma: Standard deviation of the noise.
        seed: Seed of the noise.

    Returns:
        Dense features.

    Raises:
        UserError: `sigma` is negative, or the dense result does not fit in memory.
    """
    _require_non_negative("sigma", sigma)
    result = _dense_copy(x, bytes_per_entry=0)
    if sigma == 0:
        return result
    generator = np.random.default_rng(seed_sequence("seed", seed))
    for block in _row_blocks(result):
        drawn = generator.standard_normal(tuple(block.shape))
        block += torch.from_numpy(drawn * sigma).to(block.dtype)
    return result


def missing(x: Tensor, rho: float, tau: float, seed: int) -> tuple[Tensor, Tensor]:
    """Replaces each coordinate, with probability `rho`, by a draw from N(0, tau^2).

    Args:
        x: Features, dense or sparse.
        rho: Probability that a coordinate is lost.
        tau: Standard deviation of the value that stands in its place.
        seed: Seed of the mask and of the values.

    Returns:
        Dense features, and the boolean mask r: True where the coordinate was kept.
        r is the gate an oracle would use.

    Raises:
        UserError: `rho` is not a probability, `tau` is negative, or the dense result
            and its mask do not fit in memory.
    """
    if not 0 <= rho <= 1:
        raise UserError(f"rho is {rho}; it is a probability, so give 0 to 1")
    _require_non_negative("tau", tau)
    result = _dense_copy(x, bytes_per_entry=1)
    observed = torch.ones(result.shape, dtype=torch.bool)
    if rho == 0:
        return result, observed
    # Two streams, so that what is drawn does not depend on the size of a block.
    mask_seed, value_seed = seed_sequence("seed", seed).spawn(2)
    mask_generator = np.random.default_rng(mask_seed)
    value_generator = np.random.default_rng(value_seed)
    blocks = zip(_row_blocks(result), _row_blocks(observed), strict=True)
    for values, kept in blocks:
        lost = mask_generator.random(tuple(values.shape)) < rho
        drawn = value_generator.standard_normal(int(lost.sum())) * tau
        values[torch.from_numpy(lost)] = torch.from_numpy(drawn).to(values.dtype)
        kept.copy_(torch.from_numpy(~lost))
    return result, observed


def _require_non_negative(name: str, value: float) -> None:
    if not (value >= 0 and np.isfinite(value)):
        raise UserError(
            f"{name} is {value}; it is a standard deviation, so give a finite "
            "number of at least 0"
        )


def _dense_copy(x: Tensor, bytes_per_entry: int) -> Tensor:
    if x.dim() != 2:
        raise UserError(
            f"features have shape {tuple(x.shape)}; give a matrix with one row per node"
        )
    dtype = x.dtype if x.dtype == torch.float64 else torch.float32
    entry = (8 if dtype == torch.float64 else 4) + bytes_per_entry
    require_memory(
        x.numel() * entry,
        f"noise on a {x.shape[0]} x {x.shape[1]} feature matrix makes it dense, which",
        "use fewer nodes or features, or a machine with more memory",
    )
    dense = to_dense(x)
    return dense.to(dtype, copy=dense is x)


def _row_blocks(x: Tensor) -> tuple[Tensor, ...]:
    if x.numel() == 0:
        return ()
    return torch.split(x, max(1, _BLOCK_ENTRIES // x.shape[1]))
