"""Runs with different rates, decays and splits that are trained at once."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from tempergat.data import Dataset
from tempergat.training import Run, train_group
from tempergat.training.mixed import MixedRun, train_mixed
from tempergat.training.mixed.optimizer import AdamOfRuns
from tempergat.training.mixed.training import start_mixed
from tempergat.training.optimizer import make_optimizer
from tempergat.training.starting import start_training
from tests.support.run_settings import config, small_graph

CPU = torch.device("cpu")
RATES = ((0.005, 1e-5), (0.05, 1e-2), (0.02, 0.0))


def with_split(graph: Dataset, sizes: tuple[int, int, int], seed: int) -> Dataset:
    """The same graph with parts of these sizes."""
    data = graph.data.clone()
    data.x, data.edge_index = graph.data.x, graph.data.edge_index
    order = torch.randperm(
        data.num_nodes, generator=torch.Generator().manual_seed(seed)
    )
    for name, nodes in zip(("train", "val", "test"), order.split(sizes), strict=False):
        mask = torch.zeros(data.num_nodes, dtype=torch.bool)
        mask[nodes] = True
        data[f"{name}_mask"] = mask
    return replace(graph, data=data)


def mixed_runs(method: str, splits: bool, **changes: Any) -> list[MixedRun]:
    graph = small_graph(80)
    graphs = [graph] * 3
    if splits:
        sizes = [(30, 30, 20), (24, 28, 28), (36, 20, 24)]
        graphs = [with_split(graph, s, seed) for seed, s in enumerate(sizes)]
    settings = config(
        method,
        **{"epochs": 12, "feature_dropout": 0.3, "attention_dropout": 0.3, **changes},
    )
    return [
        MixedRun(
            dataset, settings.with_changes(learning_rate=rate, weight_decay=decay), seed
        )
        for dataset, (rate, decay), seed in zip(graphs, RATES, (4, 4, 9), strict=True)
    ]


def alone(run: MixedRun) -> Run:
    (found,) = train_group(run.dataset, run.config, [run.seed], CPU)
    return found


@pytest.mark.parametrize(
    ("method", "splits", "changes"),
    [
        ("gat", True, {}),
        ("gatv2", False, {"residual": True}),
        ("gated_first", True, {"gate_penalty": 0.0}),
        ("temp_gated_v2", True, {"decay_gate": False, "clip_norm": 0.5}),
    ],
)
def test_each_run_is_the_run_that_is_trained_alone(
    method: str, splits: bool, changes: dict[str, Any]
) -> None:
    runs = mixed_runs(method, splits, **changes)
    training = start_mixed(runs, CPU)
    training.run()
    for slot, run in enumerate(runs):
        single = start_training(run.dataset, run.config, [run.seed], CPU)
        single.run()
        torch.testing.assert_close(
            training.history[:, slot], single.history[:, 0], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("method", ["gated", "temp_only_v2"])
def test_records_name_each_run_s_own_settings_split_and_scores(method: str) -> None:
    runs = mixed_runs(method, splits=True)
    for found, run in zip(train_mixed(runs, CPU), runs, strict=True):
        expected = alone(run)
        assert found.config == expected.config
        assert found.fingerprint == expected.fingerprint
        assert found.seed == expected.seed
        assert found.scores == expected.scores
        assert found.confusion == expected.confusion
        assert found.metrics.keys() == expected.metrics.keys()
        for name, by_rule in found.metrics.items():
            assert by_rule["best_val_accuracy"].test == pytest.approx(
                expected.metrics[name]["best_val_accuracy"].test
            )
        for name in ("temperatures", "gate_means"):
            value = getattr(found.selected, name)
            assert value == pytest.approx(getattr(expected.selected, name), rel=1e-4)


def test_a_run_does_not_depend_on_those_beside_it() -> None:
    runs = mixed_runs("gated_v2", splits=True)
    runs[1] = replace(runs[1], config=runs[1].config.with_changes(learning_rate=1e30))
    good, failed, _ = train_mixed(runs, CPU)
    assert failed.status == "failed"
    assert good.scores == alone(runs[0]).scores


def test_the_step_is_that_of_torch_adam() -> None:
    settings = config("gat").with_changes(weight_decay=0.1)
    faster = settings.with_changes(learning_rate=0.3, weight_decay=1e-3)
    start = {"convs.0.lin.weight": torch.randn(2, 3, 4), "convs.0.theta": torch.ones(2)}
    stacked = {name: v.clone().requires_grad_() for name, v in start.items()}
    mixed = AdamOfRuns(stacked, [settings, faster])
    single = [
        {name: v[run].clone().requires_grad_() for name, v in start.items()}
        for run in range(2)
    ]
    adams = [
        make_optimizer(p, c) for p, c in zip(single, (settings, faster), strict=True)
    ]
    for _ in range(20):
        for name, parameter in stacked.items():
            parameter.grad = torch.randn_like(parameter)
            for run in range(2):
                single[run][name].grad = parameter.grad[run].clone()
        mixed.step()
        for adam in adams:
            adam.step()
    for name, parameter in stacked.items():
        expected = torch.stack([of_run[name] for of_run in single])
        torch.testing.assert_close(parameter, expected, rtol=1e-5, atol=1e-6)


def test_runs_that_cannot_be_trained_at_once_are_refused() -> None:
    runs = mixed_runs("gat", splits=True)
    other = replace(runs[0], config=runs[0].config.with_changes(feature_dropout=0.5))
    with pytest.raises(ValueError, match="differ in learning_rate and weight_decay"):
        start_mixed([runs[0], other], CPU)
    with pytest.raises(ValueError, match="not one graph with two splits"):
        start_mixed([runs[0], replace(runs[0], dataset=small_graph(81))], CPU)
    by_f1 = [
        replace(run, config=run.config.with_changes(metric="macro_f1")) for run in runs
    ]
    with pytest.raises(ValueError, match="the metric accuracy, not macro_f1"):
        start_mixed(by_f1, CPU)
    adamw = replace(runs[0], config=runs[0].config.with_changes(optimizer="adamw"))
    with pytest.raises(ValueError, match="optimizer adamw"):
        start_mixed([adamw], CPU)


@pytest.mark.gpu
def test_on_a_gpu_the_runs_are_captured_and_follow_those_on_a_cpu() -> None:
    runs = mixed_runs("temp_gated_v2", splits=True, epochs=30)
    found = []
    for device in (CPU, torch.device("cuda")):
        training = start_mixed(runs, device)
        training.run()
        found.append(training.history[:10, :, :2].cpu())
    torch.testing.assert_close(found[1], found[0], rtol=1e-2, atol=1e-3)
