"""Groups in which every seed has different features, in several variants."""

from dataclasses import replace

import pytest
import torch

from tempergat.training.loop import Training
from tempergat.training.run import finished_runs, train_group
from tempergat.training.seeds import SeedGroup
from tempergat.training.task import task_of
from tests.support.run_settings import config, small_graph

CPU = torch.device("cpu")


@pytest.mark.parametrize("method", ["gcn", "gat", "gated_temp_v2"])
def test_every_variant_is_the_run_on_a_graph_with_those_features(method: str) -> None:
    graph = small_graph()
    settings = config(
        method, epochs=8, feature_dropout=0.3, attention_dropout=0.3, weight_decay=0.0
    )
    features = torch.randn(2, 3, *graph.data.x.shape)
    group = SeedGroup(task_of(graph, settings, CPU), settings, [4, 7], features)
    training = Training(group, settings)
    training.run()
    found = finished_runs(training, graph, start=0.0)
    assert [result.seed for result in found] == [4, 4, 4, 7, 7, 7]
    for run, result in enumerate(found):
        data = graph.data.clone()
        data.x = features.flatten(0, 1)[run]
        alone = SeedGroup(
            task_of(replace(graph, data=data), settings, CPU), settings, [result.seed]
        )
        single = Training(alone, settings)
        single.run()
        torch.testing.assert_close(
            training.history[:, run, :2], single.history[:, 0, :2], rtol=1e-4, atol=1e-5
        )
        (expected,) = finished_runs(single, graph, start=0.0)
        for name in ("temperatures", "gate_means"):
            values = getattr(result.last, name)
            wanted = getattr(expected.last, name)
            assert values == pytest.approx(wanted, rel=1e-4)


def test_one_variant_with_the_graph_s_features_changes_nothing() -> None:
    graph, settings = small_graph(), config("temp_gated", epochs=6)
    plain = train_group(graph, settings, [0, 1], CPU)
    features = graph.data.x.expand(2, 1, -1, -1)
    group = SeedGroup(task_of(graph, settings, CPU), settings, [0, 1], features)
    training = Training(group, settings)
    training.run()
    for result, expected in zip(
        finished_runs(training, graph, 0.0), plain, strict=True
    ):
        assert result.scores == expected.scores


def test_features_of_another_shape_are_refused() -> None:
    graph, settings = small_graph(), config("gat")
    task = task_of(graph, settings, CPU)
    with pytest.raises(ValueError, match=r"\[2, 1, 60, 12\]"):
        SeedGroup(task, settings, [0, 1], torch.zeros(2, 1, 60, 11))


@pytest.mark.gpu
@pytest.mark.parametrize("method", ["gcn", "temp_gated", "gated_temp_v2"])
def test_variants_train_alike_on_a_gpu_where_steps_are_recorded(method: str) -> None:
    graph = small_graph()
    settings = config(method, epochs=30, feature_dropout=0.3, attention_dropout=0.3)
    features = torch.randn(2, 3, *graph.data.x.shape)
    histories = []
    for device in (CPU, torch.device("cuda")):
        task = task_of(graph, settings, device)
        group = SeedGroup(task, settings, [4, 7], features.to(device))
        training = Training(group, settings)
        training.run()
        histories.append(training.history[:, :, 0].cpu())
    torch.testing.assert_close(histories[1], histories[0], rtol=1e-2, atol=1e-3)
