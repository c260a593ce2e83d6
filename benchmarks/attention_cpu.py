"""Attention on the CPU beside PyTorch Geometric, in one process.

    python -m benchmarks.attention_cpu [--graphs cora arxiv 60k] [--levels op layer]

Each case is first checked: output and every gradient against PyG's own. A case whose
check fails is written without a speed. The op is attention without projections
(PyG: `edge_updater` and `propagate` of its layer); the layer has them. One row per
case goes to benchmarks/results/attention_cpu.csv. Dot products are measured on a graph
of 60,000 nodes and 800,000 edges. PyG's GATv2 at the arxiv size needs about 14 GiB.
"""

import argparse
import csv
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch_geometric
from torch import Tensor
from torch_geometric.nn import GATConv, GATv2Conv, TransformerConv
from torch_geometric.utils import add_remaining_self_loops, remove_self_loops

from benchmarks.graphs import SIZES, power_law_graph
from tempergat import ops
from tempergat.nn import TemperGATConv, TemperGATv2Conv, TemperTransformerConv
from tempergat.ops import Graph
from tempergat.ops.cpu import library as cpu

RESULTS = Path(__file__).parent / "results" / "attention_cpu.csv"
SHAPES = {"arxiv": (4, 64), "cora": (8, 8), "60k": (4, 64)}
BACKBONES = {"60k": ("transformer",)}
LAYERS = {
    "gat": (TemperGATConv, GATConv),
    "gatv2": (TemperGATv2Conv, GATv2Conv),
    "transformer": (TemperTransformerConv, TransformerConv),
}
TOLERANCE = 1e-3


class Run(NamedTuple):
    """Something to time: a forward pass and the leaves its backward reaches."""

    forward: Callable[[], Tensor]
    leaves: list[Tensor]


def op_runs(backbone: str, graph: Graph, heads: int, channels: int) -> tuple[Run, Run]:
    """Ours and PyG's attention over the same leaves."""
    nodes, edge_index = graph.num_dst, graph.edge_index
    z = torch.randn(nodes, heads, channels, requires_grad=True)
    if backbone == "gat":
        conv = GATConv(channels, channels, heads, add_self_loops=False)
        source, target = conv.att_src, conv.att_dst

        def theirs() -> Tensor:
            scores = (z * source).sum(-1), (z * target).sum(-1)
            alpha = conv.edge_updater(
                edge_index, alpha=scores, edge_attr=None, size=None
            )
            return conv.propagate(edge_index, x=(z, z), alpha=alpha, size=None)

        leaves = [z, source, target]
        ours = Run(lambda: ops.gat(graph, z, source[0], target[0])[0], leaves)
        return ours, Run(theirs, leaves)
    other = torch.randn(nodes, heads, channels, requires_grad=True)
    if backbone == "transformer":
        third = torch.randn(nodes, heads, channels, requires_grad=True)
        leaves = [z, other, third]
        conv3 = TransformerConv(channels, channels, heads)
        parts = dict(zip(("query", "key", "value"), leaves, strict=True))
        return Run(lambda: ops.dot_product(graph, *leaves)[0], leaves), Run(
            lambda: conv3.propagate(edge_index, **parts, edge_attr=None), leaves
        )
    conv2 = GATv2Conv(channels, channels, heads, add_self_loops=False)
    att = conv2.att

    def theirs2() -> Tensor:
        alpha = conv2.edge_updater(edge_index, x=(z, other), edge_attr=None)
        return conv2.propagate(edge_index, x=(z, other), alpha=alpha)

    leaves = [z, other, att]
    return Run(lambda: ops.gatv2(graph, z, other, att[0])[0], leaves), Run(
        theirs2, leaves
    )


def layer_runs(
    backbone: str, name: str, graph: Graph, heads: int, channels: int
) -> tuple[Run, Run]:
    """Ours and PyG's layer with the same parameters, without temperature and gate."""
    width = SIZES[name].in_channels
    x, edge_index = torch.randn(graph.num_dst, width), graph.edge_index
    ours_class, theirs_class = LAYERS[backbone]
    loops = {} if backbone == "transformer" else {"add_self_loops": False}
    theirs = theirs_class(width, channels, heads, **loops)
    plain: dict[str, Any] = {"temperature": None, "gate": None}
    ours = ours_class(width, channels, heads, **loops, **plain)
    ours.load_state_dict(theirs.state_dict())
    # A softmax does not see the bias of keys: its gradient is rounding alone.
    names = [n for n, _ in theirs.named_parameters() if n != "lin_key.bias"]
    shared = [dict(m.named_parameters()) for m in (ours, theirs)]
    return (
        Run(lambda: ours(x, graph), [shared[0][n] for n in names]),
        Run(lambda: theirs(x, edge_index), [shared[1][n] for n in names]),
    )


