"""How much of a row one program serves."""

import functools
from typing import NamedTuple

from tempergat.ops.gpu.launch import power_of_two

# The heads of an ordinary layer are a compile-time constant of its kernels. Many models
# at once have more, and share what is compiled.
_MOST_KNOWN_HEADS = 8


class Tile(NamedTuple):
    """The part of a row one program serves, and how many edges it has in flight.

    ``edges`` of them lie side by side in the lanes of a warp, each lane with sums of
    its own; ``unroll`` such groups are read before the first is used.
    """

    heads: int
    channels: int
    edges: int
    unroll: int
    warps: int

    def constants(self, heads: int, channels: int) -> tuple[int, ...]:
        """The kernels' KNOWN_HEADS, C, BLOCK_E, BLOCK_H, BLOCK_C, UNROLL and EXACT."""
        exact = heads % self.heads == 0 and channels == self.channels
        known = heads if exact and heads <= _MOST_KNOWN_HEADS else 0
        blocks = (self.edges, self.heads, self.channels, self.unroll)
        return (known, channels, *blocks, exact)


@functools.lru_cache
def choose_tile(
    heads: int, channels: int, itemsize: int, width: int, lanes: int
) -> Tile:
    """A tile for tables with so many heads, channels and bytes per element.

    Args:
        heads: Number of heads.
        channels: Channels per head.
        itemsize: Bytes per element.
        width: The most columns (heads times channels), unless one head has more.
        lanes: The elements that one step handles side by side.
    """
    if channels % 4:
        # Rows that are not a multiple of 16 bytes are loaded element by element; a
        # smaller tile avoids spills.
        width, lanes = min(width, 64), min(lanes, 64)
    padded = power_of_two(channels)
    block = min(power_of_two(heads), max(1, width // padded))
    columns = block * padded
    edges = max(1, lanes // columns)
    unroll = 4 if edges * columns * itemsize <= 1024 else 2
    return Tile(block, padded, edges, unroll, max(1, min(8, columns // 512)))
