"""Memory of GATv2 with edge features, beside the same layer without them.

    python -m benchmarks.edge_features [--graph arxiv] [--edge-dim 8]

Each case runs forward and backward in a process of its own: the layer without edge
features, with them, and with them projected before attention. What is
counted is the largest resident memory less that after the imports. One row per case
goes to benchmarks/results/edge_features.csv.
"""

import argparse
import csv
import multiprocessing
import resource
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.graphs import SIZES, power_law_graph
from tempergat.nn import TemperGATv2Conv
from tempergat.ops import Graph

RESULTS = Path(__file__).parent / "results" / "edge_features.csv"
CASES = ("without", "projected by the kernels", "projected before")
HEADS, CHANNELS = 4, 64


def megabytes() -> float:
    """The largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(case: str, name: str, edge_dim: int) -> dict[str, Any]:
    """One row of the table."""
    before = megabytes()
    torch.manual_seed(0)
    edge_index, nodes = power_law_graph(name)
    graph = Graph(edge_index.to(torch.int32), nodes, self_loops=True)
    del edge_index
    width = None if case == "without" else edge_dim
    conv = TemperGATv2Conv(
        SIZES[name].in_channels, CHANNELS, HEADS, edge_dim=width, dropout=0.1
    )
    edge_attr = None if width is None else torch.randn(graph.num_edges, edge_dim)
    if case == "projected before":
        # A map with something beside it is called as a module.
        conv.lin_edge = nn.Sequential(conv.lin_edge)
    x = torch.randn(nodes, SIZES[name].in_channels)
    for _ in range(2):
        conv(x, graph, edge_attr).sum().backward()
    return {
        "graph": name,
        "nodes": nodes,
        "edges": graph.src.numel(),
        "heads": HEADS,
        "channels": CHANNELS,
        "edge_dim": width or 0,
        "edge_features": case,
        "memory_mb": round(megabytes() - before),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="arxiv", choices=SIZES)
    parser.add_argument("--edge-dim", type=int, default=8)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows = []
    for case in CASES:
        # A new process: the largest memory of one that goes on never falls.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            row = pool.apply(measure, (case, arguments.graph, arguments.edge_dim))
        row["times_memory"] = (
            f"{row['memory_mb'] / (rows or [row])[0]['memory_mb']:.2f}"
        )
        print(row, flush=True)
        rows.append(row)
    with arguments.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
