"""Trains on all nodes with the default recipe: by two processes, and by each alone.

Batch norm takes the bias before it out again, so the gradient of that bias is rounding,
which Adam makes as large as any other. Here it is zero.
"""

import torch

from tempergat.training import load_recipe
from tempergat.training.loop import Loop
from tempergat.training.ranks import joined_ranks
from tests.support.run_settings import loop_of, small_graph


def trained(loop: Loop) -> Loop:
    loop.runs.parameters["convs.0.bias"].register_hook(torch.zeros_like)
    loop.run()
    return loop


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
        together = trained(loop_of(settings, graph=graph, ranks=ranks))
        alone = trained(loop_of(settings, graph=graph))
    torch.testing.assert_close(together.history, alone.history, rtol=1e-4, atol=1e-6)
    for name, value in alone.runs.state.items():
        found = together.runs.state[name]
        torch.testing.assert_close(found, value, rtol=1e-3, atol=1e-5, msg=name)
    print("the same")
