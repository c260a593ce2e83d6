"""Columns of tables are scaled in training and wherever a trained model is used."""

import json
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import tempergat
from tempergat import ReadOptions, TrainedModel, UserError
from tempergat.comparison.explorer import model_record
from tempergat.data import Dataset, as_dataset
from tempergat.sampling import NeighborSampler
from tempergat.training import config_hash, settings_on, train_group
from tempergat.training.graphs.inputs import edge_inputs_of, features_of
from tempergat.training.graphs.sampled import parts_of, sampled_graph
from tempergat.training.single import checkpoint
from tests.support.company_graph import COLUMNS, write_companies
from tests.support.run_settings import config, small_graph

CPU = torch.device("cpu")
SETTINGS = {"epochs": 30, "hidden": 16, "heads": 2}
UNDIRECTED = ReadOptions(directed=False)
WITH_EDGES = ReadOptions(directed=False, edge_features=("since",))


def read(path: Path, options: ReadOptions = UNDIRECTED) -> Dataset:
    return as_dataset(path, options=options)


def trained(path: Any, options: ReadOptions | None = UNDIRECTED, **more: Any) -> Any:
    settings = {"recipe": "plain", "settings": SETTINGS, "progress": False} | more
    return tempergat.train(path, "gat", read_options=options, device="cpu", **settings)


@pytest.fixture(scope="module")
def companies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_companies(tmp_path_factory.mktemp("graphs") / "companies")


