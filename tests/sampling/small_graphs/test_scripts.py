"""Scripts on sets of real graphs, with GraphLoader in the place of DataLoader."""

import zipfile
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.datasets import TUDataset
from torch_geometric.loader import DataLoader

import tempergat.nn
from tempergat import GraphLoader
from tempergat.data.fetch.locate import mirror_folders

STEPS = 10


@pytest.fixture(scope="module")
def of_name(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], TUDataset]:
    """PyG's own data set of a name, made from the archive as it is published."""
    root = tmp_path_factory.mktemp("graphs")

    def make(name: str) -> TUDataset:
        folders = [folder / "graphs" for folder in mirror_folders()]
        archives = [folder / f"{name}.zip" for folder in folders]
        found = next((path for path in archives if path.is_file()), None)
        if found is None:
            pytest.skip(f"needs graphs/{name}.zip in a folder of TEMPERGAT_MIRROR")
        raw = root / name / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(found) as archive:
            for member in archive.infolist():
                if not member.is_dir():
                    (raw / Path(member.filename).name).write_bytes(archive.read(member))
        return TUDataset(str(root), name, use_node_attr=True)

    return make


class GIN(nn.Module):
    """The model of PyG's ``mutag_gin.py``."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        widths = [num_features, 32, 32, 32, 32]
        self.convs = nn.ModuleList(
            pyg.GINConv(pyg.MLP([width, 32, 32])) for width in widths
        )
        self.mlp = pyg.MLP([32, 32, num_classes], norm=None, dropout=0.5)

    def forward(self, batch: Any) -> Tensor:
        x = batch.x
        for conv in self.convs:
            x = conv(x, batch.edge_index).relu()
        x = pyg.global_add_pool(x, batch.batch, batch.num_graphs)
        return self.mlp(x)


class Pooled(nn.Module):
    """GCN layers that keep some nodes each, as in PyG's ``enzymes_topk_pool.py``."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        widths = [num_features, 32]
        self.convs = nn.ModuleList(pyg.GraphConv(width, 32) for width in widths)
        self.pools = nn.ModuleList(pyg.TopKPooling(32, ratio=0.8) for _ in widths)
        self.lin = nn.Linear(64, num_classes)

    def forward(self, batch: Any) -> Tensor:
        x, edge_index, of_graph = batch.x, batch.edge_index, batch.batch
        for conv, pool in zip(self.convs, self.pools, strict=True):
            x = conv(x, edge_index).relu()
            x, edge_index, _, of_graph, *_ = pool(x, edge_index, None, of_graph)
        means = pyg.global_mean_pool(x, of_graph, batch.num_graphs)
        largest = pyg.global_max_pool(x, of_graph, batch.num_graphs)
        return self.lin(F.dropout(torch.cat([largest, means], 1), 0.5, self.training))


class Attention(nn.Module):
    """Two attention layers with batch norm and dropout, and a mean over each graph."""

    def __init__(
        self, layer: type[nn.Module], num_features: int, num_classes: int
    ) -> None:
        super().__init__()
        self.conv1 = layer(num_features, 8, heads=4, dropout=0.2)
        self.norm = pyg.BatchNorm(32)
        self.conv2 = layer(32, 32)
        self.lin = nn.Linear(32, num_classes)

    def forward(self, batch: Any) -> Tensor:
        x = self.norm(self.conv1(batch.x, batch.edge_index)).relu()
        x = self.conv2(F.dropout(x, 0.3, self.training), batch.edge_index)
        return self.lin(pyg.global_mean_pool(x, batch.batch))


def split_by_slices(graphs: TUDataset) -> tuple[Any, Any]:
    """Graphs for training and for the test, as PyG's scripts choose them."""
    graphs = graphs.shuffle()
    return graphs[len(graphs) // 10 :], graphs[: len(graphs) // 10]


def split_by_subsets(graphs: TUDataset) -> tuple[Any, Any]:
    """The first 600 graphs, divided as torch does it."""
    first = torch.utils.data.Subset(graphs, range(600))
    train, test = torch.utils.data.random_split(first, [540, 60])
    return train, test


def run(
    loader: Any,
    graphs: TUDataset,
    split: Callable[[TUDataset], tuple[Any, Any]],
    model: Callable[[int, int], nn.Module],
) -> tuple[Tensor, Tensor]:
    """The losses of ten steps, and then the predictions for the test's graphs."""
    torch.manual_seed(12345)
    train, test = split(graphs)
    trained = model(graphs.num_features, graphs.num_classes)
    optimizer = torch.optim.Adam(trained.parameters(), lr=0.01)
    train_batches = loader(train, batch_size=32, shuffle=True)
    test_batches = loader(test, batch_size=16)
    losses: list[Tensor] = []
    while len(losses) < STEPS:
        for batch in islice(train_batches, STEPS - len(losses)):
            optimizer.zero_grad()
            loss = F.cross_entropy(trained(batch), batch.y)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    trained.eval()
    with torch.no_grad():
        return torch.stack(losses), torch.cat([trained(b) for b in test_batches])


@pytest.mark.parametrize(
    ("name", "split", "model"),
    [
        pytest.param("MUTAG", split_by_slices, GIN, id="GIN on MUTAG"),
        pytest.param("ENZYMES", split_by_slices, Pooled, id="TopKPooling on ENZYMES"),
        pytest.param(
            "NCI1",
            split_by_subsets,
            partial(Attention, pyg.GATConv),
            id="PyG's GATConv on NCI1",
        ),
        pytest.param(
            "NCI1",
            split_by_subsets,
            partial(Attention, tempergat.nn.GATv2Conv),
            id="our GATv2Conv on NCI1",
        ),
        pytest.param(
            "ENZYMES",
            split_by_slices,
            partial(Attention, tempergat.nn.TemperGATConv),
            id="TemperGATConv on ENZYMES",
        ),
    ],
)
def test_a_script_has_the_losses_and_predictions_it_has_with_pygs_loader(
    of_name: Callable[[str], TUDataset],
    name: str,
    split: Callable[[TUDataset], tuple[Any, Any]],
    model: Callable[[int, int], nn.Module],
) -> None:
    graphs = of_name(name)
    losses, scores = run(GraphLoader, graphs, split, model)
    expected_losses, expected_scores = run(DataLoader, graphs, split, model)
    assert torch.equal(losses, expected_losses)
    assert torch.equal(scores, expected_scores)
    assert losses.isfinite().all()
    assert losses.unique().numel() == STEPS
