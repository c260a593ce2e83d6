"""Cutting a list into groups of about one size."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")


def even_groups(items: Sequence[Item], most: int) -> list[Sequence[Item]]:
    """Items cut into as few groups of at most `most` as possible, of about one size."""
    count = -(-len(items) // most)
    cuts = [-(-len(items) * number // max(count, 1)) for number in range(count + 1)]
    return [items[a:b] for a, b in pairwise(cuts)]
