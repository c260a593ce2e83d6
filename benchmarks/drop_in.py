"""Our layer in the place of PyG's GATConv, in two of PyG's own examples, on Cora.

    python -m benchmarks.drop_in [--seeds 5]

The examples are written as PyG publishes them, and only the layer differs:

- nodes: `gat.py`, two layers of 8 heads; test accuracy, in percent.
- links: `link_pred.py` with two attention layers in the place of its GCNConv; test AUC,
  in percent.

Each score is that of the epoch with the best validation score. A seed draws the same
split, the same negative edges of validation and test, and the same order of random
numbers for every layer. One row per run goes to benchmarks/results/drop_in.csv.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.nn import GATConv
from torch_geometric.transforms import NormalizeFeatures, RandomLinkSplit
from torch_geometric.utils import negative_sampling

from benchmarks.origin import add_row, origin
from tempergat.data import load
from tempergat.nn import TemperGATConv

RESULTS = Path(__file__).parent / "results" / "drop_in.csv"
FIELDS = ("example", "layer", "seed", "score")
Layer = Callable[..., nn.Module]
LAYERS: dict[str, Layer] = {
    "GATConv of PyG": GATConv,
    "TemperGATConv": TemperGATConv,
    "gate_bias_init=0.0": partial(TemperGATConv, gate_bias_init=0.0),
    "gate=None": partial(TemperGATConv, gate=None),
    "residual=True": partial(TemperGATConv, residual=True),
    "residual=True, gate=None": partial(TemperGATConv, residual=True, gate=None),
}


class NodeModel(nn.Module):
    """The model of gat.py."""

    def __init__(self, layer: Layer, in_channels: int, classes: int) -> None:
        super().__init__()
        self.conv1 = layer(in_channels, 8, 8, dropout=0.6)
        self.conv2 = layer(64, classes, heads=1, concat=False, dropout=0.6)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, 0.6, self.training)
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, 0.6, self.training)
        return self.conv2(x, edge_index)


class LinkModel(nn.Module):
    """The encoder of link_pred.py, with attention."""

    def __init__(self, layer: Layer, in_channels: int) -> None:
        super().__init__()
        self.conv1 = layer(in_channels, 128)
        self.conv2 = layer(128, 64)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


def score_nodes(layer: Layer, data: Data) -> Iterator[tuple[float, float]]:
    """Validation and test accuracy after every epoch."""
    model = NodeModel(layer, data.num_features, int(data.y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
    for _ in range(200):
        model.train()
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        F.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(data.x, data.edge_index).argmax(-1) == data.y).double()
        yield right[data.val_mask].mean().item(), right[data.test_mask].mean().item()


def score_links(layer: Layer, data: Data) -> Iterator[tuple[float, float]]:
    """Validation and test AUC after every epoch."""
    split = RandomLinkSplit(0.05, 0.1, True, add_negative_train_samples=False)
    train, *others = split(data)
    model = LinkModel(layer, data.num_features)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    linked = train.edge_label_index
    for _ in range(100):
        model.train()
        optimizer.zero_grad()
        z = model(train.x, train.edge_index)
        count = linked.size(1)
        drawn = negative_sampling(train.edge_index, train.num_nodes, count, "sparse")
        logits = products(z, torch.cat([linked, drawn], 1))
        labels = torch.cat([train.edge_label, torch.zeros(drawn.size(1))])
        F.binary_cross_entropy_with_logits(logits, labels).backward()
        optimizer.step()
        model.eval()
        scores = []
        for part in others:
            with torch.no_grad():
                z = model(part.x, part.edge_index)
            logits = products(z, part.edge_label_index)
            scores.append(float(roc_auc_score(part.edge_label, logits)))
        yield scores[0], scores[1]


def products(z: Tensor, pairs: Tensor) -> Tensor:
    """The logit of a link for each pair of nodes."""
    return (z[pairs[0]] * z[pairs[1]]).sum(-1)


EXAMPLES = {"nodes": score_nodes, "links": score_links}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    data = NormalizeFeatures()(load("cora", sparse=False).data)
    about = origin(torch.device("cpu"))
    scores: dict[tuple[str, str], list[float]] = {}
    for example, score in EXAMPLES.items():
        for seed in range(given.seeds):
            for name, layer in LAYERS.items():
                seed_everything(seed)
                # The first of the best epochs, as in the examples.
                _, test = max(score(layer, data), key=lambda pair: pair[0])
                row: dict[str, Any] = dict(
                    zip(FIELDS, (example, name, seed, f"{100 * test:.2f}"), strict=True)
                )
                print(*row.values(), sep="\t", flush=True)
                add_row(given.out, row | about, [*FIELDS, *about])
                scores.setdefault((example, name), []).append(100 * test)
    for (example, name), found in scores.items():
        spread = statistics.stdev(found) if len(found) > 1 else 0.0
        print(f"{example:6} {name:26} {statistics.mean(found):5.1f} ± {spread:.1f}")


if __name__ == "__main__":
    main()
