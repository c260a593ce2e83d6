"""Draws that targets share: fewer nodes, and every target draws as before."""

import itertools
from collections import Counter

import pytest
import torch
from scipy import stats

from tempergat import NeighborSampler, UserError
from tempergat.sampling import Key, Topology, sample
from tests.sampling.graphs import random_data


def test_every_set_of_neighbours_of_a_node_is_equally_likely() -> None:
    degree, count, trials = 5, 2, 3000
    topology = Topology.of(torch.stack([torch.arange(1, 6), torch.zeros(5).long()]), 6)
    seeds = torch.tensor([0])
    seen = Counter(
        tuple(
            sample(topology, seeds, [count], Key(0, 0, step), False, True).slot.tolist()
        )
        for step in range(trials)
    )
    sets = list(itertools.combinations(range(degree), count))
    assert set(seen) <= set(sets)
    assert stats.chisquare([seen[s] for s in sets]).pvalue > 0.001


def test_nodes_with_the_same_neighbours_draw_the_same_ones() -> None:
    sources = torch.arange(10, 40)
    edges = torch.stack([sources.repeat(10), torch.arange(10).repeat_interleave(30)])
    topology = Topology.of(edges, 40)
    hops = sample(topology, torch.arange(10), [5], Key(0, 0, 0), False, True)
    assert hops.nodes_per_hop == [10, 5]
    assert hops.edges_per_hop == [50]
    uniform = sample(topology, torch.arange(10), [5], Key(0, 0, 0), False, False)
    assert uniform.nodes_per_hop[1] > 15


def test_batches_have_as_many_edges_per_node_and_fewer_nodes() -> None:
    data = random_data(400, 20000)
    ours, theirs = (
        NeighborSampler(data, [5, 5], 32, labor=labor).batch(0, 0)
        for labor in (True, False)
    )
    assert ours.num_sampled_edges[0] == theirs.num_sampled_edges[0]
    assert ours.num_nodes < theirs.num_nodes


def test_it_cannot_be_combined_with_replacement() -> None:
    with pytest.raises(UserError, match="labor=True draws without replacement"):
        NeighborSampler(random_data(), [2], 4, replace=True, labor=True)
