"""The loader of graphs: its order, its place in an epoch, processes and copies."""

import copy
import gc
import json
import pickle
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch.utils.data import random_split
from torch_geometric.loader import DataLoader

from tempergat import GraphLoader, TemperGATConv, UserError
from tests.sampling.small_graphs.drawn import InMemory, numbers_of, small_graphs
from tests.support.processes import ProcessStarter

STATM = Path("/proc/self/statm")


def flat(parts: Any) -> list[int]:
    return list(chain.from_iterable(parts))


@pytest.mark.parametrize("options", [{"shuffle": True}, {"drop_last": True}])
def test_the_order_is_pygs_from_the_same_generator(options: dict[str, bool]) -> None:
    graphs, orders = small_graphs(23), []
    for loader_class in (DataLoader, GraphLoader):
        torch.manual_seed(3)
        loaders = [loader_class(graphs, size, **options) for size in (5, 4)]
        # Two loaders in turn, then an epoch of one that ends early.
        order = [numbers_of(both) for both in zip(*loaders, strict=False)]
        order.append(numbers_of([next(iter(loaders[0]))]))
        order.append(numbers_of(loaders[0]))
        assert len(order[-1]) == len(loaders[0])
        orders.append([*order, torch.rand(1)])
    assert orders[0] == orders[1]


def test_a_seed_gives_every_epoch_its_own_order() -> None:
    graphs = small_graphs(23)
    loader, again = (GraphLoader(graphs, 5, shuffle=True, seed=4) for _ in range(2))
    state = torch.get_rng_state()
    epochs = [numbers_of(loader) for _ in range(3)]
    assert torch.equal(torch.get_rng_state(), state)
    assert epochs[0] != epochs[1] != epochs[2]
    assert sorted(flat(epochs[2])) == list(range(23))
    again.set_epoch(2)
    assert numbers_of(again) == epochs[2]
    assert again.epoch == 3
    assert numbers_of(GraphLoader(graphs, 5, shuffle=True, seed=5)) != epochs[0]


def test_an_epoch_begins_with_its_first_batch() -> None:
    loader = GraphLoader(small_graphs(9), 4, shuffle=True, seed=0)
    first, second = numbers_of(loader), numbers_of(loader)
    loader.set_epoch(0)
    unused, used = iter(loader), iter(loader)
    assert numbers_of(used) == first
    assert numbers_of(unused) == second


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("seed", [None, 3])
def test_an_epoch_continues_where_its_state_was_taken(
    shuffle: bool, seed: int | None
) -> None:
    graphs = small_graphs(23)
    loader = GraphLoader(graphs, 5, shuffle, seed=seed)
    numbers_of(loader)
    batches = iter(loader)
    begun = numbers_of([next(batches), next(batches)])
    state, drawn = copy.deepcopy(loader.state_dict()), torch.get_rng_state()
    rest = numbers_of(batches), numbers_of(loader)
    assert sorted(flat(begun + rest[0])) == list(range(23))
    resumed = GraphLoader(graphs, 5, shuffle, seed=seed)
    torch.set_rng_state(drawn)
    resumed.load_state_dict(state)
    # Some trainers ask for an iterator that they do not use.
    iter(resumed)
    assert (numbers_of(resumed), numbers_of(resumed)) == rest
    assert resumed.state_dict() == loader.state_dict()


def test_a_state_between_epochs_is_that_of_the_next_one(python: ProcessStarter) -> None:
    loader = GraphLoader(small_graphs(23), 5, shuffle=True, seed=1)
    numbers_of(loader)
    state = loader.state_dict()
    code = (
        "from tests.sampling.small_graphs.drawn import numbers_of, small_graphs\n"
        "from tempergat import GraphLoader\n"
        "loader = GraphLoader(small_graphs(23), 5, shuffle=True, seed=1)\n"
        f"loader.load_state_dict({state})\n"
        "print(numbers_of(loader))"
    )
    ended = python.run(code)
    assert ended.stdout.strip() == str(numbers_of(loader)), ended.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 4}, "the state has batch_size 4, but this loader has 5"),
        ({"graphs": 9}, "the state has graphs 9, but this loader has 23"),
        ({"seed": 9}, "the state has seed 9, but this loader has None"),
        ({"processes": 2}, "the state has processes 2, but this loader has 1"),
        ({"epoch": -1}, "epoch must be a whole number from 0, got -1"),
        ({"step": 0.5}, "step must be 0 or more, got 0.5"),
        ({"more": 1}, "the state of a GraphLoader has epoch, step, order, "),
    ],
)
def test_a_state_of_other_batches_is_refused(
    change: dict[str, Any], message: str
) -> None:
    loader = GraphLoader(small_graphs(23), 5)
    with pytest.raises(UserError, match=message):
        loader.load_state_dict(loader.state_dict() | change)


def test_parts_of_a_dataset_share_its_tensors() -> None:
    dataset = InMemory(small_graphs(20))
    parts = [dataset[5:9], *random_split(dataset, [12, 8]), dataset[[7, 2]][1:]]
    loaders = [GraphLoader(part, 4) for part in parts]
    dataset._data.x.fill_(3)
    for part, loader in zip(parts, loaders, strict=True):
        batches = list(loader)
        assert flat(numbers_of(batches)) == [int(graph.number) for graph in part]
        assert all((batch.x == 3).all() for batch in batches)
        assert loader.dataset is part


