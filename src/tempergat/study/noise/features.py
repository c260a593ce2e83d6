"""Noisy features of every seed under every condition."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from tempergat.data import gaussian, missing
from tempergat.training import Condition


class NoisyFeatures:
    """Features of every seed under several conditions, on a device.

    Each seed has its own noise. Under one kind of noise a seed's levels share the drawn
    numbers, so that only the strength differs between them.

    Args:
        clean: The features, after the recipe's normalisation.
        device: Where they go.
    """

    def __init__(self, clean: Tensor, device: torch.device) -> None:
        self._clean = clean
        self._device = device
        self.unit = float(clean.double().square().mean().sqrt())
        self._held: tuple[tuple[Condition, ...], tuple[int, ...]] = ((), ())
        self._values = torch.empty(0)

    def of(self, conditions: Sequence[Condition], seeds: Sequence[int]) -> Tensor:
        """[seeds, conditions, nodes, features]; the last result is cached."""
        held, held_seeds = self._held
        if tuple(seeds) != held_seeds or not set(conditions) <= set(held):
            self._values = torch.empty(0)
            self._values = self._draw(conditions, seeds).to(self._device)
            self._held = (tuple(conditions), tuple(seeds))
        held, _ = self._held
        if tuple(conditions) == held:
            return self._values
        return self._values[:, [held.index(condition) for condition in conditions]]

    def _draw(self, conditions: Sequence[Condition], seeds: Sequence[int]) -> Tensor:
        nodes, features = self._clean.shape
        # Node by node, as all runs' features are read.
        drawn = torch.empty(nodes, len(seeds), len(conditions), features)

        def fill(place: tuple[int, int]) -> None:
            row, column = place
            drawn[:, row, column] = noisy(
                self._clean, conditions[column], self.unit, seeds[row]
            )

        places = [(r, c) for r in range(len(seeds)) for c in range(len(conditions))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(fill, places))
        return drawn.permute(1, 2, 0, 3)


def noisy(clean: Tensor, condition: Condition, unit: float, seed: int) -> Tensor:
    """Features under one condition.

    Args:
        clean: The features.
        condition: Kind and strength, in units of `unit`.
        unit: The root mean square of the features.
        seed: Seed of the noise.
    """
    if condition.noise == "gaussian":
        return gaussian(clean, condition.level * unit, seed)
    if condition.noise == "missing":
        tau = condition.tau or 0.0
        return missing(clean, condition.level, tau * unit, seed)[0]
    return clean
