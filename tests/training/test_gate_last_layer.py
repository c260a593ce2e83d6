"""A gated method may do without a gate on the layer that gives the class scores."""

import pytest
import torch

from tempergat.nn import build_model
from tempergat.training import config_hash, train_group
from tests.support.run_settings import config, small_graph

FULL = {"epochs": 3}
SAMPLED = FULL | {"training": "sampled", "fanout": (3, 3), "batch_size": 20}


def test_only_the_last_layer_loses_its_gate() -> None:
    model = build_model("temp_gated", 5, 8, 3, heads=2, gate_last_layer=False)
    assert [conv.gate for conv in model.convs] == ["post", None]
    assert all(conv.temperature is not None for conv in model.convs)


@pytest.mark.parametrize("settings", [FULL, SAMPLED, SAMPLED | {"eval_batch_size": 30}])
def test_training_records_the_gates_that_there_are(settings: dict[str, object]) -> None:
    device = torch.device("cpu")
    graph = small_graph()
    without = config("gated", gate_last_layer=False, **settings)
    (run,) = train_group(graph, without, [0], device)
    assert run.status == "done"
    assert len(run.last.gate_means) == 1
    (whole,) = train_group(graph, config("gated", **settings), [0], device)
    assert len(whole.last.gate_means) == 2


def test_settings_with_the_gate_keep_their_hash() -> None:
    settings = config("gated").model_dump(mode="json")
    assert "gate_last_layer" not in settings
    changed = config("gated", gate_last_layer=False).model_dump(mode="json")
    assert config_hash(settings) != config_hash(changed)
