"""Sampled training on typed graphs."""

from pathlib import Path

import pytest
import torch

import tempergat
from tempergat.data import Dataset, as_dataset
from tempergat.ops import Graph
from tempergat.training import Loop, RunConfig, load_recipe, train_group
from tempergat.training.optimizer import TableAdam, clip_gradients
from tempergat.training.typed_graphs import typed_inputs, union_edges
from tests.support.run_settings import CPU, loop_of
from tests.support.typed_graph import typed_graph


def config(method: str = "temp_gated", **changes: object) -> RunConfig:
    settings: dict[str, object] = {
        "training": "sampled",
        "fanout": (4, 3),
        "batch_size": 16,
        "epochs": 4,
        "hidden_channels": 8,
    }
    if method != "gcn":
        settings["heads"] = 2
    found = load_recipe("default").config_for(method)
    return found.with_changes(**{**settings, **changes})


def full_logits(loop: Loop, dataset: Dataset) -> torch.Tensor:
    data = dataset.data
    graph = Graph(union_edges(data, "paper"), data.num_nodes)
    return loop.runs.model.eval()(typed_inputs(data, "paper", lambda x, _: x), graph)


@pytest.mark.parametrize("method", ["gat", "temp_gated_v2", "gated"])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_batch_with_all_neighbours_gives_the_scores_of_the_whole_graph(
    method: str, layers: int
) -> None:
    dataset = as_dataset(typed_graph())
    settings = config(method, fanout=(100,) * layers, num_layers=layers)
    loop = loop_of(settings, graph=dataset)
    for drawn in loop.batches.sampler:
        batch = loop.batches.batch_of(drawn)
        seeds = drawn["paper"].n_id[: batch.labels.size(0)]
        assert torch.equal(batch.labels, dataset.data["paper"].y[seeds])
        expected = full_logits(loop, dataset)[seeds]
        (logits,) = loop.runs.logits(batch)
        torch.testing.assert_close(logits[: seeds.size(0)], expected)


@pytest.mark.parametrize("method", ["gcn", "gat", "gated_temp_v2"])
def test_exact_evaluation_gives_the_scores_of_the_whole_graph(method: str) -> None:
    dataset = as_dataset(typed_graph())
    loop = loop_of(config(method), graph=dataset)
    expected = full_logits(loop, dataset)
    nodes = torch.cat(list(loop.task.nodes.values())).unique()
    with torch.no_grad():
        (logits,) = loop.batches.logits(loop.runs)
    torch.testing.assert_close(logits, expected[nodes])


@pytest.mark.parametrize("normalize", [False, True])
def test_exact_evaluation_of_sparse_features_is_that_of_dense_ones(
    normalize: bool,
) -> None:
    settings = config(normalize_features=normalize)
    found = []
    for is_sparse in (False, True):
        data = typed_graph()
        data["paper"].x = data["paper"].x.relu()
        if is_sparse:
            data["paper"].x = data["paper"].x.to_sparse_csr()
        loop = loop_of(settings, graph=as_dataset(data))
        with torch.no_grad():
            found += loop.batches.logits(loop.runs)
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("evaluation", [None, 32])
def test_more_layers_than_hops_are_trained(evaluation: int | None) -> None:
    dataset = as_dataset(typed_graph())
    settings = config(
        num_layers=4, norm="batch", eval_batch_size=evaluation, shared_channels=4
    )
    (run,) = train_group(dataset, settings, [0], CPU)
    assert run.status == "done"
    assert len(run.selected.temperatures) == len(run.selected.gate_means) == 4


def test_what_can_be_learned_is_learned() -> None:
    rates = {"feature_dropout": 0.0, "attention_dropout": 0.0, "learning_rate": 0.01}
    settings = config("gat", epochs=10, fanout=(5, 5), **rates)
    (run,) = train_group(as_dataset(typed_graph()), settings, [0], CPU)
    assert run.scores["best_val_accuracy"].test > 0.8


def test_a_step_changes_the_vectors_of_its_batch_alone() -> None:
    dataset = as_dataset(typed_graph(authors=300))
    settings = config("gat", feature_dropout=0.0, clip_norm=1.0)
    loop = loop_of(settings, graph=dataset)
    table = loop.runs.model.tables[0].weight
    before = table.detach().clone()
    batch = loop.batches.sampler.batch(0, 0)
    loop.train_on(loop.batches.batch_of(batch))
    changed = (table != before).any(1).nonzero().squeeze(1)
    reached = batch["author"].n_id.sort().values
    assert 0 < changed.numel() <= reached.numel() < 300
    assert set(changed.tolist()) <= set(reached.tolist())


def test_rows_are_updated_as_by_sparse_adam() -> None:
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.ones(6, 3)) for _ in range(2))
    dense = torch.nn.Parameter(torch.ones(2))
    mine = TableAdam([{"params": [dense]}], [ours], lr=0.1)
    reference = torch.optim.SparseAdam([theirs], lr=0.1)
    for _ in range(5):
        rows, values = torch.randperm(6)[:3], torch.randn(3, 3)
        for table in (ours, theirs):
            table.grad = torch.sparse_coo_tensor(rows.view(1, -1), values, (6, 3))
        mine.step()
        reference.step()
    torch.testing.assert_close(ours, theirs)
    mine.zero_grad()
    assert ours.grad is None


def test_sparse_gradients_count_in_the_limit_of_the_norm() -> None:
    dense, table = (torch.nn.Parameter(torch.zeros(2)) for _ in range(2))
    dense.grad = torch.tensor([3.0, 0.0])
    table.grad = torch.sparse_coo_tensor([[1]], [4.0], (2,))
    clip_gradients([dense, table], 1.0)
    torch.testing.assert_close(dense.grad, torch.tensor([0.6, 0.0]))
    torch.testing.assert_close(table.grad.to_dense(), torch.tensor([0.0, 0.8]))


def test_a_stopped_run_continues_to_the_same_weights(tmp_path: Path) -> None:
    settings = config("gat", epochs=3)
    dataset = as_dataset(typed_graph())

    def train(folder: Path, **options: object) -> dict[str, torch.Tensor]:
        model = tempergat.training.single.training.train_model(
            dataset, settings, 0, CPU, folder, checkpoint_every=1, **options
        )
        return model.module.state_dict()

    whole = train(tmp_path / "whole")

    def stop(epoch: int) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "part", on_epoch=stop)
    for name, value in train(tmp_path / "part").items():
        assert torch.equal(value, whole[name]), name
