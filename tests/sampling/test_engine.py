"""The C++ engine gives the batches of the reference, bit for bit."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from tempergat import UserError
from tempergat.ops import can_sample_on_cpu
from tempergat.sampling import Key, Topology, reference, sample, sample_typed
from tests.sampling.graphs import EDGE_TYPES, SIZES, random_edges, random_typed_data

pytestmark = pytest.mark.skipif(
    not can_sample_on_cpu(), reason="there is no C++ engine"
)
FANOUTS = [[3, 2], [-1], [0, 4], [4, 0, 4], [1], [15, 10, 5], [200], [2, -1, 2]]


def assert_same(ours: Any, theirs: Any) -> None:
    for name in ours._fields:
        one, other = getattr(ours, name), getattr(theirs, name)
        if isinstance(one, dict):
            assert list(one) == list(other), name
        pairs = (
            [(one[key], other[key]) for key in one]
            if isinstance(one, dict)
            else [(one, other)]
        )
        for x, y in pairs:
            if isinstance(x, Tensor):
                assert x.dtype == y.dtype, name
                assert torch.equal(x, y), name
            else:
                assert x == y, name


# Whether with replacement, and whether targets share their draws.
WAYS = [(False, False), (True, False), (False, True)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fanout", FANOUTS, ids=str)
def test_batches_are_those_of_the_reference(
    fanout: list[int], way: tuple[bool, bool]
) -> None:
    for size, count in ((1, 0), (1, 3), (63, 300), (64, 64), (4097, 40000)):
        topology = Topology.of(random_edges(size, size, count, seed=size), size)
        generator = torch.Generator().manual_seed(count)
        for step in range(3):
            seeds = torch.randperm(size, generator=generator)[: 10 * step + 1]
            arguments = (topology, seeds, fanout, Key(5, 1, step), *way)
            assert_same(sample(*arguments), reference.sample(*arguments))


@pytest.mark.parametrize("way", WAYS)
def test_typed_batches_are_those_of_the_reference(way: tuple[bool, bool]) -> None:
    data = random_typed_data()
    topologies = {
        kind: Topology.of(data[kind].edge_index, (SIZES[kind[0]], SIZES[kind[2]]))
        for kind in EDGE_TYPES
    }
    for step, seed_type in enumerate(("paper", "author", "venue", "paper")):
        seeds = torch.randperm(SIZES[seed_type])[:9]
        fanout = {kind: [r + 1, -1, 2] for r, kind in enumerate(EDGE_TYPES)}
        fanout[EDGE_TYPES[1]] = [0, 5, step]
        arguments = (
            topologies,
            SIZES,
            seed_type,
            seeds,
            fanout,
            Key(1, 2, step),
            *way,
        )
        assert_same(sample_typed(*arguments), reference.sample_typed(*arguments))


def test_int64_sources_and_int32_pointers_are_read() -> None:
    edges = random_edges(300, 300, 3000)
    usual = Topology.of(edges, 300)
    other = Topology(usual.pointer.int(), usual.source.long(), usual.edge_id, 300)
    arguments = torch.arange(20), [5, 5], Key(0, 0, 0), False
    assert_same(sample(usual, *arguments), sample(other, *arguments))


def test_threads_give_the_same_batches() -> None:
    topology = Topology.of(random_edges(3000, 3000, 40000), 3000)

    def make(step: int) -> Any:
        seeds = torch.arange(step, 3000, 40)
        return sample(topology, seeds, [10, 10], Key(0, 0, step), False)

    alone = [make(step) for step in range(40)]
    with ThreadPoolExecutor(4) as pool:
        for ours, theirs in zip(pool.map(make, range(40)), alone, strict=True):
            assert_same(ours, theirs)


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
    rest = [5, 5], Key(0, 0, 0), False
    with pytest.raises(UserError, match=message):
        sample(wrong, torch.arange(9) if seeds is None else seeds, *rest)
    # A failure leaves nothing behind.
    arguments = topology, torch.arange(9), *rest
    assert_same(sample(*arguments), reference.sample(*arguments))


def _changed(topology: Topology, **parts: Tensor) -> Topology:
    fields = {"pointer": topology.pointer, "source": topology.source, **parts}
    return Topology(fields["pointer"], fields["source"], None, topology.num_src)
