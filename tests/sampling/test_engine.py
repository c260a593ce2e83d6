"""The C++ engine gives the batches of the reference, bit for bit."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat import UserError
from tempergat.ops import can_sample_on_cpu
from tempergat.sampling import Key, Topology, reference, sample
from tests.sampling.graphs import (
    EDGE_TYPES,
    SIZES,
    assert_same_hops,
    of_one_type,
    random_edges,
    random_typed_data,
)

needs_cpp = pytest.mark.skipif(not can_sample_on_cpu(), reason="no C++ engine")
FANOUTS = [[3, 2], [-1], [0, 4], [4, 0, 4], [1], [15, 10, 5], [200], [2, -1, 2]]


@needs_cpp
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("fanout", FANOUTS, ids=str)
def test_batches_are_those_of_the_reference(fanout: list[int], replace: bool) -> None:
    for size, count in ((1, 0), (1, 3), (63, 300), (64, 64), (4097, 40000)):
        topology = Topology.of(random_edges(size, size, count, seed=size), size)
        generator = torch.Generator().manual_seed(count)
        for step in range(3):
            seeds = torch.randperm(size, generator=generator)[: 10 * step + 1]
            graph = of_one_type(topology, seeds, fanout)
            arguments = (*graph, Key(5, 1, step), replace)
            assert_same_hops(sample(*arguments), reference.sample(*arguments))


@needs_cpp
@pytest.mark.parametrize("replace", [False, True])
def test_typed_batches_are_those_of_the_reference(replace: bool) -> None:
    data, types = random_typed_data(), list(SIZES)
    relations = [
        Topology.of(data[kind].edge_index, (SIZES[kind[0]], SIZES[kind[2]])).relation(
            types.index(kind[0]), types.index(kind[2])
        )
        for kind in EDGE_TYPES
    ]
    for step, seed_type in enumerate(("paper", "author", "venue", "paper")):
        seeds = torch.randperm(SIZES[seed_type])[:9]
        fanout = [[number + 1, -1, 2] for number in range(len(EDGE_TYPES))]
        fanout[1] = [0, 5, step]
        nodes = list(SIZES.values()), types.index(seed_type), seeds
        arguments = (relations, *nodes, fanout, Key(1, 2, step), replace)
        assert_same_hops(sample(*arguments), reference.sample(*arguments))


@needs_cpp
def test_int64_sources_and_int32_pointers_are_read() -> None:
    edges = random_edges(300, 300, 3000)
    usual = Topology.of(edges, 300)
    other = Topology(usual.pointer.int(), usual.source.long(), usual.edge_id, 300)
    ours, theirs = (
        sample(*of_one_type(each, torch.arange(20), [5, 5]), Key(0, 0, 0), False)
        for each in (usual, other)
    )
    assert_same_hops(ours, theirs)


@needs_cpp
def test_threads_give_the_same_batches() -> None:
    topology = Topology.of(random_edges(3000, 3000, 40000), 3000)

    def make(step: int) -> Any:
        seeds = torch.arange(step, 3000, 40)
        graph = of_one_type(topology, seeds, [10, 10])
        return sample(*graph, Key(0, 0, step), False)

    alone = [make(step) for step in range(40)]
    with ThreadPoolExecutor(4) as pool:
        for ours, theirs in zip(pool.map(make, range(40)), alone, strict=True):
            assert_same_hops(ours, theirs)


@needs_cpp
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: (t, torch.tensor([300])), "a seed does not exist"),
        (lambda t: (t, torch.tensor([4, 4])), "is given more than once"),
        (lambda t: (_changed(t, source=t.source + 300), None), "do not exist"),
        (lambda t: (_changed(t, source=t.source - 300), None), "do not exist"),
        (lambda t: (_changed(t, pointer=t.pointer * 7), None), "do not exist"),
        (lambda t: (_changed(t, pointer=-t.pointer), None), "do not exist"),
    ],
)
def test_what_does_not_exist_is_refused(
    spoil: Callable[[Topology], tuple[Topology, Tensor | None]], message: str
) -> None:
    topology = Topology.of(random_edges(300, 300, 3000), 300)
    wrong, seeds = spoil(topology)
    usual, rest = torch.arange(9), (Key(0, 0, 0), False)
    graph = of_one_type(wrong, usual if seeds is None else seeds, [5, 5])
    with pytest.raises(UserError, match=message):
        sample(*graph, *rest)
    # The next batch is right again.
    arguments = (*of_one_type(topology, usual, [5, 5]), *rest)
    assert_same_hops(sample(*arguments), reference.sample(*arguments))


def _changed(topology: Topology, **parts: Tensor) -> Topology:
    fields = {"pointer": topology.pointer, "source": topology.source, **parts}
    return Topology(fields["pointer"], fields["source"], None, topology.num_src)
