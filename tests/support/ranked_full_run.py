"""Trains on all nodes with the default recipe: by two processes, and by each alone.

Batch norm takes the bias before it out again, so the gradient of that bias is rounding,
which Adam makes as large as any other. Here it is zero.
"""

import torch

from tempergat.training import load_recipe
from tempergat.training.loop import EpochLoop, Training
from tempergat.training.ranks.processes import joined_ranks
from tempergat.training.ranks.starting import start_ranked_training
from tempergat.training.seeds import SeedGroup
from tempergat.training.task import task_of
from tests.support.run_settings import small_graph


def trained(training: EpochLoop) -> EpochLoop:
    training.group.parameters["convs.0.bias"].register_hook(torch.zeros_like)
    training.run()
    return training


if __name__ == "__main__":
    torch.set_num_threads(1)
    device, graph = torch.device("cpu"), small_graph(n=71)
    settings = (
        load_recipe("default")
        .config_for("temp_gated")
        .with_changes(feature_dropout=0.0, attention_dropout=0.0, epochs=20)
    )
    with joined_ranks(settings, device) as ranks:
        assert ranks is not None
        together = trained(start_ranked_training(graph, settings, 0, ranks))
        group = SeedGroup(task_of(graph, settings, device), settings, [0])
        alone = trained(Training(group, settings))
    torch.testing.assert_close(together.history, alone.history, rtol=1e-4, atol=1e-6)
    for name, value in alone.current.items():
        found = together.current[name]
        torch.testing.assert_close(found, value, rtol=1e-3, atol=1e-5, msg=name)
    print("the same")
