"""Sampled training: batches, losses, records, and runs that continue."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

from tempergat.base import UserError
from tempergat.nn import build_model, gate_penalty
from tempergat.ops import fold_in
from tempergat.sampling import NeighborSampler
from tempergat.training import OutOfMemory, train_group
from tests.support.run_settings import (
    CPU,
    config,
    loop_of,
    small_graph,
    trained_loop,
)

CUDA = torch.device("cuda")
OPTIMIZER = {"optimizer": "adamw", "schedule": "cosine", "clip_norm": 0.5}
SAMPLED = {"training": "sampled", "fanout": (3, 2), "batch_size": 16, "epochs": 3}


def test_a_run_follows_a_plain_loop_over_the_public_sampler():
    settings = config(
        "temp_gated", feature_dropout=0.3, attention_dropout=0.2, **SAMPLED
    )
    loop = trained_loop(settings, [5])
    data = small_graph().data
    torch.manual_seed(5)
    model = build_model(
        in_channels=data.x.size(1), out_channels=3, **settings.model_arguments()
    )
    adam = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)
    train = data.train_mask.nonzero().squeeze(1)
    sampler = NeighborSampler(data, [3, 2], 16, train, shuffle=True, seed=5)
    losses, step = [], 0
    for _ in range(3):
        total = 0.0
        for batch in sampler:
            adam.zero_grad()
            seed = fold_in(torch.tensor(5), step)
            out = model(batch.x, batch.graph, dropout_seed=seed)
            loss = F.cross_entropy(out, batch.y[: batch.batch_size])
            loss = loss + settings.gate_penalty * gate_penalty(model)
            loss.backward()
            adam.step()
            total += loss.item() * batch.batch_size
            step += 1
        losses.append(total / train.numel())
    torch.testing.assert_close(loop.history[:, 0, 0].tolist(), losses)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(loop.runs.state[name][0], value)


@pytest.mark.parametrize("with_fields", [True, False])
def test_batches_made_elsewhere_are_trained_on_like_ours(with_fields):
    # Without a gate: its penalty is a mean over the nodes that a layer computes.
    settings = config("temp_only", **SAMPLED)
    ours, other = loop_of(settings), loop_of(settings)
    for batch in ours.batches.sampler:
        ours.train_on(ours.batches.batch_of(batch))
        made = Data(x=batch.x, input_id=batch.input_id, e_id=batch.e_id)
        made.edge_index = batch.edge_index[:, torch.randperm(batch.num_edges)]
        if with_fields:
            made.num_sampled_nodes = batch.num_sampled_nodes
        other.train_on(other.batches.batch_of(made))
    for name, value in ours.runs.state.items():
        torch.testing.assert_close(other.runs.state[name], value)


def test_scores_without_an_eval_batch_size_are_those_of_the_whole_graph():
    settings = config("gcn", norm="batch", **SAMPLED)
    loop = trained_loop(settings)
    data = small_graph().data
    model = loop.runs.model.eval()
    with torch.no_grad():
        predicted = model(data.x, data.edge_index).argmax(1)
    masks = (data.train_mask, data.val_mask, data.test_mask)
    expected = [float((predicted == data.y)[m].double().mean()) for m in masks]
    assert loop.history[-1, 0, 2:].tolist() == pytest.approx(expected)


def test_batch_norm_takes_a_batch_of_one_node_without_neighbours():
    settings = config("gat", norm="batch", **{**SAMPLED, "batch_size": 1})
    loop = trained_loop(settings, graph=small_graph(a=0.0, b=0.0))
    assert torch.isfinite(loop.history).all()


@pytest.mark.parametrize(
    "method", ["gcn", "gatv2", "temp_gated_head", "gated_temp", "transformer"]
)
def test_a_method_is_trained_and_recorded_as_in_full_training(method):
    sampled = config(method, **SAMPLED)
    (run,) = train_group(small_graph(), sampled, [1], CPU)
    full = config(method, epochs=3)
    (expected,) = train_group(small_graph(), full, [1], CPU)
    assert run.status == "done"
    assert run.scores.keys() == expected.scores.keys()
    assert len(run.selected.temperatures) == len(expected.selected.temperatures)
    assert len(run.selected.gate_means) == len(expected.selected.gate_means)
    assert run.metrics.keys() == expected.metrics.keys()
    assert [sum(row) for row in run.confusion] == [sum(r) for r in expected.confusion]
    assert run.config["training"] == "sampled"
    assert run.time_s > 0


@pytest.mark.parametrize("eval_batch_size", [None, 1000])
@pytest.mark.parametrize("method", ["temp_gated", "gated_first"])
def test_with_all_neighbours_in_one_batch_it_is_full_training(method, eval_batch_size):
    graph = small_graph()
    options = {"epochs": 4, "norm": "batch"} if method == "gcn" else {"epochs": 4}
    full = config(method, **options)
    sampled = full.with_changes(
        training="sampled",
        fanout=(-1, -1),
        batch_size=1000,
        eval_batch_size=eval_batch_size,
        gate_penalty=0.0,
    )
    # The penalty is over the nodes of a batch, which are not all nodes.
    (expected,) = train_group(graph, full.with_changes(gate_penalty=0.0), [0], CPU)
    (run,) = train_group(graph, sampled, [0], CPU)
    assert run.scores == expected.scores
    assert run.selected.temperatures == pytest.approx(
        expected.selected.temperatures, rel=1e-4
    )
    if eval_batch_size is None:
        gates = expected.selected.gate_means
        assert run.selected.gate_means == pytest.approx(gates, rel=1e-4)


def test_isolated_seeds_and_one_way_edges_are_trained_on():
    graph = small_graph()
    data = graph.data
    # All edges lead from the first half of the nodes to the second.
    source, target = data.edge_index
    data.edge_index = data.edge_index[:, (source < 30) & (target >= 30)]
    isolated = data.train_mask.nonzero()[0, 0]
    assert isolated not in data.edge_index[1]
    loop = loop_of(config("temp_gated", **SAMPLED), graph=graph)
    for batch in loop.batches.sampler:
        assert (batch.n_id[batch.edge_index[0]] < 30).all()
    loop.run()
    assert loop.history.isfinite().all()


def test_seeds_are_trained_one_after_the_other():
    settings = config(**SAMPLED)
    both = train_group(small_graph(), settings, [0, 1], CPU)
    alone = [train_group(small_graph(), settings, [s], CPU)[0] for s in (0, 1)]
    assert [run.scores for run in both] == [run.scores for run in alone]


def test_too_little_memory_in_a_thread_of_the_sampler_ends_in_one_line(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("tempergat.sampling.engine.sample", fail)
    remedy = "smaller --batch-size than 16 or --fanout than 3,2, --eval-batch-size 16"
    with pytest.raises(OutOfMemory, match=remedy):
        train_group(small_graph(), config(**SAMPLED), [0], CPU)


def test_a_run_that_diverges_is_recorded_as_failed():
    settings = config(learning_rate=1e30, **SAMPLED)
    (run,) = train_group(small_graph(), settings, [0], CPU)
    assert run.status == "failed"
    assert run.failed_epoch in (1, 2, 3)
    assert "loss was" in run.reason


class Sage(torch.nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.first = SAGEConv(-1, 8)
        self.second = SAGEConv(8, classes)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


@pytest.mark.parametrize("eval_batch_size", [None, 10])
def test_a_module_of_the_user_is_called_with_the_batch(eval_batch_size):
    settings = config(
        "Sage", source_hash="0" * 16, eval_batch_size=eval_batch_size, **SAMPLED
    )
    (run,) = train_group(small_graph(), settings, [0], CPU, build=Sage)
    assert run.status == "done"
    assert math.isfinite(run.selected_scores.test)


def test_edge_features_and_normalised_features_reach_the_batches():
    graph = small_graph()
    graph.data.edge_attr = torch.randn(graph.data.edge_index.size(1), 2)
    graph.data.x = graph.data.x.abs() + 0.1
    graph = type(graph)(**{**vars(graph), "edge_feature_names": ("a", "b")})
    settings = config("gatv2", normalize_features=True, **SAMPLED)
    loop = loop_of(settings, graph=graph)
    batch = loop.batches.sampler.batch(0, 0)
    inputs = loop.batches.batch_of(batch)
    sums = inputs.x.sum(1)
    torch.testing.assert_close(sums, torch.ones_like(sums))
    assert torch.equal(
        inputs.edge_inputs["edge_attr"], graph.data.edge_attr[batch.e_id]
    )
    loop.run()
    assert loop.history.isfinite().all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fanout": (5, 5, 5)}, r"fanout \[5, 5, 5\] has 3 hops, but a model of 2"),
        ({"fanout": None}, "needs fanout and batch_size"),
        ({"fanout": (5, 0)}, r"fanout is \[5, 0\]; give how many"),
        ({"batch_size": None}, "needs fanout and batch_size"),
    ],
)
def test_settings_that_no_batch_can_be_made_of_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        config(**SAMPLED).with_changes(**changes)


@pytest.mark.gpu
@pytest.mark.parametrize("eval_batch_size", [None, 10])
@pytest.mark.parametrize(
    "method", ["gcn", "temp_gated", "gated_temp_v2", "temp_gated_transformer"]
)
def test_losses_on_a_gpu_are_those_of_the_cpu(method, eval_batch_size):
    settings = config(
        method,
        feature_dropout=0.3,
        attention_dropout=0.2,
        eval_batch_size=eval_batch_size,
        **SAMPLED,
        **OPTIMIZER,
    )
    on_gpu, expected = (
        trained_loop(settings, device=device).history.cpu() for device in (CUDA, CPU)
    )
    torch.testing.assert_close(on_gpu[..., :2], expected[..., :2], rtol=1e-3, atol=1e-4)


@pytest.mark.gpu
def test_a_captured_full_batch_step_has_schedule_and_limit_of_the_gradient():
    settings = config("temp_gated", epochs=30, **OPTIMIZER)
    ends = {}
    for device in (CPU, CUDA):
        runs = train_group(small_graph(), settings, [0, 1], device)
        ends[device] = [run.last.temperatures for run in runs]
    for on_gpu, expected in zip(ends[CUDA], ends[CPU], strict=True):
        assert on_gpu == pytest.approx(expected, rel=1e-3)
