"""Full-batch training on typed graphs: runs, checkpoints and predictions."""

from pathlib import Path

import pytest
import torch
from torch_geometric.data import HeteroData

import tempergat
from tempergat.base import UserError
from tempergat.data import as_dataset
from tempergat.training import RunConfig, load_recipe, train_group
from tests.support.typed_graph import typed_graph

CPU = torch.device("cpu")


def config(method: str = "temp_gated", **changes: object) -> RunConfig:
    settings = {"epochs": 15, "hidden_channels": 8, **changes}
    if method != "gcn":
        settings["heads"] = 2
    return load_recipe("default").config_for(method).with_changes(**settings)


def trained(**options: object) -> tempergat.TrainedModel:
    settings = {"epochs": 15, "hidden": 8, "heads": 2}
    options = {"settings": settings, "device": "cpu", "progress": False, **options}
    return tempergat.train(typed_graph(), "temp_gated", **options)


@pytest.mark.parametrize("method", ["gcn", "gat", "temp_gated", "gated_temp_v2"])
def test_seeds_trained_together_equal_seeds_trained_alone(method: str) -> None:
    dataset = as_dataset(typed_graph())
    together = train_group(dataset, config(method), [0, 1], CPU)
    for run in together:
        (alone,) = train_group(dataset, config(method), [run.seed], CPU)
        assert run.status == "done"
        for rule, scores in run.scores.items():
            assert scores.val == pytest.approx(alone.scores[rule].val, abs=0.1)
        assert run.selected.temperatures == pytest.approx(
            alone.selected.temperatures, abs=1e-3
        )


def test_what_can_be_learned_is_learned() -> None:
    dataset = as_dataset(typed_graph())
    (run,) = train_group(dataset, config("gat", epochs=60), [0], CPU)
    assert run.scores["best_val_accuracy"].test > 0.8


def test_a_stopped_run_continues_to_the_same_weights(tmp_path: Path) -> None:
    whole = trained()

    def stop(epoch: int) -> None:
        if epoch == 9:
            raise KeyboardInterrupt

    # The checkpoint is written every 50 epochs, and at the start.
    with pytest.raises(KeyboardInterrupt):
        trained(out=tmp_path, progress=stop)
    again = trained(out=tmp_path)
    for name, value in whole.module.state_dict().items():
        assert torch.equal(value, again.module.state_dict()[name]), name


def test_a_saved_model_predicts_as_before_and_needs_no_labels(tmp_path: Path) -> None:
    model, data = trained(), typed_graph()
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
def test_a_graph_that_does_not_fit_is_refused(change: object, words: str) -> None:
    model, data = trained(), typed_graph()
    change(data)  # type: ignore[operator]
    with pytest.raises(UserError, match=words) as refused:
        model.predict(data)
    assert "\n" not in str(refused.value)


def test_a_graph_of_one_type_is_refused() -> None:
    with pytest.raises(UserError, match="has one type of nodes, but the model"):
        trained().predict(tempergat.load("csbm"))


def test_tensors_that_do_not_fit_the_model_are_named() -> None:
    model, data = trained(), typed_graph()
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
