"""A trained model: its preprocessing, its predictions, its checkpoint."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from tempergat.base import UserError
from tempergat.data import as_dataset, normalize_rows
from tempergat.training import TrainedModel, load_model, load_recipe, predict, train
from tempergat.training.single.checkpoint import read
from tests.support.run_settings import small_graph
from tests.support.tiny_graph import write_recipe

FIXTURES = Path(__file__).parents[2] / "fixtures" / "small_graph"


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    return write_recipe(tmp_path / "recipe.yaml", normalize_features=True)


@pytest.fixture
def model(recipe: Path) -> TrainedModel:
    return train(small_graph(), recipe=recipe, device="cpu", progress=False)


class Own(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = GATConv(-1, out_channels, dropout=0.3)
        self.norm = nn.BatchNorm1d(out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.norm(self.conv(x, edge_index))
        return out


def test_scores_are_those_of_the_predictions(model: TrainedModel) -> None:
    data = small_graph().data
    right = model.predict(data) == data.y
    test = right[data.test_mask].double().mean().item()
    assert test == pytest.approx(model.run.scores["best_val_accuracy"].test)
    assert len(model.run.selected.temperatures) == 2
    assert model.run.method == "temp_gated"


def test_forward_prepares_its_input_as_in_training(model: TrainedModel) -> None:
    data = small_graph().data
    assert not model.training
    logits = model(data.x, data.edge_index)
    plain = model.module(normalize_rows(data.x), data.edge_index)
    torch.testing.assert_close(logits, plain)
    assert torch.equal(logits.argmax(1), model.predict(data))
    assert model(data.x.double(), data.edge_index).dtype == torch.float32


def test_probabilities_sum_to_one(model: TrainedModel) -> None:
    graph = small_graph()
    shares = model.predict_proba(graph)
    assert shares.shape == (60, 3)
    torch.testing.assert_close(shares.sum(1), torch.ones(60))
    assert torch.equal(shares.argmax(1), model.predict(graph))


def test_a_graph_without_labels_is_classified(model: TrainedModel) -> None:
    data = small_graph().data
    expected = model.predict(data)
    bare = type(data)(x=data.x, edge_index=data.edge_index)
    assert torch.equal(model.predict(bare), expected)


def test_a_saved_model_comes_back_whole(model: TrainedModel, tmp_path: Path) -> None:
    graph = small_graph()
    file = model.save(tmp_path / "model.safetensors")
    loaded = load_model(file, device="cpu")
    for name, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name
    assert torch.equal(loaded.predict_proba(graph), model.predict_proba(graph))
    assert loaded.run.scores == model.run.scores
    assert loaded.run.selected == model.run.selected
    assert repr(loaded) == repr(model)
    again = loaded.save(tmp_path)
    assert again.parent == tmp_path
    assert torch.equal(predict(tmp_path, graph, "cpu"), model.predict(graph))


def test_a_link_in_a_folder_is_replaced_and_one_that_was_given_is_followed(
    model: TrainedModel, tmp_path: Path
) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "folder"
    victim.write_text("precious")
    folder.mkdir()
    (folder / "checkpoint.safetensors").symlink_to(victim)
    file = model.save(folder)
    assert victim.read_text() == "precious"
    assert load_model(folder, device="cpu").num_classes == model.num_classes
    (tmp_path / "link").symlink_to(victim)
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert victim.read_bytes() == file.read_bytes()


def test_the_repr_is_one_plain_line(model: TrainedModel) -> None:
    epoch = model.run.selected_epoch
    text = repr(model)
    assert text.startswith("TrainedModel(temp_gated, 12 features, 3 classes, test")
    assert text.endswith(f" % at epoch {epoch})")


def test_with_out_a_stopped_run_continues(recipe: Path, tmp_path: Path) -> None:
    epochs: list[int] = []
    for _ in range(2):
        model = train(
            small_graph(),
            "gat",
            recipe=recipe,
            device="cpu",
            out=tmp_path / "run",
            progress=epochs.append,
        )
    assert epochs == list(range(1, 9))
    loaded = load_model(tmp_path / "run", device="cpu")
    assert torch.equal(loaded.predict(small_graph()), model.predict(small_graph()))


def test_progress_is_printed_to_standard_error(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train(small_graph(), "gcn", recipe=recipe, device="cpu")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == "epoch 8 of 8"


def test_a_users_own_module_trains_saves_and_loads(
    recipe: Path, tmp_path: Path
) -> None:
    graph = small_graph()
    options = {"recipe": recipe, "device": "cpu", "progress": False}
    model, again = (train(graph, Own, seed=1, **options) for _ in range(2))
    assert model.run.method == "Own"
    assert model.run.scores == again.run.scores
    assert torch.equal(model.predict_proba(graph), again.predict_proba(graph))
    data = graph.data
    right = (model.predict(data) == data.y)[data.val_mask].double().mean().item()
    assert right == pytest.approx(model.run.scores["best_val_accuracy"].val)
    file = model.save(tmp_path / "own.safetensors")
    with pytest.raises(
        UserError, match=r"the callable that builds it: load_model\(path, build="
    ):
        load_model(file)
    loaded = load_model(file, device="cpu", build=Own)
    assert torch.equal(loaded.predict_proba(graph), model.predict_proba(graph))


def test_a_failed_run_predicts_nothing(tmp_path: Path) -> None:
    wild = load_recipe(write_recipe(tmp_path / "wild.yaml", learning_rate=1e30))
    model = train(small_graph(), "gat", recipe=wild, device="cpu", progress=False)
    assert model.run.status == "failed"
    assert "failed at epoch" in repr(model)
    with pytest.raises(UserError, match="the run failed at epoch"):
        model.predict(small_graph())


def test_a_stored_checkpoint_predicts_as_it_did() -> None:
    model = load_model(FIXTURES / "checkpoint.safetensors", device="cpu")
    graph = as_dataset(FIXTURES / "graph")
    assert (model.run.method, model.run.seed) == ("temp_gated", 0)
    right = model.predict(graph) == graph.data.y
    for split in ("train", "val", "test"):
        share = right[graph.data[f"{split}_mask"]].double().mean().item()
        scores = model.run.scores[model.config.selection]
        assert share == pytest.approx(getattr(scores, split))


def test_a_stored_run_is_trained_again_to_the_same_numbers() -> None:
    model = train(
        FIXTURES / "graph",
        "temp_gated",
        recipe=FIXTURES / "recipe.yaml",
        device="cpu",
        progress=False,
        scale=False,
    )
    old = load_model(FIXTURES / "checkpoint.safetensors", device="cpu")
    assert model.run.scores == old.run.scores
    assert model.run.fingerprint == old.run.fingerprint
    tensors = read(FIXTURES / "checkpoint.safetensors").tensors
    for name, value in model.module.state_dict().items():
        torch.testing.assert_close(value, tensors[f"best.{name}"][0], msg=name)


def test_typed_graphs_are_refused_and_the_remedy_works(model: TrainedModel) -> None:
    from torch_geometric.data import HeteroData

    typed = HeteroData()
    typed["paper"].x = torch.ones(4, 12)
    typed["paper"].y = torch.tensor([0, 1, 0, 1])
    typed["paper", "cites", "paper"].edge_index = torch.tensor([[0, 1], [1, 2]])
    with pytest.raises(UserError, match=r"give data\.to_homogeneous\(\)") as refused:
        model.predict(typed)
    assert "\n" not in str(refused.value)
    with pytest.warns(UserWarning, match="edge_type is not used"):
        assert model.predict(typed.to_homogeneous()).shape == (4,)


def test_a_notebook_shows_what_the_model_has_learned(model: TrainedModel) -> None:
    shown = model._repr_html_()
    assert "<strong>temp_gated</strong>" in shown
    temperatures = ", ".join(f"{t:.3f}" for t in model.run.selected.temperatures)
    assert f">{temperatures}</td>" in shown
    assert "test score" in shown


@pytest.mark.parametrize("training", ["full", "sampled"])
def test_a_model_does_not_depend_on_the_default_dtype(
    training: str, tmp_path: Path
) -> None:
    data = small_graph().data
    settings = {"epochs": 1, "hidden": 8, "training": training}
    arguments: dict[str, Any] = {"settings": settings, "progress": False}
    expected = train(data, "gat", **arguments).predict_proba(data)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        train(data, "gat", out=tmp_path, **arguments)
        probabilities = load_model(tmp_path).predict_proba(data)
    finally:
        torch.set_default_dtype(before)
    assert torch.equal(probabilities, expected)
