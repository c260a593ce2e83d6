"""Edge features and weights in training and in predictions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv

import tempergat
from tempergat.base import UserError
from tempergat.comparison import record
from tempergat.data import Dataset, ReadOptions
from tempergat.nn import build_model
from tempergat.training import config_hash, settings_on, train_group
from tests.support.layers import PYG_LAYERS
from tests.support.run_settings import CPU, config, small_graph, train_run, trained_loop

SAMPLED = {"training": "sampled", "fanout": "5,5", "batch_size": 8}


def graph_with_edges(n: int = 40) -> Dataset:
    """A graph whose edges have two features and a weight."""
    graph = small_graph(n=n)
    data = graph.data.clone()
    generator = torch.Generator().manual_seed(1)
    edges = data.edge_index.size(1)
    data.edge_attr = torch.randn(edges, 2, generator=generator)
    data.edge_weight = torch.rand(edges, generator=generator) * 3
    return replace(
        graph,
        data=data,
        fingerprint="with edges",
        edge_feature_names=("a", "b"),
        edge_weight_name="w",
    )


@pytest.mark.parametrize("method", ["gat", "gatv2", "transformer"])
def test_attention_methods_train_with_edge_features_as_pygs_layers(method: str) -> None:
    graph = graph_with_edges()
    settings = config(method, epochs=3)
    loop = trained_loop(settings, [0, 1, 2], graph)
    logits = loop.batches.logits(loop.runs).detach()
    layer = PYG_LAYERS[method]
    data = graph.data
    for run in range(3):
        state = {name: value[run].detach() for name, value in loop.runs.state.items()}
        first = layer(12, 4, 2, edge_dim=2)
        last = layer(8, 3, 1, concat=False, edge_dim=2)
        for number, conv in enumerate((first, last)):
            prefix = f"convs.{number}."
            conv.load_state_dict(
                {
                    k.removeprefix(prefix): v
                    for k, v in state.items()
                    if k.startswith(prefix)
                }
            )
        h = nn.functional.elu(first(data.x, data.edge_index, data.edge_attr))
        expected = last(h, data.edge_index, data.edge_attr).detach()
        torch.testing.assert_close(logits[run], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("method", "weighted", "changed"),
    [
        ("gat", False, ["edge_attr"]),
        ("gat", True, ["edge_attr", "edge_weight"]),
        ("temp_gated_v2", True, ["edge_attr", "edge_weight"]),
        ("gcn", False, ["edge_weight"]),
    ],
)
def test_what_a_method_uses_changes_its_training_and_nothing_else_does(
    method: str, weighted: bool, changed: list[str]
) -> None:
    graph = graph_with_edges()
    settings = config(method, epochs=4, edge_weight=weighted)
    losses = {}
    for name in ("nothing", "edge_attr", "edge_weight"):
        data = graph.data.clone()
        if name != "nothing":
            data[name] = data[name] * 2 + 1
        loop = trained_loop(settings, [0, 1], replace(graph, data=data))
        losses[name] = loop.history[:, :, 0]
    for name in ("edge_attr", "edge_weight"):
        same = bool((losses[name] == losses["nothing"]).all())
        assert same == (name not in changed)


def test_weights_are_a_setting_of_attention_and_other_runs_keep_their_identity() -> (
    None
):
    for method in ("gat", "temp_gated_v2"):
        plain = config(method)
        assert "edge_weight" not in plain.model_dump()
        assert settings_on(plain, small_graph()) is plain
        weighted = settings_on(plain, graph_with_edges())
        assert weighted.edge_weight
        assert config_hash(weighted) != config_hash(plain)
    for method in ("gcn", "mlp"):
        settings = config(method)
        weighted = settings_on(settings, graph_with_edges())
        assert config_hash(weighted) == config_hash(settings)


def test_attention_is_multiplied_by_the_weights_of_edges() -> None:
    graph = graph_with_edges()
    settings = config("temp_gated", epochs=3, edge_weight=True)
    loop = trained_loop(settings, [0, 1], graph)
    logits = loop.batches.logits(loop.runs).detach()
    data = graph.data
    model = build_model(
        in_channels=12, out_channels=3, edge_dim=2, **settings.model_arguments()
    ).eval()
    for run in range(2):
        model.load_state_dict({k: v[run] for k, v in loop.runs.state.items()})
        edges = {"edge_attr": data.edge_attr, "edge_weight": data.edge_weight}
        expected = model(data.x, data.edge_index, **edges).detach()
        torch.testing.assert_close(logits[run], expected, atol=1e-5, rtol=1e-4)


def test_all_seeds_at_once_follow_one_seed_alone_with_edge_features() -> None:
    graph = graph_with_edges()
    settings = config("temp_gated", epochs=6, feature_dropout=0.3, edge_weight=True)
    together = train_group(graph, settings, [0, 1], CPU)
    alone = train_run(settings, None, graph=graph, seed=1)
    for rule, scores in alone.scores.items():
        assert together[1].scores[rule].epoch == scores.epoch
        assert together[1].scores[rule].test == pytest.approx(scores.test)


def test_negative_weights_are_refused_in_one_line() -> None:
    graph = graph_with_edges()
    graph.data.edge_weight[3] = -0.5
    with pytest.raises(UserError, match=r"weight w of .* goes down to -0.5; give"):
        train_group(graph, config("gcn", epochs=1), [0], CPU)


class TakesFeatures(nn.Module):
    """A user's module that takes edge features, but no weights."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = GATConv(in_channels, out_channels, edge_dim=2)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        out: Tensor = self.conv(x, edge_index, edge_attr)
        return out


