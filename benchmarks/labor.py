"""Nodes per batch and accuracy with shared draws (LABOR-0) and without.

    python -m benchmarks.labor --graph amazon_photo --seeds 10 --out DIR

Trains `temp_gated` on sampled batches with both samplers, from the same weights for
each seed, and scores the test nodes with all their neighbours. Adds a row per seed and
sampler to DIR/labor.csv, and prints the mean difference with its paired test.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.origin import origin
from tempergat import NeighborSampler, load
from tempergat.nn import build_model
from tempergat.stats import compare_pairs

FIELDS = (
    "graph", "seed", "labor", "nodes_per_batch", "edges_per_batch", "accuracy",
    "date", "commit", "machine", "torch", "torch_geometric",
)  # fmt: skip
FANOUT, BATCH, HIDDEN, LAYERS, HEADS = [10, 5], 256, 32, 2, 2


def run(data: Any, classes: int, seed: int, labor: bool, epochs: int) -> dict[str, Any]:
    """Trains and scores one model."""
    torch.manual_seed(seed)
    sizes = (data.num_features, HIDDEN, classes, LAYERS, HEADS)
    model = build_model("temp_gated", *sizes, gate_bias_init=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    train = NeighborSampler(
        data, FANOUT, BATCH, data.train_mask, shuffle=True, seed=seed, labor=labor
    )
    nodes = edges = steps = 0
    model.train()
    for _ in range(epochs):
        for batch in train:
            optimizer.zero_grad()
            out = model(batch.x, batch.graph)
            F.cross_entropy(out, batch.y[: batch.batch_size]).backward()
            optimizer.step()
            nodes += batch.num_nodes
            edges += batch.num_edges
            steps += 1
    model.eval()
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(-1) == data.y
    accuracy = right[data.test_mask].double().mean().item()
    return {
        "seed": seed,
        "labor": int(labor),
        "nodes_per_batch": round(nodes / steps, 1),
        "edges_per_batch": round(edges / steps, 1),
        "accuracy": accuracy,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="amazon_photo")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    about = origin(torch.device("cpu"))
    for seed in range(given.seeds):
        dataset = load(given.graph, split_seed=seed, sparse=False)
        data = dataset.data
        for labor in (False, True):
            row = run(data, dataset.num_classes, seed, labor, given.epochs)
            rows.append({"graph": given.graph, **row, **about})
            print(given.graph, *row.values(), flush=True)
    path = given.out / "labor.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        writer.writerows(rows)
    scores = {
        name: {row["seed"]: row["accuracy"] for row in rows if row["labor"] == labor}
        for labor, name in enumerate(("uniform", "labor"))
    }
    print(*compare_pairs(scores, {"labor": "uniform"}))


if __name__ == "__main__":
    main()
