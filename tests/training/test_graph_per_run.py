"""Runs with a graph each, trained by one loop."""

import pytest
import torch

from tempergat.training.graphs.batches import GraphPerRun, WholeGraph
from tempergat.training.loop import Loop
from tempergat.training.results import finished_runs
from tempergat.training.runs.models import single_model
from tempergat.training.runs.modules import ModuleRuns
from tempergat.training.runs.stacked import StackedRuns
from tempergat.training.tasks import node_classes
from tests.support.run_settings import CPU, config, small_graph, trained_loop

SEEDS = [4, 1, 9]


@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("method", ["gcn", "temp_gated", "gated_temp_v2"])
def test_three_runs_on_three_graphs_equal_three_trainings(
    method: str, stacked: bool
) -> None:
    settings = config(
        method, epochs=8, feature_dropout=0.3, attention_dropout=0.2, clip_norm=0.5
    )
    graphs = [small_graph(n=n, seed=n) for n in (40, 55, 70)]
    tasks = [node_classes(graph, settings, CPU) for graph in graphs]
    batches = GraphPerRun(
        [WholeGraph(g, settings, task) for g, task in zip(graphs, tasks, strict=True)]
    )
    models = [single_model(settings, 12, 3, seed) for seed in SEEDS]
    runs = (
        StackedRuns(tasks[0], settings, SEEDS, models[0])
        if stacked
        else ModuleRuns(tasks[0], settings, SEEDS, models, prefixed=True)
    )
    together = Loop(runs, batches, settings)
    together.run()
    records = finished_runs(together, graphs, start=0.0)
    for run, (seed, graph) in enumerate(zip(SEEDS, graphs, strict=True)):
        alone = trained_loop(settings, [seed], graph)
        (expected,) = finished_runs(alone, graph, start=0.0)
        for name in ("dataset", "fingerprint", "seed", "scores", "training_nodes"):
            assert getattr(records[run], name) == getattr(expected, name), name
        assert records[run].confusion == expected.confusion
        torch.testing.assert_close(
            torch.tensor(records[run].selected.gate_means),
            torch.tensor(expected.selected.gate_means),
            rtol=1e-3,
            atol=1e-4,
        )
        if stacked:
            assert str(records[run].gate_counts) == str(expected.gate_counts)
        torch.testing.assert_close(
            together.history[:, run], alone.history[:, 0], rtol=1e-4, atol=1e-5
        )
        for name, value in alone.current.items():
            torch.testing.assert_close(
                together.current[name][run], value[0], rtol=1e-3, atol=1e-4, msg=name
            )