class TakesNothing(nn.Module):
    """A user's module that knows of no edge features."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.lin(x)
        return out


def test_a_users_module_gets_what_its_forward_takes_and_others_are_named(
    tmp_path: Path,
) -> None:
    out = tempergat.compare(
        graph_with_edges(),
        ["gcn", "gat", "mlp", TakesFeatures, TakesNothing],
        runs=2,
        device="cpu",
        progress=False,
        settings={"epochs": 2},
    )
    notes = " ".join(out.notes)
    assert "edge features (a, b) are not used by gcn, mlp, TakesNothing" in notes
    weight = "edge weight (w) is not used by mlp, TakesFeatures, TakesNothing"
    assert weight in notes


@pytest.mark.parametrize(
    ("method", "training"),
    [
        ("gcn", {}),
        ("gat", {}),
        ("gated_temp_v2", {}),
        ("transformer", {}),
        ("temp_gated", SAMPLED),
        (TakesFeatures, {}),
    ],
)
def test_predictions_use_the_edges_as_training_did(
    method: str, training: dict[str, Any], tmp_path: Path
) -> None:
    graph = graph_with_edges()
    settings = {"epochs": 5, **training}
    model = tempergat.train(
        graph, method, device="cpu", progress=False, settings=settings
    )
    assert model.run.selected_scores is not None
    predicted = model.predict(graph)
    test = graph.data.test_mask
    accuracy = float((predicted == graph.data.y)[test].double().mean())
    assert accuracy == pytest.approx(model.run.selected_scores.test)
    if method in ("gat", "gated_temp_v2", "temp_gated"):
        coefficients = tempergat.attention(model, graph)[0]
        assert isinstance(coefficients.weights, Tensor)
        without = replace(graph, data=graph.data.clone())
        without.data.edge_weight.fill_(1.0)
        plain = tempergat.attention(model, without)[0].weights
        assert isinstance(plain, Tensor)
        factor = graph.data.edge_weight.unsqueeze(-1)
        torch.testing.assert_close(coefficients.weights, plain * factor)
    build = None if isinstance(method, str) else method
    again = tempergat.load_model(model.save(tmp_path), build=build, device="cpu")
    assert torch.equal(again.predict_proba(graph), model.predict_proba(graph))
    assert again.run.confusion == model.run.confusion
    assert again.run.confusion is not None


@pytest.mark.filterwarnings("ignore:.*the edge column w is not used:UserWarning")
def test_compare_gives_a_column_of_weights_to_all_methods_that_can_use_it(
    tmp_path: Path,
) -> None:
    nodes = "".join(f"{n},{n % 7},{n % 2}\n" for n in range(40))
    edges = "".join(f"{n},{(n * 3 + 1) % 40},{n % 5 / 2}\n" for n in range(40))
    (tmp_path / "nodes.csv").write_text("id,size,label\n" + nodes)
    (tmp_path / "edges.csv").write_text("source,target,w\n" + edges)
    options: dict[str, Any] = {
        "recipe": "default",
        "runs": 2,
        "device": "cpu",
        "progress": False,
        "settings": {"epochs": 2},
        "split": "60/20/20",
        "out": tmp_path / "out",
    }
    found, notes = {}, {}
    for weight in (None, "w"):
        reading = ReadOptions(directed=False, edge_weight=weight)
        result = tempergat.compare(
            tmp_path, ["gcn", "gat", "mlp"], read_options=reading, **options
        )
        notes[weight] = " ".join(result.notes)
        found[weight] = {run.method: run.config for run in result.runs}
    assert "The edge weight (w) is not used by mlp." in notes["w"]
    assert found["w"]["gat"]["edge_weight"]
    assert "edge_weight" not in found["w"]["gcn"]
    assert found[None]["gat"] | {"edge_weight": True} == found["w"]["gat"]


def test_the_explorer_does_not_show_weighted_attention() -> None:
    model = tempergat.train(
        graph_with_edges(), "gat", device="cpu", progress=False, settings={"epochs": 2}
    )
    with pytest.raises(UserError, match="trained with edge weights"):
        record(model, graph_with_edges())


@pytest.mark.gpu
@pytest.mark.parametrize(
    "method", ["gcn", "gat", "temp_gated_v2", "temp_gated_transformer"]
)
def test_steps_with_edges_are_recorded_on_a_gpu_as_on_the_cpu(method: str) -> None:
    graph, settings = graph_with_edges(), config(method, epochs=30)
    histories = []
    for device in (CPU, torch.device("cuda")):
        loop = trained_loop(settings, [0, 1], graph, device)
        histories.append(loop.history[:, :, 0].cpu())
    torch.testing.assert_close(histories[1], histories[0], rtol=1e-2, atol=1e-3)
