# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Gives the nodes of a batch their rows: seeds first, then each hop's new nodes.

A hop's new nodes are bits in a map of all nodes. Their number before each word of the
map gives them their rows in ascending order, so nothing is sorted.
"""

import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.launching.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.sampling.draws import sum_before

# Words of a step, and the most programs before each of them has more steps.
_WORDS = 256
_PROGRAMS = 2048
_BLOCK = 1024


@triton.jit(do_not_specialize=["num_seeds"])
def _begin_kernel(
    seeds_ptr, nodes_ptr, n_id_ptr, row_of_ptr, visited_ptr, num_seeds,
    BLOCK: tl.constexpr,
):  # fmt: skip
    count = 0
    for first in range(0, num_seeds, BLOCK):
        rows = first + tl.arange(0, BLOCK)
        node = tl.load(seeds_ptr + rows, mask=rows < num_seeds, other=-1)
        given = node >= 0
        node = tl.where(given, node, 0)
        count += tl.sum(given.to(tl.int32), axis=0)
        tl.store(n_id_ptr + rows, node, mask=given)
        tl.store(row_of_ptr + node, rows, mask=given)
        one = tl.full([BLOCK], 1, tl.int32)
        bit = one << (node & 31).to(tl.int32)
        tl.atomic_or(visited_ptr + (node >> 5), bit, mask=given, sem="relaxed")
    tl.store(nodes_ptr + 1, count)


@triton.jit
def _count_bits(word):
    word = word.to(tl.uint32)
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    word = word + (word >> 8)
    word = word + (word >> 16)
    return (word & 63).to(tl.int32)


@triton.jit(do_not_specialize=["num_words", "steps"])
def _count_new_kernel(fresh_ptr, sums_ptr, num_words, steps, WORDS: tl.constexpr):
    program = tl.program_id(0)
    total = tl.zeros([WORDS], tl.int32)
    for step in range(steps):
        place = (program * steps + step) * WORDS + tl.arange(0, WORDS)
        word = tl.load(fresh_ptr + place, mask=place < num_words, other=0)
        total += _count_bits(word)
    tl.store(sums_ptr + program, tl.sum(total, axis=0))


@triton.jit(do_not_specialize=["num_words", "steps", "hop"])
def _place_new_kernel(
    fresh_ptr, visited_ptr, sums_ptr, nodes_ptr, n_id_ptr, row_of_ptr,
    num_words, steps, hop, WORDS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    before = tl.load(nodes_ptr + hop + 1) + sum_before(sums_ptr, program)
    bits = tl.arange(0, 32)[None, :]
    lower = (tl.full([1, 32], 1, tl.int64) << bits.to(tl.int64)) - 1
    for step in range(steps):
        place = (program * steps + step) * WORDS + tl.arange(0, WORDS)
        inside = place < num_words
        word = tl.load(fresh_ptr + place, mask=inside, other=0)
        visited = tl.load(visited_ptr + place, mask=inside, other=0)
        tl.store(visited_ptr + place, visited | word, mask=inside)
        tl.store(fresh_ptr + place, word * 0, mask=inside)
        count = _count_bits(word)
        first = before + tl.cumsum(count, axis=0) - count
        before += tl.sum(count, axis=0)
        marked = ((word[:, None] >> bits) & 1) == 1
        row = first[:, None] + _count_bits(word[:, None] & lower.to(tl.int32))
        node = place.to(tl.int64)[:, None] * 32 + bits
        tl.store(n_id_ptr + row, node, mask=marked)
        tl.store(row_of_ptr + node, row, mask=marked)
    if program == tl.num_programs(0) - 1:
        tl.store(nodes_ptr + hop + 2, before)


@triton.jit(do_not_specialize=["last"])
def _relabel_kernel(source_ptr, row_of_ptr, edges_ptr, last, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < tl.load(edges_ptr + last)
    node = tl.load(source_ptr + place, mask=inside, other=0)
    row = tl.load(row_of_ptr + node, mask=inside, other=0)
    tl.store(source_ptr + place, row, mask=inside)


def words_of(num_nodes: int) -> int:
    """How many words a map of so many nodes has; a multiple of four."""
    return divide_up(num_nodes, 128) * 4


def begin(
    seeds: Tensor, nodes: Tensor, n_id: Tensor, row_of: Tensor, visited: Tensor
) -> None:
    """Gives the seeds their rows.

    Args:
        seeds: Different nodes, int64; negative numbers at the end stand for none.
        nodes: How many nodes there are before each hop, int32, all 0.
        n_id: The nodes by row, int64.
        row_of: The row of each node of the whole graph, int32.
        visited: A bit for each node that has a row, int32.
    """
    tensors = (seeds, nodes, n_id, row_of, visited)
    launch(_begin_kernel, (1, 1), tensors, (seeds.size(0),), (_BLOCK,), warps=4)


def add_new_nodes(
    fresh: Tensor,
    visited: Tensor,
    nodes: Tensor,
    n_id: Tensor,
    row_of: Tensor,
    hop: int,
) -> None:
    """Gives the nodes found in a hop their rows, and empties the map of them.

    Args:
        fresh: A bit for each node that was found, int32.
        visited: A bit for each node that has a row, int32.
        nodes: How many nodes there are before each hop, int32.
        n_id: The nodes by row, int64.
        row_of: The row of each node of the whole graph, int32.
        hop: The hop.
    """
    words = fresh.size(0)
    steps = power_of_two(divide_up(words, _WORDS * _PROGRAMS))
    programs = divide_up(words, _WORDS * steps)
    sums = fresh.new_empty(programs)
    numbers = (words, steps)
    launch(_count_new_kernel, (programs, 1), (fresh, sums), numbers, (_WORDS,), warps=4)
    launch(
        _place_new_kernel,
        (programs, 1),
        (fresh, visited, sums, nodes, n_id, row_of),
        (*numbers, hop),
        (_WORDS,),
        warps=4,
    )


def relabel(source: Tensor, row_of: Tensor, edges: Tensor, last: int) -> None:
    """Replaces the sources' numbers in the whole graph by their rows.

    Args:
        source: The source of every edge, int32; changed in place.
        row_of: The row of each node of the whole graph, int32.
        edges: How many edges there are before each hop, int32.
        last: The number of hops.
    """
    grid = (divide_up(source.size(0), _BLOCK), 1)
    launch(_relabel_kernel, grid, (source, row_of, edges), (last,), (_BLOCK,), warps=4)
