"""Many sets of features on one graph: one call, beside the replicated graph.

    python -m benchmarks.feature_sets [--out DIR]

A step of a layer of 64 features, 4 heads of 16 channels, without temperature and gate,
float32, on one GPU; outputs are compared first. Writes DIR/feature_sets.csv.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import torch

from benchmarks.attention_gpu import layer_step, median_ms, peak_gib
from tempergat.nn import TemperGATConv, TemperGATv2Conv, TemperTransformerConv
from tempergat.ops import Graph

SIZES = ((64, 325, 2_369), (512, 325, 2_369), (8, 40_962, 327_660))
LAYERS = {
    "gat": TemperGATConv,
    "gatv2": TemperGATv2Conv,
    "transformer": TemperTransformerConv,
}
# The most times the time of the replicated graph.
TARGET = 1.05
FIELDS = (
    "sets", "nodes", "edges", "layer", "ms", "mib", "replicated_ms", "replicated_mib",
    "ratio", "met", "device", "torch",
)  # fmt: skip


def measure(sets: int, nodes: int, edges: int, kind: str) -> dict[str, Any]:
    torch.manual_seed(0)
    layer: Any = LAYERS[kind](64, 16, 4, temperature=None, gate=None).cuda()
    loops = kind != "transformer"
    index = torch.randint(nodes, (2, edges), device="cuda")
    graph = Graph(index, nodes, self_loops=loops)
    first = torch.arange(sets, device="cuda").repeat_interleave(edges) * nodes
    whole = Graph(index.repeat(1, sets) + first, nodes * sets, self_loops=loops)
    x = torch.randn(sets, nodes, 64, device="cuda")
    flat = x.flatten(0, 1)
    torch.testing.assert_close(layer(x, graph).flatten(0, 1), layer(flat, whole))
    row: dict[str, Any] = {"sets": sets, "nodes": nodes, "edges": edges, "layer": kind}
    given = {"": (x, graph), "replicated_": (flat, whole)}
    steps = {prefix: layer_step(layer, *inputs) for prefix, inputs in given.items()}
    # The best of several medians, in turn: on small graphs the host decides.
    rounds = [
        {p: median_ms(step, 100.0) for p, step in steps.items()} for _ in range(5)
    ]
    for prefix, step in steps.items():
        row[f"{prefix}ms"] = min(times[prefix] for times in rounds)
        row[f"{prefix}mib"] = peak_gib(step) * 1024
    row["ratio"] = row["ms"] / row["replicated_ms"]
    row["met"] = "yes" if row["ratio"] <= TARGET else "no"
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    arguments = parser.parse_args()
    device = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    with (arguments.out / "feature_sets.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for size in SIZES:
            for kind in LAYERS:
                row = measure(*size, kind)
                row = {
                    k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()
                }
                print(*row.values(), sep="  ", flush=True)
                writer.writerow(row | device)


if __name__ == "__main__":
    main()
