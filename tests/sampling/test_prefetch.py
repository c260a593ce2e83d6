"""Batches made ahead in threads: order, errors, and no thread left behind."""

import os
import pickle
import threading
import time
from typing import Any

import pytest
import torch

from tempergat import NeighborSampler, UserError
from tempergat.sampling.loader import prefetched
from tests.sampling.graphs import random_data, random_typed_data


def own_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if "tempergat-sampler" in t.name]


def test_results_come_in_order_and_ahead_of_the_caller() -> None:
    begun: list[int] = []

    def make(step: int) -> int:
        begun.append(step)
        time.sleep(0.002 * (step % 2))
        return step * 10

    results = prefetched(make, range(9), 3, 2)
    assert next(results) == 0
    assert len(own_threads()) == 2
    deadline = time.monotonic() + 5
    while len(begun) < 4 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert sorted(begun) == [0, 1, 2, 3]
    assert list(results) == [step * 10 for step in range(1, 9)]
    assert own_threads() == []


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    def make(step: int) -> int:
        if step == 3:
            raise MemoryError("no memory for step 3")
        return step

    results = prefetched(make, range(9), 2, 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(MemoryError, match="no memory for step 3"):
        next(results)
    assert own_threads() == []


def test_a_dropped_iteration_leaves_no_thread() -> None:
    sampler = NeighborSampler(random_data(), [3], 8, prefetch=3)
    batches = iter(sampler)
    next(batches)
    assert own_threads() != []
    del batches
    assert own_threads() == []
    assert len(list(sampler)) == len(sampler)


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_batches_do_not_depend_on_how_many_are_made_ahead(prefetch: int) -> None:
    settings: Any = {"shuffle": True, "prefetch": prefetch}
    sampler = NeighborSampler(random_data(), [3, 3], 32, **settings)
    for step, batch in enumerate(sampler):
        assert torch.equal(batch.e_id, sampler.batch(0, step).e_id)


def test_a_transform_is_applied_to_every_batch_in_the_background() -> None:
    def transform(batch: Any) -> tuple[int, str]:
        return batch.batch_size, threading.current_thread().name

    sampler = NeighborSampler(random_data(), [3], 64, transform=transform)
    sizes, names = zip(*sampler, strict=True)
    assert sizes == (64, 64, 64, 8)
    assert all("tempergat-sampler" in name for name in names)


def test_later_batches_bring_the_graphs_that_were_asked_for() -> None:
    sampler = NeighborSampler(random_data(), [3, 2], 32, prefetch=0)
    batches = iter(sampler)
    first = next(batches)
    assert first.graph._made == {}
    asked = first.graph.for_layers(2, self_loops=True)
    second = next(batches)
    assert set(second.graph._made) == {(0, True), (1, True)}
    assert len(asked) == 2
    assert next(iter(sampler)).graph._made != {}


def test_a_sampler_can_be_pickled() -> None:
    sampler = NeighborSampler(random_typed_data(), [3, 3], 32, "paper", shuffle=True)
    list(sampler)
    other = pickle.loads(pickle.dumps(sampler))
    assert torch.equal(
        other.batch(1, 0)["paper"].n_id, sampler.batch(1, 0)["paper"].n_id
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_samples_and_refuses_an_iteration_begun_before() -> None:
    sampler = NeighborSampler(random_data(), [3, 3], 32)
    batches = iter(sampler)
    next(batches)
    child = os.fork()
    if child == 0:
        # Nothing of pytest may run in the child.
        status = 1
        try:
            torch.set_num_threads(1)
            try:
                next(batches)
            except UserError:
                status = 0 if len(list(sampler)) == len(sampler) else 2
        finally:
            os._exit(status)
    assert _status_of(child) == 0
    assert len(list(batches)) == len(sampler) - 1


def _status_of(child: int) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the forked process does not end")
