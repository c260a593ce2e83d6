"""The benchmarks name no speed for a kernel that is wrong."""

import csv
import math
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.loader import DataLoader

from benchmarks import (
    attention_checks,
    attention_cpu,
    graphs,
    mesh,
    molecules,
    pages,
    sampling,
    small_batches,
    small_graphs,
    time_to_accuracy,
)
from benchmarks.origin import add_row
from studies.pages import DOCS, slots
from tempergat import GraphLoader, ops
from tempergat.ops import Graph


def _measure(backbone: str) -> dict[str, Any]:
    edge_index = torch.randint(20, (2, 100))
    return attention_cpu.measure("cora", backbone, "op", Graph(edge_index, 20), 1)


@pytest.mark.parametrize("backbone", ["gat", "gatv2", "transformer"])
def test_a_correct_kernel_has_a_speed(backbone: str) -> None:
    row = _measure(backbone)
    if row["backend"] != "cpu":
        pytest.skip("no CPU kernels")
    assert row["check"] == "passed"
    assert float(row["times_faster"]) > 0


@pytest.mark.parametrize("backbone", ["gat", "gatv2"])
@pytest.mark.parametrize("wrong", [1.01, torch.nan], ids=["differs", "is not a number"])
def test_a_kernel_with_a_wrong_gradient_has_no_speed(
    backbone: str, wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = getattr(ops, backbone)

    def call(graph: Graph, *arguments: torch.Tensor) -> Any:
        *others, last = arguments
        last = last.clone()
        last.register_hook(lambda gradient: gradient * wrong)
        return right(graph, *others, last)

    monkeypatch.setattr(ops, backbone, call)
    row = _measure(backbone)
    assert row["check"] == "FAILED"
    assert not [name for name in row if name.endswith("_ms") or "times" in name]


@pytest.mark.parametrize("kind", ["gat", "gatv2"])
def test_kernels_on_a_gpu_are_compared_with_the_same_function(kind: str) -> None:
    graph = Graph(torch.randint(20, (2, 100)), 20)
    z = torch.randn(20, 2, 4)
    rest = [torch.randn(2, 4), torch.randn(2, 4)]
    if kind == "gatv2":
        rest = [torch.randn(20, 2, 4), torch.randn(2, 4)]
    expected = attention_checks.by_torch(kind)(graph, z, *rest)
    torch.testing.assert_close(getattr(ops, kind)(graph, z, *rest)[0], expected)


def test_the_mesh_has_the_edges_of_all_levels() -> None:
    nodes, edge_index = mesh.icosphere(2)
    assert nodes.shape == (162, 3)
    torch.testing.assert_close(nodes.norm(dim=1), torch.ones(162).double())
    assert edge_index.unique(dim=1).shape == (2, 2 * (30 + 120 + 480))
    # A node of a level has six neighbours on it, the twelve corners have five.
    assert edge_index[1].bincount().unique().tolist() == [6, 12, 15]
    edge_index, points = mesh.grid_to_mesh((5, 8), nodes, 3)
    assert points == 40
    graph = mesh.grouped(edge_index, points, len(nodes))
    assert graph.dst.diff().min() >= 0
    assert torch.equal(graph.src.bincount(), torch.full((40,), 3))


def test_small_graphs_have_a_row_for_each_layer_and_a_wrong_layer_no_time() -> None:
    device = torch.device("cpu")
    layers = small_graphs.make_layers(device, compiled=False)
    with torch.no_grad():
        wrong = next(layer for layer in layers if layer.name.endswith("plain"))
        for parameter in wrong.module.parameters():
            parameter.mul_(1.01)
    rows = list(small_graphs.measure("molecule", layers, device, rounds=1))
    assert [row["graph"] for row in rows] == ["kept"] * 10 + ["new"] * 10
    for row in rows:
        assert (row["check"] == "FAILED") == (row["layer"] == wrong.name)
        assert ("ms" in row) == (row["check"] != "FAILED")
        ours_is_right = row["layer"].startswith("Temper") and "ms" in row
        assert ("met" in row) == ours_is_right


@pytest.mark.parametrize(
    ("device", "edges", "plain", "both"),
    [
        ("cpu", 44, 1.0, 1.15),
        ("cpu", 20_000, 1 / 1.5, 1 / 1.5),
        ("cuda", 3_520, 1.0, 1.15),
        ("cuda", 100_000, 1.0, 1.0),
        ("cuda", 500_000, 1 / 1.5, 1 / 1.5),
    ],
)
def test_the_target_depends_on_device_edges_and_layer(
    device: str, edges: int, plain: float, both: float
) -> None:
    where = torch.device(device)
    assert small_graphs.target_of("TemperGATConv, plain", edges, where) == plain
    assert small_graphs.target_of("TemperGATConv, T and gate", edges, where) == both
    assert small_graphs.target_of("PyG GCNConv", edges, where) is None
    assert small_graphs.is_met(1.04, 1.0)
    assert not small_graphs.is_met(1.16, 1.15)


@pytest.mark.parametrize("layer", molecules.LAYERS)
def test_models_on_molecules_agree_with_pygs_and_a_wrong_one_is_noticed(
    layer: str,
) -> None:
    size = molecules.Size(3, 3 * molecules.ATOMS, 3 * molecules.BONDS)
    batch = molecules.draw(size, 8, seed=0)
    models = molecules.make_models(size, layer, channels=4, edge_dim=8)
    for model in [model for model in models if "compiled" not in model.name]:
        assert molecules.difference_of(model, batch) < molecules.TOLERANCE
        with torch.no_grad():
            for parameter in model.module.parameters():
                parameter.mul_(1.01)
        is_wrong = molecules.difference_of(model, batch) > molecules.TOLERANCE
        assert is_wrong == (model.expected is not None)


def test_a_batch_of_molecules_has_no_edge_between_two_of_them() -> None:
    for seed in (0, 1):
        size = molecules.SIZES["32 molecules"]
        _, edge_index, _, batch = molecules.draw(size, 8, seed)
        assert edge_index.shape == (2, size.edges)
        assert torch.equal(batch[edge_index[0]], batch[edge_index[1]])
        assert not (edge_index[0] == edge_index[1]).any()


def test_molecules_of_a_set_have_25_atoms_in_the_mean_and_54_edges() -> None:
    drawn = small_batches.draw_molecules(400, num_features=3)
    sizes = [len(one.x) for one in drawn]
    assert min(sizes) == 15
    assert max(sizes) == 35
    assert abs(sum(sizes) / 400 - 25) < 1
    assert all(one.num_edges == 2 * (one.num_nodes + 2) for one in drawn)
    assert all(one.edge_attr.shape == (one.num_edges, 8) for one in drawn)
    assert not any(one.has_self_loops() for one in drawn)
    assert all(one.edge_index.max() < one.num_nodes for one in drawn)


def test_loaders_are_compared_batch_by_batch() -> None:
    drawn = small_batches.draw_molecules(20, num_features=3)
    other = [one.clone() for one in drawn]
    other[7].y += 1
    expected = DataLoader(drawn, 6, shuffle=True)
    for given, options, same in (
        (drawn, {"shuffle": True}, True),
        (other, {"shuffle": True}, False),
        (drawn, {"shuffle": False}, False),
        (drawn, {"shuffle": True, "drop_last": True}, False),
        (drawn, {"shuffle": True, "exclude_keys": ["y"]}, False),
    ):
        loader = GraphLoader(given, 6, **options)
        assert small_batches.are_equal(loader, expected) == same


def test_a_loader_with_other_batches_has_no_speed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loader(graphs: Any, *numbers: int, **options: Any) -> GraphLoader:
        return GraphLoader(graphs[::-1], *numbers, **options)

    monkeypatch.setattr(small_batches, "GraphLoader", loader)
    monkeypatch.setattr(small_batches, "LOADED", 12)
    monkeypatch.setattr(small_batches, "TRAINED", 12)
    # Nothing is compiled, and the process keeps its cores.
    monkeypatch.setattr(small_batches, "difference_of", lambda *_: 0.0)
    monkeypatch.setattr(small_batches, "_use_cores", lambda _: None)
    for row in (
        small_batches.measure_loader(4, 3, 1, rounds=1),
        small_batches.measure_epoch(4, "GAT", rounds=1),
    ):
        assert row["check"] == "FAILED"
        assert not [name for name in row if name.endswith("_ms") or name == "met"]


@pytest.mark.parametrize("page", pages.PAGES)
def test_the_tables_of_a_page_are_made_from_the_measurements(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert pages.filled(page) == text
    assert {make.__name__ for make in pages.PAGES[page]} == {*slots(text)}


def test_the_page_on_speed_opens_with_the_largest_ratio_on_larger_graphs() -> None:
    ratios = [
        float(row["ratio"])
        for device, edges in (("cpu", 100_000), ("cuda", 500_000))
        for row in pages.read(f"small_graphs_{device}")
        if row["layer"].endswith("T and gate") and int(row["edges"]) >= edges
    ]
    opening = (DOCS / "speed.md").read_text(encoding="utf-8").split("\n\n")[1]
    words = f"at most {math.ceil(10 * max(ratios)) / 10} of the time of PyG's"
    assert words in " ".join(opening.split())


def test_every_file_of_measurements_says_how_it_is_made() -> None:
    table = (pages.RESULTS / "README.md").read_text()
    rows = re.findall(r"^\| `([\w.]+)` \| (.+) \|$", table, re.MULTILINE)
    there = {path.name for path in pages.RESULTS.iterdir()} - {"README.md"}
    assert {name for name, _ in rows} == there
    for _, how in rows:
        module = re.match(r"`python -m benchmarks\.(\w+)", how)
        assert module or how.startswith(("by hand: ", "`pytest`", "`make "))
        assert module is None or Path(f"benchmarks/{module[1]}.py").is_file()


def test_rows_are_added_to_a_file_in_its_own_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    add_row(path, {"what": "a", "ms": 1}, ["what", "ms"])
    add_row(path, {"ms": 2, "date": "today", "what": "b"}, ["ms", "what", "date"])
    assert path.read_text() == "what,ms\na,1\nb,2\n"


def test_both_ways_of_training_have_a_curve_of_accuracies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = sampling.Setting([3, 2, 2], 4, 64, 1500, 8, 3, 0.0)
    monkeypatch.setitem(sampling.SETTINGS, "arxiv", setting)
    monkeypatch.setitem(graphs.SIZES, "arxiv", graphs.Size(2000, 6000, 8))
    monkeypatch.setattr(time_to_accuracy, "SCORED", 400)
    words = ["--graph", "arxiv", "--device", "cpu", "--full-s", "0.01"]
    words += ["--sampled-s", "0.01", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["time_to_accuracy", *words])
    time_to_accuracy.main()
    with (tmp_path / "time_to_accuracy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["way"] for row in rows} == {"sampled", "full batch"}
    assert all(0.0 < float(row["accuracy"]) <= 1.0 for row in rows)
    assert all(float(row["train_s"]) > 0.0 for row in rows)
