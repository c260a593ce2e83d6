"""Typed graphs: as one graph, training, checkpoints, predictions."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import HeteroData

import tempergat
from tempergat.base import UserError
from tempergat.data import Dataset, as_dataset
from tempergat.nn import build_typed_model
from tempergat.ops import Graph
from tempergat.training import (
    CHECKPOINT_NAME,
    Loop,
    RunConfig,
    load_recipe,
    train_group,
)
from tempergat.training.graphs.inputs import (
    node_types_of,
    typed_inputs,
    union_edges,
    union_graphs,
)
from tempergat.training.optimizer import TableAdam, clip_gradients
from tests.support.run_settings import CPU, loop_of, train_run
from tests.support.typed_graph import typed_graph


def test_the_target_type_comes_first_and_every_edge_keeps_its_ends() -> None:
    data = typed_graph()
    names = [kind.name for kind in node_types_of(data, "venue")]
    assert names[0] == "venue"
    assert sorted(names) == sorted(data.node_types)
    edges = union_edges(data, "venue")
    starts, start = {}, 0
    for name in names:
        starts[name] = start
        start += data[name].num_nodes
    expected = {
        (starts[source] + a, starts[end] + b)
        for (source, _, end), store in zip(
            data.edge_types, data.edge_stores, strict=True
        )
        for a, b in store.edge_index.T.tolist()
    }
    assert {tuple(edge) for edge in edges.T.tolist()} == expected
    assert edges.size(1) == data.num_edges


def test_types_without_features_have_no_input() -> None:
    data = typed_graph()
    inputs = typed_inputs(data, "paper", lambda x, _: x * 2)
    kinds = node_types_of(data, "paper")
    for kind, values in zip(kinds, inputs.inputs, strict=True):
        if kind.name == "author":
            assert values is None
        else:
            assert torch.equal(values, data[kind.name].x * 2)
    assert inputs.num_targets == data["paper"].num_nodes


@pytest.mark.parametrize("method", ["gcn", "gat", "temp_gated_v2", "mlp"])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_graphs_by_layer_give_the_scores_of_the_whole_graph(
    method: str, layers: int
) -> None:
    data = typed_graph()
    kinds = node_types_of(data, "paper")
    model = build_typed_model(method, kinds, 8, 2, num_layers=layers, heads=2).eval()
    x = typed_inputs(data, "paper", lambda x, _: x)
    graphs = union_graphs(
        data, "paper", layers, torch.device("cpu"), whole=method == "gcn"
    )
    if layers > 1:
        assert graphs[-1].num_dst == data["paper"].num_nodes
    whole = Graph(union_edges(data, "paper"), data.num_nodes)
    torch.testing.assert_close(model(x, graphs), model(x, whole))


def test_types_that_no_target_can_see_are_not_computed() -> None:
    data = typed_graph()
    assert node_types_of(data, "paper")[-1].name == "review"
    graphs = union_graphs(data, "paper", 3, torch.device("cpu"))
    assert all(graph.num_dst <= data.num_nodes - 5 for graph in graphs)


SAMPLED = {"training": "sampled", "fanout": (4, 3), "batch_size": 16, "epochs": 4}


def full_config(method: str = "temp_gated", **changes: object) -> RunConfig:
    settings = {"epochs": 15, "hidden_channels": 8, **changes}
    if method != "gcn":
        settings["heads"] = 2
    return load_recipe("default").config_for(method).with_changes(**settings)


def config(method: str = "temp_gated", **changes: object) -> RunConfig:
    return full_config(method, **{**SAMPLED, **changes})


@pytest.fixture(scope="module")
def model() -> tempergat.TrainedModel:
    settings = {"epochs": 15, "hidden": 8, "heads": 2}
    options = {"settings": settings, "device": "cpu", "progress": False}
    return tempergat.train(typed_graph(), "temp_gated", **options)


def full_logits(loop: Loop, dataset: Dataset) -> torch.Tensor:
    data = dataset.data
    graph = Graph(union_edges(data, "paper"), data.num_nodes)
    return loop.runs.model.eval()(typed_inputs(data, "paper", lambda x, _: x), graph)


@pytest.mark.parametrize("method", ["gat", "temp_gated_v2", "gated", "transformer"])
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


@pytest.mark.parametrize("method", ["gcn", "gat", "gated_temp_v2", "transformer"])
def test_exact_evaluation_gives_the_scores_of_the_whole_graph(method: str) -> None:
    dataset = as_dataset(typed_graph())
    loop = loop_of(config(method), graph=dataset)
    expected = full_logits(loop, dataset)
    nodes = torch.cat(list(loop.task.examples.numbers.values())).unique()
    with torch.no_grad():
        (logits,) = loop.batches.logits(loop.runs)
    torch.testing.assert_close(logits, expected[nodes])


@pytest.mark.parametrize("normalize", [False, True])
def test_exact_evaluation_of_sparse_features_is_that_of_dense_ones(
    normalize: bool,
) -> None:
    settings = config(normalize_features=normalize)
    logits = []
    for is_sparse in (False, True):
        data = typed_graph()
        data["paper"].x = data["paper"].x.relu()
        if is_sparse:
            data["paper"].x = data["paper"].x.to_sparse_csr()
        loop = loop_of(settings, graph=as_dataset(data))
        with torch.no_grad():
            logits += loop.batches.logits(loop.runs)
    torch.testing.assert_close(logits[1], logits[0])


@pytest.mark.parametrize("evaluation", [None, 32])
def test_more_layers_than_hops_are_trained(evaluation: int | None) -> None:
    dataset = as_dataset(typed_graph())
    settings = config(
        num_layers=4, norm="batch", eval_batch_size=evaluation, shared_channels=4
    )
    (run,) = train_group(dataset, settings, [0], CPU)
    assert run.status == "done"
    assert len(run.selected.temperatures) == len(run.selected.gate_means) == 4


@pytest.mark.parametrize(
    "settings",
    [
        full_config("gat", epochs=60),
        config(
            "gat",
            epochs=10,
            fanout=(5, 5),
            feature_dropout=0.0,
            attention_dropout=0.0,
            learning_rate=0.01,
        ),
    ],
    ids=["full", "sampled"],
)
def test_what_can_be_learned_is_learned(settings: RunConfig) -> None:
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


@pytest.mark.parametrize(
    "settings",
    [full_config("temp_gated", epochs=6), config("gat", epochs=3)],
    ids=["full", "sampled"],
)
def test_a_stopped_run_continues_to_the_same_bytes(
    settings: RunConfig, tmp_path: Path
) -> None:
    dataset = as_dataset(typed_graph())

    def stop(epoch: int) -> None:
        if epoch == 2:
            raise KeyboardInterrupt

    train_run(settings, tmp_path / "whole", dataset)
    part = {"graph": dataset, "checkpoint_every": 1}
    with pytest.raises(KeyboardInterrupt):
        train_run(settings, tmp_path / "part", on_epoch=stop, **part)
    train_run(settings, tmp_path / "part", **part)
    files = [tmp_path / name / CHECKPOINT_NAME for name in ("whole", "part")]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    "method", ["gcn", "gat", "temp_gated", "gated_temp_v2", "temp_gated_transformer"]
)
def test_seeds_trained_together_equal_seeds_trained_alone(method: str) -> None:
    dataset = as_dataset(typed_graph())
    together = train_group(dataset, full_config(method), [0, 1], CPU)
    for run in together:
        (alone,) = train_group(dataset, full_config(method), [run.seed], CPU)
        assert run.status == "done"
        for rule, scores in run.scores.items():
            assert scores.val == pytest.approx(alone.scores[rule].val, abs=0.1)
        assert run.selected.temperatures == pytest.approx(
            alone.selected.temperatures, abs=1e-3
        )


def test_a_saved_model_predicts_as_before_and_needs_no_labels(
    model: tempergat.TrainedModel, tmp_path: Path
) -> None:
    data = typed_graph()
    expected = model.predict(data)
    assert expected.shape == (data["paper"].num_nodes,)
    loaded = tempergat.load_model(model.save(tmp_path / "model.safetensors"))
    del data["paper"].y
    assert torch.equal(loaded.predict(data), expected)
    scores = loaded(data.collect("x"), data.collect("edge_index"))
    assert torch.equal(scores.argmax(1), expected)
    assert "4 node types" in repr(loaded)


def without_venues(data: HeteroData) -> None:
    for kind in [k for k in data.edge_types if "venue" in k]:
        del data[kind]
    del data["venue"]


def more_authors(data: HeteroData) -> None:
    data["author"].num_nodes = 16


def other_features(data: HeteroData) -> None:
    data["venue"].x = torch.ones(4, 5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without_venues, "trained on the node types paper, author, venue, review"),
        (more_authors, "each of 15 nodes of type author, but graph has 16"),
        (other_features, "venue of graph have 5 features, but the model .* 4"),
    ],
)
def test_a_graph_that_does_not_fit_is_refused(
    change: object, words: str, model: tempergat.TrainedModel
) -> None:
    data = typed_graph()
    change(data)  # type: ignore[operator]
    with pytest.raises(UserError, match=words) as refused:
        model.predict(data)
    assert "\n" not in str(refused.value)


def test_a_graph_of_one_type_is_refused(model: tempergat.TrainedModel) -> None:
    with pytest.raises(UserError, match="has one type of nodes, but the model"):
        model.predict(tempergat.load("csbm"))


def test_tensors_that_do_not_fit_the_model_are_named(
    model: tempergat.TrainedModel,
) -> None:
    data = typed_graph()
    x, edges = data.collect("x"), data.collect("edge_index")
    with pytest.raises(UserError, match="x has no features of the node type paper"):
        model({}, edges)
    with pytest.raises(UserError, match=r"x must be a dict .* got Tensor"):
        model(x["paper"], edges)
    unknown = {("book", "cites", "paper"): torch.zeros(2, 1, dtype=torch.long)}
    with pytest.raises(UserError, match=r"edge type \('book', .* node types paper, au"):
        model(x, unknown)


def test_a_typed_graph_without_edge_types_is_refused() -> None:
    data = typed_graph()
    for kind in data.edge_types:
        del data[kind]
    with pytest.raises(UserError, match="graph has no edge types; add an edge_index"):
        as_dataset(data)