def test_batches_outlive_copies_pickles_and_their_loader() -> None:
    loader = GraphLoader(small_graphs(8), 8, follow_batch=["x"])
    (batch,) = loader
    expected = [graph.clone().to_dict() for graph in batch.to_data_list()]
    copies = [copy.copy(batch), copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))]
    batch.x.zero_()
    batch.ptr.zero_()
    assert batch.get_example(7).x.shape == expected[7]["x"].shape
    (other,) = loader
    for each in [*copies[1:], other, other.to("cpu").clone()]:
        assert each.num_graphs == 8
        for graph, values in zip(each.to_data_list(), expected, strict=True):
            torch.testing.assert_close(graph.to_dict(), values, rtol=0, atol=0)
    assert (copies[0].x == 0).all()
    assert torch.equal(copies[2].x_ptr, other.x_ptr)


def test_a_copied_loader_has_graphs_of_its_own() -> None:
    loader = GraphLoader(small_graphs(50), 50, shuffle=True, seed=2)
    (expected,) = loader
    loader.set_epoch(0)
    stored, copied = pickle.dumps(loader), copy.deepcopy(loader)
    del loader
    gc.collect()
    # Takes the memory that the graphs had.
    taken = [torch.full((200, 3), 7.0, dtype=torch.float64) for _ in range(100)]
    for each in (pickle.loads(stored), copied):
        (batch,) = each
        torch.testing.assert_close(batch.x, expected.x, rtol=0, atol=0)
    assert len(taken) == 100


def test_batches_made_in_inference_mode_train_later() -> None:
    layer = TemperGATConv(3, 2).double()
    with torch.inference_mode():
        (batch,) = GraphLoader(small_graphs(6), 6)
        layer(batch.x, batch.edge_index)
    layer(batch.x.requires_grad_(), batch.edge_index).sum().backward()
    assert batch.x.grad is not None


def test_batches_are_the_same_without_the_compiled_library() -> None:
    graphs = small_graphs(20)
    with mock.patch(
        "tempergat.sampling.small_graphs.gather.can_gather", return_value=False
    ):
        plain = GraphLoader(graphs, 7, padded=True)
    for ours, expected in zip(GraphLoader(graphs, 7, padded=True), plain, strict=True):
        torch.testing.assert_close(ours.to_dict(), expected.to_dict(), rtol=0, atol=0)


PROCESSES = """
import datetime, json, multiprocessing, pathlib, sys, torch.distributed as group
from tempergat import GraphLoader
from tests.sampling.small_graphs.drawn import numbers_of, small_graphs

def make_parts(rank):
    limit = datetime.timedelta(seconds=20)
    group.init_process_group("gloo", f"file://{sys.argv[1]}/store", limit, 3, rank)
    parts = {}
    for count in (32, 25):
        loader = GraphLoader(small_graphs(count), 2, shuffle=True, seed=6)
        parts[count] = [numbers_of(loader), numbers_of(loader), len(loader)]
    try:
        list(GraphLoader(small_graphs(4), 2, shuffle=True))
    except Exception as error:
        parts["error"] = str(error)
    pathlib.Path(sys.argv[1], str(rank)).write_text(json.dumps(parts))

fork = multiprocessing.get_context("fork")
ranks = [fork.Process(target=make_parts, args=(rank,)) for rank in range(3)]
for rank in ranks:
    rank.start()
for rank in ranks:
    rank.join(30)
    rank.kill()
"""


def test_each_process_makes_its_part_of_every_batch(
    python: ProcessStarter, tmp_path: Path
) -> None:
    ended = python.run(PROCESSES, str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    found = [json.loads((tmp_path / rank).read_text()) for rank in "012"]
    assert all("give seed=" in each["error"] for each in found)
    # The last batch has two graphs, or one, which all three processes have.
    for count in (32, 25):
        whole = GraphLoader(small_graphs(count), 6, shuffle=True, seed=6)
        for epoch in range(2):
            *together, last = [
                flat(parts)
                for parts in zip(*(e[str(count)][epoch] for e in found), strict=True)
            ]
            *expected, expected_last = numbers_of(whole)
            assert together == expected
            assert len(last) == 3
            assert set(last) == set(expected_last)
        assert found[0][str(count)][2] == len(whole)


@pytest.mark.skipif(not STATM.exists(), reason="reads the memory in use from /proc")
def test_training_on_new_batches_keeps_memory_level() -> None:
    layer = TemperGATConv(3, 4, edge_dim=2).double()
    optimizer = torch.optim.Adam(layer.parameters())
    loader = GraphLoader(small_graphs(1000), 200, shuffle=True, padded=True)
    pages: list[int] = []
    while len(pages) < 600:
        for batch in loader:
            optimizer.zero_grad()
            out = layer(batch.x, batch.edge_index, batch.edge_attr)
            out.square().mean().backward()
            optimizer.step()
            pages.append(int(STATM.read_text().split()[1]))
    # A batch has 50 KB: 500 of them would be 6,000 pages.
    assert pages[-1] - pages[99] < 1000