def worst_difference(ours: Run, theirs: Run) -> float:
    """Largest difference of output and gradients, over each one's largest value."""
    found = []
    for run in (ours, theirs):
        out = run.forward()
        incoming = torch.linspace(-1.0, 1.0, out.numel()).view(out.shape)
        gradients = torch.autograd.grad(out, run.leaves, incoming)
        found.append([out.detach(), *gradients])
        del out
    differences = [
        (a.view_as(b) - b).abs().max() / b.abs().max().clamp(min=1e-6)
        for a, b in zip(*found, strict=True)
    ]
    # Unlike Python's, torch's maximum of a NaN and a number is NaN.
    return float(torch.stack(differences).max())


def seconds(run: Run, repeats: int) -> tuple[float, float]:
    """Median time of forward and of backward."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        out = run.forward()
        middle = time.perf_counter()
        incoming = torch.ones_like(out)
        begin = time.perf_counter()
        torch.autograd.grad(out, run.leaves, incoming)
        times.append((middle - start, time.perf_counter() - begin))
        del out
    forward, backward = zip(*times, strict=True)
    return statistics.median(forward), statistics.median(backward)


def measure(
    name: str, backbone: str, level: str, graph: Graph, repeats: int
) -> dict[str, Any]:
    """One row of the table."""
    torch.manual_seed(0)
    heads, channels = SHAPES[name]
    ours, theirs = (
        op_runs(backbone, graph, heads, channels)
        if level == "op"
        else layer_runs(backbone, name, graph, heads, channels)
    )
    z = torch.empty(graph.num_src, heads, channels)
    kind = "dot_product" if backbone == "transformer" else backbone
    served = ops.explain(graph, z, attention=kind)
    difference = worst_difference(ours, theirs)
    passed = difference < TOLERANCE and served.backend == "cpu"
    row: dict[str, Any] = {
        "graph": name,
        "backbone": backbone,
        "level": level,
        "heads": heads,
        "channels": channels,
        "nodes": graph.num_dst,
        "edges": graph.src.numel(),
        "backend": served.backend,
        "check": "passed" if passed else "FAILED",
        "difference": f"{difference:.1e}",
    }
    begin, elsewhere = time.perf_counter(), busy_elsewhere()
    if passed:
        # What takes milliseconds needs more rounds for a steady median.
        rounds_wanted = repeats if graph.num_edges > 10**5 else 30 * repeats
        # Alternating, so that a slow minute of the machine meets both.
        rounds = [
            (*seconds(ours, 3), *seconds(theirs, 1)) for _ in range(rounds_wanted)
        ]
        columns = [statistics.median(c) * 1e3 for c in zip(*rounds, strict=True)]
        names = ("ours_forward", "ours_backward", "pyg_forward", "pyg_backward")
        row |= {f"{n}_ms": f"{c:.2f}" for n, c in zip(names, columns, strict=True)}
        ratio = (columns[2] + columns[3]) / (columns[0] + columns[1])
        row["times_faster"] = f"{ratio:.1f}"
    duration = time.perf_counter() - begin
    row |= {
        "other_load": f"{(busy_elsewhere() - elsewhere) / duration:.2f}",
        "threads": torch.get_num_threads(),
        "isa": cpu.ISAS[cpu.library.isa],
        "machine": processor(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
    }
    return row


def busy_elsewhere() -> float:
    """Seconds of all cores so far that went to others than this process."""
    stat = Path("/proc/stat")
    if not stat.is_file():
        return 0.0
    fields = [int(field) for field in stat.read_text().split("\n", 1)[0].split()[1:9]]
    # All but idle and waiting for a disk.
    busy = sum(fields) - fields[3] - fields[4]
    return busy / os.sysconf("SC_CLK_TCK") - sum(os.times()[:2])


def processor() -> str:
    """The processor's name and number of cores."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    return f"{name}, {os.cpu_count()} cores"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="+", default=["cora", "arxiv", "60k"])
    parser.add_argument("--levels", nargs="+", default=["op", "layer"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.graphs:
        edge_index, nodes = power_law_graph(name)
        edge_index, _ = add_remaining_self_loops(
            remove_self_loops(edge_index)[0], num_nodes=nodes
        )
        graph = Graph(edge_index, nodes)
        for backbone in BACKBONES.get(name, ("gat", "gatv2")):
            for level in arguments.levels:
                row = measure(name, backbone, level, graph, arguments.repeats)
                print({k: row.get(k) for k in list(row)[:3]}, row.get("check"), end=" ")
                print({k: v for k, v in row.items() if "ms" in k or "times" in k})
                sys.stdout.flush()
                rows.append(row)
    fields = list(dict.fromkeys(key for row in rows for key in row))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(rows)
    return int(any(row["check"] != "passed" for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
