"""Random numbers of a sampler: a hash of what they are for.

A draw depends on the seed, the epoch, the step, the hop, the relation, the target node
and the number of the draw, and on nothing else. So every engine draws the same
numbers, for any number of threads and ranks, and an epoch can be resumed anywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tempergat.ops import fold_in, fold_numbers

_LOW = 0xFFFFFFFF
# Stands where a draw has the epoch; no epoch has this number.
_ORDER = 2**40


class Key(NamedTuple):
    """What the draws of a batch depend on, besides hop, relation and node."""

    seed: int
    epoch: int
    step: int

    def of_step(self) -> int:
        """The key of the whole batch, as a signed 64-bit number."""
        return fold_numbers(self.seed, self.epoch, self.step)


def target_keys(key: Key, hop: int, relation: int, targets: Tensor) -> Tensor:
    """The key of each target's draws, int64, [targets].

    Args:
        key: Seed, epoch and step.
        hop: 0 for the neighbours of the seeds.
        relation: 0, or the number of the edge type in ``data.edge_types``.
        targets: The nodes' numbers in the whole graph, int64.
    """
    word = torch.tensor(key.of_step(), device=targets.device)
    return fold_in(fold_in(fold_in(word, hop), relation), targets)


def draw_below(keys: Tensor, draw: int, limit: Tensor) -> Tensor:
    """A random number from 0 to ``limit - 1`` for each key; ``limit < 2**31``."""
    word = fold_in(keys, draw)
    high, low = (word >> 32) & _LOW, word & _LOW
    return (high * limit + ((low * limit) >> 32)) >> 32


def choose(keys: Tensor, degree: Tensor, count: int, replace: bool) -> Tensor:
    """``count`` of each target's positions 0..degree-1, ascending, [targets, count].

    Without replacement this is Floyd's algorithm: every set of ``count`` positions is
    equally likely. It needs ``degree > count``; with replacement, ``degree > 0``.
    """
    chosen = degree.new_empty(degree.size(0), count)
    for draw in range(count):
        if replace:
            chosen[:, draw] = draw_below(keys, draw, degree)
            continue
        last = degree - count + draw
        drawn = draw_below(keys, draw, last + 1)
        taken = (chosen[:, :draw] == drawn[:, None]).any(dim=1)
        chosen[:, draw] = torch.where(taken, last, drawn)
    return chosen.sort(dim=1).values


def shuffled(seed: int, epoch: int, count: int) -> Tensor:
    """The numbers 0..count-1 in the order of an epoch, int64."""
    word = fold_in(fold_in(torch.tensor(seed, dtype=torch.int64), _ORDER), epoch)
    return torch.argsort(fold_in(word, torch.arange(count)), stable=True)
