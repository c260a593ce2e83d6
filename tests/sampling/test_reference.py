"""The specification of sampling: which neighbours are drawn, and how often."""

import itertools
from collections import Counter

import pytest
import torch
from scipy import stats

from tempergat.ops import fold_in
from tempergat.sampling import Key, Topology, reference
from tempergat.sampling.draws import choose, draw_below, shuffled, target_keys
from tests.sampling.graphs import of_one_type, random_edges


def test_a_draw_is_the_upper_part_of_a_word_times_the_limit() -> None:
    keys = target_keys(Key(7, 3, 5), 1, 0, torch.arange(100))
    for limit in (1, 2, 3, 1000, 2**31 - 1):
        drawn = draw_below(keys, 4, torch.full((100,), limit))
        words = [int(w) % 2**64 for w in fold_in(keys, 4)]
        # (high * n + (low * n >> 32)) >> 32 is exactly word * n >> 64.
        assert drawn.tolist() == [word * limit >> 64 for word in words]


@pytest.mark.parametrize(("degree", "count"), [(4, 2), (5, 3), (6, 1), (7, 6)])
def test_every_set_of_neighbours_is_equally_likely(degree: int, count: int) -> None:
    trials = 6000
    keys = target_keys(Key(0, 0, 0), 0, 0, torch.arange(trials))
    chosen = choose(keys, torch.full((trials,), degree), count, replace=False)
    seen = Counter(map(tuple, chosen.tolist()))
    sets = list(itertools.combinations(range(degree), count))
    assert set(seen) <= set(sets)
    assert stats.chisquare([seen[s] for s in sets]).pvalue > 0.001


def test_with_replacement_every_list_of_draws_is_equally_likely() -> None:
    trials, degree, count = 8000, 3, 2
    keys = target_keys(Key(1, 0, 0), 2, 0, torch.arange(trials))
    chosen = choose(keys, torch.full((trials,), degree), count, replace=True)
    seen = Counter(map(tuple, chosen.tolist()))
    lists = Counter(
        tuple(sorted(p)) for p in itertools.product(range(degree), repeat=count)
    )
    expected = [trials * n / degree**count for n in lists.values()]
    assert stats.chisquare([seen[s] for s in lists], expected).pvalue > 0.001


def test_draws_of_steps_hops_and_nodes_are_independent() -> None:
    keys = torch.stack(
        [
            target_keys(Key(s, e, t), hop, relation, torch.tensor([node]))[0]
            for s, e, t, hop, relation, node in itertools.product(range(3), repeat=6)
        ]
    )
    assert keys.unique().numel() == 3**6


@pytest.mark.parametrize("replace", [False, True])
def test_a_neighbourhood_is_what_the_rules_say(replace: bool) -> None:
    edges = random_edges(60, 60, 400)
    topology = Topology.of(edges, 60)
    seeds = torch.tensor([59, 3, 20, 0])
    fanout = [3, -1, 2]
    graph = of_one_type(topology, seeds, fanout)
    hops = reference.sample(*graph, Key(1, 2, 3), replace)
    (source,), (target,), (slot,) = hops.source, hops.target, hops.slot
    (nodes,), n_id, begin = hops.nodes_per_hop, hops.n_id[0].tolist(), 0
    seen: list[int] = []
    for hop, count in enumerate(fanout):
        frontier = n_id[sum(nodes[:hop]) :][: nodes[hop]]
        seen += frontier
        sources: set[int] = set()
        for node in frontier:
            row = slice(int(topology.pointer[node]), int(topology.pointer[node + 1]))
            degree = row.stop - row.start
            slots = [s for s in slot[begin:].tolist() if row.start <= s < row.stop]
            take = degree if count < 0 else min(degree, count)
            if replace and count > 0 and degree:
                take = count
            assert len(slots) == take
            assert slots == sorted(slots)
            if not replace:
                assert len(set(slots)) == take
            place = slice(begin, begin + take)
            assert slot[place].tolist() == slots
            assert target[place].tolist() == [n_id.index(node)] * take
            drawn = topology.source[slots].tolist()
            assert [n_id[s] for s in source[place].tolist()] == drawn
            sources |= set(drawn)
            begin += take
        new = sorted(sources - set(seen))
        assert n_id[sum(nodes[: hop + 1]) :][: len(new)] == new
        assert nodes[hop + 1] == len(new)
    assert begin == slot.numel() == sum(hops.edges_per_hop[0])
    assert len(n_id) == len(set(n_id)) == sum(nodes)
    assert hops.pointer is not None
    counts = torch.bincount(target, minlength=hops.pointer.numel() - 1)
    assert torch.equal(hops.pointer.diff().long(), counts)
    for end, rows in enumerate((source, target)):
        assert torch.equal(edges[end][topology.edges_of(slot)], hops.n_id[0][rows])


def test_a_hop_with_fanout_zero_takes_nothing() -> None:
    topology = Topology.of(torch.tensor([[0, 1], [1, 0]]), 2)
    graph = of_one_type(topology, torch.tensor([0]), [0])
    for replace in (False, True):
        hops = reference.sample(*graph, Key(0, 0, 0), replace)
        assert hops.edges_per_hop == [[0]]


def test_every_order_of_the_seeds_is_equally_likely() -> None:
    orders = Counter(tuple(shuffled(0, epoch, 3).tolist()) for epoch in range(3000))
    assert len(orders) == 6
    assert stats.chisquare(list(orders.values())).pvalue > 0.001