@pytest.fixture(scope="module")
def model(companies: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainedModel:
    """A model with edge features, read from its file."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = trained(companies, WITH_EDGES)
    return tempergat.load_model(made.save(tmp_path_factory.mktemp("model")))


def scaled(values: Tensor, columns: tuple[int, ...]) -> Tensor:
    """Some columns centred and divided by their deviation."""
    columns_scaled = values.clone()
    for at in columns:
        column = values[:, at].double()
        columns_scaled[:, at] = (column - column.mean()) / column.std(correction=0)
    return columns_scaled


@pytest.mark.filterwarnings("ignore:.*edge column since is not used")
def test_a_table_of_different_scales_is_learned_unless_scaling_is_turned_off(
    companies: Path,
) -> None:
    model = trained(companies)
    assert model.run.scores["best_val_accuracy"].test > 0.9
    assert model.config.scale_features
    given = trained(companies, scale=False)
    assert given.run.scores["best_val_accuracy"].test < 0.7
    assert not given.config.scale_features
    assert given.run.fingerprint == model.run.fingerprint


def test_settings_of_other_graphs_keep_their_hash(companies: Path) -> None:
    settings = config("gat")
    assert settings_on(settings, small_graph()) is settings
    assert "scale_features" not in settings.model_dump()
    on_tables = settings_on(settings, read(companies))
    assert on_tables.scale_features
    hashes = [config_hash(c.model_dump(mode="json")) for c in (settings, on_tables)]
    assert hashes[0] != hashes[1]
    rows = settings.with_changes(normalize_features=True)
    assert settings_on(rows, read(companies)) is rows


def test_full_and_sampled_training_see_the_same_scaled_columns(companies: Path) -> None:
    graph = read(companies, WITH_EDGES)
    settings = settings_on(config("gat"), graph)
    wanted = scaled(graph.data.x, (0, 1, 2))
    full = features_of(graph, settings, CPU)
    torch.testing.assert_close(full, wanted)
    since = scaled(graph.data.edge_attr, (0,))
    edge_inputs = edge_inputs_of(graph, settings, CPU)
    torch.testing.assert_close(edge_inputs["edge_attr"], since)
    every = torch.arange(graph.data.num_nodes)
    features, _ = parts_of(graph, settings, CPU)
    torch.testing.assert_close(features.rows(every), wanted)
    sparse = replace(graph, data=graph.data.clone())
    sparse.data.x = graph.data.x.to_sparse_csr()
    assert torch.equal(features_of(sparse, settings, CPU), full)


def test_training_and_predictions_agree_for_any_order_of_rows_and_columns(
    companies: Path, model: TrainedModel, tmp_path: Path
) -> None:
    graph = read(companies, WITH_EDGES)
    predicted = model.predict(companies)
    test = graph.data.test_mask
    right = (predicted == graph.data.y)[test].double().mean().item()
    assert right == pytest.approx(model.run.scores["best_val_accuracy"].test)
    assert torch.equal(model.predict(graph), predicted)
    data = graph.data
    scores = model(data.x, data.edge_index, edge_attr=data.edge_attr)
    assert torch.equal(scores.argmax(dim=-1), predicted)
    other = write_companies(tmp_path / "other", columns=COLUMNS[::-1])
    header, *rows = (other / "nodes.csv").read_text().splitlines()
    (other / "nodes.csv").write_text("\n".join([header, *rows[::-1]]))
    assert torch.equal(model.predict(other).flip(0), predicted)


def test_a_new_graph_is_scaled_like_the_training_graph(
    companies: Path, model: TrainedModel, tmp_path: Path
) -> None:
    graph = read(companies, WITH_EDGES)
    other = write_companies(tmp_path / "other", n=90, seed=1)
    header, *rows = (other / "nodes.csv").read_text().splitlines()
    cells = [row.split(",") for row in rows]
    rows = [",".join([*c[:3], str(1e6 * float(c[3])), *c[4:]]) for c in cells]
    (other / "nodes.csv").write_text("\n".join([header, *rows]))
    with pytest.warns(
        UserWarning, match="^revenue has mean .* in the training .* convert it"
    ):
        probabilities = model.predict_proba(other)
    new = model.read_graph(other).data
    both = torch.cat([graph.data.x, new.x])
    mean, deviation = graph.data.x.mean(dim=0), graph.data.x.std(dim=0, correction=0)
    x = (both - mean) / deviation
    x[:, 3] = both[:, 3]
    since = graph.data.edge_attr
    edge_attr = (new.edge_attr - since.mean()) / since.std(correction=0)
    logits = model.module(x[240:], new.edge_index, edge_attr=edge_attr)
    torch.testing.assert_close(probabilities, logits.softmax(dim=-1))


def test_batches_and_the_explorer_show_what_the_model_sees(
    companies: Path, model: TrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = read(companies, WITH_EDGES)
    batch = next(iter(NeighborSampler(graph.data, [-1, -1], 8, shuffle=False)))
    x, _ = model.graph_call(batch).args
    wanted = features_of(graph, model.config, CPU)
    torch.testing.assert_close(x, wanted[batch.n_id])
    edges = edge_inputs_of(graph, model.config, CPU)["edge_attr"]
    torch.testing.assert_close(
        model.graph_call(batch).kwargs["edge_attr"].sort(dim=0).values,
        edges[batch.e_id].sort(dim=0).values,
    )
    seen: list[Data] = []
    compute = model_record.model_values

    def spy(module: Any, data: Data) -> Any:
        seen.append(data)
        return compute(module, data)

    monkeypatch.setattr(model_record, "model_values", spy)
    record = model_record.record(model, graph)
    torch.testing.assert_close(seen[0].x, wanted)
    torch.testing.assert_close(seen[0].edge_attr, edges)
    assert record.right == int((model.predict(graph) == graph.data.y).sum())


def test_node_types_are_scaled_in_training_and_predictions(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    folder.mkdir()
    rows = [f"p{n},{'ab'[n % 2]},{1990 + n % 17}" for n in range(40)]
    (folder / "nodes_paper.csv").write_text("\n".join(["id,label,year", *rows]))
    authors = [f"a{n},{1000 * n}" for n in range(8)]
    (folder / "nodes_author.csv").write_text("\n".join(["id,income", *authors]))
    edges = [f"a{n % 8},p{n}" for n in range(40)]
    table = "\n".join(["source,target", *edges])
    (folder / "edges_author__paper.csv").write_text(table)
    model = trained(folder, settings={**SETTINGS, "epochs": 3})
    graph = read(folder)
    x = {kind: scaled(graph.data[kind].x, (0,)) for kind in ("paper", "author")}
    full = features_of(graph, model.config, CPU)
    torch.testing.assert_close(full.inputs, (x["paper"], x["author"]))
    sampled = sampled_graph(graph, model.config, CPU)
    rows_of_paper = sampled.data["paper"].x.rows(torch.arange(40))
    torch.testing.assert_close(rows_of_paper, x["paper"])
    loaded = tempergat.load_model(model.save(tmp_path))
    assert torch.equal(loaded.predict(folder), model.predict(graph))
    scores = loaded(graph.data.x_dict, graph.data.edge_index_dict)
    assert torch.equal(scores.argmax(dim=-1), model.predict(graph))
    batch = next(
        iter(NeighborSampler(graph.data, [-1], 40, ("paper", torch.arange(40))))
    )
    inputs = loaded.graph_call(batch).args[0].inputs
    torch.testing.assert_close(inputs[0], x["paper"][batch["paper"].n_id])


def test_a_checkpoint_whose_scaling_does_not_fit_is_refused(
    model: TrainedModel, tmp_path: Path
) -> None:
    file = model.save(tmp_path)
    saved = checkpoint.read(file)
    facts = json.loads(json.dumps(saved.metadata))
    for scaling, reason in (
        ({}, "disagree"),
        ({".x": {"mean": [0.0], "deviation": [1.0]}}, "does not fit its columns"),
        ({".x": {"mean": [0.0] * 4, "deviation": [0.0] * 4}}, "scaling"),
    ):
        checkpoint.write(file, saved.tensors, {**facts, "scaling": scaling})
        with pytest.raises(UserError, match=reason):
            tempergat.load_model(file)


@pytest.mark.filterwarnings("ignore:.*edge column since is not used")
def test_comparisons_scale_and_mention_runs_without(
    companies: Path, tmp_path: Path
) -> None:
    arguments: dict[str, Any] = {
        "methods": ["gat"],
        "runs": 1,
        "recipe": "plain",
        "settings": {"epochs": 2, "hidden": 8, "heads": 1},
        "read_options": UNDIRECTED,
        "out": tmp_path,
        "device": "cpu",
        "progress": False,
    }
    given = tempergat.compare(companies, scale=False, **arguments)
    results = tempergat.compare(companies, **arguments)
    assert "scale_features" not in given.runs[0].config
    assert results.runs[0].config["scale_features"]
    assert any("with other settings" in note for note in results.notes)
    # One x for all seeds and splits: the runs are those of the scaled graph.
    graph = read(companies)
    settings = settings_on(config("gat"), graph)
    by_hand = replace(graph, data=graph.data.clone(), scaling={})
    by_hand.data.x = features_of(graph, settings, CPU)
    plain = settings.with_changes(scale_features=False)
    runs = [
        train_group(one, settings_of_it, [0, 1], CPU)
        for one, settings_of_it in ((graph, settings), (by_hand, plain))
    ]
    assert [run.scores for run in runs[0]] == [run.scores for run in runs[1]]


def changed_table(path: Path, file: str, column: str, change: Any) -> Path:
    """A copy of a folder of tables with the numbers of one column changed."""
    copy = (
        path.parent / f"{path.name}-{file}-{column}-{len(list(path.parent.iterdir()))}"
    )
    shutil.copytree(path, copy)
    table = pd.read_csv(copy / file)
    table[column] = change(table[column])
    table.to_csv(copy / file, index=False)
    return copy


@pytest.mark.parametrize("scale", [True, False])
def test_every_changed_unit_is_noted_with_its_column_and_no_other(
    tmp_path: Path, scale: bool
) -> None:
    generator = np.random.default_rng(0)
    nodes, edges = 200, 600
    label = generator.integers(2, size=nodes)
    table = {
        "near": 40 + 12 * generator.normal(size=nodes),
        "far": 1000 + generator.normal(size=nodes),
        "zero": 0.1 + generator.normal(size=nodes),
        "flag": generator.random(nodes) < 0.3,
        "rare": np.arange(nodes) == 3,
        "same": np.full(nodes, 7),
        "label": label,
    }
    ends = np.unique(generator.integers(nodes, size=(2, edges)), axis=1)
    edges = ends.shape[1]
    edge_table = {
        "source": ends[0],
        "target": ends[1],
        "since": 2000 + 9 * generator.normal(size=edges),
        "w": 1 + generator.random(edges),
    }
    path = tmp_path / "graph"
    path.mkdir()
    for name, columns in (("nodes.csv", table), ("edges.csv", edge_table)):
        frame = pd.DataFrame(
            {k: np.asarray(v, dtype=float) for k, v in columns.items()}
        )
        whole = ["label"] if name == "nodes.csv" else ["source", "target"]
        frame[whole] = frame[whole].astype(int)
        frame.to_csv(path / name, index=name == "nodes.csv", index_label="id")
    options = ReadOptions(directed=True, edge_features=("since",), edge_weight="w")
    model = trained(path, options, scale=scale, settings={"epochs": 1})
    assert not model.read_graph(path).notes
    columns = [("nodes.csv", name) for name in table if name != "label"]
    columns += [("edges.csv", "since"), ("edges.csv", "w")]
    for file, name in columns:
        for factor in (1000.0, 100.0, 0.001):
            if factor < 1 and name in ("flag", "rare", "same"):
                # Such a column becomes a nearly constant one.
                continue
            other = changed_table(path, file, name, lambda c, f=factor: c * f)
            noted = [n for n in model.read_graph(other).notes if "convert it" in n]
            assert len(noted) == 1, (name, factor, noted)
            assert noted[0].split()[0] == name
            assert " but had " in noted[0]


def test_graphs_of_equal_units_are_not_noted(tmp_path: Path) -> None:
    companies = write_companies(tmp_path / "companies", n=100)
    model = trained(companies, WITH_EDGES)
    for seed in range(1, 11):
        new = write_companies(tmp_path / f"new-{seed}", n=12 * seed, seed=seed)
        notes = model.read_graph(new).notes
        assert not any("convert it" in note for note in notes), (seed, notes)
