"""Checked seeds."""

import numpy as np

from tempergat.base import UserError


def seed_sequence(name: str, seed: int) -> np.random.SeedSequence:
    """The seed sequence of a checked seed.

    Args:
        name: What the user calls this seed.
        seed: A whole number of at least 0.

    Raises:
        UserError: The seed is negative or not a whole number.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise UserError(f"{name} is {seed!r}; give a whole number of at least 0")
    return np.random.SeedSequence(int(seed))
